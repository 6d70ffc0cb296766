"""Inputs for a kernel that no program launches: arrays, structs and scalars made from its signature.

Arrays lie in the middle of larger buffers. The padding on both sides is ordinary memory of the question, so that an
adjoint that lands beside its array is seen to be wrong, while a kernel that reads a neighbour beyond the edge stays
well defined; the guards outside of it must not change at all. Integers are bounded by the smallest array dimension,
and distinct where they can be, so that an index array neither leaves its arrays nor sends two threads to one element.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt
import warp

from warplint.dataclass import dataclass
from warplint.proof import Draw
from warplint.verify.engine.warp_values import fields_of_struct

wp: Any = warp
Floats = npt.NDArray[Any]

PAD = 8
"""Elements before the array and behind it that belong to the question."""
GUARD = 2048
"""Elements outside of those that nothing may touch."""
DIMENSIONS = {1: (16,), 2: (5, 5), 3: (4, 4, 4), 4: (4, 4, 4, 4)}
BOUND = 4
"""Integers in arrays are below this, the smallest dimension."""


class Unmakeable(Exception):
    """A parameter that only a program can give."""


ORDINARY = frozenset({Draw.ANY_SIGN, Draw.POSITIVE, Draw.SMALL, Draw.NEGATIVE})
"""Draws away from zeros, ties and singular points: rotations are rotations there, and square matrices regular."""
TIED = (-0.7, 0.9)
ZERO_ROW, ZERO_COMPONENT = 0.5, 0.2
"""How often a whole element is zero, and a component of one that is not."""


def values_of(draw: Draw, rng: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Values of this kind; the first axis counts the elements, the others are components."""
    size: npt.NDArray[np.float64] = rng.uniform(0.3, 1.5, shape)
    signs = rng.choice((-1.0, 1.0), shape)
    if draw is Draw.POSITIVE:
        return size
    if draw is Draw.SMALL:
        return np.asarray(0.05 + 0.5 * size)
    if draw is Draw.NEGATIVE:
        return -size
    if draw is Draw.LARGE:
        return np.asarray(200.0 * size * signs)
    if draw is Draw.TIES:
        return np.asarray(rng.choice(TIED, shape))
    if draw is Draw.ZEROS:
        rows = rng.random(shape[:1] + (1,) * (len(shape) - 1)) >= ZERO_ROW
        return np.asarray(size * signs * rows * (rng.random(shape) >= ZERO_COMPONENT))
    return np.asarray(size * signs)


@dataclass
class MadeArray:
    """One array argument and the buffer around it, both on the CPU. ``name`` is its path: ``x``, ``state.q``."""

    name: str
    argument: Any
    buffer: Any
    initial: npt.NDArray[Any]
    floats: tuple[tuple[str, tuple[str, ...]], ...]
    """Its floating-point parts: name, and the fields of the struct dtype that lead there (none for a plain dtype)."""

    @classmethod
    def make(cls, name: str, dtype: Any, ndim: int) -> MadeArray:
        """A buffer of zeros, with a gradient where the dtype has floats."""
        shape = DIMENSIONS[ndim]
        count = int(np.prod(shape))
        plain = wp.zeros(1, dtype=dtype, device="cpu").numpy()
        floats = tuple((".".join((name, *path)), path) for path in _float_fields(plain.dtype))
        buffer = wp.zeros(2 * (GUARD + PAD) + count, dtype=dtype, device="cpu", requires_grad=bool(floats))
        inner = buffer[GUARD + PAD : GUARD + PAD + count]
        return cls(name, inner.reshape(shape) if ndim > 1 else inner, buffer, buffer.numpy().copy(), floats)

    def draw(self, rng: np.random.Generator, draw: Draw) -> None:
        """Choose the values it starts from: floats by the draw, integers small and distinct, guards at zero."""
        inside = self.initial[GUARD:-GUARD]
        for part, path in _parts(inside):
            if np.issubdtype(part.dtype, np.floating):
                part[...] = _shaped(values_of(draw, rng, part.shape), self._dtype_at(path), draw)
            elif part.dtype == np.bool_:
                part[...] = True
            else:
                part[...] = _indices(rng, part.shape)

    def restore(self) -> None:
        """Put the chosen values back."""
        self.buffer.numpy()[...] = self.initial

    def part(self, contents: npt.NDArray[Any], path: tuple[str, ...]) -> Floats:
        """A floating-point part of such a buffer, padding included, guards not: a view."""
        return _at(contents, path)[GUARD:-GUARD]

    def escaped(self) -> bool:
        """Whether something wrote beyond the padding, of the array or of its gradient."""
        arrays = [self.buffer.numpy()] + ([self.buffer.grad.numpy()] if self.floats else [])
        guards = [array[part] for array in arrays for part in (slice(GUARD), slice(-GUARD, None))]
        return any(bool(np.any(np.frombuffer(guard.tobytes(), dtype=np.uint8))) for guard in guards)

    def place(self, element: tuple[int, ...]) -> tuple[int, ...]:
        """An element of the padded buffer in the array's own indices; one negative or too large index outside of it."""
        flat, components = element[0] - PAD, element[1:]
        shape = self.argument.shape
        if 0 <= flat < int(np.prod(shape)):
            return (*(int(k) for k in np.unravel_index(flat, shape)), *components)
        return (flat, *components)

    def _dtype_at(self, path: tuple[str, ...]) -> Any:
        dtype = self.argument.dtype
        for name in path:
            dtype = (fields_of_struct(dtype) or {})[name]
        return dtype


@dataclass
class MadeInputs:
    """The arguments of one launch, in order, and the arrays among them (also those in fields of structs)."""

    arguments: list[Any] = field(default_factory=list)
    arrays: list[MadeArray] = field(default_factory=list)
    eps: float = 2.0**-52
    """Machine epsilon of the coarsest floating-point type among the parameters."""
    steered: bool = False
    """Whether integers or truth values are among the parameters: counts, widths, modes."""

    def escaped(self) -> str:
        """The array beyond whose padding something was written; empty if none."""
        return next((array.name for array in self.arrays if array.escaped()), "")


def make_inputs(types: Mapping[str, Any], rng: np.random.Generator, integer: int) -> MadeInputs:
    """Arguments for a kernel whose parameters have these types, all concrete; integer scalars are all ``integer``.

    Truth values are ``integer != 0``.

    Raises:
        Unmakeable: only a program can give a parameter's value.
    """
    made = MadeInputs()
    for name, kind in types.items():
        made.arguments.append(_argument(made, name, kind, rng, integer))
    if any(array.floats for array in made.arrays):
        return made
    raise Unmakeable("no parameter is an array of floating-point numbers")


def _argument(made: MadeInputs, name: str, kind: Any, rng: np.random.Generator, integer: int) -> Any:
    dtype, ndim = getattr(kind, "dtype", None), getattr(kind, "ndim", None)
    if dtype is not None and isinstance(ndim, int):
        if not (isinstance(kind, wp.array) or type(kind).__name__ == "_ArrayAnnotation"):
            raise Unmakeable(f"`{name}` is a {type(kind).__name__}")
        if dtype is wp.uint64:
            raise Unmakeable(f"`{name}` holds handles, which only a program has")
        try:
            array = MadeArray.make(name, dtype, ndim)
        except Exception as error:
            raise Unmakeable(f"`{name}` is an array of {dtype}, which only a program has") from error
        _count_eps(made, array.initial.dtype)
        made.arrays.append(array)
        return array.argument
    fields = fields_of_struct(kind)
    if fields is not None:
        instance = kind()
        for member, inner in fields.items():
            setattr(instance, member, _argument(made, f"{name}.{member}", inner, rng, integer))
        return instance
    return _scalar(made, name, kind, rng, integer)


def _scalar(made: MadeInputs, name: str, kind: Any, rng: np.random.Generator, integer: int) -> Any:
    """A number, vector or matrix by value. Positive: time steps, masses and tolerances are."""
    if kind is wp.uint64:
        raise Unmakeable(f"`{name}` is a handle (mesh, grid, volume …), which only a program has")
    if kind in (bool, wp.bool):
        made.steered = True
        return integer != 0
    if kind is float:
        _count_eps(made, np.dtype(np.float32))
        return float(rng.uniform(0.3, 1.5))
    if kind is int:
        made.steered = True
        return integer
    try:
        one = wp.zeros(1, dtype=kind, device="cpu").numpy()
        plain = one.dtype.fields is None
    except Exception as error:
        raise Unmakeable(f"`{name}` is {kind}, which only a program has") from error
    if not plain:
        raise Unmakeable(f"`{name}` is {kind}, which only a program has")
    if one.shape == (1,):
        made.steered |= not np.issubdtype(one.dtype, np.floating)
        return kind(rng.uniform(0.3, 1.5)) if np.issubdtype(one.dtype, np.floating) else kind(integer)
    if not np.issubdtype(one.dtype, np.floating):
        return kind(*_indices(rng, one.shape).ravel().tolist())
    _count_eps(made, one.dtype)
    return kind(*_shaped(values_of(Draw.POSITIVE, rng, one.shape), kind, Draw.POSITIVE).ravel().tolist())


def _count_eps(made: MadeInputs, dtype: np.dtype[Any]) -> None:
    for path in _float_fields(dtype):
        part = dtype
        for name in path:
            part = typing.cast("Mapping[str, Any]", part.fields)[name][0]
        made.eps = max(made.eps, float(np.finfo(part.base).eps))


def _float_fields(dtype: np.dtype[Any]) -> Iterator[tuple[str, ...]]:
    """The paths to the floating-point parts of a dtype: one empty path for a plain dtype of floats."""
    if dtype.fields is None:
        if np.issubdtype(dtype.base, np.floating):
            yield ()
        return
    for name, (inner, *_) in dtype.fields.items():
        for path in _float_fields(inner):
            yield (name, *path)


def _parts(array: npt.NDArray[Any], path: tuple[str, ...] = ()) -> Iterator[tuple[npt.NDArray[Any], tuple[str, ...]]]:
    if array.dtype.fields is None:
        yield array, path
        return
    for name in array.dtype.fields:
        yield from _parts(array[name], (*path, name))


def _at(array: npt.NDArray[Any], path: tuple[str, ...]) -> npt.NDArray[Any]:
    for name in path:
        array = array[name]
    return array


def _indices(rng: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Runs of permutations of ``0 … BOUND - 1``, starting anew where the array (behind its padding) starts.

    Each begins with zero, as counters do: one that starts higher hides behind limits and clamps what it steers.
    """
    size = int(np.prod(shape))
    runs = [np.append(0, 1 + rng.permutation(BOUND - 1)) for _ in range(size // BOUND + 1)]
    return np.concatenate(runs)[:size].reshape(shape)


def _shaped(values: npt.NDArray[np.float64], dtype: Any, draw: Draw) -> npt.NDArray[np.float64]:
    """Values as the type wants them: rotations of unit length; in ordinary draws square matrices with an inverse."""
    if _is(dtype, "type_is_quaternion"):
        return np.asarray(values / np.maximum(np.linalg.norm(values, axis=-1, keepdims=True), 1e-6))
    if _is(dtype, "type_is_transformation"):
        length = np.maximum(np.linalg.norm(values[..., 3:], axis=-1, keepdims=True), 1e-6)
        return np.concatenate([values[..., :3], values[..., 3:] / length], axis=-1)
    if draw in ORDINARY and _is(dtype, "type_is_matrix") and values.shape[-1] == values.shape[-2]:
        return np.asarray(values + 2.0 * np.eye(values.shape[-1]))
    return values


def _is(dtype: Any, question: str) -> bool:
    ask = getattr(wp.types, question, None)
    try:
        return bool(ask is not None and ask(dtype))
    except Exception:
        return False

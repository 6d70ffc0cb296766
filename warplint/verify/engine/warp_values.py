"""What a kernel's parameters hold, and how a recorded call is made again: the part of the private room about values.

Like ``warp_hooks.py`` it touches private names of Warp (1.13 to 1.19 were looked at).
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from warplint.dataclass import dataclass

RETAIN_FLAG = 1
"""``ARRAY_FLAG_RETAIN_GRAD`` of ``array_t.flags``."""


class Unsupported(Exception):
    """This Warp lacks something that the engine stands on."""


@dataclass(frozen=True)
class Scalars:
    """Where the floating-point numbers lie inside one element of a dtype: their numpy type and byte offsets."""

    kind: np.dtype[Any] | None
    offsets: tuple[int, ...]
    size: int

    @property
    def floating(self) -> bool:
        """Whether the dtype has floating-point numbers of one kind: something to differentiate."""
        return self.kind is not None


@dataclass(frozen=True)
class ArraySlot:
    """An array among a kernel's parameters, or in a field of a struct parameter.

    ``parameter`` is the position in the packed parameters (0 is the launch bounds), ``offset`` the byte offset of the
    ``array_t`` in it, ``path`` the name with its fields (``state.q``).
    """

    parameter: int
    offset: int
    path: str
    scalars: Scalars
    dtype: str
    indexed: bool = False


@dataclass(frozen=True)
class Layout:
    """A kernel's parameters: the arrays, and the positions of scalars that hold floating-point numbers."""

    slots: tuple[ArraySlot, ...]
    names: tuple[str, ...]
    values: tuple[int, ...]
    handles: tuple[int, ...]
    """Positions of 64-bit unsigned parameters: identifiers of meshes, grids, volumes."""
    unseen: bool = False
    """Whether it may reach memory that no parameter shows: by such an identifier, or by addresses in an array."""


def scalars_of(dtype: Any) -> Scalars:
    """Where the floats are in one element of ``dtype`` (a Warp scalar, vector, matrix or struct)."""
    import warp
    from warp._src import codegen, types

    kinds: dict[Any, np.dtype[Any]] = {
        warp.float16: np.dtype(np.float16),
        warp.float32: np.dtype(np.float32),
        warp.float64: np.dtype(np.float64),
        float: np.dtype(np.float32),
    }
    try:
        size = int(types.type_size_in_bytes(dtype))
    except Exception:
        size = int(getattr(dtype, "_length_", 1)) * 4
    if dtype in kinds:
        return Scalars(kinds[dtype], (0,), size)
    if isinstance(dtype, codegen.Struct):
        found: list[tuple[np.dtype[Any], int]] = []
        for name, var in dtype.vars.items():
            if types.is_array(var.type):
                continue
            base = int(getattr(dtype.ctype, name).offset)
            inner = scalars_of(var.type)
            if inner.kind is not None:
                found.extend((inner.kind, base + offset) for offset in inner.offsets)
        if found and len({kind for kind, _ in found}) == 1:
            return Scalars(found[0][0], tuple(offset for _, offset in found), size)
        return Scalars(None, (), size)
    scalar = getattr(dtype, "_wp_scalar_type_", None)
    if scalar in kinds:
        item = kinds[scalar].itemsize
        return Scalars(kinds[scalar], tuple(range(0, int(dtype._length_) * item, item)), size)
    return Scalars(None, (), size)


def layout_of(kernel: Any) -> Layout:
    """The arrays among the parameters of ``kernel``, found through its arguments' types."""
    from warp._src import types

    slots: list[ArraySlot] = []
    values: list[int] = []
    handles: list[int] = []
    for position, argument in enumerate(kernel.adj.args):
        kind = argument.type
        slots.extend(_slots(kind, position + 1, 0, str(argument.label)))
        if not types.is_array(kind) and scalars_of_value(kind):
            values.append(position + 1)
        if kind is types.uint64:
            handles.append(position + 1)
    unseen = any(_leads_on(argument.type) for argument in kernel.adj.args)
    return Layout(tuple(slots), tuple(str(a.label) for a in kernel.adj.args), tuple(values), tuple(handles), unseen)


def _leads_on(kind: Any, of_array: bool = False) -> bool:
    """Whether a value of this type may hold an address besides those of arrays among the parameters."""
    from warp._src import codegen, types

    if types.is_array(kind):
        return of_array or _leads_on(kind.dtype, of_array=True)
    if isinstance(kind, codegen.Struct):
        return any(_leads_on(var.type, of_array) for var in kind.vars.values())
    return kind is types.uint64


def fields_of_struct(kind: Any) -> dict[str, Any] | None:
    """The members of a ``wp.struct`` and their types; None for anything else."""
    from warp._src import codegen

    if not isinstance(kind, codegen.Struct):
        return None
    return {name: var.type for name, var in kind.vars.items()}


def scalars_of_value(kind: Any) -> bool:
    """Whether a by-value parameter of this type holds floating-point numbers."""
    from warp._src import codegen

    if isinstance(kind, codegen.Struct):
        return any(scalars_of_value(var.type) for var in kind.vars.values())
    try:
        return scalars_of(kind).floating
    except Exception:
        return False


def _slots(kind: Any, parameter: int, offset: int, path: str) -> Iterator[ArraySlot]:
    import warp
    from warp._src import codegen, types

    if types.is_array(kind):
        family = type(kind).__name__
        indexed = isinstance(kind, warp.indexedarray) or family.startswith("indexed")
        dtype = getattr(kind, "dtype", None)
        yield ArraySlot(parameter, offset, path, scalars_of(dtype), _type_name(dtype), indexed)
    elif isinstance(kind, codegen.Struct):
        for name, var in kind.vars.items():
            field = getattr(kind.ctype, name, None)
            if field is not None:
                yield from _slots(var.type, parameter, offset + int(field.offset), f"{path}.{name}")


def _type_name(dtype: Any) -> str:
    from warp._src import types

    try:
        return str(types.type_repr(dtype))
    except Exception:
        return getattr(dtype, "__name__", str(dtype))


@functools.lru_cache(maxsize=1)
def array_type() -> Any:
    """The ctypes structure behind an array parameter."""
    from warp._src import types

    return types.array_t


def descriptor(parameter: Any, offset: int) -> Any:
    """The ``array_t`` at ``offset`` of a packed parameter, as a live view into it."""
    return array_type().from_buffer(parameter, offset)


def copied(params: Sequence[Any]) -> list[Any]:
    """Packed parameters, copied byte by byte, so that nobody can change them afterwards."""
    return [type(value).from_buffer_copy(value) for value in params]


def adjoint_parameters(forward: Sequence[Any]) -> list[Any]:
    """Adjoint parameters, all zero, for packed forward parameters (launch bounds first)."""
    return [type(value)() for value in forward[1:]]


def dimensions(bounds: Any) -> tuple[int, ...]:
    """The launch's extents."""
    extents = tuple(int(extent) for extent in bounds.shape)
    return extents[: int(getattr(bounds, "ndim", len(extents)))]


class Packed:
    """A kernel call with its argument structures built once: running it costs one foreign call."""

    def __init__(self, kernel: Any, hooks: Any, params: Sequence[Any], adjoint: bool) -> None:
        count = len(kernel.adj.args)
        self._bounds = params[0]
        self._forward = _structure(params[1 : 1 + count])
        self._backward = _structure(params[1 + count : 1 + 2 * count]) if adjoint else None
        self._entry = hooks.backward if adjoint else hooks.forward
        self._keep = (kernel, hooks)
        if self._entry is None:
            raise Unsupported(f"the kernel {kernel.key} has no {'adjoint' if adjoint else 'forward'} code")

    def __call__(self) -> None:
        """Run it on the memory as it is."""
        if self._backward is None:
            self._entry(ctypes.byref(self._bounds), ctypes.byref(self._forward))
        else:
            self._entry(ctypes.byref(self._bounds), ctypes.byref(self._forward), ctypes.byref(self._backward))


@functools.lru_cache(maxsize=4096)
def _structure_of(kinds: tuple[type, ...]) -> type[ctypes.Structure]:
    fields = [(f"a{index}", kind) for index, kind in enumerate(kinds)]
    return type("Arguments", (ctypes.Structure,), {"_fields_": fields})


def _structure(values: Sequence[Any]) -> ctypes.Structure:
    """The arguments as the kernel's entry takes them: one structure of the parameters, in order."""
    made = _structure_of(tuple(type(value) for value in values))()
    for index, value in enumerate(values):
        setattr(made, f"a{index}", value)
    return made


@dataclass(frozen=True)
class CopyEntry:
    """What a recorded ``wp.copy`` keeps for its adjoint."""

    dest: Any
    source: Any
    dest_offset: int
    count: int


def copy_entry(function: Callable[[], Any]) -> CopyEntry | None:
    """The arrays of a recorded ``wp.copy``; None for a function of the user's own."""
    code = getattr(function, "__code__", None)
    if code is None or not getattr(function, "__qualname__", "").startswith("copy.<locals>"):
        return None
    cells = zip(code.co_freevars, function.__closure__ or (), strict=False)
    held = {name: cell.cell_contents for name, cell in cells}
    if not {"dest", "src"} <= set(held):
        return None
    return CopyEntry(held["dest"], held["src"], held.get("dest_offset", 0), held.get("count", 0))


def struct_fields(value: Any) -> dict[str, Any] | None:
    """The fields of a ``@wp.struct`` instance; None for any other value."""
    from warp._src import codegen

    if not isinstance(value, codegen.StructInstance):
        return None
    return {name: getattr(value, name) for name in value._cls.vars}  # type: ignore[attr-defined]


def adjoint_enabled(kernel: Any) -> bool:
    """Whether the tape's backward runs the adjoint of this kernel (its own option, else its module's)."""
    own = kernel.options.get("enable_backward")
    return bool(kernel.module.options.get("enable_backward", True) if own is None else own)

"""numpy arrays put together from others: ``concatenate``, ``stack`` and their kin, exact on small known contents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from warplint.trace.host.library.numpy import make, nested_shape, numbers_in, shape_of
from warplint.trace.host.machine import Call, Machine
from warplint.trace.host.memory import NumpyValue, Shape
from warplint.trace.host.values import NO_SOURCES, UnknownValue, Value, sources_of

Nested = Any
"""A number, or a list of lists of numbers."""


def nested_numbers(array: NumpyValue) -> Nested | None:
    """The contents as nested lists, None where they are not known."""
    if array.contents is None or array.sources or array.shape is None:
        return None
    return _folded(array.contents, array.shape)


def _folded(flat: Sequence[float], shape: Shape) -> Nested:
    if not shape:
        return flat[0] if flat else None
    width = len(flat) // shape[0] if shape[0] else 0
    return [_folded(flat[row * width : (row + 1) * width], shape[1:]) for row in range(shape[0] or 0)]


def _rows(parts: Sequence[Nested]) -> list[Nested]:
    """The rows of all parts, one below the other."""
    return [row for part in parts for row in (part if isinstance(part, list) else [part])]


def _columns(parts: Sequence[Nested]) -> list[Nested]:
    """All parts side by side, one-dimensional ones as columns."""
    wide = [[row if isinstance(row, list) else [row] for row in part] for part in parts]
    return [[number for part in row for number in part] for row in zip(*wide, strict=True)]


def _is_flat(part: Nested) -> bool:
    return isinstance(part, list) and not any(isinstance(item, list) for item in part)


def _concatenated(parts: Sequence[Nested], axis: Value) -> Nested | None:
    if axis in (0, None):
        return _rows(parts)
    return _columns(parts) if axis in (1, -1) and not any(map(_is_flat, parts)) else None


def _stacked(parts: Sequence[Nested], axis: Value) -> Nested | None:
    if axis in (0, None):
        return list(parts)
    return _columns(parts) if axis in (1, -1) and all(map(_is_flat, parts)) else None


def _horizontal(parts: Sequence[Nested], axis: Value) -> Nested:
    return _rows(parts) if all(map(_is_flat, parts)) else _columns(parts)


def _vertical(parts: Sequence[Nested], axis: Value) -> Nested:
    return _rows([[part] if _is_flat(part) else part for part in parts])


def _side_by_side(parts: Sequence[Nested], axis: Value) -> Nested:
    return _columns(parts)


def _assembled(put_together: Callable[[Sequence[Nested], Value], Nested | None]) -> Callable[[Machine, Call], Value]:
    def run(machine: Machine, call: Call) -> Value:
        from warplint.trace.host.warp_api.arrays import use_views

        arrays = machine.iterate(call.get(0, "arrays"))
        use_views(machine, *(arrays or ()))
        sources = NO_SOURCES.union(*(sources_of(value) for value in (*call.values, *(arrays or ()))))
        if arrays is None or sources:
            return NumpyValue(None, None, None, sources, allocated=machine.stack())
        parts = [_known(value) for value in arrays]
        if None in parts:
            return NumpyValue(None, getattr(arrays[0], "dtype", None), None, allocated=machine.stack())
        try:
            whole = put_together(parts, call.get(1, "axis", 0))
        except (TypeError, ValueError):
            whole = None
        known = None if whole is None else numbers_in(whole)
        return make(machine, known[1] if known else None, known[0] if known else None)

    return run


def _known(value: Value) -> Nested | None:
    if isinstance(value, NumpyValue):
        return nested_numbers(value)
    known = numbers_in(value)
    return None if known is None else _folded(known[0], known[1])


def _tiled(machine: Machine, call: Call) -> Value:
    """``tile(array, times)``; of more than one dimension only the shape's last size is known to grow."""
    array, times = call.get(0, "A"), call.get(1, "reps")
    shape, repeats = nested_shape(array), shape_of(machine, times)
    known = numbers_in(array)
    sources = sources_of(array)
    if shape is None or repeats is None or len(repeats) != len(shape):
        return NumpyValue(None, getattr(array, "dtype", None), None, sources, allocated=machine.stack())
    sizes = tuple(None if a is None or b is None else a * b for a, b in zip(shape, repeats, strict=True))
    flat = known is not None and len(shape) == 1 and isinstance(repeats[0], int)
    made = make(machine, sizes, known[0] * (repeats[0] or 0) if known is not None and flat else None)
    made.sources = sources
    return made


def to_list(array: NumpyValue) -> Value:
    """``array.tolist()``."""
    nested = nested_numbers(array)
    return UnknownValue("a list of numbers", array.sources) if nested is None else nested


MODELS: dict[str, Callable[[Machine, Call], Value]] = {
    "numpy.concatenate": _assembled(_concatenated),
    "numpy.stack": _assembled(_stacked),
    "numpy.hstack": _assembled(_horizontal),
    "numpy.vstack": _assembled(_vertical),
    "numpy.column_stack": _assembled(_side_by_side),
    "numpy.tile": _tiled,
}

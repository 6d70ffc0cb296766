"""Which memory a native call reads and writes, from its arguments."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from warplint.dataclass import dataclass
from warplint.verify.engine.execution.log import Log
from warplint.verify.engine.execution.memory import Bytes, Memory, read_bytes
from warplint.verify.engine.execution.views import FloatView
from warplint.verify.engine.warp_values import Scalars, array_type


@dataclass(frozen=True)
class Extents:
    """One destination and, where there is one, one source: addresses and sizes in bytes.

    ``contents`` reads what would be written, for a source that may be gone later.
    """

    dest: int
    size: int
    source: int = 0
    source_size: int = 0
    contents: Callable[[], Bytes] | None = None


def number(value: Any) -> int:
    """An address or a size out of an argument as Warp passes it."""
    if isinstance(value, int):
        return value
    return int(getattr(value, "value", None) or 0)


def element_span(array: Any, element: int) -> tuple[int, int]:
    """First byte and size of what an ``array_t`` of ``element``-byte elements covers, strides included."""
    low = high = int(array.data)
    for axis in range(int(array.ndim)):
        extent, stride = int(array.shape[axis]), int(array.strides[axis])
        if extent <= 0:
            return int(array.data), 0
        if stride < 0:
            low += (extent - 1) * stride
        else:
            high += (extent - 1) * stride
    return low, high - low + element


def _described(pointer: Any) -> Any:
    """The ``array_t`` behind a pointer argument; indexed arrays begin with theirs."""
    target = pointer.contents if hasattr(pointer, "contents") else pointer
    return array_type().from_buffer(target)


def exact(name: str, args: tuple[Any, ...]) -> Extents | None:
    """The extents of one of the memory operations; None where it moves nothing that can be told."""
    if name == "wp_memcpy_h2h":
        dest, source, size = number(args[0]), number(args[1]), number(args[2])
        return Extents(dest, size, source, size, lambda: read_bytes(source, size))
    if name == "wp_memset_host":
        return Extents(number(args[0]), number(args[2]))
    if name == "wp_memtile_host":
        return Extents(number(args[0]), number(args[2]) * number(args[3]))
    if name == "wp_array_fill_host":
        low, size = element_span(_described(args[0]), number(args[3]))
        return Extents(low, size)
    dest, source = _described(args[0]), _described(args[1])
    element = number(args[4])
    dest_low, dest_size = element_span(dest, element)
    source_low, source_size = element_span(source, element)
    return Extents(dest_low, dest_size, source_low, source_size)


def frozen(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments that stay valid: the value of a tiling fill is copied, since the caller's goes away."""
    if name != "wp_memtile_host":
        return args
    size = number(args[2])
    value = ctypes.cast(args[1], ctypes.c_void_p).value
    copy = (ctypes.c_uint8 * size).from_buffer_copy(bytes(read_bytes(value, size))) if value and size else None
    return (args[0], ctypes.pointer(copy), *args[2:]) if copy is not None else args


def reachable(args: Iterable[Any], log: Log) -> list[Memory]:
    """The memories that a native utility can reach through its arguments: addresses, array descriptors, handles."""
    found: dict[Memory, None] = {}
    for value in args:
        for address in _addresses(value):
            handle = log.handles.get(address)
            if handle is not None:
                found.update(dict.fromkeys(handle.memories))
            memory = log.memories.find(address)
            if memory is not None:
                found[memory] = None
    return list(found)


def _addresses(value: Any) -> list[int]:
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, int):
        return [value] if value > 4096 else []
    target = getattr(value, "_obj", value)
    if hasattr(target, "contents"):
        try:
            target = target.contents
        except ValueError:
            return []
    if isinstance(target, array_type()):
        return [int(target.data)]  # a utility of Warp's does nothing with the gradient that lies beside
    if isinstance(target, ctypes.Structure):
        words = np.frombuffer(bytes(target), dtype=np.uint8)
        usable = words[: len(words) // 8 * 8].view(np.uint64)
        return [int(word) for word in usable if word > 4096]
    inner = getattr(target, "value", None)
    return [int(inner)] if isinstance(inner, int) and inner > 4096 else []


def described_pair(args: tuple[Any, ...], kind: np.dtype[Any]) -> tuple[FloatView, FloatView] | None:
    """Source and destination of a strided copy, element by element, as floats of one kind."""
    dest, source, element = _described(args[0]), _described(args[1]), number(args[4])
    offsets = tuple(range(0, element, kind.itemsize))
    scalars = Scalars(kind, offsets, element)
    pair = FloatView.of(source, scalars), FloatView.of(dest, scalars)
    return pair if pair[0].shape == pair[1].shape else None

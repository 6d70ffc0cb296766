"""Runs a program with real Warp and prints its launches as JSON: kernel, taped, memories, flags, function ``sNN``.

Memories are told apart by address ranges; every array that was passed is kept alive, so that no address comes twice.
"""

from __future__ import annotations

import inspect
import json
import runpy
import sys
from typing import Any

import warp as wp

_rows: list[dict[str, Any]] = []
_kept: list[Any] = []
_ranges: list[tuple[int, int]] = []


def _arrays(value: Any) -> list[Any]:
    if isinstance(value, wp.array):
        return [value]
    return [getattr(value, name) for name in ("q", "qd") if isinstance(getattr(value, name, None), wp.array)]


def _range(array: Any) -> int:
    _kept.append(array)
    last = sum((size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True))
    _ranges.append((array.ptr, array.ptr + last + wp.types.type_size_in_bytes(array.dtype)))
    return len(_ranges) - 1


def _place() -> str:
    names = (frame.function for frame in inspect.stack())
    return next((name for name in names if name[0] == "s" and name[1:].isdigit()), "")


_launch = wp.launch


def _recording(kernel: Any, dim: Any, inputs: Any = (), outputs: Any = (), *args: Any, **kwargs: Any) -> Any:
    arrays = [array for value in (*inputs, *outputs) for array in _arrays(value)]
    row = {
        "kernel": kernel.key,
        "taped": kwargs.get("record_tape", True),
        "memories": [_range(array) for array in arrays],
        "flags": [bool(array.requires_grad) for array in arrays],
        "place": _place(),
    }
    _rows.append(row)
    return _launch(kernel, dim, list(inputs), list(outputs), *args, **kwargs)


def _noting(allocate: Any) -> Any:
    def run(*args: Any, **kwargs: Any) -> Any:
        array = allocate(*args, **kwargs)
        _range(array)
        return array

    return run


def _groups() -> list[int]:
    """The number of each range's memory: ranges that overlap are one."""
    order = sorted(range(len(_ranges)), key=_ranges.__getitem__)
    groups = [0] * len(_ranges)
    group, end = -1, -1
    for position in order:
        start, stop = _ranges[position]
        if start >= end:
            group += 1
        groups[position], end = group, max(end, stop)
    return groups


if __name__ == "__main__":
    wp.config.quiet = True
    wp.launch, wp.zeros = _recording, _noting(wp.zeros)
    runpy.run_path(sys.argv[1], run_name="__main__")
    numbers = _groups()
    for row in _rows:
        row["memories"] = [numbers[position] for position in row["memories"]]
    print("ROWS" + json.dumps(_rows))

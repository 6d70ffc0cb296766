"""How much work operations are, told from their sizes and never from the clock: the same in every run.

What is tried, and in how many directions, must not hang on what else the machine does meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from warplint.verify.engine.execution.operations import HostWrite, KernelCall, NativeCall, Operation
from warplint.verify.engine.warp_values import dimensions

CALL = 3e-6
"""Seconds of one call, whatever it does (measured: 2 to 5 µs, the foreign call and Python around it)."""
KERNEL = 2e9
"""Bytes of its arrays' elements that the threads of a plain kernel pass in a second (measured: 2 to 5e9)."""
COPY = 4e9
"""Bytes that a memory operation writes in a second."""


def seconds_of(operations: Iterable[Operation]) -> float:
    """About what the operations take on one core; of kernels that compute much, far too little."""
    return sum(map(_seconds, operations))


def _seconds(operation: Operation) -> float:
    if isinstance(operation, KernelCall):
        each = sum(slot.scalars.size for slot in operation.layout.slots)
        passes = 2 if operation.adjoint else 1
        return CALL + passes * math.prod(dimensions(operation.params[0])) * each / KERNEL
    if isinstance(operation, NativeCall):
        return CALL + sum(where.size for where in operation.writes) / COPY
    if isinstance(operation, HostWrite):
        return CALL + operation.dest.size / COPY
    return 0.0

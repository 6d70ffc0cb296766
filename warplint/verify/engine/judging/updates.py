"""Updates that nobody reads: an optimiser that was handed a copy of the parameters."""

from __future__ import annotations

from collections.abc import Iterator

from warplint.verify.engine.execution.memory import Memory, Range
from warplint.verify.engine.execution.operations import Happening, KernelCall, NativeCall, Operation
from warplint.verify.engine.judging.culprits import places
from warplint.verify.engine.replaying.analysis import Analysis
from warplint.verify.records import OptimiserSeen, Unread


def unread_updates(analysis: Analysis) -> Iterator[Unread]:
    """Memories that are updated from their gradient, and that nothing looks at before the next backward call."""
    updates: dict[Memory, list[Operation]] = {}
    for memory, operation in _updates(analysis):
        updates.setdefault(memory, []).append(operation)
    for memory, operations in updates.items():
        first = operations[0]
        later = [begin for begin in analysis.log.backwards if begin.index > first.index]
        if not later or _is_read(memory, first.index, {operation.index for operation in operations}, analysis):
            continue
        kernel = next((operation for operation in operations if isinstance(operation, KernelCall)), None)
        yield Unread(
            memory.number,
            places(memory.stack),
            places(first.stack),
            kernel.name if kernel is not None else "",
            "it is updated from its gradient, and nothing reads it before the next backward call"
            + (", a copy of another array" if memory.copied_from is not None else ""),
        )


def _updates(analysis: Analysis) -> Iterator[tuple[Memory, Operation]]:
    """Writes to memory by operations that read its gradient, and the parameters of optimisers."""
    for operation in analysis.log.operations:
        if operation.inside is not None:
            continue
        if isinstance(operation, Happening) and operation.make is OptimiserSeen:
            for where in operation.fields["params"]:
                if isinstance(where, Range):
                    yield where.memory, operation
        elif isinstance(operation, KernelCall | NativeCall):
            read = {where.memory for where in analysis.reads(operation)} & analysis.log.gradients
            if read:
                for where, _ in analysis.writes(operation):
                    if where.memory.grad is not None and where.memory.grad in read:
                        yield where.memory, operation


def _is_read(memory: Memory, since: int, updates: set[int], analysis: Analysis) -> bool:
    for operation in analysis.of(memory):
        own = operation.inside is None and memory.grad is not None and memory.grad in operation.touched
        if operation.index <= since or operation.index in updates or own:
            continue
        if any(where.memory is memory for where in analysis.reads(operation)):
            return True
    return False

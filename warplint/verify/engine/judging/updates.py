"""Updates that are lost: written to a copy that nobody reads, or made of a gradient that was cleared meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warplint.verify.engine.execution.memory import Bytes, Memory, Range
from warplint.verify.engine.execution.operations import (
    Happening,
    HostRead,
    HostWrite,
    KernelCall,
    NativeCall,
    Operation,
)
from warplint.verify.engine.judging.culprits import places
from warplint.verify.engine.replaying.adjoint import float_kind_of
from warplint.verify.engine.replaying.analysis import Analysis
from warplint.verify.engine.replaying.replay import Machine
from warplint.verify.records import OptimiserSeen, Stagnant, Unread


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
            f"it is updated from its gradient, and nothing reads it before {_calls(len(later))}"
            + (", a copy of another array" if memory.copied_from is not None else ""),
            times=len(later),
        )


def _calls(count: int) -> str:
    return "the next backward call" if count == 1 else f"or between the next {count} backward calls"


def stagnant_updates(machine: Machine, analysis: Analysis) -> Iterator[Stagnant]:
    """Leaves that the host wrote back unchanged after a clearing of the gradient that it held a view of."""
    told: set[Memory] = set()
    for seen in analysis.log.operations:
        if not isinstance(seen, HostRead) or seen.inside is not None:
            continue
        gradient = seen.source.memory
        leaf = gradient.gradient_of
        if leaf is None or leaf in told or gradient not in analysis.log.gradients:
            continue
        cleared = _cleared_after(seen, gradient, analysis)
        written = _written_after(cleared, leaf, analysis) if cleared is not None else None
        largest = largest_magnitude(analysis.survey.gradients.at(gradient, seen.index), leaf, analysis)
        if cleared is None or written is None or not largest:
            continue
        machine.rewind(written.index)
        if np.array_equal(written.dest.read(), written.contents):
            told.add(leaf)
            yield Stagnant(
                leaf.number,
                allocated=places(leaf.stack),
                seen=places(seen.stack),
                cleared=places(cleared.stack),
                written=places(written.stack),
                largest=largest,
            )


def _cleared_after(seen: HostRead, gradient: Memory, analysis: Analysis) -> NativeCall | None:
    """What clears a gradient next, before any backward call fills it."""
    for operation in analysis.of(gradient):
        if operation.index > seen.index and not isinstance(operation, HostRead):
            clears = isinstance(operation, NativeCall) and operation.exact and not operation.reads
            return operation if clears and operation.inside is None else None  # type: ignore[return-value]
    return None


def _written_after(cleared: Operation, leaf: Memory, analysis: Analysis) -> HostWrite | None:
    """What writes the leaf next, if that is the host and no backward call comes before."""
    later = next((begin.index for begin in analysis.log.backwards if begin.index > cleared.index), None)
    for operation in analysis.of(leaf):
        if operation.index > cleared.index and (later is None or operation.index < later):
            if isinstance(operation, HostWrite):
                return operation
            if any(where.memory is leaf for where, _ in analysis.writes(operation)):
                return None
    return None


def largest_magnitude(contents: Bytes, owner: Memory, analysis: Analysis) -> float | None:
    """The largest magnitude in the bytes of a gradient of ``owner``; None where its numbers are not known."""
    kind = float_kind_of(owner, analysis)
    if kind is None:
        return None
    whole = contents.size - contents.size % kind.itemsize
    values = np.abs(np.ascontiguousarray(contents)[:whole].view(kind).astype(np.float64))
    return float(np.max(values[np.isfinite(values)], initial=0.0))


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

"""Copies of parameters that are updated in their place: what is learned is written to memory that nothing reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from warplint.dataclass import dataclass
from warplint.trace.events import Backward, Copy, Event, Launch, Memory, OptimiserStep, Trace
from warplint.trace.flow.operations import Operation
from warplint.trace.flow.recordings import Recording


@dataclass(frozen=True)
class LostUpdate:
    """``update`` writes ``copy``, which was made from ``original``; the recording after it reads the original."""

    copy: Memory
    original: Memory
    update: Event
    recording: Recording


def lost_updates(
    trace: Trace, recordings: Sequence[Recording], operations: Mapping[int, Operation]
) -> Iterator[LostUpdate]:
    """The copies that are updated, never read, and whose original a later recording differentiates unchanged."""
    if not any(memory.copied_from is not None for memory in trace.memories.values()):
        return
    read = _read(trace, operations)
    for copy in trace.memories.values():
        original = trace.memories.get(copy.copied_from) if copy.copied_from is not None else None
        if original is None or copy.id in read or (trace.cut and copy.id not in trace.unread):
            continue
        update = _first_update(copy.id, trace)
        if update is None:
            continue
        for recording in recordings:
            reads_original = any(seq > update.seq for seq in _readings(original.id, recording))
            if reads_original and not _is_written(original.id, update.seq, recording.backward, operations):
                yield LostUpdate(copy, original, update, recording)
                break


def _first_update(memory: int, trace: Trace) -> Event | None:
    """The first step of an optimiser that takes the memory for a parameter."""
    return next(
        (
            event
            for event in trace.events
            if isinstance(event, OptimiserStep) and any(array.memory == memory for array in event.params)
        ),
        None,
    )


def _read(trace: Trace, operations: Mapping[int, Operation]) -> frozenset[int]:
    """The memories that anything may look at: an operation, the host, code outside."""
    read: set[int] = set()
    for event in trace.events:
        operation = operations.get(event.seq)
        if operation is not None:
            read.update(array.memory for array in operation.reads)
            if isinstance(event, Launch) and not operation.resolved:
                read.update(binding.array.memory for binding in event.bindings if binding.array is not None)
        elif not isinstance(event, (Copy, OptimiserStep, Backward)):
            read |= _touched(event)
    return frozenset(read)


def _touched(event: Event) -> set[int]:
    """The memories whose data an event of no operation looks at; gradients are no data."""
    array = getattr(event, "array", None)
    arrays = [array] if array is not None else list(getattr(event, "arrays", ()))
    return {each.memory for each in arrays if not each.gradient}


def _readings(memory: int, recording: Recording) -> Iterator[int]:
    for _, step in recording.window.on_tape():
        if any(array.memory == memory for array in step.active):
            yield step.seq


def _is_written(memory: int, since: int, backward: Backward, operations: Mapping[int, Operation]) -> bool:
    return any(
        step.dest.memory == memory
        for seq, operation in operations.items()
        if since < seq < backward.seq
        for step in operation.steps
    )

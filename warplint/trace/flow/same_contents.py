"""Copies that put back what is there already: the state to a scratch array, unchanged, and back over the state.

Two arrays have the same contents from the copy of the one to the other until one of them is written. A copy between
them then destroys nothing (measured: the gradient is right). Where something unseen may have written, nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warplint.trace.events import Copy, Event, Extent, Interlude, Launch, Opaque
from warplint.trace.flow.operations import Operation, Step


def unchanging_copies(events: Sequence[Event], operations: Sequence[Operation]) -> frozenset[int]:
    """The event numbers of the copies, and of the launches that only copy, whose destination holds the same already."""
    return frozenset(_unchanging(events, {operation.seq: operation for operation in operations}))


def _unchanging(events: Sequence[Event], operations: dict[int, Operation]) -> Iterator[int]:
    same: set[frozenset[int]] = set()
    for event in events:
        operation = operations.get(event.seq)
        if isinstance(event, (Opaque, Interlude)) or (operation is not None and not operation.resolved):
            same.clear()
        elif operation is not None:
            copied = _copied(operation)
            if copied in same:
                yield event.seq
                continue
            for step in operation.steps:
                same -= {pair for pair in same if step.dest.memory in pair}
            if copied is not None:
                same.add(copied)


def _copied(operation: Operation) -> frozenset[int] | None:
    """Source and destination of an operation that copies the whole of one array to the whole of another."""
    if len(operation.steps) != 1 or not operation.steps[0].covers:
        return None
    step = operation.steps[0]
    source = _source(step)
    return None if source is None or source == step.dest.memory else frozenset((source, step.dest.memory))


def _source(step: Step) -> int | None:
    event = step.event
    array = None
    if isinstance(event, Copy):
        array = event.source
    elif isinstance(event, Launch) and step.store is not None and step.store.copied:
        array = next((binding.array for binding in event.bindings if binding.path == step.store.copied), None)
    return array.memory if array is not None and array.extent == Extent() and not array.gradient else None

"""Arguments of recorded launches that the backward pass finds changed: the tape keeps lists and structs by reference.

The adjoint of such a launch is not that of what ran: gradient goes to the array that stands in the place now, it is
taken from the wrong output, or the adjoint reads a number that the forward pass never saw.
"""

from __future__ import annotations

import dataclasses
import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence

from warplint.dataclass import dataclass
from warplint.kernels.summary import KernelSummary
from warplint.trace.events import Binding, Launch, Rebound, Slot, Trace
from warplint.trace.flow.operations import NeededRead, Operation, Step, SummaryOf
from warplint.trace.flow.overwrites import is_needed
from warplint.trace.flow.reachability import Reach
from warplint.trace.flow.recordings import Recording

SINGLE_PRECISION = 1e-6
"""Numbers that differ by less are one in single precision."""


@dataclass(frozen=True)
class ChangedArgument:
    """``launch`` was given ``before`` for a parameter, and its adjoint finds ``after`` (None: nobody knows what).

    ``change`` is the first statement that put something else in its place. ``established``: the adjoint is wrong
    by what is known of the gradient's ways.
    """

    recording: Recording
    launch: Launch
    before: Binding
    after: Binding | None
    change: Rebound
    established: bool


@dataclass(frozen=True)
class Changes:
    """The changes of held objects by place, in time order."""

    by_slot: Mapping[Slot, tuple[Rebound, ...]]

    def between(self, slots: Sequence[Slot], start: int, stop: int) -> list[Rebound]:
        """The changes of any of some places with ``start < seq < stop``, in time order."""
        found: list[Rebound] = []
        for slot in slots:
            changes = self.by_slot.get(slot, ())
            first = bisect_right(changes, start, key=lambda change: change.seq)
            found.extend(change for change in changes[first:] if change.seq < stop)
        return sorted(found, key=lambda change: change.seq)


def changes_of(trace: Trace) -> Changes:
    """Sort a trace's changes by the place that they change."""
    found: dict[Slot, list[Rebound]] = {}
    for event in trace.events:
        if isinstance(event, Rebound):
            found.setdefault(event.slot, []).append(event)
    return Changes({slot: tuple(changes) for slot, changes in found.items()})


@dataclass(frozen=True)
class Known:
    """What is known of a recording: the ways of its gradient, the operations, the kernels' summaries."""

    established: Reach
    possible: Reach
    operations: Mapping[int, Operation]
    summary_of: SummaryOf


def changed_arguments(recording: Recording, changes: Changes, known: Known) -> Iterator[ChangedArgument]:
    """The changed arguments of one recording that matter to its gradient."""
    if not changes.by_slot:
        return
    steps: dict[int, list[tuple[int, Step]]] = {}
    for position, step in recording.window.on_tape():
        steps.setdefault(step.seq, []).append((position, step))
    for seq, its in steps.items():
        launch = its[0][1].event
        if not isinstance(launch, Launch) or recording.is_old(seq):
            continue
        for binding in launch.bindings:
            found = _changed(launch, binding, changes, recording.backward.seq)
            if found is None:
                continue
            change, after = found
            asked = _Question(launch, binding, its, known)
            if asked.matters(known.possible):
                certain = after is not None and asked.matters(known.established)
                yield ChangedArgument(recording, launch, binding, after, change, certain)


def _changed(launch: Launch, binding: Binding, changes: Changes, stop: int) -> tuple[Rebound, Binding | None] | None:
    """The first statement that changed an argument for good before event ``stop``, and what is in its place then."""
    chain = list(binding.held)
    now: Binding | None = binding
    first: Rebound | None = None
    for change in changes.between(chain, launch.seq, stop):
        if change.slot not in chain:
            continue
        below = len(chain) - 1 - chain.index(change.slot)
        suffix = "".join(f".{part}" for part in binding.path.split(".")[-below:]) if below else ""
        now = next((value for value in change.values if value.path == suffix), None)
        del chain[chain.index(change.slot) + 1 :]
        first = (first or change) if _differs(binding, now) is not False else None
    if first is None or _differs(binding, now) is None:
        return None if first is None else (first, None)
    return first, now


def _differs(before: Binding, after: Binding | None) -> bool | None:
    """Whether another value stands there; None where it cannot be told."""
    if after is None:
        return None
    if before.array is not None and after.array is not None:
        one, other = before.array, after.array
        return one.memory != other.memory or (one.extent != other.extent and one.extent.known and other.extent.known)
    if before.array is not None or after.array is not None:
        return None
    if before.value is None or after.value is None:
        return None
    return not _are_equal(before.value, after.value)


def _are_equal(one: object, other: object) -> bool:
    """Equal as a kernel sees them: Python's double and the float that it was passed as are one number."""
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=SINGLE_PRECISION)
    return one == other


@dataclass(frozen=True)
class _Question:
    """Whether the adjoint of a launch goes through one of its arguments."""

    launch: Launch
    binding: Binding
    steps: Sequence[tuple[int, Step]]
    known: Known

    def matters(self, reach: Reach) -> bool:
        """Gradient is taken from it, given to it, or its value is read."""
        if self.binding.array is None:
            return any(is_needed(read, position, reach) for position, read in self._scalar_reads())
        for position, step in self.steps:
            if not reach.matters[position] or step.store is None:
                continue
            path, memory = self.binding.path, self.binding.array.memory
            if step.store.path == path and reach.is_active(position):
                return True
            if path in step.store.active and memory in reach.carried[position]:
                return True
            if any(read.need.read.path == path and is_needed(read, position, reach) for read in step.needs):
                return True
        return False

    def _scalar_reads(self) -> Iterator[tuple[int, NeededRead]]:
        """The needs of the scalar, from a summary in which it is followed like memory."""
        summary = self._following()
        if summary is None:
            return
        arrays = {b.path: b.array.memory for b in self.launch.bindings if b.array is not None and not b.array.gradient}
        followed = {(store.order, store.path): store for store in summary.stores}
        for position, step in self.steps:
            store = followed.get((step.order, step.store.path)) if step.store is not None else None
            for need in store.needs if store is not None else ():
                if need.read.path == self.binding.path:
                    given = frozenset(arrays[path] for path in need.given if path in arrays)
                    yield position, NeededRead(step.dest, need, given)

    def _following(self) -> KernelSummary | None:
        kernel = self.launch.kernel
        if kernel is None:
            return None
        return self.known.summary_of(dataclasses.replace(kernel, followed=frozenset({self.binding.path})))

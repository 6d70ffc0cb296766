"""What gradients hold when the program comes to use them: what an earlier backward left, or nothing at all.

A backward *adds* to the gradients of leaves and accumulators, and leaves nothing in those of arrays that are stored
(from Warp 1.13 on: the store's adjoint consumes it). What it leaves stands until something clears it. Each gradient is
followed through the trace by what was last done to it; an event that may do something unseen ends what is known.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence

from warplint.dataclass import dataclass
from warplint.finding import Source
from warplint.kernels.summary import StoreKind
from warplint.trace.events import (
    Array,
    Backward,
    Event,
    GradRead,
    GradWrite,
    Interlude,
    Launch,
    Memory,
    Opaque,
    OptimiserStep,
    Stack,
    TapeReset,
    TapeZeroed,
    Trace,
)
from warplint.trace.flow.operations import Operation, Step
from warplint.trace.flow.overwrites import Writes
from warplint.trace.flow.reachability import CONSUMING_STORES, Reach
from warplint.trace.flow.recordings import GradientLife, Recording

LEAVES_SIGHT = frozenset({"escape", "dlpack", "array_interface", "cuda_array_interface"})
"""Reads that hand the gradient's memory to code that the trace does not follow: it may clear it."""
SEEN_ONLY = frozenset({"assert", "print"})


@dataclass(frozen=True)
class LeftOver:
    """A backward that adds to what an earlier one left, where the sum is used as if it were new.

    ``leaves`` are memories whose own gradient was left, ``accumulators`` those whose leftover flows on to ``reached``
    leaves. ``use``: the event that used the leaf's gradient in between. ``is_twice``: one recording walked twice.
    """

    recording: Recording
    previous: Backward
    leaves: frozenset[int]
    accumulators: frozenset[int]
    reached: frozenset[int]
    use: int | None
    is_twice: bool


class Staleness(enum.Enum):
    """Why a gradient holds nothing of what the program takes it for."""

    CLEARED = "cleared"
    CONSUMED = "consumed"
    NOT_YET = "not yet"
    CLEARED_UNDER_VIEW = "cleared under a view"


@dataclass(frozen=True)
class StaleRead:
    """A gradient that is used where it holds nothing: ``cause`` is the clearing, or the backward before or after it."""

    read: GradRead
    why: Staleness
    cause: Event
    recording: Recording
    store: Step | None = None
    used_at: Event | None = None


@dataclass(frozen=True)
class Walks:
    """What the simulation needs to know of each backward: by its event number."""

    recordings: Mapping[int, Recording]
    left: Mapping[int, frozenset[int]]
    """Memories that surely hold a gradient afterwards, whatever stores are not known to cover."""
    perhaps_left: Mapping[int, frozenset[int]]
    established: Mapping[int, Reach]
    poured: Mapping[int, Reach]
    """As established, with every accumulator of the tape among the seeds."""


@dataclass
class _Gradient:
    """What is known of one gradient: the last backward that reached it, and what happened since."""

    touched: Backward | None = None
    is_left: bool = False
    consumed_by: Step | None = None
    cleared: Event | None = None
    used: int | None = None
    used_in_earnest: int | None = None


def left_overs(
    trace: Trace,
    walks: Walks,
    operations: Mapping[int, Operation],
    writes: Writes,
    life: GradientLife,
) -> Iterator[LeftOver]:
    """The backwards whose gradients hold something of before; on a cut trace those that no later event excuses."""
    judge = _LeftOvers(walks, writes, life, trace.events, trace.cut)
    for event, known in _followed(trace, walks, operations):
        if isinstance(event, Backward) and event.seq in walks.recordings:
            found = judge.of(walks.recordings[event.seq], known)
            if found is not None:
                yield found


@dataclass(frozen=True)
class _LeftOvers:
    walks: Walks
    writes: Writes
    life: GradientLife
    events: Sequence[Event]
    is_cut: bool
    """More happened than the trace holds: that a gradient is never cleared cannot be told."""

    def of(self, recording: Recording, known: Mapping[int, _Gradient]) -> LeftOver | None:
        if recording.is_reentered:  # the re-entry of the tape is the fault then
            return None
        seq = recording.backward.seq
        dirty = {
            memory: gradient
            for memory, gradient in known.items()
            if gradient.is_left and gradient.cleared is None and memory not in recording.seeds
        }
        written = {step.dest.memory for _, step in recording.window.on_tape()}
        leaves = {
            memory
            for memory in self.walks.left[seq] & recording.wanted & dirty.keys() - written
            if self._is_misused(memory, dirty[memory], recording)
        }
        accumulators = {memory: reached for memory in dirty if (reached := self._flow_on(memory, recording))}
        if not leaves and not accumulators:
            return None
        first = min(leaves | accumulators.keys())
        previous = dirty[first].touched
        assert previous is not None
        return LeftOver(
            recording,
            previous,
            frozenset(leaves),
            frozenset(accumulators),
            frozenset().union(*accumulators.values()),
            next((use for memory in sorted(leaves) if (use := dirty[memory].used_in_earnest) is not None), None),
            recording.previous is previous,
        )

    def _is_misused(self, memory: int, gradient: _Gradient, recording: Recording) -> bool:
        """The sum of two backwards is used as the second one's: no gradient accumulation over a batch."""
        stop = recording.backward.seq
        if not self._is_used_after(memory, stop) or gradient.touched is None:
            return False
        if self._is_same_again(gradient.touched, recording):
            return True
        used = gradient.used if self._is_only_shown(memory) else gradient.used_in_earnest
        if used is None:
            return False
        return self._is_updated(memory, used, stop) or not (self.is_cut or self.life.cleared.get(memory))

    def _is_same_again(self, earlier: Backward, recording: Recording) -> bool:
        """The very recording was walked before, from the same seeds."""
        if recording.previous is None or recording.previous.seq != earlier.seq:
            return False
        one, other = _seeds(earlier), _seeds(recording.backward)
        return bool(one) and one == other

    def _is_used_after(self, memory: int, seq: int) -> bool:
        reads = [e for e in self.events if isinstance(e, GradRead) and e.array.memory == memory]
        asserted = {e.seq for e in reads if e.how == "assert"}
        return any(used > seq for used in self.life.used.get(memory, ()) if used not in asserted)

    def _is_only_shown(self, memory: int) -> bool:
        """Whether the program does nothing with the gradient but print it."""
        shown = {
            e.seq for e in self.events if isinstance(e, GradRead) and e.array.memory == memory and e.how in SEEN_ONLY
        }
        return all(seq in shown for seq in self.life.used.get(memory, ()))

    def _is_updated(self, memory: int, start: int, stop: int) -> bool:
        """Whether the parameter was stepped between its gradient's use and the next backward."""
        if any(True for _ in self.writes.between(memory, start - 1, stop)):
            return True
        return any(
            isinstance(event, OptimiserStep)
            and start <= event.seq < stop
            and any(array.memory == memory for array in event.params)
            for event in self.events
        )

    def _flow_on(self, memory: int, recording: Recording) -> frozenset[int]:
        """The used leaves that the leftover of an accumulator flows on to, with the next backward."""
        stores, seq = recording.window.stored.get(memory, ()), recording.backward.seq
        if any(step.kind is not StoreKind.ACCUMULATE for _, step in stores):
            return frozenset()
        if not any(self.walks.poured[seq].flows(position) for position, _ in stores):
            return frozenset()
        return frozenset(leaf for leaf in recording.wanted - {memory} if self._is_used_after(leaf, seq))


def stale_reads(
    trace: Trace, walks: Walks, operations: Mapping[int, Operation], memories: Mapping[int, Memory]
) -> Iterator[StaleRead]:
    """The uses of gradients that hold nothing; on a cut trace too, since they rest on what was seen."""
    views: dict[tuple[int, Stack], GradRead] = {}
    for event, known in _followed(trace, walks, operations):
        if not isinstance(event, GradRead) or event.how == "assert" or event.how in LEAVES_SIGHT:
            continue
        gradient = known.get(event.array.memory, _Gradient())
        if event.taken:
            taken = views.get((event.array.memory, event.taken))
            if taken is not None and (under := _cleared_under(taken, event, gradient, walks)) is not None:
                yield under
            continue
        views[event.array.memory, event.stack] = event
        found = _stale(event, gradient, walks, trace.warp, memories)
        if found is not None:
            yield found


def unready_reads(trace: Trace, walks: Walks, operations: Mapping[int, Operation]) -> Iterator[StaleRead]:
    """Gradients that are used before the only backward that reaches them, and never after it."""
    if trace.cut:
        return
    first: dict[int, Backward] = {}
    for seq, reach in walks.established.items():
        recording = walks.recordings[seq]
        for position, step in recording.window.on_tape():
            if reach.matters[position]:
                for memory in {step.dest.memory} | (walks.left[seq] & recording.wanted):
                    known = first.get(memory)
                    if known is None or seq < known.seq:
                        first[memory] = recording.backward
    reads: dict[int, list[GradRead]] = {}
    disturbed: set[int] = set()
    late: set[int] = set()
    for event in trace.events:
        if isinstance(event, GradRead):
            memory, backward = event.array.memory, first.get(event.array.memory)
            if event.how in LEAVES_SIGHT or (event.how == "numpy" and trace.source is not Source.STATIC):
                disturbed.add(memory)  # nobody knows what is done with it later: on the CPU it is a view
            elif backward is not None and event.how != "assert":
                late.add(memory) if event.seq > backward.seq else reads.setdefault(memory, []).append(event)
        elif isinstance(event, GradWrite):
            disturbed.add(event.array.memory)
        elif isinstance(event, Opaque):
            disturbed |= {array.memory for array in event.arrays} or set(first)
        elif isinstance(event, Launch):
            disturbed |= _possibly_written(event, operations.get(event.seq))
            if (operation := operations.get(event.seq)) is not None:
                late |= {a.memory for a in operation.gradients_read if event.seq > _seq(first.get(a.memory))}
    for memory, found in reads.items():
        backward = first[memory]
        if memory not in disturbed | late and memory in walks.recordings[backward.seq].wanted:
            yield StaleRead(found[0], Staleness.NOT_YET, backward, walks.recordings[backward.seq])


def _seq(event: Event | None) -> int:
    return -1 if event is None else event.seq


def _possibly_written(event: Launch, operation: Operation | None) -> set[int]:
    """The gradients that a launch writes, or may write where its kernel could not be read."""
    if event.adjoint:
        return {binding.array.memory for binding in event.bindings if binding.array is not None}
    written = {array.memory for array in operation.gradients_written} if operation is not None else set()
    if operation is None or not operation.resolved:
        written |= {b.array.memory for b in event.bindings if b.array is not None and b.array.gradient}
    return written


def _cleared_under(taken: GradRead, use: GradRead, gradient: _Gradient, walks: Walks) -> StaleRead | None:
    """A numpy view taken in time, whose memory is cleared before the view is used."""
    touched, cleared = gradient.touched, gradient.cleared
    if cleared is None or touched is None or not touched.seq < taken.seq < cleared.seq < use.seq:
        return None
    recording = walks.recordings.get(touched.seq)
    if recording is None or taken.array.memory in recording.seeds:
        return None
    return StaleRead(taken, Staleness.CLEARED_UNDER_VIEW, cleared, recording, used_at=use)


def _stale(
    read: GradRead,
    gradient: _Gradient,
    walks: Walks,
    warp: tuple[int, int],
    memories: Mapping[int, Memory],
) -> StaleRead | None:
    if gradient.touched is None:
        return None
    recording = walks.recordings.get(gradient.touched.seq)
    if recording is None or read.array.memory in recording.seeds:
        return None
    if gradient.cleared is not None:
        return None if gradient.used is not None else StaleRead(read, Staleness.CLEARED, gradient.cleared, recording)
    memory = memories.get(read.array.memory)
    retained = memory is None or memory.retain_grad
    if gradient.consumed_by is not None and not retained and warp >= CONSUMING_STORES:
        return StaleRead(read, Staleness.CONSUMED, gradient.touched, recording, gradient.consumed_by)
    return None


# ------------------------------------------------------------------------------------------------------------------
# The simulation


def _followed(
    trace: Trace, walks: Walks, operations: Mapping[int, Operation]
) -> Iterator[tuple[Event, Mapping[int, _Gradient]]]:
    """Each event with what is known of all gradients just before it."""
    known: dict[int, _Gradient] = {}
    of_tape: dict[int, set[int]] = {}
    for event in trace.events:
        yield event, known
        if isinstance(event, Backward):
            _walk(event, walks, known, of_tape)
        elif isinstance(event, (TapeZeroed, TapeReset)):
            for memory in of_tape.get(event.tape, ()):
                _clear(known, memory, event)
        elif isinstance(event, GradWrite):
            if event.clears:
                _clear(known, event.array.memory, event)
            else:
                known.pop(event.array.memory, None)
        elif isinstance(event, GradRead):
            _use(event, known)
        elif isinstance(event, Interlude):
            known.clear()
        elif isinstance(event, Opaque):
            for memory in [array.memory for array in event.arrays] if event.arrays else list(known):
                known.pop(memory, None)
        elif isinstance(event, Launch):
            _launch(event, operations.get(event.seq), known)
        elif (operation := operations.get(event.seq)) is not None:
            for array in operation.gradients_written:
                known.pop(array.memory, None)


def _walk(event: Backward, walks: Walks, known: dict[int, _Gradient], of_tape: dict[int, set[int]]) -> None:
    recording = walks.recordings.get(event.seq)
    if recording is None or not event.complete:
        known.clear()
        return
    established = walks.established[event.seq]
    left, perhaps = walks.left[event.seq], walks.perhaps_left[event.seq]
    stores = {
        step.dest.memory: step
        for position, step in recording.window.on_tape()
        if established.matters[position] and step.kind is StoreKind.STORE and step.covers
    }
    touched = {step.dest.memory for position, step in recording.window.on_tape() if established.matters[position]}
    for memory in touched | left:
        consumed_by = stores.get(memory) if memory not in perhaps else None
        known[memory] = _Gradient(event, is_left=memory in left, consumed_by=consumed_by)
    tape = of_tape.setdefault(event.tape, set())
    for _, step in recording.window.on_tape():
        tape.add(step.dest.memory)
        tape.update(array.memory for array in (*step.active, *step.depends))
    tape |= recording.seeds | left


def _clear(known: dict[int, _Gradient], memory: int, event: Event) -> None:
    gradient = known.get(memory)
    if gradient is not None and gradient.cleared is None:
        gradient.cleared, gradient.is_left = event, False


def _use(event: GradRead, known: dict[int, _Gradient]) -> None:
    gradient = known.get(event.array.memory)
    if event.how in LEAVES_SIGHT:
        known.pop(event.array.memory, None)
    elif gradient is not None and event.how != "assert":
        gradient.used = event.seq
        if event.how not in SEEN_ONLY:
            gradient.used_in_earnest = event.seq


def _launch(event: Launch, operation: Operation | None, known: dict[int, _Gradient]) -> None:
    """What a launch does to the gradients that it was given; an adjoint launch adds to any."""
    for memory in _possibly_written(event, operation):
        known.pop(memory, None)
    if event.adjoint:
        return
    for array in operation.gradients_read if operation is not None else ():
        gradient = known.get(array.memory)
        if gradient is not None:
            gradient.used = gradient.used_in_earnest = event.seq


def _seeds(backward: Backward) -> frozenset[int]:
    arrays: list[Array] = [*backward.seeds, *([backward.loss] if backward.loss is not None else [])]
    return frozenset(array.memory for array in arrays)

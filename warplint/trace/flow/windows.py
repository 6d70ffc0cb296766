"""State that is carried from one tape into the next while the gradient covers one window only.

A backward reaches back to the beginning of its tape. Where a tape starts from what an earlier tape computed, and the
earlier tape is not walked after it (backwards through time, with the gradient that arrived at the carried state), the
influence of a leaf through the earlier window is lost: the gradient is that of a truncated horizon.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from warplint.dataclass import dataclass
from warplint.kernels.summary import StoreKind
from warplint.trace.events import Array, Event, GradRead, HostWrite, Memory, OptimiserStep
from warplint.trace.flow.operations import Step, has_gradient, recorded_on
from warplint.trace.flow.overwrites import Writes
from warplint.trace.flow.reachability import Reach, Regard, Rules, reach
from warplint.trace.flow.recordings import GradientLife, Period, Recording, Window


@dataclass(frozen=True)
class CarriedState:
    """An array that a recording reads before it writes it, made by an earlier tape that is not differentiated after it.

    ``earlier`` is that tape's period, ``writer`` the step of it that made the value, ``reader`` the step that goes on
    from it, ``leaves`` the memories whose influence through the earlier window is lost. ``by_hand``: the value came by
    way of the host.
    """

    recording: Recording
    array: Array
    earlier: Period
    writer: Step
    reader: Step
    leaves: frozenset[int]
    by_hand: bool = False


@dataclass(frozen=True)
class Tapes:
    """What is asked of a whole trace.

    ``opaque`` are the events that explain nothing, ``updates`` those that may write a parameter unseen: an optimiser's
    step, a gradient handed to code outside; ``shown`` are the gradients that are only printed or asserted.
    """

    periods: Sequence[Period]
    writes: Writes
    life: GradientLife
    memories: Mapping[int, Memory]
    opaque: tuple[Event, ...]
    updates: tuple[Event, ...]
    shown: frozenset[int]
    warp: tuple[int, int]

    def period_of(self, tape: int, seq: int) -> Period | None:
        """The period of a tape in which an event lies."""
        return next((p for p in self.periods if p.tape == tape and p.start <= seq < p.stop), None)


def carried_states(recording: Recording, established: Reach, tapes: Tapes) -> Iterator[CarriedState]:
    """The state that enters a recording from an earlier tape, each memory once."""
    written: set[int] = set()
    seen: set[int] = set()
    for position, step in recording.window.on_tape():
        for array in step.active:
            first = array.memory not in written and array.memory not in seen
            if first and established.matters[position] and has_gradient(array, tapes.memories) is True:
                seen.add(array.memory)
                yield from _carried(recording, step, array, tapes)
        if step.kind is StoreKind.STORE:
            written.add(step.dest.memory)
    yield from _accumulated(recording, established, tapes)


def _accumulated(recording: Recording, established: Reach, tapes: Tapes) -> Iterator[CarriedState]:
    """Sums that several tapes add to, of which the last is differentiated alone."""
    seen: set[int] = set()
    for position, step in recording.window.on_tape():
        memory = step.dest.memory
        if memory in seen:
            continue
        seen.add(memory)
        if step.kind is StoreKind.ACCUMULATE and established.matters[position]:
            for found in _carried(recording, step, step.dest, tapes):
                if not found.earlier.backwards:
                    yield found


def _carried(recording: Recording, reader: Step, array: Array, tapes: Tapes) -> Iterator[CarriedState]:
    for writer, by_hand in _makers(array, reader.seq, recording.period.tape, tapes, frozenset()):
        tape = recorded_on(writer.event)
        earlier = tapes.period_of(tape, writer.seq) if tape is not None else None
        if earlier is None or _is_walked_later(earlier, recording) or _is_interrupted(writer, recording, tapes):
            continue
        lost = frozenset(
            leaf for leaf in _influences(earlier, writer, tapes) if _is_one_gradient(leaf, earlier, recording, tapes)
        )
        if lost:
            yield CarriedState(recording, array, earlier, writer, reader, lost, by_hand)
            return


def _is_one_gradient(leaf: int, earlier: Period, recording: Recording, tapes: Tapes) -> bool:
    """Both windows speak of one value of the leaf, and its gradient is used after the later one's backward.

    A parameter that was updated between the windows starts a new gradient: truncation is then the method's own.
    """
    start, stop = earlier.operations[0].seq, recording.backward.seq
    if any(True for _ in tapes.writes.between(leaf, start, stop)):
        return False
    if any(start < event.seq < stop and _may_update(event, leaf) for event in tapes.updates):
        return False
    if tapes.life.cleared_between(leaf, start, stop) and not _is_taken(leaf, start, stop, tapes):
        return False
    if tapes.life.used_after(leaf, stop):
        return True
    return not any(tapes.life.used.get(memory) for memory in recording.wanted | {leaf})


def _is_taken(leaf: int, start: int, stop: int, tapes: Tapes) -> bool:
    """Whether the gradient is taken away before it is cleared, otherwise than to be shown: to be summed elsewhere."""
    return any(start < seq < stop and seq not in tapes.shown for seq in tapes.life.used.get(leaf, ()))


def _may_update(event: Event, leaf: int) -> bool:
    if isinstance(event, OptimiserStep):
        return not event.params or any(array.memory == leaf for array in event.params)
    return isinstance(event, GradRead) and event.array.memory == leaf


def _makers(array: Array, before: int, tape: int, tapes: Tapes, visited: frozenset[int]) -> Iterator[tuple[Step, bool]]:
    """The recorded steps of other tapes that made what ``array`` holds at event ``before``, also through copies."""
    if array.memory in visited:
        return
    for write in tapes.writes.last_before(array.memory, before):
        if write.dest.extent.overlaps(array.extent) is False:
            continue
        recorder = recorded_on(write.event)
        if recorder is None:
            for source in write.depends:
                by_host = isinstance(write.event, HostWrite)
                for maker, by_hand in _makers(source, write.seq, tape, tapes, visited | {array.memory}):
                    yield maker, by_hand or by_host
        elif recorder != tape:
            yield write, False
        if write.covers or recorder == tape:
            return


def _is_walked_later(earlier: Period, recording: Recording) -> bool:
    """The earlier tape is differentiated after this one: backwards through time, as it should be."""
    return any(backward.seq > recording.backward.seq for backward in earlier.backwards)


def _is_interrupted(writer: Step, recording: Recording, tapes: Tapes) -> bool:
    return any(writer.seq < event.seq < recording.backward.seq for event in tapes.opaque)


def _influences(earlier: Period, writer: Step, tapes: Tapes) -> frozenset[int]:
    """The leaves of the earlier tape from which gradient would flow into what ``writer`` stored."""
    whole = earlier.window
    position = next(index for index, step in enumerate(whole.steps) if step is writer)
    window = Window(whole.tape, whole.steps[: position + 1], whole.recorded)
    rules = Rules(Regard.ESTABLISHED, window, tapes.memories, tapes.warp)
    matters = reach(rules, frozenset(), frozenset({writer.dest.memory})).matters
    written: set[int] = set()
    leaves: set[int] = set()
    for step, counts in zip(window.steps, matters, strict=True):
        if counts:
            leaves |= {a.memory for a in step.active if a.memory not in written and rules.holds_gradient(a)}
        written.add(step.dest.memory)
    return frozenset(leaves)

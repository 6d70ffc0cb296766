"""Work that a tape holds twice: the same launch recorded again, and tapes that go on after their backward.

Two launches are *the same* if kernel and arguments are equal and nothing that the kernel reads was written in between:
the second one computes what is there already. From Warp 1.13 on a repeated plain store is inert, since the adjoint of
the second store consumes the gradient; an accumulator that was cleared in between, by something that the tape does not
hold, gets its gradient twice (measured).
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence

from warplint.dataclass import dataclass
from warplint.kernels.summary import StoreKind
from warplint.trace.events import Array, Copy, Launch, Memory, TapeEntered
from warplint.trace.flow.operations import Operation, Step, recorded_on
from warplint.trace.flow.overwrites import Writes
from warplint.trace.flow.reachability import CONSUMING_STORES, Reach
from warplint.trace.flow.recordings import GradientLife, Recording


class Harm(enum.Enum):
    """Why a repeated operation's gradient is counted twice; NONE: the work is wasted, the gradient right."""

    NONE = "none"
    CLEARED = "cleared"
    """An accumulator was cleared in between by something that the tape does not hold."""
    RETAINED = "retained"
    """``retain_grad`` keeps the destination's gradient alive through the second store's adjoint."""
    NOT_CONSUMED = "not consumed"
    """This Warp's stores do not consume the destination's gradient (before 1.13)."""
    SEED_LEFT = "seed left"
    """The old loss still has its gradient, so that the old operations are seeded again."""
    REWRITTEN = "rewritten"
    """What the old operations read or stored was written anew in between."""


@dataclass(frozen=True)
class Repeat:
    """The same launch twice on one tape. ``harmed`` is the memory whose gradient comes out double, if any."""

    first: Launch
    second: Launch
    recording: Recording
    harm: Harm
    harmed: Array | None = None
    clearing: Step | None = None


@dataclass(frozen=True)
class Reentry:
    """A tape that recorded on after a backward, without ``reset()``: the old operations are differentiated again.

    ``entry`` is the ``with`` of the tape in which the new operations were recorded, if it lies after the backward.
    """

    recording: Recording
    entry: TapeEntered | None
    old: Step
    new: Launch | Copy
    harm: Harm
    clearing: Step | None = None


def same_launches(operations: Sequence[Operation], writes: Writes) -> dict[int, int]:
    """For each launch that repeats an earlier one: the event number of the latest such launch."""
    last: dict[object, Operation] = {}
    found: dict[int, int] = {}
    for operation in operations:
        signature = _signature(operation)
        if signature is None:
            continue
        earlier = last.get(signature)
        if earlier is not None and not _is_fed_anew(operation, earlier.seq, writes, found):
            found[operation.seq] = earlier.seq
        last[signature] = operation
    return found


def _signature(operation: Operation) -> object | None:
    """What makes two launches the same; None where an argument is not known."""
    event = operation.event
    if not isinstance(event, Launch) or event.kernel is None or not operation.resolved:
        return None
    arguments = []
    for binding in event.bindings:
        if binding.array is None and binding.value is None:
            return None
        array = binding.array
        place = (array.memory, array.extent, array.gradient) if array is not None else _value_key(binding.value)
        arguments.append((binding.path, place))
    return (event.kernel.key, tuple(arguments), event.dim)


def _value_key(value: object) -> tuple[str, str]:
    return (type(value).__name__, repr(value))


def _is_fed_anew(operation: Operation, since: int, writes: Writes, repeats: Mapping[int, int]) -> bool:
    """Whether what the launch reads, or the result that it stored, was written after event ``since``.

    A launch that reads what it writes is fed anew by its own earlier self; a store that is repeated feeds nothing new.
    """
    if any(_overlap(array, step.dest) for array in operation.reads for step in operation.steps):
        return True
    stored = (step.dest for step in operation.steps if step.kind is StoreKind.STORE)
    return any(
        not (write.seq in repeats and write.kind is StoreKind.STORE) and _overlap(write.dest, array)
        for array in (*operation.reads, *stored)
        for write in writes.between(array.memory, since, operation.seq)
    )


def _overlap(one: Array, other: Array) -> bool:
    """Whether two handles may mean the same memory."""
    return one.memory == other.memory and one.extent.overlaps(other.extent) is not False


def repeats_of(
    recording: Recording,
    same: Mapping[int, int],
    reach: Reach,
    writes: Writes,
    memories: Mapping[int, Memory],
    warp: tuple[int, int],
) -> Iterator[Repeat]:
    """The same launches of one recording, and whether the gradient doubles."""
    positions: dict[int, list[int]] = {}
    for position, step in recording.window.on_tape():
        positions.setdefault(step.seq, []).append(position)
    for second, first in same.items():
        if second not in positions or first not in positions:
            continue
        launch, again = writes.operations[first].event, writes.operations[second].event
        if not isinstance(launch, Launch) or not isinstance(again, Launch) or _splits(recording, first, second):
            continue
        pairs = list(zip(positions[first], positions[second], strict=True))
        judged = [_harm(recording, old, new, reach, writes, memories, warp) for old, new in pairs]
        harmful = next((found for found in judged if found is not None and found[0] is not Harm.NONE), None)
        if harmful is not None:
            harm, step, clearing = harmful
            yield Repeat(launch, again, recording, harm, step.dest, clearing)
        elif any(found is not None for found in judged):
            yield Repeat(launch, again, recording, Harm.NONE)


def _splits(recording: Recording, first: int, second: int) -> bool:
    """An earlier backward lies between the two: that is a re-entered tape, and one finding is enough."""
    return any(first < backward.seq < second for backward in recording.period.backwards)


def _harm(
    recording: Recording,
    old: int,
    new: int,
    reach: Reach,
    writes: Writes,
    memories: Mapping[int, Memory],
    warp: tuple[int, int],
) -> tuple[Harm, Step, Step | None] | None:
    """What the repetition does to one destination; None: no work is repeated (the sum really is taken twice)."""
    step, again = recording.window.steps[old], recording.window.steps[new]
    if step.kind is StoreKind.STORE:
        memory = memories.get(step.dest.memory)
        if reach.matters[new] and reach.carried[old]:
            if memory is not None and memory.retain_grad:
                return Harm.RETAINED, step, None
            if warp < CONSUMING_STORES:
                return Harm.NOT_CONSUMED, step, None
        return Harm.NONE, step, None
    clearing = _clearing(step, again.seq, writes)
    if clearing is None:
        return None
    harmful = recorded_on(clearing.event) is None and reach.flows(old)
    return (Harm.CLEARED if harmful else Harm.NONE), step, clearing


def _clearing(step: Step, before: int, writes: Writes) -> Step | None:
    """The write that threw away what ``step`` accumulated, before event ``before``."""
    for write in writes.between(step.dest.memory, step.seq, before):
        if write.kind is StoreKind.STORE and write.dest.extent.overlaps(step.dest.extent) is True and not write.depends:
            return write
    return None


def reentry_of(recording: Recording, reach: Reach, writes: Writes, left: frozenset[int]) -> Reentry | None:
    """Whether the recording's tape went on after an earlier backward, and what that does.

    ``left`` are the old seeds that are still there (:func:`left_seeds`); ``reach`` must have been taken with them among
    the roots, and with every plain store consuming, so that what it finds live is live beyond doubt.
    """
    previous = recording.previous
    if previous is None or not recording.is_reentered:
        return None
    old = [position for position, step in recording.window.on_tape() if step.seq < previous.seq]
    flowing = [position for position in old if reach.flows(position)]
    if not old:
        return None
    found = [_reentry_harm(recording, position, reach, writes, left) for position in flowing]
    harm, position, clearing = min(found, key=lambda judged: _GRAVITY[judged[0]], default=(Harm.NONE, old[0], None))
    if flowing and harm is Harm.NONE:
        return None
    entries = [entry for entry in recording.period.entries if previous.seq < entry.seq < recording.backward.seq]
    new = next(
        event
        for operation in recording.period.operations
        if operation.seq > previous.seq and isinstance(event := operation.event, (Launch, Copy))
    )
    return Reentry(recording, entries[0] if entries else None, recording.window.steps[position], new, harm, clearing)


_GRAVITY = {Harm.CLEARED: 0, Harm.REWRITTEN: 1, Harm.SEED_LEFT: 2, Harm.NONE: 3}
"""Which reason is told where several hold: the most tangible first."""


def left_seeds(recording: Recording, life: GradientLife) -> frozenset[int]:
    """The seeds of the earlier backward that are still there: nothing cleared them, and no store consumed them."""
    previous = recording.previous
    if previous is None:
        return frozenset()
    consumed = {
        step.dest.memory
        for _, step in recording.window.on_tape()
        if step.seq < previous.seq and step.kind is StoreKind.STORE
    }
    given = {array.memory for array in (previous.loss, *previous.seeds) if array is not None}
    return frozenset(
        memory for memory in given - consumed if not life.cleared_between(memory, previous.seq, recording.backward.seq)
    )


def _reentry_harm(
    recording: Recording, position: int, reach: Reach, writes: Writes, left: frozenset[int]
) -> tuple[Harm, int, Step | None]:
    """Why it is wrong that this old step is walked again; NONE: the new operations build on it, so it must be."""
    assert recording.previous is not None
    step = recording.window.steps[position]
    if step.kind is not StoreKind.STORE:
        clearing = _clearing(step, recording.backward.seq, writes)
        if clearing is not None and recorded_on(clearing.event) is None:
            return Harm.CLEARED, position, clearing
    for source in reach.carried[position]:
        for write in writes.between(source, recording.previous.seq, recording.backward.seq):
            if recorded_on(write.event) is None:
                return Harm.REWRITTEN, position, write
    return (Harm.SEED_LEFT if left else Harm.NONE), position, None

"""What each ``backward`` differentiates: the recording of its tape, its seeds and the leaves whose gradient is wanted.

A tape holds what was recorded since it was made or reset; ``backward`` walks all of it, also what an earlier
``backward`` has walked before. What happens beside the recording, while it lasts, matters too: a ``zero_()`` inside the
``with`` block is on no tape, yet it destroys what the tape's adjoints read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from itertools import pairwise
from operator import attrgetter

from warplint.dataclass import dataclass
from warplint.kernels.summary import Cut, StoreKind
from warplint.trace.events import (
    Backward,
    Event,
    GradRead,
    GradWrite,
    Memory,
    TapeCreated,
    TapeEntered,
    TapeReset,
    TapeZeroed,
    Trace,
)
from warplint.trace.flow.operations import Operation, Step, has_gradient, recorded_on


@dataclass(frozen=True)
class Window:
    """A stretch of time seen from one tape: the steps of *all* operations in it, in order.

    Those whose event number is in ``recorded`` are on the tape, the others happened beside it.
    """

    tape: int
    steps: tuple[Step, ...]
    recorded: frozenset[int]

    def on_tape(self) -> Sequence[tuple[int, Step]]:
        """The recorded steps with their positions in the window."""
        return self._on_tape

    @cached_property
    def _on_tape(self) -> Sequence[tuple[int, Step]]:
        return [(position, step) for position, step in enumerate(self.steps) if step.seq in self.recorded]

    @cached_property
    def severs(self) -> frozenset[Cut]:
        """Why gradient stops inside its operations."""
        return frozenset([why for step in self.steps for _, why in step.severed])

    @cached_property
    def stored(self) -> Mapping[int, Sequence[tuple[int, Step]]]:
        """The same by the memory that they write."""
        found: dict[int, list[tuple[int, Step]]] = {}
        for position, step in self._on_tape:
            found.setdefault(step.dest.memory, []).append((position, step))
        return found


@dataclass(frozen=True)
class Period:
    """One tape from its making, or a reset, up to the next reset: events ``start <= seq < stop``.

    ``opened`` is the event that made the tape, else the first one that entered it; None for a tape that came from
    outside.
    """

    tape: int
    start: int
    stop: int
    opened: Event | None
    operations: tuple[Operation, ...]
    backwards: tuple[Backward, ...]
    entries: tuple[TapeEntered, ...]

    @property
    def window(self) -> Window:
        """What the tape recorded, and nothing beside it."""
        steps = tuple(step for operation in self.operations for step in operation.steps)
        return Window(self.tape, steps, frozenset(step.seq for step in steps))


@dataclass(frozen=True)
class Recording:
    """What one ``backward`` differentiates.

    ``window`` reaches from the first recorded operation to the backward. ``seeds`` are the memories whose gradient was
    set before: the loss, ``grads=``, by hand, or another tape's backward. ``wanted`` are the leaves to which gradient
    is to arrive. ``previous`` is an earlier backward of the same period.
    """

    backward: Backward
    period: Period
    window: Window
    seeds: frozenset[int]
    wanted: frozenset[int]
    previous: Backward | None = None

    @property
    def is_reentered(self) -> bool:
        """The tape went on recording after an earlier backward, so that old operations are walked once more."""
        return self.previous is not None and any(seq > self.previous.seq for seq in self.window.recorded)

    def is_old(self, seq: int) -> bool:
        """Whether an operation was walked by an earlier backward already, on a tape that went on after it."""
        return self.is_reentered and self.previous is not None and seq < self.previous.seq


@dataclass(frozen=True)
class GradientLife:
    """When the program used, set and cleared gradients: event numbers by memory, in time order.

    ``cleared`` holds also what ``tape.zero()`` and ``tape.reset()`` clear, as far as the tape knew the memory.
    """

    used: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    filled: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    cleared: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    def used_after(self, memory: int, seq: int) -> bool:
        """Whether the memory's gradient is used after event ``seq``."""
        return bool(self.used.get(memory)) and self.used[memory][-1] > seq

    def cleared_between(self, memory: int, start: int, stop: int) -> bool:
        """Whether the memory's gradient is cleared between two events."""
        return any(start < seq < stop for seq in self.cleared.get(memory, ()))


def gradient_life(events: Sequence[Event], operations: Sequence[Operation]) -> GradientLife:
    """Collect the uses of gradients and what sets or clears them."""
    used: dict[int, set[int]] = {}
    filled: dict[int, set[int]] = {}
    cleared: dict[int, set[int]] = {}
    known: dict[int, set[int]] = {}
    for operation in operations:
        for array in operation.gradients_read:
            used.setdefault(array.memory, set()).add(operation.seq)
        for array in operation.gradients_written:
            filled.setdefault(array.memory, set()).add(operation.seq)
        tape = recorded_on(operation.event)
        if tape is not None:
            touched = (*operation.reads, *(step.dest for step in operation.steps))
            known.setdefault(tape, set()).update(array.memory for array in touched)
    for event in events:
        if isinstance(event, GradRead):
            used.setdefault(event.array.memory, set()).add(event.seq)
        elif isinstance(event, GradWrite):
            (cleared if event.clears else filled).setdefault(event.array.memory, set()).add(event.seq)
        elif isinstance(event, (TapeZeroed, TapeReset)):
            for memory in known.get(event.tape, ()):
                cleared.setdefault(memory, set()).add(event.seq)
    return GradientLife(_sorted(used), _sorted(filled), _sorted(cleared))


def _sorted(found: Mapping[int, set[int]]) -> dict[int, tuple[int, ...]]:
    return {memory: tuple(sorted(seqs)) for memory, seqs in found.items()}


def periods_of(trace: Trace, operations: Sequence[Operation]) -> tuple[Period, ...]:
    """Cut each tape's life at its resets."""
    marks: dict[int, list[Event]] = {}
    for event in trace.events:
        if isinstance(event, (TapeCreated, TapeEntered, TapeReset, Backward)):
            marks.setdefault(event.tape, []).append(event)
    recorded: dict[int, list[Operation]] = {}
    for operation in operations:
        tape = recorded_on(operation.event)
        if tape is not None:
            recorded.setdefault(tape, []).append(operation)
    end = trace.events[-1].seq + 1 if trace.events else 0
    return tuple(
        period
        for tape in sorted(marks.keys() | recorded.keys())
        for period in _periods(tape, marks.get(tape, []), recorded.get(tape, []), end)
    )


def _periods(tape: int, marks: list[Event], recorded: list[Operation], end: int) -> list[Period]:
    cuts = [0, *(event.seq for event in marks if isinstance(event, TapeReset)), end]
    opened = next((event for event in marks if isinstance(event, (TapeCreated, TapeEntered))), None)
    periods = []
    for start, stop in pairwise(cuts):
        inside = [event for event in marks if start <= event.seq < stop]
        periods.append(
            Period(
                tape,
                start,
                stop,
                opened,
                tuple(operation for operation in recorded if start <= operation.seq < stop),
                tuple(event for event in inside if isinstance(event, Backward)),
                tuple(event for event in inside if isinstance(event, TapeEntered)),
            )
        )
    return periods


def recordings_of(
    trace: Trace, periods: Sequence[Period], operations: Sequence[Operation], life: GradientLife
) -> tuple[Recording, ...]:
    """One recording for each ``backward`` of the trace, in time order."""
    found = [
        _recording(trace, period, index, operations, life)
        for period in periods
        for index in range(len(period.backwards))
    ]
    return tuple(sorted(found, key=lambda recording: recording.backward.seq))


def _recording(
    trace: Trace, period: Period, index: int, operations: Sequence[Operation], life: GradientLife
) -> Recording:
    backward = period.backwards[index]
    previous = period.backwards[index - 1] if index else None
    recorded = frozenset(operation.seq for operation in period.operations if operation.seq < backward.seq)
    start = min(recorded, default=backward.seq)
    first, end = (bisect_left(operations, seq, key=_seq) for seq in (start, backward.seq))
    steps = tuple([step for operation in operations[first:end] for step in operation.steps])
    window = Window(period.tape, steps, recorded)
    return Recording(
        backward,
        period,
        window,
        _seeds(backward, previous, life),
        wanted_leaves((step for _, step in window.on_tape()), trace.memories, life),
        previous,
    )


_seq = attrgetter("seq")


def _seeds(backward: Backward, previous: Backward | None, life: GradientLife) -> frozenset[int]:
    """The memories whose gradient is not zero when the walk begins, as far as the program set it."""
    given = {array.memory for array in (backward.loss, *backward.seeds) if array is not None}
    since = previous.seq if previous is not None else -1
    by_hand = set()
    for memory, seqs in life.filled.items():
        last = max((seq for seq in seqs if since < seq < backward.seq), default=None)
        if last is not None and not life.cleared_between(memory, last, backward.seq):
            by_hand.add(memory)
    return frozenset(given | by_hand)


def wanted_leaves(steps: Iterable[Step], memories: Mapping[int, Memory], life: GradientLife) -> frozenset[int]:
    """The leaves of a recording to which gradient is to arrive.

    If the program uses the gradient of some of them, those are the ones it wants; if it uses none that the trace
    shows, all are. An array that keeps its gradient (``retain_grad``) may be wanted although it is no leaf.
    """
    steps = tuple(steps)
    retained = {step.dest.memory for step in steps if (m := memories.get(step.dest.memory)) and m.retain_grad}
    leaves = leaves_of(steps, memories)
    used = frozenset(leaf for leaf in leaves | retained if life.used.get(leaf))
    return used or leaves


def leaves_of(steps: Iterable[Step], memories: Mapping[int, Memory]) -> frozenset[int]:
    """The memories that are read before the steps write them, and may have a gradient (if only it were passed on)."""
    written: set[int] = set()
    leaves: set[int] = set()
    launch, replaced = -1, set[int]()
    for step in steps:
        if step.seq != launch:
            written |= replaced
            launch, replaced = step.seq, set()
        for array in (*step.active, *(array for array, _ in step.severed)):
            if array.memory not in written and has_gradient(array, memories) is not False:
                leaves.add(array.memory)
        if step.kind is StoreKind.STORE or step.active or step.severed:  # else: a constant is added to what is there
            (replaced if step.read_before else written).add(step.dest.memory)
    return frozenset(leaves)

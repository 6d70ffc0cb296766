"""Loops on a tape that solve something by repetition, and had not come to its answer: seen by running them on.

Such a loop makes the same calls again and again, from a start that says nothing (one value all over), and what it makes
moves less with each round. Its gradient is right for what was computed, and another than that of the answer. A
simulation repeats its calls too: where the changes do not shrink steadily and fast, where a round adds to a sum, where
the start has a shape of its own or a time step is among the parameters, nothing is claimed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt

from warplint.dataclass import dataclass
from warplint.verify.engine.differences.directions import relative_error
from warplint.verify.engine.differences.measure import Clock, Measurement
from warplint.verify.engine.execution.memory import Memory
from warplint.verify.engine.execution.operations import HostWrite, KernelCall, NativeCall, Operation
from warplint.verify.engine.judging.culprits import places
from warplint.verify.engine.replaying.adjoint import float_kind_of
from warplint.verify.engine.replaying.analysis import Analysis
from warplint.verify.engine.replaying.groups import Group
from warplint.verify.engine.replaying.steps import Runnable
from warplint.verify.engine.replaying.windows import Window, rewritten
from warplint.verify.engine.warp_values import copied, descriptor, fields_of_struct
from warplint.verify.records import GradientStatus, UnconvergedLoop

Floats = npt.NDArray[np.float64]

ROUNDS = 5
"""Fewer repetitions than this are no loop to speak of."""
LONGEST = 12
"""Calls in one round, at most."""
SHRINKING = 0.95
"""The factor by which changes must shrink from round to round on average: relaxing simulations are slower."""
FARTHEST = 0.5
"""Of an answer that is further away than this, the loop is no attempt at all."""
MOVES = 0.01
"""By how much of itself the answer moves, at least, when the loop is run on."""
PARTS = 0.05
"""By how much the derivative of what is run on parts from the program's, at least."""
SETTLED = 1e-5
"""A change by so little of itself ends the running on."""
FURTHER = 20
"""So many times the program's own rounds are run on, at most."""
TIMES = frozenset({"dt", "delta_t", "time", "time_step", "timestep", "substep_dt", "sim_dt", "frame_dt"})
"""What makes a round a step in time: among the parameters, their fields, or the constants of a kernel."""


@dataclass(frozen=True)
class Touch:
    """What one operation of a round does with one memory."""

    memory: Memory
    reads: bool
    writes: bool
    adds: bool


@dataclass(frozen=True)
class Loop:
    """Operations that repeat: ``rounds`` of them, one after the other, each the same calls.

    ``touches`` are theirs, an operation and a memory each, in the same order in every round.
    """

    rounds: tuple[tuple[Operation, ...], ...]
    touches: tuple[tuple[Touch, ...], ...]

    @property
    def stop(self) -> int:
        """The number of its last operation."""
        return self.rounds[-1][-1].index

    def goes_round(self) -> bool:
        """Whether a round reads what never changes, what it has made itself, and what the one before it has made."""
        for before, now in itertools.pairwise(self.touches):
            made = {touch.memory for touch in before if touch.writes}
            for old, new in zip(before, now, strict=True):
                if new.reads and new.memory is not old.memory and new.memory not in made:
                    return False
                made.update({new.memory} if new.writes else ())
        return True

    def handed_on(self) -> tuple[tuple[Memory, Memory], ...]:
        """What the last round read of the one before it, and what it has made in its place."""
        before, last = self.touches[-2:]
        made = {old.memory: new.memory for old, new in zip(before, last, strict=True) if old.writes}
        read = dict.fromkeys(touch.memory for touch in last if touch.reads and touch.memory in made)
        return tuple((memory, made[memory]) for memory in read)

    def starts(self) -> frozenset[Memory]:
        """What the first round read in the place of what the later ones were handed on."""
        handed = {memory for memory, _ in self.handed_on()}
        return frozenset(
            first.memory
            for first, last in zip(self.touches[0], self.touches[-1], strict=True)
            if last.reads and last.memory in handed
        )

    def makings(self, memory: Memory) -> tuple[Memory, ...]:
        """What each round has made in the place of ``memory``, which the last one has made."""
        place = next(k for k, touch in enumerate(self.touches[-1]) if touch.writes and touch.memory is memory)
        return tuple(touches[place].memory for touches in self.touches)


@dataclass
class _Probe:
    """Looks at memory whenever it is run."""

    memory: Memory
    kind: np.dtype[np.generic]
    seen: list[Floats] = field(default_factory=list)

    def run(self) -> None:
        """Keep what is there now."""
        self.seen.append(np.ascontiguousarray(self.memory.read()).view(self.kind).astype(np.float64))

    def is_blank(self) -> bool:
        """Whether one value was there all over, when it looked."""
        return bool(np.all(self.seen[-1] == self.seen[-1][:1]))


@dataclass(frozen=True)
class _HandOn:
    """Puts what a round has made where the next one reads it."""

    read: Memory
    made: Memory

    def run(self) -> None:
        """Copy it, where these are two."""
        if self.read is not self.made:
            self.read.write(self.made.read())


@dataclass(frozen=True)
class FixedPoints:
    """Looks for such loops in the window of a gradient that is right."""

    analysis: Analysis
    clock: Clock

    def unconverged(self, group: Group, window: Window, found: Measurement) -> Iterator[UnconvergedLoop]:
        """The loops whose answer moves on, and the gradient with it."""
        if found.status is not GradientStatus.PASS or len(group.backwards) != 1:
            return
        for loop in loops_of(_repeatable(window), self.analysis):
            answer = self._answer(loop, group, window)
            told = self._run_on(loop, answer, group, window, found) if answer is not None else None
            if told is not None:
                yield told

    def _answer(self, loop: Loop, group: Group, window: Window) -> Memory | None:
        """What the last round makes, hands on and is read after it; None where this is no solver's loop."""
        calls = [each for each in loop.rounds[0] if isinstance(each, KernelCall)]
        if any(_steps_in_time(call.kernel) for call in calls) or not loop.goes_round():
            return None
        after = [each for each in window.operations if each.index > loop.stop]
        read = {where.memory for each in after for where in self.analysis.reads(each)}
        terms = {begin.loss.memory for begin in window.backwards if begin.loss is not None}
        touched = [touch for touches in loop.touches for touch in touches]
        cleared = {touch.memory for touch in touched if touch.writes and not touch.reads and not touch.adds}
        if any(touch.adds and touch.memory not in cleared for touch in touched):
            return None
        if any(touch.writes and touch.memory in terms for touch in touched) or group.leaf.memory in loop.starts():
            return None
        return next((made for _, made in loop.handed_on() if made in read), None)

    def _run_on(
        self, loop: Loop, answer: Memory, group: Group, window: Window, found: Measurement
    ) -> UnconvergedLoop | None:
        kind = float_kind_of(answer, self.analysis)
        if kind is None:
            return None
        starts = [_Probe(memory, kind) for memory in loop.starts()]
        probes = [_Probe(memory, kind) for memory in loop.makings(answer)]
        marks: dict[int, list[Runnable]] = {loop.rounds[0][0].index - 1: list[Runnable](starts)}
        for each, probe in zip(loop.rounds, probes, strict=True):
            marks.setdefault(each[-1].index, []).append(probe)
        self.clock.require()
        with window.inserted(marks):
            window.evaluate({}, lambda old: old)
        if not all(probe.is_blank() for probe in starts):
            return None
        seen = [probe.seen[-1] for probe in probes]
        if any(each.shape != seen[-1].shape for each in seen) or not _shrinks(seen):
            return None
        return self._compared(loop, seen[-1], _Probe(answer, kind), group, window, found)

    def _compared(
        self, loop: Loop, reached: Floats, on: _Probe, group: Group, window: Window, found: Measurement
    ) -> UnconvergedLoop | None:
        further = FURTHER * len(loop.rounds)
        run = {each.index for each in window.operations}
        again: list[Runnable] = [
            *(_HandOn(*pair) for pair in loop.handed_on()),
            *(each for each in loop.rounds[-1] if each.index in run),
        ]
        window.confirm()
        if window.seconds * FURTHER * 4 > self.clock.left:
            return None
        with window.inserted({loop.stop: [*again, on] * further}):
            window.evaluate({}, lambda old: old)
        settled = _settled_at(reached, on.seen)
        if settled is None:
            return None
        moved = _distance(reached, on.seen[settled]) / _norm(on.seen[settled])
        vector, direction = max(
            ((v, d) for v, d in zip(found.vectors, found.judged, strict=True) if d.status is GradientStatus.PASS),
            key=lambda pair: abs(pair[1].ad),
        )
        rewrites = rewritten(group.rewrites, group.leaf, self.analysis)
        with window.inserted({loop.stop: again * (settled + 1)}):
            plus, minus = (
                window.evaluate(rewrites, lambda old, sign=sign: vector.moved(old, sign * direction.step), group.leaf)  # type: ignore[misc]
                for sign in (1.0, -1.0)
            )
        fd = (plus - minus) / (2.0 * direction.step)
        if not MOVES <= moved <= FARTHEST or relative_error(direction.ad, fd) < PARTS:
            return None
        call = next(each for each in loop.rounds[-1] if isinstance(each, KernelCall))
        return UnconvergedLoop(
            launched=places(call.stack),
            kernel=call.name,
            rounds=len(loop.rounds),
            further=settled + 1,
            moved=moved,
            leaf=group.leaf.parameter,
            allocated=places(group.leaf.memory.stack),
            ad=direction.ad,
            fd=fd,
        )


def _repeatable(window: Window) -> list[Operation]:
    return [each for each in window.operations if isinstance(each, KernelCall | NativeCall | HostWrite)]


def _steps_in_time(kernel: Any) -> bool:
    names = set(kernel.func.__code__.co_names)
    for argument in kernel.adj.args:
        names.update((str(argument.label), *(fields_of_struct(argument.type) or ())))
    return not TIMES.isdisjoint(name.lower() for name in names)


def loops_of(operations: Sequence[Operation], analysis: Analysis) -> Iterator[Loop]:
    """The longest stretches in which the same calls come again, the shortest round first."""
    keys = [_key(each) for each in operations]
    position = 0
    while position < len(keys):
        found = next((loop for period in range(1, LONGEST + 1) if (loop := _loop(keys, position, period))), None)
        if found is None:
            position += 1
            continue
        period, count = found
        rounds = [tuple(operations[position + k * period : position + (k + 1) * period]) for k in range(count)]
        position += period * count
        touches = [tuple(touch for each in one for touch in _touches(each, analysis)) for one in rounds]
        if any(isinstance(each, KernelCall) for each in rounds[0]) and len({len(one) for one in touches}) == 1:
            yield Loop(tuple(rounds), tuple(touches))


def _loop(keys: Sequence[object], start: int, period: int) -> tuple[int, int] | None:
    stop = start
    while stop + period < len(keys) and keys[stop] == keys[stop + period]:
        stop += 1
    count = (stop - start) // period + 1
    return (period, count) if count >= ROUNDS else None


def _touches(operation: Operation, analysis: Analysis) -> Iterator[Touch]:
    for where, access in analysis.accesses(operation):
        yield Touch(where.memory, access.reads, access.writes, access.adds)


def _key(operation: Operation) -> object:
    """What makes two operations the same call: the place, what is called, and all that it is given but the arrays."""
    place = operation.stack[:2]
    if isinstance(operation, KernelCall):
        params = copied(operation.params)
        for slot in operation.layout.slots:
            found = descriptor(params[slot.parameter], slot.offset)
            found.data = found.grad = 0
        return place, id(operation.kernel), tuple(bytes(value) for value in params)
    if isinstance(operation, NativeCall):
        ranges = (*operation.reads, *operation.writes)
        return place, operation.name, operation.exact, tuple((where.start, where.stop) for where in ranges)
    assert isinstance(operation, HostWrite)
    return place, operation.contents.tobytes()


def _shrinks(seen: Sequence[Floats]) -> bool:
    """Whether the changes shrink in every round, and fast enough, and are not at their end."""
    changes = [_distance(one, other) for one, other in itertools.pairwise(seen)]
    if len(changes) < ROUNDS - 1 or not all(np.isfinite(changes)) or changes[-1] <= SETTLED * _norm(seen[-1]):
        return False
    if any(later >= earlier for earlier, later in itertools.pairwise(changes)):
        return False
    return bool((changes[-1] / changes[0]) ** (1.0 / (len(changes) - 1)) <= SHRINKING)


def _settled_at(before: Floats, seen: Sequence[Floats]) -> int | None:
    for number, (one, other) in enumerate(zip([before, *seen], seen, strict=False)):
        if not np.all(np.isfinite(other)):
            return None
        if _distance(one, other) <= SETTLED * _norm(other):
            return number
    return None


def _distance(one: Floats, other: Floats) -> float:
    return float(np.linalg.norm(other - one))


def _norm(values: Floats) -> float:
    return float(np.linalg.norm(values)) or 1e-300

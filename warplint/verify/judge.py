"""Asks all the questions of a log, and answers with records: every leaf of every group, and why it is wrong."""

from __future__ import annotations

import linecache
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from warplint.verify.adjoint import BackwardPass
from warplint.verify.arbiter import Question, Reserve, Snapshot, Unanswered
from warplint.verify.culprits import Culprits, places
from warplint.verify.finite_difference import (
    EPS32,
    EPS64,
    DirectionVector,
    OutOfBudget,
    combine,
    directions,
    judge_direction,
    one_sided,
    wants_one_sided,
)
from warplint.verify.groups import Analysis, Group, Leaf, groups_of
from warplint.verify.history import TooLarge
from warplint.verify.launch_check import check_launches, first_launches
from warplint.verify.memory import CodeStack, Memory
from warplint.verify.operations import HostRead, HostWrite, KernelCall, NativeCall, Operation
from warplint.verify.records import Culprit, Direction, Gradient, GradientStatus, KernelCheck, Note, Repair
from warplint.verify.repairs import Measured, diagnose, measured
from warplint.verify.replay import Machine, NotExact, Survey
from warplint.verify.updates import unread_updates
from warplint.verify.warp_modules import definition
from warplint.verify.windows import Window, rewritten

EPS16 = 2.0**-10
FORK_BUDGET = 16
FORK_DIRECTIONS = 3
"""Evaluations and directions where each evaluation is a run of the program."""
ROUGH = ("rough", "chaotic", "the steps do not settle")
"""How the reasons begin for which a direction is rough."""
Send = Callable[[object], None]


@dataclass(frozen=True)
class Clock:
    """When the answers must be there (``time.monotonic``), and how many seconds the judging should take.

    ``aim`` is what the user would like to wait: gradients that somebody uses are judged beyond it, with less effort.
    """

    deadline: float
    aim: float = 10.0
    began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Seconds until the answers must be there."""
        return self.deadline - time.monotonic()

    @property
    def aim_left(self) -> float:
        """Seconds of the time that the judging should take; negative when it takes longer."""
        return self.aim - (time.monotonic() - self.began)

    def require(self, seconds: float = 0.0) -> None:
        """Raise :class:`OutOfBudget` where less than that is left."""
        if self.left < seconds:
            raise OutOfBudget


@dataclass(frozen=True)
class Effort:
    """How many directions a leaf is moved in, and how many evaluations each may take."""

    directions: int
    evaluations: int


FULL = Effort(5, 48)
LESS = Effort(3, 24)
LEAST = Effort(2, 14)
"""A clear pass takes seven evaluations, a clear failure eleven."""


@dataclass(frozen=True)
class Measurement:
    """What finite differences say of one group."""

    vectors: tuple[DirectionVector, ...]
    judged: tuple[Direction, ...]
    status: GradientStatus
    reason: str
    ad: float
    fd: float
    relative_error: float | None
    method: str = "replay"


class Judge:
    """Judges a log. ``starting(n)`` is told before group ``n`` is judged, so that a crash can be put down to it."""

    def __init__(
        self,
        machine: Machine,
        send: Send,
        clock: Clock,
        seed: int,
        starting: Callable[[int], None],
        reserve: Reserve | None = None,
    ) -> None:
        self._machine = machine
        self._reserve = reserve
        self._log = machine.log
        self._send = send
        self._clock = clock
        self._seed = seed
        self._starting = starting
        self.survey = Survey(machine)
        self.survey.run()
        self.analysis = Analysis(self._log, self.survey)
        self.groups = sorted(groups_of(self.analysis), key=_importance)

    def run(self, first: int = 0) -> None:
        """Judge the groups from number ``first`` on."""
        if first == 0:
            for unread in unread_updates(self.analysis):
                self._send(unread)
            for call, memory in self.survey.overruns:
                self._send(_overrun(call, memory))
        skipped = 0
        for number, group in enumerate(self.groups):
            if number < first:
                continue
            if group.used is None and self._clock.aim_left < 0 and number > 0:
                skipped += 1
                continue
            self._starting(number)
            alike = [other for other in self.groups[number:] if (other.used is None) == (group.used is None)]
            self._send(self._judged(group, len(alike)))
        if skipped:
            self._send(Note("sampled", f"{skipped} gradients that nothing uses were not judged, to save time"))
        self._starting(len(self.groups))
        if first <= len(self.groups):
            self._check_kernels()

    def _check_kernels(self) -> None:
        """Every distinct kernel's adjoint alone, while there is time."""
        rng = np.random.default_rng(self._seed)
        calls = first_launches(self.analysis)
        share = max(self._clock.aim / 2.0, self._clock.aim_left) / max(len(calls), 1)
        checks = check_launches(self._machine, self.analysis, calls, rng, share)
        for done, check in enumerate(checks, start=1):
            self._send(check)
            if self._clock.left <= 0:
                self._send(Note("sampled", f"{len(calls) - done} kernels were not checked alone: no time was left"))
                break

    def unjudged(self, number: int, reason: str) -> Gradient | Note:
        """The record of what could not be judged: a group, or (after the last of them) the kernels alone."""
        if number >= len(self.groups):
            return Note("kernels", f"the kernels' adjoints alone were not checked: {reason}")
        return self._record(self.groups[number], _inconclusive(reason))

    def _judged(self, group: Group, remaining: int) -> Gradient:
        obstacle = self._obstacle(group)
        if obstacle:
            return self._record(group, _inconclusive(obstacle))
        try:
            window = Window(self._machine, self.analysis, group.start, group.backwards)
            found = self._measure(group, window, self._effort(group, window, remaining))
            if found.status is GradientStatus.INCONCLUSIVE and self._may_try_harder(group):
                found = self._measure(group, window, FULL)
        except NotExact as error:
            return self._record(group, _inconclusive(str(error)))
        except OutOfBudget:
            return self._record(group, _inconclusive("the time limit left no time for it"))
        if found.status in (GradientStatus.FAIL, GradientStatus.INCONCLUSIVE):
            held = self._holding_constant(group, found)
            if held is not None:
                return self._record(group, held, signature="held-constant")
        loop = self._host_loop(group, window, found)
        if loop:
            ruled = self._arbitrated(group, window, found)
            if isinstance(ruled, str):
                return self._record(group, _inconclusive(f"{loop}; {ruled}", found), signature="host-loop")
            if ruled is not found:
                return self._record(group, ruled, signature="host-loop")
        if found.status is not GradientStatus.FAIL:
            return self._record(group, found)
        return self._explained(group, found)

    def _effort(self, group: Group, window: Window, remaining: int) -> Effort:
        """As much as the time that falls to this group allows."""
        share = max(self._clock.aim_left, 0.0) / remaining / max(window.seconds, 1e-6)
        if share > FULL.directions * FULL.evaluations / 3:
            return FULL
        return LESS if share > LESS.directions * LESS.evaluations / 2 and group.used is not None else LEAST

    def _may_try_harder(self, group: Group) -> bool:
        return group.used is not None and self._clock.aim_left > -2.0 * self._clock.aim

    def _obstacle(self, group: Group) -> str:
        for begin in group.backwards:
            elsewhere = {entry.device for entry in begin.entries if entry is not None} - {"cpu"}
            if elsewhere:
                return f"it ran on {', '.join(sorted(elsewhere))}: gradients are verified on the CPU (--device cpu)"
            if begin.end is None or not begin.end.complete:
                return "the operations of this backward call could not be matched to the tape's entries"
            if any(entry is not None and entry.time < self._log.base for entry in begin.entries):
                return "its tape was recorded before the part of the run that is looked at"
            if begin.number in self.survey.inexact:
                return "running the recorded operations again does not give the program's loss bit for bit"
        unknown = [
            operation
            for operation in self._log.between(group.start, group.stop)
            if isinstance(operation, KernelCall) and operation.unknown and operation.inside is None
        ]
        if unknown:
            return f"a launch of {unknown[0].name} reaches memory that nobody knows"
        if self._clock.left <= 0:
            return "the time limit left no time for it"
        return ""

    # finite differences ---------------------------------------------------------------------------------------------

    def _measure(self, group: Group, window: Window, effort: Effort) -> Measurement:
        leaf = group.leaf
        window.restore()
        values = leaf.view.read()
        rng = np.random.default_rng([self._seed, leaf.memory.number, group.number])
        axes = 1 if leaf.view.components > 1 else 0
        scaled = directions(values, group.consumed, rng, component_axes=axes)
        vectors = tuple(_in_units(vector) for vector in scaled[: effort.directions])
        rewrites = rewritten(group.rewrites, leaf, self.analysis)
        epsilon = {2: EPS16, 4: EPS32, 8: EPS64}[leaf.view.kind.itemsize]
        epsilon = max(epsilon, self._coarsest(group))
        judged: list[Direction] = []
        if vectors:
            window.check(rewrites, lambda old: vectors[0][0].moved(old, 1e-2 * vectors[0][1]), leaf)

        def ask(vector: DirectionVector, scale: float) -> Direction:
            def objective(step: float) -> float:
                self._clock.require()
                return window.evaluate(rewrites, lambda old: vector.moved(old, step), leaf)

            self._clock.require()
            return judge_direction(
                objective, vector.ad, scale=scale, dtype_eps=epsilon, kind=vector.kind, budget=effort.evaluations
            )

        for vector, scale in vectors:
            judged.append(ask(vector, scale))
        if wants_one_sided(judged):
            upwards = _in_units(one_sided(values, group.consumed, rng, component_axes=axes))
            vectors = (*vectors, upwards)
            judged.append(ask(*upwards))
        answer = combine(judged)
        moved = tuple(vector for vector, _ in vectors)
        return Measurement(
            moved, tuple(judged), answer.status, answer.reason, answer.ad, answer.fd, answer.relative_error
        )

    def _coarsest(self, group: Group) -> float:
        """The machine epsilon of the loss: an objective in single precision has its noise."""
        kinds = [begin.loss_kind.kind for begin in group.backwards if begin.loss_kind is not None]
        sizes = [kind.itemsize for kind in kinds if kind is not None]
        return {2: EPS16, 4: EPS32, 8: EPS64}[min(sizes)] if sizes else 0.0

    # why it is wrong ------------------------------------------------------------------------------------------------

    def _explained(self, group: Group, found: Measurement) -> Gradient:
        telling = measured(found.vectors, found.judged)
        try:
            backward = BackwardPass(self._machine, self.analysis, group)
            if not np.array_equal(backward.gradient(frozenset()), group.consumed, equal_nan=True):
                return self._record(group, found)
            diagnosis = diagnose(backward, telling, self.analysis)
        except (TooLarge, OutOfBudget):
            return self._record(group, found)
        signature = _signature(found)
        if diagnosis is None:
            return self._record(group, _doubted(found), signature=signature)
        culprits = self._culprits(backward, telling, diagnosis.repairs)
        return self._record(group, found, diagnosis.repairs, diagnosis.others, culprits, signature)

    def _culprits(
        self, backward: BackwardPass, telling: Sequence[Measured], repairs: tuple[Repair, ...]
    ) -> tuple[Culprit, ...]:
        finder = Culprits(backward, self.analysis, telling, repairs, lambda: self._clock.left > 0)
        return tuple(culprit for repair in repairs for culprit in finder.of(repair))

    def _holding_constant(self, group: Group, found: Measurement) -> Measurement | None:
        """Does the gradient agree when what no tape recorded is held as it came out?

        Of what came before the tape was entered, that is collected data, and the gradient is right; of what ran between
        its recordings (a solver with an adjoint of its own, or launches that were forgotten) nobody can tell.
        """
        if found.ad == 0.0:
            return None
        off_tape = self._depending(group, list(self._off_tape(group)))
        opened = self._opened(group)
        before = [index for index in off_tape if index < opened]
        if before:
            again = self._holding(group, before)
            reason = f"with what was computed before the tape held constant ({_shown(self._log[before[0]])}), as data"
            if again.status is GradientStatus.PASS:
                return _otherwise(again, GradientStatus.PASS, f"{reason}: {again.reason}")
            if again.status is GradientStatus.INCONCLUSIVE:
                return _otherwise(found, GradientStatus.INCONCLUSIVE, f"{reason}: {again.reason}")
        if len(off_tape) == len(before) or self._holding(group, off_tape).status is not GradientStatus.PASS:
            return None
        first = next(index for index in off_tape if index >= opened)
        reason = (
            f"as the program computes it the difference is {found.fd:.5g}, the tape {found.ad:.5g}; with what no tape "
            f"recorded held constant ({_shown(self._log[first])}) they agree: a surrogate, or launches forgotten on it"
        )
        return _otherwise(found, GradientStatus.INCONCLUSIVE, reason)

    def _holding(self, group: Group, held: Sequence[int]) -> Measurement:
        try:
            window = Window(self._machine, self.analysis, group.start, group.backwards, frozenset(held))
            return self._measure(group, window, FULL if group.used is not None else LESS)
        except (NotExact, OutOfBudget) as error:
            return _inconclusive(str(error) or "no time was left")

    def _depending(self, group: Group, indices: Sequence[int]) -> list[int]:
        """Those of the operations that hang on the leaf, memory by memory."""
        wanted = set(indices)
        hanging, found = {group.leaf.memory}, list[int]()
        for operation in self._log.between(group.start, group.stop):
            if operation.inside is None and any(w.memory in hanging for w in self.analysis.reads(operation)):
                hanging.update(where.memory for where, _ in self.analysis.writes(operation))
                if operation.index in wanted:
                    found.append(operation.index)
        return found

    def _opened(self, group: Group) -> int:
        """When the tapes of the group were first entered to record what the group differentiates."""
        found: list[int] = []
        for begin in group.backwards:
            times = [entry.time for entry in begin.entries if entry is not None]
            recent = [time for time in times if time >= group.start] or times or [begin.index]
            found.extend([index for index in begin.tape.entered if index <= min(recent)][-1:] or [min(recent)])
        return min(found)

    def _off_tape(self, group: Group) -> Iterator[int]:
        """Operations of the window that no tape recorded; none where one of them makes the loss itself."""
        losses = {begin.loss.memory for begin in group.backwards if begin.loss is not None}
        found: list[int] = []
        for operation in self._log.between(group.start, group.stop):
            if operation.inside is not None or getattr(operation, "entry", None) is not None:
                continue
            if isinstance(operation, KernelCall) or (isinstance(operation, NativeCall) and operation.reads):
                written: set[Memory] = {where.memory for where, _ in self.analysis.writes(operation)}
                if written & losses:
                    return
                if written - self._log.gradients:
                    found.append(operation.index)
        yield from found

    # host data in the loop ------------------------------------------------------------------------------------------

    def _host_loop(self, group: Group, window: Window, found: Measurement) -> str:
        """Whether something that hangs on the leaf went to the host before something came back from it."""
        opened = self._opened(group)
        # What came from the host before the tape was entered is data, as far as the tape's gradient goes.
        returned = [operation for operation in self._from_host(group, window) if operation.index >= opened]
        if not returned or not found.vectors:
            return ""
        downloads = [
            operation
            for operation in self._log.between(group.start, returned[-1].index)
            if isinstance(operation, HostRead) and operation.source.memory not in self._log.gradients
        ]
        vector = found.vectors[0]
        still = window.states_at(downloads, group.leaf, lambda old: old)
        moved = window.states_at(downloads, group.leaf, lambda old: vector.moved(old, 1e-2))
        for mark, one, other in zip(downloads, still, moved, strict=True):
            back = next((operation for operation in returned if operation.index > mark.index), None)
            if back is not None and not np.array_equal(one, other):
                return (
                    f"data that hangs on this leaf goes to the host ({_shown(mark)}) and host data comes back "
                    f"({_shown(back)}): running the recorded operations again cannot follow it"
                )
        return ""

    def _from_host(self, group: Group, window: Window) -> Iterator[Operation]:
        """Uploads, and launches with a floating-point argument that this kernel was never given before."""
        seen: dict[tuple[int, int], set[bytes]] = {}
        for operation in self._log.between(self._log.base, group.start):
            if isinstance(operation, KernelCall):
                for position in operation.layout.values:
                    seen.setdefault((id(operation.kernel), position), set()).add(bytes(operation.params[position]))
        first: dict[tuple[int, int], set[bytes]] = {}
        for operation in window.operations:
            if isinstance(operation, HostWrite):
                yield operation
            elif isinstance(operation, KernelCall):
                for position in operation.layout.values:
                    key, value = (id(operation.kernel), position), bytes(operation.params[position])
                    known = seen.get(key, set()) | first.get(key, set())
                    if value not in known:
                        first.setdefault(key, set()).add(value)
                        yield operation

    def _arbitrated(self, group: Group, window: Window, found: Measurement) -> Measurement | str:
        """Ask the program itself: ``found`` where the replay follows it, what it says where not; else why not.

        The leaf is moved when the tape is entered: what came before is data.
        """
        opened = max(self._opened(group), group.start)
        snapshot = self._snapshot(group, opened)
        if snapshot is None or not found.vectors:
            return "there is no snapshot of the process to run it again from"
        leaf, patience = group.leaf, min(30.0, max(self._clock.left / 4.0, 1.0))

        def fork(vector: DirectionVector, step: float) -> float:
            self._clock.require()
            question = Question(
                leaf.memory.number,
                leaf.view.address - leaf.memory.address,
                leaf.view.shape,
                leaf.view.strides,
                leaf.view.scalars,
                opened,
                vector.vector * step,
                tuple(begin.number for begin in group.backwards),
            )
            return snapshot.evaluate(question, patience)

        vector = found.vectors[0]
        try:
            again = fork(vector, 0.0)
            if again != window.unmoved:
                return f"the program, run again, gives {again:.9g} in place of {window.unmoved:.9g}"
            step = 1e-2
            asked = fork(vector, step) - window.unmoved
            taped = Window(self._machine, self.analysis, opened, group.backwards)
            replayed = taped.evaluate({}, lambda old: vector.moved(old, step), leaf) - window.unmoved
            if abs(asked - replayed) <= 0.02 * max(abs(asked), abs(replayed)) + 64 * EPS32 * abs(window.unmoved):
                return found
            return self._measured_by_forks(group, found, fork)
        except (Unanswered, OutOfBudget, NotExact) as error:
            return str(error) or "no time was left"

    def _snapshot(self, group: Group, opened: int) -> Snapshot | None:
        """A snapshot from before the leaf is read on the tape; only where every backward call has a loss.

        To run several windows again takes long: only for a gradient that is used.
        """
        unused = group.used is None and len(group.backwards) > 1
        if self._reserve is None or group.rewrites or unused or any(begin.loss is None for begin in group.backwards):
            return None
        leaf = group.leaf
        read = [
            operation.index
            for operation in self.analysis.of(leaf.memory)
            if operation.index >= opened and any(where.overlaps(leaf.range) for where in self.analysis.reads(operation))
        ]
        return self._reserve.before(min([group.backwards[0].index, *read]))

    def _measured_by_forks(
        self, group: Group, found: Measurement, fork: Callable[[DirectionVector, float], float]
    ) -> Measurement:
        epsilon = max(EPS32 if group.leaf.view.kind.itemsize == 4 else EPS64, self._coarsest(group))
        judged = tuple(
            judge_direction(
                lambda step, vector=vector: fork(vector, step),  # type: ignore[misc]
                vector.ad,
                dtype_eps=epsilon,
                kind=vector.kind,
                budget=FORK_BUDGET,
            )
            for vector in found.vectors[:FORK_DIRECTIONS]
        )
        answer = combine(judged)
        reason = f"{answer.reason} (the program itself run again: host data in the loop)"
        return Measurement(
            found.vectors[:FORK_DIRECTIONS],
            judged,
            answer.status,
            reason,
            answer.ad,
            answer.fd,
            answer.relative_error,
            "fork",
        )

    # the answer -----------------------------------------------------------------------------------------------------

    def _record(
        self,
        group: Group,
        found: Measurement,
        repairs: tuple[Repair, ...] = (),
        others: tuple[tuple[Repair, ...], ...] = (),
        culprits: tuple[Culprit, ...] = (),
        signature: str = "",
    ) -> Gradient:
        leaf = group.leaf
        return Gradient(
            leaf=leaf_name(leaf),
            memory=leaf.memory.number,
            allocated=places(leaf.memory.stack),
            backward=tuple(places(begin.stack) for begin in group.backwards),
            group=group.number,
            status=found.status,
            reason=found.reason,
            ad=found.ad,
            fd=found.fd,
            relative_error=found.relative_error,
            directions=found.judged,
            signature=signature,
            repaired_by=repairs,
            culprits=culprits,
            consumed_at=places(group.used.stack) if group.used is not None else (),
            also_repaired_by=others,
            method=found.method,
        )


def _doubted(found: Measurement) -> Measurement:
    """A failure that nothing explains, of a leaf whose other directions are rough, is no proof.

    Silhouettes and contacts make the objective jump: the tape leaves the jumps out, differences take them in.
    """
    failed = [direction for direction in found.judged if direction.status is GradientStatus.FAIL]
    rough = [d for d in found.judged if d.status is GradientStatus.INCONCLUSIVE and d.reason.startswith(ROUGH)]
    if len(rough) < len(failed):
        return found
    return _otherwise(found, GradientStatus.INCONCLUSIVE, f"rough in other directions ({rough[0].reason})")


def _overrun(call: KernelCall, memory: Memory) -> KernelCheck:
    """A launch that writes behind the end of an array: found by what lies there, before it destroys anything."""
    of = memory.gradient_of if memory.gradient_of is not None else memory
    what = "the gradient of the array" if memory.gradient_of is not None else "the array"
    where = f" allocated at {_place(of.stack)}" if of.stack else ""
    which = "adjoint" if call.adjoint else "forward code"
    return KernelCheck(
        kernel=call.name,
        defined=definition(call.kernel),
        launched=places(call.stack),
        status=GradientStatus.FAIL,
        reason=f"its {which} writes behind the end of {what}{where}",
        ad=float("nan"),
        fd=float("nan"),
    )


def _in_units(vector: DirectionVector) -> tuple[DirectionVector, float]:
    """A direction along one coordinate as the plain partial derivative, and the scale of its steps."""
    moving = np.flatnonzero(vector.vector)
    if moving.size != 1:
        return vector, 1.0
    scale = float(abs(vector.vector.flat[moving[0]]))
    return DirectionVector(vector.kind, vector.vector / scale, vector.ad / scale), scale


def _importance(group: Group) -> tuple[bool, int, int]:
    """Gradients that somebody uses first, in the order of the program."""
    return (group.used is None, group.number, group.stop)


def _inconclusive(reason: str, found: Measurement | None = None) -> Measurement:
    nan = float("nan")
    if found is None:
        return Measurement((), (), GradientStatus.INCONCLUSIVE, reason, nan, nan, None)
    return _otherwise(found, GradientStatus.INCONCLUSIVE, reason)


def _otherwise(found: Measurement, status: GradientStatus, reason: str) -> Measurement:
    """The same figures under another judgement."""
    return replace(found, status=status, reason=reason)


def _signature(found: Measurement) -> str:
    """A constant ratio of gradient and difference in all directions: a small whole number, its inverse, 0 or -1."""
    ratios = [d.ad / d.fd for d in found.judged if d.status is GradientStatus.FAIL and d.fd and np.isfinite(d.ad)]
    if not ratios or max(ratios) - min(ratios) > 0.02 * abs(ratios[0]):
        return ""
    ratio = float(np.median(ratios))
    if abs(ratio) < 1e-9:
        return "zero"
    for candidate in (ratio, 1.0 / ratio):
        if 1.5 < abs(candidate) < 1000.0 and abs(candidate - round(candidate)) < 0.005 + 0.001 * abs(candidate):
            return f"ratio {ratio:.4g}"
    return "opposite" if abs(ratio + 1.0) < 0.02 else ""


def _shown(operation: Operation) -> str:
    return _place(operation.stack)


def _place(stack: CodeStack) -> str:
    if not stack:
        return "inside Warp"
    code, line = stack[0]
    return f"{code.co_filename}:{line}"


_ASSIGNED = re.compile(r"^\s*((?:\w+\.)*\w+)(?:\s*:[^=]+)?\s*=[^=]")


def leaf_name(leaf: Leaf) -> str:
    """What the user calls it: the name it is assigned to where it (or a helper) is called, else the parameter."""
    for code, line in leaf.memory.stack[:3]:
        text = linecache.getline(code.co_filename, line)
        match = _ASSIGNED.match(text)
        if match:
            return match[1]
        if not text.lstrip().startswith("return "):
            break
    return leaf.parameter

"""Asks all the questions of a log, and answers with records: every leaf of every group, and why it is wrong."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from warplint.proof import Repair
from warplint.verify.engine.differences.finite_difference import OutOfBudget
from warplint.verify.engine.differences.measure import (
    Allowance,
    Clock,
    Effort,
    Measurement,
    Measurer,
    inconclusive,
    otherwise,
    place,
)
from warplint.verify.engine.execution.memory import Memory
from warplint.verify.engine.execution.operations import KernelCall
from warplint.verify.engine.execution.work import seconds_of
from warplint.verify.engine.judging.arbiter import Reserve
from warplint.verify.engine.judging.beside import BesideKink
from warplint.verify.engine.judging.consumed import consumed_readings
from warplint.verify.engine.judging.contributions import Summed, may_be_swallowed
from warplint.verify.engine.judging.culprits import Culprits, places
from warplint.verify.engine.judging.fixed_points import FixedPoints
from warplint.verify.engine.judging.host_loop import HostLoop
from warplint.verify.engine.judging.launch_check import check_launches, first_launches
from warplint.verify.engine.judging.naming import leaf_name
from warplint.verify.engine.judging.off_tape import OffTape
from warplint.verify.engine.judging.repairs import Measured, diagnose, measured
from warplint.verify.engine.judging.repetition import repetition
from warplint.verify.engine.judging.signatures import Signatures, named
from warplint.verify.engine.judging.spared import spared_views
from warplint.verify.engine.judging.updates import stagnant_updates, unread_updates
from warplint.verify.engine.replaying.adjoint import BackwardPass
from warplint.verify.engine.replaying.analysis import Analysis
from warplint.verify.engine.replaying.groups import Group, groups_of
from warplint.verify.engine.replaying.history import TooLarge
from warplint.verify.engine.replaying.replay import Machine, NotExact
from warplint.verify.engine.replaying.survey import Survey
from warplint.verify.engine.replaying.windows import Window
from warplint.verify.engine.warp_modules import definition
from warplint.verify.records import Culprit, Gradient, GradientStatus, KernelCheck, Note, Signature, SignatureKind

if TYPE_CHECKING:
    from warplint.verify.engine.judging.in_double import InDouble

ROUGH = ("rough", "chaotic", "the steps do not settle")
"""How the reasons begin for which a direction is rough."""
Send = Callable[[object], None]


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
        window: int = 0,
    ) -> None:
        """``window`` is the number of the part of the run that the log holds."""
        self._window = window
        self._machine = machine
        self._log = machine.log
        self._send = send
        self._clock = clock
        self._seed = seed
        self._starting = starting
        self._reserve = reserve
        self.survey = Survey(machine)
        self.survey.run()
        self.analysis = Analysis(self._log, self.survey)
        self.groups = sorted(groups_of(self.analysis), key=_importance)
        self._measurer = Measurer(self.analysis, clock, seed)
        self._allowance = Allowance(seconds_of(self._log.operations))
        self._right: set[Memory] = set()
        """Leaves whose gradient was found right, in several directions."""
        self._beside = BesideKink(machine, clock, seed)
        self._off_tape = OffTape(machine, self._measurer)
        self._host_loop = HostLoop(machine, self._measurer, reserve)
        self._signatures = Signatures(machine, self.analysis, self.groups)
        self._kernel_checks: tuple[KernelCheck, ...] | None = None

    def run(self, first: int = 0) -> None:
        """Judge the groups from number ``first`` on."""
        if first == 0:
            for unread in unread_updates(self.analysis):
                self._send(unread)
            for stagnant in stagnant_updates(self._machine, self.analysis):
                self._send(stagnant)
            for consumed in consumed_readings(self._machine, self.analysis):
                self._send(consumed)
            for spared in spared_views(self._machine, self.analysis, reserve=self._reserve, clock=self._clock):
                self._send(spared)
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
        calls = first_launches(self.analysis)
        checks = self._kernel_checks if self._kernel_checks is not None else self._checked(calls)
        failed: list[Any] = []
        for done, check in enumerate(checks, start=1):
            self._send(check)
            if check.status is GradientStatus.FAIL:
                failed.extend(call.kernel for call in calls if definition(call.kernel) == check.defined)
            if self._clock.left <= 0:
                self._send(Note("sampled", f"{len(calls) - done} kernels were not checked alone: no time was left"))
                break
        if failed:
            from warplint.verify.engine.judging.adjoint_check import check_adjoints  # seldom needed

            check_adjoints(failed, self._send, self._clock, self._seed)

    def _checked(self, calls: list[KernelCall]) -> Iterator[KernelCheck]:
        rng = np.random.default_rng(self._seed)
        share = max(self._clock.aim / 2.0, self._clock.aim_left) / max(len(calls), 1)
        return check_launches(self._machine, self.analysis, calls, rng, share)

    def _wrong_kernels(self, group: Group) -> frozenset[int]:
        """The kernels of a group's tapes whose own adjoint is wrong, by identity; all kernels are checked for it.

        None where there is no time for that: they are checked at the end, as far as it goes then.
        """
        if self._kernel_checks is None and not self._may_try_harder(group):
            return frozenset()
        calls = first_launches(self.analysis)
        if self._kernel_checks is None:
            self._kernel_checks = tuple(itertools.takewhile(lambda _: self._clock.left > 0, self._checked(calls)))
        failed = {check.defined for check in self._kernel_checks if check.status is GradientStatus.FAIL}
        of_group = {
            id(entry.forward.kernel)
            for begin in group.backwards
            for entry in begin.entries
            if entry is not None and isinstance(entry.forward, KernelCall)
        }
        return frozenset(id(call.kernel) for call in calls if definition(call.kernel) in failed) & of_group

    def unjudged(self, number: int, reason: str) -> Gradient | Note:
        """The record of what could not be judged: a group, or (after the last of them) the kernels alone."""
        if number >= len(self.groups):
            return Note("kernels", f"the kernels' adjoints alone were not checked: {reason}")
        return self._record(self.groups[number], inconclusive(reason))

    def _judged(self, group: Group, remaining: int) -> Gradient:
        obstacle = self._obstacle(group)
        if obstacle:
            return self._record(group, inconclusive(obstacle))
        try:
            window = Window(self._machine, self.analysis, group.start, group.backwards)
            found = self._measured(group, window, remaining)
            if may_be_swallowed(found) and group.used is not None:
                found = Summed(self.analysis, self._clock).measure(group, window, found)
        except NotExact as error:
            return self._record(group, inconclusive(str(error)))
        except OutOfBudget:
            return self._record(group, inconclusive("the time limit left no time for it"))
        if found.status is GradientStatus.INCONCLUSIVE:
            found = self._beside.judged(group, window, found) or found
        if found.status in (GradientStatus.FAIL, GradientStatus.INCONCLUSIVE):
            held = self._off_tape.held_constant(group, found)
            if held is not None:
                return self._record(group, held.measurement, culprits=held.culprits, signature=_held(held.measurement))
        loop = self._host_loop.found(group, window, found)
        if loop:
            ruled = self._host_loop.arbitrated(group, window, found)
            if isinstance(ruled, str):
                signature = Signature(SignatureKind.HOST_LOOP, loop)
                return self._record(group, inconclusive(f"{loop}; {ruled}", found), signature=signature)
            if ruled is not found:
                blamed = self._host_loop.to_blame(group, ruled) if ruled.status is GradientStatus.FAIL else ()
                repairs = (Repair.HOST,) if blamed else ()
                signature = Signature(SignatureKind.HOST_LOOP, loop)
                return self._record(group, ruled, repairs, culprits=blamed, signature=signature)
        if may_be_swallowed(found) and group.used is not None and self._window == 0:
            return self._dead(group, found)  # once in a run: to build kernels again takes seconds
        if found.status is not GradientStatus.FAIL:
            self._look_on(group, window, found)
            return self._record(group, found, signature=self._named(group, window, found))
        return self._explained(group, found)

    @cached_property
    def _in_double(self) -> InDouble:
        from warplint.verify.engine.judging.in_double import InDouble  # seldom needed

        return InDouble(self._machine, self.analysis, self._clock)

    def _dead(self, group: Group, found: Measurement) -> Gradient:
        """Where no difference is left: what the launches alone say in double precision."""
        with suppress(OutOfBudget):
            rng = np.random.default_rng(self._seed)
            found, wrong = self._in_double.tried(group, found, rng)
            for check in wrong:
                self._send(check)
            if wrong:
                text = f"the adjoint of `{wrong[0].kernel}` is wrong by itself, in double precision"
                signature = Signature(
                    SignatureKind.WRONG_ADJOINT, text, operation=wrong[0].kernel, at=wrong[0].launched
                )
                return self._record(group, found, signature=signature)
        return self._record(group, found, signature=self._signatures.of_undecided(group, found))

    def _named(self, group: Group, window: Window, found: Measurement) -> Signature | None:
        """What is to be said of a gradient that differences do not refute."""
        with suppress(OutOfBudget):
            self._clock.require()
            if found.status is GradientStatus.PASS:
                return self._signatures.of_right(group, window, found)
            return self._signatures.of_undecided(group, found)
        return None

    def _look_on(self, group: Group, window: Window, found: Measurement) -> None:
        """Whether loops of the window, which the right gradient passes, had come to their answers."""
        if group.used is not None:
            with suppress(OutOfBudget):
                for loop in FixedPoints(self.analysis, self._clock).unconverged(group, window, found):
                    self._send(replace(loop, leaf=leaf_name(group.leaf)))

    def _measured(self, group: Group, window: Window, remaining: int) -> Measurement:
        """With as much effort as falls to this group, and more where that leaves a used gradient undecided."""
        used, again = group.used is not None, group.leaf.memory in self._right
        effort = self._allowance.effort(window, remaining, used=used, again=again)
        found = self._tried(group, window, effort)
        harder = self._allowance.harder(window, effort) if used else None
        if found.status is GradientStatus.INCONCLUSIVE and harder is not None:
            found = self._tried(group, window, harder)
        if found.status is GradientStatus.PASS and len(found.judged) > 1:
            self._right.add(group.leaf.memory)
        return found

    def _tried(self, group: Group, window: Window, effort: Effort) -> Measurement:
        found = self._measurer.measure(group, window, effort)
        self._allowance.spent += window.work * sum(direction.evaluations for direction in found.judged)
        return found

    def _may_try_harder(self, group: Group) -> bool:
        return group.used is not None and self._clock.aim_left > -2.0 * self._clock.aim

    def _obstacle(self, group: Group) -> str:
        if group.unknown:
            return group.unknown
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

    # why it is wrong ------------------------------------------------------------------------------------------------

    def _explained(self, group: Group, found: Measurement) -> Gradient:
        telling = measured(found.vectors, found.judged)
        try:
            backward = BackwardPass(self._machine, self.analysis, group)
            if not np.array_equal(backward.gradient(frozenset()), group.consumed, equal_nan=True):
                return self._record(group, found, signature=self._signatures.of(group, found))
            diagnosis = diagnose(backward, telling, self.analysis)
            wrong = self._wrong_kernels(group) if diagnosis is None else frozenset()
            if wrong:
                backward = BackwardPass(self._machine, self.analysis, group, wrong)
                diagnosis = diagnose(backward, telling, self.analysis, (Repair.KERNEL,))
        except (TooLarge, OutOfBudget):
            return self._record(group, found, signature=self._signatures.of(group, found))
        if diagnosis is None:
            from warplint.verify.engine.judging.recorded_functions import RecordedFunctions  # seldom needed

            refuted = tuple(RecordedFunctions(self._machine, self._measurer).refuted(group))
            for check in refuted:
                self._send(check)
            doubted = _doubted(found)
            if doubted is not found:
                return self._record(group, doubted)
            return self._record(group, found, signature=self._signatures.of(group, found, refuted=refuted))
        culprits = self._culprits(backward, telling, diagnosis.repairs)
        launches = [call for call in first_launches(self.analysis) if id(call.kernel) in wrong]
        signature = self._signatures.of(group, found, diagnosis.repairs, launches)
        return self._record(group, found, diagnosis.repairs, diagnosis.others, culprits, signature)

    def _culprits(
        self, backward: BackwardPass, telling: Sequence[Measured], repairs: tuple[Repair, ...]
    ) -> tuple[Culprit, ...]:
        finder = Culprits(backward, self.analysis, telling, repairs, lambda: self._clock.left > 0)
        return tuple(culprit for repair in repairs for culprit in finder.of(repair))

    # the answer -----------------------------------------------------------------------------------------------------

    def _record(
        self,
        group: Group,
        found: Measurement,
        repairs: tuple[Repair, ...] = (),
        others: tuple[tuple[Repair, ...], ...] = (),
        culprits: tuple[Culprit, ...] = (),
        signature: Signature | None = None,
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
            signature=named(signature, leaf_name(leaf)),
            repaired_by=repairs,
            culprits=culprits,
            consumed_at=places(group.used.stack) if group.used is not None else (),
            also_repaired_by=others,
            method=found.method,
            repetition=repetition(self.analysis, group, found) if self._window == 0 else None,
            window=self._window,
        )


def _doubted(found: Measurement) -> Measurement:
    """A failure that nothing explains, of a leaf whose other directions are rough, is no proof.

    Silhouettes and contacts make the objective jump: the tape leaves the jumps out, differences take them in.
    """
    failed = [direction for direction in found.judged if direction.status is GradientStatus.FAIL]
    rough = [d for d in found.judged if d.status is GradientStatus.INCONCLUSIVE and d.reason.startswith(ROUGH)]
    if len(rough) < len(failed):
        return found
    return otherwise(found, GradientStatus.INCONCLUSIVE, f"rough in other directions ({rough[0].reason})")


def _overrun(call: KernelCall, memory: Memory) -> KernelCheck:
    """A launch that writes behind the end of an array: found by what lies there, before it destroys anything."""
    of = memory.gradient_of if memory.gradient_of is not None else memory
    what = "the gradient of the array" if memory.gradient_of is not None else "the array"
    where = f" allocated at {place(of.stack)}" if of.stack else ""
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


def _importance(group: Group) -> tuple[bool, int, int]:
    """Gradients that somebody uses first, in the order of the program."""
    return (group.used is None, group.number, group.stop)


def _held(found: Measurement) -> Signature:
    """Of a gradient that is right with something held as it came out."""
    return Signature(SignatureKind.HELD_CONSTANT, found.reason)

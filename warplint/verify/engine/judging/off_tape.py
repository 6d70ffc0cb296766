"""Whether a gradient is right once what no tape recorded is held as it came out: data, or a surrogate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warplint.dataclass import dataclass
from warplint.proof import Repair
from warplint.verify.engine.differences.finite_difference import OutOfBudget
from warplint.verify.engine.differences.measure import FULL, LESS, Measurement, Measurer, inconclusive, otherwise, shown
from warplint.verify.engine.execution.memory import Memory
from warplint.verify.engine.execution.operations import KernelCall, NativeCall, Operation
from warplint.verify.engine.judging.contributions import Summed, may_be_swallowed
from warplint.verify.engine.judging.culprits import places
from warplint.verify.engine.replaying.groups import Group
from warplint.verify.engine.replaying.replay import Machine, NotExact
from warplint.verify.engine.replaying.windows import Window
from warplint.verify.records import Culprit, GradientStatus


@dataclass(frozen=True)
class Held:
    """What is so with operations held as they came out; ``cut`` are those between the tape's recordings that cut it."""

    measurement: Measurement
    cut: tuple[Operation, ...] = ()

    @property
    def culprits(self) -> tuple[Culprit, ...]:
        """Where the gradient stops, each statement once: whether it is meant to, only the program's author knows."""
        stacks = dict.fromkeys(places(operation.stack) for operation in self.cut)
        return tuple(Culprit(Repair.TAPED, writer=stack) for stack in stacks)


@dataclass(frozen=True)
class OffTape:
    """Looks at the operations of a group's window that no tape recorded."""

    machine: Machine
    measurer: Measurer

    def held_constant(self, group: Group, found: Measurement) -> Held | None:
        """Does the gradient agree when what no tape recorded is held as it came out?

        Of what came before the tape was entered, that is collected data, and the gradient is right; of what ran between
        its recordings (a solver with an adjoint of its own, or launches that were forgotten) nobody can tell.
        """
        if found.ad == 0.0:
            return None
        off_tape = self._depending(group, list(self._off_tape(group)))
        opened = when_opened(group)
        before = [index for index in off_tape if index < opened]
        if before:
            again = self._holding(group, before)
            reason = (
                f"with what was computed before the tape held constant ({shown(self.machine.log[before[0]])}), as data"
            )
            if again.status is GradientStatus.PASS:
                return Held(otherwise(again, GradientStatus.PASS, f"{reason}: {again.reason}"))
            if again.status is GradientStatus.INCONCLUSIVE:
                return Held(otherwise(found, GradientStatus.INCONCLUSIVE, f"{reason}: {again.reason}"))
        if len(off_tape) == len(before) or self._holding(group, off_tape).status is not GradientStatus.PASS:
            return None
        between = [self.machine.log[index] for index in off_tape if index >= opened]
        first = shown(between[0])
        reason = (
            f"as the program computes it the difference is {found.fd:.5g}, the tape {found.ad:.5g}; with what no tape "
            f"recorded held constant ({first}) they agree: a surrogate, or launches forgotten on it"
        )
        return Held(otherwise(found, GradientStatus.INCONCLUSIVE, reason), tuple(between))

    def _holding(self, group: Group, held: Sequence[int]) -> Measurement:
        try:
            window = Window(self.machine, self.measurer.analysis, group.start, group.backwards, frozenset(held))
            found = self.measurer.measure(group, window, FULL if group.used is not None else LESS)
            if group.used is not None and may_be_swallowed(found):
                return Summed(self.measurer.analysis, self.measurer.clock).measure(group, window, found)
            return found
        except (NotExact, OutOfBudget) as error:
            return inconclusive(str(error) or "no time was left")

    def _depending(self, group: Group, indices: Sequence[int]) -> list[int]:
        """Those of the operations that hang on the leaf, memory by memory."""
        wanted = set(indices)
        hanging, found = {group.leaf.memory}, list[int]()
        for operation in self.machine.log.between(group.start, group.stop):
            if operation.inside is None and any(w.memory in hanging for w in self.measurer.analysis.reads(operation)):
                hanging.update(where.memory for where, _ in self.measurer.analysis.writes(operation))
                if operation.index in wanted:
                    found.append(operation.index)
        return found

    def _off_tape(self, group: Group) -> Iterator[int]:
        """Operations of the window that no tape recorded; none where one of them makes the loss itself."""
        losses = {begin.loss.memory for begin in group.backwards if begin.loss is not None}
        found: list[int] = []
        for operation in self.machine.log.between(group.start, group.stop):
            if operation.inside is not None or getattr(operation, "entry", None) is not None:
                continue
            if isinstance(operation, KernelCall) or (isinstance(operation, NativeCall) and operation.reads):
                written: set[Memory] = {where.memory for where, _ in self.measurer.analysis.writes(operation)}
                if written & losses:
                    return
                if written - self.machine.log.gradients:
                    found.append(operation.index)
        yield from found


def when_opened(group: Group) -> int:
    """When the tapes of the group were first entered to record what the group differentiates."""
    found: list[int] = []
    for begin in group.backwards:
        times = [entry.time for entry in begin.entries if entry is not None]
        recent = [time for time in times if time >= group.start] or times or [begin.index]
        found.extend([index for index in begin.tape.entered if index <= min(recent)][-1:] or [min(recent)])
    return min(found)

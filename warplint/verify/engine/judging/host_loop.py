"""Host data in the loop: what the replay cannot follow, the program itself is asked, run again from a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from warplint.dataclass import dataclass
from warplint.verify.engine.differences.finite_difference import (
    DirectionVector,
    OutOfBudget,
    combine,
    judge_direction,
)
from warplint.verify.engine.differences.measure import Measurement, Measurer, resolution, shown
from warplint.verify.engine.differences.precision import EPS32
from warplint.verify.engine.execution.operations import HostRead, HostWrite, KernelCall, Operation
from warplint.verify.engine.judging import passed_over
from warplint.verify.engine.judging.arbiter import Question, Reserve, Snapshot, Unanswered
from warplint.verify.engine.judging.off_tape import when_opened
from warplint.verify.engine.replaying.groups import Group
from warplint.verify.engine.replaying.replay import Machine, NotExact
from warplint.verify.engine.replaying.windows import Window
from warplint.verify.records import Culprit

FORK_BUDGET = 16
FORK_DIRECTIONS = 3
"""Evaluations and directions where each evaluation is a run of the program."""


@dataclass(frozen=True)
class HostLoop:
    """Looks for host data between a leaf and the loss."""

    machine: Machine
    measurer: Measurer
    reserve: Reserve | None

    def found(self, group: Group, window: Window, found: Measurement) -> str:
        """Whether something that hangs on the leaf went to the host before something came back from it."""
        returned = self._returned(group, window)
        if not returned or not found.vectors:
            return ""
        downloads = [
            operation
            for operation in self.machine.log.between(group.start, returned[-1].index)
            if isinstance(operation, HostRead) and operation.source.memory not in self.machine.log.gradients
        ]
        vector = found.vectors[0]
        still = window.states_at(downloads, group.leaf, lambda old: old)
        moved = window.states_at(downloads, group.leaf, lambda old: vector.moved(old, 1e-2))
        for mark, one, other in zip(downloads, still, moved, strict=True):
            back = next((operation for operation in returned if operation.index > mark.index), None)
            if back is not None and not np.array_equal(one, other):
                return (
                    f"data that hangs on this leaf goes to the host ({shown(mark)}) and host data comes back "
                    f"({shown(back)}): running the recorded operations again cannot follow it"
                )
        return ""

    def _returned(self, group: Group, window: Window) -> list[Operation]:
        """What comes from the host after the tape was entered: what came before is data, as far as the tape goes."""
        opened = when_opened(group)
        return [operation for operation in self._from_host(group, window) if operation.index >= opened]

    def _from_host(self, group: Group, window: Window) -> Iterator[Operation]:
        """Uploads, and launches with a floating-point argument that this kernel was never given before."""
        asked = {operation.index for operation in window.operations}
        given: set[tuple[int, int, bytes]] = set()
        for operation in self.machine.log.between(self.machine.log.base, group.stop):
            if isinstance(operation, HostWrite) and operation.index in asked:
                yield operation
            elif isinstance(operation, KernelCall):
                values = {(id(operation.kernel), at, bytes(operation.params[at])) for at in operation.layout.values}
                if operation.index in asked and not values <= given:
                    yield operation
                given |= values

    def arbitrated(self, group: Group, window: Window, found: Measurement) -> Measurement | str:
        """Ask the program itself: ``found`` where the replay follows it, what it says where not; else why not.

        The leaf is moved when the tape is entered: what came before is data.
        """
        if any(begin.loss is None for begin in group.backwards):
            return "the program, run again, is asked for a loss, and was given seeds in its place"
        opened = max(when_opened(group), group.start)
        snapshot = self._snapshot(group, opened)
        if snapshot is None or not found.vectors:
            return "there is no snapshot of the process to run it again from"
        leaf, patience = group.leaf, min(30.0, max(self.measurer.clock.left / 4.0, 1.0))

        def fork(vector: DirectionVector, step: float) -> float:
            self.measurer.clock.require()
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
            taped = Window(self.machine, self.measurer.analysis, opened, group.backwards)
            replayed = taped.evaluate({}, lambda old: vector.moved(old, step), leaf) - window.unmoved
            rounded = 64 * max(EPS32, resolution(group)) * abs(window.unmoved)
            if abs(asked - replayed) <= 0.02 * max(abs(asked), abs(replayed)) + rounded:
                return found
            return self._measured(group, found, fork)
        except (Unanswered, OutOfBudget, NotExact) as error:
            return str(error) or "no time was left"

    def to_blame(self, group: Group, ruled: Measurement) -> tuple[Culprit, ...]:
        """The host's writes that account for all that is wrong with a gradient; none where they do not."""
        opened = max(when_opened(group), group.start)
        try:
            window = Window(self.machine, self.measurer.analysis, opened, group.backwards)
            window.run_everything()  # what a write has thrown away is left out otherwise
            return passed_over.culprits(group, window, ruled.vectors, self._returned(group, window))
        except (OutOfBudget, NotExact):
            return ()

    def _snapshot(self, group: Group, opened: int) -> Snapshot | None:
        """A snapshot from before the leaf is read on the tape.

        To run several windows again takes long: only for a gradient that is used.
        """
        unused = group.used is None and len(group.backwards) > 1
        if self.reserve is None or group.rewrites or unused:
            return None
        leaf = group.leaf
        read = [
            operation.index
            for operation in self.measurer.analysis.of(leaf.memory)
            if operation.index >= opened
            and any(where.overlaps(leaf.range) for where in self.measurer.analysis.reads(operation))
        ]
        return self.reserve.before(min([group.backwards[0].index, *read]))

    def _measured(
        self, group: Group, found: Measurement, fork: Callable[[DirectionVector, float], float]
    ) -> Measurement:
        epsilon = resolution(group)
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

"""Functions that a tape recorded (``record_func``): is what they make of the gradients right? Two cuts tell.

The gradient that such a function finds belongs to the state at which it was recorded, the gradient that it leaves to
the state after the entry before it. Where finite differences from the later cut bear the gradients out, and those from
the earlier cut do not, the function between them is wrong.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from warplint.dataclass import dataclass
from warplint.verify.engine.differences.finite_difference import OutOfBudget
from warplint.verify.engine.differences.measure import LESS, Measurement, Measurer, inconclusive
from warplint.verify.engine.execution.memory import Memory
from warplint.verify.engine.execution.operations import BackwardBegin, Entry, Operation
from warplint.verify.engine.recording.user_frames import is_user_file
from warplint.verify.engine.replaying.groups import Group
from warplint.verify.engine.replaying.leaves import Leaf, seen_as
from warplint.verify.engine.replaying.replay import Machine, NotExact
from warplint.verify.engine.replaying.windows import Window
from warplint.verify.engine.warp_functions import place_of
from warplint.verify.records import AdjointCheck, GradientStatus

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Cut:
    """An array, the gradient that the backward pass holds for it at a cut, and where the cut is."""

    leaf: Leaf
    gradient: Floats
    at: int


@dataclass(frozen=True)
class RecordedFunctions:
    """Looks at the functions that the tapes of a wrong gradient recorded."""

    machine: Machine
    measurer: Measurer

    def refuted(self, group: Group) -> Iterator[AdjointCheck]:
        """The functions of the user's whose gradients part from finite differences, each with the array where."""
        for begin in group.backwards:
            for entry in begin.entries:
                if entry is not None and entry.what == "function" and _is_users(entry.thing):
                    check = self._check(group, begin, entry)
                    if check is not None:
                        yield check

    def _check(self, group: Group, begin: BackwardBegin, entry: Entry) -> AdjointCheck | None:
        own = self._operations(begin, entry)
        if not own:
            return None
        found, left = self._cuts(begin, entry, own)
        later = [self._measured(group, begin, cut) for cut in found]
        if any(each.status is GradientStatus.FAIL for each in later):
            return None
        if not any(each.status is GradientStatus.PASS for each in later):
            return None
        for cut in left:
            told = self._measured(group, begin, cut)
            if told.status is GradientStatus.FAIL:
                defined = place_of(entry.thing)
                return AdjointCheck(defined[2], defined, told.status, told.reason, told.ad, told.fd, cut.leaf.parameter)
        return None

    def _operations(self, begin: BackwardBegin, entry: Entry) -> list[Operation]:
        if begin.end is None:
            return []
        return [each for each in self.machine.log.between(begin.index, begin.end.index) if each.step is entry]

    def _cuts(self, begin: BackwardBegin, entry: Entry, own: list[Operation]) -> tuple[list[_Cut], list[_Cut]]:
        """The gradients that the function found, and those that it changed; one that it cleared is none of these."""
        first, last = own[0].index, own[-1].index
        gradients = [memory for memory in self.machine.touched(first, last + 1) if memory.gradient_of is not None]
        leaves = {memory: leaf for memory in gradients if (leaf := self._leaf(memory)) is not None}
        self.machine.rewind(first)
        before = {memory: leaf.gradient.read().astype(np.float64) for memory, leaf in leaves.items()}
        self.machine.run(first, last + 1)
        after = {memory: leaf.gradient.read().astype(np.float64) for memory, leaf in leaves.items()}
        earlier = self._after_entry_before(begin, entry)
        found = [
            _Cut(leaves[m], before[m], entry.time) for m in leaves if before[m].any() and not _grew(before, after, m)
        ]
        left = [_Cut(leaves[m], after[m], earlier) for m in leaves if _grew(before, after, m)]
        return found, left

    def _leaf(self, gradient: Memory) -> Leaf | None:
        owner = gradient.gradient_of
        return next(seen_as(owner, gradient, self.measurer.analysis), None) if owner is not None else None

    def _after_entry_before(self, begin: BackwardBegin, entry: Entry) -> int:
        times = [e.time for e in begin.entries if e is not None and e.forward is not None and e.time < entry.time]
        opened = [index for index in begin.tape.entered if index <= entry.time]
        return max([*(time + 1 for time in times), *opened[-1:]], default=self.machine.log.base)

    def _measured(self, group: Group, begin: BackwardBegin, cut: _Cut) -> Measurement:
        asked = Group(cut.leaf, group.number, (begin,), cut.at, (), cut.gradient, group.used, cut.at)
        try:
            return self.measurer.measure(asked, Window(self.machine, self.measurer.analysis, cut.at, (begin,)), LESS)
        except (NotExact, OutOfBudget) as error:
            return inconclusive(str(error))


def _grew(before: dict[Memory, Floats], after: dict[Memory, Floats], memory: Memory) -> bool:
    return bool(after[memory].any()) and not np.array_equal(before[memory], after[memory])


def _is_users(function: object) -> bool:
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    return code is not None and is_user_file(code.co_filename)

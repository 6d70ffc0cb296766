"""What the backward calls of a window differentiate: losses, outputs with seeds, what gradients hold by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from warplint.dataclass import dataclass
from warplint.verify.engine.execution.accesses import view_of
from warplint.verify.engine.execution.log import Log
from warplint.verify.engine.execution.memory import Memory, Range
from warplint.verify.engine.execution.operations import BackwardBegin, Entry, KernelCall
from warplint.verify.engine.execution.views import FloatView
from warplint.verify.engine.replaying.analysis import Analysis
from warplint.verify.engine.replaying.groups import goes_on_from, handed_on_by
from warplint.verify.engine.replaying.replay import NotExact
from warplint.verify.engine.warp_bodies import sums
from warplint.verify.engine.warp_values import Scalars, descriptor, dimensions


@dataclass(frozen=True)
class Loss:
    """The scalar that was given to ``backward``."""

    where: Range
    scalars: Scalars

    def value(self) -> float:
        """In float64."""
        assert self.scalars.kind is not None
        return float(self.where.read().view(self.scalars.kind)[0])


@dataclass(frozen=True)
class Seeded:
    """``sum(seed * output)``: what a backward call with seeds differentiates."""

    view: FloatView
    seed: npt.NDArray[np.float64]

    def value(self) -> float:
        """In float64."""
        return float(np.sum(self.view.read().astype(np.float64) * self.seed))


Term = Loss | Seeded


class Objective:
    """The objective of a window with these backward calls: the sum of what each of them differentiates."""

    def __init__(self, log: Log, analysis: Analysis, backwards: Sequence[BackwardBegin]) -> None:
        self._log = log
        self._analysis = analysis
        self._backwards = tuple(backwards)

    def terms(self, begin: BackwardBegin) -> Iterator[Term]:
        """What a backward call differentiates, as the gradients and losses in memory are now: just before it.

        Raises:
            NotExact: where that is no sum which the window can be asked for.
        """
        if begin.loss is not None and begin.loss_kind.kind is not None:
            yield Loss(begin.loss, begin.loss_kind)
        for array, seed, scalars in begin.seeds:
            if scalars.kind is not None and not self._is_handed_on(FloatView.of(seed, scalars), begin):
                yield Seeded(FloatView.of(array, scalars), FloatView.of(seed, scalars).read().astype(np.float64))
        yield from self._seeds_in_gradients(begin, explicit=begin.loss is not None or bool(begin.seeds))

    def _is_handed_on(self, seed: FloatView, begin: BackwardBegin) -> bool:
        """Whether a seed is the gradient itself that a backward of this window left: part of its objective already."""
        memory = self._log.memories.find(seed.address)
        if memory is None or memory not in self._log.gradients:
            return False
        return handed_on_by(memory, begin, self._analysis) in self._backwards

    def _seeds_in_gradients(self, begin: BackwardBegin, explicit: bool) -> Iterator[Seeded]:
        """Without a loss, whatever the gradients of the tape's results hold is the seed.

        What a backward has left there whose tape goes on from these results (tapes run backwards through time) is a
        seed even beside a loss, but where that backward lies in the window, it belongs to its objective already.
        """
        seen = {int(array.data) for array, _, _ in begin.seeds}  # what these held is replaced by what they are given
        for entry in reversed(begin.entries):
            call = entry.forward if entry is not None else None
            if not isinstance(call, KernelCall):
                continue
            for slot in call.layout.slots:
                view = view_of(call, slot)
                grad = int(descriptor(call.params[slot.parameter], slot.offset).grad)
                if view is None or not grad or view.address in seen:
                    continue
                access = self._analysis.survey.accesses.of(call, slot)
                seed = view.at(grad).read().astype(np.float64)
                memory = self._log.memories.find(grad)
                giver = handed_on_by(memory, begin, self._analysis) if memory is not None else None
                if giver in self._backwards or (explicit and not self._is_link(giver, call, view)):
                    continue
                if access.writes and seed.any():
                    self._require_own(begin, call, view, memory)
                    seen.add(view.address)
                    yield Seeded(view, seed)

    def _require_own(self, begin: BackwardBegin, last: KernelCall, view: FloatView, gradient: Memory | None) -> None:
        """Raise :class:`NotExact` where other tapes went on with what ``last`` left, and are seeded otherwise.

        Tapes that add to one array and are run backwards from one seed each differentiate what they have added: the
        array, counted once, is the objective of them all.
        """
        made = self._log.range(view.address, 1)
        if made is None:
            return
        own = {id(entry) for entry in begin.entries}
        for operation in self._log.between(last.index + 1, begin.index):
            entry = getattr(operation, "entry", None)
            if entry is None or id(entry) in own:
                continue
            for where, access in self._analysis.writes(operation):
                if where.overlaps(made) and not (access.adds and self._is_seeded_alike(entry, begin, gradient)):
                    raise NotExact(
                        "several tapes add to one array whose gradient was seeded by hand: give each its own"
                    )

    def _is_seeded_alike(self, entry: Entry, begin: BackwardBegin, gradient: Memory | None) -> bool:
        """Whether the entry's tape is run backwards in this window, from what ``begin`` found in ``gradient``."""
        of = [each for each in self._backwards if any(entry is other for other in each.entries)]
        if len(of) != 1 or gradient is None:
            return False
        between = self._log.between(begin.index, of[0].index)
        return not any(
            where.memory is gradient
            for operation in between
            if operation.inside is None
            for where, _ in self._analysis.writes(operation)
        )

    def _is_link(self, giver: BackwardBegin | None, call: KernelCall, view: FloatView) -> bool:
        made = self._log.range(view.address, 1)
        return giver is not None and made is not None and goes_on_from(giver, call, made, self._analysis)

    def has_links(self, begin: BackwardBegin) -> bool:
        """Whether an earlier backward call may have left a gradient that this one takes for a seed beside its loss."""
        earlier = [other for other in self._log.backwards if other.index < begin.index and other not in self._backwards]
        return bool(earlier) and any(True for _ in self._links(begin))

    def _links(self, begin: BackwardBegin) -> Iterator[FloatView]:
        """What the tape's launches write, where its gradient was handed on by a backward that went on from it."""
        for entry in begin.entries:
            call = entry.forward if entry is not None else None
            if not isinstance(call, KernelCall):
                continue
            for slot in call.layout.slots:
                view = view_of(call, slot)
                grad = int(descriptor(call.params[slot.parameter], slot.offset).grad)
                memory = self._log.memories.find(grad) if view is not None and grad else None
                giver = handed_on_by(memory, begin, self._analysis) if memory is not None else None
                if view is not None and giver not in self._backwards and self._is_link(giver, call, view):
                    yield view


def terms_added(backwards: Sequence[BackwardBegin]) -> int:
    """How many numbers are added in turn to make the losses, as the texts of the kernels tell; at least 1."""
    terms = 1
    for begin in backwards:
        for entry in begin.entries:
            call = entry.forward if entry is not None else None
            if isinstance(call, KernelCall) and begin.loss is not None and begin.loss.memory in call.touched:
                terms = max(terms, _added_by(call, begin.loss))
    return terms


def _added_by(call: KernelCall, loss: Range) -> int:
    """How many threads of a launch add to a loss; 0 where that is not known."""
    summed = sums(call.kernel)
    views = [view_of(call, slot) for slot in call.layout.slots if slot.path in summed]
    threads = math.prod(dimensions(call.params[0]))
    return threads if any(view is not None and view.address == loss.address for view in views) else 0

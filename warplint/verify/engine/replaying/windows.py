"""A window of the log that is run again and again with a leaf moved: the objective of finite differences."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from warplint.dataclass import dataclass
from warplint.verify.engine.execution.memory import Bytes, Contents, Memory, Range
from warplint.verify.engine.execution.operations import (
    BackwardBegin,
    HostRead,
    HostWrite,
    KernelCall,
    NativeCall,
    Operation,
)
from warplint.verify.engine.execution.work import CALL, seconds_of
from warplint.verify.engine.replaying.analysis import Analysis
from warplint.verify.engine.replaying.leaves import Leaf
from warplint.verify.engine.replaying.objective import Loss, Objective, Term
from warplint.verify.engine.replaying.recycling import Recycled, recycled
from warplint.verify.engine.replaying.replay import Machine, NotExact
from warplint.verify.engine.replaying.slices import resume
from warplint.verify.engine.replaying.steps import Frozen, Runnable, Step, number_of, touched_by

Mover = Callable[[npt.NDArray[np.generic]], npt.NDArray[np.generic]]
"""The leaf's numbers, moved."""


BEYOND_DOUBT = 4.0
DEAR = 0.1
"""Seconds, told from sizes, of an evaluation that is worth being put off until it is needed."""
LONG = 0.02
"""An evaluation that takes so many seconds of the processor, and so many times what its sizes tell, computes much."""


class Window:
    """Operations ``[start, stop]`` of a log, from the state before ``start``; ``backwards`` lie in it.

    ``held`` are operations whose results are repeated instead of being computed again, besides those that hand
    gradients on. Only the steps that the objective hangs on are run, as far as the kernels' accesses tell; where that
    turns out to be wrong (:meth:`check`), all of them. ``seconds`` is what one evaluation takes. Raises
    :class:`NotExact` where the objective does not come out bit for bit; of a dear window :meth:`confirm` tells that.
    """

    def __init__(
        self,
        machine: Machine,
        analysis: Analysis,
        start: int,
        backwards: Sequence[BackwardBegin],
        held: frozenset[int] = frozenset(),
    ) -> None:
        self.start = start
        self.stop = backwards[-1].index
        self.backwards = tuple(backwards)
        self.terms: dict[int, tuple[Term, ...]] = {}
        self._since = {begin.index: base for begin in backwards if (base := self._added_onto(analysis, begin))}
        self._machine = machine
        self._analysis = analysis
        self._log = machine.log
        self._objective = Objective(machine.log, analysis, backwards)
        self._held = held
        self._all: list[Operation | Frozen] = []
        self._steps: list[Step] = []
        self._exactly = False
        self._live: frozenset[Memory] = frozenset()
        self._sparing: Recycled | None = None
        self._asked: _Asked | None = None
        self._own: dict[Memory, Bytes] = {}
        self._moved: Memory | None = None
        self._base = self._prepare()
        self._steps = list(self._needed())
        self._told = seconds_of(self.operations)
        self.unmoved = self._recorded
        """The objective with nothing moved."""
        self.seconds = 0.0
        self.is_exact = False
        """Whether the objective was seen to come out bit for bit."""
        if self._may_wait:
            self._sparing = recycled(self._steps, self._term_memories(), analysis)
        else:
            self.confirm()

    @property
    def _may_wait(self) -> bool:
        """Whether it is dear to run, and the program itself has told what comes out.

        Three witnesses that agree (two differences and the gradient) need no fourth: it is asked where they do not.
        """
        told_by_log = all(begin.loss_bytes is not None for begin in self.backwards) and not self._ran_once
        return self._analysis.survey.large and told_by_log and self._told > DEAR

    def confirm(self) -> bool:
        """See that the objective comes out bit for bit; True where figures from before still stand.

        Those that were told in less memory stand if one of them comes out alike in the program's own.
        """
        if self.is_exact:
            return True
        self.unmoved = self.evaluate({}, _unmoved)
        self.is_exact = stands = _same(self.unmoved, self._recorded)
        spared, self._sparing = self._sparing, None
        if stands and spared is not None and self._asked is not None:
            return _same(self.evaluate(self._asked.rewrites, self._asked.move, self._asked.leaf), self._asked.found)
        if not stands:
            self.run_everything()
        if not _same(self.unmoved, self._recorded):
            raise NotExact(f"the replayed objective is {self.unmoved!r}, the program's was {self._recorded!r}")
        return stands

    @property
    def work(self) -> float:
        """Seconds that one evaluation takes, told from what it runs; from the clock only where that is far off."""
        return max(self._told * self.underrated, CALL)

    @property
    def described(self) -> str:
        """What one evaluation is, in words."""
        touched = {memory for operation in self.operations for memory in operation.touched}
        size = sum(memory.size for memory in touched) / 1e6
        return f"each evaluation runs {len(self.operations):,} operations on {size:,.3g} MB"

    @property
    def underrated(self) -> float:
        """How many times more the kernels compute than their sizes tell, where that is beyond doubt; else 1."""
        ratio = self.seconds / max(self._told, CALL)
        return ratio if ratio > BEYOND_DOUBT and self.seconds > LONG else 1.0

    def run_everything(self) -> None:
        """Leave nothing out, and begin each time with all that the window touches as it was."""
        self._exactly = self.is_exact = True
        self._own.clear()
        self._moved = None
        self._all.clear()
        self.terms.clear()
        self._base = self._prepare()
        self._steps = list(self._all)
        self.unmoved = self.evaluate({}, _unmoved)

    def check(self, rewrites: dict[int, Range], move: Mover, leaf: Leaf) -> float:
        """The objective with the leaf moved, and the same with no step left out; from now on so where they differ."""
        short = self.objective(rewrites, move, leaf)
        self._asked = _Asked(rewrites, move, leaf, short)
        kept = {id(step) for step in self._steps}
        if all(id(step) in kept or _is_exact(step) for step in self._all):
            return short  # what is left out does nothing but overwrite what nothing reads
        steps, self._steps = self._steps, list(self._all)
        whole = self.evaluate(rewrites, move, leaf)
        if _same(whole, short):
            self._steps = steps
        return whole

    # preparing ----------------------------------------------------------------------------------------------------

    def _prepare(self) -> Contents:
        """Run the window once, and make its steps; what it returns must be put back before they are run again."""
        span = self._log.between(self.start, self.stop + 1)
        steps = [operation for operation in span if self._is_step(operation)]
        recorded = None if any(map(self._is_repeated, steps)) else self._recorded_losses()
        self._ran_once = recorded is None
        base = self._at_start()
        if recorded is not None:
            self._recorded, self._all = recorded, list(steps)
            self._machine.holder = self
            return base
        others = [begin for begin in self._since.values() if begin not in self.backwards]
        read = {self._overwritten(begin): begin for begin in (*self.backwards, *others)}
        self._recorded = 0.0
        seen: dict[int, float] = {}
        for operation in self._log.between(self.start, self.stop + 1):
            begin = read.get(operation.index)
            if begin is not None:
                self.terms[begin.index] = tuple(self._objective.terms(begin)) if begin in self.backwards else ()
                self._recorded += self._value_at(begin, seen)
                self._all.append(begin)
            if isinstance(operation, BackwardBegin):
                if operation in self.backwards and not operation.loss_is_as_recorded():
                    raise NotExact("running the recorded operations again does not give the program's loss bit for bit")
                continue
            if self._is_of_gradients(operation):
                operation.run()
            elif self._is_repeated(operation):
                self._all.append(self._freeze(operation))
            elif isinstance(operation, KernelCall | NativeCall | HostWrite):
                operation.run()
                self._all.append(operation)
        return base

    def _is_step(self, operation: Operation) -> bool:
        if isinstance(operation, BackwardBegin):
            return operation in self.backwards
        return isinstance(operation, KernelCall | NativeCall | HostWrite) and not self._is_of_gradients(operation)

    def _recorded_losses(self) -> float | None:
        """The program's own objective, where it is the sum of losses as the log has them; None where it takes a run."""
        if self._exactly or self._since:
            return None
        total = 0.0
        for begin in self.backwards:
            kind = begin.loss_kind.kind if begin.loss is not None else None
            if begin.loss is None or begin.loss_bytes is None or kind is None or begin.seeds:
                return None
            if self._overwritten(begin) != begin.index or self._objective.has_links(begin):
                return None
            self.terms[begin.index] = (Loss(begin.loss, begin.loss_kind),)
            total += float(begin.loss_bytes.view(kind)[0])
        return total

    def _at_start(self) -> Contents:
        """Bring memory to the beginning of the window, and copy what its steps need of that and overwrite."""
        if self._exactly:
            self._machine.rewind(self.start)
            return Contents(self._machine.touched(self.start, self.stop))
        span = self._log.between(self.start, self.stop + 1)
        evaluated = [each for each in span if not self._is_of_gradients(each) and not isinstance(each, HostRead)]
        written = {where.memory for operation in evaluated for where, _ in self._analysis.writes(operation)}
        touched = {memory for operation in evaluated for memory in operation.touched}
        leaves = {memory for memory in touched - written if memory.grad is not None}
        liveness = self._analysis.survey.liveness
        self._live = liveness.at_start(evaluated) | leaves
        now = liveness.at_start(span) if self._ran_once else frozenset()
        resume(self._machine, self._analysis, self.start, self._live | now)
        self._own.update((memory, memory.read()) for memory in leaves)
        return Contents(self._live & written)

    def _value_at(self, begin: BackwardBegin, seen: dict[int, float]) -> float:
        """What a backward call adds to the objective; ``seen`` are the losses at earlier ones, by their numbers."""
        if begin.loss is not None and begin.loss_kind.kind is not None:
            seen[begin.index] = Loss(begin.loss, begin.loss_kind).value()
        base = self._since.get(begin.index)
        return sum(term.value() for term in self.terms[begin.index]) - (seen[base.index] if base is not None else 0.0)

    def _added_onto(self, analysis: Analysis, begin: BackwardBegin) -> BackwardBegin | None:
        """The earlier backward, of another recording, onto whose loss this one adds: it differentiates the rest.

        None: the loss was cleared or made anew since, or both are backwards of one recording.
        """
        loss = begin.loss
        if loss is None or begin.loss_kind.kind is None:
            return None
        own = {id(entry) for entry in begin.entries}
        for earlier in reversed([each for each in analysis.log.backwards if self.start <= each.index < begin.index]):
            if earlier.loss is None or not earlier.loss.overlaps(loss):
                continue
            between = analysis.log.between(earlier.index, begin.index)
            again = any(id(entry) in own for entry in earlier.entries if entry is not None)
            return None if again or any(_replaces(operation, loss, analysis) for operation in between) else earlier
        return None

    def _overwritten(self, begin: BackwardBegin) -> int:
        """The operation before which the loss is read: the backward, or what overwrites the loss before it.

        A loss that is cleared between the recording and the backward is differentiated all the same.
        """
        loss = begin.loss
        if loss is None:
            return begin.index

        def writes(operation: Operation) -> bool:
            return any(where.overlaps(loss) for where, _ in self._analysis.writes(operation))

        taped = [entry.forward for entry in begin.entries if entry is not None and entry.forward is not None]
        last = max((forward.index for forward in taped if writes(forward)), default=begin.index)
        later = self._log.between(last + 1, begin.index)
        return next((each.index for each in later if _replaces(each, loss, self._analysis)), begin.index)

    def _is_of_gradients(self, operation: Operation) -> bool:
        """Whether an operation belongs to a backward call, or does nothing but to gradients."""
        if operation.inside is not None and not isinstance(operation, BackwardBegin):
            return True
        touched = operation.touched
        return bool(touched) and all(memory in self._log.gradients for memory in touched)

    def _is_repeated(self, operation: Operation) -> bool:
        return operation.index in self._held or self._hands_gradients_on(operation)

    def _hands_gradients_on(self, operation: Operation) -> bool:
        gradients = self._log.gradients
        if not any(memory in gradients for memory in operation.touched):
            return False
        reads = any(where.memory in gradients for where in self._analysis.reads(operation))
        return reads and any(where.memory not in gradients for where, _ in self._analysis.writes(operation))

    def _freeze(self, operation: Operation) -> Frozen:
        before = Contents(operation.touched)
        operation.run()
        made = Frozen(operation)
        for where, _ in self._analysis.writes(operation):
            memory = where.memory
            if memory in self._log.gradients or any(memory is done for done, _ in made.images):
                continue
            if operation.index in self._held or not np.array_equal(memory.live(), before.saved[memory]):
                made.images.append((memory, memory.read()))
        return made

    def _needed(self) -> Iterator[Operation | Frozen]:
        """The steps that the objective hangs on, going back from it."""
        wanted = set(self._term_memories())
        kept: list[Operation | Frozen] = []
        for step in reversed(self._all):
            if isinstance(step, BackwardBegin):
                kept.append(step)
                continue
            if isinstance(step, Frozen):
                written = ends = {memory for memory, _ in step.images}
            else:
                written = {where.memory for where, _ in self._analysis.writes(step)}
                ends = set(self._analysis.survey.liveness.of(step).ends)
            if written & wanted or (isinstance(step, NativeCall) and not step.exact):
                wanted -= ends
                wanted.update(memory for memory in touched_by(step) if memory not in ends)
                kept.append(step)
        return reversed(kept)

    def _term_memories(self) -> list[Memory]:
        found: list[Memory] = []
        for terms in self.terms.values():
            for term in terms:
                address = term.where.address if isinstance(term, Loss) else term.view.address
                memory = self._log.memories.find(address)
                if memory is not None:
                    found.append(memory)
        return found

    # evaluating ---------------------------------------------------------------------------------------------------

    @property
    def operations(self) -> list[Operation]:
        """What one evaluation runs."""
        return [step for step in self._steps if isinstance(step, Operation) and not isinstance(step, BackwardBegin)]

    @contextmanager
    def replaced(self, steps: Mapping[int, Runnable]) -> Iterator[None]:
        """Run other steps in the place of some, by the numbers of their operations."""
        kept = self._steps
        self._steps = [steps.get(number_of(step), step) for step in kept]
        try:
            yield
        finally:
            self._steps = kept

    @contextmanager
    def inserted(self, steps: Mapping[int, Sequence[Runnable]]) -> Iterator[None]:
        """Run steps besides, each list after all operations up to a number."""
        kept, left = self._steps, sorted(steps)
        made: list[Step] = []
        for step in kept:
            while left and number_of(step) > left[0]:
                made.extend(steps[left.pop(0)])
            made.append(step)
        self._steps = [*made, *(step for number in left for step in steps[number])]
        try:
            yield
        finally:
            self._steps = kept

    def restore(self, *besides: Memory) -> None:
        """Bring the memory of the window to its beginning, as far as its operations look at it, and some besides."""
        if self._exactly:
            self._machine.rewind(self.start)
        else:
            resume(self._machine, self._analysis, self.start, self._live.union(besides))
        self._machine.holder = self

    def values_of(self, leaf: Leaf) -> npt.NDArray[np.generic]:
        """The leaf's numbers at the window's beginning."""
        contents = self._own.get(leaf.memory, self._base.saved.get(leaf.memory))
        if contents is None:
            self.restore(leaf.memory)
            return leaf.view.read()
        return leaf.view.at(contents.ctypes.data + leaf.view.address - leaf.memory.address).read()

    def objective(self, rewrites: dict[int, Range], move: Mover, leaf: Leaf) -> float:
        """Like :meth:`evaluate`, for who looks at nothing else: what lies between may be made in less memory."""
        sparing = self._sparing
        if sparing is None or sparing.instead_of is not self._steps or leaf.memory in sparing.moved:
            return self.evaluate(rewrites, move, leaf)
        steps, self._steps = self._steps, sparing.steps
        try:
            return self.evaluate(rewrites, move, leaf)
        finally:
            self._steps = steps

    def evaluate(self, rewrites: dict[int, Range], move: Mover, leaf: Leaf | None = None) -> float:
        """The objective with the leaf moved at the start, and again where ``rewrites`` overwrite it."""
        if self._machine.holder is not self:
            self.restore()
        began = time.process_time()
        self._base.restore()
        if self._moved is not None:
            self._moved.write(self._own[self._moved])
        if leaf is not None:
            self._remember(leaf.memory)
            leaf.view.write(move(leaf.view.read()))
        total = 0.0
        seen: dict[int, float] = {}
        for step in self._steps:
            if isinstance(step, BackwardBegin):
                total += self._value_at(step, seen)
                continue
            step.run()
            if leaf is not None and rewrites and isinstance(step, Operation) and step.index in rewrites:
                _move_again(leaf, rewrites[step.index], move)
        self.seconds = self.seconds or time.process_time() - began
        return total

    def _remember(self, memory: Memory) -> None:
        """Keep what a memory holds that is about to be moved, where it is not put back anyway."""
        self._moved = None if memory in self._base.saved else memory
        if self._moved is not None and memory not in self._own:
            self.restore(memory)
            self._own[memory] = memory.read()

    def states_at(self, marks: Sequence[HostRead], leaf: Leaf, move: Mover) -> list[Bytes]:
        """What the host would have read at ``marks`` with the leaf moved."""
        wanted = {mark.index: mark for mark in marks}
        found: list[Bytes] = []
        self._remember(leaf.memory)
        self.restore(leaf.memory, *(mark.source.memory for mark in marks))
        leaf.view.write(move(leaf.view.read()))
        steps = {step.index if isinstance(step, Operation) else step.operation.index: step for step in self._all}
        for index in range(self.start, self.stop):
            if index in wanted:
                found.append(wanted[index].source.read())
            elif index in steps:
                steps[index].run()
        return found


@dataclass(frozen=True)
class _Asked:
    """An evaluation, and what came of it."""

    rewrites: dict[int, Range]
    move: Mover
    leaf: Leaf
    found: float


def _is_exact(step: Step) -> bool:
    """Whether it is known to the byte what an operation writes."""
    return isinstance(step, HostWrite) or (isinstance(step, NativeCall) and step.exact)


def _unmoved(values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    return values


def _replaces(operation: Operation, loss: Range, analysis: Analysis) -> bool:
    """Whether an operation outside backward puts other contents in the place of a loss, and does not add to it."""
    return operation.inside is None and any(
        where.overlaps(loss) and not access.reads and not access.adds for where, access in analysis.writes(operation)
    )


def _same(one: float, other: float) -> bool:
    return one == other or (one != one and other != other)


def _move_again(leaf: Leaf, overwritten: Range, move: Mover) -> None:
    """Move the leaf, but only where it was just overwritten."""
    before = leaf.range.read()
    leaf.view.write(move(leaf.view.read()))
    start, stop = leaf.range.start, leaf.range.stop
    keep_low, keep_high = max(start, overwritten.start), min(stop, overwritten.stop)
    leaf.memory.write(before[: keep_low - start], start)
    leaf.memory.write(before[keep_high - start :], keep_high)


def rewritten(group_rewrites: Sequence[int], leaf: Leaf, analysis: Analysis) -> dict[int, Range]:
    """Which bytes of the leaf each of the operations overwrites."""
    found: dict[int, Range] = {}
    for index in group_rewrites:
        for where, _ in analysis.writes(analysis.log[index]):
            if where.overlaps(leaf.range):
                found[index] = where
    return found

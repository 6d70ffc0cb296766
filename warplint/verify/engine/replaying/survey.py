"""One run of a log before anything is asked: is it exact, and what does each kernel do with its arrays?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from warplint.verify.engine.execution.accesses import REPEATS, AccessTable
from warplint.verify.engine.execution.memory import LARGE, Contents, Memory
from warplint.verify.engine.execution.operations import (
    BackwardBegin,
    BackwardEnd,
    HostRead,
    HostWrite,
    KernelCall,
    NativeCall,
    Operation,
)
from warplint.verify.engine.replaying.liveness import Liveness
from warplint.verify.engine.replaying.past_gradients import PastGradients
from warplint.verify.engine.replaying.replay import Machine


class Survey:
    """One run of the log.

    ``inexact`` are the backward calls whose loss did not come out bit for bit; ``exact`` says that all memory did. Of
    a log that touches much memory (``large``) no copies are made to compare, and what nothing is to be learned from is
    not run: a backward call of which only gradients are used that were kept, what comes after the last question.
    Whether the losses come out bit for bit that it does not come to, each :class:`Window` sees for itself. Where it is
    only to be learned what kernels do, and the log has what their first launches found, these alone are run.
    """

    def __init__(self, machine: Machine) -> None:
        self.accesses = AccessTable()
        self.liveness = Liveness(machine.log, self.accesses)
        self.gradients = PastGradients(machine)
        self.inexact: set[int] = set()
        self.exact = True
        self.large = False
        self.changed: dict[int, frozenset[Memory]] = {}
        """For native utilities whose arguments do not say it: the memories that changed."""
        self.overruns: list[tuple[KernelCall, Memory]] = []
        """Launches that write behind the end of an allocation, once for each memory."""
        self._machine = machine
        self._overrun = False
        self._spared = -1
        """The end of the last backward call that is not run."""
        self._put_off: dict[Memory, Operation] = {}
        """Overwritings of whole memories that nothing has looked at yet, nor perhaps ever will."""
        self._launched: set[int] = set()

    def run(self) -> None:
        """Run the log from its first checkpoint; memory is left as :class:`PastGradients` knows."""
        log = self._machine.log
        touched = self._machine.touched(log.base, log.next_index)
        self._overrun = any(memory.canary_is_dead() for memory in touched)
        for memory in touched:
            memory.guard()
        if sum(memory.size for memory in touched) <= LARGE:
            self._run_and_compare(Contents(touched))
            return
        self.large = True
        if self._is_learned_alone():
            self.gradients.begin_at(log.next_index)
            self._learn_alone()
            return
        stop = log.next_index if self._overrun else self._last_asked() + 1
        log.checkpoints.restore(0)
        self._machine.run(log.base, stop, self._visit)
        if self._spared < 0 and not self._put_off:
            self.gradients.begin_at(stop)

    def _run_and_compare(self, end: Contents) -> None:
        log = self._machine.log
        log.checkpoints.restore(0)
        self._machine.run(log.base, log.next_index, self._visit)
        differing = [memory for memory, copy in end.saved.items() if not np.array_equal(memory.live(), copy)]
        self.exact = not differing
        end.restore()
        self.gradients.begin_at(log.next_index)

    def _is_learned_alone(self) -> bool:
        """Whether all that a run would tell is what kernels do with their arrays, and their launches can run alone."""
        log = self._machine.log
        if self._overrun or log.handles:
            return False
        launched: Counter[int] = Counter()
        for operation in log.operations:
            if operation.graph is not None or (isinstance(operation, NativeCall) and not operation.exact):
                return False
            if isinstance(operation, KernelCall) and not operation.adjoint:
                launched[id(operation.kernel)] += 1
                if operation.layout.unseen:
                    return False
                if launched[id(operation.kernel)] <= REPEATS and operation.index not in log.found.contents:
                    return False
        return True

    def _learn_alone(self) -> None:
        """Run the first launches of each kernel on what they found; memory is left as it is."""
        for operation in self._machine.log.operations:
            found = self._machine.log.found.contents.get(operation.index)
            if found is not None and isinstance(operation, KernelCall) and self.accesses.wants(operation):
                now = Contents(operation.touched)
                found.restore()
                self.accesses.learn(operation)
                now.restore()

    def _last_asked(self) -> int:
        """The last operation that something is to be learned from."""
        log = self._machine.log
        ends = [begin.end.index for begin in log.backwards[:-1] if begin.end is not None]
        last = max(ends, default=log.base) if log.backwards else log.next_index - 1
        seen: set[int] = set()
        for operation in log.operations:
            asked = self._from_graph(operation) or (isinstance(operation, NativeCall) and not operation.exact)
            if isinstance(operation, KernelCall) and not operation.adjoint and id(operation.kernel) not in seen:
                seen.add(id(operation.kernel))
                asked = True
            if asked:
                last = max(last, operation.index)
        return last

    def _look_behind(self, call: KernelCall) -> None:
        """Notice a launch that leaves the bounds of an array; each memory once, since its guard is broken then."""
        for memory in call.touched:
            if memory.padded and memory.canary_is_dead():
                memory.guard()
                if all(other is not memory for _, other in self.overruns):
                    self.overruns.append((call, memory))

    def _from_graph(self, operation: Operation) -> bool:
        """Operations of a captured graph ran natively: what gradients held in between is learnt only now."""
        return operation.graph is not None and operation.inside is None

    def _follows_backward(self, operation: Operation) -> bool:
        log = self._machine.log
        return operation.index > log.base and isinstance(log[operation.index - 1], BackwardEnd)

    def _keep_gradients(self, operation: Operation) -> None:
        log = self._machine.log
        self._make_good(operation.touched)
        for memory in operation.touched:
            if memory in log.gradients:
                log.keep_gradient(memory, operation.index)

    def _visit(self, operation: Operation) -> bool:
        if operation.index <= self._spared or (self.large and self._is_put_off(operation)):
            return True
        if self._from_graph(operation):
            self._keep_gradients(operation)
        if self.large and self._follows_backward(operation):
            later = self._machine.log.between(operation.index, self._machine.log.next_index)
            needed = self.liveness.at_start(later)
            self._make_good(needed)
            self._machine.keep(operation.index, needed)
        if isinstance(operation, KernelCall):
            self._launch(operation)
            return True
        if isinstance(operation, BackwardBegin):
            self._make_good((operation.loss.memory,) if operation.loss is not None else ())
            if not operation.loss_is_as_recorded():
                self.inexact.add(operation.number)
            if self.large and not self._overrun and self._spare(operation):
                return True
        if isinstance(operation, NativeCall) and not operation.exact:
            before = Contents(operation.touched)
            operation.run()
            changed = [m for m, copy in before.saved.items() if not np.array_equal(m.live(), copy)]
            self.changed[operation.index] = frozenset(changed)
            return True
        return False

    def _launch(self, call: KernelCall) -> None:
        if call.entry is not None and id(call.kernel) not in self._launched:
            self._launched.add(id(call.kernel))
            self._make_good(call.touched)
            found = self._machine.log.found
            found.add(call, 2 * found.limit)  # of a captured graph nothing was kept while it ran
        self._catch_up(call)
        if not self.accesses.learn(call):
            call.run()
        if self._overrun:
            self._look_behind(call)

    # overwritings that are put off ------------------------------------------------------------------------------------

    def _is_put_off(self, operation: Operation) -> bool:
        """Put an operation off that does nothing but overwrite a memory; another is preceded by what it may look at."""
        if isinstance(operation, NativeCall) and operation.exact and not operation.reads:
            ends = self.liveness.of(operation).ends
            if ends and not self._overrun:
                self._put_off.update(dict.fromkeys(ends, operation))
                return True
        if not isinstance(operation, KernelCall):  # of a launch it is asked once it may be known what it overwrites
            self._catch_up(operation)
        return False

    def _catch_up(self, operation: Operation) -> None:
        """Do what was put off, as far as the operation may look at it."""
        if self._put_off:
            ends = self.liveness.of(operation).ends
            for memory in ends:
                self._put_off.pop(memory, None)
            self._make_good(operation.touched)

    def _make_good(self, memories: Iterable[Memory]) -> None:
        """Overwrite those of the memories for which that was put off."""
        for memory in memories:
            late = self._put_off.pop(memory, None)
            if late is not None:
                late.run()

    # backward calls that are not run ----------------------------------------------------------------------------------

    def _spare(self, begin: BackwardBegin) -> bool:
        """Leave a backward call out where all that it hands on are gradients of which the log has copies.

        These are put there, so that what follows finds what it found.
        """
        log, end = self._machine.log, begin.end
        if end is None or begin.graph is not None:
            return False
        inside = log.between(begin.index, end.index)
        later = log.between(end.index + 1, log.next_index)
        if not all(map(self._makes_gradients_only, inside)):
            return False
        made = {memory for operation in inside for memory in operation.touched if memory in log.gradients}
        handed_on = self.liveness.at_start(later) & made
        first: dict[Memory, Operation] = {}
        for operation in later:
            for memory in (operation.source.memory,) if isinstance(operation, HostRead) else operation.touched:
                first.setdefault(memory, operation)
        kept = {memory: log.copy_at_use(memory, first[memory]) if memory in first else None for memory in handed_on}
        if any(copy is None for copy in kept.values()):
            return False
        for memory, copy in kept.items():
            assert copy is not None
            self._put_off.pop(memory, None)
            memory.write(copy)
        self._spared = end.index
        return True

    def _makes_gradients_only(self, operation: Operation) -> bool:
        """Whether an operation inside a backward call leaves everything as it is but gradients."""
        if isinstance(operation, KernelCall):
            return operation.adjoint
        if isinstance(operation, NativeCall):
            return operation.exact and all(where.memory in self._machine.log.gradients for where in operation.writes)
        return not isinstance(operation, HostWrite)

"""Running a log again: states rebuilt from checkpoints, bit for bit, and windows of it with something changed."""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection

import numpy as np

from warplint.verify.engine.execution.accesses import AccessTable
from warplint.verify.engine.execution.log import Log
from warplint.verify.engine.execution.memory import LARGE, Contents, Memory, reuse_freed
from warplint.verify.engine.execution.operations import BackwardBegin, BackwardEnd, KernelCall, NativeCall, Operation
from warplint.verify.engine.replaying.liveness import Liveness


class NotExact(Exception):
    """The replay does not reproduce what the program computed: no verdict may rest on it."""


class Machine:
    """Runs operations of a log in this process's memory. Only for a process that may be thrown away."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.holder: object = None
        """Who has last set memory to a state of its own, and may rely on it; None once anything else has run."""
        self._milestones: dict[int, Contents] = {}
        reuse_freed()
        gc.freeze()  # what the program holds is no garbage of this process's, and need not be looked through

    def rewind(self, index: int) -> None:
        """Bring memory to the state just before operation ``index``."""
        epoch = self.log.checkpoints.at(index)
        self.log.checkpoints.restore(max(epoch, 0))
        self.run(self.log.checkpoints.starts[max(epoch, 0)], index)

    def keep(self, index: int, memories: Collection[Memory]) -> None:
        """Memory is as it was before operation ``index``: keep what the later operations need of it, if it fits."""
        if sum(memory.size for memory in memories) <= LARGE:
            self._milestones[index] = Contents(memories)

    def resume(self, index: int) -> None:
        """Like :meth:`rewind`, but only as far as it takes to run the operations from ``index`` on, forward.

        Memories that these overwrite before they look at them may hold anything.
        """
        epoch = max(self.log.checkpoints.at(index), 0)
        start = self.log.checkpoints.starts[epoch]
        near = max((kept for kept in self._milestones if start < kept <= index), default=None)
        if near is None:
            self.rewind(index)
            return
        self._milestones[near].restore()
        self.run(near, index)

    def run(self, start: int, stop: int, before: Callable[[Operation], bool] | None = None) -> None:
        """Run operations ``[start, stop)``; ``before`` sees each one first and may say that it has run it itself."""
        self.holder = None
        for operation in self.log.between(start, stop):
            if before is None or not before(operation):
                operation.run()

    def touched(self, start: int, stop: int) -> dict[Memory, None]:
        """Memories that the operations ``[start, stop)`` touch, in the order of their first touch."""
        found: dict[Memory, None] = {}
        for operation in self.log.between(start, stop):
            found.update(dict.fromkeys(operation.touched))
        return found


class Survey:
    """One run of the whole log: is it exact, and what does each kernel do with its arrays?

    ``inexact`` are the backward calls whose loss did not come out bit for bit; ``exact`` says that all memory did. Of
    a log that touches much memory no copies are made to compare, and what is asked nothing of is not run.
    """

    def __init__(self, machine: Machine) -> None:
        self.accesses = AccessTable()
        self.liveness = Liveness(machine.log, self.accesses)
        self.inexact: set[int] = set()
        self.exact = True
        self.changed: dict[int, frozenset[Memory]] = {}
        """For native utilities whose arguments do not say it: the memories that changed."""
        self.overruns: list[tuple[KernelCall, Memory]] = []
        """Launches that write behind the end of an allocation, once for each memory."""
        self._machine = machine
        self._overrun = False
        self._keeps = False

    def run(self) -> None:
        """Run the log from its first checkpoint to its end; memory is left as the log leaves it (``Log.settle``)."""
        log = self._machine.log
        touched = self._machine.touched(log.base, log.next_index)
        self._overrun = any(memory.canary_is_dead() for memory in touched)
        for memory in touched:
            memory.guard()
        if sum(memory.size for memory in touched) <= LARGE:
            self._run_and_compare(Contents(touched))
            return
        self._keeps = True
        stop = log.next_index if self._overrun else self._last_asked() + 1
        log.checkpoints.restore(0)
        self._machine.run(log.base, stop, self._visit)
        self._machine.holder = self
        log.settle = lambda: self._go_on(stop)

    def _run_and_compare(self, end: Contents) -> None:
        log = self._machine.log
        log.checkpoints.restore(0)
        self._machine.run(log.base, log.next_index, self._visit)
        differing = [memory for memory, copy in end.saved.items() if not np.array_equal(memory.live(), copy)]
        self.exact = not differing
        end.restore()

    def _go_on(self, start: int) -> None:
        """Bring memory to the end, from operation ``start``, where it still is unless something else has run."""
        machine, log = self._machine, self._machine.log
        if machine.holder is not self:
            machine.rewind(start)
        machine.run(start, log.next_index)
        machine.holder = self
        log.settle = lambda: self._go_on(log.next_index)

    def _last_asked(self) -> int:
        """The last operation that something is to be learned from."""
        log = self._machine.log
        last = log.backwards[-1].index if log.backwards else log.next_index - 1
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
        for memory in operation.touched:
            if memory in log.gradients:
                log.keep_gradient(memory, operation.index)

    def _visit(self, operation: Operation) -> bool:
        if self._from_graph(operation):
            self._keep_gradients(operation)
        if self._keeps and self._follows_backward(operation):
            log = self._machine.log
            later = log.between(operation.index, log.next_index)
            self._machine.keep(operation.index, self.liveness.at_start(later))
        if isinstance(operation, KernelCall):
            if not self.accesses.learn(operation):
                operation.run()
            if self._overrun:
                self._look_behind(operation)
            return True
        if isinstance(operation, BackwardBegin) and not _loss_is_as_recorded(operation):
            self.inexact.add(operation.number)
        if isinstance(operation, NativeCall) and not operation.exact:
            before = Contents(operation.touched)
            operation.run()
            changed = [m for m, copy in before.saved.items() if not np.array_equal(m.live(), copy)]
            self.changed[operation.index] = frozenset(changed)
            return True
        return False


def _loss_is_as_recorded(begin: BackwardBegin) -> bool:
    if begin.loss is None or begin.loss_bytes is None:
        return True
    return bool(np.array_equal(begin.loss.read(), begin.loss_bytes))

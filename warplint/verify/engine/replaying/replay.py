"""Running a log again: states are rebuilt from checkpoints, bit for bit, by running operations."""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection

from warplint.verify.engine.execution.log import Log
from warplint.verify.engine.execution.memory import LARGE, Contents, Memory, reuse_freed
from warplint.verify.engine.execution.operations import KernelCall, Operation


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
        near = self.nearest(index)
        if near not in self._milestones:
            self.rewind(index)
            return
        self._milestones[near].restore()
        self.run(near, index)

    def nearest(self, index: int) -> int:
        """The last operation up to ``index`` of which it is known what memory held before it."""
        start = self.log.checkpoints.starts[max(self.log.checkpoints.at(index), 0)]
        return max((kept for kept in self._milestones if start < kept <= index), default=start)

    def put_back(self, start: int, memories: Collection[Memory]) -> bool:
        """Bring memories to what they held before ``start``, a :meth:`nearest` operation; False: not known of all."""
        kept = self._milestones.get(start)
        if kept is not None and not all(memory in kept.saved for memory in memories):
            return False
        self.holder = None
        if kept is None:
            self.log.checkpoints.restore(max(self.log.checkpoints.at(start), 0), memories)
            return True
        for memory in memories:
            memory.write(kept.saved[memory])
        return True

    def give_found(self, call: KernelCall) -> bool:
        """Bring what the launch touches to what it found; False: that was not kept, or handles stand for more."""
        kept = self.log.found.contents.get(call.index)
        if kept is None or self.log.handles:
            return False
        self.holder = None
        kept.restore()
        return True

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

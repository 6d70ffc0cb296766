"""What memory held at each operation of a window: versions, kept where it changed."""

from __future__ import annotations

import bisect

import numpy as np

from warplint.verify.engine.execution.memory import Bytes, Memory, Range
from warplint.verify.engine.replaying.replay import Machine

BUDGET = 1 << 30
"""Bytes of versions that are kept at most."""


class TooLarge(Exception):
    """The versions do not fit into the budget."""


class History:
    """The contents of some memories around every operation in ``[start, stop)``; leaves memory at ``stop``."""

    def __init__(self, machine: Machine, start: int, stop: int, memories: set[Memory]) -> None:
        machine.rewind(start)
        self._indices: dict[Memory, list[int]] = {memory: [start - 1] for memory in memories}
        self._versions: dict[Memory, list[Bytes]] = {memory: [memory.read()] for memory in memories}
        size = sum(memory.size for memory in memories)
        for operation in machine.log.between(start, stop):
            operation.run()
            for memory in operation.touched:
                if memory in memories and not np.array_equal(memory.live(), self._versions[memory][-1]):
                    size += memory.size
                    if size > BUDGET:
                        raise TooLarge
                    self._indices[memory].append(operation.index)
                    self._versions[memory].append(memory.read())

    def before(self, memory: Memory, index: int) -> int:
        """The number of the version that operation ``index`` finds."""
        return bisect.bisect_left(self._indices[memory], index) - 1

    def after(self, memory: Memory, index: int) -> int:
        """The number of the version that operation ``index`` leaves."""
        return bisect.bisect_right(self._indices[memory], index) - 1

    def knows(self, memory: Memory) -> bool:
        """Whether the versions of a memory were kept."""
        return memory in self._versions

    def contents(self, where: Range, version: int) -> Bytes:
        """The bytes of a range in one version of its memory."""
        return self._versions[where.memory][version][where.start : where.stop]

    def first_change(self, where: Range, version: int) -> int | None:
        """The first operation after ``version`` that changes a byte of the range; None where nothing does."""
        indices, versions = self._indices[where.memory], self._versions[where.memory]
        kept = self.contents(where, version)
        for later in range(version + 1, len(versions)):
            if not np.array_equal(versions[later][where.start : where.stop], kept):
                return indices[later]
        return None

"""What launches found in the memory that they touch, kept while the program runs: each can be run by itself later."""

from __future__ import annotations

from collections import Counter
from dataclasses import field

from warplint.dataclass import dataclass
from warplint.verify.engine.execution.accesses import REPEATS
from warplint.verify.engine.execution.memory import LARGE, Contents
from warplint.verify.engine.execution.operations import KernelCall


@dataclass
class Found:
    """Of the first launches of each kernel, and of the first on a tape, as many as fit into ``limit`` bytes."""

    limit: int = LARGE
    contents: dict[int, Contents] = field(default_factory=dict)
    """By the number of the launch in the log."""
    size: int = 0
    launched: Counter[int] = field(default_factory=Counter)
    """How often each kernel was launched, by its identity."""
    _taped: set[int] = field(default_factory=set)

    def keep(self, call: KernelCall) -> None:
        """The launch is about to run: keep what it finds, if its turn is still to come."""
        kernel = id(call.kernel)
        self.launched[kernel] += 1
        first_on_tape = call.active is not None and kernel not in self._taped
        if first_on_tape:
            self._taped.add(kernel)
        if not first_on_tape and self.launched[kernel] > REPEATS:
            return
        self.add(call, self.limit)

    def add(self, call: KernelCall, limit: int) -> None:
        """Keep what the launch finds unless that is known, or is more than ``limit`` bytes with the rest."""
        size = sum(memory.size for memory in call.touched)
        if call.index not in self.contents and self.size + size <= limit:
            self.size += size
            self.contents[call.index] = Contents(call.touched)

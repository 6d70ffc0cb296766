"""What gradients held when the program used or cleared them: as it was kept, or by running the log again."""

from __future__ import annotations

from warplint.verify.engine.execution.log import Digest
from warplint.verify.engine.execution.memory import Bytes, Memory
from warplint.verify.engine.replaying.replay import Machine, NotExact


class PastGradients:
    """Asked in the order of the log, gradients that nobody kept cost one run in all: memory stays where it was read."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._position = 0

    def begin_at(self, index: int) -> None:
        """Memory is as it was before operation ``index``."""
        self._machine.holder = self
        self._position = index

    def at(self, memory: Memory, index: int) -> Bytes:
        """What the gradient in ``memory`` held before operation ``index``, which uses or clears it, or at the end.

        Raises:
            NotExact: running again does not give what the program has cleared.
        """
        log = self._machine.log
        version = log.gradient_before(memory, index) if index < log.next_index else None
        if version is None:
            return self._read(memory, log.next_index)
        number, kept = version
        if not isinstance(kept, Digest):
            return kept
        contents = self._read(memory, number)
        if Digest.of(memory) != kept:
            raise NotExact("running the recorded operations again does not give the program's gradient bit for bit")
        return contents

    def run_for(self, memory: Memory, index: int) -> int:
        """How far the log must be run again to tell :meth:`at`; -1 where a copy was kept."""
        log = self._machine.log
        version = log.gradient_before(memory, index) if index < log.next_index else None
        if version is None:
            return log.next_index
        return version[0] if isinstance(version[1], Digest) else -1

    def _read(self, memory: Memory, index: int) -> Bytes:
        machine = self._machine
        if machine.holder is self and self._position <= index:
            machine.run(self._position, index)
        else:
            machine.rewind(index)
        self.begin_at(index)
        return memory.read()

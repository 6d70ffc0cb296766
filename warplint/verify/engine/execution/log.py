"""The log of one process: operations in order, memories, checkpoints, tapes, backward calls."""

from __future__ import annotations

import bisect
from dataclasses import field
from typing import Any

import numpy as np

from warplint.dataclass import dataclass
from warplint.verify.engine.execution.found import Found
from warplint.verify.engine.execution.memory import (
    LARGE,
    Bytes,
    Checkpoints,
    CodeStack,
    Memory,
    MemoryTable,
    Range,
)
from warplint.verify.engine.execution.operations import (
    BackwardBegin,
    Entry,
    Happening,
    HostWrite,
    Operation,
    TapeRecord,
)


@dataclass
class Handle:
    """A mesh, a hash grid, a bounding volume hierarchy: its identifier and the memories that it was made from."""

    identifier: int
    kind: str
    memories: tuple[Memory, ...]


@dataclass(frozen=True)
class Digest:
    """A sum over what a memory held: enough to see whether running again gives the same."""

    words: int
    rest: int

    @classmethod
    def of(cls, memory: Memory) -> Digest:
        """Of what it holds now."""
        live = memory.live()
        whole = live.size - live.size % 8
        words = live[:whole].view(np.uint64)
        return cls(int(np.add.reduce(words, dtype=np.uint64)), int(live[whole:].sum()))


def _is_still(memory: Memory, kept: Bytes | Digest) -> bool:
    """Whether a memory holds what was kept of it; not known of a digest alone."""
    return not isinstance(kept, Digest) and np.array_equal(memory.live(), kept)


@dataclass
class Log:
    """Everything that was recorded since the log began; ``base`` is the number of its first operation."""

    operations: list[Operation] = field(default_factory=list)
    base: int = 0
    memories: MemoryTable = field(default_factory=MemoryTable)
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    tapes: list[TapeRecord] = field(default_factory=list)
    backwards: list[BackwardBegin] = field(default_factory=list)
    handles: dict[int, Handle] = field(default_factory=dict)
    gradients: set[Memory] = field(default_factory=set)
    """Memories that were seen as the gradient of another."""
    kernels: dict[int, Any] = field(default_factory=dict)
    """Kernel objects by identity, kept alive."""
    declared: dict[int, tuple[Any, int, CodeStack]] = field(default_factory=dict)
    """Kernel objects, the number in the log at which each was made, and where."""
    deferred: list[tuple[Any, int, Memory]] = field(default_factory=list)
    """Frees that wait: (native function, address, memory)."""
    deferred_bytes: int = 0
    copied_bytes: int = 0
    """Of copies that the log keeps besides checkpoints: what gradients held, what came from the host."""
    launches: int = 0
    taped: int = 0
    backward_count: int = 0
    graphs_opaque: int = 0
    """Captured graphs that were launched, and what they did is not in the log."""
    opaque_reason: str = ""
    launched: dict[int, Entry] = field(default_factory=dict)
    """For entries that a tape took while a graph was captured: the copy that the graph's last launch made."""

    gradient_values: dict[Memory, list[tuple[int, Bytes | Digest]]] = field(default_factory=dict)
    """What gradients held when the program used them (read, handed on, cleared), with the number of that operation."""
    cleared_bytes: int = 0
    """Of gradients of which a copy was kept only since the program has cleared them."""
    found: Found = field(default_factory=Found)

    @property
    def next_index(self) -> int:
        """The number that the next operation gets."""
        return self.base + len(self.operations)

    def add(self, operation: Operation) -> None:
        """Append an operation that was made with :attr:`next_index`."""
        self.operations.append(operation)
        if isinstance(operation, HostWrite):
            self.copied_bytes += operation.contents.size

    def __getitem__(self, index: int) -> Operation:
        return self.operations[index - self.base]

    def between(self, start: int, stop: int) -> list[Operation]:
        """Operations number ``start`` up to, not including, ``stop``."""
        return self.operations[max(0, start - self.base) : max(0, stop - self.base)]

    def range(self, address: int, size: int) -> Range | None:
        """The range of memory at an address, if it is known."""
        return self.memories.range(address, size)

    def keep_gradient(self, memory: Memory, index: int | None = None) -> None:
        """Operation ``index`` (the next one) uses the gradient in ``memory``: keep what it holds."""
        kept = self.gradient_values.setdefault(memory, [])
        index = self.next_index if index is None else index
        place = bisect.bisect_right([number for number, _ in kept], index)
        if place == 0 or not _is_still(memory, kept[place - 1][1]):
            kept.insert(place, (index, memory.read()))
            self.copied_bytes += memory.size

    def keep_cleared(self, memory: Memory) -> None:
        """The next operation clears the gradient in ``memory`` unread: of large ones only a digest is kept.

        Nearly all of them are of arrays between, after which nobody asks; to have one back, the log is run again.
        """
        kept = self.gradient_values.get(memory, [])
        if kept and not isinstance(kept[-1][1], Digest) and _is_still(memory, kept[-1][1]):
            return
        if self.cleared_bytes + memory.size <= LARGE:
            self.cleared_bytes += memory.size
            self.keep_gradient(memory)
        else:
            self.gradient_values.setdefault(memory, []).append((self.next_index, Digest.of(memory)))

    def gradient_before(self, memory: Memory, index: int) -> tuple[int, Bytes | Digest] | None:
        """What the gradient in ``memory`` held before operation ``index``, which uses it or clears it, and since when.

        None where it was neither used nor cleared until then.
        """
        kept = self.gradient_values.get(memory, ())
        return next((version for version in reversed(kept) if version[0] <= index), None)

    def copy_at_use(self, gradient: Memory, user: Operation) -> Bytes | None:
        """What a gradient held when ``user`` came to it, outside backward; None where the log has no copy of that."""
        if user.inside is not None or user.graph is not None or isinstance(user, HostWrite):
            return None
        version = self.gradient_before(gradient, user.index)
        return version[1] if version is not None and not isinstance(version[1], Digest) else None

    def forget(self) -> None:
        """Begin anew: drop the operations (what was only told stays), and hand back what Python has released.

        Only where no question can concern the past any more: no tape holds an operation of it.
        """
        told = [operation for operation in self.operations if isinstance(operation, Happening)]
        self.base = self.next_index - len(told)
        for place, operation in enumerate(told):
            operation.index = self.base + place
        self.operations = list(told)
        self.checkpoints = Checkpoints()
        self.checkpoints.starts[0] = self.next_index
        for memory in self.memories.all:
            memory.epoch = -1
        for free, address, memory in self.deferred:
            self.memories.remove(memory)
            free(address)
        self.deferred.clear()
        self.deferred_bytes = self.copied_bytes = self.cleared_bytes = 0
        self.backwards.clear()
        self.gradient_values.clear()
        self.found = Found(self.found.limit)
        self.tapes.clear()
        self.launched.clear()
        self.gradients = {memory for memory in self.gradients if not memory.released}

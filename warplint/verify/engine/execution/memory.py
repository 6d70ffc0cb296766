"""Memory as the recorder sees it: allocations by address and generation, and copies of what they held.

Nothing is handed back once recording has begun, so an address means one allocation for as long as a log lives, and
everything that a recorded operation can reach by address is still there when it is run again.
"""

from __future__ import annotations

import bisect
import ctypes
from collections.abc import Collection, Iterable
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt

from warplint.dataclass import dataclass

Bytes = npt.NDArray[np.uint8]

CANARY = 0xC5
LARGE = 1 << 26
"""Bytes that are copied without a thought; of more than that only what is needed."""
PADDING = 64
"""Bytes behind each allocation, filled with :data:`CANARY`: an adjoint that writes out of bounds lands in them."""

CodeStack = tuple[tuple[Any, int], ...]
"""``(code object, line)`` of the user's frames, innermost first."""


@dataclass(eq=False)
class Memory:
    """One allocation. ``number`` is never used twice; ``foreign`` memory belongs to the host (numpy) and is only seen.

    ``epoch`` is the last epoch for which its contents were saved. ``views`` are the host's live windows on it.
    """

    number: int
    address: int
    size: int
    stack: CodeStack = ()
    made_by: str = ""
    foreign: bool = False
    born: int = 0
    released: bool = False
    taped: bool = False
    """An operation touched it while a tape was open."""
    epoch: int = -1
    padded: bool = False
    gradient_of: Memory | None = None
    grad: Memory | None = None
    dtype: str = ""
    shape: tuple[int, ...] = ()
    retain: bool = False
    handle: Any = None
    """A weak reference to the first ``wp.array`` on it."""
    owner: Any = None
    """Keeps a foreign memory's owner alive."""
    copied_from: Memory | None = None
    views: list[Any] = field(default_factory=list)
    shadow: Bytes | None = None
    """Its contents when an operation last touched it, kept while the host has a view: to notice silent writes."""

    @property
    def stop(self) -> int:
        """The address behind its last byte."""
        return self.address + self.size

    def read(self, start: int = 0, stop: int | None = None) -> Bytes:
        """A copy of its bytes ``[start, stop)``."""
        stop = self.size if stop is None else stop
        copy = np.empty(stop - start, dtype=np.uint8)
        if stop > start:
            ctypes.memmove(copy.ctypes.data, self.address + start, stop - start)
        return copy

    def write(self, contents: Bytes, start: int = 0) -> None:
        """Put ``contents`` there."""
        if contents.size:
            ctypes.memmove(self.address + start, contents.ctypes.data, contents.size)

    def live(self) -> Bytes:
        """Its bytes themselves, not a copy."""
        return live_bytes(self.address, self.size)

    def guard(self) -> None:
        """Put the canary behind its end (again)."""
        if self.padded:
            ctypes.memset(self.stop, CANARY, PADDING)

    def canary_is_dead(self) -> bool:
        """Whether something wrote behind its end."""
        return self.padded and bool((live_bytes(self.stop, PADDING) != CANARY).any())


def live_bytes(address: int, size: int) -> Bytes:
    """The process's memory at ``address`` as a numpy array; valid for as long as it is not handed back."""
    if size <= 0:
        return np.empty(0, dtype=np.uint8)
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def read_bytes(address: int, size: int) -> Bytes:
    """A copy of the process's memory at ``address``."""
    copy = np.empty(size, dtype=np.uint8)
    if size:
        ctypes.memmove(copy.ctypes.data, address, size)
    return copy


@dataclass(frozen=True)
class Range:
    """The bytes ``[start, stop)`` of a memory."""

    memory: Memory
    start: int
    stop: int

    @property
    def address(self) -> int:
        """Where it begins in the process."""
        return self.memory.address + self.start

    @property
    def size(self) -> int:
        """In bytes."""
        return self.stop - self.start

    def overlaps(self, other: Range) -> bool:
        """Whether they share a byte."""
        return self.memory is other.memory and self.start < other.stop and other.start < self.stop

    def covers(self, other: Range) -> bool:
        """Whether every byte of ``other`` lies in this one."""
        return self.memory is other.memory and self.start <= other.start and other.stop <= self.stop

    def read(self) -> Bytes:
        """A copy of its bytes."""
        return self.memory.read(self.start, self.stop)


class MemoryTable:
    """Finds the memory behind an address."""

    def __init__(self) -> None:
        self.all: list[Memory] = []
        self._addresses: list[int] = []
        self._sorted: list[Memory] = []
        self._at: dict[int, Memory] = {}

    def add(self, address: int, size: int, **fields: Any) -> Memory:
        """A new memory; what was known at the same addresses is forgotten (it must have been handed back)."""
        memory = Memory(len(self.all), address, size, **fields)
        self.all.append(memory)
        place = bisect.bisect_left(self._addresses, address)
        stop = place
        while stop < len(self._sorted) and self._addresses[stop] < memory.stop:
            stop += 1
        for old in self._sorted[place:stop]:
            self._at.pop(old.address, None)
        self._addresses[place:stop] = [address]
        self._sorted[place:stop] = [memory]
        self._at[address] = memory
        return memory

    def remove(self, memory: Memory) -> None:
        """Forget a memory that goes back to the allocator."""
        place = bisect.bisect_left(self._addresses, memory.address)
        if place < len(self._sorted) and self._sorted[place] is memory:
            del self._addresses[place], self._sorted[place]
            self._at.pop(memory.address, None)

    def find(self, address: int) -> Memory | None:
        """The memory that ``address`` lies in."""
        exact = self._at.get(address)
        if exact is not None:
            return exact
        place = bisect.bisect_right(self._addresses, address) - 1
        if place < 0:
            return None
        memory = self._sorted[place]
        return memory if address < memory.stop else None

    def range(self, address: int, size: int) -> Range | None:
        """The range of ``size`` bytes at ``address``, cut off at the end of its memory."""
        memory = self.find(address)
        if memory is None:
            return None
        start = address - memory.address
        return Range(memory, start, min(start + size, memory.size))


class Contents:
    """What some memories held at one moment."""

    def __init__(self, memories: Iterable[Memory] = ()) -> None:
        self.saved: dict[Memory, Bytes] = {memory: memory.read() for memory in memories}

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(copy.size for copy in self.saved.values())

    def restore(self) -> None:
        """Put everything back."""
        for memory, copy in self.saved.items():
            memory.write(copy)


def reuse_freed() -> None:
    """Have the C library keep what is freed for the next copy: a fresh page costs ten times the copying (measured).

    Only for a process that lives for a moment. Elsewhere than under glibc nothing happens.
    """
    try:
        configure = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    configure(_M_TRIM_THRESHOLD, (1 << 31) - 1)
    configure(_M_MMAP_THRESHOLD, 1 << 25)


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Of ``malloc.h``; 32 MB is the most that the second takes."""


class Checkpoints:
    """The contents at the beginning of each epoch, saved at the first touch of a memory in it.

    The state at the beginning of epoch ``e`` is, memory by memory, the first copy saved in ``e`` or later; a memory
    that was not touched since holds it still.
    """

    def __init__(self) -> None:
        self.epochs: list[dict[Memory, Bytes]] = [{}]
        self.starts: list[int] = [0]
        self.size = 0
        self._touched = 0

    def begin(self, operation: int) -> None:
        """A new epoch, whose first operation is number ``operation``; none where copies are dearer than to run again.

        What a program touches in one epoch it mostly touches in the next, and all of it would be saved once more.
        """
        if self._touched <= LARGE:
            self.epochs.append({})
            self.starts.append(operation)
            self._touched = 0

    @property
    def current(self) -> int:
        """The number of the epoch that runs."""
        return len(self.epochs) - 1

    def save(self, memory: Memory) -> None:
        """Keep the contents of ``memory`` if this is its first touch in the epoch."""
        epoch = len(self.epochs) - 1
        if memory.epoch != epoch:
            memory.epoch = epoch
            self.epochs[epoch][memory] = memory.read()
            self.size += memory.size
            self._touched += memory.size

    def skip(self, memory: Memory) -> None:
        """Its first touch overwrites all of it without looking: nothing to keep."""
        memory.epoch = len(self.epochs) - 1
        self._touched += memory.size

    def thin(self, memories: Iterable[Memory]) -> bool:
        """Let each second epoch go: its states are rebuilt by running on from the one before. False: none is left.

        Of a memory that both saved, the earlier copy remains; ``memories`` are all that there are.
        """
        if len(self.epochs) < 3:
            return False
        merged = [{**later, **earlier} for earlier, later in zip(self.epochs[::2], self.epochs[1::2], strict=False)]
        self.epochs = merged + self.epochs[2 * len(merged) :]
        self.starts = self.starts[::2]
        for memory in memories:
            memory.epoch //= 2  # -1, of none, stays
        self.size = sum(copy.size for saved in self.epochs for copy in saved.values())
        return True

    def at(self, operation: int) -> int:
        """The last epoch that begins at or before ``operation``."""
        return bisect.bisect_right(self.starts, operation) - 1

    def restore(self, epoch: int, wanted: Collection[Memory] | None = None) -> None:
        """Bring the process's memory to the beginning of ``epoch``: all of it, or the wanted memories."""
        done: set[Memory] = set()
        for saved in self.epochs[epoch:]:
            for memory, copy in saved.items():
                if memory not in done and (wanted is None or memory in wanted):
                    done.add(memory)
                    memory.write(copy)

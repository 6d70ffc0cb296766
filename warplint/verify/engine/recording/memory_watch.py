"""Watches memory while the program runs: allocations, memory of the host's, and what the host writes unseen.

Nothing is handed back. What is touched for the first time in an epoch is saved for the checkpoint. While the host has a
view of a memory (``.numpy()`` is no copy on the CPU), its contents are compared with what the last operation left.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from warplint.dataclass import dataclass
from warplint.verify.engine.execution.log import Log
from warplint.verify.engine.execution.memory import PADDING, CodeStack, Memory, Range
from warplint.verify.engine.recording.user_frames import library_call, user_stack
from warplint.verify.engine.warp_values import scalars_of

SHADOW_LIMIT = 1 << 28
"""Bytes of memory that are compared for silent host writes; views of larger memory are noted, not compared."""
MOST_RUNS = 256
"""Runs of numbers, told apart, that the host has written into one memory between two operations."""
FOREIGN_LIMIT = 20_000
"""``wp.array`` objects around memory of the host's that are remembered in case an operation reaches it."""


@dataclass(frozen=True)
class View:
    """A window of the host's on a memory, and where it was taken; ``array`` None: nobody knows how long it lives."""

    array: weakref.ref[Any] | None
    stack: CodeStack

    @property
    def may_live(self) -> bool:
        """Whether the program may still store through it."""
        return self.array is None or self.array() is not None


@dataclass(frozen=True)
class HeldView:
    """A numpy view of a gradient that held something when it was taken; it lives as long as the program keeps it."""

    view: weakref.ref[Any]
    source: Range
    stack: CodeStack
    largest: float


class MemoryWatch:
    """The memories of a log. ``host_wrote(range, views)`` is told of bytes that the host has written unseen."""

    def __init__(self, log: Log, host_wrote: Callable[[Range, Sequence[View]], None]) -> None:
        self._log = log
        self._host_wrote = host_wrote
        self._foreign: dict[int, weakref.ref[Any]] = {}
        self._held: dict[Memory, list[HeldView]] = {}

    def allocate(self, run: Callable[..., int], args: tuple[Any, ...]) -> int:
        """Allocate a little more, with a canary behind the end."""
        size = int(args[0])
        address = int(run(size + PADDING, *args[1:]) or 0)
        if address:
            frame = sys._getframe(1)
            born = self._log.next_index
            stack, made_by = user_stack(frame), library_call(frame)
            memory = self._log.memories.add(address, size, stack=stack, made_by=made_by, born=born, padded=True)
            memory.guard()
        return address

    def free(self, run: Callable[..., None], address: int) -> None:
        """Nothing is handed back while a log lives."""
        memory = self._log.memories.find(int(address or 0))
        if memory is None or memory.address != address:
            run(address)
            return
        memory.released = True
        self._log.deferred.append((run, int(address), memory))
        self._log.deferred_bytes += memory.size

    def array(self, array: Any) -> None:
        """A handle on memory: known memory gets its dtype and shape, unknown host memory is remembered in case."""
        address = array.ptr
        if not address or not array.device.is_cpu:
            return
        memory = self._log.memories.find(address)
        if memory is None:
            if len(self._foreign) > FOREIGN_LIMIT:
                self._foreign.clear()
            self._foreign[address] = weakref.ref(array)
            return
        if memory.handle is None:
            memory.handle = weakref.ref(array)
            memory.dtype, memory.shape = _type_of(array), tuple(array.shape)
        grad = array.grad
        if grad is not None and grad.ptr:
            gradient = self._log.memories.find(grad.ptr)
            if gradient is not None and gradient is not memory:
                memory.grad, gradient.gradient_of = gradient, gradient.gradient_of or memory
                self._log.gradients.add(gradient)
            memory.retain = bool(getattr(array, "retain_grad", False))

    # memory of the host's ------------------------------------------------------------------------------------------

    def register_foreign(self, address: int) -> Memory | None:
        """Host memory that an operation reaches: numpy memory behind a ``wp.array``, or a raw pointer."""
        array = self._foreign_at(address) or self._foreign_around(address)
        if array is None or array.ptr is None:
            return None
        owner = getattr(array, "_ref", None)
        start, stop = _whole_buffer(owner, array.ptr, array.ptr + array.capacity)
        if not start <= address < stop:
            return None
        stack = user_stack(sys._getframe(1))
        memory = self._log.memories.add(start, stop - start, stack=stack, made_by="numpy", foreign=True)
        memory.owner = owner if owner is not None else array
        memory.born = self._log.next_index
        memory.dtype, memory.shape = _type_of(array), tuple(array.shape)
        memory.handle = weakref.ref(array)
        memory.shadow = memory.read() if memory.size <= SHADOW_LIMIT else None
        return memory

    def _foreign_at(self, address: int) -> Any:
        reference = self._foreign.get(address)
        array = reference() if reference is not None else None
        # An array's truth is that of its length, so only ``None`` may stand for nothing here.
        return array if array is not None and array.ptr is not None and array.size else None

    def _foreign_around(self, address: int) -> Any:
        for start, reference in list(self._foreign.items()):
            array = reference()
            if array is not None and array.ptr is not None and start <= address < start + max(array.capacity, 1):
                return array
        return None

    def locate(self, address: int, size: int) -> Range | None:
        """The range at an address; None where it is memory of the host's that may be gone soon (a temporary)."""
        if self._log.memories.find(address) is None:
            array = self._foreign_at(address)
            if array is None or getattr(array, "_ref", None) is None or sys.getrefcount(array) <= HELD_BY_WARP_ALONE:
                return None
            # A wp.array around host memory that the user keeps: memory like any other.
            if self.register_foreign(address) is None:
                return None
        return self._log.range(address, size)

    # before and after operations -------------------------------------------------------------------------------------

    def touch(self, address: int, save: bool) -> Memory | None:
        """The memory that an operation is about to reach; ``save``: it runs now, so keep the contents."""
        memory = self._log.memories.find(address) or self.register_foreign(address)
        if memory is not None and save:
            self.before(memory)
        return memory

    def before(self, memory: Memory, overwritten: bool = False) -> None:
        """Before an operation: notice what the host wrote meanwhile, keep the contents for the checkpoint."""
        if memory.shadow is not None:
            self._notice_host_write(memory)
        if memory.epoch != self._log.checkpoints.current:
            if overwritten and memory.shadow is None:
                self._log.checkpoints.skip(memory)
            else:
                self._log.checkpoints.save(memory)

    def refresh(self, memories: Sequence[Memory]) -> None:
        """After an operation: what it wrote is no write of the host's."""
        for memory in memories:
            if memory.shadow is not None:
                memory.shadow = memory.read()

    def notice_all(self) -> None:
        """Look for silent host writes in every memory that the host has a view of."""
        for memory in self._log.memories.all:
            if memory.shadow is not None:
                self._notice_host_write(memory)

    def _notice_host_write(self, memory: Memory) -> None:
        shadow = memory.shadow
        if shadow is None:
            return
        live = memory.live()
        if not np.array_equal(live, shadow):
            changed = list(_runs(live != shadow, _item_size(memory)))
            checkpoints = self._log.checkpoints
            if memory.epoch != checkpoints.current:
                # The checkpoint must hold what was there before the host wrote.
                memory.epoch = checkpoints.current
                checkpoints.epochs[-1][memory] = shadow.copy()
                checkpoints.size += memory.size
            for start, stop in changed:
                self._host_wrote(Range(memory, start, min(stop, memory.size)), memory.views)
        memory.views = [view for view in memory.views if view.may_live]
        memory.shadow = memory.read() if memory.foreign or memory.views else None

    # views of the host's ----------------------------------------------------------------------------------------------

    def seen_by_host(self, array: Any) -> Range | None:
        """The range that the host is about to look at."""
        address = array.ptr
        if not address or not array.device.is_cpu:
            return None
        memory = self._log.memories.find(address) or self.register_foreign(address)
        if memory is None:
            return None
        if memory.shadow is not None:
            self._notice_host_write(memory)
        start = address - memory.address
        return Range(memory, start, min(start + max(int(array.capacity), 1), memory.size))

    def expose(self, memory: Memory, view: Any, stack: CodeStack) -> None:
        """The host has a view from now on, taken at ``stack``; None: one whose life nobody knows."""
        if memory.size > SHADOW_LIMIT:
            return
        memory.views.append(View(weakref.ref(_root(view)) if isinstance(view, np.ndarray) else None, stack))
        if memory.shadow is None:
            memory.shadow = memory.read()

    def hold(self, source: Range, view: Any, stack: CodeStack) -> None:
        """The host took a view of a gradient: nothing is kept of one that shows zeros anyway."""
        if isinstance(view, np.ndarray) and view.dtype.kind == "f" and view.any():
            largest = float(np.nanmax(np.abs(view), initial=0.0))
            self._held.setdefault(source.memory, []).append(HeldView(weakref.ref(_root(view)), source, stack, largest))

    def emptied(self, memories: Sequence[Memory]) -> Iterator[HeldView]:
        """The views, held still, that an operation on these memories has left without anything but zeros; each once."""
        for memory in memories:
            held = [each for each in self._held.pop(memory, ()) if each.view() is not None]
            shown = [each for each in held if memory.live()[each.source.start : each.source.stop].any()]
            yield from (each for each in held if each not in shown)
            if shown:
                self._held[memory] = shown


HELD_BY_WARP_ALONE = 4
"""References to an array that only Warp's own call holds (its argument, its frame, ours): nobody keeps it."""


def stored_at(noticed: CodeStack, views: Sequence[View]) -> CodeStack:
    """Where a store through one of ``views`` was made, as near as can be told: it was noticed at ``noticed``, later.

    Through a view that is gone it was made by the function that took it; through one that lives perhaps by one that it
    was handed to: the innermost of those that took it which is still running.
    """
    living = [view for view in views if view.may_live]
    taken = next((view.stack for view in reversed(living or views)), ())
    for code, _ in taken if living else taken[:1]:
        for depth, (running, _) in enumerate(noticed):
            if running is code:
                return noticed[depth:]
    return taken or noticed


def _item_size(memory: Memory) -> int:
    """The bytes of one number in a memory; 1 where that is not known."""
    array = memory.handle() if memory.handle is not None else None
    kind = scalars_of(getattr(array, "dtype", None)).kind
    return kind.itemsize if kind is not None else 1


def _runs(differs: npt.NDArray[np.bool_], size: int) -> Iterator[tuple[int, int]]:
    """The runs of whole numbers, ``size`` bytes each, that have changed; one over all where there are very many."""
    count = -(-differs.size // size)
    whole = np.zeros(count * size, dtype=bool)
    whole[: differs.size] = differs
    edges = np.flatnonzero(np.diff(whole.reshape(count, size).any(axis=1), prepend=False, append=False))
    if edges.size > 2 * MOST_RUNS:
        edges = edges[[0, -1]]
    for start, stop in edges.reshape(-1, 2):
        yield int(start) * size, int(stop) * size


def _root(view: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The numpy array that lives as long as any that was made from it."""
    while isinstance(view.base, np.ndarray):
        view = view.base
    return view


def _whole_buffer(owner: Any, start: int, stop: int) -> tuple[int, int]:
    """The extent of the numpy memory that ``[start, stop)`` is a part of."""
    while isinstance(owner, np.ndarray):
        low = owner.__array_interface__["data"][0]
        span = sum((n - 1) * abs(s) for n, s in zip(owner.shape, owner.strides, strict=True) if n) + owner.itemsize
        start, stop = min(start, low), max(stop, low + span)
        owner = owner.base
    return start, stop


def _type_of(array: Any) -> str:
    return getattr(array.dtype, "__name__", str(array.dtype))

"""What a kernel does with each of its arrays, found by running it.

An array's numbers are changed a little and the launch is run again. What loses its change was stored; what keeps it
was left alone; what carries it along was added to; and where anything else changes, the array was read. Only where the
kernel's text has every thread store its own element, that is a write whatever comes of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warplint.dataclass import dataclass
from warplint.verify.engine.execution.memory import Bytes, Contents, Memory
from warplint.verify.engine.execution.operations import KernelCall
from warplint.verify.engine.execution.views import FloatView
from warplint.verify.engine.warp_bodies import own_stores
from warplint.verify.engine.warp_values import ArraySlot, descriptor

LIMIT = 1 << 28
"""Bytes touched by a launch that is probed at most."""

REPEATS = 3
"""Launches of a kernel that are probed: what it does may hang on the data."""


@dataclass(frozen=True)
class Access:
    """``reads``: the result hangs on what it held; ``writes``; ``adds``: all that it does is to add to it."""

    reads: bool
    writes: bool
    adds: bool = False

    def united(self, other: Access) -> Access:
        """What either of two runs of the kernel does."""
        return Access(
            self.reads or other.reads,
            self.writes or other.writes,
            (self.adds and other.adds) or (self.adds and not other.writes) or (other.adds and not self.writes),
        )


UNKNOWN = Access(reads=True, writes=True)
READ_ONLY = Access(reads=True, writes=False)


def view_of(call: KernelCall, slot: ArraySlot) -> FloatView | None:
    """The floats of an array parameter; None where it has none, or is no plain array."""
    if slot.path not in call.views:
        call.views[slot.path] = _view_of(call, slot)
    view: FloatView | None = call.views[slot.path]
    return view


def _view_of(call: KernelCall, slot: ArraySlot) -> FloatView | None:
    if slot.scalars.kind is None or slot.indexed:
        return None
    found = descriptor(call.params[slot.parameter], slot.offset)
    view = FloatView.of(found, slot.scalars) if found.data else None
    return view if view is not None and view.count else None


def gradient_view(call: KernelCall, slot: ArraySlot) -> FloatView | None:
    """The gradient's floats of an array parameter; None where it has no gradient."""
    view = view_of(call, slot)
    if view is None:
        return None
    grad = int(descriptor(call.params[slot.parameter], slot.offset).grad)
    return view.at(grad) if grad else None


_Shaped = tuple[int, str, bytes, tuple[int, ...], tuple[int, ...]]
"""A kernel and one of its arrays, in a launch of certain extents, the array having a certain shape and strides."""


def _shaped(call: KernelCall, slot: ArraySlot) -> _Shaped:
    found = descriptor(call.params[slot.parameter], slot.offset)
    view = FloatView.of(found, slot.scalars)
    return id(call.kernel), slot.path, bytes(call.params[0]), view.shape, view.strides


class AccessTable:
    """Accesses by kernel and parameter path, learned while a log is run again."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], Access] = {}
        self._probed: dict[int, int] = {}
        self._own: dict[int, frozenset[str]] = {}
        self._filled: dict[_Shaped, bool] = {}

    def of(self, call: KernelCall, slot: ArraySlot) -> Access:
        """What the kernel does with this array."""
        return self._known.get((id(call.kernel), slot.path), UNKNOWN)

    def fills(self, call: KernelCall, slot: ArraySlot) -> bool:
        """Whether the launch overwrites every element of this array, whatever the data are.

        The kernel's text says that each thread stores its own element, a launch of just this shape that none is left.
        """
        return self._filled.get(_shaped(call, slot), False)

    def wants(self, call: KernelCall) -> bool:
        """Whether this launch would be probed."""
        return not call.adjoint and self._probed.get(id(call.kernel), 0) < REPEATS

    def learn(self, call: KernelCall) -> bool:
        """Probe a forward launch whose turn it is; leaves the memory as the launch leaves it. False: not run."""
        done = self._probed.get(id(call.kernel), 0)
        if done >= REPEATS or call.adjoint:
            return False
        self._probed[id(call.kernel)] = done + 1
        if sum(memory.size for memory in call.touched) > LIMIT:
            return False
        before = Contents(call.touched)
        call.run()
        after = Contents(call.touched)
        regions = self._regions(call)
        start, stop = self._sound(call, before, after)
        found = [self._probe(call, group, start, stop) for group in regions]
        moved: set[Memory] = set().union(*(changed for _, changed in found))
        for group, (access, _) in zip(regions, found, strict=True):
            if not access.writes and self._memory_of(call, group[0]) in moved:
                # It came out as it was (something was zero), but other inputs would have changed it.
                access = Access(access.reads, writes=True)
            if not access.writes and any(slot.path in self._own_stores(call) for slot in group):
                # It stores what it has read, unless something is wrong with that: other inputs would be mended.
                access = UNKNOWN
            for slot in group:
                key = (id(call.kernel), slot.path)
                self._known[key] = access if key not in self._known else self._known[key].united(access)
        after.restore()
        return True

    @staticmethod
    def _sound(call: KernelCall, before: Contents, after: Contents) -> tuple[Contents, Contents]:
        """The memory before and after the launch; where it read NaN or infinity, with ordinary numbers in their place.

        What is read from a number that is none makes no difference, so that nothing would seem to be read from it.
        """
        before.restore()
        replaced = False
        for slot in call.layout.slots:
            view = view_of(call, slot)
            values = view.read() if view is not None else np.zeros(0)
            if view is not None and not np.isfinite(values).all():
                view.write(np.where(np.isfinite(values), values, values.dtype.type(0.5)))
                replaced = True
        if not replaced:
            return before, after
        start = Contents(call.touched)
        call.run()
        return start, Contents(call.touched)

    @staticmethod
    def _memory_of(call: KernelCall, slot: ArraySlot) -> Memory | None:
        data = int(descriptor(call.params[slot.parameter], slot.offset).data)
        return next((memory for memory in call.touched if memory.address <= data < memory.stop), None)

    @staticmethod
    def _regions(call: KernelCall) -> list[list[ArraySlot]]:
        """Array parameters, those that share memory together."""
        groups: list[tuple[int, int, list[ArraySlot]]] = []
        for slot in call.layout.slots:
            found = descriptor(call.params[slot.parameter], slot.offset)
            if not found.data:
                continue
            low, stop = FloatView.of(found, slot.scalars).span
            for index, (start, end, slots) in enumerate(groups):
                if low < end and start < stop:
                    groups[index] = (min(low, start), max(stop, end), [*slots, slot])
                    break
            else:
                groups.append((low, stop, [slot]))
        return [slots for _, _, slots in groups]

    def _probe(
        self, call: KernelCall, group: list[ArraySlot], before: Contents, after: Contents
    ) -> tuple[Access, set[Memory]]:
        """What the launch does with one array, and the other memories that a change of it changes."""
        view = max((v for slot in group if (v := view_of(call, slot)) is not None), key=lambda v: v.count, default=None)
        if view is None:
            return self._by_bytes(call, group, before, after), set()
        before.restore()
        old = view.read()
        moved = _noisy(old)
        view.write(moved)
        call.run()
        new = view.read()
        others = self._others_changed(call, view, after)
        after.restore()
        base = view.read()
        if len(group) == 1 and group[0].path in self._own_stores(call):
            shape = _shaped(call, group[0])
            self._filled[shape] = bool(_stored(old, moved, base, new).all()) and self._filled.get(shape, True)
        return _judge(old, moved, base, new, bool(others)), others

    def _own_stores(self, call: KernelCall) -> frozenset[str]:
        known = self._own.get(id(call.kernel))
        if known is None:
            known = self._own[id(call.kernel)] = own_stores(call.kernel)
        return known

    @staticmethod
    def _by_bytes(call: KernelCall, group: list[ArraySlot], before: Contents, after: Contents) -> Access:
        for slot in group:
            data = int(descriptor(call.params[slot.parameter], slot.offset).data)
            for memory, copy in before.saved.items():
                if memory.address <= data < memory.stop and not np.array_equal(copy, after.saved[memory]):
                    return UNKNOWN
        return READ_ONLY

    @staticmethod
    def _others_changed(call: KernelCall, view: FloatView, after: Contents) -> set[Memory]:
        low, stop = view.span
        return {memory for memory, copy in after.saved.items() if _differs(memory, copy, low, stop)}


def _differs(memory: Memory, copy: Bytes, low: int, stop: int) -> bool:
    """Whether a memory holds something else than ``copy``, outside the addresses ``[low, stop)``."""
    live = memory.live()
    first, last = max(0, low - memory.address), min(memory.size, stop - memory.address)
    if first >= memory.size or last <= 0:
        return not np.array_equal(live, copy)
    return not (np.array_equal(live[:first], copy[:first]) and np.array_equal(live[last:], copy[last:]))


def _noisy(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Every number a little larger in magnitude's scale, none the same."""
    rng = np.random.default_rng(7)
    sound = np.where(np.isfinite(values), values, 0.0).astype(np.float64)
    scale = float(np.max(np.abs(sound), initial=0.0)) or 1.0
    size = np.maximum(np.abs(sound), 1e-3 * scale)
    return (values + rng.uniform(0.5, 1.0, values.shape) * size / 256.0).astype(values.dtype)


def _stored(
    old: npt.NDArray[Any], moved: npt.NDArray[Any], base: npt.NDArray[Any], new: npt.NDArray[Any]
) -> npt.NDArray[np.bool_]:
    """Which elements lose what they held: the same comes out whatever was there."""
    kept = (new == moved) & (base == old)
    stored: npt.NDArray[np.bool_] = ~kept & ((new == base) | (np.isnan(new) & np.isnan(base))) & (moved != old)
    return stored


def _judge(
    old: npt.NDArray[Any], moved: npt.NDArray[Any], base: npt.NDArray[Any], new: npt.NDArray[Any], others: bool
) -> Access:
    """Access from an array before and after: as it was, and with noise in it."""
    kept = (new == moved) & (base == old)
    stored = _stored(old, moved, base, new)
    rest = ~kept & ~stored
    epsilon = float(np.finfo(base.dtype).eps)
    with np.errstate(invalid="ignore", over="ignore"):
        shift = moved.astype(np.float64) - old
        off = np.abs((new.astype(np.float64) - base) - shift)
        added = rest & (off <= 0.05 * np.abs(shift) + 8 * epsilon * np.abs(base.astype(np.float64)))
    multiplied = bool((rest & ~added).any())
    writes = bool(stored.any() or rest.any())
    reads = others or multiplied or not writes
    return Access(reads, writes, adds=bool(added.any()) and not reads and not stored.any())

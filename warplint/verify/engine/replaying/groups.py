"""Leaves and groups, as the gradient's theory has them, out of a log.

A *leaf* is memory with a gradient that a tape reads before anything recorded has written it. A *group* is the backward
calls whose gradients are summed before the leaf is written or its gradient is cleared. The *window* opens at the last
write to the leaf before the group reads it, so it spans earlier and untaped operations. The *consumed gradient* is the
gradient's value at its first use after the group's last backward, else at the end.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warplint.verify.engine.execution.accesses import Access, gradient_view, view_of
from warplint.verify.engine.execution.log import Log
from warplint.verify.engine.execution.memory import Bytes, Memory, Range
from warplint.verify.engine.execution.operations import (
    BackwardBegin,
    Entry,
    HostRead,
    HostWrite,
    KernelCall,
    NativeCall,
    Operation,
)
from warplint.verify.engine.execution.views import FloatView
from warplint.verify.engine.replaying.replay import Survey


@dataclass(frozen=True)
class Leaf:
    """Floats with a gradient: ``view`` lies in ``memory``, ``gradient`` in ``gradient_memory``, in the same layout."""

    memory: Memory
    gradient_memory: Memory
    view: FloatView
    gradient: FloatView
    parameter: str

    @property
    def range(self) -> Range:
        """The bytes of the leaf."""
        return _range(self.memory, self.view)

    @property
    def gradient_range(self) -> Range:
        """The bytes of its gradient."""
        return _range(self.gradient_memory, self.gradient)

    def gradient_in(self, contents: Bytes) -> npt.NDArray[np.float64]:
        """The gradient's numbers in a copy of its memory."""
        kept = np.ascontiguousarray(contents)
        moved = self.gradient.at(kept.ctypes.data + self.gradient.address - self.gradient_memory.address)
        return moved.read().astype(np.float64)


@dataclass(frozen=True)
class Group:
    """The backward calls of one leaf that belong together; ``start`` is the first operation of the window.

    ``rewrites`` are later operations that overwrite the leaf from outside every tape: the leaf is moved there again.
    ``used`` is the operation that uses the gradient, None where nothing does; ``previous`` the end of the group before.
    """

    leaf: Leaf
    number: int
    backwards: tuple[BackwardBegin, ...]
    start: int
    rewrites: tuple[int, ...]
    consumed: npt.NDArray[np.float64]
    used: Operation | None
    previous: int
    overwritten: bool = False
    """Written from outside the tape after the tape has read it: what its gradient means then, only a user can say."""

    @property
    def stop(self) -> int:
        """The number of the last backward call's beginning."""
        return self.backwards[-1].index


def _range(memory: Memory, view: FloatView) -> Range:
    low, stop = view.span
    return Range(memory, max(0, low - memory.address), min(memory.size, stop - memory.address))


class Analysis:
    """What the operations of a log do to which bytes, asked memory by memory."""

    def __init__(self, log: Log, survey: Survey) -> None:
        self.log = log
        self.survey = survey
        self._kernels: dict[int, tuple[tuple[Range, Access], ...]] = {}
        self._by_memory: dict[Memory, list[Operation]] = {}
        for operation in log.operations:
            touched = (operation.source.memory,) if isinstance(operation, HostRead) else operation.touched
            for memory in touched:
                self._by_memory.setdefault(memory, []).append(operation)

    def of(self, memory: Memory) -> list[Operation]:
        """The operations that touch a memory, in order."""
        return self._by_memory.get(memory, [])

    def writes(self, operation: Operation) -> Iterator[tuple[Range, Access]]:
        """The ranges that an operation (outside backward) writes."""
        yield from (pair for pair in self.accesses(operation) if pair[1].writes)

    def reads(self, operation: Operation) -> Iterator[Range]:
        """The ranges that it reads."""
        yield from (where for where, access in self.accesses(operation) if access.reads)

    def accesses(self, operation: Operation) -> Iterator[tuple[Range, Access]]:
        """The ranges that an operation (outside backward) touches, and what it does with each."""
        if isinstance(operation, KernelCall):
            known = self._kernels.get(operation.index)
            if known is None:
                known = self._kernels[operation.index] = tuple(self._of_kernel(operation))
            yield from known
        elif isinstance(operation, NativeCall):
            yield from self._of_native(operation)
        elif isinstance(operation, HostWrite):
            yield operation.dest, Access(reads=False, writes=True)
        elif isinstance(operation, HostRead):
            yield operation.source, Access(reads=True, writes=False)

    def _of_kernel(self, call: KernelCall) -> Iterator[tuple[Range, Access]]:
        for slot in call.layout.slots:
            view = view_of(call, slot) or view_of_any(call, slot)
            memory = self.log.memories.find(view.address) if view is not None else None
            if view is not None and memory is not None:
                yield _range(memory, view), self.survey.accesses.of(call, slot)

    def _of_native(self, call: NativeCall) -> Iterator[tuple[Range, Access]]:
        if call.exact:
            yield from ((where, Access(reads=True, writes=False)) for where in call.reads)
            yield from ((where, Access(reads=False, writes=True)) for where in call.writes)
            return
        changed = self.survey.changed.get(call.index, frozenset(call.touched))
        for memory in call.touched:
            yield Range(memory, 0, memory.size), Access(reads=True, writes=memory in changed)

    def is_gradient_shadow(self, operation: Operation) -> bool:
        """``wp.copy`` copies the gradients along with the data: no use of a gradient, and no clearing."""
        if not isinstance(operation, NativeCall) or not operation.exact or not operation.reads:
            return False
        source, dest = operation.reads[0].memory, operation.writes[0].memory
        if source not in self.log.gradients or dest not in self.log.gradients or operation.index <= self.log.base:
            return False
        before = self.log[operation.index - 1]
        return isinstance(before, NativeCall) and bool(before.writes) and before.writes[0].memory.grad is dest


def view_of_any(call: KernelCall, slot: object) -> FloatView | None:
    """The extent of an array parameter whatever its dtype."""
    from warplint.verify.engine.warp_values import ArraySlot, descriptor

    assert isinstance(slot, ArraySlot)
    found = descriptor(call.params[slot.parameter], slot.offset)
    return FloatView.of(found, slot.scalars) if found.data else None


class Written:
    """Bytes that were written so far, memory by memory."""

    def __init__(self) -> None:
        self._ranges: dict[Memory, list[tuple[int, int]]] = {}

    def add(self, where: Range) -> None:
        """These bytes were written."""
        merged: list[tuple[int, int]] = []
        start, stop = where.start, where.stop
        for low, high in self._ranges.get(where.memory, []):
            if low <= stop and start <= high:
                start, stop = min(low, start), max(high, stop)
            else:
                merged.append((low, high))
        self._ranges[where.memory] = sorted([*merged, (start, stop)])

    def cover(self, where: Range) -> bool:
        """Whether all of these bytes were written."""
        return any(low <= where.start and where.stop <= high for low, high in self._ranges.get(where.memory, []))


def leaves_of(begin: BackwardBegin, analysis: Analysis) -> list[Leaf]:
    """The leaves of one backward call: what its tape reads first, with a gradient."""
    log = analysis.log
    entries = {entry.forward.index: entry for entry in begin.entries if entry and entry.forward is not None}
    if not entries:
        return []
    first = min(entries)
    opened = [index for index in begin.tape.entered if index <= first]
    written, found, seen = Written(), list[Leaf](), set[int]()
    for operation in log.between(opened[-1] if opened else first, begin.index):
        if operation.inside is not None:
            continue
        entry = entries.get(operation.index)
        if entry is not None:
            for leaf in _read_with_gradient(operation, entry, analysis):
                if leaf.view.address not in seen and not written.cover(leaf.range):
                    found.append(leaf)
                seen.add(leaf.view.address)
        if entry is not None or not isinstance(operation, HostWrite):
            for where, _ in analysis.writes(operation):
                written.add(where)
    found.extend(leaf for leaf in _of_functions(begin, analysis) if not written.cover(leaf.range))
    loss = begin.loss
    return _merged(leaf for leaf in found if loss is None or not leaf.range.overlaps(loss))


def _read_with_gradient(operation: Operation, entry: Entry, analysis: Analysis) -> Iterator[Leaf]:
    if isinstance(operation, KernelCall):
        for slot in operation.layout.slots:
            view, gradient = view_of(operation, slot), gradient_view(operation, slot)
            access = analysis.survey.accesses.of(operation, slot)
            if view is not None and gradient is not None and access.reads and not access.adds:
                yield from _leaf(analysis.log, view, gradient, slot.path)
    elif isinstance(operation, NativeCall) and entry.copy is not None and operation.reads:
        source = entry.copy.source
        where = operation.reads[0]
        kind = _float_kind(analysis.log, where.memory, source)
        if kind is not None and source.grad is not None and source.grad.ptr:
            view = FloatView.flat(where.address, where.size, kind)
            yield from _leaf(analysis.log, view, view.at(source.grad.ptr + where.address - source.ptr), "src")


def _float_kind(log: Log, memory: Memory, array: object) -> np.dtype[np.generic] | None:
    from warplint.verify.engine.warp_values import scalars_of

    return scalars_of(getattr(array, "dtype", None)).kind


def _leaf(log: Log, view: FloatView, gradient: FloatView, name: str) -> Iterator[Leaf]:
    memory, gradient_memory = log.memories.find(view.address), log.memories.find(gradient.address)
    if memory is not None and gradient_memory is not None and memory is not gradient_memory:
        yield Leaf(memory, gradient_memory, view, gradient, name)


def _of_functions(begin: BackwardBegin, analysis: Analysis) -> Iterator[Leaf]:
    """Leaves that only a recorded function of the user's knows: their gradient is touched while it runs."""
    if begin.end is None:
        return
    for operation in analysis.log.between(begin.index, begin.end.index):
        if operation.step is None or operation.step.what != "function":
            continue
        for memory in operation.touched:
            owner = memory.gradient_of
            if owner is not None and memory in analysis.log.gradients:
                yield from seen_as(owner, memory, analysis)


def seen_as(owner: Memory, gradient: Memory, analysis: Analysis) -> Iterator[Leaf]:
    """The leaf that a memory is to the first launch that binds it; nothing where none does."""
    for operation in analysis.of(owner):
        if isinstance(operation, KernelCall) and not operation.adjoint:
            for slot in operation.layout.slots:
                view = view_of(operation, slot)
                if view is not None and owner.address <= view.address < owner.stop:
                    yield from _leaf(
                        analysis.log, view, view.at(gradient.address + view.address - owner.address), slot.path
                    )
                    return


def _merged(leaves: Iterator[Leaf]) -> list[Leaf]:
    """One leaf where several handles overlap: the widest."""
    kept: list[Leaf] = []
    for leaf in sorted(leaves, key=lambda leaf: -leaf.view.count):
        if not any(leaf.range.overlaps(other.range) for other in kept):
            kept.append(leaf)
    return kept


def groups_of(analysis: Analysis) -> list[Group]:
    """All groups of all leaves, in the order of their last backward call."""
    backwards: dict[tuple[Memory, int], list[tuple[BackwardBegin, Leaf]]] = {}
    for begin in analysis.log.backwards:
        for leaf in leaves_of(begin, analysis):
            backwards.setdefault((leaf.memory, leaf.range.start), []).append((begin, leaf))
    found: list[Group] = []
    for calls in backwards.values():
        found.extend(_groups(calls, analysis))
    asked = [group for group in found if group.used is not None or not (group.overwritten or _is_link(group, analysis))]
    return sorted(asked, key=lambda group: group.stop)


def _is_link(group: Group, analysis: Analysis) -> bool:
    """Whether a later backward takes the gradient as its seed: a link of a chain of tapes, not its end."""
    for operation in analysis.of(group.leaf.gradient_memory):
        if operation.index > group.stop and operation.inside is not None and operation.step is not None:
            made = operation.step.forward
            own = any(begin.number == operation.inside for begin in group.backwards)
            if made is not None and not own and any(w.overlaps(group.leaf.range) for w, _ in analysis.writes(made)):
                return True
    return False


def handed_on_by(gradient: Memory, begin: BackwardBegin, analysis: Analysis) -> BackwardBegin | None:
    """The backward call that left in a gradient what ``begin`` finds there; None where it came from elsewhere."""
    last = [operation for operation in analysis.of(gradient) if operation.index < begin.index][-1:]
    inside = last[0].inside if last else None
    return next((other for other in analysis.log.backwards if other.number == inside), None)


def goes_on_from(later: BackwardBegin, call: KernelCall, made: Range, analysis: Analysis) -> bool:
    """Whether the tape of ``later`` reads what ``call`` has stored in ``made``, before anything else writes it."""
    taped = {entry.forward.index for entry in later.entries if entry is not None and entry.forward is not None}
    for operation in analysis.of(made.memory):
        if operation.index > call.index and operation.inside is None:
            if operation.index in taped and any(where.overlaps(made) for where in analysis.reads(operation)):
                return True
            if any(where.overlaps(made) for where, _ in analysis.writes(operation)):
                return False
    return False


def _groups(calls: list[tuple[BackwardBegin, Leaf]], analysis: Analysis) -> Iterator[Group]:
    leaf = max((leaf for _, leaf in calls), key=lambda leaf: leaf.view.count)
    runs: list[list[BackwardBegin]] = [[calls[0][0]]]
    for (earlier, _), (later, _) in itertools.pairwise(calls):
        if _parted(earlier, later, leaf, analysis):
            runs.append([later])
        else:
            runs[-1].append(later)
    previous = analysis.log.base - 1
    for number, run in enumerate(runs):
        following = runs[number + 1][0].index if number + 1 < len(runs) else analysis.log.next_index
        yield _group(leaf, number, tuple(run), previous, following, analysis)
        previous = run[-1].index


def _parted(earlier: BackwardBegin, later: BackwardBegin, leaf: Leaf, analysis: Analysis) -> bool:
    """Whether the leaf is written from outside the tape, or its gradient cleared, between two backward calls."""
    taped = {id(entry) for entry in later.entries if entry is not None}
    for operation in analysis.of(leaf.memory):
        if earlier.index < operation.index < later.index and operation.inside is None:
            entry = getattr(operation, "entry", None)
            if id(entry) not in taped and any(w.overlaps(leaf.range) for w, _ in analysis.writes(operation)):
                return True
    return any(
        earlier.index < operation.index < later.index and _clears(operation, leaf, analysis)
        for operation in analysis.of(leaf.gradient_memory)
    )


def _clears(operation: Operation, leaf: Leaf, analysis: Analysis) -> bool:
    if operation.inside is not None or analysis.is_gradient_shadow(operation):
        return False
    return any(where.overlaps(leaf.gradient_range) for where, _ in analysis.writes(operation))


def _uses(operation: Operation, leaf: Leaf, analysis: Analysis) -> bool:
    if operation.inside is not None or analysis.is_gradient_shadow(operation):
        return False
    return any(where.overlaps(leaf.gradient_range) for where in analysis.reads(operation))


def _group(
    leaf: Leaf, number: int, run: tuple[BackwardBegin, ...], previous: int, following: int, analysis: Analysis
) -> Group:
    read = _first_read(leaf, run, previous, analysis)
    taped = {id(entry) for begin in run for entry in begin.entries if entry is not None}
    start = max(leaf.memory.born, analysis.log.base)
    rewrites: list[int] = []
    overwritten = False
    for operation in analysis.of(leaf.memory):
        if operation.inside is not None or operation.index >= run[-1].index:
            continue
        for where, access in analysis.writes(operation):
            if not where.overlaps(leaf.range):
                continue
            own = id(getattr(operation, "entry", None)) in taped and operation.index > previous
            if operation.index < read and not own:
                start = operation.index + 1
            elif operation.index > read and not own:
                overwritten = True
                if not access.reads and not access.adds:
                    rewrites.append(operation.index)
    after = run[-1].end.index if run[-1].end is not None else run[-1].index
    consumed, used = _consumed(leaf, after, following, analysis)
    return Group(leaf, number, run, start, tuple(rewrites), consumed, used, previous, overwritten)


def _first_read(leaf: Leaf, run: tuple[BackwardBegin, ...], previous: int, analysis: Analysis) -> int:
    """The first operation on the group's tapes that touches the leaf, of those recorded since the group before."""
    taped = {id(entry) for begin in run for entry in begin.entries if entry is not None}
    touching = [
        operation.index
        for operation in analysis.of(leaf.memory)
        if id(getattr(operation, "entry", None)) in taped and operation.index < run[-1].index
    ]
    recent = [index for index in touching if index > previous]
    return min(recent or touching, default=run[0].index)


def _consumed(
    leaf: Leaf, after: int, following: int, analysis: Analysis
) -> tuple[npt.NDArray[np.float64], Operation | None]:
    cleared: Operation | None = None
    for operation in analysis.of(leaf.gradient_memory):
        if not after < operation.index < following:
            continue
        if _uses(operation, leaf, analysis):
            return leaf.gradient_in(analysis.log.gradient_at(leaf.gradient_memory, operation.index)), operation
        if cleared is None and _clears(operation, leaf, analysis):
            cleared = operation
    end = cleared.index if cleared is not None else analysis.log.next_index
    return leaf.gradient_in(analysis.log.gradient_at(leaf.gradient_memory, end)), None

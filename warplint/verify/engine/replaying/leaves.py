"""The leaves of backward calls: what their tapes read first, and what a program takes for one that no tape saw."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator

import numpy as np
import numpy.typing as npt

from warplint.dataclass import dataclass
from warplint.verify.engine.execution.accesses import gradient_view, view_of
from warplint.verify.engine.execution.log import Log
from warplint.verify.engine.execution.memory import Bytes, Memory, Range
from warplint.verify.engine.execution.operations import (
    BackwardBegin,
    Entry,
    HostWrite,
    KernelCall,
    NativeCall,
    Operation,
)
from warplint.verify.engine.execution.views import FloatView
from warplint.verify.engine.replaying.analysis import Analysis, extent


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
        return extent(self.memory, self.view)

    @property
    def gradient_range(self) -> Range:
        """The bytes of its gradient."""
        return extent(self.gradient_memory, self.gradient)

    def gradient_in(self, contents: Bytes) -> npt.NDArray[np.float64]:
        """The gradient's numbers in a copy of its memory."""
        kept = np.ascontiguousarray(contents)
        moved = self.gradient.at(kept.ctypes.data + self.gradient.address - self.gradient_memory.address)
        return moved.read().astype(np.float64)


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
    """Leaves that only a recorded function of the user's knows: their gradient is touched while it runs.

    Arrays that such a function makes or fills itself (states of a rollout that it runs again on a tape of its own) are
    its own affair: what is judged is what it makes of the gradients of arrays that were there before.
    """
    if begin.end is None:
        return
    inside = [
        operation
        for operation in analysis.log.between(begin.index, begin.end.index)
        if operation.step is not None and operation.step.what == "function"
    ]
    own: set[Memory] = set()
    for operation in inside:
        if not (isinstance(operation, KernelCall) and operation.adjoint):
            own.update(where.memory for where, _ in analysis.writes(operation))
    for operation in inside:
        for memory in operation.touched:
            owner = memory.gradient_of
            if owner is None or owner in own or owner.born > begin.index or memory not in analysis.log.gradients:
                continue
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


def clears(operation: Operation, leaf: Leaf, analysis: Analysis) -> bool:
    """Whether the program itself overwrites the leaf's gradient."""
    if operation.inside is not None or analysis.is_gradient_shadow(operation):
        return False
    return any(where.overlaps(leaf.gradient_range) for where, _ in analysis.writes(operation))


def uses(operation: Operation, leaf: Leaf, analysis: Analysis) -> bool:
    """Whether the program itself reads the leaf's gradient."""
    if operation.inside is not None or analysis.is_gradient_shadow(operation):
        return False
    return any(where.overlaps(leaf.gradient_range) for where in analysis.reads(operation))


def unseen_leaves(seen: Collection[Memory], analysis: Analysis) -> Iterator[tuple[BackwardBegin, Leaf]]:
    """Arrays whose gradient the program uses after a backward call, although no tape of any call has read them.

    Their gradient stays what it was, mostly zero, while the loss may well depend on them: the whole of what lies
    between was not recorded. ``seen`` are the leaves that tapes did read. Arrays that a tape wrote are intermediate.
    """
    for gradient in sorted(analysis.log.gradients, key=lambda memory: memory.number):
        owner = gradient.gradient_of
        if owner is None or owner in seen or _is_made_on_tape(owner, analysis):
            continue
        leaf = next(seen_as(owner, gradient, analysis), None) or _whole(owner, gradient, analysis)
        if leaf is None:
            continue
        since = analysis.log.base
        for begin, later in itertools.zip_longest(analysis.log.backwards, analysis.log.backwards[1:]):
            end, following = begin.index, analysis.log.next_index if later is None else later.index
            used = any(end < op.index < following and uses(op, leaf, analysis) for op in analysis.of(gradient))
            read = any(since <= op.index < end and _reads(op, leaf, analysis) for op in analysis.of(owner))
            if used and read:
                yield begin, leaf
            since = end


def _is_made_on_tape(memory: Memory, analysis: Analysis) -> bool:
    """Whether a tape holds an operation that writes this memory."""
    return any(
        where.memory is memory
        for operation in analysis.of(memory)
        if getattr(operation, "entry", None) is not None
        for where, _ in analysis.writes(operation)
    )


def _whole(owner: Memory, gradient: Memory, analysis: Analysis) -> Leaf | None:
    """The leaf that a memory is as a whole, where no launch was given it."""
    array = owner.handle() if owner.handle is not None else None
    kind = _float_kind(analysis.log, owner, array)
    if kind is None or owner.size != gradient.size:
        return None
    return Leaf(
        owner,
        gradient,
        FloatView.flat(owner.address, owner.size, kind),
        FloatView.flat(gradient.address, gradient.size, kind),
        "",
    )


def _reads(operation: Operation, leaf: Leaf, analysis: Analysis) -> bool:
    return operation.inside is None and any(where.overlaps(leaf.range) for where in analysis.reads(operation))

"""What the operations of a log do to which bytes: asked by memory, once the accesses of kernels are surveyed."""

from __future__ import annotations

from collections.abc import Iterator

from warplint.verify.engine.execution.accesses import Access, view_of
from warplint.verify.engine.execution.log import Log
from warplint.verify.engine.execution.memory import Memory, Range
from warplint.verify.engine.execution.operations import (
    HostRead,
    HostWrite,
    KernelCall,
    NativeCall,
    Operation,
)
from warplint.verify.engine.execution.views import FloatView
from warplint.verify.engine.replaying.survey import Survey


class Analysis:
    """What the operations of a log do to which bytes, asked memory by memory."""

    def __init__(self, log: Log, survey: Survey) -> None:
        self.log = log
        self.survey = survey
        self._accesses: dict[int, tuple[tuple[Range, Access], ...]] = {}
        self._writes: dict[int, tuple[tuple[Range, Access], ...]] = {}
        self._reads: dict[int, tuple[Range, ...]] = {}
        self._by_memory: dict[Memory, list[Operation]] = {}
        for operation in log.operations:
            touched = (operation.source.memory,) if isinstance(operation, HostRead) else operation.touched
            for memory in touched:
                self._by_memory.setdefault(memory, []).append(operation)

    def of(self, memory: Memory) -> list[Operation]:
        """The operations that touch a memory, in order."""
        return self._by_memory.get(memory, [])

    def writes(self, operation: Operation) -> tuple[tuple[Range, Access], ...]:
        """The ranges that an operation (outside backward) writes."""
        known = self._writes.get(operation.index)
        if known is None:
            known = tuple(pair for pair in self.accesses(operation) if pair[1].writes)
            self._writes[operation.index] = known
        return known

    def reads(self, operation: Operation) -> tuple[Range, ...]:
        """The ranges that it reads."""
        known = self._reads.get(operation.index)
        if known is None:
            known = tuple(where for where, access in self.accesses(operation) if access.reads)
            self._reads[operation.index] = known
        return known

    def accesses(self, operation: Operation) -> tuple[tuple[Range, Access], ...]:
        """The ranges that an operation (outside backward) touches, and what it does with each."""
        known = self._accesses.get(operation.index)
        if known is None:
            known = self._accesses[operation.index] = tuple(self._found(operation))
        return known

    def _found(self, operation: Operation) -> Iterator[tuple[Range, Access]]:
        if isinstance(operation, KernelCall):
            yield from self._of_kernel(operation)
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
                yield extent(memory, view), self.survey.accesses.of(call, slot)

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


def extent(memory: Memory, view: FloatView) -> Range:
    """The bytes of a memory that a view covers."""
    low, stop = view.span
    return Range(memory, max(0, low - memory.address), min(memory.size, stop - memory.address))

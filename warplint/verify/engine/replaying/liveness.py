"""Which memories must be put back before operations run again: those that are read before they are overwritten.

The liveness analysis of compilers (Aho, Lam, Sethi, Ullman, *Compilers*, 2nd ed., section 9.2.5), by whole memories:
going back from the end, an operation that overwrites all of a memory without looking ends its life, one that reads of
it begins it. Only what is certain ends a life; what an operation may do besides keeps memory alive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field

from warplint.dataclass import dataclass
from warplint.verify.engine.execution.accesses import AccessTable, view_of
from warplint.verify.engine.execution.log import Log
from warplint.verify.engine.execution.memory import Memory
from warplint.verify.engine.execution.operations import (
    BackwardBegin,
    HostRead,
    HostWrite,
    KernelCall,
    NativeCall,
    Operation,
)
from warplint.verify.engine.execution.views import FloatView
from warplint.verify.engine.warp_values import descriptor

_DENSE = frozenset({"wp_memcpy_h2h", "wp_memset_host", "wp_memtile_host"})
"""Memory operations that write every byte from the first to the last."""


@dataclass(frozen=True)
class Effect:
    """``reads``: memories whose old contents may matter; ``ends``: those that are overwritten from end to end."""

    reads: tuple[Memory, ...]
    ends: tuple[Memory, ...] = ()


@dataclass
class Liveness:
    """Asks what operations need of the past; what kernels do is learned meanwhile, so only what was asked is kept."""

    log: Log
    accesses: AccessTable
    _known: dict[int, Effect] = field(default_factory=dict)

    def at_start(self, operations: Iterable[Operation]) -> frozenset[Memory]:
        """The memories that must be as they were before the first of the operations, for all of them to run alike."""
        live: set[Memory] = set()
        for operation in reversed(list(operations)):
            effect = self.of(operation)
            live.difference_update(effect.ends)
            live.update(effect.reads)
        return frozenset(live) | self.reached_by_handle

    @property
    def reached_by_handle(self) -> frozenset[Memory]:
        """What kernels reach through meshes and grids, which no parameter shows."""
        return frozenset(memory for handle in self.log.handles.values() for memory in handle.memories)

    def of(self, operation: Operation) -> Effect:
        """What one operation does."""
        known = self._known.get(operation.index)
        if known is None:
            known = self._of(operation)
            if not isinstance(operation, KernelCall) or not self.accesses.wants(operation):
                self._known[operation.index] = known
        return known

    def _of(self, operation: Operation) -> Effect:
        if isinstance(operation, KernelCall):
            if operation.adjoint:
                return Effect(operation.touched)
            return self._of_launch(operation)
        if isinstance(operation, NativeCall):
            if not operation.exact:
                return Effect(operation.touched)
            ends = tuple(self._whole(operation)) if operation.name in _DENSE else ()
            return Effect(tuple(where.memory for where in operation.reads), ends)
        if isinstance(operation, HostWrite):
            whole = operation.dest.size == operation.dest.memory.size
            return Effect((), (operation.dest.memory,) if whole else ())
        if isinstance(operation, HostRead):
            return Effect((operation.source.memory,))
        if isinstance(operation, BackwardBegin):
            return Effect(tuple(self._read_by(operation)))
        return Effect(())

    def _of_launch(self, call: KernelCall) -> Effect:
        read: dict[Memory, None] = {}
        overwritten: dict[Memory, None] = {}
        seen: set[Memory] = set()
        for slot in call.layout.slots:
            data = int(descriptor(call.params[slot.parameter], slot.offset).data)
            memory = self.log.memories.find(data) if data else None
            if memory is None:
                continue
            view = view_of(call, slot)
            seen.add(memory)
            access = self.accesses.of(call, slot)
            if view is None or access.reads or access.adds:
                read[memory] = None  # of indexed arrays, or numbers that are no floats, nobody knows
            elif access.writes and _is_all_of(view, memory) and self.accesses.fills(call, slot):
                overwritten[memory] = None
        read.update(dict.fromkeys(memory for memory in call.touched if memory not in seen))
        return Effect(tuple(read), tuple(memory for memory in overwritten if memory not in read))

    @staticmethod
    def _whole(call: NativeCall) -> Iterator[Memory]:
        source = {where.memory for where in call.reads}
        for where in call.writes:
            if where.size == where.memory.size and where.memory not in source:
                yield where.memory

    def _read_by(self, begin: BackwardBegin) -> Iterator[Memory]:
        """The loss, the seeds, and whatever the tape's launches made, since its gradient may be the seed."""
        if begin.loss is not None:
            yield begin.loss.memory
        for pair in begin.seeds:
            for array in pair[:2]:
                memory = self.log.memories.find(int(array.data)) if array.data else None
                if memory is not None:
                    yield memory
        for entry in begin.entries:
            if entry is not None and entry.forward is not None:
                yield from entry.forward.touched


def _is_all_of(view: FloatView, memory: Memory) -> bool:
    """Whether the floats of a view are all that the memory holds."""
    return view.span == (memory.address, memory.stop) and view.count * view.kind.itemsize == memory.size

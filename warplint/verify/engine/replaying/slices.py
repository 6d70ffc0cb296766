"""Bringing some memories to what they held at an operation by running those operations alone that they hang on.

A backward slice (Weiser, *Program slicing*, ICSE 1981) of the log by whole memories. It ends where the log has a copy:
at checkpoints, and at gradients that were kept when the program used them, so that no backward call is run for the
optimiser's step behind it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from warplint.dataclass import dataclass
from warplint.verify.engine.execution.memory import Memory
from warplint.verify.engine.execution.operations import HostWrite, KernelCall, NativeCall, Operation
from warplint.verify.engine.replaying.analysis import Analysis
from warplint.verify.engine.replaying.replay import Machine
from warplint.verify.engine.replaying.steps import Put, Runnable


@dataclass(frozen=True)
class Slice:
    """``steps`` in order, and the memories that must be as they were before the first operation of the stretch."""

    steps: tuple[Runnable, ...]
    needed: frozenset[Memory]


def slice_of(wanted: Collection[Memory], start: int, stop: int, analysis: Analysis) -> Slice:
    """What operations ``[start, stop)`` do to the wanted memories.

    Adjoints are taken to write gradients alone.
    """
    log, needed = analysis.log, set(wanted)
    steps: list[Runnable] = []
    for operation in reversed(log.between(start, stop)):
        if not _may_write(operation, needed, analysis):
            continue
        ends = analysis.survey.liveness.of(operation).ends
        needed.difference_update(ends)
        steps.append(operation)
        for memory in operation.touched:
            copy = log.copy_at_use(memory, operation) if memory in log.gradients else None
            if copy is not None:
                needed.discard(memory)
                steps.append(Put(memory, copy))
            elif memory not in ends:
                needed.add(memory)
    return Slice(tuple(reversed(steps)), frozenset(needed))


def _may_write(operation: Operation, memories: Collection[Memory], analysis: Analysis) -> bool:
    """Whether an operation may write one of the memories, or something that nobody sees."""
    if isinstance(operation, NativeCall) and not operation.exact:
        return True
    if isinstance(operation, KernelCall) and operation.adjoint:
        return any(memory in memories and memory in analysis.log.gradients for memory in operation.touched)
    if not isinstance(operation, KernelCall | NativeCall | HostWrite):
        return False
    return any(where.memory in memories for where, _ in analysis.writes(operation))


def resume(machine: Machine, analysis: Analysis, index: int, wanted: Collection[Memory]) -> None:
    """Bring the wanted memories to what they held before operation ``index``; others may hold anything afterwards.

    Where kernels may reach what no parameter shows, or the log is small, all operations are run.
    """
    start = machine.nearest(index)
    if analysis.survey.large and not machine.log.handles and not _leads_on(machine.log.between(start, index)):
        stretch = slice_of(wanted, start, index, analysis)
        if machine.put_back(start, stretch.needed):
            for step in stretch.steps:
                step.run()
            return
    machine.resume(index)


def _leads_on(operations: Sequence[Operation]) -> bool:
    return any(isinstance(operation, KernelCall) and operation.layout.unseen for operation in operations)

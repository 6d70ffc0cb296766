"""Whether the program uses a view of a gradient that was cleared under it: run again, with the clearing undone.

That a view was still held when its gradient was cleared is no fault: a name may outlive its use. So the program is run
again from a snapshot, once as it is and once with the gradient's numbers put back behind the clearing, up to its next
backward call, which is not run. Where the leaf comes out another, the program has used the view for what it no longer
shows.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from warplint.dataclass import dataclass
from warplint.verify.engine.differences.measure import Clock
from warplint.verify.engine.execution.log import Log
from warplint.verify.engine.execution.memory import Memory
from warplint.verify.engine.execution.operations import BackwardBegin, Happening, Operation
from warplint.verify.engine.judging.arbiter import Reserve, Snapshot, Unanswered
from warplint.verify.engine.judging.culprits import places
from warplint.verify.engine.replaying.adjoint import float_kind_of
from warplint.verify.engine.replaying.analysis import Analysis
from warplint.verify.engine.replaying.replay import Machine
from warplint.verify.records import EmptiedView, SparedView

PATIENCE = 10.0
"""Seconds that one run may take, at most."""

NOTICED = 8
"""Operations that may be noticed (the host's stores) when one begins, and get their numbers before it."""


@dataclass(frozen=True)
class Sparing:
    """Puts the numbers of memory ``gradient`` back behind operation ``clearing`` (if ``spares``); asks for ``leaf``.

    The answer is by how much the leaf differs, at most, from ``known``: its contents at the same backward call when the
    program ran.
    """

    gradient: int
    clearing: int
    leaf: int
    known: bytes
    kind: npt.DTypeLike
    backward: int
    spares: bool

    def begin(self, result: int, log: Log) -> SparedRun:
        """Be the process that answers."""
        return SparedRun(self, result, log)


class SparedRun:
    """Keeps the gradient's numbers over the clearing, and ends the process at the next backward call."""

    def __init__(self, asked: Sparing, result: int, log: Log) -> None:
        self._asked = asked
        self._result = result
        self._log = log
        self._kept: npt.NDArray[np.uint8] | None = None
        self._is_over = False

    def operation(self) -> None:
        """An operation is about to run."""
        soon = self._asked.clearing - NOTICED <= self._log.next_index <= self._asked.clearing
        if self._asked.spares and not self._is_over and soon:
            self._kept = self._log.memories.all[self._asked.gradient].read()

    def ran(self) -> None:
        """It has run."""
        if self._kept is not None and self._log.next_index > self._asked.clearing:
            self._log.memories.all[self._asked.gradient].write(self._kept, 0)
            self._kept, self._is_over = None, True

    def backward(self, begin: BackwardBegin) -> None:
        """A backward call begins."""
        if begin.number < self._asked.backward:
            return
        if begin.number > self._asked.backward or self._asked.spares != self._is_over:
            os._exit(3)
        found = self._log.memories.all[self._asked.leaf].read().view(self._asked.kind)
        known = np.frombuffer(self._asked.known, dtype=self._asked.kind)
        apart = np.abs(found.astype(np.float64) - known.astype(np.float64))
        os.write(self._result, struct.pack("<d", float(np.max(apart, initial=0.0))))
        os._exit(0)


def spared_views(machine: Machine, analysis: Analysis, reserve: Reserve | None, clock: Clock) -> Iterator[SparedView]:
    """The readings of a gradient whose views the program uses after they were cleared, each place once."""
    told: set[object] = set()
    for seen in analysis.log.operations:
        if not isinstance(seen, Happening) or seen.make is not EmptiedView or reserve is None:
            continue
        place = places(seen.fields["read"])
        written = _written(seen, analysis)
        if place in told or written is None or clock.left <= 0:
            continue
        told.add(place)
        leaf, begin = written
        moved = _moved(machine, seen, leaf, begin, reserve.before(_clearing(seen, analysis)), analysis)
        if moved:
            yield SparedView(
                leaf.number,
                allocated=places(leaf.stack),
                seen=place,
                cleared=places(seen.stack),
                largest=seen.fields["largest"],
                moved=moved,
            )


def _written(seen: Happening, analysis: Analysis) -> tuple[Memory, BackwardBegin] | None:
    """The leaf whose gradient was cleared, and the next backward call, where it is written between the two."""
    gradients = (memory for memory in analysis.log.gradients if memory.number == seen.fields["gradient"])
    leaf = next((gradient.gradient_of for gradient in gradients), None)
    begin = next((each for each in analysis.log.backwards if each.index > seen.index), None)
    if leaf is None or begin is None:
        return None
    writes = (
        operation
        for operation in analysis.of(leaf)
        if seen.index < operation.index < begin.index and operation.inside is None
    )
    return (leaf, begin) if any(_writes(leaf, operation, analysis) for operation in writes) else None


def _clearing(seen: Happening, analysis: Analysis) -> int:
    """The operation that cleared: one may have emptied several views, which are told behind it."""
    index = seen.index - 1
    while isinstance(analysis.log[index], Happening):
        index -= 1
    return index


def _writes(memory: Memory, operation: Operation, analysis: Analysis) -> bool:
    return any(where.memory is memory for where, _ in analysis.writes(operation))


def _moved(
    machine: Machine,
    seen: Happening,
    leaf: Memory,
    begin: BackwardBegin,
    snapshot: Snapshot | None,
    analysis: Analysis,
) -> float:
    """By how much the leaf is another where the clearing is undone; 0 where it is not, or where that is not known."""
    kind = float_kind_of(leaf, analysis)
    if snapshot is None or kind is None or leaf.size % kind.itemsize:
        return 0.0
    machine.rewind(begin.index)
    known = leaf.read().tobytes()
    gradient, clearing = seen.fields["gradient"], _clearing(seen, analysis)

    def asked(spares: bool) -> float:
        question = Sparing(gradient, clearing, leaf.number, known, kind, begin.number, spares)
        return snapshot.evaluate(question, PATIENCE)

    try:
        return asked(spares=True) if asked(spares=False) == 0.0 else 0.0
    except Unanswered:
        return 0.0

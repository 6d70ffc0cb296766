"""Whether what the host wrote on a tape's array is to blame: the tape lets the gradient pass, as if it were not there.

A replay repeats an upload and an adjoint passes it over; the program, run again, has the host compute it anew. Counted
as the tape counts it, an upload moves nothing: what changes in front of it stays changed behind it. Where differences
of *that* objective agree with the tape, and those of the program do not, the host's writes are all that is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt

from warplint.dataclass import dataclass
from warplint.proof import Repair
from warplint.verify.engine.differences.finite_difference import DirectionVector, judge_direction
from warplint.verify.engine.differences.measure import resolution
from warplint.verify.engine.execution.memory import Memory
from warplint.verify.engine.execution.operations import HostWrite, Operation
from warplint.verify.engine.execution.views import FloatView
from warplint.verify.engine.judging.culprits import places
from warplint.verify.engine.replaying.groups import Group
from warplint.verify.engine.replaying.windows import Window
from warplint.verify.engine.warp_values import scalars_of
from warplint.verify.records import Culprit, GradientStatus, Place

BUDGET = 16
"""Evaluations for one direction."""


@dataclass(eq=False)
class PassedOver:
    """An upload that moves nothing: its numbers, and on top of them whatever had changed in front of it."""

    write: HostWrite
    view: FloatView
    unmoved: npt.NDArray[np.generic] | None = None
    """What it found when nothing was moved; the first run tells."""
    found_change: bool = field(default=False)

    @property
    def index(self) -> int:
        """The number of the operation that it stands for."""
        return self.write.index

    def run(self) -> None:
        """Write, and put the change back."""
        found = self.view.read()
        self.write.run()
        if self.unmoved is None:
            self.unmoved = found
            return
        change = found - self.unmoved
        if change.any():
            self.found_change = True
            self.view.write(self.view.read() + change)


def culprits(
    group: Group, window: Window, vectors: Sequence[DirectionVector], returned: Sequence[Operation]
) -> tuple[Culprit, ...]:
    """The writes that account for all that is wrong, each statement once; none where they do not.

    ``window`` begins where the leaf is moved; ``returned`` are the operations that bring data from the host.
    """
    passed = [PassedOver(write, view) for write in returned if isinstance(write, HostWrite) for view in _floats(write)]
    if not passed or not _agrees(group, window, vectors, passed):
        return ()
    by_place: dict[tuple[Place, ...], list[PassedOver]] = {}
    for each in passed:
        if each.found_change:
            by_place.setdefault(places(each.write.stack), []).append(each)
    blamed = [
        stack
        for stack, own in by_place.items()
        if len(by_place) == 1 or not _agrees(group, window, vectors, [each for each in passed if each not in own])
    ]
    return tuple(_culprit(by_place[stack][0].write.dest.memory, stack) for stack in blamed)


def _culprit(memory: Memory, stack: tuple[Place, ...]) -> Culprit:
    return Culprit(Repair.HOST, memory=memory.number, allocated=places(memory.stack), writer=stack)


def _floats(write: HostWrite) -> Iterator[FloatView]:
    """The numbers that an upload writes, where its memory holds floats that are known."""
    array = write.dest.memory.handle() if write.dest.memory.handle is not None else None
    kind = scalars_of(getattr(array, "dtype", None)).kind
    if kind is not None and write.dest.size % kind.itemsize == 0:
        yield FloatView.flat(write.dest.address, write.dest.size, kind)


def _agrees(group: Group, window: Window, vectors: Sequence[DirectionVector], passed: Sequence[PassedOver]) -> bool:
    """Whether differences agree with the tape along every direction that can be told, and can along one."""
    leaf, epsilon = group.leaf, resolution(group)
    with window.replaced({each.index: each for each in passed}):
        window.evaluate({}, lambda old: old, leaf)
        judged = {
            judge_direction(
                lambda step, vector=vector: window.evaluate({}, lambda old: vector.moved(old, step), leaf),  # type: ignore[misc]
                vector.ad,
                dtype_eps=epsilon,
                kind=vector.kind,
                budget=BUDGET,
            ).status
            for vector in vectors
        }
    return GradientStatus.PASS in judged and GradientStatus.FAIL not in judged

"""What-if repairs: the smallest set under which the backward pass agrees with finite differences is the diagnosis."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from warplint.dataclass import dataclass
from warplint.proof import Repair
from warplint.verify.engine.differences.directions import DirectionVector, is_kinked
from warplint.verify.engine.execution.operations import HostWrite, KernelCall, NativeCall
from warplint.verify.engine.replaying.adjoint import BackwardPass
from warplint.verify.engine.replaying.analysis import Analysis
from warplint.verify.engine.replaying.history import TooLarge
from warplint.verify.engine.warp_values import RETAIN_FLAG, descriptor
from warplint.verify.records import Direction, GradientStatus

ORDER = (
    Repair.ONCE,
    Repair.FRESH,
    Repair.GRADIENT,
    Repair.RETAIN,
    Repair.CHAIN,
    Repair.TAPED,
    Repair.CUT,
    Repair.ARGUMENTS,
    Repair.MEMORY,
)
"""Which is named first where several explain the same."""

TOLERANCE = 0.02
LARGEST_SET = 4


@dataclass(frozen=True)
class Measured:
    """A direction, what was measured along it, and what the gradient claims."""

    vector: npt.NDArray[np.float64]
    direction: Direction

    def claim(self, gradient: npt.NDArray[np.float64]) -> float:
        """The directional derivative that ``gradient`` claims."""
        flat = gradient.reshape(self.vector.shape)
        moving = self.vector != 0.0
        return float(np.sum(flat[moving] * self.vector[moving]))

    def agrees(self, gradient: npt.NDArray[np.float64]) -> bool:
        """Whether it is what was measured."""
        claim, fd = self.claim(gradient), self.direction.fd
        error = self.direction.error if np.isfinite(self.direction.error) else 0.0
        if not np.isfinite(claim):
            return False
        low, high = self._allowed()
        if low <= claim <= high:
            return True
        fd = min((low, high), key=lambda end: abs(claim - end))
        return abs(claim - fd) <= TOLERANCE * max(abs(claim), abs(fd)) + 2.0 * error

    @property
    def _is_one_sided(self) -> bool:
        """Whether the gradient passed on a kink, where every slope between two is a derivative."""
        return self.direction.status is GradientStatus.PASS and is_kinked(self.direction)

    def _allowed(self) -> tuple[float, float]:
        """What was measured: one value, or on a kink that allows the gradient all between the one-sided slopes."""
        told = self.direction
        ends = (told.forward, told.backward) if self._is_one_sided else (told.fd, told.fd)
        known = [end for end in ends if end is not None and np.isfinite(end)] or [told.fd]
        return min(known), max(known)

    def distance(self, gradient: npt.NDArray[np.float64]) -> float:
        """How far off it is, in units of the program's own error: 1 as the program has it, 0 when right."""
        off = 0.0 if self._is_one_sided else abs(self.direction.ad - self.direction.fd)
        claim = self.claim(gradient)
        if not np.isfinite(off) or off == 0.0:
            return 0.0 if self.agrees(gradient) else 1.0
        return float(abs(claim - self.direction.fd) / off) if np.isfinite(claim) else float("inf")


def measured(vectors: Sequence[DirectionVector], judged: Sequence[Direction]) -> list[Measured]:
    """The directions that can decide between repairs."""
    telling = (GradientStatus.FAIL, GradientStatus.PASS, GradientStatus.FLAT)
    pairs = zip(vectors, judged, strict=True)
    return [Measured(v.vector, d) for v, d in pairs if d.status in telling and np.isfinite(d.fd)]


@dataclass(frozen=True)
class Diagnosis:
    """The smallest set of repairs that makes the gradient right, and other sets of the same size that do as well."""

    repairs: tuple[Repair, ...]
    others: tuple[tuple[Repair, ...], ...] = ()


def diagnose(
    backward: BackwardPass, directions: Sequence[Measured], analysis: Analysis, besides: tuple[Repair, ...] = ()
) -> Diagnosis | None:
    """Try repairs singly, then in sets; None where no set is enough (the kernels' own adjoints may be wrong).

    ``besides`` are made in every try: what is known to be wrong already.
    """
    possible = [repair for repair in ORDER if repair in applicable(backward, analysis)]
    for size in range(0 if besides else 1, min(LARGEST_SET, len(possible)) + 1):
        tried = ((*chosen, *besides) for chosen in itertools.combinations(possible, size))
        enough = [chosen for chosen in tried if _repairs(backward, directions, chosen)]
        if enough:
            return Diagnosis(enough[0], tuple(enough[1:]))
        if size == 2 and not _any_hope(backward, directions, (*possible, *besides)):
            return None
    return None


def _repairs(backward: BackwardPass, directions: Sequence[Measured], chosen: Sequence[Repair]) -> bool:
    try:
        gradient = backward.gradient(frozenset(chosen))
    except TooLarge:
        return False
    return all(direction.agrees(gradient) for direction in directions)


def _any_hope(backward: BackwardPass, directions: Sequence[Measured], possible: Sequence[Repair]) -> bool:
    """Whether everything together is enough: dropping repetitions may drop what is meant, so with and without."""
    whole = tuple(possible)
    return _repairs(backward, directions, whole) or _repairs(
        backward, directions, tuple(repair for repair in whole if repair is not Repair.ONCE)
    )


def applicable(backward: BackwardPass, analysis: Analysis) -> frozenset[Repair]:
    """The repairs that would change anything about this group."""
    return frozenset(_applicable(backward, analysis)) | {Repair.FRESH}


def _applicable(backward: BackwardPass, analysis: Analysis) -> Iterator[Repair]:
    begins = backward.group.backwards
    everything = frozenset(Repair)
    plain = [step for begin in begins for step in backward.chosen(begin, frozenset())]
    full = [step for begin in begins for step in backward.chosen(begin, everything - {Repair.ONCE})]
    own = {id(step) for step in plain}
    for step in full:
        if step.cut:
            yield Repair.CUT
        elif id(step) not in own:
            yield Repair.CHAIN if step.entry is not None else Repair.TAPED
        if isinstance(step.forward, KernelCall):
            yield from _of_launch(step.forward, analysis)
        elif isinstance(step.forward, NativeCall | HostWrite) and id(step) not in own:
            yield Repair.GRADIENT
    if any(backward.repeated(begin) for begin in begins):
        yield Repair.ONCE
    if any(step.changed_arguments for step in plain):
        yield Repair.ARGUMENTS
    yield Repair.MEMORY


def _of_launch(call: KernelCall, analysis: Analysis) -> Iterator[Repair]:
    for slot in call.layout.slots:
        found = descriptor(call.params[slot.parameter], slot.offset)
        if found.data and slot.scalars.floating:
            if not found.grad and analysis.survey.accesses.of(call, slot).writes:
                yield Repair.GRADIENT
            if found.flags & RETAIN_FLAG:
                yield Repair.RETAIN

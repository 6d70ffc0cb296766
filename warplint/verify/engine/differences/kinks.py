"""Kinks at the starting point: the one-sided slopes differ however small the step is, and each is a derivative.

Programs start on kinks more often than chance has it: velocities at zero, values at a limit, contacts that touch. The
difference of the one-sided slopes falls with the step for a smooth function, and to a limit that is not zero at a
kink.
"""

from __future__ import annotations

from collections.abc import Sequence

from warplint.dataclass import dataclass
from warplint.verify.engine.differences.ladder import Ladder, Sample, Side

ONE_SIDES = (Side.FORWARD, Side.BACKWARD)
STEADY = 0.35
"""By how much of the jump the limits that two pairs of steps point to may differ, and still be one limit.

The slopes themselves need not settle: measured on a semi-Lagrangian advection, each moves by a third from h = 1e-3 to
1e-4.
"""
TOLERANCE = 0.02
VISIBLE = 4.0
"""A jump must be so many times what rounding makes of it."""


@dataclass(frozen=True)
class Kink:
    """Where the one-sided slopes go: any value between ``low`` and ``high`` is a derivative (Clarke, in one direction).

    ``size`` is the limit of their difference, ``sample`` the finest step that shows it.
    """

    low: float
    high: float
    size: float
    noise: float
    sample: Sample

    def allows(self, ad: float) -> bool:
        """Whether ``ad`` is one of the two slopes or lies between them."""
        slack = TOLERANCE * max(abs(self.low), abs(self.high), abs(ad)) + self.noise
        return self.low - slack <= ad <= self.high + slack

    def nearest(self, ad: float) -> float:
        """That measured one-sided slope which is nearer to ``ad``."""
        return min((self.sample.slope(side) for side in ONE_SIDES), key=lambda slope: abs(slope - ad))

    def __str__(self) -> str:
        return f"one-sided slopes {self.low:.4g} and {self.high:.4g} at h = {self.sample.width:.1g}"


def kink_in(ladder: Ladder, samples: Sequence[Sample]) -> Kink | None:
    """The kink that three steps show, the coarsest first; None where the jump falls to nothing, or noise hides it.

    Wherever it can be seen, it must be there at all finer steps too; else it lies beside the starting point.
    """
    coarse, middle, fine = samples
    first = {side: _limit(coarse, middle, side) for side in ONE_SIDES}
    limits = {side: _limit(middle, fine, side) for side in ONE_SIDES}
    signed = limits[Side.FORWARD] - limits[Side.BACKWARD]
    size, noise = abs(signed), ladder.floor(fine)
    unsteady = max(abs(first[side] - limits[side]) for side in ONE_SIDES)
    if unsteady > STEADY * size or size <= VISIBLE * noise or fine.jump * signed <= 0.0:
        return None
    for sample in ladder.samples:
        hidden = not sample.finite(Side.CENTRAL) or VISIBLE * ladder.floor(sample) >= size
        if sample.step < fine.step and not hidden and sample.jump * signed <= 0.5 * size * size:
            return None
    slopes = [*limits.values(), *(fine.slope(side) for side in ONE_SIDES)]
    return Kink(min(slopes), max(slopes), size, noise, fine)


def _limit(coarse: Sample, fine: Sample, side: Side) -> float:
    """Where a slope goes that is linear in the step."""
    at_coarse, at_fine = coarse.slope(side), fine.slope(side)
    return (coarse.width * at_fine - fine.width * at_coarse) / (coarse.width - fine.width)

"""Central and one-sided differences of one function over a ladder of steps, with an error estimate for each window.

Truncation falls with the square of the step (first order on one side), rounding grows with its inverse; between the
two lies a window in which neighbouring steps agree (Gill, Murray, Saunders, Wright, *Computing forward-difference
intervals for numerical optimization*, SIAM J. Sci. Stat. Comput. 4, 1983). Roughness, plateaus and kinks show as steps
that do not agree although rounding would let them.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable

from warplint.dataclass import dataclass

Objective = Callable[[float], float]
"""The objective, summed in float64, with the leaf moved by ``step`` along a direction; 0 is the program's own point."""

STEPS = (3e-1, 1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
CONVERGING = 0.35
"""The change between the finer pair over that of the coarser pair: 0.1 for second order, 0.3 for first, 1/3 apart."""
APART = 0.01
"""Relative distance of the evaluations that tell the noise: far beyond an ulp, near enough to be straight."""
NEIGHBOURS = 6
"""So many evaluations tell the noise, none of which is of use without the others."""
SUMMING = 6.0
"""Uniform errors of half an ulp, of partial sums that grow evenly: twice the root of three, times that of three."""
COARSEST_ULPS = 64
"""A step must be this many machine epsilons, else the rounding of the leaf itself spoils it."""


class OutOfBudget(Exception):
    """No further evaluation is allowed. An objective may raise it as well (a time limit): what was seen is judged."""


class Side(str, enum.Enum):
    """Which difference is meant: central where both sides are finite, else the one side that is."""

    CENTRAL = "central"
    FORWARD = "forward"
    BACKWARD = "backward"


@dataclass(frozen=True)
class Sample:
    """The objective at ``-step`` and ``+step`` (relative), ``width`` being the absolute step."""

    step: float
    width: float
    base: float
    plus: float
    minus: float

    def slope(self, side: Side) -> float:
        """The difference quotient; not finite where the objective is not."""
        if side is Side.FORWARD:
            return (self.plus - self.base) / self.width
        if side is Side.BACKWARD:
            return (self.base - self.minus) / self.width
        return (self.plus - self.minus) / (2.0 * self.width)

    def finite(self, side: Side) -> bool:
        """Whether this side's quotient is a number."""
        return math.isfinite(self.slope(side))

    @property
    def still(self) -> bool:
        """The objective did not move at all, to the last bit."""
        return self.plus == self.base == self.minus

    @property
    def jump(self) -> float:
        """Forward minus backward slope: falls with the step for a smooth function, stays at a kink."""
        return self.slope(Side.FORWARD) - self.slope(Side.BACKWARD)

    @property
    def steepest(self) -> float:
        """The larger of the two one-sided slopes in magnitude, 0 where neither is finite."""
        slopes = (abs(self.slope(Side.FORWARD)), abs(self.slope(Side.BACKWARD)))
        return max((slope for slope in slopes if math.isfinite(slope)), default=0.0)


@dataclass(frozen=True)
class Window:
    """Three neighbouring steps, coarsest first, and what they say together: ``fd`` ± ``error``, told at ``step``."""

    samples: tuple[Sample, Sample, Sample]
    side: Side
    fd: float
    spread: float
    floor: float
    step: float

    @property
    def error(self) -> float:
        """The disagreement of the steps, or what rounding alone explains if that is more."""
        return max(self.spread, self.floor)

    @property
    def finest(self) -> float:
        """The smallest step of the three."""
        return self.samples[2].step

    @property
    def converging(self) -> bool:
        """The finer pair agrees better than the coarser pair."""
        coarse, middle, fine = (sample.slope(self.side) for sample in self.samples)
        return abs(middle - fine) <= abs(coarse - middle)

    @classmethod
    def over(cls, samples: tuple[Sample, Sample, Sample], side: Side, floor: Callable[[Sample], float]) -> Window:
        """The finest step's value where the three converge as truncation does, else the median of the three.

        What is left then is a tenth of the last change for second order, and under half of it for first order.
        """
        slopes = [sample.slope(side) for sample in samples]
        coarse, fine = abs(slopes[0] - slopes[1]), abs(slopes[1] - slopes[2])
        if fine <= CONVERGING * coarse:
            return cls(samples, side, slopes[2], fine / 2.0, floor(samples[2]), samples[2].step)
        fd = sorted(slopes)[1]
        return cls(samples, side, fd, max(slopes) - min(slopes), floor(samples[1]), samples[slopes.index(fd)].step)


class Ladder:
    """Evaluations of one objective, remembered; every new one is paid from the budget."""

    def __init__(
        self,
        objective: Objective,
        scale: float,
        dtype_eps: float,
        budget: int,
        noise: float | None,
        terms: int = 1,
    ) -> None:
        """``noise`` is the absolute noise of one evaluation, ``None``: ``dtype_eps`` times its magnitude.

        ``terms``: how many numbers are added in turn to make the objective.
        """
        self._objective = objective
        self._scale = scale
        self._eps = dtype_eps
        self._budget = budget
        self._given_noise = noise
        self._terms = terms
        self._measured_noise = 0.0
        self.noise_is_measured = False
        self.evaluations = 0
        self.base = math.nan
        self._samples: dict[float, Sample] = {}

    def start(self) -> float:
        """The objective at the program's own point."""
        self.base = self._evaluate(0.0)
        return self.base

    def sample(self, step: float) -> Sample:
        """Both sides at a relative step."""
        if step not in self._samples:
            width = step * self._scale
            plus, minus = self._evaluate(width), self._evaluate(-width)
            self._samples[step] = Sample(step, width, self.base, plus, minus)
        return self._samples[step]

    @property
    def left(self) -> int:
        """How many evaluations the budget still pays."""
        return self._budget - self.evaluations

    @property
    def samples(self) -> tuple[Sample, ...]:
        """Everything sampled, the coarsest step first."""
        return tuple(self._samples[step] for step in sorted(self._samples, reverse=True))

    def noise(self, *values: float) -> float:
        """The absolute noise of one evaluation near the program's own point, or where the objective has ``values``."""
        if self._given_noise is not None:
            return max(self._given_noise, self._measured_noise)
        magnitude = max(abs(value) for value in (self.base, *values) if math.isfinite(value))
        return max(self._eps * magnitude, self._measured_noise)

    @property
    def rounding(self) -> float:
        """What rounding of the objective's terms amounts to: they are at least as large as it is, or as it moves."""
        return self._eps * max(abs(self.base), self.reach)

    @property
    def summing(self) -> float:
        """What rounding makes of a sum in turn, if each addition rounds by chance: the root of a random walk.

        Where the same roundings fall on both sides of a difference it is less, so that nothing is called wrong by it.
        """
        return self._eps * abs(self.base) * math.sqrt(self._terms) / SUMMING if self._terms > 1 else 0.0

    @property
    def underflow(self) -> float:
        """The smallest normal number of the coarsest arithmetic: what is below it need not move anything."""
        return 2.0**-14 if self._eps >= 2.0**-11 else 2.0**-126 if self._eps >= 2.0**-24 else 2.0**-1022

    @property
    def reach(self) -> float:
        """How far the objective moves over everything sampled."""
        sides = [value for sample in self._samples.values() for value in (sample.plus, sample.minus)]
        values = [self.base, *(value for value in sides if math.isfinite(value))]
        return max(values) - min(values)

    @property
    def finest_sensible(self) -> float:
        """The relative step below which the leaf's own rounding spoils the difference."""
        return COARSEST_ULPS * self._eps

    def floor(self, sample: Sample) -> float:
        """The error of a slope by rounding alone."""
        return self.noise(sample.plus, sample.minus) / sample.width

    def visible(self, difference: float) -> float:
        """The smallest relative step at which a difference of slopes stands eight times out of the noise."""
        if difference <= 0.0:
            return math.inf
        return max(8.0 * self.noise() / (difference * self._scale), self.finest_sensible)

    def side(self) -> Side:
        """Central unless one side is never finite."""
        for side in (Side.CENTRAL, Side.FORWARD, Side.BACKWARD):
            if any(sample.finite(side) for sample in self._samples.values()):
                return side
        return Side.CENTRAL

    def windows(self, side: Side | None = None) -> tuple[Window, ...]:
        """All windows of three neighbouring finite steps, the coarsest first; by default of the side that is told."""
        told = self.side() if side is None else side
        usable = [sample for sample in self.samples if sample.finite(told)]
        triples = zip(usable, usable[1:], usable[2:], strict=False)
        return tuple(Window.over(triple, told, self.floor) for triple in triples)

    def plateau(self) -> float:
        """The largest step up to which nothing moves, 0 where something does at the finest step already."""
        still = 0.0
        for sample in reversed(self.samples):
            if not sample.still:
                break
            still = sample.step
        return still

    def measure_noise(self, fd: float) -> None:
        """Second differences of evaluations one percent apart beside a fine step are noise; so is a plateau's height.

        The place matters: at the program's own point values are often round numbers, and sums of them exact. The
        distance matters: a few ulps apart, the roundings of a long sum are the same.
        """
        if self.noise_is_measured:
            return
        self.noise_is_measured = True
        self._measured_noise = 2.0 * self.plateau() * self._scale * abs(fd)
        finite = [sample for sample in self.samples if sample.finite(Side.CENTRAL) and not sample.still]
        if not finite:
            return
        if self.evaluations + NEIGHBOURS > self._budget:
            raise OutOfBudget
        sample = finite[-2:][0]
        for sign, value in ((1.0, sample.plus), (-1.0, sample.minus)):
            near = [self._evaluate(sign * sample.width * (1.0 + APART * k)) for k in (1, 2, 3)]
            run = [value, *near]
            for left, middle, right in zip(run, run[1:], run[2:], strict=False):
                bend = abs(left - 2.0 * middle + right)
                if math.isfinite(bend):
                    self._measured_noise = max(self._measured_noise, bend)

    def _evaluate(self, step: float) -> float:
        if self.evaluations >= self._budget:
            raise OutOfBudget
        self.evaluations += 1
        return float(self._objective(step))

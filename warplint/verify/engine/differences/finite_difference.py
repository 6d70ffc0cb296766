"""Finite differences that know their own error: one directional derivative, and a leaf's judgement from several.

The caller owns the program (a replay, a fork, a single launch) and hands in ``objective(step)``; this room owns the
numbers: the ladder of steps is in ``ladder.py``, the choice of directions in ``directions.py``.

A failure is a claim, so it is made only where the disagreement is far outside the error of the difference, where the
difference keeps its value down to the smallest step at which the claimed derivative would still be visible, and where
the program does not stand on a kink whose one-sided slopes allow the claim.
"""

from __future__ import annotations

import itertools
import math

from warplint.dataclass import dataclass
from warplint.verify.engine.differences.directions import (
    DirectionVector,
    LeafJudgement,
    both,
    combine,
    directions,
    one_sided,
    wants_one_sided,
)
from warplint.verify.engine.differences.kinks import Kink, kink_in
from warplint.verify.engine.differences.ladder import STEPS, Ladder, Objective, OutOfBudget, Sample, Side, Window
from warplint.verify.engine.differences.precision import EPS32, EPS64
from warplint.verify.records import Direction, GradientStatus

__all__ = [
    "EPS32",
    "EPS64",
    "DirectionVector",
    "LeafJudgement",
    "Objective",
    "OutOfBudget",
    "both",
    "combine",
    "directions",
    "is_hidden",
    "judge_direction",
    "one_sided",
    "wants_one_sided",
]

FIRST = (3e-2, 1e-2, 3e-3)
"""Where most programs are both smooth and above the noise."""
DUST = 1e-5
"""A gradient of this share of the slopes beside a plateau is what rounding leaves of a zero, and nothing swallowed."""
LARGE = (1.0, 1e1, 1e2, 1e3, 1e4)
"""Steps that wake an objective in which smaller changes are absorbed."""
TOLERANCE = 0.02
TIGHT = 0.01
"""An error below this share of the derivative decides; a fault of 5 % lies outside ``TOLERANCE + 3 * TIGHT``."""
LOOSE = 0.02
"""The largest error with which agreement still counts, said so in the reason; a fault of 5 % stays outside."""
ACCUMULATED = 500.0
"""Units of rounding that a change must exceed at small steps before it contradicts anything.

Long sums in single precision have slopes of their own there. Measured: 800,000 terms added in turn, exact derivative
55384; differences 54536 at h = 0.1, but steadily 61400 from h = 1e-3 down to 1e-4.
"""
PLAINLY = 0.005
"""By how much of themselves two differences and the claim may part, with the rounding, to be one at first sight."""
STRAIGHT = 0.1
"""The share of the slope that two one-sided differences may part by, so that one step is enough to agree at."""
HIDDEN = 0.05
"""The share of a slope that rounding makes at the first step, above which coarser steps are not tight either."""
SETTLING = 13
"""Evaluations that it takes to see four more steps on both sides, or three and the noise beside one."""
PLAIN = 50.0
"""The first steps show a kink beyond doubt if it is so many times what rounding makes of it."""
FINER = 1e-4
"""The step that tells a kink at the starting point from one beside it."""
COARSE = 0.15
"""The largest error with which a disagreement still counts."""


@dataclass(frozen=True)
class _Verdict:
    """A judgement before it becomes a record; ``sample`` is where the one-sided slopes are told."""

    status: GradientStatus
    reason: str
    fd: float = math.nan
    error: float = math.nan
    sample: Sample | None = None


def judge_direction(
    objective: Objective,
    ad: float,
    *,
    scale: float = 1.0,
    dtype_eps: float = EPS32,
    budget: int = 48,
    kind: str = "",
    noise: float | None = None,
    terms: int = 1,
) -> Direction:
    """Whether ``ad`` is the derivative of ``objective`` at 0, as far as ``dtype_eps`` lets anybody tell.

    ``scale`` multiplies the relative steps (1 for a :class:`DirectionVector`, whose vector carries the units).
    ``dtype_eps`` is the machine epsilon of the coarsest arithmetic between leaf and objective. ``noise`` is the
    absolute noise of one evaluation where the caller knows it better than ``dtype_eps * |objective|``, ``terms`` how
    many numbers are added in turn to make the objective. At most ``budget`` evaluations; a clear pass takes three where
    the objective is nearly straight, else five, a clear failure eleven. Never raises for what the objective
    returns; an objective that raises :class:`OutOfBudget` ends the search, and what was seen is judged.
    """
    ladder = Ladder(objective, scale, dtype_eps, budget, noise, terms)
    try:
        verdict = _judge(ladder, ad)
    except OutOfBudget:
        verdict = _judge_unfinished(ladder, ad)
    sample = verdict.sample
    return Direction(
        kind=kind,
        ad=ad,
        fd=verdict.fd,
        error=verdict.error,
        step=sample.width if sample else math.nan,
        forward=sample.slope(Side.FORWARD) if sample else None,
        backward=sample.slope(Side.BACKWARD) if sample else None,
        status=verdict.status,
        reason=verdict.reason,
        evaluations=ladder.evaluations,
    )


# -- one direction ----------------------------------------------------------------------------------------------------


def _judge(ladder: Ladder, ad: float) -> _Verdict:
    if not math.isfinite(ladder.start()):
        return _Verdict(GradientStatus.INCONCLUSIVE, f"the objective is {ladder.base} at the program's own point")
    for at_first_sight in (_straight_agreement, _hidden, _plain_agreement, _hidden):
        seen = at_first_sight(ladder, ad)
        if seen is not None:
            return seen
    for step in FIRST:
        ladder.sample(step)
    if all(sample.still for sample in ladder.samples):
        return _judge_still(ladder, ad)
    if not math.isfinite(ad):
        return _judge_not_finite(ladder, ad)
    plain = _plain_kink(ladder, ad)
    if plain is not None:
        return plain
    while True:
        tight = [window for window in _moving(ladder) if window.error <= TIGHT * _size(window, ad)]
        for window in tight:
            if _agrees(window, ad):
                return _passed(window, ad)
        if tight and (failed := _confirmed_failure(ladder, tight[-1], ad)):
            return failed
        further = _next_step(ladder, ad)
        if further is None:
            return _settle(ladder, ad)
        ladder.sample(further)


def _straight_agreement(ladder: Ladder, ad: float) -> _Verdict | None:
    """The claim and both one-sided differences of one step, so nearly straight that little is left to truncation.

    The bend is the step's share of the second derivative; the third's in the central difference is taken to be as
    small beside that as that is beside the slope.
    """
    sample = ladder.sample(FIRST[1])
    fd, bend = sample.slope(Side.CENTRAL), abs(sample.jump)
    size, floor = max(abs(fd), abs(ad)), ladder.floor(sample)
    if not all(map(math.isfinite, (fd, bend, ad))) or sample.still or bend > STRAIGHT * size:
        return None
    if not abs(fd - ad) + floor <= PLAINLY * size:
        return None
    error = max(bend**2 / (6.0 * size), floor, ladder.summing / sample.width)
    reason = f"central difference {fd:.5g} ± {error:.1g} at h = {sample.width:.1g}, tape {ad:.5g}"
    return _Verdict(GradientStatus.PASS, reason, fd, error, sample)


def _plain_agreement(ladder: Ladder, ad: float) -> _Verdict | None:
    """The claim and the differences of the first two steps, which rounding cannot spoil, are one: three witnesses."""
    coarse, fine = (ladder.sample(step) for step in FIRST[:2])
    told = (coarse.slope(Side.CENTRAL), fine.slope(Side.CENTRAL), ad)
    size, floor = max(map(abs, told)), ladder.floor(fine)
    if not all(map(math.isfinite, told)) or coarse.still or fine.still:
        return None
    if not max(told) - min(told) + floor <= PLAINLY * size:
        return None
    error = max(abs(told[0] - told[1]), floor)
    reason = f"central difference {told[1]:.5g} ± {error:.1g} at h = {fine.width:.1g}, tape {ad:.5g}"
    return _Verdict(GradientStatus.PASS, reason, told[1], error, fine)


def _hidden(ladder: Ladder, ad: float) -> _Verdict | None:
    """A slope that rounding hides at the first steps, where what is left of a small budget cannot bring it out.

    Even at the coarsest steps no window would be tight, and to measure the noise takes more evaluations.
    """
    coarse = ladder.samples[0]
    told = coarse.slope(Side.CENTRAL)
    if ladder.left >= SETTLING or coarse.still or not math.isfinite(told) or not math.isfinite(ad):
        return None
    size, noise = max(abs(told), abs(ad)), max(ladder.noise(coarse.plus, coarse.minus), ladder.summing)
    error = noise / coarse.width
    if error <= HIDDEN * FIRST[0] / coarse.step * size or abs(told - ad) + ladder.floor(coarse) <= PLAINLY * size:
        return None
    reason = f"noise of {noise:.1g} in the objective hides it: central difference {told:.5g} ± {error:.1g} at "
    reason += f"h = {coarse.width:.1g}, tape {ad:.5g}"
    return _Verdict(GradientStatus.INCONCLUSIVE, reason, told, error, coarse)


def is_hidden(base: float, ad: float, *, dtype_eps: float, budget: int, terms: int) -> bool:
    """Whether rounding is bound to hide a slope such as claimed from :func:`judge_direction` with this budget.

    ``base`` is the objective at the program's own point; nothing is evaluated.
    """
    ladder = Ladder(lambda _: base, 1.0, dtype_eps, budget, None, terms)
    ladder.start()
    noise = max(ladder.noise(), ladder.summing)
    return ladder.left - 2 < SETTLING and not noise <= HIDDEN * FIRST[0] * abs(ad)


def _size(window: Window, ad: float) -> float:
    return max(abs(window.fd), abs(ad))


def _moving(ladder: Ladder) -> list[Window]:
    """The windows at all of whose steps the objective moves: on a plateau the difference is 0 whatever the slope is."""
    return [window for window in ladder.windows() if not any(sample.still for sample in window.samples)]


def _agrees(window: Window, ad: float) -> bool:
    return abs(ad - window.fd) <= TOLERANCE * _size(window, ad) + window.error


def _disagrees(ladder: Ladder, window: Window, ad: float) -> bool:
    """Far outside the error, the error being small beside the difference, or the claim far above all of it.

    The latter only if the claim would be visible at fine steps: behind a large constant anything may be hidden.
    """
    resolved = window.error <= COARSE * abs(window.fd)
    far_above = abs(window.fd) + 3.0 * window.error < 0.1 * abs(ad) and not _wild(ladder)
    far_above = far_above and ladder.visible(abs(ad)) <= FIRST[-1]
    return (resolved or far_above) and abs(ad - window.fd) > TOLERANCE * _size(window, ad) + 3.0 * window.error


def _wild(ladder: Ladder) -> bool:
    """The objective moves as much at fine steps as at coarse ones, and not by rounding: chaos, or finer structure."""
    samples = [sample for sample in ladder.samples if sample.finite(Side.CENTRAL)]
    beyond_rounding = [sample.steepest for sample in samples if _movement(sample) > 30.0 * ladder.rounding]
    return bool(beyond_rounding) and max(beyond_rounding) > 3.0 * samples[0].steepest


def _movement(sample: Sample) -> float:
    return sample.steepest * sample.width


def _next_step(ladder: Ladder, ad: float) -> float | None:
    """The next rung: finer while finer steps agree better (truncation), coarser while they agree worse (rounding)."""
    samples, windows = ladder.samples, ladder.windows()
    below = [step for step in STEPS if step < samples[-1].step and step >= ladder.finest_sensible]
    above = [step for step in reversed(STEPS) if step > samples[0].step]
    if not windows:
        return next(iter(below or above), None)
    size = max(abs(ad), *(abs(window.fd) for window in windows))
    if ladder.floor(samples[-1]) > TIGHT * size:
        below = []
    first, second = (below, above) if windows[-1].converging else (above, below)
    return next(iter(first or second), None)


def _passed(window: Window, ad: float, remark: str = "") -> _Verdict:
    return _Verdict(GradientStatus.PASS, _comparison(window, ad) + remark, window.fd, window.error, _at(window))


def _confirmed_failure(ladder: Ladder, window: Window, ad: float) -> _Verdict | None:
    """A disagreement that finer steps bear out and that no kink excuses; None where it cannot be borne out.

    Noise is measured where it matters: for a window of small steps, and where finer steps do not hold the value.
    """
    if window.finest < FIRST[-1]:
        window = _with_measured_noise(ladder, window)
        small = abs(ad - window.fd) * _at(window).width < ACCUMULATED * ladder.rounding
        if small and _allowed_by_coarser(ladder, window, ad):
            return None
    if not _disagrees(ladder, window, ad):
        return None
    gap = abs(ad - window.fd)
    finer = _finer(ladder, window, gap)
    if not all(_holds(ladder, sample, window, gap) for sample in finer):
        window = _with_measured_noise(ladder, window)
        finer = _finer(ladder, window, gap)
        if not finer or not all(_holds(ladder, sample, window, gap) for sample in finer):
            return None
    if not finer:
        window = _with_measured_noise(ladder, window)
    if not _disagrees(ladder, window, ad) or _loosely_agreeing(ladder, ad):
        return None
    excused = _judge_kink(ladder, window, ad)
    if excused is not None:
        return excused
    reason = _comparison(window, ad)
    if finer:
        reason += f"; the difference stays down to h = {finer[-1].width:.1g}"
    kink = kink_in(ladder, window.samples) if window.side is Side.CENTRAL else None
    if kink is not None and kink.size > 0.3 * gap:
        reason += f"; a kink at the starting point, {kink}"
    return _Verdict(GradientStatus.FAIL, reason, window.fd, window.error, _at(window))


def _loosely_agreeing(ladder: Ladder, ad: float) -> Window | None:
    """Any window that bears the claim out, the surest first."""
    windows = [w for w in _moving(ladder) if w.error <= LOOSE * _size(w, ad) and _agrees(w, ad)]
    return min(windows, key=_error, default=None)


def _allowed_by_coarser(ladder: Ladder, window: Window, ad: float) -> bool:
    """Whether a window of coarser steps, resolved at all, does not contradict the claim."""
    coarser = [w for w in _moving(ladder) if w.finest > window.finest and w.error <= COARSE * _size(w, ad)]
    return any(_agrees(w, ad) for w in coarser)


def _with_measured_noise(ladder: Ladder, window: Window) -> Window:
    ladder.measure_noise(window.fd)
    return Window.over(window.samples, window.side, ladder.floor)


def _finer(ladder: Ladder, window: Window, gap: float) -> list[Sample]:
    """Steps below the window at which ``gap`` stands out of the noise: two, and what was sampled there; or none."""
    finest = max(ladder.visible(gap), STEPS[-1])
    if finest > 0.7 * window.finest:
        return []
    ladder.sample(math.sqrt(finest * window.finest))
    ladder.sample(finest)
    return [s for s in ladder.samples if s.step < window.finest and ladder.floor(s) <= gap / 6.0]


def _holds(ladder: Ladder, sample: Sample, window: Window, gap: float) -> bool:
    """Whether a finer step tells the window's value; a share of the value, not of a gap that a huge claim opens."""
    slack = 0.3 * min(gap, abs(window.fd)) + window.error + 2.0 * ladder.floor(sample)
    return abs(sample.slope(window.side) - window.fd) <= slack


def _judge_kink(ladder: Ladder, window: Window, ad: float) -> _Verdict | None:
    """Whether a kink at the starting point allows ``ad``; None where none is seen, or it is too small to matter."""
    if window.side is not Side.CENTRAL:
        return None
    for told in reversed(ladder.windows(Side.CENTRAL)):
        for _ in range(2):
            kink = kink_in(ladder, told.samples)
            if kink is None or kink.size < 1.5 * abs(ad - window.fd):
                break
            if ladder.noise_is_measured:
                return _at_kink(kink, window.fd, ad)
            ladder.measure_noise(window.fd)
    return None


def _plain_kink(ladder: Ladder, ad: float) -> _Verdict | None:
    """A kink that the first steps show beyond doubt, and one much finer step that it is not beside the point."""
    windows = ladder.windows(Side.CENTRAL)
    if not windows or _agrees(windows[0], ad):
        return None
    kink = kink_in(ladder, windows[0].samples)
    if kink is None or kink.size < PLAIN * kink.noise or not kink.allows(ad):
        return None
    finer = max(ladder.visible(kink.size), FINER)
    if finer < kink.sample.step:
        ladder.sample(finer)
    return _at_kink(kink, windows[0].fd, ad) if kink_in(ladder, windows[0].samples) else None


def _at_kink(kink: Kink, fd: float, ad: float) -> _Verdict:
    text = f"a kink at the starting point, {kink}: tape {ad:.4g}"
    if kink.allows(ad):
        reason = f"{text} is one of them or lies between"
        return _Verdict(GradientStatus.PASS, reason, kink.nearest(ad), kink.noise, kink.sample)
    return _Verdict(GradientStatus.INCONCLUSIVE, f"{text} is close to one", fd, kink.noise, kink.sample)


def _judge_jump(ladder: Ladder, window: Window, ad: float) -> _Verdict | None:
    """Whether the objective jumps on one side of the starting point, and ``ad`` is its slope on the other side.

    So stands a value that is rounded down on a whole number, or a point on the edge of its cell.
    """
    samples = [sample for sample in ladder.samples if sample.finite(Side.CENTRAL)][-3:]
    if len(samples) < 3:
        return None
    for smooth, jumping in ((Side.FORWARD, Side.BACKWARD), (Side.BACKWARD, Side.FORWARD)):
        heights = [abs(sample.slope(jumping)) * sample.width for sample in samples]
        jump = min(heights)
        if jump < 0.7 * max(heights) or jump <= max(ABSORBED * ladder.rounding, 8.0 * ladder.noise()):
            continue
        text = f"a jump of {jump:.2g} on one side of the starting point"
        if ad == 0.0 and all(sample.slope(smooth) == 0.0 for sample in samples):
            return _Verdict(GradientStatus.FLAT, f"flat: {text}, nothing moves on the other", 0.0, 0.0, samples[0])
        kept = min(ladder.windows(smooth), key=_error)
        if kept.error <= LOOSE * _size(kept, ad) and _agrees(kept, ad):
            return _Verdict(GradientStatus.PASS, f"{text}; {_comparison(kept, ad)}", kept.fd, kept.error, _at(kept))
    return None


def _settle(ladder: Ladder, ad: float) -> _Verdict:
    """Every useful step is taken and none decided alone: settle for a looser agreement, or say what is in the way."""
    if not ladder.windows():
        return _Verdict(GradientStatus.INCONCLUSIVE, "the objective is not finite beside the program's own point")
    if ad == 0.0 and ladder.samples[-1].still and (flat := _judge_plateau(ladder, ad)):
        return flat
    best = min(_moving(ladder) or ladder.windows(), key=_error)
    ladder.measure_noise(best.fd)
    if not _moving(ladder):
        return _dead(ladder, ad)
    window = min(_moving(ladder), key=_error)
    steepest = max(sample.steepest for sample in ladder.samples if sample.step >= window.step)
    if max(abs(ad), abs(window.fd)) <= 2.0 * window.error <= TOLERANCE * steepest:
        reason = f"zero to within {window.error:.1g} on both sides; slopes beside it reach {steepest:.2g}"
        return _Verdict(GradientStatus.PASS, reason, window.fd, window.error, _at(window))
    loose = _loosely_agreeing(ladder, ad)
    if loose is not None:
        return _passed(loose, ad, f"; to within {loose.error / _size(loose, ad):.1%}")
    special = _judge_kink(ladder, window, ad) or _judge_jump(ladder, window, ad)
    return special or _confirmed_failure(ladder, window, ad) or _unclear(ladder, window, ad)


def _error(window: Window) -> float:
    return window.error


def _unclear(ladder: Ladder, window: Window, ad: float) -> _Verdict:
    """Why the instrument cannot tell."""
    samples = [sample for sample in ladder.samples if sample.finite(window.side)]
    reach, finest = ladder.reach, samples[-1]
    rough = max((s for s in samples if s.step < window.step), key=lambda s: _excess(ladder, window, s), default=finest)
    if _wild(ladder) and abs(ad) * finest.width > reach:
        reason = (
            f"chaotic: the tape claims a change of {abs(ad) * finest.width:.1g} at h = {finest.width:.1g}, "
            f"the objective moves by {reach:.1g} in all"
        )
    elif window.error > TIGHT * _size(window, ad) and window.error < 3.0 * ladder.floor(window.samples[1]):
        reason = f"noise of {ladder.noise():.1g} in the objective hides it: {_comparison(window, ad)}"
    elif _excess(ladder, window, rough) > 8.0:
        slope = rough.slope(window.side)
        reason = f"rough (staircase, kinks or chaos): difference {window.fd:.4g} at h = {_at(window).width:.1g}"
        reason += f", {slope:.4g} at h = {rough.width:.1g}; tape {ad:.4g}"
    else:
        reason = f"the steps do not settle: {_comparison(window, ad)}"
    return _Verdict(GradientStatus.INCONCLUSIVE, reason, window.fd, window.error, _at(window))


def _excess(ladder: Ladder, window: Window, sample: Sample) -> float:
    """How far a finer step leaves the window's value, in units of what rounding and truncation explain."""
    explained = ladder.floor(sample) + window.error
    return abs(sample.slope(window.side) - window.fd) / explained if explained > 0.0 else math.inf


# -- special cases ----------------------------------------------------------------------------------------------------


ABSORBED = 64.0
"""A first movement of fewer units of rounding than this is absorption, not a stair of the function."""


def _judge_still(ladder: Ladder, ad: float) -> _Verdict:
    """Nothing moves at ordinary steps: independent, flat, absorbed by a large value, or a gradient from nowhere."""
    if not math.isfinite(ad):
        sample = ladder.sample(FIRST[-1])
        return _Verdict(GradientStatus.FAIL, f"tape {ad}, the objective does not move", 0.0, 0.0, sample)
    for step in (1e-1, 3e-1, *LARGE):
        moved = ladder.sample(step)
        if not moved.still:
            negligible = abs(ad) <= DUST * moved.steepest
            return _judge_plateau(ladder, ad) or _dead(ladder, ad) if negligible else _dead(ladder, ad)
    sample = ladder.sample(3e-1)
    nowhere = f"the objective does not move at any step up to {ladder.samples[0].width:.0e}"
    if ad == 0.0:
        return _Verdict(GradientStatus.PASS, f"zero: {nowhere}", 0.0, 0.0, sample)
    if ladder.visible(abs(ad)) > sample.step or abs(ad) * sample.width < ladder.underflow:
        return _dead(ladder, ad)
    return _Verdict(GradientStatus.FAIL, f"tape {ad:.4g}, but {nowhere}", 0.0, ladder.floor(sample), sample)


def _judge_plateau(ladder: Ladder, ad: float) -> _Verdict | None:
    """A (next to) zero gradient on a plateau, with movement further out, is right; None where there is no plateau."""
    for step in (1e-3, 1e-4):
        ladder.sample(step)
    still = ladder.plateau()
    moving = min((sample for sample in ladder.samples if not sample.still), key=_step)
    jump = moving.steepest * moving.width
    if still == 0.0 or jump <= ABSORBED * ladder.noise():
        return None
    reason = f"nothing moves up to h = {still:.1g}, at h = {moving.width:.1g} the objective jumps by {jump:.2g}"
    if ad == 0.0:
        return _Verdict(GradientStatus.FLAT, f"flat: {reason}", 0.0, 0.0, ladder.sample(still))
    return _Verdict(GradientStatus.PASS, f"zero: {reason}; tape {ad:.1g}", 0.0, 0.0, ladder.sample(still))


def _step(sample: Sample) -> float:
    return sample.step


def _dead(ladder: Ladder, ad: float) -> _Verdict:
    """The instrument cannot see: the claimed change is lost beside the objective's last digit, or on the way to it."""
    sample = ladder.sample(3e-1)
    claim = f"the tape claims a change of {abs(ad) * sample.width:.2g} at h = {sample.width:.1g}"
    if ladder.visible(abs(ad)) > sample.step:
        reason = f"absorbed: {claim}, the objective of {ladder.base:.4g} has a last digit of {ladder.noise():.1g}"
    else:
        reason = f"nothing moves at small steps, yet further out it does, and {claim}: a stair, a branch not taken, "
        reason += "or a change that is absorbed on the way"
    return _Verdict(GradientStatus.INCONCLUSIVE, reason, sample.slope(Side.CENTRAL), ladder.floor(sample), sample)


def _judge_not_finite(ladder: Ladder, ad: float) -> _Verdict:
    """A gradient that is no number is wrong where a difference is one; at a singular point it may be right."""
    for step in (1e-3, 1e-4):
        ladder.sample(step)
    windows = ladder.windows()
    if not windows:
        return _Verdict(GradientStatus.INCONCLUSIVE, f"tape {ad}, the objective is not finite beside the point either")
    window = min(windows, key=_error)
    side = window.side
    usable = [sample for sample in ladder.samples if sample.finite(side)]
    one_sided = [max(abs(s.slope(Side.FORWARD)), abs(s.slope(Side.BACKWARD))) for s in usable]
    diverges = all(fine > 1.4 * coarse for coarse, fine in itertools.pairwise(one_sided))
    if diverges:
        reason = f"tape {ad}; the slope grows without bound as the step falls ({one_sided[-1]:.3g}): a singular point"
        return _Verdict(GradientStatus.INCONCLUSIVE, reason, window.fd, window.error, _at(window))
    if math.isnan(ad) or window.error <= COARSE * abs(window.fd) or abs(usable[-1].jump) > 0.5 * one_sided[-1]:
        return _Verdict(GradientStatus.FAIL, _comparison(window, ad), window.fd, window.error, _at(window))
    return _unclear(ladder, window, 0.0)


def _judge_unfinished(ladder: Ladder, ad: float) -> _Verdict:
    """The budget is spent: agreement of what was seen counts, disagreement that could not be borne out does not."""
    windows = ladder.windows() if math.isfinite(ladder.base) else ()
    if not windows:
        reason = f"the budget of {ladder.evaluations} evaluations is spent before three steps were seen"
        return _Verdict(GradientStatus.INCONCLUSIVE, reason)
    if ad == 0.0 and all(sample.still for sample in ladder.samples):
        nowhere = f"does not move at any of {len(ladder.samples)} steps up to {ladder.samples[0].width:.0e}"
        return _Verdict(GradientStatus.PASS, f"zero: the objective {nowhere}", 0.0, 0.0, ladder.samples[0])
    window = min(windows, key=_error)
    loose = _loosely_agreeing(ladder, ad) if math.isfinite(ad) else None
    if loose is not None:
        return _passed(loose, ad, f"; to within {loose.error / _size(loose, ad):.1%}")
    reason = f"the budget of {ladder.evaluations} evaluations is spent: {_comparison(window, ad)}"
    return _Verdict(GradientStatus.INCONCLUSIVE, reason, window.fd, window.error, _at(window))


def _at(window: Window) -> Sample:
    return next(sample for sample in window.samples if sample.step == window.step)


def _comparison(window: Window, ad: float) -> str:
    name = f"{window.side.value} difference"
    return f"{name} {window.fd:.5g} ± {window.error:.1g} at h = {_at(window).width:.1g}, tape {ad:.5g}"

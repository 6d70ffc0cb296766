"""In which directions a leaf is moved, and what several judged directions say of it together.

Steps are relative, so the scale of every coordinate is chosen here: arrays hold positions of a hundred metres beside
stiffnesses of 1e-5, and one common step would be too long for one of them and drown in the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from warplint.dataclass import dataclass
from warplint.verify.records import Direction, GradientStatus

TOLERANCE = 0.02
"""By how much a gradient may part from one slope and still be that one."""

Floats = npt.NDArray[np.float64]


MIXED_UNITS = 100.0
"""Ratio of the 90th to the 10th percentile of magnitudes that no single unit explains (Gaussian: 13, uniform: 9)."""

COORDINATES = frozenset({"largest", "coordinate"})
"""The kinds of direction that move one coordinate."""

ONE_SIDED = "one-sided"
"""The kind of direction that moves every coordinate upwards."""


@dataclass(frozen=True)
class DirectionVector:
    """One way to move a leaf: ``leaf + step * vector``, steps being relative (0.3 to 1e-5), units inside ``vector``.

    ``vector`` has the leaf's shape; ``ad`` is the directional derivative that the gradient claims, ``sum(gradient *
    vector)`` in float64 over the coordinates that move (it may be NaN).
    """

    kind: str
    vector: Floats
    ad: float
    element: int | None = None
    """The one element that moves, by its place in the flattened array; None where several do."""

    def moved(self, leaf: npt.NDArray[Any], step: float) -> npt.NDArray[Any]:
        """The leaf's values moved by ``step``, rounded to the leaf's own dtype; a fresh array."""
        if self.element is not None:
            moved = np.array(leaf)
            moved.flat[self.element] = float(leaf.flat[self.element]) + step * float(self.vector.flat[self.element])
            return moved
        return np.asarray(leaf.astype(np.float64) + step * self.vector).astype(leaf.dtype)


@dataclass(frozen=True)
class LeafJudgement:
    """What several directions say of one leaf; ``ad``, ``fd`` are those of the direction that decided."""

    status: GradientStatus
    reason: str
    ad: float
    fd: float
    relative_error: float | None


def directions(
    leaf_values: npt.NDArray[Any],
    gradient: npt.NDArray[Any],
    rng: np.random.Generator,
    *,
    component_axes: int = 0,
) -> tuple[DirectionVector, ...]:
    """The directions in which one leaf is tested: random, along the gradient, its largest and two random coordinates.

    Measured: a wrong adjoint passed along the gradient at 0.996 and failed a random direction, another the reverse, so
    several kinds are needed. The last ``component_axes`` axes are components of vectors or matrices (1, 2), which may
    have units of their own; each has its own scale. Coordinates where the gradient is not finite come first as
    "largest". Fewer directions for leaves of one to three elements.
    """
    values = np.asarray(leaf_values, dtype=np.float64)
    claimed = np.asarray(gradient, dtype=np.float64).reshape(values.shape)
    if values.size == 0:
        return ()
    scales = scales_of(values, component_axes)
    found = []
    if values.size > 1:
        signs = rng.choice((-1.0, 1.0), size=values.shape) * rng.uniform(0.5, 1.5, size=values.shape)
        found.append(_direction("random", scales * signs, claimed))
        found.extend(_along_gradient(scales, claimed))
    weight = np.where(np.isfinite(claimed), np.abs(claimed) * scales, np.inf)
    largest = int(np.argmax(weight))
    coordinates = [("largest", largest)]
    others = [index for index in rng.permutation(values.size)[:3].tolist() if index != largest]
    coordinates += [("coordinate", index) for index in others[:2]]
    for kind, index in coordinates:
        found.append(_coordinate(kind, scales, claimed, index))
    return tuple(found)


def one_sided(
    leaf_values: npt.NDArray[Any], gradient: npt.NDArray[Any], rng: np.random.Generator, *, component_axes: int = 0
) -> DirectionVector:
    """A direction that moves every coordinate upwards, for leaves whose coordinates stand on kinks.

    Moved by signs at random, some coordinates go to the side that the tape differentiates and some to the other, and
    no one-sided slope is the tape's; moved all the same way, one of the two is (velocities at zero, values at a limit).
    """
    values = np.asarray(leaf_values, dtype=np.float64)
    claimed = np.asarray(gradient, dtype=np.float64).reshape(values.shape)
    scales = scales_of(values, component_axes)
    return _direction(ONE_SIDED, scales * rng.uniform(0.2, 1.8, size=values.shape), claimed)


def both(one: DirectionVector, other: DirectionVector) -> DirectionVector:
    """One way to move a leaf that is two of them at once, told as the first kind."""
    return DirectionVector(one.kind, one.vector + other.vector, one.ad + other.ad)


def wants_one_sided(judged: Sequence[Direction]) -> bool:
    """Whether kinks leave the failures without meaning: all are of directions that mix coordinates on kinks."""
    failed = [direction for direction in judged if direction.status is GradientStatus.FAIL]
    passed = [direction for direction in judged if direction.status is GradientStatus.PASS]
    if not failed or any(direction.kind in COORDINATES for direction in failed):
        return False
    return any(is_kinked(direction) for direction in passed) or all(is_kinked(direction) for direction in failed)


def is_kinked(direction: Direction) -> bool:
    """Whether the direction was judged on a kink: ``fd`` of one that passed is the nearer of its one-sided slopes."""
    return "kink" in direction.reason


def coordinate(scales: Floats, gradient: npt.NDArray[Any], index: tuple[int, ...]) -> DirectionVector:
    """The direction that moves one element by its scale (:func:`scales_of` the leaf's values)."""
    claimed = np.asarray(gradient, dtype=np.float64).reshape(scales.shape)
    flat = int(np.ravel_multi_index(index, scales.shape)) if index else 0
    return _coordinate("coordinate", scales, claimed, flat)


def _coordinate(kind: str, scales: Floats, gradient: Floats, index: int) -> DirectionVector:
    vector = np.zeros(scales.shape)
    scale = vector.flat[index] = float(scales.flat[index])
    return DirectionVector(kind, vector, float(gradient.flat[index]) * scale, index)


def _direction(kind: str, vector: Floats, gradient: Floats) -> DirectionVector:
    moving = vector != 0.0
    return DirectionVector(kind, vector, float(np.sum(gradient[moving] * vector[moving])))


def _along_gradient(scales: Floats, gradient: Floats) -> list[DirectionVector]:
    """Steepest in scaled coordinates, of unit rms, but no coordinate further than three of its scales."""
    relative = np.where(np.isfinite(gradient), gradient * scales, 0.0)
    top = float(np.max(np.abs(relative)))
    if top == 0.0:
        return []
    relative = relative / top
    length = max(math.sqrt(float(np.mean(relative**2))), 1.0 / 3.0)
    return [_direction("gradient", scales * relative / length, gradient)]


def scales_of(leaf_values: npt.NDArray[Any], component_axes: int = 0) -> Floats:
    """What a relative step of 1 means for a coordinate: its component's rms, or its own size where units are mixed."""
    values = np.asarray(leaf_values, dtype=np.float64)
    finite = np.where(np.isfinite(values), values, 0.0)
    axes = tuple(range(values.ndim - component_axes))
    magnitude = np.abs(finite)
    overall = math.sqrt(float(np.mean(finite**2))) or 1.0
    columns = np.sqrt(np.mean(finite**2, axis=axes, keepdims=True)) if axes else magnitude
    scales = np.broadcast_to(np.where(columns > 0.0, columns, overall), values.shape)
    nonzero = magnitude[magnitude > 0.0]
    if nonzero.size >= 4:
        low, middle, high = quantiles(nonzero, (0.1, 0.5, 0.9))
        if high > MIXED_UNITS * low:
            return np.where(magnitude > 0.0, magnitude, middle)
    return np.asarray(np.maximum(scales, magnitude))


def quantiles(values: Floats, shares: Sequence[float]) -> tuple[float, ...]:
    """As ``numpy.quantile``, which imports all of masked arrays to put a few places in order (9 ms)."""
    places = [share * (values.size - 1) for share in shares]
    between = [(int(place), min(int(place) + 1, values.size - 1), place - int(place)) for place in places]
    ordered = np.partition(values, sorted({place for below, above, _ in between for place in (below, above)}))
    return tuple(_between(float(ordered[below]), float(ordered[above]), part) for below, above, part in between)


def _between(low: float, high: float, part: float) -> float:
    return low + (high - low) * part if part < 0.5 else high - (high - low) * (1.0 - part)


def combine(judged: Sequence[Direction]) -> LeafJudgement:
    """One answer for a leaf: one failed direction is enough to fail, one coordinate is not enough to pass.

    Where a coordinate stands on a kink, directions that move several coordinates mix one-sided slopes of different
    signs: a failure in such a direction alone is no proof, and :func:`one_sided` is the direction to try.
    """
    if not judged:
        return LeafJudgement(GradientStatus.INCONCLUSIVE, "no direction was tried", math.nan, math.nan, None)
    by_status = {status: [d for d in judged if d.status is status] for status in GradientStatus}
    failed, passed = by_status[GradientStatus.FAIL], by_status[GradientStatus.PASS]
    if wants_one_sided(judged):
        upwards = [direction for direction in passed if direction.kind == ONE_SIDED]
        if upwards:
            return _leaf(GradientStatus.PASS, upwards, judged, "coordinates on kinks moved to one side, ")
        return _leaf(GradientStatus.INCONCLUSIVE, failed, judged, "beside a coordinate on a kink, ")
    telling = [direction for direction in passed if direction.ad != 0.0 or direction.fd != 0.0]
    enough = len(telling) >= 2 or any(direction.kind not in COORDINATES for direction in telling)
    if failed:
        return _leaf(GradientStatus.FAIL, failed, judged)
    if enough or len(passed) == len(judged):
        return _leaf(GradientStatus.PASS, telling or passed, judged)
    if by_status[GradientStatus.FLAT]:
        return _leaf(GradientStatus.FLAT, by_status[GradientStatus.FLAT], judged)
    return _leaf(GradientStatus.INCONCLUSIVE, by_status[GradientStatus.INCONCLUSIVE] or passed, judged)


def relative_error(ad: float, fd: float) -> float:
    """``|ad - fd| / max(|ad|, |fd|)``; infinite where either is no number, 0 where both are 0."""
    size = max(abs(ad), abs(fd))
    if not math.isfinite(size):
        return math.inf
    return abs(ad - fd) / size if size > 0.0 else 0.0


def _leaf(
    status: GradientStatus, deciding: Sequence[Direction], judged: Sequence[Direction], remark: str = ""
) -> LeafJudgement:
    """Told by the direction that is most wrong for a failure, else by the steepest one."""

    def weight(direction: Direction) -> float:
        return relative_error(direction.ad, direction.fd) if status is GradientStatus.FAIL else abs(direction.ad)

    told = max(deciding, key=weight)
    relative = relative_error(told.ad, told.fd)
    if status is GradientStatus.PASS and is_kinked(told) and relative > TOLERANCE:
        relative = math.nan  # between two one-sided slopes nothing is off
    reason = f"{len(deciding)} of {len(judged)} directions, {remark}{told.kind or 'one'}: {told.reason}"
    return LeafJudgement(status, reason, told.ad, told.fd, relative if math.isfinite(relative) else None)

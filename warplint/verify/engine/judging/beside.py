"""A gradient at a kink: compared beside it, where there is a derivative, and held to lie between what is there.

Where many coordinates stand on kinks at once (velocities at zero, nodes on the edges of cells), the tape takes one side
at each of them, differences in one direction others, and no one-sided slope is the tape's. So the leaf is moved a
little, at random, and all that the program did is run again from there, the backward calls too. There the tape must
agree with differences that stay on that side; and at the point itself it must lie, number by number, between what the
tapes beside it give: then it is a generalised gradient (Clarke, *Optimization and Nonsmooth Analysis*, 1983: the convex
hull of the limits of gradients beside the point).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from warplint.dataclass import dataclass
from warplint.verify.engine.differences.directions import Floats, is_kinked, scales_of
from warplint.verify.engine.differences.finite_difference import (
    DirectionVector,
    OutOfBudget,
    combine,
    judge_direction,
)
from warplint.verify.engine.differences.measure import Clock, Measurement, otherwise, resolution
from warplint.verify.engine.replaying.groups import Group
from warplint.verify.engine.replaying.replay import Machine, NotExact
from warplint.verify.engine.replaying.windows import Window
from warplint.verify.records import Direction, GradientStatus

AWAY = 1e-2
"""How far the leaf is moved to take differences, relative to its scale."""
NEAR = 1e-4
"""How far to see what gradients the kink parts: near enough that they are else the same."""
WITHIN = 0.1
"""Relative steps there, of those that are taken elsewhere: short beside ``AWAY``."""
SIDES = 6
"""Points near the kink, and as many across it, whose gradients are compared with that at the kink."""
JUDGED = 2
"""Points at which differences are taken."""
BUDGET = 24
OUTSIDE = 0.02
"""The share of a gradient that may lie outside of what the gradients beside it span: they have moved a little."""
PARTED = 0.1
"""One-sided slopes that part by this share may belong to a kink."""


@dataclass(frozen=True)
class BesideKink:
    """Looks at groups whose gradient no difference at the point itself decides."""

    machine: Machine
    clock: Clock
    seed: int

    def judged(self, group: Group, window: Window, found: Measurement) -> Measurement | None:
        """The gradient's judgement beside the kink; None where there is none, or nothing is shown there either."""
        if group.used is None or group.rewrites or not _may_be_kinked(found):
            return None
        try:
            return self._judged(group, window, found)
        except (OutOfBudget, NotExact):
            return None

    def _judged(self, group: Group, window: Window, found: Measurement) -> Measurement | None:
        values = window.values_of(group.leaf).astype(np.float64)
        scales = scales_of(values, 1 if group.leaf.view.components > 1 else 0)
        if not np.array_equal(self._gradient(group, np.zeros_like(values)), group.consumed):
            return None
        rng = np.random.default_rng([self.seed, group.leaf.memory.number, group.number, SIDES])
        near = [NEAR * _random(scales, rng) for _ in range(SIDES)]
        beside = [self._gradient(group, sign * offset) for offset in near for sign in (1.0, -1.0)]
        if not _spans(np.stack(beside), group.consumed):
            return None
        judged = [
            direction
            for offset in (AWAY * _random(scales, rng) for _ in range(JUDGED))
            for direction in self._directions(group, window, offset, scales, rng)
        ]
        answer = combine(judged)
        if answer.status is not GradientStatus.PASS or any(each.status is GradientStatus.FAIL for each in judged):
            return None
        reason = (
            f"at a kink; beside it (the leaf moved by {AWAY:.0%} at random) the tape and differences agree, and here "
            f"the tape lies between what it gives there; {answer.reason}"
        )
        told = otherwise(found, GradientStatus.PASS, reason)
        return Measurement(
            told.vectors, (*told.judged, *judged), told.status, reason, answer.ad, answer.fd, answer.relative_error
        )

    def _gradient(self, group: Group, offset: Floats) -> npt.NDArray[np.float64]:
        """What the program would consume with the leaf moved: all operations run again, those of backward too."""
        self.clock.require()
        assert group.used is not None
        self.machine.rewind(group.start)
        view = group.leaf.view
        view.write(_moved(view.read(), offset))
        self.machine.run(group.start, group.used.index)
        return group.leaf.gradient.read().astype(np.float64)

    def _directions(
        self,
        group: Group,
        window: Window,
        offset: Floats,
        scales: Floats,
        rng: np.random.Generator,
    ) -> Iterator[Direction]:
        """One random direction and that of the gradient there, no number further than its scale."""
        gradient = self._gradient(group, offset)
        steep = gradient * scales
        along = scales * steep / (np.max(np.abs(steep), initial=0.0) or 1.0)
        epsilon = resolution(group)
        for kind, vector in (("random", _random(scales, rng) / 1.5), ("gradient", along)):
            moving = DirectionVector(f"{kind} beside", vector, float(np.sum(gradient * vector)))

            def objective(step: float, moving: DirectionVector = moving) -> float:
                self.clock.require()
                return window.evaluate({}, lambda old: moving.moved(_moved(old, offset), step), group.leaf)

            yield judge_direction(
                objective, moving.ad, scale=WITHIN, dtype_eps=epsilon, kind=moving.kind, budget=BUDGET
            )


def _may_be_kinked(found: Measurement) -> bool:
    """Whether some direction stands on a kink, or its one-sided slopes part."""
    return any(is_kinked(direction) or _parted(direction) for direction in found.judged)


def _parted(direction: Direction) -> bool:
    if direction.forward is None or direction.backward is None:
        return False
    size = max(abs(direction.forward), abs(direction.backward), abs(direction.ad))
    return bool(abs(direction.forward - direction.backward) > PARTED * size)


def _random(scales: Floats, rng: np.random.Generator) -> Floats:
    return np.asarray(scales * rng.choice((-1.0, 1.0), size=scales.shape) * rng.uniform(0.5, 1.5, size=scales.shape))


def _moved(old: npt.NDArray[np.generic], offset: Floats) -> npt.NDArray[np.generic]:
    return (old.astype(np.float64) + offset).astype(old.dtype)


def _spans(beside: npt.NDArray[np.float64], at: npt.NDArray[np.float64]) -> bool:
    """Whether the numbers ``at`` the point lie between those beside it (first axis), but for a small share in all."""
    if not np.isfinite(beside).all() or not np.isfinite(at).all():
        return False
    outside = np.maximum(at - beside.max(axis=0), beside.min(axis=0) - at)
    return bool(np.sum(np.maximum(outside, 0.0)) <= OUTSIDE * np.sum(np.abs(at)))

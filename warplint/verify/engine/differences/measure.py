"""Measures one gradient by finite differences over a window, with the effort that time allows."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np

from warplint.verify.engine.differences.finite_difference import (
    EPS32,
    EPS64,
    DirectionVector,
    OutOfBudget,
    combine,
    directions,
    judge_direction,
    one_sided,
    wants_one_sided,
)
from warplint.verify.engine.execution.memory import CodeStack
from warplint.verify.engine.execution.operations import Operation
from warplint.verify.engine.replaying.analysis import Analysis
from warplint.verify.engine.replaying.groups import Group
from warplint.verify.engine.replaying.windows import Window, rewritten
from warplint.verify.records import Direction, GradientStatus

EPS16 = 2.0**-10


@dataclass(frozen=True)
class Clock:
    """When the answers must be there (``time.monotonic``), and how many seconds the judging should take.

    ``aim`` is what the user would like to wait: gradients that somebody uses are judged beyond it, with less effort.
    """

    deadline: float
    aim: float = 10.0
    began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Seconds until the answers must be there."""
        return self.deadline - time.monotonic()

    @property
    def aim_left(self) -> float:
        """Seconds of the time that the judging should take; negative when it takes longer."""
        return self.aim - (time.monotonic() - self.began)

    def require(self, seconds: float = 0.0) -> None:
        """Raise :class:`OutOfBudget` where less than that is left."""
        if self.left < seconds:
            raise OutOfBudget


@dataclass(frozen=True)
class Effort:
    """How many directions a leaf is moved in, and how many evaluations each may take."""

    directions: int
    evaluations: int


FULL = Effort(5, 48)
LESS = Effort(3, 24)
LEAST = Effort(2, 14)
"""A clear pass takes seven evaluations, a clear failure eleven."""


@dataclass(frozen=True)
class Measurement:
    """What finite differences say of one group."""

    vectors: tuple[DirectionVector, ...]
    judged: tuple[Direction, ...]
    status: GradientStatus
    reason: str
    ad: float
    fd: float
    relative_error: float | None
    method: str = "replay"


@dataclass(frozen=True)
class Measurer:
    """Moves the leaf of a group in some directions, and compares."""

    analysis: Analysis
    clock: Clock
    seed: int

    def measure(self, group: Group, window: Window, effort: Effort) -> Measurement:
        """Judge the gradient in as many directions as the effort says."""
        leaf = group.leaf
        window.restore()
        values = leaf.view.read()
        rng = np.random.default_rng([self.seed, leaf.memory.number, group.number])
        axes = 1 if leaf.view.components > 1 else 0
        scaled = directions(values, group.consumed, rng, component_axes=axes)
        vectors = tuple(_in_units(vector) for vector in scaled[: effort.directions])
        rewrites = rewritten(group.rewrites, leaf, self.analysis)
        epsilon = {2: EPS16, 4: EPS32, 8: EPS64}[leaf.view.kind.itemsize]
        epsilon = max(epsilon, coarsest(group))
        judged: list[Direction] = []
        if vectors:
            window.check(rewrites, lambda old: vectors[0][0].moved(old, 1e-2 * vectors[0][1]), leaf)

        def ask(vector: DirectionVector, scale: float) -> Direction:
            def objective(step: float) -> float:
                self.clock.require()
                return window.evaluate(rewrites, lambda old: vector.moved(old, step), leaf)

            self.clock.require()
            return judge_direction(
                objective, vector.ad, scale=scale, dtype_eps=epsilon, kind=vector.kind, budget=effort.evaluations
            )

        for vector, scale in vectors:
            judged.append(ask(vector, scale))
        if wants_one_sided(judged):
            upwards = _in_units(one_sided(values, group.consumed, rng, component_axes=axes))
            vectors = (*vectors, upwards)
            judged.append(ask(*upwards))
        answer = combine(judged)
        moved = tuple(vector for vector, _ in vectors)
        found = Measurement(
            moved, tuple(judged), answer.status, answer.reason, answer.ad, answer.fd, answer.relative_error
        )
        return found if np.isfinite(group.consumed).all() else _never_right(found, group)


def _never_right(found: Measurement, group: Group) -> Measurement:
    """A gradient with numbers that are none is not right because others are: at singular points nobody can tell."""
    if found.status is not GradientStatus.PASS:
        return found
    singular = [d for d in found.judged if d.status is GradientStatus.INCONCLUSIVE and not np.isfinite(d.ad)]
    told = f": {singular[0].reason}" if singular else ""
    off = int((~np.isfinite(group.consumed)).sum())
    return otherwise(found, GradientStatus.INCONCLUSIVE, f"{off} of {group.consumed.size} are no numbers{told}")


def coarsest(group: Group) -> float:
    """The machine epsilon of the loss: an objective in single precision has its noise."""
    kinds = [begin.loss_kind.kind for begin in group.backwards if begin.loss_kind is not None]
    sizes = [kind.itemsize for kind in kinds if kind is not None]
    return {2: EPS16, 4: EPS32, 8: EPS64}[min(sizes)] if sizes else 0.0


def inconclusive(reason: str, found: Measurement | None = None) -> Measurement:
    """No answer, for this reason; with the figures found, if any."""
    nan = float("nan")
    if found is None:
        return Measurement((), (), GradientStatus.INCONCLUSIVE, reason, nan, nan, None)
    return otherwise(found, GradientStatus.INCONCLUSIVE, reason)


def otherwise(found: Measurement, status: GradientStatus, reason: str) -> Measurement:
    """The same figures under another judgement."""
    return replace(found, status=status, reason=reason)


def _in_units(vector: DirectionVector) -> tuple[DirectionVector, float]:
    """A direction along one coordinate as the plain partial derivative, and the scale of its steps."""
    moving = np.flatnonzero(vector.vector)
    if moving.size != 1:
        return vector, 1.0
    scale = float(abs(vector.vector.flat[moving[0]]))
    return DirectionVector(vector.kind, vector.vector / scale, vector.ad / scale), scale


def shown(operation: Operation) -> str:
    """Where the program did this."""
    return place(operation.stack)


def place(stack: CodeStack) -> str:
    """The innermost line of the user's."""
    if not stack:
        return "inside Warp"
    code, line = stack[0]
    return f"{code.co_filename}:{line}"

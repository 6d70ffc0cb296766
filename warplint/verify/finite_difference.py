"""Finite differences that know their own error: one directional derivative, and a leaf's judgement from several.

The caller owns the program (a replay, a fork, a single launch) and hands in ``objective(step)``; this room owns the
numbers. It needs numpy alone and touches no memory of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warplint.verify.records import Direction, GradientStatus

Objective = Callable[[float], float]
"""The objective, summed in float64, with the leaf moved by ``step`` along a direction; ``step`` 0 is the program's point."""

Floats = npt.NDArray[np.float64]

EPS32 = 2.0**-23
EPS64 = 2.0**-52


class OutOfBudget(Exception):
    """No further evaluation is allowed. An objective may raise it as well (a time limit): what was seen is judged."""


@dataclass(frozen=True)
class DirectionVector:
    """One way to move a leaf: ``leaf + step * vector``, steps being relative (0.3 to 1e-4), units inside ``vector``.

    ``vector`` has the leaf's shape; ``ad`` is the directional derivative that the gradient claims, ``sum(gradient *
    vector)`` in float64 (it may be NaN).
    """

    kind: str
    vector: Floats
    ad: float

    def moved(self, leaf: npt.NDArray[Any], step: float) -> npt.NDArray[Any]:
        """The leaf's values moved by ``step``, rounded to the leaf's own dtype; a fresh array."""
        raise NotImplementedError


@dataclass(frozen=True)
class LeafJudgement:
    """What several directions say of one leaf; ``ad``, ``fd`` are those of the direction that decided."""

    status: GradientStatus
    reason: str
    ad: float
    fd: float
    relative_error: float | None


def judge_direction(
    objective: Objective,
    ad: float,
    *,
    scale: float = 1.0,
    dtype_eps: float = EPS32,
    budget: int = 48,
    kind: str = "",
    noise: float | None = None,
) -> Direction:
    """Whether ``ad`` is the derivative of ``objective`` at 0, as far as ``dtype_eps`` lets anybody tell.

    ``scale`` multiplies the relative steps (1 for a :class:`DirectionVector`, whose vector carries the units).
    ``dtype_eps`` is the machine epsilon of the coarsest arithmetic between leaf and objective. ``noise`` is the
    absolute noise of one evaluation where the caller knows it better than ``dtype_eps * |objective|``. At most
    ``budget`` evaluations; a clear case takes seven. Never raises for what the objective returns.
    """
    raise NotImplementedError


def directions(
    leaf_values: npt.NDArray[Any], gradient: npt.NDArray[Any], rng: np.random.Generator
) -> tuple[DirectionVector, ...]:
    """The directions in which one leaf is tested: random, along the gradient, its largest and two random coordinates.

    Arrays of vectors, matrices or structs come with the components as trailing axes: each component has a scale of
    its own.
    """
    raise NotImplementedError


def combine(judged: Sequence[Direction]) -> LeafJudgement:
    """One answer for a leaf: one failed direction is enough to fail, one kind of direction is not enough to pass."""
    raise NotImplementedError

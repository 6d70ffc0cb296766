"""What a kernel is measured on. A gradient is right only if it is right for all inputs, and a wrong one may hide.

It hides behind conditions that hardly any input meets, behind a maximum that one operand always has, behind a loop that
always runs. So draws differ in size and sign, arrays differ from one another, and the scalars are drawn as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.differential.cases import ROUNDS, SIZE

DRAWS = 160
NEAR = 24
"""The first draws: all values about one, all loops at their full length."""

Shape = tuple[int, ...]
Sampler = Callable[[np.random.Generator, Shape], Any]


@dataclass(frozen=True)
class Draw:
    """``start``, ``weights`` (of the objective) and ``direction`` by array; ``permutation`` is of indices."""

    start: dict[str, Any]
    weights: dict[str, Any]
    direction: dict[str, Any]
    permutation: Any
    rounds: int
    scalar: float
    time_step: float


def near(random: np.random.Generator, shape: Shape) -> Any:
    """Positive, about one."""
    return random.uniform(0.4, 1.6, shape)


def wide(random: np.random.Generator, shape: Shape) -> Any:
    """Of both signs."""
    return random.uniform(-2.5, 2.5, shape)


def scattered(random: np.random.Generator, shape: Shape) -> Any:
    """Of all sizes: an element is far larger than its neighbour, or far smaller."""
    return random.choice((-1.0, 1.0), shape) * 10.0 ** random.uniform(-1.5, 1.0, shape)


def level(random: np.random.Generator, shape: Shape) -> Any:
    """An array that lies above or below all others."""
    return random.normal(0.0, 3.0) + random.uniform(-0.3, 0.3, shape)


SAMPLERS: tuple[Sampler, ...] = (near, wide, wide, scattered, level)


def drawn(number: int, shapes: Mapping[str, Shape]) -> Draw:
    """The draw with this number, for arrays of these shapes."""
    random = np.random.default_rng(number)
    early, mixed = number < NEAR, number % 2 == 1
    one = near if early else SAMPLERS[random.integers(len(SAMPLERS))]

    def sampler() -> Sampler:
        return one if early or not mixed else SAMPLERS[random.integers(len(SAMPLERS))]

    return Draw(
        {path: sampler()(random, shape) for path, shape in shapes.items()},
        {path: random.uniform(0.5, 1.5, shape) for path, shape in shapes.items()},
        {path: random.uniform(-1.0, 1.0, shape) for path, shape in shapes.items()},
        random.permutation(SIZE),
        ROUNDS if early else int(random.choice(ROUNDS + 1, p=_SHARES)),
        0.7 if early else float(wide(random, ())),
        0.3 if early else float(wide(random, ())),
    )


_SHARES = (0.1, 0.1, 0.15, 0.2, 0.45)
"""Of the numbers of rounds: most loops are to run, some not at all."""

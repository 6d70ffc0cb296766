"""Whether a program's gradients are right, without warplint: the program is run from moved starts.

A program fits a leaf that starts at ``START`` and keeps ``history``: for each iteration the loss, the leaf and the
gradient that it used. The slope of the first iteration's loss, from a start at what the leaf was, must agree.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

WRONG, RIGHT = 0.03, 0.01
"""Relative errors above the first are wrong, below the second right; between them nothing is claimed."""

STEPS = (3e-2, 1e-2, 3e-3)


class Truth(str, enum.Enum):
    """What is so of a program's gradients."""

    RIGHT = "right"
    WRONG = "wrong"
    UNCLEAR = "unclear"
    BROKEN = "broken"


def truth(text: str) -> Truth:
    """Run the program as it is, and from moved starts, in a process of its own: mutants may destroy their memory."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.write(writing, _truth(text).value.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        told = answer.read()
    os.waitpid(process, 0)
    return Truth(told) if told else Truth.BROKEN


def _truth(text: str, seed: int = 0) -> Truth:
    code = compile(text, "mutant.py", "exec")
    try:
        history = _history(code, None)
        rng = np.random.default_rng(seed)
        told = [_iteration(code, *kept, rng) for kept in history]
    except Exception:
        return Truth.BROKEN
    return next((t for t in (Truth.WRONG, Truth.UNCLEAR) if t in told), Truth.RIGHT)


def _history(code: Any, start: Floats | None) -> list[tuple[float, Floats, Floats]]:
    names: dict[str, Any] = {"__name__": "__main__"}
    if start is not None:
        names["START"] = start
    exec(code, names)
    return list(names["history"])


def _iteration(code: Any, loss: float, leaf: Floats, gradient: Floats, rng: np.random.Generator) -> Truth:
    again = _history(code, leaf)[0][0]
    if abs(again - loss) > 1e-5 * max(abs(again), abs(loss)):
        return Truth.RIGHT  # the program carries more than the leaf on: what this iteration's slope is, is not known
    if not np.all(np.isfinite(gradient)):
        return Truth.WRONG
    leaf, gradient = leaf.astype(np.float64), gradient.astype(np.float64)
    told = []
    for _ in range(3):
        vector = rng.choice((-1.0, 1.0), size=leaf.shape) * rng.uniform(0.5, 1.5, size=leaf.shape)
        told.append(_direction(lambda at: _history(code, at)[0][0], leaf, vector, float(np.sum(gradient * vector))))
    return next((t for t in (Truth.WRONG, Truth.UNCLEAR) if t in told), Truth.RIGHT)


def _direction(loss: Callable[[Floats], float], leaf: Floats, vector: Floats, claimed: float) -> Truth:
    slopes = [(loss(leaf + h * vector) - loss(leaf - h * vector)) / (2.0 * h) for h in STEPS]
    pairs = [(abs(a - b), 0.5 * (a + b)) for a, b in pairwise(slopes)]
    spread, slope = min(pairs)
    scale = max(abs(slope), abs(claimed))
    if scale < 1e-6:
        return Truth.RIGHT
    error = abs(claimed - slope) / scale
    if spread > 0.3 * max(error * scale, RIGHT * scale):
        return Truth.UNCLEAR
    return Truth.WRONG if error > WRONG else Truth.RIGHT if error < RIGHT else Truth.UNCLEAR

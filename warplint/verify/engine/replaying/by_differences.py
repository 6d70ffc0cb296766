"""The adjoint of one launch by finite differences, in the place of the one that the compiler made.

It shows what a gradient would be if the kernel's own adjoint were right, so that what else is wrong comes to light.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from warplint.dataclass import dataclass
from warplint.verify.engine.execution.memory import Contents
from warplint.verify.engine.execution.operations import KernelCall
from warplint.verify.engine.execution.views import FloatView

Floats = npt.NDArray[np.float64]

STEPS = (2e-2, 1e-2)
"""Relative steps of the two central differences that are extrapolated (Richardson): truncation falls with h^4."""
ELEMENTS = 512
"""Numbers of one launch that are moved one by one, at most."""


@dataclass(frozen=True)
class Differentiated:
    """An array of the launch that has a gradient; ``writes``: the launch may change it."""

    view: FloatView
    gradient: FloatView
    writes: bool


def is_small(arrays: Sequence[Differentiated]) -> bool:
    """Whether so few numbers are to be moved that it can be done."""
    return 0 < sum(array.view.count for array in arrays) <= ELEMENTS


def run_adjoint(call: KernelCall, arrays: Sequence[Differentiated]) -> None:
    """Change the gradients as an adjoint of the launch would, on the memory as it is; the memory stays so.

    The launch maps its arrays to what they are afterwards: the gradient of an array that it writes is replaced by the
    transposed derivative times the gradients afterwards, that of another is added to.
    """
    kept = Contents(call.touched)
    outputs = [array for array in arrays if array.writes]
    weights = [array.gradient.read().astype(np.float64) for array in outputs]

    def objective(moved: Differentiated, values: npt.NDArray[np.generic]) -> float:
        kept.restore()
        moved.view.write(values)
        call.run()
        results = [array.view.read().astype(np.float64) for array in outputs]
        return float(sum(np.sum(w * r, where=w != 0) for w, r in zip(weights, results, strict=True)))

    found = [_slopes(array, objective) for array in arrays]
    kept.restore()
    for array, slopes in zip(arrays, found, strict=True):
        before = np.zeros_like(slopes) if array.writes else array.gradient.read().astype(np.float64)
        array.gradient.write((before + slopes).astype(array.gradient.kind))


Values = npt.NDArray[np.generic]
Objective = Callable[[Differentiated, Values], float]


def _slopes(array: Differentiated, objective: Objective) -> Floats:
    values = array.view.read()
    size = float(np.sqrt(np.mean(np.square(values.astype(np.float64))))) or 1.0
    slopes = np.zeros(values.shape)
    for index in np.ndindex(values.shape):
        unit = max(abs(float(values[index])), size)
        wide, narrow = (_central(array, objective, values, index, step * unit) for step in STEPS)
        slopes[index] = (4.0 * narrow - wide) / 3.0
    return slopes


def _central(
    array: Differentiated, objective: Objective, values: npt.NDArray[Any], index: tuple[int, ...], step: float
) -> float:
    found = []
    for sign in (1.0, -1.0):
        moved = values.copy()
        moved[index] += sign * step
        found.append((float(moved[index]), objective(array, moved)))
    (high, above), (low, below) = found
    return (above - below) / (high - low)

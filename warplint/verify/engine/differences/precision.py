"""How finely numbers are told: the one place that says it of each floating-point type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

EPS32 = 2.0**-23
EPS64 = 2.0**-52


def epsilon_of(kinds: Iterable[np.dtype[Any]]) -> float:
    """The machine epsilon of the coarsest of some types (2**-10 of halves, 2**-23, 2**-52); 0 of none."""
    return max((float(np.finfo(kind).eps) for kind in kinds), default=0.0)

"""The local check of one operation: its adjoint, under a random cotangent, against finite differences of it alone.

An operation maps the memory that it touches to that memory afterwards; its adjoint maps the cotangent of the memory
afterwards to that before. So an array that is written in place is simply both input and output, and a starting
gradient that is not zero shows an adjoint that clobbers what others have accumulated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warplint.verify.finite_difference import EPS32
from warplint.verify.records import GradientStatus

State = Mapping[str, npt.NDArray[Any]]
"""Arrays by name (the kernel's parameter, ``state.q`` for a field of a struct parameter), components as trailing axes."""


@dataclass(frozen=True)
class OperationCheck:
    """The judgement of one operation, and where it parted: ``argument``, and ``element`` within it."""

    status: GradientStatus
    reason: str
    ad: float
    fd: float
    argument: str = ""
    element: tuple[int, ...] = ()
    failed: tuple[str, ...] = ()
    """Every argument whose adjoint is wrong, the worst first."""


def check_operation(
    forward: Callable[[State], State],
    adjoint: Callable[[State], State],
    inputs: State,
    outputs: Collection[str],
    rng: np.random.Generator,
    *,
    dtype_eps: float = EPS32,
    budget: int = 2000,
) -> OperationCheck:
    """Check the adjoint of one operation element by element, and name the argument where it parts from FD.

    ``inputs`` are the floating arrays that the operation reads or passes on, with their values before it;
    ``outputs`` the names of those that it may write. An array written in place (or only in part) stands in both.

    ``forward(values)`` restores the memory, writes ``values`` (some or all of ``inputs``) into it, runs the operation
    and returns fresh copies of the arrays in ``outputs``. ``adjoint(cotangents)`` restores the memory as the backward
    pass of the question finds it, sets the gradients of all of ``inputs`` and ``outputs`` to ``cotangents``, runs the
    adjoint once and returns fresh copies of the gradients of ``inputs``. ``budget`` bounds the calls of ``forward``.
    """
    raise NotImplementedError

"""Adjoints of the user's own: those of functions that a wrong kernel comes to, and functions that a tape recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from warplint.verify.engine.differences.measure import Clock
from warplint.verify.engine.kernels.apart import in_a_fork
from warplint.verify.engine.kernels.function_check import check_function
from warplint.verify.engine.warp_functions import CustomAdjoint, custom_adjoints
from warplint.verify.engine.warp_modules import definition
from warplint.verify.records import AdjointCheck, Place

SECONDS = 60.0
"""What the check of one function may take: it builds a kernel."""


def check_adjoints(kernels: Iterable[Any], send: Callable[[object], None], clock: Clock, seed: int) -> None:
    """Check each custom adjoint that these kernels come to, in a process of its own."""
    users: dict[int, list[Place]] = {}
    found: dict[int, CustomAdjoint] = {}
    for kernel in {id(kernel): kernel for kernel in kernels}.values():
        for adjoint in custom_adjoints(kernel):
            found[id(adjoint.function)] = adjoint
            users.setdefault(id(adjoint.function), []).append(definition(kernel))
    for number, adjoint in found.items():
        called_by = tuple(users[number])

        def work(adjoint: CustomAdjoint = adjoint, called_by: tuple[Place, ...] = called_by) -> None:
            for told in check_function(adjoint, seed):
                check = told.check
                reason = f"`{check.place}`: {check.reason}"
                figures = (check.status, reason, check.ad, check.fd, check.name)
                send(AdjointCheck(adjoint.name, adjoint.defined, *figures, adjoint.forward, called_by, told.everywhere))

        in_a_fork(work, min(SECONDS, clock.left), lambda reason: None)

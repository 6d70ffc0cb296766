"""How a measured gradient is told in a verdict: in words and in figures."""

from __future__ import annotations

import math
from collections.abc import Sequence

from warplint.proof import Repair
from warplint.verify.records import Gradient

REPAIRING = {
    Repair.MEMORY: "restoring the overwritten values",
    Repair.GRADIENT: "giving the arrays on the way a gradient",
    Repair.RETAIN: "turning `retain_grad` off",
    Repair.CHAIN: "chaining the tapes",
    Repair.FRESH: "starting from zeroed gradients",
    Repair.ONCE: "running the repeated operation's adjoint once",
    Repair.CUT: "cutting the gradient at the writes that no tape records",
    Repair.ARGUMENTS: "giving each adjoint the arguments of its launch",
    Repair.KERNEL: "taking the adjoint of the kernels that are wrong alone by finite differences",
    Repair.HOST: "giving what the host writes there an adjoint (the tape passes it over)",
    Repair.TAPED: "running the adjoint of what no tape recorded",
}
"""What each what-if experiment does, in words."""


def figures_of(gradient: Gradient) -> dict[str, object]:
    """The figures of a verdict that rests on this gradient."""
    return {
        "ad": gradient.ad,
        "fd": gradient.fd,
        "relative_error": gradient.relative_error,
        "leaf": gradient.leaf,
        "status": gradient.status.value,
    }


def leaf_name(gradient: Gradient) -> str:
    """`` `x` ``, or "a leaf"."""
    return f"`{gradient.leaf}`" if gradient.leaf else "a leaf"


def number(value: float) -> str:
    """Six digits, ``nan`` and ``inf`` as they are."""
    return f"{value:.6g}" if math.isfinite(value) else str(value)


def repairing(repairs: Sequence[Repair]) -> str:
    """``restoring the overwritten values repairs it``."""
    words = [REPAIRING[repair] for repair in repairs]
    return f"{' and '.join(words)} repair{'s' if len(words) == 1 else ''} it"


def one_sided(reason: str) -> str:
    """What to say of a slope that is one of two: at a kink every slope between them is a derivative."""
    return " (one-sided: at a kink, any slope between those of its two sides is right)" if "kink" in reason else ""


def comparison(gradient: Gradient) -> str:
    """``the gradient of `x` is 0, finite differences give 1.2``; of which iteration, where it is not the first."""
    when = f" in iteration {gradient.group + 1}" if gradient.group > 0 and gradient.window == 0 else ""
    figures = f"{number(gradient.ad)}, finite differences give {number(gradient.fd)}"
    return f"the gradient of {leaf_name(gradient)}{when} is {figures}"

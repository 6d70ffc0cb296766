"""How a measured gradient is told in a verdict: in words and in figures."""

from __future__ import annotations

import math

from warplint.verify.records import Gradient


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


def comparison(gradient: Gradient) -> str:
    """``the gradient of `x` is 0, finite differences give 1.2``."""
    return (
        f"the gradient of {leaf_name(gradient)} is {number(gradient.ad)}, finite differences give {number(gradient.fd)}"
    )

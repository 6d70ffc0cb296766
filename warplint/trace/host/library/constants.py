"""Constants of modules outside the project that programs count with."""

from __future__ import annotations

import math
import sys

from warplint.trace.host.values import Value

_CONSTANTS: dict[str, Value] = {
    **{f"{module}.{name}": getattr(math, name) for module in ("math", "numpy") for name in ("pi", "e", "inf", "nan")},
    "math.tau": math.tau,
    "numpy.newaxis": None,
    "warp.pi": math.pi,
    "warp.PI": math.pi,
    "warp.tau": math.tau,
    "warp.TAU": math.tau,
    "warp.e": math.e,
    "warp.E": math.e,
    "warp.half_pi": math.pi / 2,
    "warp.HALF_PI": math.pi / 2,
    "warp.inf": math.inf,
    "warp.INF": math.inf,
    "warp.nan": math.nan,
    "warp.NAN": math.nan,
    "sys.maxsize": sys.maxsize,
    "typing.TYPE_CHECKING": False,
}


def external_constant(path: str) -> Value:
    """The value of a constant by its dotted path, None for anything else."""
    return _CONSTANTS.get(path)

"""What the adjoint of each of Warp's builtins reads: the queries on ``builtins.json``.

The table has five parts: ``linear`` (no value is read), ``reads`` (for each argument that carries gradient, the
positions of the arguments whose values its adjoint reads: ``"mul": ["1", "0"]``), ``flat`` (no adjoint, and the true
derivative is zero almost everywhere or the result is no real number), ``missing`` (no adjoint, although the true
derivative is not zero), ``outputs`` (position of the first argument that receives a result).
"""

from __future__ import annotations

import enum
import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


class Derivative(enum.Enum):
    """How gradient passes a builtin."""

    LINEAR = "linear"
    PARTIAL = "partial"
    """The adjoint of each argument reads the arguments that :attr:`Table.reads` names."""
    NONLINEAR = "nonlinear"
    """The adjoint of any argument may read all of them."""
    FLAT = "flat"
    MISSING = "missing"


@dataclass(frozen=True)
class Table:
    """The table of builtins, as queries."""

    derivatives: Mapping[str, Derivative]
    reads: Mapping[str, tuple[tuple[int, ...], ...]]
    outputs: Mapping[str, int]

    def derivative(self, name: str) -> Derivative:
        """How gradient passes ``name``; a name that the table does not know reads all its arguments."""
        return self.derivatives.get(name, Derivative.NONLINEAR)


@functools.cache
def table() -> Table:
    """The table, read once per process."""
    data = json.loads(Path(__file__).with_name("builtins.json").read_text(encoding="utf-8"))
    derivatives = dict.fromkeys(data["reads"], Derivative.PARTIAL)
    for key in (Derivative.LINEAR, Derivative.FLAT, Derivative.MISSING):
        derivatives.update(dict.fromkeys(data[key.value], key))
    reads = {name: tuple(tuple(map(int, needed)) for needed in each) for name, each in data["reads"].items()}
    return Table(derivatives, reads, data["outputs"])

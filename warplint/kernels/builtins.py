"""What the adjoint of each of Warp's builtins reads: the queries on ``builtins.json``.

The table is made from the installed Warp by ``tests/builtins_table.py``, which says what its rows hold and how it was
measured.
"""

from __future__ import annotations

import enum
import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warplint.dataclass import dataclass


class Derivative(enum.Enum):
    """How gradient passes a builtin."""

    LINEAR = "linear"
    """No value is read."""
    PARTIAL = "partial"
    """The adjoint of each argument reads those that :meth:`Table.reads` names."""
    NONLINEAR = "nonlinear"
    """The adjoint of any argument may read all of them."""
    FLAT = "flat"
    """No adjoint, and the true derivative is zero almost everywhere or the result is no real number."""
    MISSING = "missing"
    """No adjoint, although the true derivative is not zero."""


@dataclass(frozen=True)
class Table:
    """The table of builtins, as queries. ``singular``: the argument at whose zero the adjoint is not finite, by name.

    A name that the table does not know reads all its arguments.
    """

    rows: Mapping[str, Mapping[str, Any]]
    derivatives: Mapping[str, Derivative]
    singular: Mapping[str, int]
    outputs: Mapping[str, int]
    numbers: frozenset[str]
    """The builtins that make a number of vectors and the like (``wp.dot``)."""

    def derivative(self, name: str) -> Derivative:
        """How gradient passes ``name``."""
        return self.derivatives.get(name, Derivative.NONLINEAR)

    def reads(self, name: str, argument: int, count: int) -> tuple[int, ...]:
        """The positions that the adjoint of one of ``count`` arguments of a PARTIAL builtin reads; unknown: all."""
        reads = self.rows[name]["reads"]
        return tuple(map(int, reads[argument])) if argument < len(reads) else tuple(range(count))

    def held(self, name: str, argument: int, count: int, *, mixed: bool) -> tuple[int, ...]:
        """Of those that :meth:`reads` names: the ones that the adjoint reads themselves, not the result in their place.

        A variable that holds one of the others may be overwritten by then; what it was made of is needed all the same.
        ``mixed``: of a call on numbers and composites together.
        """
        held = self.rows.get(name, {}).get("held_mixed" if mixed else "held")
        if held is None or argument >= len(held):
            return self.reads(name, argument, count)
        return tuple(map(int, held[argument]))

    def missing(self, name: str, *, composite: bool) -> tuple[int, ...]:
        """The arguments that get no gradient although the rest of the builtin has an adjoint (``wp.mod``)."""
        return tuple(self.rows.get(name, {}).get("missing_composite" if composite else "missing", ()))

    def result_readers(self, name: str, *, mixed: bool) -> tuple[int, ...]:
        """The arguments whose adjoint reads the result; ``mixed``: of a call on numbers and composites together."""
        return tuple(self.rows.get(name, {}).get("result_mixed" if mixed else "result", ()))


@functools.cache
def table() -> Table:
    """The table, read once per process."""
    rows = json.loads(Path(__file__).with_name("builtins.json").read_text(encoding="utf-8"))["builtins"]
    return Table(
        rows,
        {name: _derivative(row) for name, row in rows.items()},
        {name: position for name, row in rows.items() if (position := _singular_at_zero(row)) is not None},
        {name: row["outputs"] for name, row in rows.items() if "outputs" in row},
        frozenset(name for name, row in rows.items() if row.get("number")),
    )


def _derivative(row: Mapping[str, Any]) -> Derivative:
    if "reads" not in row:
        return Derivative.FLAT if row.get("flat") else Derivative.MISSING
    if row["reads"] is None:
        return Derivative.NONLINEAR
    return Derivative.PARTIAL if any(row["reads"]) else Derivative.LINEAR


def _singular_at_zero(row: Mapping[str, Any]) -> int | None:
    return next((int(position) for position, values in row.get("singular", {}).items() if 0.0 in values), None)

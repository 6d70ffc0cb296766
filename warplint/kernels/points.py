"""The operations of a kernel that have no derivative somewhere, and the stores that their results reach."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable

from warplint.finding import Span
from warplint.kernels.ledger import DangerRecord, File, Ledger, TokenKind
from warplint.kernels.source import text_of
from warplint.kernels.summary import NonsmoothPoint, PointKind
from warplint.kernels.values import members, union


def nonsmooth_points(ledger: Ledger, span_of: Callable[[ast.AST, File], Span]) -> tuple[NonsmoothPoint, ...]:
    """One point for each operation, in the order of the body.

    An operand that ``where`` does not select is no point: that it is singular there is a fault of its own. Nor is an
    overflow, which no data in sight come near.
    """
    marks = union(1 << number for number, token in enumerate(ledger.tokens) if token.kind is TokenKind.UNSELECTED)
    unselected = {
        ledger.needs[number].node
        for store in (ledger.stores if marks else ())
        for number in members(store.needs)
        if ledger.needs[number].tokens & marks
    }
    reached: dict[ast.AST, set[str]] = defaultdict(set)
    records: dict[ast.AST, list[DangerRecord]] = defaultdict(list)
    for store in ledger.stores:
        for danger in map(ledger.dangers.__getitem__, members(store.value.dangers)):
            if danger.kind is not PointKind.OVERFLOW and danger.node not in unselected:
                reached[danger.node].add(store.path)
                records[danger.node].append(danger)
    points = (_point(ledger, span_of, records[node], reached[node]) for node in reached)
    return tuple(sorted(points, key=lambda point: point.order))


def _point(
    ledger: Ledger, span_of: Callable[[ast.AST, File], Span], records: list[DangerRecord], into: set[str]
) -> NonsmoothPoint:
    """What several executions of one operation say (unrolled rounds, calls of one function) is one point."""
    first, given = records[0], 0
    for record in records:
        given |= record.given
    return NonsmoothPoint(
        first.kind,
        span_of(first.node, first.file),
        first.order,
        ledger.path_names(given),
        frozenset(into),
        text_of(first.node),
        all(record.guarded for record in records),
    )

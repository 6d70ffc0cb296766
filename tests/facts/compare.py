"""The measurements beside what the analysis says: one row for each variant, and the share in which they agree."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from warplint.catalogue import catalogue
from warplint.finding import Severity

from .analysis import Variant, findings, reported
from .expected import EXPECTED, GUARDED, OLDER, SILENT, Places
from .expected_tapes import WARNED
from .measure import PROGRAM_NAMES, Measured, Verdict
from .variants import variants

NONSMOOTH = "NVW205"
"""The rule that may warn of a kink that the data hit; a finite gradient there is one of several right answers."""
REPLAYED = "NVW209"
"""The rule that speaks of statements which the backward pass runs again: those of a function, not of a kernel."""


@dataclass(frozen=True)
class Row:
    """One variant. ``analysis``: the warnings (code and beginning of the line); ``agrees`` None: no such rule yet."""

    program: str
    case: str
    measured: Measured
    analysis: Places
    agrees: bool | None


def rows(table: Mapping[str, Mapping[str, Measured]]) -> Iterator[Row]:
    """Each measured variant beside what the analysis says of it."""
    known = {rule.code for rule in catalogue()}
    for program in PROGRAM_NAMES:
        for variant in variants(program):
            measured = table[program].get(variant.case)
            if measured is not None:
                yield _row(variant, measured, known)


def _row(variant: Variant, measured: Measured, known: set[str]) -> Row:
    lines = variant.text.splitlines()
    found = findings(variant)
    places = sorted(
        {(one.code, lines[one.span.line - 1].strip()) for one in found if one.severity is not Severity.INFO}
    )
    warned = WARNED.get(variant.program, {}).get(variant.case)
    expected = EXPECTED.get(variant.program, {}).get(variant.case, []) if warned is None else [warned.place]
    agrees: bool | None = _same(places, expected)
    if measured.verdict in (Verdict.CHANGED, Verdict.UNCHANGED):
        again = [one for one in found if one.code == REPLAYED and _in_function(variant, one.span.line)]
        agrees = bool(again) is (measured.verdict == Verdict.CHANGED)
    elif measured.verdict == Verdict.KINK:
        guarded = (variant.program, variant.case) in GUARDED
        agrees = not places if guarded else all(code == NONSMOOTH for code, _ in places)
    elif any(code not in known for code, _ in expected):
        agrees = None
    return Row(variant.program, variant.case, measured, places, agrees)


def agrees_on(variant: Variant, verdict: str, version: str) -> bool:
    """Whether the analysis for an older Warp says of a variant what was measured with it."""
    warned = WARNED.get(variant.program, {}).get(variant.case)
    newer = EXPECTED.get(variant.program, {}).get(variant.case, []) if warned is None else [warned.place]
    expected = OLDER.get(version, {}).get(variant.program, {}).get(variant.case, newer)
    major, minor = map(int, version.split("."))
    places = sorted(reported(variant, (major, minor)))
    return _same(places, expected) and (warned is not None or bool(places) is (verdict != Verdict.BENIGN))


def _same(places: Places, expected: Places) -> bool:
    """Whether exactly the expected lines are reported by the expected rules."""
    return len(places) == len(expected) and all(
        any(code == wanted and line.startswith(beginning) for code, line in places) for wanted, beginning in expected
    )


def _in_function(variant: Variant, line: int) -> bool:
    """Whether a line stands in a ``@wp.func``, which the backward pass runs again."""
    return any(
        isinstance(node, ast.FunctionDef)
        and node.lineno <= line <= (node.end_lineno or line)
        and any(ast.unparse(decorator) == "wp.func" for decorator in node.decorator_list)
        for node in ast.walk(ast.parse(variant.text))
    )


def needs_report(program: str, case: str, measured: Measured) -> bool:
    """Whether the measurement says that something must be reported."""
    silent = (Verdict.BENIGN, Verdict.KINK, Verdict.CHANGED, Verdict.UNCHANGED)
    return measured.verdict not in silent and (program, case) not in SILENT


def shares(all_rows: Sequence[Row]) -> dict[str, tuple[int, int]]:
    """By program: how many rows agree, and of how many whose rule there is."""
    found: dict[str, tuple[int, int]] = {}
    for row in all_rows:
        if row.agrees is not None:
            agreeing, judged = found.get(row.program, (0, 0))
            found[row.program] = agreeing + row.agrees, judged + 1
    return found


def share(all_rows: Sequence[Row]) -> float:
    """The share of rows in which measurement and analysis agree, among those whose rule there is."""
    judged = [row for row in all_rows if row.agrees is not None]
    return sum(row.agrees is True for row in judged) / len(judged)


def lines(all_rows: Sequence[Row]) -> Iterator[str]:
    """The table, as text."""
    yield f"{'program':16} {'variant':58} {'adjoint':30} {'differences':30} {'measured':9} {'analysis':22} agree"
    words = {True: "yes", False: "NO", None: "no rule"}
    for row in all_rows:
        adjoint, differences = (" ".join(each)[:30] for each in (row.measured.adjoint, row.measured.differences))
        analysis = " ".join(dict.fromkeys(code for code, _ in row.analysis)) or "silent"
        yield (
            f"{row.program:16} {row.case[:58]:58} {adjoint:30} {differences:30} {row.measured.verdict:9} "
            f"{analysis[:22]:22} {words[row.agrees]}"
        )

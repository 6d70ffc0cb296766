"""The fixes of many findings, merged into new texts; those that touch the same place wait for the next round."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from warplint.dataclass import dataclass
from warplint.finding import Applicability, Edit, Finding
from warplint.fix.edits import SourceOf
from warplint.fix.text import applied, edited_range, line_ranges
from warplint.source import SourceFile, parse


@dataclass(frozen=True)
class Rewrite:
    """A file and the text that it is to have."""

    path: str
    source: SourceFile
    text: str


@dataclass(frozen=True)
class Plan:
    """What one round changes. ``overlapping``: findings whose fixes touch those of others, for a later round."""

    rewrites: tuple[Rewrite, ...] = ()
    fixed: tuple[Finding, ...] = ()
    overlapping: tuple[Finding, ...] = ()


def plan(findings: Iterable[Finding], applicable: Collection[Applicability], source_of: SourceOf) -> Plan:
    """Merge the fixes, in the order of the findings: of two that touch, the first is made.

    Raises:
        Unreadable: a file is gone, or a fix would leave a text that cannot be parsed; then nothing may be written.
    """
    taken: dict[str, dict[tuple[int, int, str], Edit]] = {}
    fixed, overlapping = [], []
    for finding in findings:
        if finding.fix is None or not finding.is_fixable(applicable):
            continue
        wanted = [(edit, (*_range(edit, source_of), edit.content)) for edit in finding.fix.edits]
        if any(_touches(key, taken.get(edit.span.path, ())) for edit, key in wanted):
            overlapping.append(finding)
            continue
        fixed.append(finding)
        for edit, key in wanted:
            taken.setdefault(edit.span.path, {})[key] = edit
    rewrites = []
    for path, edits in taken.items():
        source = source_of(path)
        text = applied(source.text, edits.values())
        parse(text, path)
        rewrites.append(Rewrite(path, source, text))
    return Plan(tuple(rewrites), tuple(fixed), tuple(overlapping))


def _range(edit: Edit, source_of: SourceOf) -> tuple[int, int]:
    return edited_range(edit, line_ranges(source_of(edit.span.path).text))


def _touches(key: tuple[int, int, str], taken: Iterable[tuple[int, int, str]]) -> bool:
    """Equal edits agree; neighbours without a character between them do not have an order."""
    return any(key != other and key[0] <= other[1] and other[0] <= key[1] for other in taken)

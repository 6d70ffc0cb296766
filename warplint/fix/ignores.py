"""Comments that silence findings, written where they count: ``# warplint: ignore[NVW101]`` at the end of a line."""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Edit, Finding, Span
from warplint.fix.edits import SourceOf
from warplint.fix.plan import Rewrite
from warplint.fix.text import applied
from warplint.source import SourceFile, Unreadable, parse
from warplint.suppression import Form, Suppression, comment_line, suppressions


def with_ignores(findings: Iterable[Finding], source_of: SourceOf) -> tuple[Rewrite, ...]:
    """The files with a comment for each finding; files that cannot be parsed stay as they are."""
    codes: dict[str, dict[int, set[str]]] = {}
    for finding in findings:
        line = finding.noqa_line or finding.span.line
        codes.setdefault(finding.span.path, {}).setdefault(line, set()).add(finding.code)
    rewrites = []
    for path, by_line in codes.items():
        source = source_of(path)
        try:
            parse(source.text, path)
            text = applied(source.text, _edits(source, by_line))
            parse(text, path)
        except Unreadable:
            continue
        if text != source.text:
            rewrites.append(Rewrite(path, source, text))
    return tuple(rewrites)


def _edits(source: SourceFile, by_line: dict[int, set[str]]) -> Iterable[Edit]:
    at: dict[int, set[str]] = {}
    for line, codes in by_line.items():
        end = comment_line(source, line)
        if end is not None:
            at.setdefault(end, set()).update(codes)
    written = {entry.line: entry for entry in suppressions(source).entries if entry.form is Form.IGNORE}
    return [_edit(source, line, codes, written.get(line)) for line, codes in at.items()]


def _edit(source: SourceFile, line: int, codes: set[str], written: Suppression | None) -> Edit:
    """Codes put into the comment that is there, else a comment at the end of the line."""
    if written is not None and not written.quoted and written.codes:
        listed = ", ".join(dict.fromkeys([*written.codes, *sorted(codes)]))
        whole = source.lines[line - 1][written.column - 1 : written.end_column - 1]
        start = written.column + whole.index("[") + 1
        return Edit(Span(source.path, line, start, line, written.end_column - 1), listed)
    end = len(source.lines[line - 1].rstrip()) + 1
    return Edit(Span(source.path, line, end, line, 0), f"  # warplint: ignore[{', '.join(sorted(codes))}]")

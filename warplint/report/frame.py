"""A code frame: the lines of a finding and of its labels, each place underlined with its text."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from warplint.dataclass import dataclass
from warplint.finding import Finding, Span
from warplint.report.look import Look

TAB = 4

ROOM = 110
"""Columns of the frame in which an underline and its text stand side by side."""


@dataclass(frozen=True)
class Mark:
    """A place to underline: the finding's own (``primary``) or one of its labels."""

    span: Span
    text: str
    primary: bool


def marks_of(finding: Finding) -> tuple[Mark, ...]:
    """All places of a finding, its own first; labels that begin where it does give their texts to it."""
    own = finding.span
    here = [label for label in finding.labels if _start(label.span) == _start(own)]
    widest = own if own.end_column or not here else here[0].span
    first = [Mark(widest, label.text, primary=True) for label in here] or [Mark(own, "", primary=True)]
    return (*first, *(Mark(label.span, label.text, primary=False) for label in finding.labels if label not in here))


def frame(finding: Finding, look: Look) -> Iterator[str]:
    """The lines of the frame, file after file, the finding's own file first."""
    marks = marks_of(finding)
    by_file = {mark.span.file: [m for m in marks if m.span.file == mark.span.file] for mark in marks}
    width = len(str(max(mark.span.line for mark in marks)))
    for number, (file, places) in enumerate(by_file.items()):
        place = places[0].span
        arrow = "-->" if number == 0 else ":::"
        yield f"{' ' * width}{look.paint('blue', arrow)} {file}:{place.line}:{place.column}"
        yield from _file_frame(places, look.lines_of(file), width, look)


def _file_frame(marks: Sequence[Mark], lines: tuple[str, ...], width: int, look: Look) -> Iterator[str]:
    bar = f"{' ' * width} {look.paint('blue', '|')}"
    if not lines:
        yield from (f"{bar} {mark.span.line}:{mark.span.column} {mark.text}" for mark in marks if mark.text)
        return
    yield bar
    previous = 0
    for line, places in _by_line(marks, len(lines)):
        if previous and line > previous + 1:
            yield look.paint("blue", "." * width) if width > 2 else look.paint("blue", "...")
        previous = line
        text = lines[line - 1] if line <= len(lines) else ""
        code = look.code(expanded(text))
        yield f"{look.paint('blue', str(line).rjust(width))} {look.paint('blue', '|')} {code}".rstrip()
        for _, same in groupby(sorted(places, key=_order), key=lambda mark: mark.span):
            yield from (f"{bar} {shown}" for shown in _underlined(tuple(same), text, look))
    yield bar


def _by_line(marks: Sequence[Mark], last: int) -> Iterator[tuple[int, tuple[Mark, ...]]]:
    """The lines to show: all that are marked, and the neighbours of the finding's own."""
    context = {near for m in marks if m.primary for near in (m.span.line - 1, m.span.line + 1) if 1 <= near <= last}
    marked = {line: tuple(group) for line, group in _grouped(marks)}
    yield from ((line, marked.get(line, ())) for line in sorted(context | set(marked)))


def _grouped(marks: Sequence[Mark]) -> Iterable[tuple[int, Iterable[Mark]]]:
    return groupby(sorted(marks, key=lambda mark: mark.span.line), key=lambda mark: mark.span.line)


def _order(mark: Mark) -> tuple[int, int, int, bool]:
    span = mark.span
    return span.column, span.end_line, span.end_column, not mark.primary


def _underlined(marks: Sequence[Mark], text: str, look: Look) -> Iterator[str]:
    """One underline, and what its marks say: beside it, or below where there is no room or more than one text."""
    mark, texts = marks[0], [each.text for each in marks if each.text]
    start = min(max(mark.span.column, 1), len(text) + 1)
    end = len(text.rstrip()) + 1 if _to_line_end(mark.span) else mark.span.end_column
    end = max(min(end, len(text) + 1), start + 1)
    indent = " " * display_width(text[: start - 1])
    tip, style = ("^", "yellow") if mark.primary else ("-", "blue")
    line = tip * max(display_width(text[start - 1 : end - 1], display_width(text[: start - 1])), 1)
    beside = texts[0] if len(texts) == 1 and len(indent) + len(line) + len(texts[0]) < ROOM else ""
    yield f"{indent}{look.paint(style, f'{line} {beside}'.rstrip())}"
    yield from (f"{indent}{look.paint(style, each)}" for each in texts if not beside)


def _to_line_end(span: Span) -> bool:
    return span.end_column == 0 or (span.end_line or span.line) > span.line


def _start(span: Span) -> tuple[str, int, int]:
    return span.file, span.line, span.column


def expanded(text: str) -> str:
    """The line as it is shown: tabs as spaces, control characters as their pictures (they could drive a terminal)."""
    text = text.expandtabs(TAB)
    return "".join(chr(0x2400 + ord(char)) if ord(char) < 32 else char for char in text)


def display_width(text: str, at: int = 0) -> int:
    """How many columns of a terminal the text takes when it starts at column ``at``; wide letters take two."""
    column = at
    for char in text:
        if char == "\t":
            column += TAB - column % TAB
        elif not unicodedata.combining(char):
            column += 2 if unicodedata.east_asian_width(char) in "WF" else 1
    return column - at

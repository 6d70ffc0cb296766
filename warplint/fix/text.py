"""Text edits, applied to a file's text together or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from warplint.finding import Edit

LINE_END = re.compile(r"\r\n|\r|\n")


class Overlap(ValueError):
    """Two edits of one file want the same text."""


def applied(text: str, edits: Iterable[Edit]) -> str:
    r"""The text of a file after the edits; equal edits count once, ``\n`` in their content is the file's line end.

    Raises:
        Overlap: two different edits touch the same characters.
    """
    lines = line_ranges(text)
    wanted = sorted({(*edited_range(edit, lines), edit.content) for edit in edits})
    for (_, stop, _), (start, _, _) in pairwise(wanted):
        if start < stop:
            raise Overlap("two edits overlap")
    line_end = LINE_END.search(text)
    for start, stop, content in reversed(wanted):
        new = content.replace("\n", line_end.group()) if line_end is not None else content
        text = text[:start] + new + text[stop:]
    return text


def line_ranges(text: str) -> tuple[tuple[int, int], ...]:
    """Offsets of each line, its end left out, as Python's parser counts lines."""
    ends = [(match.start(), match.end()) for match in LINE_END.finditer(text)]
    starts = [0, *(stop for _, stop in ends)]
    return tuple(zip(starts, [*(start for start, _ in ends), len(text)], strict=True))


def edited_range(edit: Edit, lines: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Offsets of an edit's text; an end column of 0 means the end of that line, the line break left out."""
    span = edit.span
    first, stop = lines[(span.end_line or span.line) - 1]
    return lines[span.line - 1][0] + span.column - 1, first + span.end_column - 1 if span.end_column else stop

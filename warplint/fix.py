"""Fixes are text edits; here they are applied to a file's text, together or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from warplint.finding import Edit


class Overlap(ValueError):
    """Two edits of one file want the same text."""


def applied(lines: Sequence[str], edits: Iterable[Edit]) -> str:
    """The text of a file (its lines without their ends) after the edits; equal edits count once.

    Raises:
        Overlap: two different edits touch the same characters.
    """
    text = "\n".join(lines) + "\n"
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    wanted = sorted({(*_range(edit, starts), edit.content) for edit in edits})
    for (_, stop, _), (start, _, _) in pairwise(wanted):
        if start < stop:
            raise Overlap("two edits overlap")
    for start, stop, content in reversed(wanted):
        text = text[:start] + content + text[stop:]
    return text


def _range(edit: Edit, starts: Sequence[int]) -> tuple[int, int]:
    """Offsets of an edit's text; an end column of 0 means the end of that line, the line break left out."""
    span = edit.span
    last = span.end_line or span.line
    stop = starts[last] - 1 if span.end_column == 0 else starts[last - 1] + span.end_column - 1
    return starts[span.line - 1] + span.column - 1, stop

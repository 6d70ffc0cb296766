"""Comments that silence findings: flake8's ``# noqa``, and ``# warplint: ignore[NVW101] reason``.

The mapping of lines is flake8's own, so that both front ends agree: a comment counts for every physical line of the
token it ends (a multi-line string is one token; the lines of a call's arguments are not), and a finding looks for it on
the line where it stands. ``# warplint: ignore`` may also stand alone on the line before, where formatters put it.
"""

from __future__ import annotations

import enum
import io
import re
import tokenize
from collections.abc import Iterable, Mapping

from warplint.dataclass import dataclass
from warplint.finding import Finding
from warplint.source import SourceFile, Unreadable

PREFIX = "NVW"

_NOQA = re.compile(r"# noqa(?::[\s]?(?P<codes>([A-Z]+[0-9]+(?:[,\s]+)?)+))?", re.IGNORECASE)
_NOQA_FILE = re.compile(r"\s*# flake8[:=]\s*noqa(?::[\s]?(?P<codes>([A-Z]+[0-9]+(?:[,\s]+)?)+))?", re.IGNORECASE)
_IGNORE = re.compile(r"#\s*warplint:\s*ignore(?:\[(?P<codes>[^\]]*)\])?", re.IGNORECASE)
_COMMENT_LINE = re.compile(r"\s*#")
_DECORATOR_LINE = re.compile(r"\s*@")
_DEFINITION_LINE = re.compile(r"\s*(async\s+def|def|class)\b")


class Form(enum.Enum):
    """How a comment is written."""

    NOQA = "# noqa"
    NOQA_FILE = "# flake8: noqa"
    IGNORE = "# warplint: ignore"


@dataclass(frozen=True)
class Suppression:
    """One comment. ``codes`` empty: every finding. ``line`` is the comment's, ``lines`` are those it counts for.

    ``form`` tells ``# noqa``, which flake8 itself knows, from our own.
    ``quoted``: it stands inside a string. flake8 honours it there all the same; nobody need be told that it is unused.
    """

    line: int
    column: int
    end_column: int
    codes: tuple[str, ...]
    lines: range
    form: Form
    quoted: bool = False

    def covers(self, finding: Finding) -> bool:
        """Whether this comment silences the finding, its line left aside."""
        return not self.codes or any(names(code, finding) for code in self.codes)


@dataclass(frozen=True)
class Suppressions:
    """All comments of one file."""

    entries: tuple[Suppression, ...] = ()

    def of(self, finding: Finding) -> tuple[Suppression, ...]:
        """The comments that silence this finding of this file; empty: it is to be reported."""
        line = finding.noqa_line or finding.span.line
        return tuple(e for e in self.entries if (e.form is Form.NOQA_FILE or line in e.lines) and e.covers(finding))


NOTHING = Suppressions()


def names(code: str, finding: Finding) -> bool:
    """Whether ``code`` (a code, its beginning, or a rule's name) means this finding."""
    return finding.code.startswith(code.upper()) or finding.name == code.lower()


def suppressions(source: SourceFile) -> Suppressions:
    """The comments of a file; none where it cannot be read."""
    if not source.has_suppressions:
        return NOTHING
    try:
        layout, lines = _layout(source.text), source.lines
    except Unreadable:
        return NOTHING
    return Suppressions(tuple(e for at in range(1, len(lines) + 1) for e in _of_line(at, lines, layout)))


def comment_line(source: SourceFile, line: int) -> int | None:
    """Where a comment that counts for ``line`` can be written: after its string or continuation; None: nowhere."""
    covered = _layout(source.text).covered(line)
    return covered[-1] if covered else None


@dataclass(frozen=True)
class _Layout:
    """``ranges``: for each line the lines that share its ``noqa``. ``comments``: where a line's comment begins."""

    ranges: Mapping[int, range]
    comments: Mapping[int, int]

    def covered(self, line: int) -> range:
        return self.ranges.get(line, range(0))


def _layout(text: str) -> _Layout:
    """What flake8 computes from the tokens; empty where the text has none (it does not parse either)."""
    ranges: dict[int, range] = {}
    comments: dict[int, int] = {}
    first, last = 0, -1
    try:
        for kind, _, (start, column), (end, _), _ in tokenize.generate_tokens(io.StringIO(text, newline=None).readline):
            if kind in (tokenize.ENDMARKER, tokenize.DEDENT):
                continue
            if kind == tokenize.COMMENT:
                comments[start] = column
            first, last = (min(first, start) or start), max(last, end)
            if kind in (tokenize.NL, tokenize.NEWLINE):
                ranges.update(dict.fromkeys(range(first, last + 1), range(first, last + 1)))
                first, last = 0, -1
    except (tokenize.TokenError, SyntaxError):
        return _Layout({}, {})
    return _Layout(ranges, comments)


def _of_line(at: int, lines: tuple[str, ...], layout: _Layout) -> Iterable[Suppression]:
    line = lines[at - 1]
    if "#" not in line:
        return
    whole_file = _NOQA_FILE.match(line)
    if whole_file:
        yield _entry(at, whole_file, range(0), layout, Form.NOQA_FILE)
        return
    covered = layout.covered(at)
    first = next((n for n in covered if _NOQA.search(lines[n - 1])), 0)
    noqa = _NOQA.search(line) if first == at else None  # of several in one range flake8 sees the first alone
    if noqa:
        yield _entry(at, noqa, covered, layout, Form.NOQA)
    ignore = _IGNORE.search(line)
    if ignore:
        alone = _COMMENT_LINE.match(line) is not None
        meant = _next_statement(at, lines, layout) if alone else covered
        yield _entry(at, ignore, meant, layout, Form.IGNORE)


def _next_statement(at: int, lines: tuple[str, ...], layout: _Layout) -> range:
    """The lines that a comment standing alone speaks for: the next that is no comment, decorators with their def."""
    following = next((n for n in range(at + 1, len(lines) + 1) if not _COMMENT_LINE.match(lines[n - 1])), 0)
    meant = layout.covered(following)
    if meant and _DECORATOR_LINE.match(lines[following - 1]):
        made = next((n for n in range(following, len(lines) + 1) if _DEFINITION_LINE.match(lines[n - 1])), following)
        return range(meant.start, layout.covered(made).stop)
    return meant


def _entry(at: int, match: re.Match[str], lines: range, layout: _Layout, form: Form) -> Suppression:
    text = match[0].rstrip(" ,\t")
    start = match.start() + len(text) - len(text.lstrip())
    codes = tuple(code for code in re.split(r"[,\s]+", match["codes"] or "") if code)
    quoted = layout.comments.get(at, start + 1) > start
    return Suppression(at, start + 1, match.start() + len(text) + 1, codes, lines, form, quoted)

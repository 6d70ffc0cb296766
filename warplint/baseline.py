"""Known findings, kept in a file so that a code base with old ones hears of new ones alone.

A finding is recognised by its file (relative to the baseline's folder), its code and the text of its line: lines that
move keep their findings, a line that changes is looked at anew. Two findings with one key need two counts.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from warplint.config import ConfigError
from warplint.dataclass import dataclass
from warplint.finding import Finding

VERSION = 1

Key = tuple[str, str, str]
"""Path below the baseline's folder (with ``/``), code, text of the line without the blanks around it."""

LinesOf = Callable[[str], Sequence[str]]


class BaselineError(ConfigError):
    """A baseline that cannot be used. The message names the file."""


@dataclass(frozen=True)
class Baseline:
    """``known`` counts the findings of each key; ``folder`` is the one that paths are relative to."""

    folder: Path
    known: Mapping[Key, int]


@dataclass(frozen=True)
class Compared:
    """``new`` are the findings that the baseline does not know; ``gone`` counts those of checked files that it still
    holds, although they are no longer found.
    """

    new: tuple[Finding, ...]
    known: int
    gone: int


def read(file: Path) -> Baseline:
    """The baseline of a file.

    Raises:
        BaselineError: it cannot be read, or holds something else.
    """
    try:
        table = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BaselineError(f"{file}: {error.strerror or error}; --write-baseline makes it") from error
    except ValueError as error:
        raise BaselineError(f"{file}: is no JSON: {error}") from error
    if not isinstance(table, dict) or table.get("baseline") != VERSION:
        raise BaselineError(f"{file}: is no baseline of version {VERSION}; --write-baseline makes it anew")
    try:
        known = {_key(entry): int(entry.get("count", 1)) for entry in table["findings"]}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BaselineError(f"{file}: an entry needs path, code and text ({error!r})") from error
    return Baseline(file.resolve().parent, known)


def _key(entry: Mapping[str, Any]) -> Key:
    return str(entry["path"]), str(entry["code"]), str(entry["text"])


def of(findings: Iterable[Finding], folder: Path, lines_of: LinesOf) -> Baseline:
    """The baseline that knows these findings."""
    return Baseline(folder, Counter(_key_of(finding, folder, lines_of) for finding in findings))


def write(baseline: Baseline, file: Path) -> None:
    """Write it, sorted, an entry a line, so that changes read well in a diff.

    Raises:
        BaselineError: the file cannot be written.
    """
    entries = [
        json.dumps({"path": path, "code": code, "text": text, **({"count": count} if count > 1 else {})})
        for (path, code, text), count in sorted(baseline.known.items())
    ]
    body = ",\n".join(f"  {entry}" for entry in entries)
    text = f'{{"baseline": {VERSION}, "findings": [\n{body}\n]}}\n'
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BaselineError(f"{file}: cannot be written: {error.strerror or error}") from error


def compare(findings: Iterable[Finding], baseline: Baseline, checked: Iterable[str], lines_of: LinesOf) -> Compared:
    """Take away what the baseline knows. ``checked`` are the paths that were looked at: of others nothing is gone."""
    left = Counter(baseline.known)
    new = []
    known = 0
    for finding in findings:
        key = _key_of(finding, baseline.folder, lines_of)
        if left[key] > 0:
            left[key] -= 1
            known += 1
        else:
            new.append(finding)
    inside = {_relative(path, baseline.folder) for path in checked}
    gone = sum(count for (path, _, _), count in left.items() if path in inside)
    return Compared(tuple(new), known, gone)


def _key_of(finding: Finding, folder: Path, lines_of: LinesOf) -> Key:
    lines = lines_of(finding.span.path)
    at = finding.span.line - 1
    text = lines[at].strip() if 0 <= at < len(lines) else ""
    return _relative(finding.span.path, folder), finding.code, text


def _relative(path: str, folder: Path) -> str:
    try:
        return Path(os.path.relpath(os.path.realpath(path), os.path.realpath(folder))).as_posix()
    except ValueError:  # another drive
        return Path(os.path.realpath(path)).as_posix()

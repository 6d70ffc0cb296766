"""What the flake8 plugin does for a file that mentions Warp: settings, findings, our own comments.

``# noqa`` is left to flake8, so that its ``--disable-noqa`` works. What a file's text gave is kept by content: with an
answer at hand neither the rules nor the interpreter are imported, which would take as long as flake8 itself.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from warplint.cache import Cache, default_folder, fingerprint
from warplint.catalogue import catalogue, pack_folders
from warplint.config import Settings, check_codes, load
from warplint.dataclass import dataclass
from warplint.garbage import lasting
from warplint.source import SourceFile

if TYPE_CHECKING:
    from warplint.finding import Finding
    from warplint.lint import Engine
    from warplint.project import Project
    from warplint.suppression import Suppressions

Line = tuple[int, int, str]
"""Line (1-based), column (0-based) and message."""


@dataclass(frozen=True)
class Told:
    """What flake8 is told of one file; kept in the cache."""

    lines: tuple[Line, ...]


def found(filename: str, text: str, tree: ast.Module) -> tuple[Line, ...]:
    """The findings that the settings of the file's project admit."""
    settings, kept = _settings(os.path.dirname(os.path.abspath(filename)))
    if settings.excludes(filename):
        return ()
    source = SourceFile.of_text(filename, text, tree)
    key = kept.key(f"flake8 {filename} {settings} {_baseline(settings)!r}", source.digest)
    told = kept.get(key, Told)
    if told is None:
        told = Told(_lint(source, settings))
        if not any("NVW900" in message for _, _, message in told.lines):
            kept.put(key, told)
    return told.lines


@cache
def _settings(folder: str) -> tuple[Settings, Cache]:
    settings = load(Path(folder))
    kept = Cache(default_folder(settings.root), fingerprint(pack_folders(), settings.warp_version))
    kept.tidy()
    return settings, kept


def _lint(source: SourceFile, settings: Settings) -> tuple[Line, ...]:
    if _names_no_rule(settings) and _shows_nothing(source):
        return ()
    engine = _engine()
    from warplint.lint import lint
    from warplint.screen import shown
    from warplint.suppression import suppressions

    check_codes(settings, [(rule.code, rule.name) for rule in engine.rules], str(settings.file))
    result = lint([], settings, engine=engine, texts=[source], lowest=settings.severity)
    comments = suppressions(source)
    own = [each for each in result.selected if each.span.path == source.path and not _ignored(each, comments)]
    return tuple(_line(finding) for finding in _new(shown(own, settings.severity), source, settings))


@cache
def _engine() -> Engine:
    """The rules and the interpreter, imported for the first file that they have to look at."""
    with lasting():
        from warplint.lint import Engine
        from warplint.trace.interpreter import interpret

        return Engine(catalogue(), interpret, _alone)


def _names_no_rule(settings: Settings) -> bool:
    """Whether there is no code in the settings that could be wrong."""
    given = (settings.extend_select, settings.ignore, settings.per_file_ignores)
    return settings.select == Settings.select and not any(given)


def _shows_nothing(source: SourceFile) -> bool:
    """Whether the file's text tells that no run of it would show anything, so that rules and interpreter can rest."""
    from warplint.trace.screen import Interest, interest

    if source.is_too_large:
        return False
    project = _alone((), (source,))
    return interest(project, project.module(source.path)) is Interest.NOTHING


def _baseline(settings: Settings) -> bytes:
    """The text of the baseline: with another one the answer is another."""
    return Path(settings.baseline).read_bytes() if settings.baseline is not None else b""


def _new(findings: Sequence[Finding], source: SourceFile, settings: Settings) -> Sequence[Finding]:
    """What the baseline does not know."""
    if settings.baseline is None:
        return findings
    from warplint import baseline

    known = baseline.read(Path(settings.baseline))
    return baseline.compare(findings, known, (), lambda path: source.lines).new


def _line(finding: Finding) -> Line:
    line = finding.noqa_line or finding.span.line
    column = finding.span.column - 1 if line == finding.span.line else 0
    message = finding.message.replace("\n", " ")
    return line, column, f"{finding.code} {finding.name}: {message}"


def _ignored(finding: Finding, comments: Suppressions) -> bool:
    from warplint.suppression import Form

    return any(comment.form is Form.IGNORE for comment in comments.of(finding))


def _alone(folders: tuple[str, ...], texts: tuple[SourceFile, ...]) -> Project:
    """A project of one file: flake8 must give the same answer whatever files it was started with."""
    from warplint.project import Project

    project = Project.for_paths(folders, follow_imports=False)
    for text in texts:
        project.add(text)
    return project

"""What the flake8 plugin does for a file that mentions Warp: settings, findings, our own comments.

``# noqa`` is left to flake8, so that its ``--disable-noqa`` works.
"""

from __future__ import annotations

import ast
import os
from functools import cache
from pathlib import Path

from warplint.catalogue import catalogue
from warplint.config import Settings, check_codes, load
from warplint.discovery import excluded
from warplint.finding import Finding
from warplint.lint import Engine, lint
from warplint.project import Project
from warplint.screen import shown
from warplint.source import SourceFile
from warplint.suppression import Form, Suppressions, suppressions
from warplint.trace.interpreter import interpret


def found(filename: str, text: str, tree: ast.Module) -> list[tuple[int, int, str]]:
    """Line (1-based), column (0-based) and message of each finding that the settings of the file's project admit."""
    settings = _settings(os.path.dirname(os.path.abspath(filename)))
    if excluded(filename, settings):
        return []
    source = SourceFile.of_text(filename, text, tree)
    result = lint([], settings, engine=Engine(catalogue(), interpret, _alone), texts=[source])
    comments = suppressions(source)
    own = [finding for finding in result.selected if finding.span.path == filename and not _ignored(finding, comments)]
    return [_line(finding) for finding in shown(own, settings.severity)]


def _line(finding: Finding) -> tuple[int, int, str]:
    line = finding.noqa_line or finding.span.line
    column = finding.span.column - 1 if line == finding.span.line else 0
    message = finding.message.replace("\n", " ")
    return line, column, f"{finding.code} {finding.name}: {message}"


def _ignored(finding: Finding, comments: Suppressions) -> bool:
    return any(comment.form is Form.IGNORE for comment in comments.of(finding))


@cache
def _settings(folder: str) -> Settings:
    settings = load(Path(folder))
    check_codes(settings, [(rule.code, rule.name) for rule in catalogue()], str(settings.file))
    return settings


def _alone(folders: tuple[str, ...], texts: tuple[SourceFile, ...]) -> Project:
    """A project of one file: flake8 must give the same answer whatever files it was started with."""
    project = Project.for_paths(folders, follow_imports=False)
    for text in texts:
        project.add(text)
    return project

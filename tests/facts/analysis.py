"""What warplint says of one variant of the facts' programs."""

from __future__ import annotations

from dataclasses import replace

from warplint.catalogue import catalogue
from warplint.config import Settings
from warplint.finding import Finding, Severity
from warplint.lint import judge
from warplint.project import Project
from warplint.source import SourceFile
from warplint.trace.interpreter import interpret
from warplint.trace.settings import TraceSettings

from .measure import PROGRAMS
from .variants import Variant

HARNESS = PROGRAMS / "h.py"
GRADIENT_RULES = ("NVW1", "NVW2")
Reported = frozenset[tuple[str, str]]
"""Codes, each with the text of the line that it stands at."""


def findings(variant: Variant, warp: tuple[int, int] = (1, 19)) -> list[Finding]:
    """The findings of the rules about gradients, information included."""
    project = Project(())
    for path, text in _files(variant):
        project.add(SourceFile(path, text.encode()))
    settings = replace(Settings(PROGRAMS), warp_version=warp)
    interpretations = interpret(variant.path, project, TraceSettings(warp=warp))
    found = [one for each in interpretations for one in judge(each, settings, catalogue())]
    broken = [one.message for one in found if one.code == "NVW900"]
    assert not broken, broken
    return [one for one in found if one.code.startswith(GRADIENT_RULES)]


def reported(variant: Variant, warp: tuple[int, int] = (1, 19)) -> Reported:
    """The warnings: information reports nothing."""
    return _placed(variant, [one for one in findings(variant, warp) if one.severity is not Severity.INFO])


def _placed(variant: Variant, found: list[Finding]) -> Reported:
    lines = variant.text.splitlines()
    return frozenset((one.code, lines[one.span.line - 1].strip()) for one in found)


def _files(variant: Variant) -> list[tuple[str, str]]:
    return [(variant.path, variant.text), (str(HARNESS), HARNESS.read_text())]

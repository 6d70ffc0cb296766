"""What to change in the source to count the builds that a finding says are needless: what its fix would change."""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Applicability, Finding
from warplint.fix.edits import with_edits
from warplint.fix.plan import plan
from warplint.project import Project
from warplint.source import SourceFile, Unreadable

_TRIED = (Applicability.SAFE, Applicability.UNSAFE)
"""The program runs on a changed copy: what is unsafe to write is safe to try."""


def remedied(findings: Iterable[Finding], project: Project) -> dict[str, str]:
    """The texts, by path, of the files in which something can be changed for these findings; all changes at once."""

    def source_of(path: str) -> SourceFile:
        return project.module(path).source

    try:
        made = plan(with_edits(findings, source_of), _TRIED, source_of)
    except Unreadable:
        return {}
    return {rewrite.path: rewrite.text for rewrite in made.rewrites}

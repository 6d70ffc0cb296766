"""Which findings are shown: merged, in the user's spelling of paths, selected, and not suppressed by a comment."""

from __future__ import annotations

import ast
import dataclasses
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from warplint.config import Settings
from warplint.finding import Finding, Label, Severity, Source, Span
from warplint.hygiene.unused_suppression import UNUSED_SUPPRESSION, no_such_rule, unused
from warplint.rule import Rule
from warplint.source import Unreadable
from warplint.suppression import NOTHING, PREFIX, Form, Suppression, Suppressions, names, suppressions
from warplint.syntax import walk

if TYPE_CHECKING:
    from warplint.project import Project

Reached = frozenset[tuple[str, str]]
"""Functions (path, name) through which some trace went; :data:`TOP_LEVEL` is a file's top level."""

TOP_LEVEL = "<module>"

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def merged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """One finding for each rule, place and option: several paths and several entry files see the same fault.

    One statement may assign several options. The gravest one stays; among equals the one that shows more places.
    """
    best: dict[tuple[str, str, int, int, str | None], Finding] = {}
    for finding in findings:
        span = finding.span
        key = (finding.code, span.path, span.line, span.column, finding.anchor.option)
        known = best.get(key)
        if known is None or _weight(finding) > _weight(known):
            best[key] = finding
    return tuple(sorted(best.values(), key=lambda finding: finding.sort_key))


def _weight(finding: Finding) -> tuple[int, int]:
    return finding.severity.rank, len(finding.labels)


class Spelling:
    """How paths are written in the output: as the user gave them, else relative to the working directory."""

    def __init__(self, shown: Iterable[str]) -> None:
        self._shown = {os.path.realpath(path): path for path in shown}
        self._known: dict[str, str] = {path: path for path in self._shown.values()}

    def path(self, path: str) -> str:
        """The spelling of one path."""
        spelled = self._known.get(path)
        if spelled is None:
            real = os.path.realpath(path)
            spelled = self._known[path] = self._shown.get(real) or _below_working_directory(real)
        return spelled

    def finding(self, finding: Finding) -> Finding:
        """A finding with all its places respelled."""
        fix = finding.fix
        if fix is not None:
            edits = tuple(dataclasses.replace(edit, span=self._span(edit.span)) for edit in fix.edits)
            changes = tuple(dataclasses.replace(change, call=self._span(change.call)) for change in fix.changes)
            fix = dataclasses.replace(fix, edits=edits, changes=changes)
        labels = tuple(Label(self._span(label.span), label.role, label.text) for label in finding.labels)
        return dataclasses.replace(finding, span=self._span(finding.span), labels=labels, fix=fix)

    def _span(self, span: Span) -> Span:
        return dataclasses.replace(span, path=self.path(span.path))


def _below_working_directory(real: str) -> str:
    here = os.path.realpath(os.curdir)
    below = real.startswith(here + os.sep)
    return (os.path.relpath(real, here) if below else real).replace(os.sep, "/")


class Screen:
    """Applies the settings and the comments to findings, and remembers which comments silenced something.

    ``project`` holds the files (standard input among them) whose comments count. ``entries`` are the files that are
    checked: what was named is not excluded.
    """

    def __init__(self, settings: Settings, rules: Sequence[Rule], project: Project, entries: Iterable[str]) -> None:
        self._settings = settings
        self._rules = rules
        self._project = project
        self._comments: dict[str, Suppressions] = {}
        self._excluded: dict[str, bool] = dict.fromkeys(entries, False)
        self._used: set[tuple[str, Suppression, str]] = set()

    def selected(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """The findings of rules that are on, in files that are not excluded."""
        return tuple(
            finding
            for finding in findings
            if self._settings.selected(finding.code, finding.name, finding.span.path)
            and not self._is_excluded(finding.span.path)
        )

    def unsuppressed(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """The findings that no comment silences."""
        return tuple(finding for finding in findings if not self._silenced(finding))

    def unused_comments(self, paths: Iterable[str], reached: Reached) -> tuple[Finding, ...]:
        """The comments of these files that silenced nothing in any call of :meth:`unsuppressed` so far."""
        found = [finding for path in paths for finding in self._unused_of(path, reached)]
        return self.unsuppressed(self.selected(found))

    def _is_excluded(self, path: str) -> bool:
        known = self._excluded.get(path)
        if known is None:
            known = self._excluded[path] = self._settings.excludes(path)
        return known

    def _silenced(self, finding: Finding) -> bool:
        path = finding.span.path
        comments = self._comments_of(path).of(finding)
        for comment in comments:
            self._used.update((path, comment, code) for code in comment.codes if names(code, finding))
            self._used.add((path, comment, ""))
        return bool(comments)

    def _comments_of(self, path: str) -> Suppressions:
        known = self._comments.get(path)
        if known is None:
            known = self._comments[path] = self._read_comments(path)
        return known

    def _read_comments(self, path: str) -> Suppressions:
        try:
            return suppressions(self._project.module(path).source)
        except Unreadable:
            return NOTHING

    def _unused_of(self, path: str, reached: Reached) -> Iterator[Finding]:
        for comment in self._comments_of(path).entries if self._names_our_codes(path) else ():
            if comment.quoted or not comment.codes:  # a bare noqa may be there for any other linter
                continue
            unknown = [code for code in comment.codes if self._is_unknown(code, comment)]
            if unknown:
                yield no_such_rule(path, comment, unknown)
            idle = [c for c in comment.codes if self._answers(c, path) and (path, comment, c) not in self._used]
            if idle:
                seen = self._reached(path, comment, reached)
                severity = UNUSED_SUPPRESSION.severity if seen else Severity.INFO
                yield unused(path, comment, idle, severity)

    def _names_our_codes(self, path: str) -> bool:
        try:
            return self._project.module(path).source.may_name_our_codes
        except Unreadable:
            return False

    def _answers(self, code: str, path: str) -> bool:
        """Whether a word of a comment is a claim of ours: a rule that is on answers to it, and needs no run for it."""
        meant = [rule for rule in self._meant(code) if rule.source is Source.STATIC]
        own = [rule for rule in meant if rule.code.startswith("NVW9")]
        return not own and any(self._settings.selected(rule.code, rule.name, path) for rule in meant)

    def _is_unknown(self, code: str, comment: Suppression) -> bool:
        """Whether a word can only mean a rule of ours, and none answers to it."""
        ours = comment.form is Form.IGNORE or code.upper().startswith(PREFIX)
        return ours and not self._meant(code)

    def _meant(self, code: str) -> list[Rule]:
        return [rule for rule in self._rules if rule.code.startswith(code.upper()) or rule.name == code.lower()]

    def _reached(self, path: str, comment: Suppression, reached: Reached) -> bool:
        """Whether a trace went through the function (or the top level) that the comment stands in."""
        name = TOP_LEVEL
        for node in walk(self._project.module(path).tree):  # breadth first: the innermost function comes last
            if isinstance(node, _FUNCTIONS) and node.lineno <= comment.line <= (node.end_lineno or 0):
                name = node.name
        return (path, name) in reached


def shown(findings: Iterable[Finding], severity: Severity) -> tuple[Finding, ...]:
    """The findings that ``--severity`` admits."""
    return tuple(finding for finding in findings if finding.severity.rank >= severity.rank)

"""What to change in the source to count the builds that a finding says are needless.

Where the finding has a fix, that. Else what a person would try first, if it is mechanical: the statement that defeats
the cache is left out, modules of one kernel each become one, options are set before anything is built. The program
runs on a changed copy, so what is unsafe to write is safe to try.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from warplint import registry
from warplint.finding import Applicability, Edit, Finding, Fix, KeywordChange, Role, Span
from warplint.fix.edits import SourceOf, with_edits
from warplint.fix.plan import plan
from warplint.project import Project
from warplint.proof import BuildHarm
from warplint.source import SourceFile, Unreadable, span_of

_TRIED = (Applicability.SAFE, Applicability.UNSAFE)


def remedied(findings: Iterable[Finding], project: Project) -> dict[str, str]:
    """The texts, by path, of the files in which something can be changed for these findings; all changes at once."""

    def source_of(path: str) -> SourceFile:
        return project.module(path).source

    try:
        tried = [replace(finding, fix=_fix(finding, source_of)) for finding in findings]
        made = plan(with_edits(tried, source_of), _TRIED, source_of)
    except Unreadable:
        return {}
    return {rewrite.path: rewrite.text for rewrite in made.rewrites}


def harm_of(finding: Finding) -> BuildHarm | None:
    """What the finding's rule says that counted builds show; None: its rule is not installed."""
    rule = registry.rule_of(finding.code)
    return rule.harm if rule is not None else None


def _fix(finding: Finding, source_of: SourceOf) -> Fix | None:
    harm = harm_of(finding)
    trial = _TRIALS.get(harm) if harm is not None else None
    return finding.fix or (trial(finding, source_of(finding.span.path)) if trial is not None else None)


def _left_out(finding: Finding, source: SourceFile) -> Fix | None:
    """The statement does nothing."""
    statement = _statement(finding, source)
    if statement is None:
        return None
    return _trial(Edit(span_of(statement, finding.span.path, source.lines), "pass"))


def _shared(finding: Finding, source: SourceFile) -> Fix | None:
    """The kernels lie in the module of their file."""
    kernels = [label.span for label in finding.labels if label.role is Role.KERNEL]
    changes = tuple(KeywordChange(span, "module", None) for span in kernels)
    return Fix(Applicability.UNSAFE, "tried", changes=changes) if changes else None


def _set_first(finding: Finding, source: SourceFile) -> Fix | None:
    """The options are set as soon as Warp is imported in their file, if they are the same then."""
    statement = _statement(finding, source)
    imported = next((each for each in source.tree.body if _imports_warp(each)), None)
    if statement is None or imported is None or not _is_settled(statement):
        return None
    path, text = finding.span.path, ast.get_source_segment(source.text, statement)
    if text is None or "\n" in text:
        return None
    line = (imported.end_lineno or imported.lineno) + 1
    return _trial(
        Edit(span_of(statement, path, source.lines), "pass"),
        Edit(Span(path, line, 1, line, 1), f"{text}\n"),
    )


def _trial(*edits: Edit) -> Fix:
    return Fix(Applicability.UNSAFE, "tried", edits)


def _statement(finding: Finding, source: SourceFile) -> ast.Expr | ast.Assign | None:
    """The simple statement that begins on the finding's line: an expression, or an assignment to an attribute."""
    for node in ast.walk(source.tree):
        if isinstance(node, (ast.Expr, ast.Assign)) and node.lineno == finding.span.line:
            names = isinstance(node, ast.Assign) and not all(isinstance(each, ast.Attribute) for each in node.targets)
            return None if names else node
    return None


def _is_settled(statement: ast.Expr | ast.Assign) -> bool:
    """Whether it means the same anywhere: a call with literals alone, or the assignment of one."""
    if isinstance(statement, ast.Assign):
        return _is_literal(statement.value)
    call = statement.value
    return isinstance(call, ast.Call) and not call.keywords and len(call.args) == 1 and _is_literal(call.args[0])


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True


def _imports_warp(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import) and any(alias.name == "warp" for alias in node.names)


_TRIALS: Mapping[BuildHarm, Callable[[Finding, SourceFile], Fix | None]] = {
    BuildHarm.SECOND_RUN: _left_out,
    BuildHarm.HEADER_AGAIN: _left_out,
    BuildHarm.SMALL_MODULES: _shared,
    BuildHarm.OPTION_UNHEARD: _set_first,
}

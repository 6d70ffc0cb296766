"""What to change in the source to count the builds that a finding says are needless, where that is mechanical."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from warplint.finding import Edit, Finding, Span
from warplint.fix import Overlap, applied
from warplint.project import Module, Project
from warplint.source import Unreadable


def remedied(findings: Iterable[Finding], project: Project) -> dict[str, str]:
    """The texts, by path, of the files in which something can be changed for these findings; all changes at once.

    A finding's own fix comes first. Without one, a kernel that is declared ``module="unique"`` on the finding's line
    loses that argument, also where the decorator has a name of its own.
    """
    edits: dict[str, list[Edit]] = {}
    for finding in findings:
        for edit in finding.fix.edits if finding.fix is not None else _without_unique(finding, project):
            edits.setdefault(edit.span.path, []).append(edit)
    try:
        return {path: applied(project.module(path).source.lines, found) for path, found in edits.items()}
    except (Overlap, Unreadable):
        return {}


def _without_unique(finding: Finding, project: Project) -> Iterator[Edit]:
    try:
        module = project.module(finding.span.path)
        tree = module.tree
    except Unreadable:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                if decorator.lineno == finding.span.line:
                    made = _made_by(decorator, tree)
                    yield from _argument_removed(made, module) if made is not None else ()


def _made_by(decorator: ast.expr, tree: ast.Module) -> ast.Call | None:
    """The call that makes the decorator: in its place, or where the name it has was assigned at the top level."""
    if isinstance(decorator, ast.Call):
        return decorator
    name = decorator.id if isinstance(decorator, ast.Name) else None
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
            if name in names:
                return statement.value
    return None


def _argument_removed(call: ast.Call, module: Module) -> Iterator[Edit]:
    """Write the call again without ``module="unique"``, on one line."""
    kept = [keyword for keyword in call.keywords if not _says_unique(keyword)]
    if len(kept) == len(call.keywords):
        return
    span = module.span(call)
    bare = ast.Call(call.func, call.args, kept)
    yield Edit(Span(span.path, span.line, span.column, span.end_line, span.end_column), ast.unparse(bare))


def _says_unique(keyword: ast.keyword) -> bool:
    return keyword.arg == "module" and isinstance(keyword.value, ast.Constant) and keyword.value.value == "unique"

"""What rules ask for, turned into text edits at exact places. An edit that would do anything else is not made."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import takewhile

from warplint.dataclass import dataclass
from warplint.finding import Applicability, Edit, Finding, Fix, KeywordChange, Span
from warplint.fix.text import LINE_END, edited_range, line_ranges
from warplint.source import SourceFile, Unreadable, character_column

SourceOf = Callable[[str], SourceFile]
"""The file of a finding's path; raises :class:`Unreadable`."""


@dataclass(frozen=True)
class _Place:
    """A call that is to change. ``named``: a decorator's name led to it, which other functions may carry as well."""

    call: ast.Call
    span: Span
    decorates: bool
    named: bool


def with_edits(findings: Iterable[Finding], source_of: SourceOf) -> tuple[Finding, ...]:
    """The findings with the edits of their fixes; a fix that cannot be made at its place is left out."""
    return tuple(_with_edits(finding, source_of) for finding in findings)


def _with_edits(finding: Finding, source_of: SourceOf) -> Finding:
    fix = finding.fix
    if fix is None or not fix.changes or fix.edits:
        return finding
    try:
        return replace(finding, fix=_made(fix, source_of))
    except Unreadable:
        return replace(finding, fix=None)


def _made(fix: Fix, source_of: SourceOf) -> Fix | None:
    edits, named = [], False
    for change in fix.changes:
        source = source_of(change.call.path)
        place = _place(change.call, source)
        edit = _edit(place, change, source) if place is not None else None
        if place is None or edit is None:
            return None
        edits.append(edit)
        named = named or place.named
    unsafe = named and fix.applicability is Applicability.SAFE
    return replace(fix, edits=tuple(edits), applicability=Applicability.UNSAFE if unsafe else fix.applicability)


def _place(span: Span, source: SourceFile) -> _Place | None:
    decorators = {id(each) for node in ast.walk(source.tree) for each in getattr(node, "decorator_list", ())}
    for node in ast.walk(source.tree):
        if getattr(node, "lineno", 0) != span.line or _span(node, span.path, source) != span:
            continue
        if isinstance(node, ast.Call):
            return _Place(node, span, id(node) in decorators, False)
        if isinstance(node, ast.Name) and id(node) in decorators:
            call = _named(node.id, source.tree)
            return _Place(call, _span(call, span.path, source), True, True) if call is not None else None
    return None


def _named(name: str, tree: ast.Module) -> ast.Call | None:
    """The call whose result the name is, where it is assigned once, at the top level."""
    bound = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)]
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and statement.targets == bound and isinstance(statement.value, ast.Call):
            return statement.value
    return None


def _span(node: ast.AST, path: str, source: SourceFile) -> Span:
    line, end = node.lineno, node.end_lineno  # type: ignore[attr-defined]
    column = character_column(source.lines[line - 1], node.col_offset)  # type: ignore[attr-defined]
    end_column = character_column(source.lines[end - 1], node.end_col_offset)  # type: ignore[attr-defined]
    return Span(path, line, column, end, end_column)


def _edit(place: _Place, change: KeywordChange, source: SourceFile) -> Edit | None:
    """The edit, as short as it can be; None where the call does not allow it, or the result would not be just that."""
    wanted = _wanted(place.call, change)
    if wanted is None:
        return None
    meant: ast.expr = wanted
    start, stop = edited_range(Edit(place.span, ""), line_ranges(source.text))
    old = LINE_END.sub("\n", source.text[start:stop])
    new = _rewritten(old, change)
    if new is not None and place.decorates and not wanted.args and not wanted.keywords and new[:-1].rstrip()[-1] == "(":
        new, meant = new[:-1].rstrip()[:-1], wanted.func
    if new is None or not _says(old, place.call) or not _says(new, meant):
        return None
    return _shortened(place.span, old, new)


def _wanted(call: ast.Call, change: KeywordChange) -> ast.Call | None:
    """What the call must mean afterwards; None where nothing is to do, or it is not this room's to decide."""
    given = [keyword for keyword in call.keywords if keyword.arg == change.keyword]
    if given:
        value = given[0].value
        if change.keyword == "module" and any(keyword.arg == "module_options" for keyword in call.keywords):
            return None  # Warp takes those with `module="unique"` alone
        if not isinstance(value, ast.Constant) or repr(value.value) == change.value:
            return None
        changed = ((keyword, _keyword(change) if keyword is given[0] else [keyword]) for keyword in call.keywords)
        return ast.Call(call.func, call.args, [each for _, new in changed for each in new])
    by_position = change.position is not None and len(call.args) > change.position
    stars = any(isinstance(each, ast.Starred) for each in call.args) or any(k.arg is None for k in call.keywords)
    if change.value is None or by_position or stars:
        return None
    return ast.Call(call.func, call.args, [*call.keywords, *_keyword(change)])


def _keyword(change: KeywordChange) -> list[ast.keyword]:
    if change.value is None:
        return []
    return [ast.keyword(change.keyword, ast.parse(change.value, mode="eval").body)]


def _rewritten(text: str, change: KeywordChange) -> str | None:
    from warplint.fix import calls  # brings libcst

    call = calls.parsed(text)
    if call is None:
        return None
    if change.value is None:
        return calls.without(call, change.keyword).text
    write = calls.with_value if change.keyword in call.keywords else calls.with_new
    return write(call, change.keyword, change.value).text


def _says(text: str, node: ast.expr) -> bool:
    """Whether the text means the node, wherever in an expression it stands."""
    try:
        return ast.dump(ast.parse(f"(\n{text}\n)", mode="eval").body) == ast.dump(node)
    except (SyntaxError, ValueError):
        return False


def _shortened(span: Span, old: str, new: str) -> Edit:
    """The difference alone, so that fixes of neighbouring text do not overlap."""
    head = _alike(old, new)
    tail = _alike(old[head:][::-1], new[head:][::-1])
    stop = len(old) - tail
    start, end = _moved(span, old[:head]), _moved(span, old[:stop])
    return Edit(Span(span.path, *start, *end), new[head : len(new) - tail])


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _moved(span: Span, text: str) -> tuple[int, int]:
    """Line and column behind ``text``, which begins at the span."""
    lines = text.split("\n")
    return span.line + len(lines) - 1, len(lines[-1]) + (span.column if len(lines) == 1 else 1)

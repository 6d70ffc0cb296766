"""The loops around a place of the source, so that a finding can say in which pass something happens."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import field

from warplint.dataclass import dataclass
from warplint.finding import Span
from warplint.project import Project
from warplint.source import Unreadable
from warplint.syntax import walk

Lines = tuple[int, int]
"""First and last line."""


@dataclass(frozen=True)
class Enclosing:
    """Answers from the files of a project, each looked at when it is first asked about."""

    project: Project
    _known: dict[str, tuple[tuple[Lines, ...], tuple[Lines, ...]]] = field(default_factory=dict, compare=False)

    def loops(self, span: Span) -> tuple[int, ...]:
        """The lines of the loops around a place, outermost first, as far as its own function reaches."""
        _, loops = self._of(span.path)
        around = self._function(span)
        return tuple(first for first, last in sorted(loops) if first > around[0] and first <= span.line <= last)

    def are_in_one_function(self, one: Span, other: Span) -> bool:
        """Whether two places lie in the same function, or both at the top level of one file."""
        return one.path == other.path and self._function(one) == self._function(other)

    def _function(self, span: Span) -> Lines:
        """The innermost function around a place."""
        functions, _ = self._of(span.path)
        return max((each for each in functions if _holds(each, span.line)), default=(0, 0))

    def _of(self, path: str) -> tuple[tuple[Lines, ...], tuple[Lines, ...]]:
        if path not in self._known:
            self._known[path] = self._read(path)
        return self._known[path]

    def _read(self, path: str) -> tuple[tuple[Lines, ...], tuple[Lines, ...]]:
        try:
            tree = self.project.module(path).tree
        except Unreadable:
            return (), ()
        functions = tuple(_lines(tree, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)))
        return functions, tuple(_lines(tree, (ast.For, ast.AsyncFor, ast.While)))


def _lines(tree: ast.Module, kinds: tuple[type[ast.AST], ...]) -> Iterator[Lines]:
    for node in walk(tree):
        if isinstance(node, kinds):
            first: int = node.lineno  # type: ignore[attr-defined]
            yield first, getattr(node, "end_lineno", None) or first


def _holds(lines: Lines, line: int) -> bool:
    return lines[0] <= line <= lines[1]

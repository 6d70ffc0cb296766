"""Places that a running program knows (file, line, function) as the spans that the source text has for them.

A frame knows the line of the call in progress, but neither its column nor its end; the syntax tree has both. The same
call then has the same span whether the interpreter or the recorder saw it.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

from warplint.dataclass import dataclass
from warplint.finding import Span
from warplint.project import Module, Project
from warplint.source import Unreadable
from warplint.trace.events import Frame, Stack
from warplint.verify.records import Place

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class _Lines:
    """What begins on, or reaches over, each line of a file."""

    calls: dict[int, list[ast.Call]] = field(default_factory=dict)
    statements: dict[int, ast.stmt] = field(default_factory=dict)
    functions: dict[tuple[int, str], FunctionNode] = field(default_factory=dict)
    declared_once: frozenset[int] = frozenset()


class Places:
    """Turns places into spans, one file parsed once. A file that cannot be read gives spans of a whole line."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._lines: dict[str, _Lines] = {}
        self._shown: dict[str, str] = {}
        self._frames: dict[Place, Frame] = {}

    def stack(self, places: tuple[Place, ...]) -> Stack:
        """The frames of a stack, outermost first."""
        return tuple(self._frames.get(place) or self._frame(place) for place in places)

    def span(self, place: Place) -> Span:
        """The call on this line (the outermost that begins there, else the innermost around it), else the line."""
        path, line, _ = place
        node = self._node(path, line)
        return Span(self.shown(path), line) if node is None else self._spanned(path, node)

    def statement(self, place: Place) -> Span:
        """The innermost statement that reaches over this line, else the line."""
        path, line, _ = place
        node = self._of(path).statements.get(line)
        return Span(self.shown(path), line) if node is None else self._spanned(path, node)

    def function(self, place: Place) -> tuple[Module, FunctionNode] | None:
        """The ``def`` that begins at this place and its file; None where the text has none there.

        A factory may have given what it made another name: the line tells as well, where one ``def`` alone begins.
        """
        path, line, name = place
        module = self.module(path)
        functions = self._of(path).functions
        here = [node for (at, _), node in functions.items() if at == line] if (line, name) not in functions else []
        node = here[0] if len(here) == 1 else functions.get((line, name))
        return None if module is None or node is None else (module, node)

    def definition(self, place: Place) -> Span:
        """The ``def`` that begins at this place, else the line."""
        found = self.function(place)
        return Span(self.shown(place[0]), place[1]) if found is None else found[0].span(found[1])

    def declared_once(self, place: Place) -> bool | None:
        """Whether the ``def`` there stands at a file's top level or in a class body; None where it is not found."""
        found = self.function(place)
        return None if found is None else found[1].lineno in self._of(place[0]).declared_once

    def assigned_name(self, place: Place) -> str:
        """The target that the statement at this place assigns to (``self.loss``), ``""`` if it assigns to nothing."""
        path, line, _ = place
        statement = self._of(path).statements.get(line)
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            return ast.unparse(statement.targets[0])
        if isinstance(statement, ast.AnnAssign):
            return ast.unparse(statement.target)
        return ""

    def argument(self, launch: Place, key: int | str, path: str) -> str:
        """The user's text for what a launch was given: the list (``key`` is an item's number), or the struct."""
        node = self._node(launch[0], launch[1])
        if not isinstance(node, ast.Call):
            return ""
        given = [*node.args[2:4], *(k.value for k in node.keywords if k.arg in ("inputs", "outputs"))]
        if isinstance(key, int):
            named = [each for each in given if isinstance(each, (ast.Name, ast.Attribute, ast.Subscript))]
            return ast.unparse(named[0]) if named else ""
        called = path.split(".")[0]
        return next((ast.unparse(e) for e in _elements(given) if ast.unparse(e).split(".")[-1] == called), called)

    def replacement(self, launch: Place, name: str) -> Span | None:
        """The first statement of the launch's function that replaces items of the list ``name``, after it if any."""
        found = [node for node in ast.walk(self.around(launch)) if isinstance(node, ast.stmt) and _replaces(node, name)]
        if not found or not name:
            return None
        behind = [node for node in found if node.lineno > launch[1]]
        return self._spanned(launch[0], min(behind or found, key=lambda node: node.lineno))

    def host_store(self, noticed: tuple[Place, ...]) -> Stack:
        """Where the host wrote through a numpy view: the last store to an item before this place, else the first after.

        Nothing tells of such a store; it is seen when the memory is touched next, or is known by the view.
        """
        stack = self.stack(noticed)
        path, line, _ = noticed[-1]
        statements = [node for node in ast.walk(self.around(noticed[-1])) if isinstance(node, ast.stmt)]
        left = [node for node in statements if isinstance(node, ast.With) and node.lineno == line]
        line = max([line, *((node.end_lineno or line) + 1 for node in left)])  # the end of a block is told as its head
        stores = sorted((node for node in statements if _stores(node)), key=lambda node: node.lineno)
        before = [node for node in stores if (node.end_lineno or node.lineno) < line]
        if not stores:
            return stack
        found = self._spanned(path, before[-1] if before else stores[0])
        return (*stack[:-1], Frame(found, stack[-1].function))

    def around(self, place: Place) -> ast.AST:
        """The innermost function that reaches over a line, else the file."""
        module = self.module(place[0])
        functions = [
            node
            for node in self._of(place[0]).functions.values()
            if node.lineno <= place[1] <= (node.end_lineno or node.lineno)
        ]
        if functions:
            return max(functions, key=lambda node: node.lineno)
        return module.tree if module is not None else ast.Module([], [])

    def module(self, path: str) -> Module | None:
        """The file, None where it cannot be read or parsed."""
        try:
            module = self._project.module(self.shown(path))
            _ = module.tree
        except Unreadable:
            return None
        return module

    def shown(self, path: str) -> str:
        """The file's name as findings show it: relative to the working directory where it lies below, with ``/``."""
        known = self._shown.get(path)
        if known is None:
            try:
                known = Path(os.path.realpath(path)).relative_to(os.path.realpath(os.curdir)).as_posix()
            except ValueError:
                known = path.replace(os.sep, "/")
            self._shown[path] = known
        return known

    def _frame(self, place: Place) -> Frame:
        frame = self._frames[place] = Frame(self.span(place), place[2] or "<module>")
        return frame

    def _spanned(self, path: str, node: ast.AST) -> Span:
        module = self.module(path)
        assert module is not None
        return module.span(node)

    def _node(self, path: str, line: int) -> ast.AST | None:
        lines = self._of(path)
        beginning = [call for call in lines.calls.get(line, ()) if call.lineno == line]
        if beginning:
            return max(beginning, key=_extent)
        around = lines.calls.get(line)
        return min(around, key=_extent) if around else lines.statements.get(line)

    def _of(self, path: str) -> _Lines:
        lines = self._lines.get(path)
        if lines is None:
            module = self.module(path)
            lines = self._lines[path] = _Lines() if module is None else _index(module.tree)
        return lines


def _elements(given: list[ast.expr]) -> Iterator[ast.expr]:
    for each in given:
        yield from each.elts if isinstance(each, (ast.List, ast.Tuple)) else ()


_REPLACING = frozenset({"append", "insert", "pop", "reverse", "sort"})
"""Methods that change a list's items."""


def _replaces(node: ast.stmt, name: str) -> bool:
    """Whether a statement stores to an item of the list ``name``, or calls a method that changes its items."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        return node.value.func.attr in _REPLACING and ast.unparse(node.value.func.value) == name
    return any(isinstance(part, ast.Subscript) and ast.unparse(part.value) == name for part in _targets(node))


def _targets(node: ast.stmt) -> list[ast.expr]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
    return [part for target in targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])]


def _stores(node: ast.stmt) -> bool:
    """Whether a statement may write into a numpy array: an item, the whole of it in place, by a method or function."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        return node.value.func.attr in ("fill", "copyto", "put", "sort", "resize")
    return isinstance(node, ast.AugAssign) or any(isinstance(part, ast.Subscript) for part in _targets(node))


def _extent(node: ast.AST) -> tuple[int, int]:
    """The size of a node: larger for what contains another."""
    last: int = node.end_lineno or 0  # type: ignore[attr-defined]
    end: int = node.end_col_offset or 0  # type: ignore[attr-defined]
    return last - node.lineno, end if last > node.lineno else end - node.col_offset  # type: ignore[attr-defined]


def _index(tree: ast.Module) -> _Lines:
    lines = _Lines(declared_once=frozenset(_once(tree)))
    for node in ast.walk(tree):  # breadth first: an inner statement comes after what contains it
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines.functions[node.lineno, node.name] = node
        if isinstance(node, ast.Call):
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                lines.calls.setdefault(line, []).append(node)
        elif isinstance(node, ast.stmt):
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                lines.statements[line] = node
    return lines


def _once(node: ast.Module | ast.ClassDef) -> Iterator[int]:
    """The lines of the functions in a body that runs once, conditions and classes looked into."""
    for statement in node.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield statement.lineno
        elif isinstance(statement, ast.ClassDef):
            yield from _once(statement)

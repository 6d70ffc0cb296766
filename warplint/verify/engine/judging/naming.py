"""What the user calls an array: the variable that it comes to, followed out of the helpers that make and return it."""

from __future__ import annotations

import ast
import functools
import linecache

from warplint.dataclass import dataclass
from warplint.verify.engine.execution.memory import CodeStack
from warplint.verify.engine.replaying.leaves import Leaf

DEEPEST = 5
"""Frames through which a returned array is followed."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class _Line:
    """The innermost statement that reaches over a line, and the function that it stands in."""

    statement: ast.stmt
    function: Function | None


def leaf_name(leaf: Leaf) -> str:
    """The name of the variable, field or item that the leaf is assigned to, else the kernel's parameter."""
    return assigned_name(leaf.memory.stack) or leaf.parameter


def assigned_name(stack: CodeStack) -> str:
    """What an array that was made at a place is assigned to, in the outermost helper's caller; ``""`` if to nothing.

    ``stack`` is innermost first. A helper that returns the array, or the local that holds it, passes it on.
    """
    name, item = "", None
    for code, line in stack[:DEEPEST]:
        found = _lines(code.co_filename).get(line)
        if found is None:
            break
        statement = found.statement
        if isinstance(statement, ast.Return):
            item = _place_in(statement.value, line) if item is None else item
            continue
        target = _target(statement, line, item)
        if target is None:
            break
        name = ast.unparse(target) if item is None or not _is_whole(statement) else f"{ast.unparse(target)}[{item}]"
        if not isinstance(target, ast.Name):
            break
        returned = _returned(found.function, target.id)
        if returned is None:
            break
        item = returned.item
    return name


@dataclass(frozen=True)
class _Returned:
    """A local is returned: by itself, or as an item of a tuple."""

    item: int | None


def _returned(function: Function | None, name: str) -> _Returned | None:
    """How a function returns a local of its own; None where it does not, or in several ways."""
    if function is None:
        return None
    found = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            if isinstance(node.value, ast.Name) and node.value.id == name:
                found.add(_Returned(None))
            elif isinstance(node.value, ast.Tuple):
                for place, element in enumerate(node.value.elts):
                    if isinstance(element, ast.Name) and element.id == name:
                        found.add(_Returned(place))
    return found.pop() if len(found) == 1 else None


def _place_in(value: ast.expr | None, line: int) -> int | None:
    """The item of a tuple that is made on a line; None where the value is no tuple, or several are made there."""
    if not isinstance(value, ast.Tuple):
        return None
    making = [place for place, element in enumerate(value.elts) if _makes(element, line)]
    return making[0] if len(making) == 1 else None


def _makes(element: ast.expr, line: int) -> bool:
    reaches = element.lineno <= line <= (element.end_lineno or element.lineno)
    return reaches and any(isinstance(node, ast.Call) for node in ast.walk(element))


def _target(statement: ast.stmt, line: int, item: int | None) -> ast.expr | None:
    """What a statement assigns the array to; ``item`` of what it is handed, where that is a tuple."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        return function.value if isinstance(function, ast.Attribute) and function.attr == "append" else None
    if isinstance(statement, ast.AnnAssign):
        return statement.target
    if not isinstance(statement, ast.Assign):
        return None
    target = statement.targets[0]
    if not isinstance(target, ast.Tuple | ast.List):
        return target
    place = item
    if isinstance(statement.value, ast.Tuple) and len(statement.value.elts) == len(target.elts):
        place = _place_in(statement.value, line)
    if place is None or place >= len(target.elts) or any(isinstance(each, ast.Starred) for each in target.elts):
        return None
    return target.elts[place]


def _is_whole(statement: ast.stmt) -> bool:
    """Whether the statement gives one name to all that it is handed."""
    return not (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Tuple | ast.List))


@functools.lru_cache(maxsize=64)
def _lines(path: str) -> dict[int, _Line]:
    """The innermost statement over each line of a file; empty for one that cannot be read."""
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except (SyntaxError, ValueError):
        return {}
    found: dict[int, _Line] = {}
    todo: list[tuple[ast.AST, Function | None]] = [(tree, None)]
    while todo:
        node, function = todo.pop()
        if isinstance(node, ast.stmt) and not isinstance(node, ast.ClassDef):
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                known = found.get(line)
                if known is None or _is_inside(node, known.statement):
                    found[line] = _Line(node, function)
        inner = node if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else function
        todo.extend((child, inner) for child in ast.iter_child_nodes(node))
    return found


def _is_inside(node: ast.stmt, other: ast.stmt) -> bool:
    return other.lineno <= node.lineno and (node.end_lineno or 0) <= (other.end_lineno or 0)

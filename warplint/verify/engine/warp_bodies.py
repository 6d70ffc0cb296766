"""What the text of a kernel says without running it: the part of the private room about syntax trees.

Like ``warp_hooks.py`` it touches private names of Warp (1.13 to 1.19 were looked at).
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def sums(kernel: Any) -> frozenset[str]:
    """The array parameters (``state.q`` for a field) to one element of which every thread adds, whatever the data are.

    By ``wp.atomic_add`` or ``+=`` (or with minus) in the outermost block, before which nothing returns, at an index of
    numbers alone. What cannot be told is left out.
    """
    statements = _statements(kernel)
    found = (_added_to(statement) for statement in _certain(statements))
    rebound = frozenset(_bound(statements))
    return frozenset(path for path in found if path and path.split(".")[0] not in rebound)


def own_stores(kernel: Any) -> frozenset[str]:
    """The array parameters (``state.q`` for a field) in which every thread stores the element of its own index.

    Always, whatever the data are: an assignment by ``=`` in the outermost block, before which nothing returns, whose
    index is made of nothing but what ``wp.tid()`` gave. A launch with as many threads as the array has elements then
    overwrites all of it. What cannot be told is left out.
    """
    statements = _statements(kernel)
    bound = Counter(_bound(statements))
    return frozenset(_stored(_certain(statements), _thread_indices(statements, bound), frozenset(bound)))


def _statements(kernel: Any) -> Sequence[ast.stmt]:
    tree = getattr(getattr(kernel, "adj", None), "tree", None)
    body = getattr(tree, "body", None)
    return body[0].body if body and isinstance(body[0], ast.FunctionDef) else ()


def _added_to(statement: ast.stmt) -> str:
    """What a statement adds to one element of; empty where it does something else."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add | ast.Sub):
        target = statement.target
        return _path(target.value) if isinstance(target, ast.Subscript) and _is_fixed(target.slice) else ""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or len(call.args) < 3 or not all(map(_is_fixed, call.args[1:-1])):
        return ""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return _path(call.args[0]) if name in ("atomic_add", "atomic_sub") else ""


def _is_fixed(index: ast.expr) -> bool:
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(isinstance(part, ast.Constant) for part in parts)


def _certain(statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that every thread comes to."""
    for statement in statements:
        if any(isinstance(node, ast.Return) for node in ast.walk(statement)):
            return
        yield statement


def _thread_indices(statements: Sequence[ast.stmt], bound: Mapping[str, int]) -> frozenset[str]:
    """The names that hold what ``wp.tid()`` gave, and never anything else."""
    given: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and _is_thread_index(statement.value):
            target = statement.targets[0]
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            given.update(name.id for name in names if isinstance(name, ast.Name))
    return frozenset(name for name in given if bound[name] == 1)


def _bound(statements: Sequence[ast.stmt]) -> Iterator[str]:
    """Every name that is given a value, once for each time that the text does so."""
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
                yield node.id


def _is_thread_index(value: ast.expr) -> bool:
    if not isinstance(value, ast.Call) or value.args or value.keywords:
        return False
    function = value.func
    return (isinstance(function, ast.Attribute) and function.attr == "tid") or (
        isinstance(function, ast.Name) and function.id == "tid"
    )


def _stored(statements: Iterator[ast.stmt], indices: frozenset[str], rebound: frozenset[str]) -> Iterator[str]:
    for statement in statements:
        if not isinstance(statement, ast.Assign):
            continue
        for target in statement.targets:
            if isinstance(target, ast.Subscript) and _is_own(target.slice, indices):
                path = _path(target.value)
                if path and path.split(".")[0] not in rebound:
                    yield path


def _is_own(index: ast.expr, indices: frozenset[str]) -> bool:
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return bool(parts) and all(isinstance(part, ast.Name) and part.id in indices for part in parts)


def _path(value: ast.expr) -> str:
    """``state.q``; empty for what is neither a name nor a field of one."""
    if isinstance(value, ast.Name):
        return value.id
    if isinstance(value, ast.Attribute):
        base = _path(value.value)
        return f"{base}.{value.attr}" if base else ""
    return ""

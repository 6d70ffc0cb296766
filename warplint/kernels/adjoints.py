"""What the text of a ``@wp.func_grad`` says: whose adjoint it assigns, adds to, or leaves out."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping

from warplint.dataclass import dataclass
from warplint.syntax import walk


@dataclass(frozen=True)
class AdjointText:
    """``parameters`` in order (the adjoint of the result comes last). ``mentioned``: parameters whose adjoint, or
    gradient array, occurs at all. ``assigned``: the statements ``wp.adjoint[x] = e`` by parameter, each with the name
    of the index in ``wp.adjoint[x][i] = e`` ("" for another index, None for a whole one); ``+=`` is none of them.
    """

    parameters: tuple[str, ...]
    mentioned: frozenset[str]
    assigned: Mapping[str, tuple[tuple[ast.stmt, str | None], ...]]


@functools.lru_cache(maxsize=1024)
def adjoint_of(node: ast.FunctionDef) -> AdjointText:
    """Read a custom adjoint."""
    parameters = tuple(argument.arg for argument in (*node.args.posonlyargs, *node.args.args))
    mentioned: set[str] = set()
    assigned: dict[str, list[tuple[ast.stmt, str | None]]] = {}
    for each in walk(node):
        if isinstance(each, ast.Subscript):
            mentioned.add(_root(each) or "")
        elif isinstance(each, ast.Attribute) and each.attr == "grad" and isinstance(each.value, ast.Name):
            mentioned.add(each.value.id)
        elif isinstance(each, ast.Assign):
            for target in each.targets:
                name, index = _assigned(target)
                if name:
                    assigned.setdefault(name, []).append((each, index))
    return AdjointText(parameters, frozenset(mentioned), {name: tuple(found) for name, found in assigned.items()})


def _assigned(target: ast.expr) -> tuple[str | None, str | None]:
    if not isinstance(target, ast.Subscript):
        return None, None
    whole = _owner(target)
    if whole:
        return whole, None
    name = _owner(target.value) if isinstance(target.value, ast.Subscript) else None
    return name, target.slice.id if isinstance(target.slice, ast.Name) else ""


def _owner(node: ast.Subscript) -> str | None:
    """``x`` in ``wp.adjoint[x]``."""
    return node.slice.id if _is_adjoint(node) and isinstance(node.slice, ast.Name) else None


def _root(node: ast.Subscript) -> str | None:
    """``x`` in ``wp.adjoint[x]`` and ``wp.adjoint[x.field]``."""
    part = node.slice if _is_adjoint(node) else None
    while isinstance(part, (ast.Attribute, ast.Subscript)):
        part = part.value
    return part.id if isinstance(part, ast.Name) else None


def _is_adjoint(node: ast.Subscript) -> bool:
    of = node.value
    return (of.attr if isinstance(of, ast.Attribute) else getattr(of, "id", "")) == "adjoint"

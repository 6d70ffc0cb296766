"""Walking syntax trees faster than :mod:`ast` does: kernels and what they call are looked through many times."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

_BARE = frozenset(
    {"ctx", "op", "ops", "id", "attr", "arg", "name", "asname", "names", "module", "level", "kind", "type_comment"}
    | {"conversion", "simple", "is_async", "rest", "kwd_attrs", "str"}
)
"""Fields that hold no statements and expressions: texts, numbers, and nodes that only say what kind another one is."""

_LITERALS = (ast.Constant, ast.MatchSingleton, ast.TypeIgnore)

_CHILDREN: Mapping[type[ast.AST], tuple[str, ...]] = {
    kind: tuple(name for name in kind._fields if name not in _BARE and kind not in _LITERALS)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}


def alike(one: object, other: object) -> bool:
    """Whether two nodes (or fields of nodes) read the same, whether they are read or assigned to."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if not isinstance(one, ast.AST):
        return one == other
    return all(alike(getattr(one, name, None), getattr(other, name, None)) for name in one._fields if name != "ctx")


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """The node and all below it, breadth first as :func:`ast.walk`; not contexts, operators and imported names."""
    nodes = [node]
    fields = _CHILDREN
    for each in nodes:  # grows while it is walked
        yield each
        for name in fields[type(each)]:
            value = getattr(each, name, None)
            if type(value) is list:
                nodes += [item for item in value if item is not None]
            elif value is not None:
                nodes.append(value)

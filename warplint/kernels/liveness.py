"""What the text of a loop says, above all which locals it carries from one iteration into the next.

Carried is what the body assigns and may read before it has: the last iteration's value comes in.
"""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import field

from warplint.dataclass import dataclass
from warplint.syntax import alike, walk


@dataclass
class Names:
    """Names read before they are certainly assigned, names assigned somewhere, names assigned on all paths."""

    exposed: set[str] = field(default_factory=set)
    assigned: set[str] = field(default_factory=set)
    certain: set[str] = field(default_factory=set)
    under: dict[str, set[str]] = field(default_factory=dict)
    """By the text of a condition whose names have not been assigned since: what is certain wherever it holds."""


@dataclass(frozen=True)
class LoopFacts:
    """What the text of a loop says: ``leaves`` is its first ``break``, ``continues`` its first ``continue``.

    ``returns`` are the ``return``s inside it, ``statics`` its calls of ``static``. ``size`` counts its nodes. To the
    names in ``summed`` it only adds.
    """

    carried: frozenset[str]
    assigned: frozenset[str]
    leaves: ast.stmt | None
    continues: ast.stmt | None
    returns: tuple[ast.Return, ...]
    size: int
    statics: tuple[ast.Call, ...]
    summed: frozenset[str]


@functools.lru_cache(maxsize=16384)
def facts_of(loop: ast.For | ast.While) -> LoopFacts:
    """The facts of a loop; asked for in each pass over an outer loop, answered once."""
    names = Names()
    if isinstance(loop, ast.While):
        _read(loop.test, names)
    _block(loop.body, names)
    nodes = list(walk(loop))
    statics = tuple(each for each in nodes if isinstance(each, ast.Call) and _last_name(each.func) == "static")
    carried = frozenset(names.exposed & names.assigned)
    returns = tuple(each for each in nodes if isinstance(each, ast.Return))
    return LoopFacts(
        carried,
        frozenset(names.assigned),
        first(ast.Break, loop.body),
        first(ast.Continue, loop.body),
        returns,
        len(nodes),
        statics,
        frozenset(names.assigned - _replaced(nodes)),
    )


def _replaced(nodes: Sequence[ast.AST]) -> set[str]:
    """The names that some statement gives a value which is not the old one plus something else."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.NamedExpr)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            stored = {each.id for target in targets for each in walk(target) if isinstance(each, ast.Name)}
            if is_sum(node):
                read = Counter(each.id for each in walk(node) if isinstance(each, ast.Name))
                stored = {name for name in stored if read[name] > (1 if isinstance(node, ast.AugAssign) else 2)}
            found |= stored
    return found


@functools.lru_cache(maxsize=4096)
def assigned_in_loops(function: ast.AST) -> frozenset[str]:
    """The locals that some loop in a function assigns, unless it is as short as to be unrolled anyway."""
    loops = (each for each in walk(function) if isinstance(each, (ast.For, ast.While)) and not _is_short(each))
    return frozenset().union(*(facts_of(loop).assigned for loop in loops))


def _is_short(loop: ast.For | ast.While) -> bool:
    """``for k in range(3)``, without a ``break``."""
    if isinstance(loop, ast.While) or not isinstance(loop.iter, ast.Call) or _last_name(loop.iter.func) != "range":
        return False
    bounds = [each.value for each in loop.iter.args if isinstance(each, ast.Constant) and isinstance(each.value, int)]
    return len(bounds) == len(loop.iter.args) and max(bounds) <= SHORT and facts_of(loop).leaves is None


def is_sum(node: ast.AST) -> bool:
    """Whether an assignment only adds to what it assigns: ``s += e``, ``s = s + e``, ``s = s - e``."""
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, (ast.Add, ast.Sub))
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.BinOp) or len(node.targets) != 1:
        return False
    target, value = node.targets[0], node.value
    if isinstance(value.op, ast.Add) and alike(value.right, target):
        return True
    return isinstance(value.op, (ast.Add, ast.Sub)) and alike(value.left, target)


SHORT = 8
"""Iterations that hardly anybody forbids Warp to unroll (``max_unroll``)."""


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def first(kind: type[ast.stmt], statements: Sequence[ast.stmt]) -> ast.stmt | None:
    """The first ``break`` or ``continue`` of the loop whose body this is (those of loops inside it are not its own)."""
    for statement in statements:
        if isinstance(statement, kind):
            return statement
        if isinstance(statement, ast.If):
            found = first(kind, statement.body) or first(kind, statement.orelse)
            if found is not None:
                return found
    return None


def _block(statements: Sequence[ast.stmt], names: Names) -> None:
    for statement in statements:
        _statement(statement, names)


def _statement(node: ast.stmt, names: Names) -> None:
    if isinstance(node, ast.If):
        _read(node.test, names)
        _branch(node, names)
    elif isinstance(node, ast.For):
        _read(node.iter, names)
        inner = Names(certain=set(names.certain))
        _assign(node.target, inner)
        _block(node.body, inner)
        _absorb(inner, names)
    elif isinstance(node, ast.While):
        inner = Names(certain=set(names.certain))
        _read(node.test, inner)
        _block(node.body, inner)
        _absorb(inner, names)
    elif isinstance(node, ast.Assign):
        _read(node.value, names)
        for target in node.targets:
            _assign(target, names)
    elif isinstance(node, ast.AnnAssign):
        if node.value is not None:
            _read(node.value, names)
            _assign(node.target, names)
    elif isinstance(node, ast.AugAssign):
        _read(node.value, names)
        _read(node.target, names)
        _assign(node.target, names)
    else:
        _read(node, names)


def _branch(node: ast.If, names: Names) -> None:
    """Only what both arms assign is certain; what one assigns is so under the same condition asked again."""
    test = ast.unparse(node.test)
    known = names.under.get(test, set())
    ends: list[set[str]] = []
    for arm in (node.body, node.orelse):
        inner = Names(certain=set(names.certain), under=dict(names.under))
        inner.certain |= known if arm is node.body else set()
        _block(arm, inner)
        ends.append(inner.certain)
        names.under = {each: what for each, what in names.under.items() if each in inner.under}
        _absorb(inner, names)
    names.certain |= set.intersection(*ends)
    read = {each.id for each in walk(node.test) if isinstance(each, ast.Name)}
    assigned = {each.id for each in walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    if not read & assigned and not any(isinstance(each, (ast.Call, ast.Subscript)) for each in walk(node.test)):
        names.under[test] = known | ends[0]


def _absorb(inner: Names, names: Names) -> None:
    names.exposed |= inner.exposed
    names.assigned |= inner.assigned
    names.under = {test: what for test, what in names.under.items() if not _words(test) & inner.assigned}


def _assign(target: ast.expr, names: Names) -> None:
    if isinstance(target, ast.Name):
        names.assigned.add(target.id)
        names.certain.add(target.id)
        names.under = {test: what for test, what in names.under.items() if target.id not in _words(test)}
    elif isinstance(target, (ast.Tuple, ast.List)):
        for part in target.elts:
            _assign(part, names)
    else:
        _read(target, names)
        root = target
        while isinstance(root, (ast.Subscript, ast.Attribute)):
            root = root.value
        if isinstance(root, ast.Name):
            names.assigned.add(root.id)


def _words(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", text))


def _read(node: ast.AST, names: Names) -> None:
    for each in walk(node):
        if isinstance(each, ast.Name) and each.id not in names.certain:
            names.exposed.add(each.id)

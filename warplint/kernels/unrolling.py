"""How much code the loops of a kernel are written out to: Warp unrolls constant ranges, nested ones into each other.

Measured on 1.19 (generated source by unrolled operations, six bodies, 16 to 256 copies): an operation of the body is
about 300 bytes in each copy with its adjoint, 100 without. The compiler takes 20 to 25 s for a megabyte of it.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence

from warplint.dataclass import dataclass
from warplint.finding import Span
from warplint.kernels.source import Builtin, Constant, Function, KernelSource, Scope
from warplint.names import dotted
from warplint.source import span_of
from warplint.syntax import walk

WITH_ADJOINT = 300
FORWARD_ONLY = 100
"""Bytes of generated source for each operation."""

_OPERATIONS = (ast.BinOp, ast.Compare, ast.Call, ast.Subscript, ast.AugAssign, ast.UnaryOp, ast.Assign, ast.If)


@dataclass(frozen=True)
class UnrolledLoop:
    """An outermost unrolled loop: its ``for``, how often its innermost body is written out, and what all of it takes.

    ``operations`` counts every copy; ``source_bytes`` is the estimate of the generated source. ``function`` is the
    kernel or the ``wp.func`` that it stands in.
    """

    span: Span
    function: str
    copies: int
    operations: int
    source_bytes: int


def unrolled_loops(source: KernelSource) -> tuple[UnrolledLoop, ...]:
    """The outermost loops that Warp unrolls in a kernel and in the functions that it calls, each function once."""
    found: list[UnrolledLoop] = []
    each = WITH_ADJOINT if source.enable_backward else FORWARD_ONLY
    for body in _bodies(source):
        for loop in body.outermost_loops():
            copies, operations = body.weight(loop)
            if copies > 1:
                span = span_of(loop.node, body.path, body.lines)
                found.append(UnrolledLoop(span, body.node.name, copies, operations, operations * each))
    return tuple(found)


def _bodies(source: KernelSource) -> Iterator[_Body]:
    first = _Body(source.node, source.path, source.scope, source.max_unroll, source.lines)
    waiting, seen = [first], {source.node}
    while waiting:
        body = waiting.pop()
        yield body
        for called in body.functions_called():
            if called.node not in seen:
                seen.add(called.node)
                waiting.append(_Body(called.node, called.path, called.scope, source.max_unroll, called.lines))


@dataclass(frozen=True)
class _Text:
    """What a function's text tells whatever its names mean: its outermost loops, its callees and its locals."""

    loops: tuple[_Loop, ...]
    callees: tuple[str, ...]
    locals: frozenset[str]


@dataclass(frozen=True)
class _Loop:
    """A loop, how many operations stand in it and in no loop inside it, and the loops next inside it."""

    node: ast.For
    operations: int
    inner: tuple[_Loop, ...]


@functools.lru_cache(maxsize=4096)
def _text_of(function: ast.FunctionDef) -> _Text:
    nodes = list(walk(function))
    callees = dict.fromkeys(dotted(each.func) for each in nodes if isinstance(each, ast.Call))
    stored = (each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
    return _Text(
        _loops_in(function)[1] if any(isinstance(each, ast.For) for each in nodes) else (),
        tuple(name for name in callees if name is not None),
        frozenset(stored),
    )


def _loops_in(node: ast.AST) -> tuple[int, tuple[_Loop, ...]]:
    """The operations below a node that stand in no loop there, and its outermost loops."""
    operations, loops = 0, list[_Loop]()
    for child in ast.iter_child_nodes(node):
        below, inside = _loops_in(child)
        if isinstance(child, ast.For):
            loops.append(_Loop(child, below, inside))
        else:
            operations += below + isinstance(child, _OPERATIONS)
            loops += inside
    return operations, tuple(loops)


@dataclass(frozen=True, eq=False)
class _Body:
    """The text of a kernel or function, and the meaning of its names."""

    node: ast.FunctionDef
    path: str
    scope: Scope
    max_unroll: int | None
    lines: Sequence[str] | None

    @property
    def _text(self) -> _Text:
        return _text_of(self.node)

    def functions_called(self) -> Iterator[Function]:
        """The project's functions among the callees."""
        for name in self._text.callees:
            meaning = self.scope.resolve(name)
            if isinstance(meaning, Function):
                yield from (meaning, *meaning.overloads)

    def outermost_loops(self) -> Iterator[_Loop]:
        """The loops of the body that Warp unrolls and that stand in no other such loop."""
        waiting = list(self._text.loops)
        for loop in waiting:  # grows while it is walked
            if self.trips(loop.node) > 1:
                yield loop
            else:
                waiting += loop.inner

    def weight(self, loop: _Loop) -> tuple[int, int]:
        """How often the innermost body is written out, and the operations of all copies."""
        deepest, operations = 1, loop.operations
        for copies, inner in map(self.weight, loop.inner):
            deepest = max(deepest, copies)
            operations += inner
        trips = max(self.trips(loop.node), 1)
        return deepest * trips, operations * trips

    def trips(self, loop: ast.For) -> int:
        """How often Warp writes the loop's body out; 0 where it stays a loop (``Adjoint.get_unroll_range``)."""
        if not (isinstance(loop.iter, ast.Call) and self._is_builtin(loop.iter.func, "range")):
            return 0
        bounds = [self._integer(argument) for argument in loop.iter.args]
        known = [bound for bound in bounds if bound is not None]
        if len(known) != len(bounds) or not 1 <= len(known) <= 3 or (len(known) == 3 and known[2] == 0):
            return 0
        trips = len(range(*known))
        if self._forces(loop):
            return trips
        within = self.max_unroll is not None and trips <= self.max_unroll
        return trips if within and not _breaks(loop.body) else 0

    def _integer(self, node: ast.expr) -> int | None:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self._integer(node.operand)
            return None if inner is None else -inner
        if isinstance(node, ast.Call) and self._is_builtin(node.func, "static") and len(node.args) == 1:
            return self._integer(node.args[0])
        if isinstance(node, ast.Constant):
            return node.value if type(node.value) is int else None
        if isinstance(node, (ast.Name, ast.Attribute)):
            name = dotted(node)
            meaning = self.scope.resolve(name) if name is not None and not self._is_local(node) else None
            return meaning.value if isinstance(meaning, Constant) and type(meaning.value) is int else None
        return None

    def _forces(self, loop: ast.For) -> bool:
        """Whether a ``wp.static`` in it reads a local (the loop's index), so that only unrolling gives it a value."""
        return any(
            isinstance(item, ast.Call)
            and self._is_builtin(item.func, "static")
            and any(isinstance(name, ast.Name) and self._is_local(name) for name in walk(item))
            for item in walk(loop)
        )

    def _is_builtin(self, node: ast.expr, name: str) -> bool:
        called = dotted(node)
        return called is not None and self.scope.resolve(called) == Builtin(name)

    def _is_local(self, node: ast.Name | ast.Attribute) -> bool:
        head: ast.expr = node
        while isinstance(head, ast.Attribute):
            head = head.value
        return isinstance(head, ast.Name) and head.id in self._text.locals


def _breaks(body: Sequence[ast.stmt]) -> bool:
    """Whether a ``break`` leaves this loop; one of an inner loop does not."""
    return any(
        isinstance(statement, ast.Break)
        or (isinstance(statement, ast.If) and (_breaks(statement.body) or _breaks(statement.orelse)))
        for statement in body
    )

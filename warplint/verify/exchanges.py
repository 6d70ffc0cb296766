"""Where buffers change places: a recorded run knows which memory a launch was given, the source how it came there.

The interpreter sees ``a, b = b, a`` happen and stamps the arrays. A run tells only that a memory, which an earlier
launch of the same statement was given for one parameter, is now given for another one; the statement that brought this
about is looked up in the functions on the launch's stack.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from warplint.finding import Span
from warplint.trace.events import Array, Binding, Event, Frame, Launch, Moved, Stack
from warplint.verify.places import Places

_ROTATING = frozenset({"rotate", "reverse"})
_TAKING = frozenset({"pop", "popleft"})
_PUTTING = frozenset({"append", "appendleft", "insert"})


def with_exchanges(events: Iterable[Event], places: Places) -> list[Event]:
    """The events, with launches' arrays stamped as moved where the source shows what exchanged them."""
    seen: dict[Stack, dict[int, str]] = {}
    nearby = _Nearby(places)
    found: list[Event] = []
    for event in events:
        if not isinstance(event, Launch) or event.adjoint:
            found.append(event)
            continue
        before = seen.setdefault(event.stack, {})
        bound = [(b.path, b.array.memory) for b in event.bindings if b.array is not None and not b.array.gradient]
        changed = {memory for path, memory in bound if before.get(memory, path) != path}
        before.update((memory, path) for path, memory in bound)
        found.append(_stamped(event, changed, nearby) if changed else event)
    return found


def _stamped(launch: Launch, memories: set[int], nearby: _Nearby) -> Launch:
    moved = _exchange(launch, nearby)
    if moved is None:
        return launch

    def stamp(array: Array | None) -> Array | None:
        return replace(array, moved=moved) if array is not None and array.memory in memories else array

    bindings: tuple[Binding, ...] = tuple(replace(b, array=stamp(b.array)) for b in launch.bindings)
    return replace(launch, bindings=bindings)


def _exchange(launch: Launch, nearby: _Nearby) -> Moved | None:
    """The exchanging statement in the innermost function on the stack that has one."""
    for depth in range(len(launch.stack) - 1, -1, -1):
        frame = launch.stack[depth]
        found = nearby.statement(frame)
        if found is not None:
            span, how = found
            return Moved(launch.seq, (*launch.stack[:depth], Frame(span, frame.function)), how)
    return None


class _Nearby:
    """The exchanging statement next to a place in the source; a place to which a run comes often is read once."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._found: dict[Frame, tuple[Span, str] | None] = {}

    def statement(self, frame: Frame) -> tuple[Span, str] | None:
        """Where it stands in the frame's function, and how it exchanges; None where there is none, or no source."""
        if frame not in self._found:
            self._found[frame] = self._look_up(frame)
        return self._found[frame]

    def _look_up(self, frame: Frame) -> tuple[Span, str] | None:
        module = self._places.module(frame.span.path)
        if module is None:
            return None
        around = self._places.around((frame.span.path, frame.span.line, frame.function))
        statement = _nearest(list(_exchanges(around)), frame.span.line)
        return None if statement is None else (module.span(statement), _how(statement))


def _nearest(statements: Sequence[ast.stmt], line: int) -> ast.stmt | None:
    """The first one behind a line, else the last one before it (of the round before)."""
    behind = [each for each in statements if each.lineno > line]
    return min(behind, key=lambda each: each.lineno) if behind else max(statements, key=_line, default=None)


def _line(node: ast.stmt) -> int:
    return node.lineno


def _exchanges(function: ast.AST) -> Iterator[ast.stmt]:
    """The statements in a function that give existing values other places."""
    for node in ast.walk(function):
        for block in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if isinstance(block, list):
                yield from _in_block(block)


def _in_block(block: list[ast.stmt]) -> Iterator[ast.stmt]:
    for position, statement in enumerate(block):
        if isinstance(statement, ast.Expr) and _rotates(statement.value):
            yield statement
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], statement.value
            if _swaps(target, value) or _fills_slot(target, value) or _ends_by_hand(block[: position + 1]):
                yield statement


def _rotates(value: ast.expr) -> bool:
    """``levels.rotate(1)``, ``levels.reverse()``, ``levels.append(levels.pop(0))``."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    if value.func.attr in _ROTATING:
        return True
    taken = (part for part in ast.walk(value) if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute))
    return value.func.attr in _PUTTING and any(_attribute(part) in _TAKING for part in taken)


def _attribute(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _swaps(target: ast.expr, value: ast.expr) -> bool:
    """``a, b = b, a`` and its like: what is written is read again; ``s = s[1:] + s[:1]``."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        written, read = {ast.unparse(t) for t in target.elts}, {ast.unparse(v) for v in value.elts}
        return len(target.elts) > 1 and bool(written & read)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        parts = [part for part in (value.left, value.right) if isinstance(part, ast.Subscript)]
        return len(parts) == 2 and all(ast.unparse(part.value) == ast.unparse(target) for part in parts)
    return False


def _fills_slot(target: ast.expr, value: ast.expr) -> bool:
    """``states[0] = states[-1]``."""
    return (
        isinstance(target, ast.Subscript)
        and isinstance(value, ast.Subscript)
        and ast.unparse(target.value) == ast.unparse(value.value)
        and ast.unparse(target.slice) != ast.unparse(value.slice)
    )


def _ends_by_hand(block: list[ast.stmt]) -> bool:
    """Whether the last three statements are ``kept = a``, ``a = b``, ``b = kept``."""
    pairs = [
        (ast.unparse(each.targets[0]), ast.unparse(each.value))
        for each in block[-3:]
        if isinstance(each, ast.Assign) and len(each.targets) == 1
    ]
    if len(pairs) < 3:
        return False
    (kept, first), (into, second), (last, back) = pairs
    return into == first and last == second and back == kept


def _how(statement: ast.stmt) -> str:
    if isinstance(statement, ast.Expr):
        return "rotate"
    slot = isinstance(statement, ast.Assign) and _fills_slot(statement.targets[0], statement.value)
    return "slot" if slot else "swap"

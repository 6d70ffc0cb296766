"""The stamp on arrays that came under another name: swaps, rotations, ``states[0] = states[-1]``, ``s[k % 2]``."""

from __future__ import annotations

import ast

from warplint.trace.host.machine import Machine
from warplint.trace.host.memory import ArrayValue, arrays_in
from warplint.trace.host.values import Instance, Value

_STRONG = frozenset({"swap", "rotate", "index"})
_WEAK = frozenset({"rebind", "slot"})


def stamp(machine: Machine, value: Value, how: str) -> None:
    """Mark the arrays behind ``value`` as moved, here and now, if this is in a loop or under a tape."""
    if not (machine.loops or machine.active_tape is not None):
        return
    if not isinstance(value, (ArrayValue, Instance, list, tuple, dict)):
        return
    mark = None
    for array in arrays_in(value):
        if how in _WEAK and array.moved is not None and array.moved.how in _STRONG:
            continue
        if mark is None:
            mark = machine.log.moved(machine.stack(), how)
        array.moved = mark


def stamp_rotation(machine: Machine, container: Value) -> None:
    """``deque.rotate``, ``append(pop(0))``: everything in the container moved."""
    stamp(machine, container, "rotate")


def how_moved(targets: list[ast.expr], sources: list[ast.expr]) -> str:
    """``swap`` where a tuple assignment permutes what it reads, else ``rebind``."""
    written = {ast.dump(_loaded(target)) for target in targets}
    read = {ast.dump(source) for source in sources}
    return "swap" if len(targets) > 1 and written & read else "rebind"


def _loaded(node: ast.expr) -> ast.expr:
    """The node as it would stand on the right side."""
    if isinstance(node, ast.Name):
        return ast.Name(node.id, ast.Load())
    if isinstance(node, ast.Attribute):
        return ast.Attribute(node.value, node.attr, ast.Load())
    if isinstance(node, ast.Subscript):
        return ast.Subscript(node.value, node.slice, ast.Load())
    return node

"""Assignments: targets of every shape, and the stamp on buffers that change places."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from warplint.syntax import walk
from warplint.trace.host import operators
from warplint.trace.host.lookup import look_up
from warplint.trace.host.machine import Frame, Machine
from warplint.trace.host.memory import ArrayValue, NumpyValue, arrays_in
from warplint.trace.host.moves import how_moved, stamp
from warplint.trace.host.subscripts import delete_item, load_item, store_item
from warplint.trace.host.values import (
    Instance,
    Signal,
    UnknownValue,
    Value,
    Vector,
    part_of,
)

_HOLDERS = (ArrayValue, Instance, list, tuple, dict)


def assign(machine: Machine, frame: Frame, node: ast.Assign) -> Signal | None:
    """``targets = value``."""
    watched = machine.loops or machine.active_tape is not None
    newest = machine.newest_memory
    value = machine.evaluate(node.value, frame)
    if watched and isinstance(value, _HOLDERS):
        _stamp_moves(machine, frame, node, value, newest)
    frame.node = node
    for target in node.targets:
        bind_target(machine, frame, target, value)
    return None


def annotated_assign(machine: Machine, frame: Frame, node: ast.AnnAssign) -> Signal | None:
    """``target: type = value``; in a class body the annotation makes a field."""
    if isinstance(node.target, ast.Name) and frame.environment.is_class:
        annotations = frame.environment.variables.setdefault("__annotations__", {})
        annotations[node.target.id] = node.annotation
    if node.value is not None:
        bind_target(machine, frame, node.target, machine.evaluate(node.value, frame))
    return None


def augmented_assign(machine: Machine, frame: Frame, node: ast.AugAssign) -> Signal | None:
    """``target op= value``: in place on lists, numpy arrays and Warp arrays, else a new value."""
    old = load_target(machine, frame, node.target)
    value = machine.evaluate(node.value, frame)
    frame.node = node
    if isinstance(old, list) and isinstance(node.op, ast.Add):
        items = machine.iterate(value)
        old.extend(items if items is not None else [UnknownValue("an unknown number of items")])
        new: Value = old
    elif isinstance(old, ArrayValue):
        from warplint.trace.host.warp_api.maps import array_operator

        new = array_operator(machine, type(node.op), [old, value], into=old)
    elif isinstance(old, NumpyValue):
        from warplint.trace.host.library.numpy import store_through

        new = store_through(machine, old, operators.binary(machine, type(node.op), old, value))
    elif isinstance(old, (set, dict)) and isinstance(value, (set, dict, frozenset)):
        old.update(value)
        new = old
    else:
        new = operators.binary(machine, type(node.op), old, value)
    bind_target(machine, frame, node.target, new)
    return None


def load_target(machine: Machine, frame: Frame, target: ast.expr) -> Value:
    """The value that a target holds now."""
    if isinstance(target, ast.Name):
        return look_up(machine, frame.environment, target.id)
    if isinstance(target, ast.Attribute):
        return machine.parts.get_attribute(machine, machine.evaluate(target.value, frame), target.attr)
    if isinstance(target, ast.Subscript):
        return load_item(machine, machine.evaluate(target.value, frame), machine.evaluate(target.slice, frame))
    return UnknownValue("an assignment target")


def bind_target(machine: Machine, frame: Frame, target: ast.expr, value: Value) -> None:
    """Bind a value to a name, attribute, item, or to each part of a tuple of them."""
    if isinstance(target, ast.Name):
        if isinstance(value, ArrayValue):
            _name_memory(value, target.id)
        frame.environment.binding_scope(target.id).variables[target.id] = value
    elif isinstance(target, ast.Attribute):
        receiver = machine.evaluate(target.value, frame)
        if isinstance(value, ArrayValue):
            _name_memory(value, _attribute_text(target))
        machine.parts.set_attribute(machine, receiver, target.attr, value)
    elif isinstance(target, ast.Subscript):
        store_item(machine, machine.evaluate(target.value, frame), machine.evaluate(target.slice, frame), value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for part, item in zip(target.elts, _unpack(machine, target.elts, value), strict=False):
            bind_target(machine, frame, part.value if isinstance(part, ast.Starred) else part, item)


def delete(machine: Machine, frame: Frame, node: ast.Delete) -> Signal | None:
    """``del``."""
    for target in node.targets:
        if isinstance(target, ast.Name):
            frame.environment.binding_scope(target.id).variables.pop(target.id, None)
        elif isinstance(target, ast.Subscript):
            delete_item(machine, machine.evaluate(target.value, frame), machine.evaluate(target.slice, frame))
        elif isinstance(target, ast.Attribute):
            receiver = machine.evaluate(target.value, frame)
            if isinstance(receiver, Instance):
                receiver.attributes.pop(target.attr, None)
    return None


def _unpack(machine: Machine, targets: Sequence[ast.expr], value: Value) -> list[Value]:
    items = _items(machine, value)
    if items is None:
        return [part_of("a part of something unknown", value) for _ in targets]
    star = next((position for position, part in enumerate(targets) if isinstance(part, ast.Starred)), None)
    if star is None:
        missing = len(targets) - len(items)
        return [*items[: len(targets)], *(UnknownValue("too few values to unpack") for _ in range(missing))]
    behind = len(targets) - star - 1
    middle = list(items[star : len(items) - behind])
    return [*items[:star], middle, *items[len(items) - behind :]]


def _items(machine: Machine, value: Value) -> list[Value] | None:
    if isinstance(value, Vector):
        return list(value.components)
    items = machine.iterate(value)
    return None if items is None else list(items)


def _name_memory(array: ArrayValue, name: str) -> None:
    if not array.memory.name and not array.gradient:
        array.memory.name = name


def _attribute_text(target: ast.Attribute) -> str:
    return ast.unparse(target)


def _stamp_moves(machine: Machine, frame: Frame, node: ast.Assign, value: Value, newest: int) -> None:
    """Stamp the arrays that take another's place: the target held other arrays, and none of the new ones is fresh."""
    for target in node.targets:
        moved: list[Value] = []
        for part, new in _pairs(target, node.value, value):
            old = _peek(machine, frame, part)
            if old is None or old is new:
                continue
            before = [array.memory for array in arrays_in(old, 3)]
            after = [array.memory for array in arrays_in(new, 3)]
            if before and after and before != after and all(memory.id < newest for memory in after):
                moved.append(new)
        if not moved or _is_fresh_list(target, node.value):
            continue
        how = "rebind"
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            how = how_moved(target.elts, node.value.elts)
        elif any(isinstance(new, (list, tuple)) for new in moved) and not isinstance(target, ast.Tuple):
            how = "rotate"
        elif isinstance(target, ast.Subscript):
            how = "slot"
        stamp(machine, moved, how)


def _is_fresh_list(target: ast.expr, source: ast.expr) -> bool:
    """``args = [a, b]``: a new list is made of other names, nothing in the old one is moved about."""
    if isinstance(target, (ast.Tuple, ast.List)) or not isinstance(source, (ast.List, ast.Tuple)):
        return False
    return not any(ast.unparse(target) == ast.unparse(part) for part in walk(source) if isinstance(part, ast.expr))


def _pairs(target: ast.expr, source: ast.expr, value: Value) -> list[tuple[ast.expr, Value]]:
    if not isinstance(target, (ast.Tuple, ast.List)):
        return [(target, value)]
    if isinstance(value, (tuple, list)) and len(value) == len(target.elts):
        return [pair for pair in zip(target.elts, value, strict=False) if isinstance(pair[1], _HOLDERS)]
    return []


def _peek(machine: Machine, frame: Frame, target: ast.expr) -> Value:
    """What the target held before, without running anything: None where it is new."""
    if isinstance(target, ast.Name):
        return frame.environment.binding_scope(target.id).variables.get(target.id)
    if isinstance(target, ast.Attribute):
        receiver = machine.evaluate(target.value, frame)
        return receiver.attributes.get(target.attr) if isinstance(receiver, Instance) else None
    if isinstance(target, ast.Subscript):
        container = machine.evaluate(target.value, frame)
        if not isinstance(container, (list, dict)):
            return None
        index = machine.evaluate(target.slice, frame)
        try:
            return container[index]
        except (KeyError, IndexError, TypeError):
            return None
    return None

"""Expressions: one evaluator for each kind of node."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from warplint.trace.host import operators
from warplint.trace.host.calls import evaluate_call
from warplint.trace.host.lookup import look_up
from warplint.trace.host.loops import comprehension
from warplint.trace.host.machine import Frame, Machine
from warplint.trace.host.subscripts import load_item
from warplint.trace.host.values import (
    Environment,
    Function,
    UnknownValue,
    Value,
    unknown_from,
)

Evaluator = Callable[[Machine, Frame, Any], Value]


def decide(machine: Machine, value: Value) -> bool:
    """The way a condition with this value goes on this path."""
    known = operators.truth(value)
    if known is not None:
        return known
    return machine.decide(value if isinstance(value, UnknownValue) else UnknownValue("a condition"))


def _constant(machine: Machine, frame: Frame, node: ast.Constant) -> Value:
    return node.value


def _name(machine: Machine, frame: Frame, node: ast.Name) -> Value:
    return look_up(machine, frame.environment, node.id)


def _attribute(machine: Machine, frame: Frame, node: ast.Attribute) -> Value:
    receiver = machine.evaluate(node.value, frame)
    return machine.parts.get_attribute(machine, receiver, node.attr)


def _subscript(machine: Machine, frame: Frame, node: ast.Subscript) -> Value:
    container = machine.evaluate(node.value, frame)
    index = machine.evaluate(node.slice, frame)
    return load_item(machine, container, index, node)


def _slice(machine: Machine, frame: Frame, node: ast.Slice) -> Value:
    parts = [None if part is None else machine.evaluate(part, frame) for part in (node.lower, node.upper, node.step)]
    return slice(*parts)


def _binary(machine: Machine, frame: Frame, node: ast.BinOp) -> Value:
    left = machine.evaluate(node.left, frame)
    right = machine.evaluate(node.right, frame)
    return operators.binary(machine, type(node.op), left, right)


def _unary(machine: Machine, frame: Frame, node: ast.UnaryOp) -> Value:
    operand = machine.evaluate(node.operand, frame)
    if not isinstance(node.op, ast.Not):
        return operators.unary(machine, type(node.op), operand)
    known = operators.truth(operand)
    if known is not None:
        return not known
    return operand.opposite() if isinstance(operand, UnknownValue) else UnknownValue("a condition", negated=True)


def _boolean(machine: Machine, frame: Frame, node: ast.BoolOp) -> Value:
    """``a and b``: evaluated left to right; what is unknown is decided only where more hangs on it."""
    ends = isinstance(node.op, ast.Or)
    value: Value = None
    unknown: UnknownValue | None = None
    for position, operand in enumerate(node.values):
        value = machine.evaluate(operand, frame)
        known = operators.truth(value)
        if known is None:
            unknown = value if isinstance(value, UnknownValue) else UnknownValue("a condition")
            last = position == len(node.values) - 1
            if not last and not isinstance(
                node.values[position + 1], (ast.Compare, ast.Name, ast.Attribute, ast.UnaryOp)
            ):
                if decide(machine, unknown) is ends:
                    return value
                unknown = None
        elif known is ends:
            return value
    if unknown is None or value is unknown:
        return value
    result = unknown_from("a condition", unknown, value)
    result.negated = unknown.negated
    return result


def _compare(machine: Machine, frame: Frame, node: ast.Compare) -> Value:
    left = machine.evaluate(node.left, frame)
    if len(node.ops) == 1:
        return operators.compare(machine, type(node.ops[0]), left, machine.evaluate(node.comparators[0], frame))
    result: Value = True
    for kind, comparator in zip(node.ops, node.comparators, strict=False):
        right = machine.evaluate(comparator, frame)
        one = operators.compare(machine, type(kind), left, right)
        if one is False:
            return False
        if one is not True:
            result = one
        left = right
    return result


def _conditional(machine: Machine, frame: Frame, node: ast.IfExp) -> Value:
    chosen = decide(machine, machine.evaluate(node.test, frame))
    return machine.evaluate(node.body if chosen else node.orelse, frame)


def _sequence(items: list[ast.expr], machine: Machine, frame: Frame) -> list[Value]:
    values: list[Value] = []
    for item in items:
        if isinstance(item, ast.Starred):
            spread = machine.iterate(machine.evaluate(item.value, frame))
            values.extend(spread if spread is not None else [UnknownValue("an unknown number of items")])
        else:
            values.append(machine.evaluate(item, frame))
    return values


def _list(machine: Machine, frame: Frame, node: ast.List) -> Value:
    return _sequence(node.elts, machine, frame)


def _tuple(machine: Machine, frame: Frame, node: ast.Tuple) -> Value:
    return tuple(_sequence(node.elts, machine, frame))


def _set(machine: Machine, frame: Frame, node: ast.Set) -> Value:
    try:
        return set(_sequence(node.elts, machine, frame))
    except TypeError:
        return UnknownValue("a set of unhashable values")


def _dict(machine: Machine, frame: Frame, node: ast.Dict) -> Value:
    result: dict[Any, Value] = {}
    for key, item in zip(node.keys, node.values, strict=False):
        value = machine.evaluate(item, frame)
        if key is None:
            if isinstance(value, dict):
                result.update(value)
            continue
        name = machine.evaluate(key, frame)
        try:
            result[name] = value
        except TypeError:
            return UnknownValue("a dict with unhashable keys")
    return result


def _joined(machine: Machine, frame: Frame, node: ast.JoinedStr) -> Value:
    parts: list[str] = []
    for item in node.values:
        value = machine.evaluate(item, frame)
        if not isinstance(value, str):
            return unknown_from("a formatted string", value)
        parts.append(value)
    return "".join(parts)


def _formatted(machine: Machine, frame: Frame, node: ast.FormattedValue) -> Value:
    value = machine.evaluate(node.value, frame)
    if not operators.is_plain(value):
        from warplint.trace.host.library.builtins import show

        show(machine, [value])
        return unknown_from("a formatted value", value)
    specification = "" if node.format_spec is None else machine.evaluate(node.format_spec, frame)
    try:
        if node.conversion == ord("r"):
            return format(repr(value), specification)
        return format(value, specification)
    except Exception:
        return UnknownValue("a formatted value")


def _lambda(machine: Machine, frame: Frame, node: ast.Lambda) -> Value:
    return make_function(machine, frame, node)


def _named(machine: Machine, frame: Frame, node: ast.NamedExpr) -> Value:
    value = machine.evaluate(node.value, frame)
    frame.environment.binding_scope(node.target.id).variables[node.target.id] = value
    return value


def _yield(machine: Machine, frame: Frame, node: ast.Yield) -> Value:
    value = None if node.value is None else machine.evaluate(node.value, frame)
    return frame.on_yield(value) if frame.on_yield is not None else UnknownValue("a sent value")


def _yield_from(machine: Machine, frame: Frame, node: ast.YieldFrom) -> Value:
    items = machine.iterate(machine.evaluate(node.value, frame))
    for item in items if items is not None else [UnknownValue("an item of an unknown iterable")]:
        if frame.on_yield is not None:
            frame.on_yield(item)
    return None


def _await(machine: Machine, frame: Frame, node: ast.Await) -> Value:
    return machine.evaluate(node.value, frame)


def _starred(machine: Machine, frame: Frame, node: ast.Starred) -> Value:
    return machine.evaluate(node.value, frame)


def make_function(
    machine: Machine, frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
) -> Function:
    """The function that a definition makes: its defaults are evaluated now."""
    arguments = node.args
    defaults = tuple([machine.evaluate(default, frame) for default in arguments.defaults])
    keyword_defaults = {
        argument.arg: machine.evaluate(default, frame)
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=False)
        if default is not None
    }
    scope: Environment = frame.environment
    return Function(
        node, frame.module, scope.closure, defaults, keyword_defaults, frame.owner if scope.is_class else None
    )


EVALUATORS: Mapping[type[ast.expr], Evaluator] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.IfExp: _conditional,
    ast.Call: evaluate_call,
    ast.List: _list,
    ast.Tuple: _tuple,
    ast.Set: _set,
    ast.Dict: _dict,
    ast.JoinedStr: _joined,
    ast.FormattedValue: _formatted,
    ast.Lambda: _lambda,
    ast.NamedExpr: _named,
    ast.Yield: _yield,
    ast.YieldFrom: _yield_from,
    ast.Await: _await,
    ast.Starred: _starred,
    ast.ListComp: comprehension,
    ast.SetComp: comprehension,
    ast.DictComp: comprehension,
    ast.GeneratorExp: comprehension,
}

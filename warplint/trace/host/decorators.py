"""Decorators: those of Warp declare kernels and functions, those of the project run, unknown ones change nothing."""

from __future__ import annotations

import ast

from warplint.trace.host.library.table import decorator_model_of
from warplint.trace.host.machine import Frame, Machine
from warplint.trace.host.values import Class, External, Function, Native, UnknownValue, Value


def decorated(
    machine: Machine, frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, value: Value
) -> Value:
    """The value that a definition with decorators is bound to."""
    for expression in reversed(node.decorator_list):
        frame.node = expression
        decorator = machine.evaluate(expression, frame)
        frame.node = expression
        value = _apply(machine, decorator, value)
    return value


def _apply(machine: Machine, decorator: Value, value: Value) -> Value:
    if isinstance(decorator, Native):
        return machine.call(decorator, [value])
    if isinstance(decorator, External):
        model = decorator_model_of(decorator.path)
        return value if model is None else machine.call(Native(decorator.path, model), [value])
    if isinstance(decorator, (Function, Class)) or type(decorator).__name__ == "Bound":
        result = machine.call(decorator, [value])
        return value if isinstance(result, UnknownValue) or result is None else result
    return value

"""Where interpretation starts: the file as a program, and each function of it that opens a tape and was not reached."""

from __future__ import annotations

import ast
import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass

from warplint.project import Module
from warplint.trace.facts import line_numbers
from warplint.trace.lookup import global_value
from warplint.trace.machine import Call, Machine
from warplint.trace.values import Bound, Class, Function, Instance, UnknownValue, Value

Definition = ast.FunctionDef | ast.AsyncFunctionDef

_NAMES_TAPE = re.compile(r"[Tt]ape\b")
_BATCH = 200
"""Functions of one file that are started on their own, at most."""


@dataclass(frozen=True)
class Root:
    """A function or method (then ``owner`` is its class) at the top level of the file."""

    node: Definition
    owner: ast.ClassDef | None = None


def taped_functions(module: Module) -> list[Root]:
    """The functions and methods at the top level that open a tape."""
    lines = line_numbers(module.source.text, _NAMES_TAPE)
    found: list[Root] = []
    for owner, node in _functions(module.tree) if lines else ():
        first = bisect.bisect_left(lines, node.lineno)
        if first < len(lines) and lines[first] <= (node.end_lineno or 0) and opens_tape(node):
            found.append(Root(node, owner))
    return found[:_BATCH]


def _functions(tree: ast.Module) -> Iterator[tuple[ast.ClassDef | None, Definition]]:
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield None, statement
        elif isinstance(statement, ast.ClassDef):
            for member in statement.body:
                if isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    yield statement, member


def opens_tape(node: Definition) -> bool:
    """Whether ``Tape(`` is called or a ``with …tape`` stands in the body, nested functions included."""
    for item in ast.walk(node):
        if isinstance(item, ast.Call):
            name = item.func.attr if isinstance(item.func, ast.Attribute) else getattr(item.func, "id", "")
            if name == "Tape":
                return True
        elif isinstance(item, ast.With):
            for context in item.items:
                expression = context.context_expr
                name = expression.attr if isinstance(expression, ast.Attribute) else getattr(expression, "id", "")
                if name.lower().endswith("tape"):
                    return True
    return False


def start(machine: Machine, root: Root) -> None:
    """Call a root: arguments without a default are unknown, ``self`` is made by ``__init__`` with unknowns."""
    module = machine.frame.module
    hook = global_value(machine, module, "setUpModule")
    if isinstance(hook, Function) and root.node.name.startswith("test"):
        machine.parts.call(machine, hook, Call([]))
    if root.owner is None:
        function = global_value(machine, module, root.node.name)
        _enter(machine, function)
        return
    cls = global_value(machine, module, root.owner.name)
    if not isinstance(cls, Class):
        return
    found = cls.find(root.node.name)
    if found is None:
        return
    receiver = _object(machine, cls)
    method = found[0]
    if isinstance(method, Function):
        _enter(machine, Bound(method, receiver))
    else:
        _enter(machine, machine.parts.get_attribute(machine, receiver, root.node.name))


def _object(machine: Machine, cls: Class) -> Value:
    if cls.is_struct:
        return Instance(cls)
    value = machine.parts.call(machine, cls, Call([]))
    if isinstance(value, Instance):
        for hook in ("setUp", "setup_method"):
            if cls.find(hook):
                machine.call(machine.parts.get_attribute(machine, value, hook), [])
        return value
    return UnknownValue("an object")


def _enter(machine: Machine, function: Value) -> None:
    target = function.function if isinstance(function, Bound) else function
    if isinstance(target, Function):
        result = machine.parts.call(machine, function, Call([]))
        machine.iterate(result)

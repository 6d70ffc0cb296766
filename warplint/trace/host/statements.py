"""Statements: one executor for each kind of node; the signal says how a statement left its block."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from warplint.trace.host import operators
from warplint.trace.host.assignment import annotated_assign, assign, augmented_assign, delete
from warplint.trace.host.classes import define_class
from warplint.trace.host.contexts import execute_with
from warplint.trace.host.decorators import decorated
from warplint.trace.host.expressions import decide, make_function
from warplint.trace.host.facts import ends_run
from warplint.trace.host.imports import execute_import, execute_import_from
from warplint.trace.host.loops import execute_for, execute_while
from warplint.trace.host.machine import Frame, Machine, Raised, Unwinding, catches
from warplint.trace.host.values import BREAK, CONTINUE, Class, External, Instance, Record, Signal, UnknownValue, Value

Executor = Callable[[Machine, Frame, Any], "Signal | None"]


def _expression(machine: Machine, frame: Frame, node: ast.Expr) -> Signal | None:
    if type(node.value) is ast.Constant:
        machine.steps -= 1
    else:
        machine.evaluate(node.value, frame)
    return None


def _return(machine: Machine, frame: Frame, node: ast.Return) -> Signal | None:
    return Signal("return", None if node.value is None else machine.evaluate(node.value, frame))


def _if(machine: Machine, frame: Frame, node: ast.If) -> Signal | None:
    condition = machine.evaluate(node.test, frame)
    known = operators.truth(condition)
    if known is None:
        known = _feasible(machine, node, condition)
    return machine.execute(node.body if known else node.orelse, frame)


def _feasible(machine: Machine, node: ast.If, condition: Value) -> bool:
    """The arm to follow where the condition is not known.

    An arm that ends the run, leaves the loop or function, or replays a captured graph is not followed where the other
    one does not: what happens there is opaque, and a path that was cut short proves nothing.
    """
    preferred = machine.caches.preferred_arm(node)
    if preferred is None:
        return decide(machine, condition)
    machine.decisions += 1
    return preferred


def _function(machine: Machine, frame: Frame, node: ast.FunctionDef) -> Signal | None:
    value: Value = make_function(machine, frame, node)
    if node.decorator_list:
        value = decorated(machine, frame, node, value)
        frame.node = node
    frame.environment.binding_scope(node.name).variables[node.name] = value
    return None


def _class(machine: Machine, frame: Frame, node: ast.ClassDef) -> Signal | None:
    value = define_class(machine, frame, node)
    frame.environment.binding_scope(node.name).variables[node.name] = value
    return None


def _raise(machine: Machine, frame: Frame, node: ast.Raise) -> Signal | None:
    """An exception that nothing catches means that the interpretation went astray: what led here is taken back.

    Programs do not raise where nobody is there to catch: so the condition in front was misjudged, and the run goes on
    behind it. A function that ends like that has an unknown result.
    """
    value = None if node.exc is None else machine.evaluate(node.exc, frame)
    kinds = _exception_names(value)
    if machine.will_catch(*kinds):
        raise Raised(kinds, value)
    frame.astray = kinds[0]
    return None


def _exception_names(value: Value) -> tuple[str, ...]:
    if isinstance(value, Instance):
        value = value.cls
    if isinstance(value, Class):
        outside = (path.rpartition(".")[2] for path in value.outside_bases())
        return (*(cls.name for cls in value.ancestry), *outside)
    if isinstance(value, Record):
        return (value.kind,)
    return (value.name,) if isinstance(value, External) else ("Exception",)


def _try(machine: Machine, frame: Frame, node: ast.Try) -> Signal | None:
    depth = len(machine.frames)
    try:
        signal = _handled(machine, frame, node)
    except Unwinding:
        del machine.frames[depth:]
        machine.execute(node.finalbody, frame)
        raise
    return machine.execute(node.finalbody, frame) or signal


def _handled(machine: Machine, frame: Frame, node: ast.Try) -> Signal | None:
    """The body of a ``try`` and, if it raises, the handler that catches."""
    depth = len(machine.frames)
    machine.handlers.append(tuple(name for handler in node.handlers for name in _caught(handler)))
    waiting = len(machine.handlers)
    try:
        signal = machine.execute(node.body, frame)
    except Raised as raised:
        del machine.frames[depth:]
        del machine.handlers[waiting - 1 :]
        handler = next((handler for handler in node.handlers if catches(_caught(handler), raised.kinds)), None)
        if handler is None:
            raise
        if handler.name:
            frame.environment.variables[handler.name] = raised.value
        return machine.execute(handler.body, frame)
    finally:
        del machine.handlers[waiting - 1 :]
    return signal or machine.execute(node.orelse, frame)


def _caught(handler: ast.ExceptHandler) -> list[str]:
    if handler.type is None:
        return ["BaseException"]
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return [kind.attr if isinstance(kind, ast.Attribute) else getattr(kind, "id", "") for kind in kinds]


def _assert(machine: Machine, frame: Frame, node: ast.Assert) -> Signal | None:
    machine.assertions += 1
    try:
        machine.evaluate(node.test, frame)
    finally:
        machine.assertions -= 1
    return None


def _global(machine: Machine, frame: Frame, node: ast.Global | ast.Nonlocal) -> Signal | None:
    return None


def _pass(machine: Machine, frame: Frame, node: ast.Pass) -> Signal | None:
    return None


def _break(machine: Machine, frame: Frame, node: ast.Break) -> Signal | None:
    return BREAK


def _continue(machine: Machine, frame: Frame, node: ast.Continue) -> Signal | None:
    return CONTINUE


def _match(machine: Machine, frame: Frame, node: ast.Match) -> Signal | None:
    """``match`` on plain values; patterns with structure are not followed beyond their captures."""
    subject = machine.evaluate(node.subject, frame)
    for case in node.cases:
        taken = _matches(machine, frame, case.pattern, subject)
        if taken is None:
            taken = not ends_run(case.body) and decide(machine, UnknownValue("a pattern"))
        if taken and (case.guard is None or decide(machine, machine.evaluate(case.guard, frame))):
            return machine.execute(case.body, frame)
    return None


def _matches(machine: Machine, frame: Frame, pattern: ast.pattern, subject: Value) -> bool | None:
    if isinstance(pattern, ast.MatchValue):
        return operators.truth(operators.compare(machine, ast.Eq, subject, machine.evaluate(pattern.value, frame)))
    if isinstance(pattern, ast.MatchSingleton):
        return operators.truth(operators.compare(machine, ast.Is, subject, pattern.value))
    if isinstance(pattern, ast.MatchOr):
        results = [_matches(machine, frame, option, subject) for option in pattern.patterns]
        return True if True in results else None if None in results else False
    if isinstance(pattern, ast.MatchAs):
        if pattern.pattern is not None and not _matches(machine, frame, pattern.pattern, subject):
            return False
        if pattern.name:
            frame.environment.variables[pattern.name] = subject
        return True
    return None


EXECUTORS: Mapping[type[ast.stmt], Executor] = {
    ast.Expr: _expression,
    ast.Assign: assign,
    ast.AugAssign: augmented_assign,
    ast.AnnAssign: annotated_assign,
    ast.Delete: delete,
    ast.Return: _return,
    ast.If: _if,
    ast.For: execute_for,
    ast.AsyncFor: execute_for,
    ast.While: execute_while,
    ast.With: execute_with,
    ast.AsyncWith: execute_with,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Import: execute_import,
    ast.ImportFrom: execute_import_from,
    ast.Raise: _raise,
    ast.Try: _try,
    **({ast.TryStar: _try} if hasattr(ast, "TryStar") else {}),
    ast.Assert: _assert,
    ast.Global: _global,
    ast.Nonlocal: _global,
    ast.Pass: _pass,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Match: _match,
}

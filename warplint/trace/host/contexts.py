"""``with``: tapes, generators as context managers, objects with ``__enter__``, and contexts without effect here."""

from __future__ import annotations

import ast

from warplint.trace.host.machine import Frame, Machine, Raised
from warplint.trace.host.values import (
    External,
    Generator,
    Instance,
    Record,
    Signal,
    TapeValue,
    UnknownValue,
    Value,
)

_CATCHING = frozenset({"assertRaises", "assertRaisesRegex", "raises", "suppress"})


def execute_with(machine: Machine, frame: Frame, node: ast.With) -> Signal | None:
    """Enter the contexts one by one, run the body, leave them in reverse."""
    return _enter(machine, frame, node, 0)


def _enter(machine: Machine, frame: Frame, node: ast.With, position: int) -> Signal | None:
    if position == len(node.items):
        return machine.execute(node.body, frame)
    item = node.items[position]
    if _catches(item.context_expr):
        return _enter_catching(machine, frame, node, position)
    context = machine.evaluate(item.context_expr, frame)
    frame.node = item.context_expr
    if isinstance(context, Generator):
        return _generator_context(machine, frame, node, position, context)
    entered, leave = _enter_value(machine, item.context_expr, context)
    _bind(machine, frame, item, entered)
    try:
        signal = _enter(machine, frame, node, position + 1)
    except BaseException:
        if isinstance(leave, (TapeValue, Record)):
            _leave(machine, leave)
        raise
    frame.node = item.context_expr
    _leave(machine, leave)
    return signal


def _catches(context: ast.expr) -> bool:
    """Whether an exception ends the block, as its author expects: ``assertRaises``, ``pytest.raises``, ``suppress``."""
    function = context.func if isinstance(context, ast.Call) else None
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in _CATCHING


def _enter_catching(machine: Machine, frame: Frame, node: ast.With, position: int) -> Signal | None:
    context = machine.evaluate(node.items[position].context_expr, frame)
    _bind(machine, frame, node.items[position], context)
    depth, waiting = len(machine.frames), len(machine.handlers)
    machine.handlers.append(("BaseException",))
    try:
        return _enter(machine, frame, node, position + 1)
    except Raised:
        del machine.frames[depth:]
        return None
    finally:
        del machine.handlers[waiting:]


def _bind(machine: Machine, frame: Frame, item: ast.withitem, value: Value) -> None:
    from warplint.trace.host.assignment import bind_target

    if item.optional_vars is not None:
        bind_target(machine, frame, item.optional_vars, value)


def _enter_value(machine: Machine, node: ast.expr, context: Value) -> tuple[Value, Value]:
    """What ``__enter__`` gives, and what has to be left at the end."""
    from warplint.trace.host.warp_api.graphs import begin
    from warplint.trace.host.warp_api.tapes import enter_tape, new_tape

    if isinstance(context, TapeValue):
        enter_tape(machine, context)
        return context, context
    if isinstance(context, Instance):
        if context.cls.find("__enter__"):
            entered = machine.call(machine.parts.get_attribute(machine, context, "__enter__"))
            return entered, context
        if context.tape is not None:
            enter_tape(machine, context.tape)
            return context, context.tape
        return context, None
    if isinstance(context, Record):
        if context.kind == "capture":
            begin(machine)
        return context.attributes.get("__enter__", context), context
    if isinstance(context, UnknownValue) and _names_tape(node):
        tape = new_tape(machine)
        enter_tape(machine, tape)
        return tape, tape
    if isinstance(context, External):
        return UnknownValue(f"the context {context.path}"), None
    return context, None


def _names_tape(node: ast.expr) -> bool:
    """``with self.tape:`` over something unknown: a tape that came from elsewhere."""
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name.lower().endswith("tape")


def _leave(machine: Machine, context: Value) -> None:
    from warplint.trace.host.warp_api.graphs import end
    from warplint.trace.host.warp_api.tapes import leave_tape

    if isinstance(context, TapeValue):
        leave_tape(machine, context)
    elif isinstance(context, Instance) and (context.cls.find("__exit__") or context.tape is not None):
        machine.call(machine.parts.get_attribute(machine, context, "__exit__"), [None, None, None])
    elif isinstance(context, Record) and context.kind == "capture":
        context.attributes["graph"] = end(machine)


def _generator_context(
    machine: Machine, frame: Frame, node: ast.With, position: int, generator: Generator
) -> Signal | None:
    """``@contextmanager``: the body of the ``with`` runs where the generator yields."""
    result: list[Signal | None] = []
    outer = machine.frames

    def on_yield(value: Value) -> Value:
        if result:
            return None
        inner, machine.frames = machine.frames, outer
        try:
            _bind(machine, frame, node.items[position], value)
            result.append(_enter(machine, frame, node, position + 1))
        finally:
            machine.frames = inner
        return None

    machine.frames = list(outer)
    try:
        machine.parts.run_generator(machine, generator, on_yield)
    finally:
        machine.frames = outer
    if not result:
        return _enter(machine, frame, node, position + 1)
    return result[0]

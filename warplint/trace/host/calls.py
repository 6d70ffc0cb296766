"""Calls: evaluates arguments, binds parameters, enters functions of the project, hands the rest to the models."""

from __future__ import annotations

import ast
from collections.abc import Callable

from warplint.trace.host.classes import instantiate
from warplint.trace.host.facts import CallShape, Signature
from warplint.trace.host.library.table import model_of
from warplint.trace.host.machine import Call, Frame, Machine
from warplint.trace.host.values import (
    Bound,
    Class,
    ClassMethod,
    Environment,
    External,
    Function,
    Generator,
    Instance,
    Native,
    StaticMethod,
    TypeExpression,
    UnknownValue,
    Value,
    Vector,
    WarpFunction,
    unknown_from,
)

_RECURSION = 8
_BLIND_RECURSION = 2
"""How often a function may be entered within itself: with known arguments, and with an unknown one among them."""

_QUIET = frozenset({"print", "len", "isinstance", "format", "debug", "info", "warning", "error", "log"})


def evaluate_call(machine: Machine, frame: Frame, node: ast.Call) -> Value:
    """A call expression."""
    shape = machine.caches.call_shape_of(node)
    callee = machine.evaluate(node.func, frame) if shape.special is None else _special(frame, shape.special)
    if not (shape.asserts or shape.shows):
        return _called(machine, frame, node, callee, shape)
    machine.assertions += shape.asserts
    machine.showings += shape.shows
    try:
        return _called(machine, frame, node, callee, shape)
    finally:
        machine.assertions -= shape.asserts
        machine.showings -= shape.shows


def _called(machine: Machine, frame: Frame, node: ast.Call, callee: Value, shape: CallShape) -> Value:
    """Evaluate the arguments, then call."""
    complete = True
    if shape.starred:
        args, complete = _starred(machine, frame, node)
    else:
        args = [machine.evaluate(argument, frame) for argument in node.args]
    kwargs: dict[str, Value] = {}
    for keyword in node.keywords:
        value = machine.evaluate(keyword.value, frame)
        if keyword.arg is not None:
            kwargs[keyword.arg] = value
        elif isinstance(value, dict):
            kwargs.update({str(key): item for key, item in value.items()})
        else:
            complete = False
    frame.node = node
    return call_value(machine, callee, Call(args, kwargs, node, complete))


def _special(frame: Frame, name: str) -> Value:
    """``super()`` and the functions that give a scope's variables."""
    if name == "super":
        from warplint.trace.host.values import SuperValue

        return Native("super", lambda machine, call: SuperValue(frame.owner, frame.receiver))
    scope = frame.module.environment if name == "globals" else frame.environment
    return Native(name, lambda machine, call: scope.variables)


def _starred(machine: Machine, frame: Frame, node: ast.Call) -> tuple[list[Value], bool]:
    args: list[Value] = []
    complete = True
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            items = machine.iterate(machine.evaluate(argument.value, frame))
            if items is None:
                complete = False
            else:
                args.extend(items)
        else:
            args.append(machine.evaluate(argument, frame))
    return args, complete


def call_value(machine: Machine, callee: Value, call: Call) -> Value:
    """Call any value."""
    if isinstance(callee, Native):
        return callee.run(machine, call)
    if isinstance(callee, Function):
        return call_function(machine, callee, call)
    if isinstance(callee, Bound):
        receiver = callee.receiver
        inner = Call([receiver, *call.args], call.kwargs, call.node, call.complete)
        if isinstance(callee.function, Function):
            return call_function(machine, callee.function, inner, receiver)
        return call_value(machine, callee.function, inner)
    if isinstance(callee, Class):
        return instantiate(machine, callee, call)
    if isinstance(callee, External):
        model = model_of(callee.path)
        if model is not None:
            return model(machine, call)
        result = outside_call(machine, callee.path, call)
        result.foreign = True
        return result
    if isinstance(callee, (StaticMethod, ClassMethod)):
        return call_value(machine, callee.function, call)
    if isinstance(callee, Instance) and callee.cls.find("__call__"):
        return call_value(machine, machine.parts.get_attribute(machine, callee, "__call__"), call)
    if isinstance(callee, TypeExpression):
        return Vector("vector", tuple(call.args))
    if isinstance(callee, WarpFunction):
        return unknown_from("a Warp function called on the host", *call.values)
    if isinstance(callee, Instance) and callee.cls.has_outside_base and callee.cls.find("forward"):
        return call_value(machine, machine.parts.get_attribute(machine, callee, "forward"), call)
    result = outside_call(machine, "something unknown", call)
    if isinstance(callee, UnknownValue):
        result.taints |= callee.taints
        result.foreign = callee.foreign
    return result


def outside_call(machine: Machine, name: str, call: Call) -> UnknownValue:
    """A call of code outside the project: it has no effect, but what it got escapes, and its result is unknown."""
    from warplint.trace.host.warp_api.arrays import use_views

    if name.rpartition(".")[2] not in _QUIET:
        use_views(machine, *call.values)
        machine.escape(f"handed to {name}", call.values)
    return unknown_from(f"the result of {name}", *call.values)


def call_function(machine: Machine, function: Function, call: Call, receiver: Value = None) -> Value:
    """Enter a function of the project."""
    node = function.node
    if len(machine.frames) > machine.settings.depth or _recursion(machine, function) >= _deepest(call):
        return unknown_from("a call nested too deeply", *call.values)
    key = _memo_key(call) if function.memo is not None else None
    if function.memo is not None and key is not None and key in function.memo:
        return function.memo[key]
    environment = Environment(function.module, function.closure)
    if isinstance(node, ast.Lambda):
        bind_parameters(machine, function, call, environment)
        result = _run(machine, function, environment, receiver, lambda frame: machine.evaluate(node.body, frame))
    else:
        facts = machine.caches.facts_of(node, function.module.module)
        environment.global_names, environment.nonlocal_names = facts.global_names, facts.nonlocal_names
        bind_parameters(machine, function, call, environment)
        machine.entered.add(node)
        if facts.yields:
            if receiver is not None:
                environment.variables.setdefault("__receiver__", receiver)
            return Generator(function, environment)
        result = _run(machine, function, environment, receiver, lambda frame: _body(machine, frame, node))
    if function.memo is not None and key is not None:
        function.memo[key] = result
    return result


def run_generator(machine: Machine, generator: Generator, on_yield: Callable[[Value], Value]) -> None:
    """Run a generator's body; each ``yield`` calls back."""
    function = generator.function
    node = function.node
    assert not isinstance(node, ast.Lambda)
    receiver = generator.environment.variables.pop("__receiver__", None)
    frame = Frame(generator.environment, function.name, node.body[0], function.owner)
    frame.receiver = receiver
    frame.on_yield = on_yield
    generator.consumed = 1 << 30
    machine.frames.append(frame)
    machine.execute(node.body, frame)
    machine.frames.pop()


def _run(
    machine: Machine,
    function: Function,
    environment: Environment,
    receiver: Value,
    body: Callable[[Frame], Value],
) -> Value:
    node = function.node
    frame = Frame(
        environment, function.name, node.body if isinstance(node, ast.Lambda) else node.body[0], function.owner
    )
    frame.receiver = receiver
    frames = machine.frames
    frames.append(frame)
    depth = len(frames)
    machine.steps += 1
    try:
        return body(frame)
    finally:
        del frames[depth - 1 :]


def _body(machine: Machine, frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Value:
    signal = machine.execute(node.body, frame)
    if signal is not None and signal.kind == "return":
        return signal.value
    return UnknownValue(f"raised {frame.astray}") if frame.astray else None


def _deepest(call: Call) -> int:
    return _BLIND_RECURSION if any(isinstance(value, UnknownValue) for value in call.values) else _RECURSION


def _recursion(machine: Machine, function: Function) -> int:
    module, name = function.module, function.name
    if name == "<lambda>":
        return 0
    depth = 0
    for frame in machine.frames:
        if frame.function == name and frame.module is module:
            depth += 1
    return depth


def _memo_key(call: Call) -> object | None:
    key = (tuple(call.args), tuple(sorted(call.kwargs.items())))
    try:
        hash(key)
    except TypeError:
        return None
    return key


def bind_parameters(machine: Machine, function: Function, call: Call, environment: Environment) -> None:
    """Bind arguments to parameters; what is missing without a default is unknown."""
    signature = machine.caches.signature_of(function.node)
    names, variables, given = signature.positional, environment.variables, call.args
    variables.update(zip(names, given, strict=False))
    if signature.rest is not None:
        variables[signature.rest] = tuple(given[len(names) :])
    surplus: dict[str, Value] = {}
    for name, value in call.kwargs.items():
        (variables if name in names or name in signature.keyword_only else surplus)[name] = value
    if len(variables) < len(names) + (signature.rest is not None) + len(signature.keyword_only):
        _bind_defaults(function, signature, call, variables)
    if signature.keywords is not None:
        variables[signature.keywords] = surplus


def _bind_defaults(function: Function, signature: Signature, call: Call, variables: dict[str, Value]) -> None:
    first = len(signature.positional) - len(function.defaults)
    for position, name in enumerate(signature.positional):
        if name not in variables:
            known = position >= first and call.complete
            variables[name] = function.defaults[position - first] if known else _missing(call, name)
    for name in signature.keyword_only:
        if name not in variables:
            known = name in function.keyword_defaults
            variables[name] = function.keyword_defaults[name] if known else _missing(call, name)


def _missing(call: Call, name: str) -> UnknownValue:
    """An argument that was not given, though there is no default: the caller of a root knows it."""
    return UnknownValue(f"the argument {name}", foreign=call.complete)

"""``wp.map`` and the operators of arrays: launches of kernels that Warp writes itself, recorded like any other.

Such a kernel is written here as source, ``out[i] = f(a[i], b[i])``, so that the analysis of kernels sees what it does.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from warplint.syntax import walk
from warplint.trace import events
from warplint.trace.host.machine import Call, Machine
from warplint.trace.host.memory import ArrayValue
from warplint.trace.host.values import (
    Bound,
    Environment,
    External,
    Function,
    KernelValue,
    Native,
    UnknownValue,
    Value,
    WarpFunction,
    WarpModule,
    unknown_from,
)
from warplint.trace.host.warp_api.arrays import host_write
from warplint.trace.host.warp_api.launches import launch
from warplint.trace.host.warp_api.modules import declare_content, warp_module

_SYMBOLS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "*",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}


def array_operator(
    machine: Machine, kind: type[ast.operator] | str, operands: Sequence[Value], into: ArrayValue | None = None
) -> Value:
    """``a + b`` on arrays, ``-a``, ``a += b`` (``into``): a fresh array, or the left one."""
    names = [f"a{position}" for position in range(len(operands))]
    elements = [f"{name}[i]" if isinstance(v, ArrayValue) else name for name, v in zip(names, operands, strict=False)]
    if isinstance(kind, str):
        expression, label = f"-{elements[0]}", "neg"
    else:
        expression, label = f"{elements[0]} {_SYMBOLS[kind]} {elements[1]}", kind.__name__.lower()
    kernel = _written(machine, f"map_{label}", names, operands, expression, {})
    return _run(machine, kernel, operands, into)


def _map(machine: Machine, call: Call) -> Value:
    """``wp.map(func, *inputs, out=)``."""
    function, operands = call.get(0, "func"), list(call.args[1:])
    out = call.kwargs.get("out")
    if out is None and _declares_python_float(function):
        out = _result(machine, operands, gradient=False)
    if flag_true(call.kwargs.get("return_kernel")) or any(isinstance(operand, UnknownValue) for operand in operands):
        return unknown_from("a map over something unknown", *operands)
    names = [f"a{position}" for position in range(len(operands))]
    elements = [f"{name}[i]" if isinstance(v, ArrayValue) else name for name, v in zip(names, operands, strict=False)]
    plain = function if isinstance(function, Function) else None
    if isinstance(function, Function) and not isinstance(function.node, ast.Lambda):
        function = WarpFunction(function)
    if isinstance(function, Bound):
        return unknown_from("a map of a bound method", *operands)
    expression = f"mapped({', '.join(elements)})"
    if isinstance(function, Function) and isinstance(function.node, ast.Lambda):
        substituted = _inline(function.node, elements)
        if substituted is None:
            return unknown_from("a map of a lambda", *operands)
        expression = substituted
        kernel = _written(machine, "map_func", names, operands, expression, {}, function.closure, plain)
    elif isinstance(function, (WarpFunction, External, Native)):
        mapped = {"mapped": function}
        kernel = _written(machine, "map_func", names, operands, expression, mapped, None, plain)
    else:
        return unknown_from("a map of something unknown", *operands)
    if isinstance(out, (list, tuple)) or (out is not None and not isinstance(out, ArrayValue)):
        machine.escape("wp.map with several outputs", [out, *operands])
        return out
    return _run(machine, kernel, operands, out)


def _declares_python_float(function: Value) -> bool:
    """Whether this is a ``wp.func`` with ``-> float``, Python's type: the result then has no gradient.

    Measured on 1.19; with ``wp.float32``, without an annotation, and for a plain function it has one.
    """
    node = function.function.node if isinstance(function, WarpFunction) else None
    returns = node.returns if isinstance(node, ast.FunctionDef) else None
    return isinstance(returns, ast.Name) and returns.id == "float"


def flag_true(value: Value) -> bool:
    """Whether an argument is known to be true."""
    return value is True


def _inline(node: ast.Lambda, elements: Sequence[str]) -> str | None:
    """The body of a lambda with its parameters replaced by the elements."""
    parameters = [parameter.arg for parameter in node.args.args]
    if len(parameters) != len(elements):
        return None
    replacements = dict(zip(parameters, elements, strict=False))

    class Substitute(ast.NodeTransformer):
        def visit_Name(self, name: ast.Name) -> ast.expr:
            text = replacements.get(name.id)
            return name if text is None else ast.parse(text, mode="eval").body

    body = ast.parse(ast.unparse(node.body), mode="eval")
    return ast.unparse(ast.fix_missing_locations(Substitute().visit(body)))


def _written(
    machine: Machine,
    name: str,
    names: Sequence[str],
    operands: Sequence[Value],
    expression: str,
    variables: dict[str, Value],
    closure: Environment | None = None,
    plain: Function | None = None,
) -> KernelValue:
    """The kernel as source; it stands where the map is written."""
    parameters = ", ".join(
        f"{name}: wp.array(dtype=float)" if isinstance(value, ArrayValue) else f"{name}: float"
        for name, value in zip(names, operands, strict=False)
    )
    text = f"def {name}({parameters}, out: wp.array(dtype=float)):\n    i = wp.tid()\n    out[i] = {expression}\n"
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.FunctionDef)
    here = machine.frame.node
    for item in walk(node):
        if hasattr(item, "lineno"):
            ast.copy_location(item, here)
    frame = machine.frame
    scope = Environment(frame.module, closure or frame.environment.closure, {"wp": External("warp"), **variables})
    place = f"{name}:{frame.module.module.path}:{getattr(here, 'lineno', 0)}:{expression}"
    module = warp_module(machine, name if name != "map_func" else place)  # Warp names a function's by its source
    key = f"{place}:{_values_read(plain, module) if plain is not None else ''}"
    kernel = KernelValue(Function(node, frame.module, scope), module, key, None, stable=None)
    declare_content(machine, module, key if name == "map_func" else name)
    machine.kernels[key] = kernel
    return kernel


def _values_read(function: Function, module: WarpModule) -> str:
    """The plain numbers that a mapped lambda or function reads: Warp builds its module again where they differ.

    Measured on 1.19: Warp keeps the first function for a text. What counts are the variables around that one as they
    are now: those of a loop in the same call change, those of a later call are never looked at. What a ``wp.func``
    reads is taken over once.
    """
    names = {item.id for item in walk(function.node) if isinstance(item, ast.Name)}
    values: dict[str, Value] = {}
    module.mapped_in = module.mapped_in or function.closure
    scope: Environment | None = module.mapped_in
    while scope is not None:
        for name in names & scope.variables.keys():
            values.setdefault(name, scope.variables[name])
        scope = scope.parent
    plain = {name: value for name, value in sorted(values.items()) if isinstance(value, (bool, int, float))}
    return ", ".join(f"{name}={value!r}" for name, value in plain.items())


def _run(machine: Machine, kernel: KernelValue, operands: Sequence[Value], into: Value) -> Value:
    arrays = [operand for operand in operands if isinstance(operand, ArrayValue)]
    out = into
    if out is None:
        flags = [array.requires_grad for array in arrays]
        out = _result(machine, operands, gradient=True if True in flags else None if None in flags else False)
    if any(array.gradient for array in (*arrays, *([out] if isinstance(out, ArrayValue) else []))):
        return _on_gradients(machine, arrays, out)
    launch(machine, kernel, [*operands, out], arrays[0].shape if arrays else None)
    return out


def _result(machine: Machine, operands: Sequence[Value], gradient: bool | None) -> ArrayValue:
    """The array that a map makes for its result."""
    first = next((operand for operand in operands if isinstance(operand, ArrayValue)), None)
    return machine.allocate(
        "map",
        gradient,
        shape=first.shape if first is not None else None,
        dtype=first.dtype if first is not None else None,
    )


def _on_gradients(machine: Machine, arrays: Sequence[ArrayValue], out: Value) -> Value:
    """Arithmetic with gradients (``x -= lr * x.grad``): an update by hand, no part of the chain."""
    for array in arrays:
        if array.gradient:
            machine.emit(events.GradRead, array=array.snapshot(), how=machine.reading("launch"))
    if isinstance(out, ArrayValue):
        host_write(machine, out, "map")
    return out


MODELS: dict[str, Callable[[Machine, Call], Value]] = {"warp.map": _map}

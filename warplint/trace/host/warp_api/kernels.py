"""Kernels, functions and structs: what their decorators declare, and in which module."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from warplint.kernels.screen import has_fault_trigger
from warplint.syntax import walk
from warplint.trace import events
from warplint.trace.host.facts import is_open
from warplint.trace.host.machine import Call, Frame, Machine
from warplint.trace.host.memory import ArrayValue, NumpyValue
from warplint.trace.host.values import (
    ArrayType,
    Class,
    Deferred,
    Environment,
    Function,
    Instance,
    KernelValue,
    Native,
    UnknownValue,
    Value,
    Vector,
    WarpFunction,
)
from warplint.trace.host.warp_api.hashing import varying_at_declaration
from warplint.trace.host.warp_api.modules import declare_content, module_for
from warplint.trace.host.warp_api.types import dtype_name

_WORD = re.compile(r"\w+")


def _kernel(machine: Machine, call: Call) -> Value:
    """``@wp.kernel``, ``@wp.kernel(…)``, ``wp.kernel(f)``."""
    function = call.get(0, "f")
    options = {name: value for name, value in call.kwargs.items() if name != "f"}
    if isinstance(function, Function) and not isinstance(function.node, ast.Lambda):
        return declare_kernel(machine, function, options)
    if function is not None:
        return UnknownValue("a kernel made from something unknown")
    return Native("kernel", lambda machine, inner: _kernel(machine, Call(inner.args, {**options, **inner.kwargs})))


def _kernel_class(machine: Machine, call: Call) -> Value:
    """``wp.Kernel(func=, key=, module=)``."""
    function = call.get(0, "func")
    if isinstance(function, Function) and not isinstance(function.node, ast.Lambda):
        return declare_kernel(machine, function, {"module": call.get(2, "module")})
    return UnknownValue("a kernel made from something unknown")


def declare_kernel(machine: Machine, function: Function, options: Mapping[str, Value]) -> KernelValue:
    """A kernel comes into being: its module is created if it is the first of it."""
    node = function.node
    assert isinstance(node, ast.FunctionDef)
    captured = _captured(machine, function, node)
    key = _content_key(function, node, {**_values_read(machine, function, node), **captured}, options)
    wanted = options.get("module")
    unique = wanted == "unique"
    module = module_for(machine, wanted, function.module, f"{node.name}_{key}")
    kernel = KernelValue(
        function=function,
        module=module,
        key=key,
        decorator=_decorator(machine, function, node),
        options=dict(options),
        unique=unique,
        captures=bool(captured),
        generic=machine.caches.is_generic(node) and not _names_own_class(function, node),
        stable=_is_stable(machine, function, captured),
    )
    if not kernel.generic:  # else its instances are what is built
        declare_content(machine, module, key)
    machine.kernels[key] = kernel
    machine.emit(events.KernelDeclared, kernel=event_kernel(kernel), varying=varying_at_declaration(machine, function))
    return kernel


def event_kernel(kernel: KernelValue) -> events.Kernel:
    """The kernel as events speak of it, with the options in effect for it now."""
    if kernel.described is None or kernel.described[0] != kernel.module.revision:
        kernel.described = kernel.module.revision, _describe(kernel)
    return kernel.described[1]


def _describe(kernel: KernelValue) -> events.Kernel:
    module = kernel.function.module.module
    own = kernel.options.get("module_options")
    effective = {**kernel.module.options, **(own if isinstance(own, dict) else {})}
    backward = kernel.options.get("enable_backward")
    if backward is None:
        backward = effective.get("enable_backward", True)
    unroll = effective.get("max_unroll", 16)
    node = kernel.function.node
    span = module.span(node)
    return events.Kernel(
        name=kernel.name,
        span=span,
        decorator=module.span(kernel.decorator) if kernel.decorator is not None else span,
        module=kernel.module.name,
        key=kernel.key,
        unique=kernel.unique,
        enable_backward=None if isinstance(backward, UnknownValue) else bool(backward),
        max_unroll=unroll if isinstance(unroll, int) else None,
        generic=kernel.generic,
        module_options={name: value for name, value in effective.items() if not isinstance(value, UnknownValue)},
        has_own_options=bool(own),
        captures=kernel.captures,
        stable=kernel.stable,
        has_fault_trigger=_has_fault_trigger(kernel),
    )


def _has_fault_trigger(kernel: KernelValue) -> bool | None:
    """Whether a kernel of the program's own file could have a fault; of other files' kernels nobody asks."""
    node = kernel.function.node
    is_own = kernel.function.module.imported is None
    return has_fault_trigger(node) if is_own and isinstance(node, ast.FunctionDef) else None


def _decorator(machine: Machine, function: Function, node: ast.FunctionDef) -> ast.expr | None:
    """What makes a kernel of the function: its decorator, else the call of ``wp.kernel`` in its file."""
    here = machine.frame.node
    if isinstance(here, ast.expr) and here in node.decorator_list:
        return here
    if node.decorator_list:
        return node.decorator_list[0]
    return here if isinstance(here, ast.Call) and machine.frame.module is function.module else None


def _captured(machine: Machine, function: Function, node: ast.FunctionDef) -> dict[str, Value]:
    """The values of enclosing functions that the body uses, as they are now."""
    captured: dict[str, Value] = {}
    if function.closure.parent is None:
        return captured
    words = set(_WORD.findall(function.module.module.text(node)))
    scope: Environment | None = function.closure
    while scope is not None and scope.parent is not None:
        for name in words & scope.variables.keys():
            if name in machine.caches.free_names_of(node):
                captured.setdefault(name, scope.variables[name])
        scope = scope.parent
    return captured


def _names_own_class(function: Function, node: ast.FunctionDef) -> bool:
    """Whether a parameter's type is a class of the program's: one called ``Scalar`` is no type variable of Warp's."""
    annotations = [parameter.annotation for parameter in node.args.args if parameter.annotation is not None]
    names = {item.id for each in annotations for item in walk(each) if isinstance(item, ast.Name)}
    scope: Environment | None = function.closure
    while scope is not None:
        if any(isinstance(scope.variables.get(name), Class) and is_open(ast.Name(name)) for name in names):
            return True
        scope = scope.parent
    return False


def _values_read(machine: Machine, function: Function, node: ast.FunctionDef) -> dict[str, Value]:
    """What else makes the content of a kernel that is declared more than once: globals, attributes of captured objects.

    A kernel at the top level is declared once, so that nothing has to be told apart.
    """
    if not machine.loops and not any(frame.function != "<module>" for frame in machine.frames):
        return {}
    names = machine.caches.free_names_of(node)
    found: dict[str, Value] = {}
    scope: Environment | None = function.closure
    while scope is not None:
        for name in names & scope.variables.keys():
            value = scope.variables[name]
            if isinstance(value, Instance):
                for attribute in _attributes_read(node, name) & value.attributes.keys():
                    found.setdefault(f"{name}.{attribute}", value.attributes[attribute])
            elif scope.parent is None and isinstance(value, (bool, int, float, str, tuple)):
                found.setdefault(name, value)
        scope = scope.parent
    return found


def _attributes_read(node: ast.FunctionDef, name: str) -> set[str]:
    return {
        item.attr
        for item in walk(node)
        if isinstance(item, ast.Attribute) and isinstance(item.value, ast.Name) and item.value.id == name
    }


def instantiate(machine: Machine, kernel: KernelValue, types: Sequence[Value] | Mapping[str, Value]) -> None:
    """A generic kernel gets an instance for the types of these arguments (or for these types), unless it has it."""
    parameters = kernel.function.node.args.args
    given = types if isinstance(types, Mapping) else dict(zip((p.arg for p in parameters), types, strict=False))
    open_ones = [parameter for parameter in parameters if is_open(parameter.annotation)]
    names = [
        _type_name(given.get(parameter.arg), any_rank=isinstance(parameter.annotation, (ast.Name, ast.Attribute)))
        for parameter in open_ones
    ]
    if any(name is None for name in names):
        kernel.open_ended = True
    elif not kernel.open_ended:
        declare_content(machine, kernel.module, f"{kernel.key}<{', '.join(map(str, names))}>")


_SCALARS = re.compile(r"(float|int|uint)\d+|bool|float|int")


def _type_name(value: Value, *, any_rank: bool = False) -> str | None:
    """What an instance is told apart by; scalars of any type are one, since a plain number has no type of its own.

    ``any_rank``: the parameter takes arrays of any number of dimensions, which then counts as well.
    """
    if isinstance(value, (ArrayValue, NumpyValue)):
        if value.dtype is None or (any_rank and value.shape is None):
            return None
        rank = f" in {len(value.shape)}" if any_rank and value.shape is not None else ""
        return f"array of {_canonical(value.dtype)}{rank}"
    if isinstance(value, Vector):
        return _canonical(value.type)
    if isinstance(value, (bool, int, float)):
        return "scalar"
    if isinstance(value, ArrayType):
        return None if value.element is None else f"array of {_canonical(value.element)}"
    name = dtype_name(value)
    if name is not None and "array" in name:
        return None
    return None if name is None else "scalar" if _SCALARS.fullmatch(name) else _canonical(name)


def _canonical(name: str) -> str:
    """``vec3`` and ``vec3f`` are one type."""
    return re.sub(r"^((?:vec|mat)[\d]+|quat|transform|spatial_vector|spatial_matrix)f$", r"\1", name)


def _content_key(
    function: Function, node: ast.FunctionDef, captured: Mapping[str, Value], options: Mapping[str, Value]
) -> str:
    """What tells kernels of different content apart: place and text of the definition, captured values, options."""
    source = function.module.module.source
    digest = hashlib.blake2b(digest_size=8)
    digest.update(f"{source.path}:{node.lineno}:{node.col_offset}\n".encode())
    for name in sorted(captured):
        digest.update(f"{name}={fingerprint(captured[name])}\n".encode())
    for name in sorted(options):
        if name != "module":
            digest.update(f"{name}:{fingerprint(options[name])}\n".encode())
    return digest.hexdigest()


_CALLS = 4
"""How deep the functions that a kernel calls are followed for what they capture."""


def fingerprint(value: Value, depth: int = _CALLS) -> str:
    """What tells a captured value from another one in a kernel's content; functions by place and what they capture."""
    if isinstance(value, (bool, int, float, str, bytes, type(None))):
        return repr(value)
    if isinstance(value, (tuple, list)):
        return "(" + ",".join(fingerprint(item, depth) for item in value) + ")"
    if isinstance(value, dict):
        return "{" + ",".join(f"{name}:{fingerprint(item, depth)}" for name, item in value.items()) + "}"
    if isinstance(value, WarpFunction):
        return f"func:{_function_print(value.function, depth)}"
    if isinstance(value, Function):
        return f"function:{_function_print(value, depth)}"
    if isinstance(value, Class):
        return f"class:{value.name}"
    if isinstance(value, Deferred):
        return f"import:{value.module.name}.{value.name}"
    return getattr(value, "path", None) or type(value).__name__


def _function_print(function: Function, depth: int) -> str:
    """Place of a function, and the values that it captures: its code is built into the kernel's module."""
    node, place = function.node, f"{function.module.module.path}:{function.node.lineno}:{function.node.col_offset}"
    if depth == 0 or isinstance(node, ast.AsyncFunctionDef) or function.closure.parent is None:
        return place
    return f"{place}{fingerprint(captured_values(function), depth - 1)}"


def captured_values(function: Function) -> dict[str, Value]:
    """The values of enclosing functions that a function's body uses, as they are now, in the order of their names."""
    node = function.node
    scope: Environment | None = function.closure
    if scope is None or scope.parent is None:
        return {}
    names = {item.id for item in walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load)}
    captured: dict[str, Value] = {}
    while scope is not None and scope.parent is not None:
        for name in names & scope.variables.keys() - captured.keys():
            captured[name] = scope.variables[name]
        scope = scope.parent
    return dict(sorted(captured.items()))


def _is_stable(machine: Machine, function: Function, captured: Mapping[str, Value]) -> bool | None:
    """Declared exactly once with fixed content in any run: at module level or in a class body, outside any loop."""
    if captured or machine.loops:
        return False
    at_top = function.closure.parent is None
    in_function = any(frame.function != "<module>" for frame in machine.frames)
    if at_top and not in_function:
        return True
    return False if _is_remembered(function) else None


def _is_remembered(function: Function) -> bool:
    """Whether it is defined in a function whose results are kept (``lru_cache``): what makes kernels on demand."""
    node, module = function.node, function.module.module
    return b"cache" in module.source.data and any(
        isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))
        and item.lineno < node.lineno <= (item.end_lineno or 0)
        and any("cache" in ast.unparse(decorator) for decorator in item.decorator_list)
        for item in walk(module.tree)
    )


def _func(machine: Machine, call: Call) -> Value:
    """``@wp.func``: functions of one name are overloads of each other."""
    function = call.get(0, "f")
    if isinstance(function, Function):
        made = WarpFunction(function)
        _join_overloads(machine, function, made)
        module_for(machine, call.kwargs.get("module"), function.module, function.name)
        return made
    options = dict(call.kwargs)
    return Native("func", lambda machine, inner: _func(machine, Call(inner.args, {**options, **inner.kwargs})))


def _join_overloads(machine: Machine, function: Function, made: WarpFunction) -> None:
    before = machine.frame.environment.variables.get(function.name)
    if isinstance(before, WarpFunction) and before.function.node is not function.node:
        made.overloads = [before, *before.overloads]


def _func_native(machine: Machine, call: Call) -> Value:
    adjoint = call.get(1, "adj_snippet") is not None

    def declare(machine: Machine, inner: Call) -> Value:
        function = inner.get(0, "f")
        if isinstance(function, Function):
            return WarpFunction(function, native=True, native_adjoint=adjoint)
        return UnknownValue("a native function")

    return Native("func_native", declare)


def _custom(attribute: str) -> Callable[[Machine, Call], Value]:
    """``@wp.func_grad(f)`` and ``@wp.func_replay(f)``: attached to ``f``."""

    def outer(machine: Machine, call: Call) -> Value:
        target = call.get(0, "forward_fn")

        def declare(machine: Machine, inner: Call) -> Value:
            function = inner.get(0, "f")
            if isinstance(target, WarpFunction) and isinstance(function, Function):
                setattr(target, attribute, function)
            return function

        return Native(attribute, declare)

    return outer


def _struct(machine: Machine, call: Call) -> Value:
    cls = call.get(0, "c")
    if isinstance(cls, Class):
        cls.is_struct = True
        return cls
    return Native("struct", _struct)


def _overload(machine: Machine, call: Call) -> Value:
    """``wp.overload(kernel, types)``; as a decorator it returns the kernel it completes."""
    kernel = call.get(0, "kernel")
    if isinstance(kernel, Function):
        before = machine.frame.environment.variables.get(kernel.name)
        if not isinstance(before, KernelValue):
            return UnknownValue("an overload of something unknown")
        instantiate(machine, before, _declared_types(machine, kernel))
        return before
    if isinstance(kernel, KernelValue) and kernel.generic:
        types = call.get(1, "arg_types")
        listed = types if isinstance(types, dict) else machine.iterate(types)
        instantiate(machine, kernel, listed if listed is not None else ())
    return kernel


def _declared_types(machine: Machine, function: Function) -> dict[str, Value]:
    frame = Frame(function.closure, function.name, function.node)
    return {
        parameter.arg: machine.evaluate(parameter.annotation, frame)
        for parameter in function.node.args.args
        if parameter.annotation is not None
    }


DECORATORS: dict[str, Callable[[Machine, Call], Any]] = {
    "warp.kernel": _kernel,
    "warp.func": _func,
    "warp.struct": _struct,
    "warp.overload": _overload,
}

MODELS: dict[str, Callable[[Machine, Call], Value]] = {
    "warp.kernel": _kernel,
    "warp.func": _func,
    "warp.func_native": _func_native,
    "warp.func_grad": _custom("gradient"),
    "warp.func_replay": _custom("replay"),
    "warp.struct": _struct,
    "warp.overload": _overload,
    "warp.Kernel": _kernel_class,
}

"""Kernels, functions and structs: what their decorators declare, and in which module."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from warplint.kernels.screen import has_fault_trigger
from warplint.trace import events
from warplint.trace.machine import Call, Machine
from warplint.trace.values import (
    Class,
    Deferred,
    Environment,
    Function,
    KernelValue,
    Native,
    UnknownValue,
    Value,
    WarpFunction,
)
from warplint.trace.warp_api.modules import declare_content, module_for

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
    name = options.get("name")
    key = _content_key(function, node, captured, options)
    wanted = options.get("module")
    unique = wanted == "unique"
    module = module_for(machine, wanted, function.module, f"{node.name}_{key}")
    kernel = KernelValue(
        function=function,
        module=module,
        key=key,
        decorator=_decorator(machine, node),
        options=dict(options),
        unique=unique,
        captures=bool(captured),
        generic=machine.caches.is_generic(node),
        stable=_is_stable(machine, function, captured),
    )
    declare_content(machine, module, key if not isinstance(name, str) else f"{key}/{name}")
    machine.kernels[key] = kernel
    machine.emit(events.KernelDeclared, kernel=event_kernel(kernel))
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
        max_unroll=unroll if isinstance(unroll, int) else 16,
        generic=kernel.generic,
        module_options={name: value for name, value in effective.items() if not isinstance(value, UnknownValue)},
        captures=kernel.captures,
        stable=kernel.stable,
        has_fault_trigger=has_fault_trigger(node) if isinstance(node, ast.FunctionDef) else None,
    )


def _decorator(machine: Machine, node: ast.FunctionDef) -> ast.expr | None:
    here = machine.frame.node
    if isinstance(here, ast.expr) and here in node.decorator_list:
        return here
    return node.decorator_list[0] if node.decorator_list else None


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


def _content_key(
    function: Function, node: ast.FunctionDef, captured: Mapping[str, Value], options: Mapping[str, Value]
) -> str:
    """What tells kernels of different content apart: place and text of the definition, captured values, options."""
    source = function.module.module.source
    digest = hashlib.blake2b(digest_size=8)
    digest.update(f"{source.path}:{node.lineno}:{node.col_offset}\n".encode())
    for name in sorted(captured):
        digest.update(f"{name}={_fingerprint(captured[name])}\n".encode())
    for name in sorted(options):
        if name != "module":
            digest.update(f"{name}:{_fingerprint(options[name])}\n".encode())
    return digest.hexdigest()


def _fingerprint(value: Value) -> str:
    if isinstance(value, (bool, int, float, str, bytes, type(None))):
        return repr(value)
    if isinstance(value, (tuple, list)):
        return "(" + ",".join(_fingerprint(item) for item in value) + ")"
    if isinstance(value, dict):
        return "{" + ",".join(f"{name}:{_fingerprint(item)}" for name, item in value.items()) + "}"
    if isinstance(value, WarpFunction):
        node = value.function.node
        return f"func:{value.function.module.module.path}:{node.lineno}:{node.col_offset}"
    if isinstance(value, Function):
        return f"function:{value.module.module.path}:{value.node.lineno}:{value.node.col_offset}"
    if isinstance(value, Class):
        return f"class:{value.name}"
    if isinstance(value, Deferred):
        return f"import:{value.module.name}.{value.name}"
    return getattr(value, "path", None) or type(value).__name__


def _is_stable(machine: Machine, function: Function, captured: Mapping[str, Value]) -> bool | None:
    """Declared exactly once with fixed content in any run: at module level or in a class body, outside any loop."""
    if captured or machine.loops:
        return False
    at_top = function.closure.parent is None
    in_function = any(frame.function != "<module>" for frame in machine.frames)
    if at_top and not in_function:
        return True
    return None


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
        return before if isinstance(before, KernelValue) else UnknownValue("an overload of something unknown")
    return kernel


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

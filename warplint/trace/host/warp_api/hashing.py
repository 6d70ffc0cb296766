"""What goes into the hash of a kernel, and differs from process to process: then no cache has the module.

Measured on 1.19: the hash is taken when the module is loaded, of the values that names have by then; ``wp.static``
alone is evaluated when the kernel is declared. Of the names in a body, those that a plain assignment in it binds are
left out. A parameter or the variable of a loop is not: a number outside that only has its name counts as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warplint.finding import Span
from warplint.syntax import walk
from warplint.trace.events import Varying
from warplint.trace.host.facts import names_bound_otherwise
from warplint.trace.host.machine import Frame, Machine
from warplint.trace.host.values import (
    Environment,
    Function,
    KernelValue,
    UnknownValue,
    Value,
    WarpFunction,
    WarpModule,
    taints_of,
)


def varying_at_declaration(machine: Machine, kernel: Function) -> tuple[Span, ...]:
    """The ``wp.static`` expressions of a kernel, and of what it calls, that give another value in each process."""
    found = (
        function.module.module.span(argument)
        for function, node in _hashed_with(machine, kernel)
        for argument in machine.caches.static_calls_of(node, function.module.module)
        if taints_of(machine.evaluate(argument, Frame(function.closure, function.name, argument)))
    )
    return tuple(dict.fromkeys(found))


def varying_at_load(machine: Machine, module: WarpModule) -> tuple[Varying, ...]:
    """Values in the hashes of a module's kernels that no other process has."""
    kernels = (kernel for kernel in machine.kernels.values() if kernel.module is module)
    return tuple(dict.fromkeys(value for kernel in kernels for value in _varying(machine, kernel)))


def _varying(machine: Machine, kernel: KernelValue) -> Iterator[Varying]:
    for function, node in _hashed_with(machine, kernel.function):
        varying = _varying_around(function)
        if varying:  # else nobody needs to look at the body
            free, bound = machine.caches.free_names_of(node), names_bound_otherwise(node)
            for name in sorted(varying.keys() & (free | bound)):
                made = _made_at(function, name) or varying[name]
                yield Varying(kernel.key, made, name if name in bound else "")


def _varying_around(function: Function) -> dict[str, Span]:
    """The names around a function whose values are others in each process, and where those come from."""
    found: dict[str, Span] = {}
    scope: Environment | None = function.closure
    while scope is not None:
        for name, value in scope.variables.items():
            if isinstance(value, UnknownValue) and value.taints:
                found.setdefault(name, min(value.taints))
        scope = scope.parent
    return found


def _hashed_with(machine: Machine, kernel: Function) -> Iterator[tuple[Function, ast.FunctionDef]]:
    """The kernel, and the functions that it calls: the hash of a kernel is made of all of them."""
    waiting, seen = [kernel], {kernel.node}
    while waiting:
        function = waiting.pop()
        node = function.node
        if not isinstance(node, ast.FunctionDef):
            continue
        yield function, node
        for value in _values_of(machine.caches.free_names_of(node), function):
            called = value.function if isinstance(value, WarpFunction) else None
            if called is not None and called.node not in seen:
                seen.add(called.node)
                waiting.append(called)


def _values_of(names: frozenset[str], function: Function) -> Iterator[Value]:
    """The values that names have now around a function."""
    scope: Environment | None = function.closure
    while scope is not None:
        yield from (scope.variables[name] for name in sorted(names & scope.variables.keys()))
        scope = scope.parent


def _made_at(function: Function, name: str) -> Span | None:
    """The first assignment to a name in the function's file."""
    module = function.module.module
    made = (
        item for item in walk(module.tree) if isinstance(item, (ast.Assign, ast.AnnAssign)) and name in _assigned(item)
    )
    return next((module.span(item) for item in made), None)


def _assigned(node: ast.Assign | ast.AnnAssign) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {target.id for target in targets if isinstance(target, ast.Name)}

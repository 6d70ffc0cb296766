"""The names that a kernel sees in a run: its closure and globals with the values they have there."""

from __future__ import annotations

import ast
import dataclasses

from warplint.kernels import source as kernels
from warplint.kernels.source import Meaning, Scope, Unknown
from warplint.kernels.summary import KernelSummary
from warplint.trace import events
from warplint.trace.host.lookup import MISSING, global_value, look_up
from warplint.trace.host.machine import Machine, SummaryKey
from warplint.trace.host.values import (
    ArrayType,
    Class,
    Environment,
    External,
    Function,
    Instance,
    KernelValue,
    Native,
    TypeExpression,
    Value,
    Vector,
    WarpFunction,
)

_OUTSIDE_WARP = ("fem", "sparse", "optim")


class EnvironmentScope:
    """What names mean in an environment of a run."""

    def __init__(self, machine: Machine, environment: Environment) -> None:
        self._machine = machine
        self._environment = environment
        self._known: dict[str, Meaning | None] = {}

    def resolve(self, dotted: str) -> Meaning | None:
        """See :meth:`warplint.kernels.source.Scope.resolve`."""
        if dotted not in self._known:
            self._known[dotted] = None
            with self._machine.unhurried(self._environment):
                self._known[dotted] = self._meaning(dotted)
        return self._known[dotted]

    def _meaning(self, dotted: str) -> Meaning | None:
        parts = dotted.split(".")
        if not _is_bound(self._machine, self._environment, parts[0]):
            return None
        value = look_up(self._machine, self._environment, parts[0])
        for part in parts[1:]:
            value = self._machine.parts.get_attribute(self._machine, value, part)
        return self._of_value(value)

    def _of_value(self, value: Value) -> Meaning | None:
        if isinstance(value, (bool, int, float, str, bytes, tuple, type(None))):
            return kernels.Constant(value)
        if isinstance(value, ArrayType) and value.expression is not None:
            value = value.expression
        if isinstance(value, External):
            return _external(value)
        if isinstance(value, Native):
            return kernels.Builtin(value.name) if value.name in kernels.PYTHON_BUILTINS else None
        if isinstance(value, WarpFunction):
            return function_meaning(self._machine, value)
        if isinstance(value, Function):
            return function_meaning(self._machine, WarpFunction(value))
        if isinstance(value, Class):
            if value.is_struct and value.node is not None:
                environment = value.closure or value.module.environment
                return kernels.Struct(value.node, value.module.module.path, scope_of(self._machine, environment))
            return None
        if isinstance(value, TypeExpression):
            return kernels.TypeAlias(value.node, scope_of(self._machine, value.environment))
        if isinstance(value, Instance) and "value" in value.attributes:
            return self._of_value(value.attributes["value"])
        if isinstance(value, Vector):
            return kernels.Constant(value.components)
        if isinstance(value, KernelValue):
            return None
        return kernels.Constant(Unknown.VALUE)


def _is_bound(machine: Machine, environment: Environment, name: str) -> bool:
    scope: Environment | None = environment
    while scope is not None:
        if name in scope.variables:
            return True
        scope = scope.parent
    return name in machine.parts.builtins or global_value(machine, environment.module, name) is not MISSING


def _external(value: External) -> Meaning | None:
    if not value.path.startswith("warp."):
        return None
    rest = value.path.removeprefix("warp.")
    return None if rest.partition(".")[0] in _OUTSIDE_WARP else kernels.Builtin(value.name)


def scope_of(machine: Machine, environment: Environment) -> Scope:
    """The scope of an environment, one for each."""
    scope = machine.scopes.get(environment)
    if scope is None:
        scope = machine.scopes[environment] = EnvironmentScope(machine, environment)
    return scope


def function_meaning(machine: Machine, value: WarpFunction) -> Meaning | None:
    """A function as the analysis of kernels wants it."""
    made = _function(machine, value)
    if made is None or not value.overloads:
        return made
    found = (_function(machine, overload) for overload in value.overloads)
    others = tuple(other for other in found if other is not None)
    return dataclasses.replace(made, overloads=others)


def _function(machine: Machine, value: WarpFunction) -> kernels.Function | None:
    function = value.function
    if not isinstance(function.node, ast.FunctionDef):
        return None
    module = function.module.module
    adjoint = kernels.Adjoint.GENERATED
    if value.native:
        adjoint = kernels.Adjoint.NATIVE if value.native_adjoint else kernels.Adjoint.NATIVE_MISSING
    elif value.gradient is not None:
        adjoint = kernels.Adjoint.CUSTOM
    return kernels.Function(
        node=function.node,
        path=module.path,
        scope=scope_of(machine, function.closure),
        adjoint=adjoint,
        replay=_attached(machine, value.replay),
        gradient=_attached(machine, value.gradient),
        lines=module.lines,
    )


def _attached(machine: Machine, function: Function | None) -> kernels.Function | None:
    """A custom adjoint or replay."""
    return None if function is None else _function(machine, WarpFunction(function))


def summarise_kernel(machine: Machine, kernel: events.Kernel) -> KernelSummary | None:
    """The summary of a kernel of the run; computed once per project for kernels of equal content and options.

    What the project keeps leads to no run: the source, whose scope is one of this run, is put in for each run anew.
    """
    backward = kernel.enable_backward is not False
    key = (kernel.key, kernel.max_unroll, backward, machine.settings.warp, kernel.followed)
    known = machine.summaries.get(key)
    if known is None:
        source = kernel_source(machine, kernel)
        if source is None:
            return None
        known = machine.summaries[key] = dataclasses.replace(_kept_summary(machine, key, source), source=source)
    return known


def _kept_summary(machine: Machine, key: SummaryKey, source: kernels.KernelSource) -> KernelSummary:
    from warplint.kernels.analysis import summarise

    kept = machine.caches.summaries
    if key not in kept:
        kept[key] = dataclasses.replace(summarise(source), source=None)
    return kept[key]


def kernel_source(machine: Machine, kernel: events.Kernel) -> kernels.KernelSource | None:
    """The text of a kernel of the run and the meaning of its names; None where it is not there to be read."""
    declared = machine.kernels.get(kernel.key)
    if declared is None or not isinstance(declared.function.node, ast.FunctionDef):
        return None
    module = declared.function.module.module
    return kernels.KernelSource(
        node=declared.function.node,
        path=module.path,
        scope=scope_of(machine, declared.function.closure),
        max_unroll=kernel.max_unroll,
        enable_backward=kernel.enable_backward is not False,
        lines=module.lines,
        warp=machine.settings.warp,
        followed=kernel.followed,
    )

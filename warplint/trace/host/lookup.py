"""What a name means in a scope, and what an imported one means once its file has run."""

from __future__ import annotations

from warplint.trace.host.machine import Machine
from warplint.trace.host.values import Deferred, Environment, External, ModuleValue, UnknownValue, Value

MISSING = object()


def look_up(machine: Machine, environment: Environment, name: str) -> Value:
    """The value of a name: its scope, the scopes around it, the module's globals, star imports, Python's builtins."""
    scope: Environment | None = environment
    while scope is not None:
        value = scope.variables.get(name, MISSING)
        if value is not MISSING:
            return _resolved(machine, scope.variables, name, value) if type(value) is Deferred else value
        scope = scope.parent
    module = environment.module
    value = global_value(machine, module, name)
    if value is not MISSING:
        return value
    if name in machine.parts.builtins:
        return machine.parts.builtins[name]
    return UnknownValue(f"the name {name} is not known here")


def global_value(machine: Machine, module: ModuleValue, name: str) -> Value:
    """A global of a module, or :data:`MISSING`. While an import is resolved its name is unbound: cycles end."""
    variables = module.environment.variables
    value = variables.get(name, MISSING)
    if value is MISSING:
        value = _from_stars(machine, module, name)
        if value is MISSING:
            return MISSING
    if type(value) is Deferred:
        variables.pop(name, None)
        value = _resolved(machine, variables, name, value)
    return value


def _resolved(machine: Machine, variables: dict[str, Value], name: str, deferred: Deferred) -> Value:
    """The value behind a name imported from a file of the project; asked again where that file is still running."""
    value = module_attribute(machine, deferred.module, deferred.name)
    early = deferred.module.running and isinstance(value, UnknownValue)
    variables[name] = deferred if early else value
    return value


def module_attribute(machine: Machine, module: ModuleValue, name: str) -> Value:
    """``module.name``: a global, else a submodule of a package."""
    ensure_started(module)
    value = global_value(machine, module, name)
    if value is not MISSING:
        return value
    if name == "__name__":
        return module.name
    if name == "__file__":
        return module.module.path
    if module.module.is_package:
        found = machine.parts.import_module(machine, f"{module.module.name}.{name}", module)
        if isinstance(found, ModuleValue):
            return found
    return UnknownValue(f"the module {module.name} has no known {name}")


def ensure_started(module: ModuleValue) -> None:
    """Run the top level of a file that has not run yet."""
    if not module.started:
        module.started = True
        if module.imported is not None:
            module.imported()


def _from_stars(machine: Machine, module: ModuleValue, name: str) -> Value:
    if name.startswith("__"):
        return MISSING
    for star in reversed(module.stars):
        if isinstance(star, External):
            if star.path == "warp" and not name.startswith("_") and name not in machine.parts.builtins:
                return External(f"warp.{name}")
            continue
        if star is module:
            continue
        ensure_started(star)
        value = global_value(machine, star, name)
        if value is not MISSING:
            return value
    return MISSING

"""Import statements: files of the project become modules that run when a name of them is first needed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager

from warplint.names import absolute_module, public_name
from warplint.project import Module
from warplint.source import Unreadable
from warplint.trace.host.machine import Frame, Machine
from warplint.trace.host.values import Deferred, External, ModuleValue, Signal, UnknownValue, Value


def import_module(machine: Machine, name: str, importer: ModuleValue) -> Value:
    """The module called ``name``: of the project, or a dotted name outside it."""
    module = machine.project.find(name, importer.module)
    if module is None:
        return External(public_name(name))
    known = machine.modules.get(module)
    if known is not None:
        return known
    value = machine.modules[module] = ModuleValue(module, module.name)
    slot = machine.log.reserve()
    config = dict(machine.config)

    def run() -> None:
        slot.entries.clear()
        with machine.log.filling(slot), _elsewhere(machine, config), machine.importing(value):
            run_top_level(machine, value)

    value.imported = run
    if machine.project.has_import_effects(module):
        value.started = True
        run_top_level(machine, value)
    return value


def run_top_level(machine: Machine, value: ModuleValue) -> None:
    """Run a file's top level in a frame of its own."""
    module: Module = value.module
    variables = value.environment.variables
    variables.setdefault("__name__", value.name)
    variables.setdefault("__file__", module.path)
    try:
        tree = module.tree
    except Unreadable:
        return
    frames = machine.frames
    machine.frames = [Frame(value.environment, "<module>", tree.body[0] if tree.body else tree)]
    value.running = True
    try:
        if tree.body:
            machine.execute(tree.body, machine.frames[0])
    finally:
        value.running = False
        machine.frames = frames


@contextmanager
def _elsewhere(machine: Machine, config: dict[str, Value]) -> Iterator[None]:
    """The circumstances of an import that is worked out later than it happened."""
    before = machine.config, machine.active_tape, machine.loops, machine.handlers, machine.assertions
    machine.config, machine.active_tape, machine.loops, machine.handlers, machine.assertions = config, None, 0, [], 0
    try:
        yield
    finally:
        machine.config, machine.active_tape, machine.loops, machine.handlers, machine.assertions = before


def execute_import(machine: Machine, frame: Frame, node: ast.Import) -> Signal | None:
    """``import a.b`` binds ``a``; ``import a.b as c`` binds the submodule."""
    scope = frame.environment
    for alias in node.names:
        parts = alias.name.split(".")
        value = import_module(machine, parts[0] if not alias.asname else alias.name, frame.module)
        for length in range(2, len(parts) + 1):
            import_module(machine, ".".join(parts[:length]), frame.module)
        scope.binding_scope(alias.asname or parts[0]).variables[alias.asname or parts[0]] = value
    return None


def execute_import_from(machine: Machine, frame: Frame, node: ast.ImportFrom) -> Signal | None:
    """``from m import n``: a submodule, or a name that is looked up when it is needed."""
    importer = frame.module.module
    source = absolute_module(node.module, node.level, importer.name, importer.is_package)
    origin = import_module(machine, source, frame.module) if source else UnknownValue("the import leaves the package")
    for alias in node.names:
        bound = alias.asname or alias.name
        if alias.name == "*":
            if isinstance(origin, (ModuleValue, External)):
                frame.module.stars.append(origin)
            continue
        scope = frame.environment.binding_scope(bound)
        scope.variables[bound] = _imported_name(machine, frame, origin, source, alias.name)
    return None


def _imported_name(machine: Machine, frame: Frame, origin: Value, source: str, name: str) -> Value:
    if isinstance(origin, External):
        return External(public_name(f"{origin.path}.{name}"))
    if not isinstance(origin, ModuleValue):
        return origin
    if origin.started and name in origin.environment.variables:
        return origin.environment.variables[name]
    if origin.module.is_package and (origin is frame.module or not _defines(origin.module, name)):
        found = import_module(machine, f"{origin.module.name}.{name}", frame.module)
        if isinstance(found, ModuleValue):
            return found
    return Deferred(origin, name)


def _defines(module: Module, name: str) -> bool:
    """Whether a package's own file binds the name by an import (which then wins over a submodule)."""
    try:
        return name in module.imports.names
    except Unreadable:
        return False

"""The state of a run after a file's top level, to start several roots from without running it again.

Whatever a root changes is put back in place afterwards: containers, objects, scopes, modules, flags of memories. Files
that a root was the first to need stay imported, as their top level left them, with their events at the place of the
import; one whose top level did not come to its end runs again when it is needed again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from warplint.trace.host.machine import Machine
from warplint.trace.host.memory import ArrayValue, Memory, NumpyValue
from warplint.trace.host.values import (
    Bound,
    Class,
    Environment,
    Function,
    Instance,
    KernelValue,
    ModuleValue,
    Property,
    Record,
    TapeValue,
    WarpModule,
)

_FIELDS: dict[type, tuple[str, ...]] = {
    ArrayValue: ("moved", "own_gradient", "own_requires_grad"),
    Memory: ("requires_grad", "retain_grad", "name"),
    NumpyValue: ("contents", "sources", "memory"),
    KernelValue: ("described", "open_ended"),
    WarpModule: ("options", "contents", "loaded", "loaded_options", "revision"),
    TapeValue: ("id", "former"),
}


class Checkpoint:
    """Everything that the scopes of the machine's modules lead to, as it is now."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._containers: list[tuple[Any, Any]] = []
        self._fields: list[tuple[Any, dict[str, Any]]] = []
        self._state = {
            "memories": dict(machine.memories),
            "tapes": list(machine.tapes),
            "warp_modules": dict(machine.warp_modules),
            "config": dict(machine.config),
            "counts": dict(machine.counts),
            "stand_ins": dict(machine.stand_ins),
            "unknowns": list(machine.unknowns),
            "undecided": machine.undecided,
            "steps": machine.steps,
            "limit": machine.limit,
        }
        self._log = machine.log.position()
        self._seen: set[int] = set()
        self._importing: list[ModuleValue] = []
        machine.importing = self._late_import
        for module in machine.modules.values():
            if module.started:
                self._save(module.environment)
        for warp_module in machine.warp_modules.values():
            self._save(warp_module)

    def restore(self) -> None:
        """Put everything back."""
        machine = self._machine
        for container, content in self._containers:
            if isinstance(container, list):
                container[:] = content
            else:
                container.clear()
                container.update(content)
        for owner, fields in self._fields:
            for name, value in fields.items():
                setattr(owner, name, value.copy() if isinstance(value, (dict, set)) else value)
        for name, value in self._state.items():
            setattr(machine, name, value.copy() if isinstance(value, (dict, list)) else value)
        machine.log.return_to(self._log)
        machine.active_tape = None
        machine.frames, machine.handlers, machine.rings, machine.captures = [], [], [], []
        machine.loops = machine.assertions = machine.backwards = machine.launches = 0
        machine.entered, machine.tapes_walked = set(), set()

    @contextmanager
    def _late_import(self, module: ModuleValue) -> Iterator[None]:
        """A file is imported that the roots share: what its top level makes belongs to the state to come back to."""
        machine, outermost = self._machine, not self._importing
        memories, warp_modules = set(machine.memories), set(machine.warp_modules)
        self._importing.append(module)
        try:
            yield
        except BaseException:
            module.forget()
            self._importing = [] if outermost else self._importing
            raise
        if outermost:
            self._keep(machine.memories, self._state["memories"], memories)
            self._keep(machine.warp_modules, self._state["warp_modules"], warp_modules)
            imported, self._importing = self._importing, []
            for each in imported:
                self._save(each.environment)

    def _keep(self, made: dict[Any, Any], kept: Any, before: set[Any]) -> None:
        for key in made.keys() - before:
            kept[key] = made[key]
            self._save(made[key])

    def _save(self, root: Any) -> None:
        todo = [root]
        while todo:
            value = todo.pop()
            kind = type(value)
            if kind in (int, float, str, bool, type(None), tuple) or id(value) in self._seen:
                if kind is tuple:
                    todo.extend(value)
                continue
            self._seen.add(id(value))
            if isinstance(value, (list, dict, set)):
                self._containers.append((value, value.copy()))
                todo.extend(value.values() if isinstance(value, dict) else value)
                continue
            if kind in _FIELDS:
                fields = {name: getattr(value, name) for name in _FIELDS[kind]}
                self._fields.append(
                    (value, {n: v.copy() if isinstance(v, (dict, set)) else v for n, v in fields.items()})
                )
            todo.extend(_parts(value))


def _parts(value: Any) -> list[Any]:
    """The mutable parts of a wrapped value."""
    if isinstance(value, Environment):
        return [value.variables] if value.parent is None else [value.variables, value.parent]
    if isinstance(value, ArrayValue):
        return [value.memory]
    if isinstance(value, (Instance, Record, TapeValue)):
        return [value.attributes]
    if isinstance(value, Class):
        return [value.namespace]
    if isinstance(value, Function):
        scope = value.closure if value.closure.parent is not None else None
        return [part for part in (value.attributes or None, value.memo, scope) if part is not None]
    if isinstance(value, Bound):
        return [value.function, value.receiver]
    if isinstance(value, Property):
        return [value.getter]
    return []  # modules among them: theirs are saved where their top level has run

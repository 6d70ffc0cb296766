"""``container[index]``: loads, stores and deletions."""

from __future__ import annotations

import ast
from typing import Any

from warplint.trace import events
from warplint.trace.host.held import note_change
from warplint.trace.host.library.salt import place_in
from warplint.trace.host.machine import Machine
from warplint.trace.host.memory import ArrayValue, NumpyValue
from warplint.trace.host.moves import stamp
from warplint.trace.host.values import (
    Class,
    External,
    Generator,
    Instance,
    Record,
    TapeGradients,
    UnknownValue,
    Value,
    Vector,
    part_of,
    sources_of,
    unknown_from,
)


def load_item(machine: Machine, container: Value, index: Value, node: ast.Subscript | None = None) -> Value:
    """``container[index]``."""
    index = known_index(machine, index)
    if isinstance(container, (list, tuple, str, bytes, range, dict)):
        value = _plain_item(machine, container, index)
        if isinstance(container, (list, tuple)) and id(container) in machine.unordered:
            return place_in(machine, container, value)
        position = None if node is None or isinstance(container, dict) else node.slice
        if position is not None and machine.caches.wraps_around(position):
            stamp(machine, value, "index")
        return value
    if isinstance(container, ArrayValue):
        return container.indexed(index)
    if isinstance(container, NumpyValue):
        from warplint.trace.host.library.numpy import item

        return item(machine, container, index)
    if isinstance(container, TapeGradients):
        return _tape_gradient(machine, index)
    if isinstance(container, Instance):
        return _object_item(machine, container, index)
    if isinstance(container, Vector):
        if isinstance(index, int) and -len(container.components) <= index < len(container.components):
            return container.components[index]
        return unknown_from("a component", container)
    if isinstance(container, (External, Class)):
        return container
    if isinstance(container, Generator):
        return load_item(machine, list(machine.iterate(container) or ()), index)
    if isinstance(container, Record) and container.kind == "mapping":
        return container.attributes.get(str(index), UnknownValue("an item of a library's object"))
    return part_of("an item of something unknown", container)


def store_item(machine: Machine, container: Value, index: Value, value: Value) -> None:
    """``container[index] = value``."""
    index = known_index(machine, index)
    if isinstance(container, (dict, list)):
        machine.collect(value)
    if isinstance(container, dict):
        if isinstance(index, UnknownValue):
            return
        try:
            container[index] = value
        except TypeError:
            return
    elif isinstance(container, list):
        try:
            if isinstance(index, slice):
                items = machine.iterate(value)
                if items is not None:
                    container[index] = items
            elif isinstance(index, int):
                container[index] = value
        except (IndexError, ValueError, TypeError):
            return
        note_change(machine, container)
    elif isinstance(container, NumpyValue):
        _store_numpy(machine, container, index, value)
    elif isinstance(container, Instance) and container.cls.find("__setitem__"):
        machine.call(machine.parts.get_attribute(machine, container, "__setitem__"), [index, value])
    elif isinstance(container, Record) and container.kind == "mapping" and isinstance(index, str):
        container.attributes[index] = value
    elif isinstance(container, Record) and container.kind == "module-options" and isinstance(index, str):
        from warplint.trace.host.warp_api.modules import set_options

        set_options(machine, container.attributes["module"], {index: value}, direct=True)
    elif isinstance(container, External) and container.path == "os.environ" and index == "WARP_CACHE_PATH":
        from warplint.trace.host.warp_api.modules import cache_in_environment

        cache_in_environment(machine, value)
    elif isinstance(container, ArrayValue):
        target = container.indexed(index)
        machine.emit(events.HostWrite, dest=target.snapshot(), how="setitem", active_tape=machine.active_tape_id)


def delete_item(machine: Machine, container: Value, index: Value) -> None:
    """``del container[index]``."""
    if isinstance(container, (list, dict)):
        try:
            del container[index]
        except (IndexError, KeyError, TypeError):
            return


def known_index(machine: Machine, index: Value) -> Value:
    """The index, with counts that stand for a number of rounds on this path in place of the unknowns."""
    if isinstance(index, UnknownValue):
        return machine.count_of(index) if (index.base or index) in machine.counts else index
    if isinstance(index, slice):
        return slice(*(known_index(machine, part) for part in (index.start, index.stop, index.step)))
    if isinstance(index, tuple):
        return tuple(known_index(machine, part) for part in index)
    return index


def _plain_item(machine: Machine, container: Any, index: Value) -> Value:
    if isinstance(index, UnknownValue):
        if len(container) == 1 and not isinstance(container, dict):
            return container[0]
        return unknown_from("an item at an unknown index", index)
    if isinstance(index, slice) and any(isinstance(p, UnknownValue) for p in (index.start, index.stop, index.step)):
        return unknown_from("a slice with unknown bounds", index.start, index.stop)
    try:
        return container[index]
    except KeyError:
        if machine.will_catch("KeyError"):
            from warplint.trace.host.machine import Raised

            raise Raised(("KeyError",)) from None
        factory = getattr(container, "default_factory", None)
        if factory is not None:
            container[index] = machine.call(factory)
            return container[index]
        return UnknownValue("a missing key")
    except (IndexError, TypeError, ValueError) as error:
        return UnknownValue(f"{type(error).__name__}: {error}")


def _object_item(machine: Machine, container: Instance, index: Value) -> Value:
    if container.cls.find("__getitem__"):
        return machine.call(machine.parts.get_attribute(machine, container, "__getitem__"), [index])
    if container.cls.is_tuple:
        return _plain_item(machine, tuple(container.attributes.values()), index)
    return UnknownValue("an item of an object")


def _tape_gradient(machine: Machine, index: Value) -> Value:
    if isinstance(index, ArrayValue):
        return machine.parts.get_attribute(machine, index, "grad")
    return UnknownValue("the gradient of something unknown")


def _store_numpy(machine: Machine, container: NumpyValue, index: Value, value: Value) -> None:
    alias = container.alias()
    container.contents = None
    container.sources |= sources_of(value)
    if alias is not None:
        target = alias.indexed(index) if not isinstance(index, NumpyValue) else alias
        machine.emit(
            events.HostWrite,
            dest=target.snapshot(),
            how="numpy-store",
            active_tape=machine.active_tape_id,
            from_host=sources_of(value),
        )

"""What iterating over a value gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warplint.trace.host.machine import Machine
from warplint.trace.host.memory import ArrayValue, NumpyValue
from warplint.trace.host.values import Class, Generator, Instance, Record, TapeGradients, Value, Vector


def items_of(machine: Machine, value: Value) -> Sequence[Value] | None:
    """The items of an iterable; None where they are not known."""
    if isinstance(value, (list, tuple)):
        return value
    if isinstance(value, range):
        return value[: machine.settings.items]
    if isinstance(value, (str, bytes, dict, set, frozenset)):
        return _ordered(value)
    if isinstance(value, Generator):
        from warplint.trace.host.loops import collect_generator

        return collect_generator(machine, value)
    if isinstance(value, Vector):
        return value.components
    if isinstance(value, Instance):
        from warplint.trace.host.loops import object_items

        return object_items(machine, value)
    if isinstance(value, Class):
        members = [item for item in value.namespace.values() if isinstance(item, Instance) and item.cls is value]
        return members or None
    if isinstance(value, NumpyValue):
        from warplint.trace.host.library.numpy import rows

        return rows(machine, value)
    if isinstance(value, ArrayValue):
        size = value.shape[0] if value.shape else None
        if size is None or size > machine.settings.items or (value.shape and len(value.shape) == 1):
            return None
        return [value.indexed(position) for position in range(size)]
    if isinstance(value, TapeGradients):
        from warplint.trace.host.warp_api.tapes import gradients_attribute

        gradients_attribute(machine, value, "items")
        return None
    if isinstance(value, Record) and value.kind == "rounds":
        return value.attributes["items"]  # type: ignore[no-any-return]
    if (left := left_in_iterator(value)) is not None:
        return draw(left, len(left))
    return None


def left_in_iterator(value: Value) -> list[Value] | None:
    """What ``iter(…)`` or ``itertools.cycle(…)`` has yet to give; None where ``value`` is no such iterator."""
    if isinstance(value, Record) and value.kind == "iterator":
        return value.attributes["items"]  # type: ignore[no-any-return]
    return None


def draw(left: list[Value], count: int) -> list[Value]:
    """The next ``count`` items of an iterator, which is then past them."""
    drawn = left[:count]
    del left[:count]
    return drawn


def _ordered(value: Any) -> Sequence[Value]:
    """Sets in an order that does not depend on this process (their own order is salted)."""
    if isinstance(value, (set, frozenset)) and all(isinstance(item, (str, int, float)) for item in value):
        return sorted(value, key=lambda item: (type(item).__name__, str(item)))
    return list(value)

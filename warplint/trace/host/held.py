"""What a tape holds by reference: the list of a launch's arguments, and the structs among them.

Warp 1.19 keeps the very objects that the caller passed as ``inputs=`` and ``outputs=``, and takes the arrays and
numbers out of them again when the backward pass comes to the launch (measured: a list whose items are replaced, a
struct whose fields are bound anew; a tuple, a copy of the list and ``inputs=args + [b]`` are the tape's alone). So the
objects that a recorded launch was given are watched, and each change of them is an event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from warplint.dataclass import dataclass
from warplint.trace import events
from warplint.trace.host.memory import ArrayValue
from warplint.trace.host.values import Instance, Value, Vector

if TYPE_CHECKING:
    from warplint.trace.host.machine import Machine

_NESTING = 4


@dataclass
class Held:
    """A list or struct of the program in the state that the last launch or change left it in."""

    number: int
    holder: list[Value] | Instance
    name: str
    contents: Mapping[int | str, Value]

    def slot(self, key: int | str) -> events.Slot:
        """One of its places."""
        return events.Slot(self.number, key, self.name)


def hold(machine: Machine, holder: list[Value] | Instance, name: str) -> Held:
    """Watch an object from now on: a recorded launch was given it."""
    known = machine.held.get(id(holder))
    if known is None:
        known = machine.held[id(holder)] = Held(len(machine.held) + 1, holder, name, _contents(holder))
    return known


def note_change(machine: Machine, holder: Value) -> None:
    """Emit what has changed in an object that a tape may hold. A list of another length makes the backward raise."""
    held = machine.held.get(id(holder))
    if held is None:
        return
    now = _contents(held.holder)
    if isinstance(holder, list) and len(now) != len(held.contents):
        return
    for key, value in now.items():
        if key in held.contents and not _is_same(held.contents[key], value):
            machine.emit(events.Rebound, slot=held.slot(key), values=tuple(_bindings(value, "", _NESTING)))
    held.contents = now


def plain_value(value: Value) -> object:
    """A scalar argument's value where it is known."""
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Vector) and all(isinstance(part, (int, float)) for part in value.components):
        return value.components
    if isinstance(value, tuple) and all(isinstance(part, (int, float)) for part in value):
        return value
    return None


def _contents(holder: list[Value] | Instance) -> dict[int | str, Value]:
    fields = holder.attributes.items() if isinstance(holder, Instance) else enumerate(holder)
    return dict(fields)


def _is_same(old: Value, new: Value) -> bool:
    if old is new:
        return True
    known = plain_value(old)
    return known is not None and known == plain_value(new)


def _bindings(value: Value, path: str, depth: int) -> Iterator[events.Binding]:
    if isinstance(value, ArrayValue):
        yield events.Binding(path, value.snapshot())
    elif isinstance(value, Instance) and depth:
        for name, item in value.attributes.items():
            yield from _bindings(item, f"{path}.{name}", depth - 1)
    else:
        yield events.Binding(path, None, plain_value(value))

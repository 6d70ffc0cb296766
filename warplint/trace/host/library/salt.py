"""Values that differ from process to process: clocks, salted hashes, unseeded random numbers, the order of a set.

A set of strings has another order in each process, since Python salts their hashes (``PYTHONHASHSEED``). The items are
known all the same, so that they stay what they are; what tells their places (a count beside them, an index) does not.
"""

from __future__ import annotations

from warplint.trace.events import Frame
from warplint.trace.host.machine import Machine
from warplint.trace.host.values import NO_SOURCES, UnknownValue, Value, taints_of


def varying(machine: Machine, why: str, *made_from: Value) -> UnknownValue:
    """A value that is another one in each process; it remembers where it came from."""
    here: Frame = machine.stack()[-1]
    return UnknownValue(why, NO_SOURCES, taints=frozenset({here.span}) | taints_of(*made_from))


def is_unordered(machine: Machine, value: Value) -> bool:
    """Whether the items of a container come in another order in each process."""
    if isinstance(value, (set, frozenset)):
        return len(value) > 1 and any(isinstance(item, (str, bytes)) for item in value)
    return id(value) in machine.unordered


def keep_disorder(machine: Machine, made: Value, source: Value) -> Value:
    """A list or tuple made of the items of another container, in its order."""
    if isinstance(made, (list, tuple)) and is_unordered(machine, source):
        machine.unordered[id(made)] = made  # kept alive, so that its identity stays its own
    return made


def place_in(machine: Machine, container: Value, known: Value) -> Value:
    """What tells the place of an item, or an item by its place: unknown where the order is."""
    return varying(machine, "a place in a set's order") if is_unordered(machine, container) else known

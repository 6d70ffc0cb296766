"""``wp.Mesh`` and its kin: objects that hold arrays for queries in kernels, which get them by their ``id``."""

from __future__ import annotations

from collections.abc import Callable

from warplint.trace.host.machine import Call, Machine
from warplint.trace.host.values import Record, UnknownValue, Value

_HELD: dict[str, tuple[str, ...]] = {
    "Mesh": ("points", "indices", "velocities"),
    "Bvh": ("lowers", "uppers"),
    "HashGrid": (),
}
"""The parameters, in order, under whose names an object gives its arrays back."""


def _maker(kind: str, names: tuple[str, ...]) -> Callable[[Machine, Call], Value]:
    """Kernels read what it holds without a binding that anybody sees: so the arrays escape."""

    def make(machine: Machine, call: Call) -> Value:
        machine.escape(f"handed to warp.{kind}", call.values)
        held = {name: call.get(position, name) for position, name in enumerate(names)} if call.complete else {}
        return Record(kind, {**held, "id": UnknownValue(f"the id of a {kind}")})

    return make


MODELS: dict[str, Callable[[Machine, Call], Value]] = {
    f"warp.{kind}": _maker(kind, names) for kind, names in _HELD.items()
}

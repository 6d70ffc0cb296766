"""``wp.copy``, ``wp.clone`` and ``array.assign``: recorded only where both sides have a gradient (measured on 1.19)."""

from __future__ import annotations

from collections.abc import Callable

from warplint.trace import events
from warplint.trace.events import Extent
from warplint.trace.host.machine import Call, Machine
from warplint.trace.host.memory import ArrayValue
from warplint.trace.host.values import UnknownValue, Value, unknown_from
from warplint.trace.host.warp_api.arrays import flag


def emit_copy(machine: Machine, source: ArrayValue, dest: ArrayValue, how: str) -> None:
    """A copy between arrays, or one that sets or reads a gradient."""
    if source.gradient:
        machine.emit(events.GradRead, array=source.snapshot(), how="copy")
    if dest.gradient:
        machine.emit(events.GradWrite, array=dest.snapshot(), clears=False)
        return
    if source.gradient:
        machine.emit(events.HostWrite, dest=dest.snapshot(), how=how, active_tape=machine.active_tape_id)
        return
    tape = machine.active_tape_id
    recorded = source.requires_grad is not False and dest.requires_grad is not False
    machine.emit(
        events.Copy,
        source=source.snapshot(),
        dest=dest.snapshot(),
        tape=tape if recorded else None,
        active_tape=tape,
        how=how,
    )


def _copy(machine: Machine, call: Call) -> Value:
    dest, source = call.get(0, "dest"), call.get(1, "src")
    known = [side for side in (dest, source) if isinstance(side, ArrayValue)]
    if not isinstance(dest, ArrayValue) or not isinstance(source, ArrayValue):
        if machine.active_tape is not None:
            machine.note_unknown(call.node, "one side of a copy is unknown")
        machine.emit(events.Opaque, why="a copy with an unknown side", arrays=tuple(a.snapshot() for a in known))
        return None
    count = call.get(4, "count", 0)
    emit_copy(
        machine,
        _part(source, call.get(3, "src_offset", 0), count),
        _part(dest, call.get(2, "dest_offset", 0), count),
        "copy",
    )
    return None


def _part(array: ArrayValue, offset: Value, count: Value) -> ArrayValue:
    """The rows that a copy with offset and count means; offsets count elements, so only of vectors are they rows."""
    if offset == 0 and count == 0:
        return array
    if array.ndim == 1 and isinstance(offset, int) and isinstance(count, int) and count and array.row_major:
        start = (array.extent.start or 0) + offset
        return array.viewed(Extent(start, start + count), (count,), True)
    return array.viewed(Extent(known=False), None, False)


def _clone(machine: Machine, call: Call) -> Value:
    source = call.get(0, "src")
    given = call.get(2, "requires_grad")
    if not isinstance(source, ArrayValue):
        if isinstance(source, UnknownValue):
            return machine.allocate("clone", None if given is None else flag(given))
        return unknown_from("a clone of something unknown", source)
    made = machine.allocate(
        "clone",
        (source.requires_grad if not source.gradient else False) if given is None else flag(given),
        shape=source.shape,
        dtype=source.dtype,
        copied_from=None if source.gradient else source.memory.id,
        retain_grad=flag(call.kwargs.get("retain_grad", False)) is True,
    )
    made.memory.on_host = source.memory.on_host
    emit_copy(machine, source, made, "clone")
    return made


MODELS: dict[str, Callable[[Machine, Call], Value]] = {"warp.copy": _copy, "warp.clone": _clone}

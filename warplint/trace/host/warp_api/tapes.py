"""``wp.Tape``: what it records while it is open, and what its methods do to gradients."""

from __future__ import annotations

from collections.abc import Callable

from warplint.trace import events
from warplint.trace.host.machine import Call, Machine
from warplint.trace.host.memory import ArrayValue, arrays_in
from warplint.trace.host.values import Instance, Native, TapeGradients, TapeValue, UnknownValue, Value
from warplint.trace.host.warp_api.arrays import uniform_value


def new_tape(machine: Machine) -> TapeValue:
    """A tape comes into being here."""
    tape = TapeValue(len(machine.tapes))
    machine.tapes.append(tape)
    machine.emit(events.TapeCreated, tape=tape.id)
    return tape


def enter_tape(machine: Machine, tape: TapeValue) -> None:
    """``with tape:``. Warp has one open tape at a time."""
    machine.active_tape = tape
    machine.tapes_entered += 1
    machine.limit = machine.settings.steps
    machine.emit(events.TapeEntered, tape=tape.id)


def leave_tape(machine: Machine, tape: TapeValue) -> None:
    """The end of the ``with`` block."""
    if machine.active_tape is tape:
        machine.active_tape = None
    machine.emit(events.TapeLeft, tape=tape.id)


def _tape(machine: Machine, call: Call) -> Value:
    return new_tape(machine)


def tape_attribute(machine: Machine, tape: TapeValue, name: str) -> Value:
    """``tape.name``."""
    if name in _METHODS:
        method = _METHODS[name]
        return Native(name, lambda machine, call: method(machine, tape, call))
    if name == "gradients":
        return TapeGradients(tape)
    if name in tape.attributes:
        return tape.attributes[name]
    if name == "loss":
        return None
    return UnknownValue(f"the attribute {name} of a tape")


def gradients_attribute(machine: Machine, gradients: TapeGradients, name: str) -> Value:
    """``tape.gradients.values()`` and the like: what is done with all of them at once is not followed."""
    machine.emit(events.Interlude)
    return UnknownValue(f"the {name} of a tape's gradients")


def _enter(machine: Machine, tape: TapeValue, call: Call) -> Value:
    enter_tape(machine, tape)
    return tape


def _exit(machine: Machine, tape: TapeValue, call: Call) -> Value:
    leave_tape(machine, tape)
    return None


def _backward(machine: Machine, tape: TapeValue, call: Call) -> Value:
    loss, grads = call.get(0, "loss"), call.get(1, "grads")
    seeds: list[events.Array] = []
    weights: list[float | None] = []
    if isinstance(grads, dict):
        for array, seed in grads.items():
            if isinstance(array, ArrayValue):
                seeds.append(array.snapshot())
                weights.append(uniform_value(seed) if isinstance(seed, ArrayValue) else None)
    unknown = isinstance(loss, UnknownValue) or isinstance(grads, UnknownValue)
    if unknown or not call.complete:
        machine.note_unknown(call.node, "the loss or the seeds of a backward are unknown")
    machine.backwards += 1
    machine.tapes_walked.add(tape.id)
    machine.emit(
        events.Backward,
        tape=tape.id,
        loss=loss.snapshot() if isinstance(loss, ArrayValue) else None,
        seeds=tuple(seeds),
        weights=tuple(weights),
        complete=not unknown and call.complete,
    )
    return None


def clear_former(machine: Machine, tape: TapeValue) -> None:
    """What the tape knows of the launch of a graph before is cleared as well."""
    if tape.former is not None:
        machine.emit(events.TapeZeroed, tape=tape.former)


def _zero(machine: Machine, tape: TapeValue, call: Call) -> Value:
    clear_former(machine, tape)
    machine.emit(events.TapeZeroed, tape=tape.id)
    return None


def _reset(machine: Machine, tape: TapeValue, call: Call) -> Value:
    clear_former(machine, tape)
    machine.emit(events.TapeReset, tape=tape.id)
    return None


def _record_func(machine: Machine, tape: TapeValue, call: Call) -> Value:
    """``record_func(backward, arrays)``: a backward of the user's own for what was not recorded."""
    arrays = tuple(array.snapshot() for array in arrays_in(call.get(1, "arrays"), 2))
    machine.emit(events.Opaque, why="record_func", arrays=arrays)
    return None


def _record_launch(machine: Machine, tape: TapeValue, call: Call) -> Value:
    machine.emit(events.Opaque, why="record_launch")
    return None


def _adjoint(machine: Machine, tape: TapeValue, call: Call) -> Value:
    array = call.get(0, "a")
    if isinstance(array, ArrayValue):
        return machine.parts.get_attribute(machine, array, "grad")
    if isinstance(array, Instance):
        return UnknownValue("the gradient of a struct")
    return None


def _nothing(machine: Machine, tape: TapeValue, call: Call) -> Value:
    return None


_METHODS: dict[str, Callable[[Machine, TapeValue, Call], Value]] = {
    "__enter__": _enter,
    "__exit__": _exit,
    "backward": _backward,
    "zero": _zero,
    "reset": _reset,
    "record_func": _record_func,
    "record_launch": _record_launch,
    "record_scope_begin": _nothing,
    "record_scope_end": _nothing,
    "visualize": _nothing,
    "get_adjoint": _adjoint,
}

MODELS: dict[str, Callable[[Machine, Call], Value]] = {"warp.Tape": _tape, "warp.tape.Tape": _tape}

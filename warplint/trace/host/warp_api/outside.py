"""Where arrays leave Warp or are worked on by its library without a tape: bridges, ``wp.utils``."""

from __future__ import annotations

from collections.abc import Callable

from warplint.trace import events
from warplint.trace.host.machine import Call, Machine
from warplint.trace.host.memory import ArrayValue
from warplint.trace.host.values import UnknownValue, Value
from warplint.trace.host.warp_api.arrays import flag, host_write, read_to_host


def _from_foreign(made_by: str) -> Callable[[Machine, Call], Value]:
    """``wp.from_torch`` and its kin: a handle on memory that is made and used elsewhere."""

    def wrap(machine: Machine, call: Call) -> Value:
        requires_grad = flag(call.kwargs["requires_grad"]) if "requires_grad" in call.kwargs else None
        return machine.allocate(made_by, requires_grad, outside=True)

    return wrap


def _to_foreign(name: str) -> Callable[[Machine, Call], Value]:
    def hand_over(machine: Machine, call: Call) -> Value:
        array = call.get(0, "a")
        machine.escape(name, [array])
        sources = frozenset({array.memory.id}) if isinstance(array, ArrayValue) else frozenset()
        return UnknownValue(f"the result of {name}", sources)

    return hand_over


def _unrecorded(name: str) -> Callable[[Machine, Call], Value]:
    """``wp.utils.array_sum`` and its kin are never recorded (measured): the chain ends here."""

    def run(machine: Machine, call: Call) -> Value:
        arrays = [value for value in call.args if isinstance(value, ArrayValue)]
        out = call.kwargs.get("out", call.kwargs.get("out_array"))
        inputs = arrays if out is not None else arrays[: 2 if name == "array_inner" else 1]
        if out is None and name not in ("array_sum", "array_inner"):
            out = arrays[-1] if len(arrays) > 1 else None
            inputs = arrays[:-1] if out is not None else arrays
        if isinstance(out, ArrayValue):
            for source in inputs:
                machine.emit(
                    events.Copy,
                    source=source.snapshot(),
                    dest=out.snapshot(),
                    tape=None,
                    active_tape=machine.active_tape_id,
                    how=name,
                )
            return None
        for source in inputs:
            read_to_host(machine, source, name)
        return UnknownValue(f"the result of {name}", frozenset(array.memory.id for array in inputs))

    return run


def _in_place(name: str) -> Callable[[Machine, Call], Value]:
    def run(machine: Machine, call: Call) -> Value:
        for value in call.args[:2]:
            if isinstance(value, ArrayValue):
                host_write(machine, value, name)
        return None

    return run


MODELS: dict[str, Callable[[Machine, Call], Value]] = {
    **{f"warp.{name}": _from_foreign(name) for name in ("from_torch", "from_jax", "from_paddle", "from_dlpack")},
    **{f"warp.{name}": _to_foreign(name) for name in ("to_torch", "to_jax", "to_paddle", "to_dlpack")},
    **{
        f"warp.utils.{name}": _unrecorded(name)
        for name in ("array_sum", "array_inner", "array_scan", "array_cast", "runlength_encode")
    },
    **{f"warp.utils.{name}": _in_place(name) for name in ("radix_sort_pairs", "segmented_sort_pairs")},
}

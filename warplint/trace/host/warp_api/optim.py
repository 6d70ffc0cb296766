"""``warp.optim``: a step uses the gradients it is given and writes the parameters."""

from __future__ import annotations

from collections.abc import Callable

from warplint.trace import events
from warplint.trace.host.machine import Call, Machine
from warplint.trace.host.memory import arrays_in
from warplint.trace.host.values import Record, Value


def _optimiser(machine: Machine, call: Call) -> Value:
    return Record("optimiser", {"params": call.get(0, "params")})


def step(machine: Machine, record: Record, call: Call) -> Value:
    """``optimiser.step(gradients)``."""
    for array in arrays_in(call.get(0, "grad"), 3):
        machine.emit(events.GradRead, array=array.snapshot(), how=machine.reading("optimiser"))
    params = tuple(array.snapshot() for array in arrays_in(record.attributes.get("params"), 3))
    machine.emit(events.OptimiserStep, params=params)
    return None


MODELS: dict[str, Callable[[Machine, Call], Value]] = {
    "warp.optim.Adam": _optimiser,
    "warp.optim.SGD": _optimiser,
    "warp.optim.adam.Adam": _optimiser,
    "warp.optim.sgd.SGD": _optimiser,
}

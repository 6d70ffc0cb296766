"""Before Warp 1.17 the adjoint of a copy assigns its source's gradient, and so wipes out what later readers put there.

The backward pass comes to the later readers first: each adds its part to the source's gradient, and then the copy's
adjoint replaces the sum by its own part (measured on 1.12, 1.13 and 1.16; from 1.17 on it adds).
"""

from __future__ import annotations

from collections.abc import Iterator

from warplint.dataclass import dataclass
from warplint.kernels.summary import StoreKind
from warplint.trace.events import Array, Copy
from warplint.trace.flow.operations import Step
from warplint.trace.flow.reachability import CONSUMING_COPIES, Reach
from warplint.trace.flow.recordings import Recording


@dataclass(frozen=True)
class AssignedGradient:
    """A copy whose adjoint replaces what ``reader``, a later step of the tape, gave to the gradient of ``source``."""

    recording: Recording
    copy: Step
    source: Array
    reader: Step


def assigned_gradients(recording: Recording, established: Reach, warp: tuple[int, int]) -> Iterator[AssignedGradient]:
    """The copies of one recording that lose a gradient, each with the first reader whose part is lost."""
    if warp >= CONSUMING_COPIES:
        return
    copies: dict[int, tuple[Step, Array]] = {}
    for position, step in recording.window.on_tape():
        if established.matters[position]:
            for array in step.active:
                known = copies.get(array.memory)
                read = known is not None and array.memory in established.carried[position]
                if known is not None and read and array.extent.overlaps(known[1].extent):
                    yield AssignedGradient(recording, *known, step)
                    del copies[array.memory]
        if step.covers and step.kind is StoreKind.STORE:
            copies.pop(step.dest.memory, None)
        if isinstance(step.event, Copy):
            for array in step.active:
                copies[array.memory] = step, array

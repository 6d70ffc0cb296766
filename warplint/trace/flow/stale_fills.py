"""Accumulators and results that the program clears beside its tape, while the tape's chain goes on through them.

``zero_()``, ``fill_()`` and what the host stores through a numpy view are recorded on no tape. An array that was
computed on the tape, cleared, computed again and read leaves its gradient standing when the backward pass comes to the
clearing: it goes on to what was computed *before*, although that has no influence now. It is wrong even where every
reader is linear (measured). A clearing kernel on the tape consumes the gradient, and is right.
"""

from __future__ import annotations

from collections.abc import Iterator

from warplint.dataclass import dataclass
from warplint.trace.events import HostWrite
from warplint.trace.flow.operations import FILLS, NUMPY_STORE, Step
from warplint.trace.flow.reachability import Reach
from warplint.trace.flow.recordings import Recording


@dataclass(frozen=True)
class StaleFill:
    """A fill between two uses of one array on one tape: ``writer`` made what is thrown away, ``reader`` reads on."""

    recording: Recording
    fill: Step
    writer: Step
    reader: Step

    @property
    def is_through_view(self) -> bool:
        """Whether the host stored through a numpy view, and called no method of the array."""
        return isinstance(self.fill.event, HostWrite) and self.fill.event.how == NUMPY_STORE


_BESIDE = FILLS | {NUMPY_STORE}


def stale_fills(recording: Recording, established: Reach) -> Iterator[StaleFill]:
    """The fills of one recording through which gradient flows on to what they threw away."""
    steps = recording.window.steps
    for position, step in enumerate(steps):
        if not isinstance(step.event, HostWrite) or step.event.how not in _BESIDE or recording.is_old(step.seq):
            continue
        if not (established.was_varied[position] and established.is_live[position]):
            continue
        memory = step.dest.memory
        writer = next(
            (s for k, s in _backwards(steps, position) if s.dest.memory == memory and established.carried[k]), None
        )
        reader = next(
            (s for k, s in enumerate(steps) if k > position and established.matters[k] and _reads(s, memory)), None
        )
        if writer is None or reader is None or recording.is_old(writer.seq):
            continue
        if step.dest.extent.overlaps(writer.dest.extent) is True:
            yield StaleFill(recording, step, writer, reader)


def _backwards(steps: tuple[Step, ...], before: int) -> Iterator[tuple[int, Step]]:
    return ((position, steps[position]) for position in range(before - 1, -1, -1))


def _reads(step: Step, memory: int) -> bool:
    return any(array.memory == memory for array in step.active)

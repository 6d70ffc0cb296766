"""Arrays that keep their gradient (``retain_grad``) and are stored more than once on one tape.

A store's adjoint takes the destination's gradient and clears it, so that the store before it starts from nothing. Where
``retain_grad`` keeps it, the earlier store's adjoint takes the later one's gradient once more (measured).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from warplint.dataclass import dataclass
from warplint.kernels.summary import StoreKind
from warplint.trace.events import Memory
from warplint.trace.flow.operations import Step
from warplint.trace.flow.reachability import Reach
from warplint.trace.flow.recordings import Recording


@dataclass(frozen=True)
class Retained:
    """``first`` stores or adds to ``memory``, ``second`` stores to it later, and its gradient outlives that adjoint."""

    recording: Recording
    memory: Memory
    first: Step
    second: Step
    leaves: frozenset[int]


def retained_stores(
    recording: Recording, established: Reach, memories: Mapping[int, Memory], repeats: frozenset[int]
) -> Iterator[Retained]:
    """Each such memory once: the first step that passes gradient on to a wanted leaf, and the first store after it."""
    first: dict[int, tuple[int, Step]] = {}
    told: set[int] = set()
    for position, step in recording.window.on_tape():
        memory = memories.get(step.dest.memory)
        if memory is None or not memory.retain_grad or memory.id in told:
            continue
        if recording.is_old(step.seq) or step.seq in repeats or not established.matters[position]:
            continue
        earlier = first.get(memory.id)
        if earlier is None:
            if established.flows(position):
                first[memory.id] = (position, step)
        elif _stores_again(step, earlier[1]):
            told.add(memory.id)
            yield Retained(recording, memory, earlier[1], step, established.carried[earlier[0]])


def _stores_again(step: Step, earlier: Step) -> bool:
    same = step.seq != earlier.seq and earlier.dest.extent.overlaps(step.dest.extent) is True
    return same and step.kind is StoreKind.STORE

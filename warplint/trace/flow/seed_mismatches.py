"""Seeds written by hand that are not the derivative of the number that the program reports as its loss.

``y.grad.fill_(1.0)`` makes the gradient that of the sum of ``y``. Where the host reports the mean of the same array,
the gradient is as many times too large as the array has elements.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from warplint.dataclass import dataclass
from warplint.trace.events import Array, Backward, GradWrite, Memory, Reduction, Trace
from warplint.trace.flow.recordings import Recording

OBJECTIVE = re.compile(r"loss|cost|objective|energy|misfit|(?<![a-z])err|(?<![a-z])r?mse(?![a-z])", re.IGNORECASE)
"""What a line says that reports the number which is to be lowered."""
SEED_TOLERANCE = 1e-3


@dataclass(frozen=True)
class SeedMismatch:
    """The backward computes ``factor`` times the gradient of what is ``reported``; ``seed`` wrote its seed."""

    recording: Recording
    array: Array
    seed: GradWrite | Backward
    value: float
    reported: Reduction
    factor: float


def seed_mismatches(trace: Trace, recordings: Sequence[Recording]) -> Iterator[SeedMismatch]:
    """The recordings with one uniform seed on an array whose mean or sum is reported, and with another derivative."""
    reductions = [each for each in trace.events if isinstance(each, Reduction) and OBJECTIVE.search(each.line)]
    if not reductions:
        return
    writes = [event for event in trace.events if isinstance(event, GradWrite) and event.value is not None]
    for recording in recordings:
        for array, seed, value in _uniform_seeds(recording, writes):
            size = _size(trace.memories.get(array.memory))
            of_it = [each for each in reductions if each.array.memory == array.memory]
            if size is None or size < 2 or len({each.how for each in of_it}) != 1:
                continue
            factor = value * (size if of_it[0].how == "mean" else 1)
            if not math.isclose(factor, 1.0, rel_tol=SEED_TOLERANCE):
                yield SeedMismatch(recording, array, seed, value, of_it[0], factor)


def _uniform_seeds(
    recording: Recording, writes: Sequence[GradWrite]
) -> Iterator[tuple[Array, GradWrite | Backward, float]]:
    """The only seed of a backward, where it is one number for the whole array."""
    backward = recording.backward
    if backward.loss is not None or len(recording.seeds) != 1:
        return
    for array, weight in zip(backward.seeds, backward.weights, strict=False):
        if weight is not None and _is_whole(array):
            yield array, backward, weight
    since = recording.previous.seq if recording.previous is not None else -1
    made = [each for each in writes if each.array.memory in recording.seeds and since < each.seq < backward.seq]
    if made and not backward.seeds and _is_whole(made[-1].array) and made[-1].value is not None:
        yield made[-1].array, made[-1], made[-1].value


def _is_whole(array: Array) -> bool:
    return array.extent.known and array.extent.start is None


def _size(memory: Memory | None) -> int | None:
    if memory is None or memory.shape is None or not memory.dtype or "float" not in memory.dtype:
        return None
    sizes = [size for size in memory.shape if size is not None]
    return math.prod(sizes) if len(sizes) == len(memory.shape) else None

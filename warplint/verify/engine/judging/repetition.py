"""What it takes to measure a gradient again without this engine: which array, which backward call, where to move it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from warplint.verify.engine.differences.directions import COORDINATES
from warplint.verify.engine.differences.measure import Measurement
from warplint.verify.engine.execution.memory import Memory
from warplint.verify.engine.execution.operations import HostWrite, TapeMark
from warplint.verify.engine.replaying.analysis import Analysis
from warplint.verify.engine.replaying.groups import Group
from warplint.verify.records import Direction, GradientStatus, Repetition

LONGEST = 64
"""Numbers of a direction that are worth writing down; a coordinate stands for a longer one."""


def repetition(analysis: Analysis, group: Group, found: Measurement) -> Repetition | None:
    """None where it takes more than moving one array when it is made or a tape entered, and one ``backward(loss)``."""
    begin = group.backwards[0]
    used_before = group.used is not None and group.used.index < begin.index
    memory = group.leaf.memory
    if len(group.backwards) > 1 or begin.loss is None or used_before or analysis.log.base > 0 or not memory.stack:
        return None
    told = _telling(found)
    whole = group.leaf.view.kind.itemsize * group.consumed.size == memory.size
    if told is None or not whole:
        return None
    entered = _entered(analysis, group)
    if entered is None and not _is_new(analysis, group):
        return None
    vector, step = told
    return Repetition(
        array=sum(_alike(memory, other) for other in analysis.log.memories.all if other.number < memory.number),
        backward=begin.number,
        entered=entered,
        move=tuple((int(at), float(vector.flat[at])) for at in np.flatnonzero(vector)),
        step=step,
    )


def _telling(found: Measurement) -> tuple[npt.NDArray[np.float64], float] | None:
    """The direction (and its step) that says most: the failed one that is most off, else a single coordinate."""
    short = [
        (direction.status is not GradientStatus.FAIL, -_off(direction), direction.kind not in COORDINATES, number)
        for number, (direction, vector) in enumerate(zip(found.judged, found.vectors, strict=False))
        if np.count_nonzero(vector.vector) <= LONGEST and direction.step > 0.0
    ]
    if not short:
        return None
    number = min(short)[-1]
    return found.vectors[number].vector, found.judged[number].step


def _off(direction: Direction) -> float:
    """By how much a failed direction's derivatives part; 0 for others, infinite for what is not finite."""
    if direction.status is not GradientStatus.FAIL:
        return 0.0
    off = abs(direction.ad - direction.fd) / max(abs(direction.ad), abs(direction.fd), 1e-30)
    return off if np.isfinite(off) else np.inf


def _entered(analysis: Analysis, group: Group) -> int | None:
    """How many tapes were entered before the one whose entering lies between the last write of the leaf (or
    the group before) and its reads.

    None: nothing lies there, or the program reads the leaf before.
    """
    marks = [op for op in analysis.log.operations if isinstance(op, TapeMark) and op.what == "entered"]
    touched = [operation.index for operation in analysis.of(group.leaf.memory)]
    since = max(group.start, group.previous + 1)
    for number, mark in enumerate(marks):
        if since <= mark.index < group.stop and not any(since <= at < mark.index for at in touched):
            return number
    return None


def _is_new(analysis: Analysis, group: Group) -> bool:
    """Whether nothing has touched the leaf before its window but what made it."""
    memory = group.leaf.memory
    before = [operation for operation in analysis.of(memory) if operation.index < max(group.start, group.previous + 1)]
    return all(isinstance(operation, HostWrite) and operation.stack == memory.stack for operation in before)


def _alike(memory: Memory, other: Memory) -> bool:
    """Whether the other was made at the same line, with a gradient as well."""
    if not other.stack or other.grad is None:
        return False
    (code, line), (own_code, own_line) = other.stack[0], memory.stack[0]
    return (code.co_filename, line) == (own_code.co_filename, own_line)

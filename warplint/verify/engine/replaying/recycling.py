"""Running steps in less memory: what they make for each other alone takes turns in a few buffers.

Register allocation by linear scan (Poletto, Sarkar, *Linear scan register allocation*, TOPLAS 21, 1999), with whole
memories for values. A judge runs in a forked process, where the first write to each page copies it: measured, 800 MB of
states cost as much as three runs of the kernels that make them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from warplint.dataclass import dataclass
from warplint.verify.engine.execution.accesses import view_of
from warplint.verify.engine.execution.memory import PADDING, Bytes, Memory
from warplint.verify.engine.execution.operations import BackwardBegin, KernelCall
from warplint.verify.engine.replaying.analysis import Analysis
from warplint.verify.engine.replaying.steps import Frozen, Step
from warplint.verify.engine.warp_values import copied, descriptor

ALIGNMENT = 64


@dataclass(frozen=True)
class Recycled:
    """Steps that make the same of what they begin with, but leave ``moved`` memories as they were."""

    steps: list[Step]
    instead_of: Sequence[Step]
    moved: frozenset[Memory]
    buffers: tuple[Bytes, ...]
    """What stands in their place, kept alive."""


def recycled(steps: Sequence[Step], kept: Collection[Memory], analysis: Analysis) -> Recycled | None:
    """The steps in less memory, ``kept`` being what is asked for besides; None where nothing is to be had by it.

    Only memories move that a launch overwrites from end to end before anything reads them, and that nothing but
    launches touch, each through array parameters of floats. None as well where a kernel may reach memory that no
    parameter shows.
    """
    calls = [step for step in steps if isinstance(step, KernelCall)]
    if analysis.log.handles or any(call.layout.unseen or call.unknown or call.adjoint for call in calls):
        return None
    first: dict[Memory, int] = {}
    last: dict[Memory, int] = {}
    fixed = set(kept)
    for place, step in enumerate(steps):
        if isinstance(step, BackwardBegin):
            continue
        if not isinstance(step, KernelCall):
            if not isinstance(step, Frozen) and not hasattr(step, "touched"):
                return None
            fixed.update(step.operation.touched if isinstance(step, Frozen) else step.touched)
            continue
        fixed.update(_reached_otherwise(step, analysis))
        ends = analysis.survey.liveness.of(step).ends
        for memory in step.touched:
            if memory not in first:
                first[memory] = place
                if memory not in ends:
                    fixed.add(memory)
            last[memory] = place
    moving = first.keys() - fixed
    return _moved(steps, moving, first, last, analysis) if moving else None


def _reached_otherwise(call: KernelCall, analysis: Analysis) -> set[Memory]:
    """The memories of a launch that it does not reach through array parameters of floats alone."""
    plain: set[Memory] = set()
    other = set(call.touched)
    for slot in call.layout.slots:
        memory = analysis.log.memories.find(int(descriptor(call.params[slot.parameter], slot.offset).data))
        if memory is not None and view_of(call, slot) is not None:
            plain.add(memory)
    other -= plain
    for slot in call.layout.slots:
        if view_of(call, slot) is None:
            memory = analysis.log.memories.find(int(descriptor(call.params[slot.parameter], slot.offset).data))
            other.update(() if memory is None else (memory,))
    return other


def _moved(
    steps: Sequence[Step],
    moving: Collection[Memory],
    first: dict[Memory, int],
    last: dict[Memory, int],
    analysis: Analysis,
) -> Recycled:
    free: defaultdict[int, list[Bytes]] = defaultdict(list)
    buffers: list[Bytes] = []
    at: dict[Memory, Bytes] = {}
    made: list[Step] = []
    for place, step in enumerate(steps):
        own = [memory for memory in step.touched if memory in moving] if isinstance(step, KernelCall) else []
        for memory in own:
            if first[memory] == place:
                if not free[memory.size]:
                    buffers.append(_buffer(memory.size))
                    free[memory.size].append(buffers[-1])
                at[memory] = free[memory.size].pop()
        made.append(_relocated(step, at, analysis) if own and isinstance(step, KernelCall) else step)
        for memory in own:
            if last[memory] == place:
                free[memory.size].append(at.pop(memory))
    return Recycled(made, steps, frozenset(moving), tuple(buffers))


def _buffer(size: int) -> Bytes:
    raw = np.empty(size + PADDING + ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size + PADDING]


def _relocated(call: KernelCall, at: dict[Memory, Bytes], analysis: Analysis) -> KernelCall:
    """The launch with other addresses for some of its memories."""
    params = copied(call.params)
    for slot in call.layout.slots:
        array = descriptor(params[slot.parameter], slot.offset)
        memory = analysis.log.memories.find(int(array.data)) if array.data else None
        if memory in at:
            array.data = int(array.data) + at[memory].ctypes.data - memory.address
    return replace(call, params=params, _packed=None, views={})

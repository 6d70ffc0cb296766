"""Where the gradient stops although the value goes on, and where a kernel's own adjoint is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from warplint.kernels.summary import KernelFault
from warplint.trace.events import Launch, Memory
from warplint.trace.operations import Operation, Step
from warplint.trace.reachability import Reach
from warplint.trace.recordings import Recording


@dataclass(frozen=True)
class FlagGap:
    """An array without a gradient on the way from a wanted leaf to the loss.

    ``writer`` is the first recorded launch that stores gradient-carrying data to it; ``reader`` the first that reads
    it on towards the loss (None: the writing launch itself does).
    """

    recording: Recording
    memory: Memory
    writer: Step
    reader: Step | None
    leaves: frozenset[int]


@dataclass(frozen=True)
class LaunchedFault:
    """A fault of a kernel's adjoint, met by a launch.

    ``established``: on a tape, gradient flows through the operand in question, and the result matters to the loss.
    """

    launch: Launch
    fault: KernelFault
    recording: Recording
    established: bool


def flag_gaps(recording: Recording, ignoring_flags: Reach, memories: Mapping[int, Memory]) -> Iterator[FlagGap]:
    """The arrays that are known to lack a gradient, each once: ``ignoring_flags`` says where it would flow."""
    seen: set[int] = set()
    for position, step in recording.window.on_tape():
        memory = memories.get(step.dest.memory)
        if memory is None or memory.id in seen or memory.id in recording.seeds:
            continue
        if memory.requires_grad is not False or not isinstance(step.event, Launch):
            continue
        if ignoring_flags.flows(position):
            seen.add(memory.id)
            reader = _reader(recording, ignoring_flags, memory.id, position)
            yield FlagGap(recording, memory, step, reader, ignoring_flags.carried[position])


def _reader(recording: Recording, reach: Reach, memory: int, after: int) -> Step | None:
    for position, step in recording.window.on_tape():
        if position > after and reach.matters[position] and memory in reach.carried[position]:
            return step
    return None


def launched_faults(
    recording: Recording, established: Reach, operations: Mapping[int, Operation]
) -> Iterator[LaunchedFault]:
    """The faults of the kernels that a tape recorded, judged by what flows through each launch."""
    active: dict[int, list[int]] = {}
    for position, step in recording.window.on_tape():
        active.setdefault(step.seq, []).append(position)
    for seq, positions in active.items():
        operation = operations[seq]
        if operation.summary is None or not isinstance(operation.event, Launch):
            continue
        for fault in operation.summary.faults:
            hit = any(_is_hit(fault, recording.window.steps[position], position, established) for position in positions)
            yield LaunchedFault(operation.event, fault, recording, hit)


def _is_hit(fault: KernelFault, step: Step, position: int, reach: Reach) -> bool:
    if step.store is None or step.store.path not in fault.into or not reach.flows(position):
        return False
    if not fault.given:
        return True
    assert isinstance(step.event, Launch)
    given = {b.array.memory for b in step.event.bindings if b.array is not None and b.path in fault.given}
    return bool(given & reach.carried[position])

"""Where the gradient stops although the value goes on, and where a kernel's own adjoint is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from warplint.dataclass import dataclass
from warplint.kernels.summary import Cut, KernelFault, KernelFaultKind
from warplint.trace.events import Array, Event, Launch, Memory
from warplint.trace.flow.operations import Operation, Step, has_gradient
from warplint.trace.flow.reachability import Reach
from warplint.trace.flow.recordings import Recording


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
    recording: Recording, established: Reach, uncut: Reach, operations: Mapping[int, Operation]
) -> Iterator[LaunchedFault]:
    """The faults of the kernels that a tape recorded, judged by what flows through each launch.

    ``uncut``: where gradient would flow if each operation had an adjoint, for the faults that are the lack of one.
    """
    active: dict[int, list[int]] = {}
    for position, step in recording.window.on_tape():
        active.setdefault(step.seq, []).append(position)
    for seq, positions in active.items():
        operation = operations[seq]
        if operation.summary is None or not isinstance(operation.event, Launch):
            continue
        for fault in operation.summary.faults:
            reach = uncut if fault.kind in _CUTS else established
            hit = any(_is_hit(fault, recording.window.steps[position], position, reach) for position in positions)
            yield LaunchedFault(operation.event, fault, recording, hit)


_CUTS = (KernelFaultKind.NONDIFFERENTIABLE, KernelFaultKind.NATIVE)


@dataclass(frozen=True)
class FlatLeaf:
    """A leaf whose gradient is wanted and rightly zero: each way from it to the loss passes a flat operation.

    ``fault`` is one such operation, in the kernel of ``launch``. ``established``: no way is hidden from the trace.
    """

    leaf: int
    launch: Launch
    fault: KernelFault
    recording: Recording
    established: bool


def flat_leaves(
    recording: Recording,
    sloped: Reach,
    unflattened: Reach,
    operations: Mapping[int, Operation],
    memories: Mapping[int, Memory],
) -> Iterator[FlatLeaf]:
    """The leaves from which gradient would reach the loss if flat operations passed it on, and does not as they do not.

    ``sloped``: where gradient flows, flags aside; ``unflattened``: the same through flat operations.
    """
    reaching = {
        memory for position, carried in enumerate(sloped.carried) if sloped.matters[position] for memory in carried
    }
    resolved = all(operations[seq].resolved for seq in recording.window.recorded)
    varied: dict[int, set[int]] = {leaf: {leaf} for leaf in recording.wanted - reaching}
    for position, step in recording.window.on_tape():
        operation = operations[step.seq]
        if not isinstance(operation.event, Launch) or operation.summary is None or step.store is None:
            continue
        flat = {array.memory for array, why in step.severed if why is Cut.FLAT} & unflattened.carried[position]
        for leaf, reached in varied.items():
            if reached & flat and unflattened.matters[position]:
                established = (
                    resolved and has_gradient(Array(leaf), memories) is True and not memories[leaf].holds_integers
                )
                for fault in _flat_faults(operation, step, reached):
                    yield FlatLeaf(leaf, operation.event, fault, recording, established)
            if reached & {array.memory for array in step.active}:
                reached.add(step.dest.memory)


def _flat_faults(operation: Operation, step: Step, memories: set[int]) -> Iterator[KernelFault]:
    assert operation.summary is not None
    assert step.store is not None
    paths = {path for path, array in _bound(operation).items() if array in memories}
    for fault in operation.summary.faults:
        if fault.kind is KernelFaultKind.FLAT and step.store.path in fault.into and paths & fault.given:
            yield fault


def _bound(operation: Operation) -> dict[str, int]:
    assert isinstance(operation.event, Launch)
    return {each.path: each.array.memory for each in operation.event.bindings if each.array is not None}


def _left_out(event: Event) -> frozenset[str]:
    """The parameters that a launch gives no array: ``None``, where all of its arrays are known."""
    if not isinstance(event, Launch) or not event.complete:
        return frozenset()
    return frozenset(binding.path for binding in event.bindings if binding.array is None)


def _is_hit(fault: KernelFault, step: Step, position: int, reach: Reach) -> bool:
    if step.store is None or step.store.path not in fault.into or fault.present & _left_out(step.event):
        return False
    if fault.kind is KernelFaultKind.EXTREME_KEPT:
        return reach.matters[position] and reach.was_varied[position]
    if not reach.flows(position):
        return False
    if not fault.given:
        return True
    assert isinstance(step.event, Launch)
    given = {b.array.memory for b in step.event.bindings if b.array is not None and b.path in fault.given}
    return bool(given & reach.carried[position])

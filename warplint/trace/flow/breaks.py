"""Where a value goes on towards the loss and the tape does not: the first broken link behind each leaf.

What a leaf truly influences is followed over everything that happens between the opening of the tape and the backward,
on the tape or beside it. A link is broken where gradient is known to reach an operation's source, and the
operation passes the value on, but no adjoint: it was launched beside the tape, told not to be recorded, carried by the
host, or its kernel has no backward code. Only the first broken link of a chain is told; what comes after it is lost
already. A missing ``requires_grad`` is no broken link (``FlagGap``), but it ends a chain all the same.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from warplint.dataclass import dataclass
from warplint.finding import Source
from warplint.kernels.summary import StoreKind
from warplint.trace.events import Alias, Array, Copy, Event, HostRead, HostWrite, Launch, Memory, Opaque
from warplint.trace.flow.operations import Operation, Step, active_tape, differentiated, has_gradient, recorded_on
from warplint.trace.flow.reachability import Regard, Rules
from warplint.trace.flow.recordings import GradientLife, Recording, Window

READINGS = frozenset({"numpy", "list"})
"""How contents come to the host by the program's own word; a constructor reads as it copies."""


class Break(enum.Enum):
    """Why the link has no adjoint."""

    UNRECORDED = "unrecorded"
    """It happened while the tape was open, and the tape does not hold it."""
    OUTSIDE = "outside"
    """It happened when no tape was open."""
    HOST = "host"
    """The value went through the host: ``.numpy()`` and back, as an array or as a scalar argument."""
    NO_BACKWARD = "no backward"
    """It was recorded, but its kernel was compiled without backward code."""
    ALIAS = "alias"
    """It was recorded, but reads the memory under a pointer alias, which has a gradient of its own or none."""


@dataclass(frozen=True)
class BrokenLink:
    """An operation that passes on what ``leaves`` influence, and no gradient back to them.

    ``sources`` are the memories it takes that influence from.
    """

    recording: Recording
    event: Event
    why: Break
    sources: frozenset[int]
    leaves: frozenset[int]
    dest: Array


@dataclass(frozen=True)
class _Link:
    """One step, seen for what it does to values: from where, and whether its adjoint does the same."""

    step: Step
    sources: frozenset[int]
    by_host: frozenset[int]
    overwrites: bool


@dataclass(frozen=True)
class Surroundings:
    """What lies around a recording: the whole trace's operations, what explains nothing, the gradients' life."""

    operations: Sequence[Operation]
    memories: Mapping[int, Memory]
    life: GradientLife
    opaque: Sequence[Opaque]
    host_reads: Sequence[HostRead]
    source: Source
    warp: tuple[int, int]

    @cached_property
    def on_tapes(self) -> frozenset[int]:
        """The memories that some recorded operation touches."""
        return frozenset(
            array.memory
            for operation in self.operations
            if recorded_on(operation.event) is not None
            for array in (*operation.reads, *(step.dest for step in operation.steps))
        )

    @cached_property
    def sums_beside(self) -> Sequence[tuple[int, int]]:
        """What is added to while no tape is open: the operations by number, each with the memory."""
        return [
            (operation.seq, step.dest.memory)
            for operation in self.operations
            for step in operation.steps
            if step.kind is StoreKind.ACCUMULATE and recorded_on(step.event) is None and active_tape(step.event) is None
        ]

    def last_written(self, memory: int, before: int) -> int:
        """The number of the last operation before event ``before`` that wrote a memory; -1: none did."""
        return max(
            (
                operation.seq
                for operation in self.operations
                if operation.seq < before and any(step.dest.memory == memory for step in operation.steps)
            ),
            default=-1,
        )

    def came_as_value(self, memory: int, start: int, stop: int) -> bool:
        """Whether the host may know a memory's contents of this time, and not only what its gradient was before.

        An optimiser on the host computes the next parameters from gradients: nobody differentiates through that.
        """
        if any(start <= read.seq < stop for read in self.host_reads if read.array.memory == memory):
            return True
        return not any(seq < stop for seq in self.life.used.get(memory, ()))

    def unreached(self, seq: int) -> frozenset[int]:
        """Leaves whose gradient is used after a backward although no tape ever saw them."""
        return frozenset(
            memory
            for memory, uses in self.life.used.items()
            if uses[-1] > seq and memory not in self.on_tapes and has_gradient(Array(memory), self.memories) is True
        )


def broken_links(recording: Recording, around: Surroundings) -> Iterator[BrokenLink]:
    """The first broken link behind each leaf, in time order; none where something happened that is not explained."""
    since = recording.previous.seq if recording.previous is not None else -1
    stop = recording.backward.seq
    opened = (entry.seq for entry in recording.period.entries if since < entry.seq < stop)
    first = min((*(seq for seq in recording.window.recorded if seq > since), *opened), default=stop)
    yield from _links_from(recording, around, first, recording.wanted)
    yield from _terms_before(recording, around, since, first)
    unreached = around.unreached(stop)
    if unreached:  # what writes such a leaf itself makes it anew (an update): nothing is lost there
        links = _links_from(recording, around, since, unreached)
        yield from (link for link in links if link.dest.memory not in unreached)


def _terms_before(recording: Recording, around: Surroundings, since: int, first: int) -> Iterator[BrokenLink]:
    """What was added to the loss before the tape was opened that goes on adding to it: a term that no tape has.

    Of other things that were computed before the tape, the gradient is that for them as data.
    """
    terms = [seq for seq, memory in around.sums_beside if since < seq < first and memory in recording.seeds]
    for link in _links_from(recording, around, min(terms, default=first), recording.wanted) if terms else ():
        fresh = all(around.last_written(leaf, first) < link.event.seq for leaf in link.leaves)
        if link.event.seq in terms and link.dest.memory in recording.seeds and fresh:
            yield link


def _links_from(
    recording: Recording, around: Surroundings, start: int, leaves_wanted: frozenset[int]
) -> Iterator[BrokenLink]:
    stop = recording.backward.seq
    if any(start < event.seq < stop for event in around.opaque):
        return
    inside = [operation for operation in around.operations if start <= operation.seq < stop]
    links = [_link(step, operation, around, start) for operation in inside for step in operation.steps]
    resolved = {operation.seq for operation in inside if operation.resolved}
    window = Window(recording.period.tape, (), recording.window.recorded)
    rules = Rules(Regard.ESTABLISHED, window, around.memories, around.warp)
    reached = {leaf: frozenset((leaf,)) for leaf in leaves_wanted if rules.holds_gradient(Array(leaf))}
    by_pointer: dict[int, bool] = {}
    for link, is_live in zip(links, _matters(links, recording.seeds), strict=True):
        step = link.step
        parted = _parted(step, by_pointer) if recorded_on(step.event) == recording.period.tape else _NOTHING
        why = _why(link, around, recording) or (Break.ALIAS if parted & reached.keys() else None)
        carrying = parted if why is Break.ALIAS else link.by_host or link.sources
        leaves = _leaves(carrying, reached)
        if why is not None and leaves and is_live and step.seq in resolved:
            sources = carrying & reached.keys()
            yield BrokenLink(recording, step.event, why, sources, leaves, step.dest)
        passes_on = rules.counts(step) and rules.holds_gradient(step.dest)
        given = _leaves(rules.sources(step) - parted, reached) if passes_on else frozenset()
        if given:
            by_pointer[step.dest.memory] = step.dest.alias is Alias.POINTER
            reached[step.dest.memory] = reached.get(step.dest.memory, frozenset()) | given
        elif link.overwrites and step.dest.memory not in link.sources:
            reached.pop(step.dest.memory, None)


_NOTHING: frozenset[int] = frozenset()


def _parted(step: Step, by_pointer: Mapping[int, bool]) -> frozenset[int]:
    """The sources that are read under another name than they were written under, one of them a pointer alias."""
    return frozenset(
        array.memory
        for array in step.active
        if array.memory in by_pointer and by_pointer[array.memory] is not (array.alias is Alias.POINTER)
    )


def _link(step: Step, operation: Operation, around: Surroundings, start: int) -> _Link:
    event = step.event
    hosted: frozenset[int] = frozenset()
    sources = frozenset(array.memory for array in step.depends)
    if isinstance(event, HostWrite):
        sources, hosted = frozenset(), event.from_host
    elif isinstance(event, Launch) and operation.summary is not None:
        numbers = {p.name for p in operation.summary.parameters if p.kind == "scalar" and p.floating is True}
        hosted = frozenset().union(*(b.from_host for b in event.bindings if b.path in numbers))
    hosted = frozenset(memory for memory in hosted if around.came_as_value(memory, start, event.seq))
    whole = step.dest.extent.known and step.dest.extent.start is None
    return _Link(step, sources, hosted, step.kind is StoreKind.STORE and whole)


def _is_copied_on_device(link: _Link, around: Surroundings) -> bool:
    """Whether a recorded constructor took another array's contents itself: nothing was read to the host since."""
    event = link.step.event
    if around.source is not Source.RUNTIME or not isinstance(event, HostWrite) or event.how != "array":
        return False
    return not any(
        around.last_written(memory, event.seq) < read.seq < event.seq
        for memory in link.by_host
        for read in around.host_reads
        if read.array.memory == memory and read.how in READINGS
    )


def _leaves(sources: frozenset[int], reached: Mapping[int, frozenset[int]]) -> frozenset[int]:
    return frozenset().union(*(reached[memory] for memory in sources if memory in reached))


def _matters(links: Sequence[_Link], roots: frozenset[int]) -> list[bool]:
    """Whether each step's result still influences the loss; any plain store of a whole array is taken to replace it."""
    live = set(roots)
    found = [False] * len(links)
    for position in range(len(links) - 1, -1, -1):
        link = links[position]
        memory = link.step.dest.memory
        if memory not in live:
            continue
        found[position] = True
        if link.overwrites:
            live.discard(memory)
        live |= link.sources | link.by_host
    return found


def _why(link: _Link, around: Surroundings, recording: Recording) -> Break | None:
    """Why the step has no adjoint on this tape; None: it has one, or lacks a flag, or it is not known."""
    event, tape = link.step.event, recording.period.tape
    if link.by_host:
        return Break.UNRECORDED if _is_copied_on_device(link, around) else Break.HOST
    if recorded_on(event) == tape:
        return Break.NO_BACKWARD if differentiated(event) is False else None
    if recorded_on(event) is not None or not isinstance(event, (Launch, Copy)):
        return None
    if isinstance(event, Copy) and has_gradient(event.source, around.memories) is not True:
        return None
    if active_tape(event) == tape:
        return Break.UNRECORDED
    return Break.OUTSIDE if active_tape(event) is None else None

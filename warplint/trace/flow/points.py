"""Launches that stand at a point without a derivative, as the contents of arrays in the program's text show.

The operations of a trace are executed on what is known of the arrays: literal contents, fills, what earlier launches
stored, and that two arrays hold the same numbers, whichever they are. What nobody knows ends a thread, and what it
would have written is unknown from then on.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from warplint.dataclass import dataclass
from warplint.finding import Span
from warplint.kernels import types
from warplint.kernels.arithmetic import single
from warplint.kernels.contents import Contents, Unseen
from warplint.kernels.execution import Budget, Execution, Nudge, Spent, Stuck, parameter_types
from warplint.kernels.handles import Bound
from warplint.kernels.summary import KernelSummary, NonsmoothPoint, PointKind
from warplint.trace.events import Alias, Array, Copy, Event, HostWrite, Launch, Memory, Opaque, Trace
from warplint.trace.flow.operations import Operation
from warplint.trace.flow.reachability import Reach
from warplint.trace.flow.recordings import Recording

MOST_STEPS = 60_000
"""Steps of one run of a trace up to a backward."""

MOST_THREADS = 256
"""Launches of more threads are looked at in their first ones only; what they write is unknown then."""

FIRST_THREADS = 8
MOST_KINKS = 4
"""Kinks of one recording that are tried out, each by two runs."""

STEP = 1e-3
BEND = 0.02
"""A kink matters where the slopes on its two sides differ by more than this."""

_EVEN = {"zeros": 0.0, "zeros_like": 0.0, "ones": 1.0, "ones_like": 1.0}


@dataclass(frozen=True)
class LaunchedPoint:
    """An operation without a derivative somewhere, in a kernel that a tape recorded, with gradient flowing through it.

    ``thread``: the first one that is seen to come to the point itself; None: nothing in sight says so.
    """

    launch: Launch
    point: NonsmoothPoint
    recording: Recording
    thread: tuple[int, ...] | None


def launched_points(
    recording: Recording, established: Reach, operations: Mapping[int, Operation], trace: Trace
) -> Iterator[LaunchedPoint]:
    """The points of the kernels that a tape recorded, where gradient flows through them and matters to the loss."""
    found = dict(_established(recording, established, operations))
    if not found:
        return
    walk = _Walk(trace, operations, recording, frozenset(seq for seq, _ in found))
    met = walk.met()
    kinks = 0
    for (seq, span), (launch, point) in found.items():
        thread = met.get((seq, span))
        if point.kind is PointKind.KINK and thread is not None:
            kinks += 1
            thread = thread if kinks <= MOST_KINKS and walk.bends(seq, span, thread) else None
        yield LaunchedPoint(launch, point, recording, thread)


@dataclass(frozen=True)
class LeftLoops:
    """``early``: loops, by launch and place, that a thread leaves before the bound is reached, and the statements that
    end an iteration. ``ended``: launches of which all threads were run to the end, on contents that the program shows.
    """

    early: frozenset[tuple[int, Span]] = frozenset()
    ended: frozenset[int] = frozenset()

    def never(self, launch: Launch, place: Span | None) -> bool:
        """Whether no thread of a launch leaves the loop at a place early, or comes to the ``continue`` there."""
        return launch.seq in self.ended and (launch.seq, place) not in self.early


def left_loops(recording: Recording, operations: Mapping[int, Operation], trace: Trace) -> LeftLoops:
    """What is seen of the loops in the launches before a backward."""
    ended: set[int] = set()
    launches = frozenset(event.seq for event in trace.events if isinstance(event, Launch))
    early = _Walk(trace, operations, recording, launches).met(ended.add)
    return LeftLoops(frozenset(early), frozenset(ended))


def _established(
    recording: Recording, established: Reach, operations: Mapping[int, Operation]
) -> Iterator[tuple[tuple[int, Span], tuple[Launch, NonsmoothPoint]]]:
    for position, step in recording.window.on_tape():
        operation = operations[step.seq]
        if operation.summary is None or step.store is None or not established.flows(position):
            continue
        assert isinstance(operation.event, Launch)
        carried = established.carried[position]
        varied = {
            each.path for each in operation.event.bindings if each.array is not None and each.array.memory in carried
        }
        for point in operation.summary.points:
            if step.store.path in point.into and point.given & varied:
                yield (step.seq, point.span), (operation.event, point)


@dataclass
class _State:
    """The memories during one run."""

    memories: Mapping[int, Memory]
    contents: dict[int, Contents] = field(default_factory=dict)

    def of(self, memory: int) -> Contents:
        """What a memory holds now."""
        known = self.contents.get(memory)
        if known is None:
            known = self.contents[memory] = _first_contents(self.memories.get(memory))
        return known

    def bound(self, array: Array, dimensions: int | None) -> Bound:
        """A handle as a kernel sees it, with as many dimensions as its parameter has."""
        memory = self.memories.get(array.memory)
        of = (types.named(memory.dtype) if memory is not None and memory.dtype else None) or types.UNKNOWN
        if array.gradient:
            return Bound(Contents(), of, dimensions or 1)
        contents = self.of(array.memory)
        extents = len(contents.shape) if contents.shape is not None else 1
        start, stop = array.extent.start, array.extent.stop
        if not array.extent.known or array.alias in (Alias.POINTER, Alias.NUMPY):
            return Bound(contents, of, dimensions or 1, known=False)
        if start is None and array.alias is Alias.NONE:
            return Bound(contents, of, dimensions or extents)
        if extents == 1 and dimensions in (1, None):
            return Bound(contents, of, 1, offset=start or 0)
        if start is not None and stop == start + 1 and extents == 2 and dimensions == 1:
            return Bound(contents, of, 1, first=(start,))
        return Bound(contents, of, dimensions or 1, known=False)


def _first_contents(memory: Memory | None) -> Contents:
    if memory is None or memory.outside:
        return Contents()
    given: Sequence[float] | float | None = memory.contents
    if memory.contents and len(set(memory.contents)) == 1:
        given = memory.contents[0]
    elif not memory.contents:
        given = _EVEN.get(memory.made_by)
    return Contents(memory.shape, given)


@dataclass(frozen=True)
class _Walk:
    """The operations of a trace up to the backward of a recording, to be run on what is known of the arrays.

    ``looked_at``: the launches that are asked about. Of the others only those are run that can be run to the end.
    """

    trace: Trace
    operations: Mapping[int, Operation]
    recording: Recording
    looked_at: frozenset[int]

    def met(self, ended: Callable[[int], None] = lambda seq: None) -> dict[tuple[int, Span], tuple[int, ...]]:
        """For each launch and operation that stands at its point, or loop that is left early: the first such thread.

        ``ended`` is told of each launch that was run to the end.
        """
        found: dict[tuple[int, Span], tuple[int, ...]] = {}

        def note(seq: int, thread: tuple[int, ...], span: Span) -> None:
            found.setdefault((seq, span), thread)

        self._run(note, single, None, ended)
        return found

    def bends(self, seq: int, span: Span, thread: tuple[int, ...]) -> bool:
        """Whether the loss has different slopes on the two sides of a kink, as far as a run tells."""
        losses = [self._loss(seq, Nudge(span, thread, size)) for size in (STEP, 0.0, -STEP)]
        if any(loss is None for loss in losses):
            return False
        up, here, down = (loss for loss in losses if loss is not None)
        return abs(up + down - 2.0 * here) > BEND * STEP

    def _loss(self, seq: int, nudge: Nudge) -> float | None:
        state = self._run(lambda seq, thread, span: None, float, (seq, nudge))
        totals = [state.of(memory).total() for memory in self.recording.seeds] if state is not None else []
        return None if len(totals) != 1 or isinstance(totals[0], Unseen) else float(totals[0])

    def _run(
        self,
        note: Callable[[int, tuple[int, ...], Span], None],
        rounded: Callable[[float], float],
        nudged: tuple[int, Nudge] | None,
        ended: Callable[[int], None] = lambda seq: None,
    ) -> _State | None:
        """The memories at the backward; None where the budget did not last."""
        state, budget = _State(self.trace.memories), Budget(MOST_STEPS)
        try:
            for event in self.trace.events:
                if event.seq >= self.recording.backward.seq:
                    break
                if isinstance(event, Launch):
                    nudge = nudged[1] if nudged is not None and nudged[0] == event.seq else None
                    operation = self.operations.get(event.seq)
                    summary = operation.summary if operation is not None else None
                    terms = _Terms(budget, rounded, nudge, note, ended, event.seq in self.looked_at)
                    _launch(event, summary, state, terms)
                else:
                    _write(event, state)
        except Spent:
            return None
        return state


@dataclass(frozen=True)
class _Terms:
    """How threads are run."""

    budget: Budget
    rounded: Callable[[float], float]
    nudge: Nudge | None
    note: Callable[[int, tuple[int, ...], Span], None]
    ended: Callable[[int], None]
    looked_at: bool


def _write(event: Event, state: _State) -> None:
    """A copy or a host's write."""
    if isinstance(event, Copy) and not event.dest.gradient:
        if _is_whole(event.source) and _is_whole(event.dest) and not event.source.gradient:
            shape = state.of(event.dest.memory).shape
            state.contents[event.dest.memory] = state.of(event.source.memory).copy()
            state.contents[event.dest.memory].shape = shape
        else:
            state.of(event.dest.memory).forget()
    elif isinstance(event, HostWrite) and not event.dest.gradient:
        contents = state.of(event.dest.memory)
        contents.forget()
        if event.how == "zero_" and _is_whole(event.dest):
            contents.given = 0.0
    elif isinstance(event, Opaque):
        for array in event.arrays:
            state.of(array.memory).forget()


def _is_whole(array: Array) -> bool:
    return array.extent.known and array.extent.start is None


def _launch(event: Launch, summary: KernelSummary | None, state: _State, terms: _Terms) -> None:
    """Run a launch's threads; where that cannot be done to the end, what it writes is unknown."""
    if event.adjoint:
        return
    if summary is None or summary.source is None:
        _forget(event, state, None)
        return
    if not terms.looked_at and not _is_small(event):
        _forget(event, state, summary)
        return
    dimensions = {parameter.name: parameter.ndim for parameter in summary.parameters}
    arguments: dict[str, object] = {}
    for binding in event.bindings:
        if binding.array is not None:
            arguments[binding.path] = state.bound(binding.array, dimensions.get(binding.path))
        elif binding.value is not None and not binding.from_host:
            arguments[binding.path] = binding.value
    complete = event.complete and summary.complete
    of = parameter_types(summary.source)
    for thread in _threads(event):
        execution = Execution(
            summary.source,
            of,
            arguments,
            thread,
            terms.budget,
            functools.partial(terms.note, event.seq, thread),
            terms.rounded,
            terms.nudge,
        )
        try:
            execution.run()
        except (Stuck, RecursionError):
            complete = False
    if complete and _is_small(event):
        terms.ended(event.seq)
    else:
        _forget(event, state, summary)


def _forget(event: Launch, state: _State, summary: KernelSummary | None) -> None:
    for binding in event.bindings:
        if binding.array is None or binding.array.gradient:
            continue
        if summary is None or not summary.complete or binding.path in summary.written_paths:
            state.of(binding.array.memory).forget()


def _is_small(event: Launch) -> bool:
    if event.dim is None:
        return False
    size = 1
    for extent in event.dim:
        if extent is None:
            return False
        size *= extent
    return size <= MOST_THREADS


def _threads(event: Launch) -> Iterable[tuple[int, ...]]:
    """The threads to run: all of a small launch, the first ones of a large one."""
    if event.dim is None or any(extent is None for extent in event.dim):
        return ()
    threads = itertools.product(*(range(extent) for extent in event.dim if extent is not None))
    return threads if _is_small(event) else itertools.islice(threads, FIRST_THREADS)

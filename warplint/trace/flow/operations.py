"""Operations on memory: the trace's launches, copies and host writes, with the arrays of the launch put in.

A kernel summary speaks of access paths (``q``, ``state.q``); a launch binds them to arrays. Here both meet: each store
of each operation becomes a :class:`Step` from arrays to an array, in the order in which the stores happen, so that a
kernel that writes an array and reads it again is followed correctly.

Gradients are memories of their own (:attr:`Array.gradient`) and never part of the data's flow: an optimiser's launch,
which reads ``x.grad`` and writes ``x``, does not make ``x`` depend on what the tape computed.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Set
from dataclasses import field
from functools import cached_property

from warplint.dataclass import dataclass
from warplint.kernels.source import KernelSource
from warplint.kernels.summary import Cut, KernelSummary, Need, Store, StoreKind
from warplint.trace.events import Alias, Array, Copy, Event, HostWrite, Kernel, Launch, Memory, Trace

SourceOf = Callable[[Kernel], "KernelSource | None"]
"""The text of a kernel of the trace, and the meaning of its names; None where it is not there to be read."""

SummaryOf = Callable[[Kernel], "KernelSummary | None"]
"""The adjoint-need summary of a kernel of this trace; None where its source could not be read."""


FILLS = frozenset({"zero_", "fill_", "assign"})
NUMPY_STORE = "numpy-store"
"""How a host write is called that a program makes through a numpy view of an array."""
"""Methods of arrays that write and are recorded on no tape (``assign`` of host data)."""


@dataclass(frozen=True)
class NeededRead:
    """A value that the adjoint of one step reads again in the backward pass.

    ``given`` are the memories through which gradient must flow for the value to be needed; empty: whatever flows.
    """

    array: Array
    need: Need
    given: frozenset[int]


@dataclass(frozen=True)
class Step:
    """One store of one operation: what it writes, from what, and what its adjoint needs.

    ``active`` are the arrays from which the operation's own adjoint passes gradient on (flags aside), ``depends`` all
    arrays the value truly depends on. ``covers``: nothing of the destination's old contents is left. ``order`` is the
    number of the statement in the kernel (0 for copies and host writes). ``bound`` are the launch's arrays by path.
    """

    event: Event
    dest: Array
    kind: StoreKind
    active: tuple[Array, ...] = ()
    depends: tuple[Array, ...] = ()
    covers: bool = False
    order: int = 0
    store: Store | None = None
    severed: tuple[tuple[Array, Cut], ...] = ()
    """The arrays from which gradient would come, but for an operation in the kernel that stops it."""
    changes_nothing: bool = False
    """It puts an element's value back where it was read."""
    read_before: bool = False
    """The launch read the destination before this store: its later steps may go back to the old contents."""
    bound: Mapping[str, Array] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def needs(self) -> tuple[NeededRead, ...]:
        """What the step's adjoint reads again; most steps lead to no loss, and are never asked."""
        return tuple(self.needs_of(self.bound))

    def needs_of(self, paths: Container[str]) -> Iterator[NeededRead]:
        """The same, of what is read under these paths."""
        bound, givens = self.bound, dict[frozenset[str], frozenset[int]]()
        for need in self.store.needs if self.store is not None else ():
            path = need.read.path
            if path not in paths or path not in bound:
                continue
            given = givens.get(need.given)
            if given is None:
                given = givens[need.given] = frozenset([bound[each].memory for each in need.given if each in bound])
            if given or not need.given:
                yield NeededRead(bound[path], need, given)

    @cached_property
    def seq(self) -> int:
        """The number of the operation's event in the trace."""
        return self.event.seq


@dataclass(frozen=True)
class Operation:
    """A launch, copy or host write with its steps in store order and the arrays whose data it reads.

    Arrays that were bound as gradients (``x.grad``) are kept apart. ``resolved``: the kernel, its summary and all
    arrays are known, so that the absence of a read or store can be relied on.
    """

    event: Event
    steps: tuple[Step, ...]
    reads: tuple[Array, ...]
    resolved: bool = True
    gradients_read: tuple[Array, ...] = ()
    gradients_written: tuple[Array, ...] = ()
    summary: KernelSummary | None = field(default=None, compare=False, repr=False)

    @cached_property
    def seq(self) -> int:
        """The number of the operation's event in the trace."""
        return self.event.seq

    def works_in_place(self, dest: Array) -> bool:
        """Whether the operation reads what it writes to ``dest``, adds to it or scales it."""
        changed = (step.dest for step in self.steps if step.kind is not StoreKind.STORE)
        return any(
            array.memory == dest.memory and array.extent.overlaps(dest.extent) is not False
            for array in (*self.reads, *changed)
        )


def recorded_on(event: Event) -> int | None:
    """The tape that recorded this operation; None: no tape did."""
    return event.tape if isinstance(event, (Launch, Copy)) else None


def active_tape(event: Event) -> int | None:
    """The tape that was open when this operation ran, whether it recorded it or not."""
    if isinstance(event, (Launch, Copy)):
        return event.tape if event.active_tape is None else event.active_tape
    return event.active_tape if isinstance(event, HostWrite) else None


def differentiated(event: Event) -> bool | None:
    """Whether Warp has an adjoint of this operation: copies always, kernels unless switched off; None if unknown."""
    if isinstance(event, Launch):
        return event.kernel.enable_backward if event.kernel is not None else None
    return isinstance(event, Copy)


def has_gradient(array: Array, memories: Mapping[int, Memory]) -> bool | None:
    """Whether gradient can flow through this handle: the memory's flag, for a pointer alias the handle's own.

    A view shares its base's gradient (measured); ``wp.array(ptr=…)`` has one only where it was given one.
    """
    if array.alias is Alias.POINTER:
        return array.requires_grad
    memory = memories.get(array.memory)
    return memory.requires_grad if memory is not None else array.requires_grad


def operations_of(trace: Trace, summary_of: SummaryOf) -> tuple[Operation, ...]:
    """All operations of a trace that touch data, in time order (adjoint launches touch gradients only)."""
    return tuple(_operations(trace, summary_of))


def _operations(trace: Trace, summary_of: SummaryOf) -> Iterator[Operation]:
    for event in trace.events:
        if isinstance(event, Launch) and not event.adjoint:
            summary = summary_of(event.kernel) if event.kernel is not None else None
            yield _launch(event, summary, trace.memories)
        elif isinstance(event, Copy):
            yield _copy(event)
        elif isinstance(event, HostWrite) and not event.dest.gradient:
            yield _host_write(event)


def _launch(event: Launch, summary: KernelSummary | None, memories: Mapping[int, Memory]) -> Operation:
    if summary is None:
        return Operation(event, (), (), resolved=False)
    arrays = {binding.path: binding.array for binding in event.bindings if binding.array is not None}
    data = {path: array for path, array in arrays.items() if not array.gradient}
    gradients = {path: array for path, array in arrays.items() if array.gradient}
    integers = {path for path, array in data.items() if (m := memories.get(array.memory)) and m.holds_integers}
    read = sorted(summary.read_paths | summary.first_reads.keys())
    first_reads = _first_reads(summary, data)
    steps = (
        _step(event, store, data, memories, first_reads, integers) for store in summary.stores if store.path in data
    )
    return Operation(
        event,
        tuple(steps),
        _bound(read, data),
        resolved=event.complete and summary.complete,
        gradients_read=_bound(read, gradients) if gradients else (),
        gradients_written=_bound(sorted({store.path for store in summary.stores}), gradients) if gradients else (),
        summary=summary,
    )


def _first_reads(summary: KernelSummary, data: Mapping[str, Array]) -> Mapping[int, int]:
    """The number of the first statement that reads each memory."""
    first: dict[int, int] = {}
    for path, order in summary.first_reads.items():
        if path in data:
            memory = data[path].memory
            first[memory] = min(order, first.get(memory, order))
    return first


def _step(
    event: Launch,
    store: Store,
    data: Mapping[str, Array],
    memories: Mapping[int, Memory],
    first_reads: Mapping[int, int],
    integers: Set[str],
) -> Step:
    """``integers``: the paths of arrays of integers, which no gradient passes: rounded before, if it ever moved."""
    dest = data[store.path]
    return Step(
        event=event,
        dest=dest,
        kind=store.kind,
        active=_bound(store.active_paths, data),
        depends=_bound(store.depended_paths, data),
        covers=_covers(store, dest, memories),
        order=store.order,
        store=store,
        severed=(
            *((data[path], why) for path, why in store.severed if path in data),
            *((data[path], why) for path, why in store.cuts if path in integers and why is Cut.FLAT),
        ),
        changes_nothing=store.copied in data and data[store.copied].memory == dest.memory,
        read_before=first_reads.get(dest.memory, store.order) < store.order,
        bound=data,
    )


def _bound(paths: Iterable[str], data: Mapping[str, Array]) -> tuple[Array, ...]:
    return tuple([data[path] for path in paths if path in data])


def _covers(store: Store, dest: Array, memories: Mapping[int, Memory]) -> bool:
    """Whether the launch leaves nothing of the destination's memory: it rewrites all of it, or its only element."""
    if store.kind is not StoreKind.STORE or not store.whole or store.conditional or not _is_whole(dest):
        return False
    memory = memories.get(dest.memory)
    return store.covers_array is True or (memory is not None and memory.shape is not None and set(memory.shape) == {1})


def _is_whole(array: Array) -> bool:
    return array.extent.known and array.extent.start is None


def _copy(event: Copy) -> Operation:
    if event.source.gradient or event.dest.gradient:
        return Operation(
            event,
            (),
            (),
            gradients_read=(event.source,) if event.source.gradient else (),
            gradients_written=(event.dest,) if event.dest.gradient else (),
        )
    step = Step(event, event.dest, StoreKind.STORE, (event.source,), (event.source,), covers=_is_whole(event.dest))
    return Operation(event, (step,), (event.source,))


def _host_write(event: HostWrite) -> Operation:
    sources = tuple(Array(memory) for memory in sorted(event.from_host))
    step = Step(event, event.dest, StoreKind.STORE, (), sources, covers=_is_whole(event.dest))
    return Operation(event, (step,), ())

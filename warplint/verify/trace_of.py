"""Recorded events as the one vocabulary of ``trace/events.py``, so that the rules judge a run as they judge source."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import singledispatchmethod

from warplint.dataclass import dataclass
from warplint.finding import Source, Span
from warplint.kernels.analysis import summarise
from warplint.kernels.file_scope import FileScope
from warplint.kernels.source import KernelSource
from warplint.kernels.summary import KernelSummary
from warplint.project import Project
from warplint.trace import events
from warplint.trace.flow.enclosing import Enclosing
from warplint.trace.flow.operations import SourceOf, SummaryOf
from warplint.trace.forward_only import import_of_warp, is_forward_only
from warplint.verify import records
from warplint.verify.exchanges import with_exchanges
from warplint.verify.loads_of import with_loads
from warplint.verify.places import Places

OFTEN = 8
"""Backward calls in front of which nothing has read what is updated: then it is taken to be read by nothing."""


@dataclass(frozen=True)
class Recorded:
    """What the rules need of a run: its trace, and what its kernels' adjoints need."""

    trace: events.Trace
    summary_of: SummaryOf
    places: Places
    source_of: SourceOf


def recorded_trace(seen: Iterable[object], project: Project, path: str = "") -> Recorded:
    """The trace of one program from its child's records; records of measurements are passed over.

    ``path`` is the program's entry file. Kernels are read from source by the file and line of their ``def``, so that
    a kernel without source has no summary, and rules that need one are silent about it.
    """
    record = tuple(seen)
    places = Places(project)
    tables = _Tables.of(record, places)
    made = sorted(_Events(tables, places).of_all(record), key=lambda event: event.seq)
    loads = [item for item in record if isinstance(item, records.ModuleLoad)]
    found = with_exchanges(with_loads(made, loads, places), places)
    entry = places.module(path) if path else None
    end = next((item for item in record if isinstance(item, records.TraceEnd)), None)
    trace = events.Trace(
        path=places.shown(path) if path else "",
        source=Source.RUNTIME,
        events=tuple(found),
        memories=tables.memories,
        cut=end is None or end.cut,
        warp=_version(record),
        forward_only=entry is not None and _only_launches(found) and is_forward_only(project, entry),
        warp_import=import_of_warp(entry) if entry is not None else None,
        names_cuda=any(load.device.startswith("cuda") for load in loads),
        is_program=True,
        enclosing=Enclosing(project),
        refuted=tuple(_refuted(record, places)),
        unconverged=tuple(_unconverged(record, places)),
        emptied=tuple(_emptied(record, places)),
        unread=_unread(record),
    )
    kernels = _Kernels(project, places, tables, trace.warp)
    return Recorded(trace, kernels.summary_of, places, kernels.source_of)


def _only_launches(found: Iterable[events.Event]) -> bool:
    """Whether kernels ran, and no tape was made."""
    kinds = {type(event) for event in found}
    return events.Launch in kinds and events.TapeCreated not in kinds


def _refuted(record: Sequence[object], places: Places) -> Iterator[events.RefutedAdjoint]:
    for check in record:
        if isinstance(check, records.AdjointCheck) and check.status is records.GradientStatus.FAIL:
            yield events.RefutedAdjoint(
                function=check.function,
                span=places.definition(check.defined),
                forward=places.definition(check.forward) if check.forward is not None else None,
                argument=check.argument,
                ad=check.ad,
                fd=check.fd,
                kernels=tuple(places.definition(kernel) for kernel in check.kernels),
                everywhere=check.everywhere,
            )


def _unconverged(record: Sequence[object], places: Places) -> Iterator[events.UnconvergedSolver]:
    for loop in record:
        if isinstance(loop, records.UnconvergedLoop):
            yield events.UnconvergedSolver(
                launch=places.stack(loop.launched),
                kernel=loop.kernel,
                rounds=loop.rounds,
                further=loop.further,
                moved=loop.moved,
                leaf=loop.leaf,
                allocation=places.stack(loop.allocated),
                ad=loop.ad,
                settled=loop.fd,
            )


def _emptied(record: Sequence[object], places: Places) -> Iterator[events.EmptiedReading]:
    told: set[tuple[records.Place, ...]] = set()
    for used in record:
        if isinstance(used, records.Stagnant | records.SparedView) and used.seen not in told:
            told.add(used.seen)
            seen, cleared = places.stack(used.seen), places.stack(used.cleared)
            if seen and cleared:
                yield events.EmptiedReading(used.memory, seen, cleared, used.largest)


def _unread(record: Sequence[object]) -> frozenset[int]:
    return frozenset(item.memory for item in record if isinstance(item, records.Unread) and item.times >= OFTEN)


def _version(record: Sequence[object]) -> tuple[int, int]:
    for item in record:
        if isinstance(item, records.Program) and (match := re.match(r"(\d+)\.(\d+)", item.warp)):
            return int(match[1]), int(match[2])
    return events.Trace("", Source.RUNTIME, (), {}).warp


@dataclass(frozen=True)
class _Tables:
    """What the events refer to by number."""

    memories: dict[int, events.Memory]
    gradient_of: dict[int, int]
    sizes: dict[int, int]
    made: dict[int, tuple[tuple[records.Place, ...], str]]
    """Where each memory was allocated, and by what."""
    kernels: dict[int, events.Kernel]
    definitions: dict[events.Kernel, records.Place]

    @staticmethod
    def of(record: Sequence[object], places: Places) -> _Tables:
        memories = [item for item in record if isinstance(item, records.MemorySeen)]
        seen = [item for item in record if isinstance(item, records.KernelSeen)]
        generic = {(item.decorator, item.module): item for item in seen if item.generic}
        instances = [generic.get((item.decorator, item.module), item) for item in seen]
        kernels = {
            item.number: (_kernel(whole, places), whole.defined) for item, whole in zip(seen, instances, strict=True)
        }
        return _Tables(
            {item.memory: _memory(item, places) for item in memories if item.gradient_of is None},
            {item.memory: item.gradient_of for item in memories if item.gradient_of is not None},
            {item.memory: item.size for item in memories},
            {item.memory: (item.allocated, item.made_by) for item in memories},
            {number: kernel for number, (kernel, _) in kernels.items()},
            dict(kernels.values()),
        )

    def array(self, region: records.Region) -> events.Array:
        """The handle that a region means: of a gradient, the handle of the memory that it is the gradient of."""
        owner = self.gradient_of.get(region.memory)
        size = self.sizes.get(region.memory)
        whole = size is not None and region.start <= 0 and region.stop >= size
        memory = self.memories.get(region.memory if owner is None else owner)
        return events.Array(
            memory=region.memory if owner is None else owner,
            extent=events.WHOLE if whole else events.Extent(region.start, region.stop),
            gradient=owner is not None or region.gradient,
            alias=_alias(region, whole),
            requires_grad=region.grad is not None if owner is None else None,
            name=memory.name if memory is not None else "",
        )


def _alias(region: records.Region, whole: bool) -> events.Alias:
    if region.pointer:
        return events.Alias.POINTER
    return events.Alias.NONE if whole else events.Alias.VIEW


def _memory(seen: records.MemorySeen, places: Places) -> events.Memory:
    return events.Memory(
        id=seen.memory,
        allocated=places.stack(seen.allocated),
        made_by=seen.made_by,
        requires_grad=seen.requires_grad,
        retain_grad=seen.retain_grad,
        dtype=seen.dtype or None,
        shape=seen.shape or None,
        name=places.assigned_name(seen.allocated[-1]) if seen.allocated else "",
        copied_from=seen.copied_from,
        outside=not seen.allocated,
    )


def _kernel(seen: records.KernelSeen, places: Places) -> events.Kernel:
    found = places.function(seen.defined)
    if found is None:
        span, decorator = Span(places.shown(seen.defined[0]), seen.defined[1]), _line(seen.decorator, places)
    else:
        module, node = found
        span = module.span(node)
        decorator = module.span(node.decorator_list[0]) if node.decorator_list else span
    return events.Kernel(
        name=seen.name,
        span=span,
        decorator=decorator,
        module=seen.module,
        key=seen.key,
        unique=seen.unique,
        enable_backward=seen.enable_backward,
        max_unroll=seen.max_unroll,
        generic=seen.generic,
        module_options=seen.options or None,
        captures=bool(seen.captured) and places.declared_once(seen.defined) is not True,
        stable=True if places.declared_once(seen.defined) else None,
    )


def _line(place: records.Place, places: Places) -> Span:
    return Span(places.shown(place[0]), place[1])


class _Events:
    """One method for each class of record; what is no event gives nothing."""

    def __init__(self, tables: _Tables, places: Places) -> None:
        self._tables = tables
        self._places = places
        self._backward: list[tuple[int, int]] = []
        self._steps: frozenset[tuple[records.Place, ...]] = frozenset()
        """The places of optimisers' steps, whose own launches are no events beside them."""
        self._holders: dict[int, str] = {}
        """The user's text for each list and struct that a recorded launch was given."""

    def of_all(self, record: Sequence[object]) -> Iterator[events.Event]:
        self._backward = [
            (item.seq, item.stop_seq if item.stop_seq is not None else item.seq)
            for item in record
            if isinstance(item, records.BackwardSeen)
        ]
        self._steps = frozenset(item.stack for item in record if isinstance(item, records.OptimiserSeen))
        events_of = self._of  # bound once: for a method that dispatches, that takes as long as to make most events
        for item in record:
            yield from events_of(item)

    @singledispatchmethod
    def _of(self, item: object) -> Iterator[events.Event]:
        return iter(())

    @_of.register
    def _(self, item: records.KernelSeen) -> Iterator[events.Event]:
        if item.declared and self._places.function(item.defined) is not None:  # else Warp's own
            stack = self._places.stack(item.declared)
            yield events.KernelDeclared(item.seq, stack, self._tables.kernels[item.number])

    @_of.register
    def _(self, item: records.LaunchSeen) -> Iterator[events.Event]:
        if not item.stack or (item.adjoint and self._in_backward(item.seq)) or item.stack in self._steps:
            return
        bindings = tuple(self._binding(bound, item.stack[-1]) for bound in item.bindings)
        kernel = self._tables.kernels.get(item.kernel)
        yield events.Launch(
            item.seq, self._places.stack(item.stack), kernel, bindings, item.tape, item.active, item.adjoint,
            complete=kernel is not None, dim=item.dim,
        )  # fmt: skip

    def _binding(self, bound: records.Bound, launch: records.Place) -> events.Binding:
        array = None if bound.region is None else self._tables.array(bound.region)
        return events.Binding(bound.path, array, bound.value, held=self._slots(bound, launch))

    def _slots(self, bound: records.Bound, launch: records.Place) -> tuple[events.Slot, ...]:
        for holder, key in bound.held:
            if holder not in self._holders:
                self._holders[holder] = self._places.argument(launch, key, bound.path)
        return tuple(events.Slot(holder, key, self._holders[holder]) for holder, key in bound.held)

    @_of.register
    def _(self, item: records.ReboundSeen) -> Iterator[events.Event]:
        stack = self._places.stack(item.given or item.stack)
        if not stack:
            return
        name = self._holders.get(item.holder, "")
        where = self._places.replacement(item.given[-1], name) if item.given else self._places.statement(item.stack[-1])
        values = tuple(
            events.Binding(each.path, None if each.region is None else self._tables.array(each.region), each.value)
            for each in item.values
        )
        frame = events.Frame(where or stack[-1].span, stack[-1].function)
        yield events.Rebound(item.seq, (*stack[:-1], frame), events.Slot(item.holder, item.key, name), values)

    @_of.register
    def _(self, item: records.CopySeen) -> Iterator[events.Event]:
        if not item.stack:
            return
        source, dest = self._tables.array(item.source), self._tables.array(item.dest)
        stack = self._places.stack(item.stack)
        if item.how == "array":  # a constructor that was given another array's contents
            yield events.HostWrite(item.seq, stack, dest, item.how, item.active, frozenset({source.memory}))
            return
        yield events.Copy(item.seq, stack, source, dest, item.tape, item.active, item.how)

    @_of.register
    def _(self, item: records.HostWriteSeen) -> Iterator[events.Event]:
        if not item.stack or self._in_backward(item.seq) or self._is_creation(item):
            return
        dest, stack = self._tables.array(item.dest), self._places.stack(item.stack)
        if dest.gradient:
            yield events.GradWrite(item.seq, stack, dest, clears=item.how == "zero_")
        elif item.how == "numpy":
            dest = replace(dest, alias=events.Alias.NUMPY)
            yield events.HostWrite(item.seq, self._places.host_store(item.stack), dest, "numpy-store", item.active)
        else:
            yield events.HostWrite(item.seq, stack, dest, item.how, item.active)

    @_of.register
    def _(self, item: records.HostReadSeen) -> Iterator[events.Event]:
        if not item.stack:
            return
        array, stack = self._tables.array(item.region), self._places.stack(item.stack)
        if array.gradient:
            yield events.GradRead(item.seq, stack, array, item.how)
        else:
            yield events.HostRead(item.seq, stack, array, item.how, item.active)

    @_of.register
    def _(self, item: records.TapeSeen) -> Iterator[events.Event]:
        kind = _TAPE_EVENTS.get(item.what)
        stack = self._places.stack(item.stack)
        if kind is not None and stack:
            yield kind(item.seq, stack, item.tape)
        elif item.what == "recorded" and stack:
            yield events.Opaque(item.seq, stack, "a function of the user's was recorded on the tape")

    @_of.register
    def _(self, item: records.BackwardSeen) -> Iterator[events.Event]:
        if item.stack:
            loss = None if item.loss is None else self._tables.array(item.loss)
            seeds = tuple(self._tables.array(seed) for seed in item.seeds)
            yield events.Backward(item.seq, self._places.stack(item.stack), item.tape, loss, seeds)

    @_of.register
    def _(self, item: records.OptimiserSeen) -> Iterator[events.Event]:
        params = tuple(self._tables.array(region) for region in item.params)
        if item.stack:
            stack = self._places.stack(item.stack)
            for region in item.gradients:
                yield events.GradRead(item.seq, stack, self._tables.array(region), "optimiser")
            yield events.OptimiserStep(item.seq, stack, params)

    @_of.register
    def _(self, item: records.ConfigSeen) -> Iterator[events.Event]:
        if item.stack:
            yield events.ConfigSet(item.seq, self._assignment(item.stack), item.option, item.value)

    @_of.register
    def _(self, item: records.ModuleOptionsSeen) -> Iterator[events.Event]:
        if item.stack:
            stack = self._places.stack(item.stack)
            yield events.ModuleOptionsSet(item.seq, stack, item.module, item.options, item.direct)

    @_of.register
    def _(self, item: records.ModuleCreatedSeen) -> Iterator[events.Event]:
        if item.stack:
            yield events.ModuleCreated(item.seq, self._places.stack(item.stack), item.module)

    @_of.register
    def _(self, item: records.ModuleLoadedSeen) -> Iterator[events.Event]:
        if item.stack:
            stack = self._places.stack(item.stack)
            yield events.ModuleLoaded(item.seq, stack, item.module, item.compiled, item.block_dim, item.milliseconds)

    @_of.register
    def _(self, item: records.CacheClearedSeen) -> Iterator[events.Event]:
        if item.stack:
            yield events.CacheCleared(item.seq, self._places.stack(item.stack))

    @_of.register
    def _(self, item: records.OpaqueSeen) -> Iterator[events.Event]:
        if item.stack:
            arrays = tuple(self._tables.array(region) for region in item.regions)
            yield events.Opaque(item.seq, self._places.stack(item.stack), item.why, arrays)

    def _is_creation(self, item: records.HostWriteSeen) -> bool:
        """Whether the write gives an array its first contents: a part of its allocation, no event of its own."""
        return self._tables.made.get(item.dest.memory) == (item.stack, item.how)

    def _in_backward(self, seq: int) -> bool:
        return any(start < seq < stop for start, stop in self._backward)

    def _assignment(self, stack: tuple[records.Place, ...]) -> events.Stack:
        """The stack of an assignment, whose place is the statement and not a call in it."""
        outer = self._places.stack(stack)
        return (*outer[:-1], events.Frame(self._places.statement(stack[-1]), outer[-1].function))


_TAPE_EVENTS: dict[str, Callable[[int, events.Stack, int], events.Event]] = {
    "created": events.TapeCreated,
    "entered": events.TapeEntered,
    "left": events.TapeLeft,
    "zeroed": events.TapeZeroed,
    "reset": events.TapeReset,
}


class _Kernels:
    """The text of the kernels that ran, and the adjoint-need analysis of each, made when a rule first asks."""

    def __init__(self, project: Project, places: Places, tables: _Tables, warp: tuple[int, int]) -> None:
        self._project = project
        self._warp = warp
        self._places = places
        self._tables = tables
        self._known: dict[events.Kernel, KernelSummary | None] = {}

    def summary_of(self, kernel: events.Kernel) -> KernelSummary | None:
        """The summary of one kernel; None where its source is not there to be read."""
        if kernel not in self._known:
            source = self.source_of(kernel)
            self._known[kernel] = None if source is None else summarise(source)
        return self._known[kernel]

    def source_of(self, kernel: events.Kernel) -> KernelSource | None:
        """The text of one kernel, and the meaning of its names; None where it is not there to be read."""
        declared = replace(kernel, followed=frozenset())
        found = self._places.function(self._tables.definitions.get(declared, ("", 0, "")))
        if found is None:
            return None
        module, node = found
        if not isinstance(node, ast.FunctionDef):
            return None
        return KernelSource(
            node=node,
            path=module.path,
            scope=FileScope(self._project, module, node.lineno),
            max_unroll=kernel.max_unroll,
            enable_backward=kernel.enable_backward is not False,
            lines=module.lines,
            warp=self._warp,
            followed=kernel.followed,
        )

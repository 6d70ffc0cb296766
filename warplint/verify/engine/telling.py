"""A log as records: what happened, in order, for the rules that judge events."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from warplint.verify import records
from warplint.verify.engine.execution.log import Log
from warplint.verify.engine.execution.memory import Memory, Range
from warplint.verify.engine.execution.operations import (
    BackwardBegin,
    Happening,
    HostRead,
    HostWrite,
    KernelCall,
    NativeCall,
    Operation,
    TapeMark,
)
from warplint.verify.engine.judging.culprits import places
from warplint.verify.engine.recording.held_arguments import Given, HeldValue
from warplint.verify.engine.recording.user_frames import is_user_file
from warplint.verify.engine.replaying.analysis import view_of_any
from warplint.verify.engine.warp_modules import definition, is_unique, plain
from warplint.verify.engine.warp_values import RETAIN_FLAG, ArraySlot, array_type, descriptor, dimensions

LIMIT = 8000
"""Events that are told at most."""

FIRST_ANEW = 1 << 20
"""Tape numbers from here on stand for recordings that graphs made anew; no program makes so many tapes."""
_STACKS = ("given", "read", "allocated")
"""The fields of happenings that hold stacks of the user's frames."""
_HOST_WRITES = {"wp_memset_host": "zero_", "wp_memtile_host": "fill_", "wp_array_fill_host": "fill_"}


class Teller:
    """Sends the events of a log, window by window, each kernel and memory after the first event that names it."""

    def __init__(self, log: Log, send: Callable[[object], None]) -> None:
        self._log = log
        self._send = send
        self._memories: dict[Memory, None] = {}
        self._kernels: dict[int, tuple[int, Any]] = {}
        self._dtypes: dict[Memory, str] = {}
        self._told_kernels: set[int] = set()
        self._told_memories: set[Memory] = set()
        self._tapes: dict[int, int] = {}
        self._entered: set[int] = set()
        self._anew = itertools.count(FIRST_ANEW)
        self._count = 0

    def tell(self) -> None:
        """Send what the log holds now."""
        for operation in self._told():
            if self._count >= LIMIT:
                break
            for record in self._records(operation):
                self._send(record)
                self._count += 1
        for kernel, _, stack in self._log.declared.values():
            if stack and is_user_file(definition(kernel)[0]):
                self._number(kernel)
        for number, kernel in self._kernels.values():
            if number not in self._told_kernels:
                self._told_kernels.add(number)
                self._send(self._kernel(number, kernel))
        for memory in list(self._memories):
            for other in (memory.grad, memory.gradient_of, memory.copied_from):
                if other is not None:
                    self._memories[other] = None
        for memory in self._memories:
            if memory not in self._told_memories:
                self._told_memories.add(memory)
                self._send(self._memory(memory))

    def end(self, whole: bool) -> None:
        """No more events come. ``whole``: the program ran to its end, so that what was not told did not happen."""
        cut = self._count >= LIMIT or not whole
        reason = f"only the first {LIMIT} events are told" if self._count >= LIMIT else ""
        self._send(records.TraceEnd(self._log.next_index, cut, reason))

    def _told(self) -> Iterator[Operation]:
        """Without what ``tape.zero`` does and what the adjoints of backward do: their marks stand for them."""
        zeroing = False
        for operation in self._log.operations:
            if isinstance(operation, TapeMark):
                zeroing = operation.what in ("zero", "reset")
                yield operation
            elif operation.inside is None and (not zeroing or isinstance(operation, Happening)):
                yield operation

    def _records(self, operation: Operation) -> Iterator[object]:
        if isinstance(operation, KernelCall):
            yield self._launch(operation)
        elif isinstance(operation, NativeCall):
            yield from self._native(operation)
        elif isinstance(operation, HostWrite):
            how = operation.how
            yield records.HostWriteSeen(*_head(operation), self._region(operation.dest), how, self._active(operation))
        elif isinstance(operation, HostRead):
            region = self._region(operation.source)
            yield records.HostReadSeen(*_head(operation), region, operation.how, self._active(operation))
        elif isinstance(operation, TapeMark):
            yield from self._tape(operation)
        elif isinstance(operation, BackwardBegin):
            yield self._backward(operation)
        elif isinstance(operation, Happening) and operation.make is not None:
            told = {name: self._field(name, value) for name, value in operation.fields.items()}
            yield operation.make(*_head(operation), **told)

    def _field(self, name: str, value: Any) -> Any:
        if name in _STACKS:
            return places(value)
        return tuple(map(self._as_record, value)) if isinstance(value, tuple) else value

    def _as_record(self, value: Any) -> Any:
        if isinstance(value, Range):
            return self._region(value)
        if isinstance(value, HeldValue):
            region = self._region(value.where) if value.where is not None else None
            return records.Bound(value.path, region, value=value.value)
        return value

    def _launch(self, call: KernelCall) -> records.LaunchSeen:
        bindings = [self._bound(call, slot) for slot in call.layout.slots]
        arrays = {slot.parameter for slot in call.layout.slots}
        for position, name in enumerate(call.layout.names, start=1):
            if position not in arrays:
                bindings.append(records.Bound(name, value=_value(call.params[position])))
        if call.entry is not None:
            bindings = _held(bindings, call.entry.given)
        return records.LaunchSeen(
            *_head(call),
            kernel=self._number(call.kernel),
            bindings=tuple(bindings),
            dim=dimensions(call.params[0]),
            adjoint=call.adjoint,
            tape=self._told_tape(call.entry.tape.number) if call.entry is not None else None,
            active=self._active(call),
            graph=call.graph,
        )

    def _bound(self, call: KernelCall, slot: ArraySlot) -> records.Bound:
        found = descriptor(call.params[slot.parameter], slot.offset)
        view = view_of_any(call, slot)
        memory = self._log.memories.find(int(found.data)) if found.data else None
        if view is None or memory is None:
            return records.Bound(slot.path, dtype=slot.dtype)
        self._dtypes.setdefault(memory, slot.dtype)
        low, stop = view.span
        where = Range(memory, max(0, low - memory.address), min(memory.size, stop - memory.address))
        grad = self._log.memories.find(int(found.grad)) if found.grad else None
        region = self._region(where, grad, bool(found.flags & RETAIN_FLAG))
        if not found.grad and region.grad is not None and slot.scalars.floating:
            region = dataclasses.replace(region, grad=None, pointer=True)
        return records.Bound(slot.path, region, slot.dtype, view.shape)

    def _native(self, call: NativeCall) -> Iterator[object]:
        how = call.how or call.name
        if call.exact and call.reads:
            source, dest = call.reads[0], call.writes[0]
            tape = self._told_tape(call.entry.tape.number) if call.entry is not None else None
            regions = self._region(source), self._region(dest)
            yield records.CopySeen(*_head(call), *regions, how, tape, self._active(call))
            if how in ("clone", "array") and dest.memory.copied_from is None:
                dest.memory.copied_from = source.memory
            return
        if call.exact:
            yield records.HostWriteSeen(
                *_head(call), self._region(call.writes[0]), self._written_how(call, how), self._active(call)
            )
            return
        for where in call.writes:
            yield records.HostWriteSeen(*_head(call), self._region(where), "native", self._active(call))

    @staticmethod
    def _written_how(call: NativeCall, how: str) -> str:
        return how if how not in ("", call.name) else _HOST_WRITES.get(call.name, "native")

    def _tape(self, mark: TapeMark) -> Iterator[object]:
        names = {"wasreset": "reset", "zeroed": "zeroed", "created": "created", "entered": "entered", "left": "left"}
        if mark.begins_anew and self._told_tape(mark.tape.number) in self._entered:
            number = self._tapes[mark.tape.number] = next(self._anew)
            if mark.what != "created":
                yield records.TapeSeen(mark.index, places(mark.tape.stack), number, "created")
        if mark.what in names:
            number = self._told_tape(mark.tape.number)
            if mark.what == "entered":
                self._entered.add(number)
            yield records.TapeSeen(*_head(mark), number, names[mark.what], len(mark.tape.entries))

    def _told_tape(self, number: int) -> int:
        """The number that a tape is called by now: what each launch of a graph records on it is a recording apart."""
        return self._tapes.get(number, number)

    def _active(self, operation: Operation) -> int | None:
        return None if operation.active is None else self._told_tape(operation.active)

    def _backward(self, begin: BackwardBegin) -> records.BackwardSeen:
        seeds = []
        for array, _, _ in begin.seeds:
            where = self._log.range(int(array.data), 1) if array.data else None
            if where is not None:
                seeds.append(self._region(Range(where.memory, where.start, where.memory.size)))
        return records.BackwardSeen(
            *_head(begin),
            tape=self._told_tape(begin.tape.number),
            loss=self._region(begin.loss) if begin.loss is not None else None,
            seeds=tuple(seeds),
            entries=len(begin.entries),
            stop_seq=begin.end.index if begin.end is not None else None,
            seeded=begin.seeded,
        )

    def _region(self, where: Range, grad: Memory | None = None, retain: bool = False) -> records.Region:
        memory = where.memory
        self._memories[memory] = None
        grad = grad if grad is not None else memory.grad
        return records.Region(
            memory.number,
            where.start,
            where.stop,
            gradient=memory in self._log.gradients,
            grad=grad.number if grad is not None else None,
            retain=retain or memory.retain,
        )

    def _number(self, kernel: Any) -> int:
        known = self._kernels.get(id(kernel))
        if known is None:
            known = self._kernels[id(kernel)] = (len(self._kernels), kernel)
        return known[0]

    def _kernel(self, number: int, kernel: Any) -> records.KernelSeen:
        defined = definition(kernel)
        declared = self._log.declared.get(id(kernel))
        options = {**kernel.module.options, **kernel.options}
        captured = _captured(kernel.func)
        source = getattr(kernel.adj, "source", "") or ""
        key = hashlib.sha256(repr((defined, source, sorted(captured.items()))).encode()).hexdigest()[:16]
        return records.KernelSeen(
            number=number,
            name=kernel.func.__name__,
            defined=defined,
            decorator=(defined[0], kernel.func.__code__.co_firstlineno, defined[2]),
            module=str(kernel.module.name),
            key=key,
            unique=is_unique(kernel.module, [kernel]),
            generic=bool(kernel.is_generic),
            enable_backward=options.get("enable_backward"),
            max_unroll=int(options.get("max_unroll") or 16),
            options={name: plain(value) for name, value in kernel.module.options.items()},
            captured=captured,
            declared=places(declared[2]) if declared is not None else (),
            seq=declared[1] if declared is not None else 0,
        )

    def _memory(self, memory: Memory) -> records.MemorySeen:
        array = memory.handle() if memory.handle is not None else None
        requires = bool(array.requires_grad) if array is not None else memory.grad is not None
        owner = memory.gradient_of if memory in self._log.gradients else None
        return records.MemorySeen(
            memory=memory.number,
            allocated=places(memory.stack),
            made_by=memory.made_by,
            size=memory.size,
            requires_grad=requires or memory.grad is not None,
            retain_grad=memory.retain,
            dtype=self._dtypes.get(memory, memory.dtype),
            shape=memory.shape,
            gradient_of=owner.number if owner is not None else None,
            foreign=memory.foreign,
            copied_from=memory.copied_from.number if memory.copied_from is not None else None,
            seq=memory.born,
        )


def _held(bindings: list[records.Bound], given: Sequence[Given]) -> list[records.Bound]:
    """The bindings with the places they were taken from, and those of structs' scalars beside them."""
    slots = {each.path: each.slots for each in given}
    known = {bound.path for bound in bindings}
    scalars = [each for each in given if each.path not in known and not each.is_array]
    return [
        *(dataclasses.replace(bound, held=slots[bound.path]) if slots.get(bound.path) else bound for bound in bindings),
        *(records.Bound(each.path, value=each.value, held=each.slots) for each in scalars),
    ]


def _head(operation: Operation) -> tuple[int, tuple[records.Place, ...]]:
    return operation.index, places(operation.stack)


def _value(parameter: Any) -> Any:
    """A by-value parameter as JSON: a number, or a list for vectors and small matrices."""
    inner = getattr(parameter, "value", None)
    if isinstance(inner, bool | int | float):
        return inner
    if isinstance(parameter, array_type()):
        return None
    try:
        return [float(number) for number in np.ctypeslib.as_array(parameter).ravel()[:32]]
    except (TypeError, AttributeError, ValueError):
        return None


def _captured(function: Any) -> dict[str, Any]:
    """The free variables and globals of a kernel's body that hold plain values, and so are part of its code."""
    try:
        found = inspect.getclosurevars(function)
    except (TypeError, ValueError):
        return {}
    named = {**found.globals, **found.nonlocals}
    return {name: value for name, value in named.items() if isinstance(value, bool | int | float | str)}

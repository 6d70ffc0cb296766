"""Who did it: the memory, the launch that read it and the write that destroyed it, for each repair that was needed.

A repair is made again for one memory alone (leave-one-in): how far that brings the gradient is the culprit's effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from warplint.proof import Repair
from warplint.verify.engine.execution.memory import CodeStack, Memory, Range
from warplint.verify.engine.execution.operations import HostWrite, KernelCall, NativeCall, Operation, TapeRecord
from warplint.verify.engine.judging.repairs import Measured
from warplint.verify.engine.replaying.adjoint import BackwardPass, Restriction, Step
from warplint.verify.engine.replaying.analysis import Analysis
from warplint.verify.engine.warp_values import RETAIN_FLAG, descriptor
from warplint.verify.records import Culprit, Place

MOST = 24
"""Culprits that are told for one repair."""


def places(stack: CodeStack) -> tuple[Place, ...]:
    """A call stack as it is written into records: outermost first."""
    return tuple((code.co_filename, line, code.co_name) for code, line in reversed(stack))


class Culprits:
    """Finds the culprits of one diagnosed group."""

    def __init__(
        self,
        backward: BackwardPass,
        analysis: Analysis,
        directions: Sequence[Measured],
        repairs: Sequence[Repair],
        may_go_on: Callable[[], bool],
    ) -> None:
        self._backward = backward
        self._analysis = analysis
        self._directions = directions
        self._repairs = frozenset(repairs)
        self._may_go_on = may_go_on

    def of(self, repair: Repair) -> tuple[Culprit, ...]:
        """The culprits that this repair points to, the gravest first."""
        finders: dict[Repair, Callable[[], Iterable[Culprit]]] = {
            Repair.MEMORY: self._overwritten,
            Repair.GRADIENT: self._without_gradient,
            Repair.ONCE: self._repeated,
            Repair.RETAIN: self._retaining,
            Repair.CHAIN: self._chained,
            Repair.FRESH: self._stale,
            Repair.CUT: self._cut,
            Repair.TAPED: self._untaped,
            Repair.KERNEL: self._wrong_kernels,
            Repair.ARGUMENTS: self._given_others,
        }
        found = sorted(finders[repair](), key=lambda culprit: -(culprit.effect or 0.0))
        return tuple(found[:MOST])

    def _effect(self, repair: Repair, memories: Iterable[Memory]) -> tuple[bool, float | None]:
        """Does the repair for these memories alone change the gradient, and how much of the error does it take away?

        The other repairs of the diagnosis are made everywhere.
        """
        if not self._may_go_on():
            return True, None
        nothing = self._backward.gradient(self._repairs - {repair})
        alone = self._backward.gradient(self._repairs, {repair: Restriction(frozenset(memories))})
        changes = not np.array_equal(nothing, alone, equal_nan=True)
        if not changes:
            return False, 0.0
        before = _mean(direction.distance(nothing) for direction in self._directions)
        after = _mean(direction.distance(alone) for direction in self._directions)
        if not np.isfinite(before) or before == 0.0:
            return True, 1.0 if np.isfinite(after) else None
        return True, float(min(1.0, max(0.0, 1.0 - after / before)))

    # one finder a repair ----------------------------------------------------------------------------------------------

    def _overwritten(self) -> Iterator[Culprit]:
        by_memory: dict[Memory, list[tuple[KernelCall, int]]] = {}
        history = self._backward.history
        for call, where, access in self._backward.bound():
            if not access.reads:
                continue
            changed = history.first_change(where, self._backward.version_for(call, where, access))
            if changed is not None:
                by_memory.setdefault(where.memory, []).append((call, changed))
        for memory, hits in by_memory.items():
            alone, effect = self._effect(Repair.MEMORY, [memory])
            if alone:
                yield from self._writers(memory, hits, effect)

    def _writers(self, memory: Memory, hits: list[tuple[KernelCall, int]], effect: float | None) -> Iterator[Culprit]:
        seen: set[tuple[object, ...]] = set()
        for call, changed in sorted(hits, key=lambda hit: hit[0].index):
            writer = self._analysis.log[changed]
            key = (_where(writer), _where(call))
            if key in seen or len(seen) >= 6:
                continue
            seen.add(key)
            yield Culprit(
                Repair.MEMORY,
                memory.number,
                places(memory.stack),
                places(call.stack),
                call.name,
                places(writer.stack),
                _name(writer),
                effect=effect,
            )

    def _without_gradient(self) -> Iterator[Culprit]:
        by_place: dict[object, list[tuple[Memory, KernelCall | NativeCall]]] = {}
        for operation, where in self._written():
            memory = where.memory
            if memory.grad is None and memory not in self._analysis.log.gradients:
                by_place.setdefault(memory.stack[:1] or memory.number, []).append((memory, operation))
        for written in by_place.values():
            memories = list(dict.fromkeys(memory for memory, _ in written))
            alone, effect = self._effect(Repair.GRADIENT, memories)
            if not alone and len(by_place) > 1:
                alone = self._matters(memories, by_place)
            if alone:
                memory, writer = written[0]
                yield Culprit(
                    Repair.GRADIENT,
                    memory.number,
                    places(memory.stack),
                    writer=places(writer.stack),
                    writer_kernel=_name(writer),
                    effect=effect,
                )

    def _matters(
        self, memories: list[Memory], by_place: dict[object, list[tuple[Memory, KernelCall | NativeCall]]]
    ) -> bool:
        """Whether the repair fails when everything but these memories gets a gradient."""
        others = {m for written in by_place.values() for m, _ in written} - set(memories)
        without = self._backward.gradient(self._repairs, {Repair.GRADIENT: Restriction(frozenset(others))})
        return not all(direction.agrees(without) for direction in self._directions)

    def _written(self) -> Iterator[tuple[KernelCall | NativeCall, Range]]:
        for step in self._all_steps():
            call = step.forward
            if isinstance(call, KernelCall | NativeCall):
                for where, _ in self._analysis.writes(call):
                    yield call, where

    def _all_steps(self) -> Iterator[Step]:
        for begin in self._backward.group.backwards:
            yield from self._backward.chosen(begin, self._repairs)

    def _repeated(self) -> Iterator[Culprit]:
        for begin in self._backward.group.backwards:
            tapes = _tape_places(begin.tape)
            for kept, dropped in self._backward.repeated(begin):
                first, second = sorted((kept, dropped), key=lambda step: step.time)
                one, two = first.forward, second.forward
                if one is None or two is None:
                    continue
                written = next((where.memory for where, _ in self._analysis.writes(two)), None)
                yield Culprit(
                    Repair.ONCE,
                    written.number if written is not None else None,
                    places(written.stack) if written is not None else (),
                    places(one.stack),
                    _name(one),
                    places(two.stack),
                    _name(two),
                    tapes,
                )

    def _retaining(self) -> Iterator[Culprit]:
        by_memory: dict[Memory, list[KernelCall]] = {}
        for step in self._all_steps():
            call = step.forward
            if not isinstance(call, KernelCall):
                continue
            for slot in call.layout.slots:
                found = descriptor(call.params[slot.parameter], slot.offset)
                memory = self._analysis.log.memories.find(int(found.data)) if found.data else None
                writes = self._analysis.survey.accesses.of(call, slot).writes
                if memory is not None and found.flags & RETAIN_FLAG and writes:
                    by_memory.setdefault(memory, []).append(call)
        for memory, calls in by_memory.items():
            alone, effect = self._effect(Repair.RETAIN, [memory])
            if alone:
                first, last = min(calls, key=lambda c: c.index), max(calls, key=lambda c: c.index)
                yield Culprit(
                    Repair.RETAIN,
                    memory.number,
                    places(memory.stack),
                    places(first.stack),
                    first.name,
                    places(last.stack),
                    last.name,
                    effect=effect,
                )

    def _chained(self) -> Iterator[Culprit]:
        for begin in self._backward.group.backwards:
            own = {id(entry) for entry in begin.entries}
            others: dict[int, TapeRecord] = {}
            for step in self._backward.chosen(begin, self._repairs | {Repair.CHAIN}):
                if step.entry is not None and id(step.entry) not in own:
                    others[step.entry.tape.number] = step.entry.tape
            if not others:
                continue
            carried = self._carried(begin.index, others)
            stacks = dict.fromkeys(stack for tape in (*others.values(), begin.tape) for stack in _tape_places(tape))
            yield Culprit(
                Repair.CHAIN,
                carried.number if carried is not None else None,
                places(carried.stack) if carried is not None else (),
                tapes=tuple(stacks),
            )

    def _carried(self, before: int, tapes: dict[int, TapeRecord]) -> Memory | None:
        """A memory that one of the other tapes wrote and this one reads: the state that goes from tape to tape."""
        written = {
            where.memory
            for tape in tapes.values()
            for entry in tape.entries
            if entry.forward is not None and entry.forward.index < before
            for where, _ in self._analysis.writes(entry.forward)
        }
        for begin in self._backward.group.backwards:
            for entry in begin.entries:
                if entry is not None and entry.forward is not None:
                    for where in self._analysis.reads(entry.forward):
                        if where.memory in written:
                            return where.memory
        return None

    def _stale(self) -> Iterator[Culprit]:
        group = self._backward.group
        leaf = group.leaf
        earlier = [begin for begin in self._analysis.log.backwards if begin.index < group.backwards[0].index]
        yield Culprit(
            Repair.FRESH,
            leaf.memory.number,
            places(leaf.memory.stack),
            reader=places(group.used.stack) if group.used is not None else (),
            writer=places(earlier[-1].stack) if earlier else places(group.backwards[-1].stack),
        )

    def _cut(self) -> Iterator[Culprit]:
        by_memory: dict[Memory, list[NativeCall | HostWrite]] = {}
        for step in self._all_steps():
            if step.cut and isinstance(step.forward, NativeCall | HostWrite):
                for where, _ in self._analysis.writes(step.forward):
                    by_memory.setdefault(where.memory, []).append(step.forward)
        for memory, writers in by_memory.items():
            alone, effect = self._effect(Repair.CUT, [memory])
            if alone:
                for writer in {_where(w): w for w in writers}.values():
                    yield Culprit(
                        Repair.CUT,
                        memory.number,
                        places(memory.stack),
                        writer=places(writer.stack),
                        writer_kernel=_name(writer),
                        effect=effect,
                    )

    def _untaped(self) -> Iterator[Culprit]:
        seen: set[object] = set()
        for begin in self._backward.group.backwards:
            own = {id(entry) for entry in begin.entries}
            for step in self._backward.chosen(begin, self._repairs):
                call = step.forward
                if step.cut or call is None or id(step.entry) in own or step.entry is not None:
                    continue
                if _where(call) not in seen:
                    seen.add(_where(call))
                    yield Culprit(
                        Repair.TAPED,
                        writer=places(call.stack),
                        writer_kernel=_name(call),
                        tapes=_tape_places(begin.tape),
                    )

    def _given_others(self) -> Iterator[Culprit]:
        """The launches whose adjoints were given other arguments; each statement once."""
        seen: set[object] = set()
        for step in self._all_steps():
            call = step.forward
            changed = step.changed_arguments
            if not changed or not isinstance(call, KernelCall) or _where(call) in seen:
                continue
            seen.add(_where(call))
            memory = self._bound_at(call, changed)
            yield Culprit(
                Repair.ARGUMENTS,
                memory.number if memory is not None else None,
                places(memory.stack) if memory is not None else (),
                places(call.stack),
                call.name,
            )

    def _bound_at(self, call: KernelCall, positions: Sequence[int]) -> Memory | None:
        for slot in call.layout.slots:
            if slot.parameter in positions:
                found = descriptor(call.params[slot.parameter], slot.offset)
                memory = self._analysis.log.memories.find(int(found.data)) if found.data else None
                if memory is not None:
                    return memory
        return None

    def _wrong_kernels(self) -> Iterator[Culprit]:
        """The first launch of each kernel whose own adjoint is wrong."""
        seen: set[int] = set()
        for step in sorted(self._all_steps(), key=lambda step: step.time):
            call = step.forward
            if isinstance(call, KernelCall) and id(call.kernel) in self._backward.wrong and id(call.kernel) not in seen:
                seen.add(id(call.kernel))
                yield Culprit(Repair.KERNEL, reader=places(call.stack), reader_kernel=call.name)


def _tape_places(tape: TapeRecord) -> tuple[tuple[Place, ...], ...]:
    """Where a tape was made and where it was entered."""
    stacks = dict.fromkeys([places(tape.stack), *(places(stack) for stack in tape.entered_at)])
    return tuple(stacks)


def _where(operation: Operation) -> tuple[object, ...]:
    return operation.stack[:3]


def _name(operation: Operation) -> str:
    if isinstance(operation, KernelCall):
        return operation.name
    return str(getattr(operation, "how", "") or getattr(operation, "name", ""))


def _mean(values: Iterable[float]) -> float:
    kept = list(values)
    return float(np.mean(kept)) if kept else 0.0

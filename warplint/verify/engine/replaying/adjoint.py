"""The backward pass of a group, run again from the log: as the program ran it, or with something repaired."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt

from warplint.dataclass import dataclass
from warplint.proof import Repair
from warplint.verify.engine.execution.accesses import Access, view_of
from warplint.verify.engine.execution.memory import Bytes, Contents, Memory, Range
from warplint.verify.engine.execution.operations import (
    BackwardBegin,
    Entry,
    HostWrite,
    KernelCall,
    NativeCall,
    Operation,
)
from warplint.verify.engine.execution.views import FloatView
from warplint.verify.engine.replaying.analysis import Analysis
from warplint.verify.engine.replaying.by_differences import Differentiated, is_small, run_adjoint
from warplint.verify.engine.replaying.groups import Group
from warplint.verify.engine.replaying.history import History
from warplint.verify.engine.replaying.replay import Machine
from warplint.verify.engine.warp_values import RETAIN_FLAG, ArraySlot, Packed, adjoint_parameters, copied, descriptor


@dataclass(frozen=True)
class Step:
    """One adjoint of a backward pass: of a tape's ``entry``, or of an operation that this tape did not record.

    ``recorded`` are the operations that the program ran for it, empty where it ran none; ``cut`` means that the
    operation overwrote its destination from outside every tape, so that its adjoint is to forget the gradient there.
    """

    time: int
    entry: Entry | None
    forward: KernelCall | NativeCall | HostWrite | None
    recorded: tuple[Operation, ...] = ()
    cut: bool = False

    @property
    def adjoint_call(self) -> KernelCall | None:
        """The launch of the adjoint that the program ran for it."""
        return next((op for op in self.recorded if isinstance(op, KernelCall) and op.adjoint), None)

    @property
    def changed_arguments(self) -> tuple[int, ...]:
        """The positions of parameters that the adjoint was given otherwise than the launch: the caller changed them."""
        forward, ran = self.forward, self.adjoint_call
        if not isinstance(forward, KernelCall) or ran is None:
            return ()
        positions = range(1, 1 + len(forward.layout.names))
        return tuple(p for p in positions if bytes(forward.params[p]) != bytes(ran.params[p]))


@dataclass(frozen=True)
class Restriction:
    """A repair confined to some memories; None: to none."""

    memories: frozenset[Memory] | None = None

    def admits(self, memory: Memory) -> bool:
        """Whether the repair is made for this memory."""
        return self.memories is None or memory in self.memories


EVERYWHERE = Restriction()
_OWN_ARGUMENTS = frozenset({Repair.MEMORY, Repair.ARGUMENTS})
"""The repairs under which an adjoint is given what its launch was given."""
_CHANGES_COPIES = frozenset({Repair.GRADIENT, Repair.RETAIN})


@dataclass
class Shadows:
    """Gradients for memories that have none."""

    buffers: dict[Memory, Bytes] = field(default_factory=dict)

    def address(self, where: Range) -> int:
        """Where the gradient of these bytes is."""
        if where.memory not in self.buffers:
            self.buffers[where.memory] = np.zeros(where.memory.size + 64, dtype=np.uint8)
        return int(self.buffers[where.memory].ctypes.data) + where.start

    def clear(self) -> None:
        """All zero again."""
        for buffer in self.buffers.values():
            buffer[:] = 0


class BackwardPass:
    """The adjoints of one group. ``gradient(repairs)`` is the leaf's gradient as the program would have consumed it."""

    def __init__(self, machine: Machine, analysis: Analysis, group: Group, wrong: frozenset[int] = frozenset()) -> None:
        """``wrong``: the kernels (by identity) whose own adjoint is known to be wrong."""
        self.wrong = wrong
        self._machine = machine
        self._analysis = analysis
        self._log = machine.log
        self.group = group
        self.first = self._first_operation()
        self._steps = {begin.index: self._steps_of(begin) for begin in group.backwards}
        self._history: History | None = None
        self._shadows = Shadows()
        machine.rewind(group.backwards[0].index)
        end = group.used.index if group.used is not None else group.stop
        span = machine.touched(self.first, max(end, self._end(group.backwards[-1])) + 1)
        self._base = Contents({**span, group.leaf.gradient_memory: None})

    def _first_operation(self) -> int:
        taped = [e.time for begin in self.group.backwards for e in begin.entries if e is not None]
        return max(self._log.base, min([self.group.start, *taped]))

    def _end(self, begin: BackwardBegin) -> int:
        return begin.end.index if begin.end is not None else begin.index

    # what there is to run -------------------------------------------------------------------------------------------

    def _steps_of(self, begin: BackwardBegin) -> list[Step]:
        recorded: dict[int, list[Operation]] = {}
        for operation in self._log.between(begin.index, self._end(begin)):
            if operation.step is not None:
                recorded.setdefault(id(operation.step), []).append(operation)
        steps = [
            Step(entry.time, entry, entry.forward, tuple(recorded.get(id(entry), ())))
            for entry in reversed(begin.entries)
            if entry is not None
        ]
        own = {id(entry.forward) for entry in begin.entries if entry is not None and entry.forward is not None}
        for operation in self._log.between(self.group.start, begin.index):
            if operation.inside is None and id(operation) not in own:
                steps.extend(self._untaped(operation))
        return sorted(steps, key=lambda step: (-step.time, step.forward is None))  # a function: just before that time

    def _untaped(self, operation: Operation) -> Iterator[Step]:
        """What this tape did not record: launches and copies that have an adjoint, and writes that cut."""
        if isinstance(operation, KernelCall):
            if not operation.adjoint and not any(memory in self._log.gradients for memory in operation.touched):
                yield Step(operation.index, operation.entry, operation)
        elif isinstance(operation, NativeCall):
            if operation.exact and operation.reads and not self._only_gradients(operation):
                yield Step(operation.index, operation.entry, operation)
            elif operation.exact and not self._only_gradients(operation):
                yield Step(operation.index, None, operation, cut=True)
        elif isinstance(operation, HostWrite):
            yield Step(operation.index, None, operation, cut=True)

    def _only_gradients(self, operation: Operation) -> bool:
        return all(memory in self._log.gradients for memory in operation.touched)

    def chosen(self, begin: BackwardBegin, repairs: frozenset[Repair]) -> list[Step]:
        """The steps that a backward pass with ``repairs`` runs, in its order."""
        kept: list[Step] = []
        own = {id(entry) for entry in begin.entries}
        for step in self._steps[begin.index]:
            if step.entry is not None and id(step.entry) in own:
                if step.entry.enabled:
                    kept.append(step)
            elif step.cut:
                if Repair.CUT in repairs:
                    kept.append(step)
            elif step.entry is not None:
                if Repair.CHAIN in repairs:
                    kept.append(step)
            elif Repair.TAPED in repairs or (Repair.GRADIENT in repairs and self._lost_copy(step)):
                kept.append(step)
            elif Repair.CUT in repairs and isinstance(step.forward, NativeCall):
                kept.append(Step(step.time, None, step.forward, cut=True))
        return self._once(kept) if Repair.ONCE in repairs else kept

    @staticmethod
    def _lost_copy(step: Step) -> bool:
        """A copy under a tape that was not recorded since one side has no gradient."""
        call = step.forward
        if not isinstance(call, NativeCall) or call.active is None or not call.reads:
            return False
        return call.writes[0].memory.grad is None or call.reads[0].memory.grad is None

    def _once(self, steps: list[Step]) -> list[Step]:
        """Without what was recorded before the window; if there is nothing of that kind, without repetitions."""
        recent = [step for step in steps if step.time >= self.group.start]
        if len(recent) < len(steps):
            return recent
        seen: set[tuple[object, ...]] = set()
        kept: list[Step] = []
        for step in steps:
            key = _identity(step)
            if key is None or key not in seen:
                kept.append(step)
            if key is not None:
                seen.add(key)
        return kept

    def repeated(self, begin: BackwardBegin) -> list[tuple[Step, Step]]:
        """Pairs of steps of which the first repeats the second, or was recorded before the window."""
        kept = self.chosen(begin, frozenset({Repair.ONCE}))
        remaining = {id(step) for step in kept}
        dropped = [step for step in self.chosen(begin, frozenset()) if id(step) not in remaining]
        by_kernel = {_kernel_of(step): step for step in reversed(kept)}
        return [(by_kernel.get(_kernel_of(step), step), step) for step in dropped]

    # running ----------------------------------------------------------------------------------------------------------

    def gradient(
        self, repairs: frozenset[Repair], restrictions: dict[Repair, Restriction] | None = None
    ) -> npt.NDArray[np.float64]:
        """The leaf's gradient under ``repairs``, each confined as ``restrictions`` say."""
        confined = restrictions or {}
        if repairs & {Repair.MEMORY, Repair.KERNEL}:
            self._learn_history()
        self._base.restore()
        self._shadows.clear()
        position = self.group.backwards[0].index
        for begin in self.group.backwards:
            self._machine.run(position, begin.index)
            data = self._data_before(begin) if Repair.MEMORY in repairs else None
            self._run_backward(begin, repairs, confined, first=begin is self.group.backwards[0])
            if data is not None:
                data.restore()
            position = self._end(begin) + 1
        if Repair.FRESH not in repairs and self.group.used is not None:
            self._machine.run(position, self.group.used.index)
        return self.group.leaf.gradient.read().astype(np.float64)

    def _data_before(self, begin: BackwardBegin) -> Contents | None:
        """What perfect memory must put back before the program goes on; nothing after the last backward call."""
        if begin is self.group.backwards[-1]:
            return None
        return Contents(memory for memory in self._base.saved if memory not in self._log.gradients)

    def _run_backward(
        self, begin: BackwardBegin, repairs: frozenset[Repair], confined: dict[Repair, Restriction], first: bool
    ) -> None:
        seeds = self._seed_operations(begin)
        if Repair.FRESH in repairs:
            self._clear_gradients(begin, keep_leaf=not first)
        if not repairs - {Repair.FRESH}:
            self._machine.run(begin.index, self._end(begin))
            return
        for operation in seeds:
            operation.run()
        for step in self.chosen(begin, repairs):
            self._run_step(step, repairs, confined)

    def _seed_operations(self, begin: BackwardBegin) -> list[Operation]:
        between = self._log.between(begin.index + 1, self._end(begin))
        return [operation for operation in between if operation.step is None]

    def _clear_gradients(self, begin: BackwardBegin, keep_leaf: bool) -> None:
        """Every gradient that this backward pass touches starts from zero, except seeds that lie in gradients."""
        leaf = self.group.leaf
        seeds: list[tuple[FloatView, npt.NDArray[np.generic]]] = []
        if begin.loss is None and not begin.seeds:
            seeds = self._seeds_in_gradients(begin)
        kept = leaf.gradient.read() if keep_leaf else None
        touched = self._machine.touched(begin.index, self._end(begin))
        for memory in {*touched, leaf.gradient_memory} & self._log.gradients:
            memory.live()[:] = 0
        for view, values in seeds:
            view.write(values)
        if kept is not None:
            leaf.gradient.write(kept)

    def _seeds_in_gradients(self, begin: BackwardBegin) -> list[tuple[FloatView, npt.NDArray[np.generic]]]:
        found = []
        for entry in begin.entries:
            call = entry.forward if entry is not None else None
            if isinstance(call, KernelCall):
                for slot in call.layout.slots:
                    view = view_of(call, slot)
                    grad = int(descriptor(call.params[slot.parameter], slot.offset).grad)
                    if view is not None and grad and self._analysis.survey.accesses.of(call, slot).writes:
                        found.append((view.at(grad), view.at(grad).read()))
        return found

    def _run_step(self, step: Step, repairs: frozenset[Repair], confined: dict[Repair, Restriction]) -> None:
        if step.cut:
            self._cut(step, confined.get(Repair.CUT, EVERYWHERE))
        elif isinstance(step.forward, KernelCall):
            if Repair.MEMORY in repairs:
                self._restore(step.forward, confined.get(Repair.MEMORY, EVERYWHERE))
            if Repair.KERNEL in repairs and id(step.forward.kernel) in self.wrong:
                self._run_by_differences(step, repairs, confined)
            else:
                self._run_kernel(step, repairs, confined)
        elif isinstance(step.forward, NativeCall) and (not step.recorded or repairs & _CHANGES_COPIES):
            self._adjoint_of_copy(step.forward, repairs, confined)
        else:
            for operation in step.recorded:
                operation.run()

    def _run_by_differences(self, step: Step, repairs: frozenset[Repair], confined: dict[Repair, Restriction]) -> None:
        """The adjoint of a launch of a wrong kernel, as it would be if it were right; too large a one runs as it is."""
        forward = step.forward
        assert isinstance(forward, KernelCall)
        params = self._adjoint_params(step, repairs, confined)
        found: dict[int, Differentiated] = {}
        for slot in forward.layout.slots:
            view = view_of(forward, slot)
            gradient = int(descriptor(params[slot.parameter], slot.offset).grad)
            if view is not None and gradient:
                writes = self._analysis.survey.accesses.of(forward, slot).writes
                known = found.get(view.address)
                found[view.address] = Differentiated(
                    view, view.at(gradient), writes or (known is not None and known.writes)
                )
        arrays = list(found.values())
        if not is_small(arrays):
            self._run_kernel(step, repairs, confined)
            return
        kept = Contents(forward.touched)
        self._undo(forward)
        run_adjoint(forward, arrays)
        gradients = {memory for memory in kept.saved if memory in self._log.gradients}
        for memory in set(kept.saved) - gradients:
            memory.write(kept.saved[memory])

    def _undo(self, call: KernelCall) -> None:
        """Put back what the launch itself has overwritten, where nothing has come over it since."""
        for _, where, access in self._bound_by(call):
            if access.writes and self.history.knows(where.memory):
                after = self.history.contents(where, self.history.after(where.memory, call.index))
                if np.array_equal(where.read(), after):
                    before = self.history.contents(where, self.history.before(where.memory, call.index))
                    where.memory.write(np.ascontiguousarray(before), where.start)

    def _run_kernel(self, step: Step, repairs: frozenset[Repair], confined: dict[Repair, Restriction]) -> None:
        forward = step.forward
        assert isinstance(forward, KernelCall)
        if forward.hooks.backward is None:
            return
        params = self._adjoint_params(step, repairs, confined)
        Packed(forward.kernel, forward.hooks, params, adjoint=True)()

    def _adjoint_params(self, step: Step, repairs: frozenset[Repair], confined: dict[Repair, Restriction]) -> list[Any]:
        """What the adjoint of a launch is given, gradients as the repairs have them."""
        forward = step.forward
        assert isinstance(forward, KernelCall)
        count = len(forward.layout.names)
        ran = step.adjoint_call
        if ran is not None and not repairs & _OWN_ARGUMENTS:
            params = copied(ran.params)
        else:
            params = copied(forward.params)
            params += adjoint_parameters(params)
        for slot in forward.layout.slots:
            self._set_gradient(params, slot, count, repairs, confined)
        return params

    def _set_gradient(
        self,
        params: list[object],
        slot: ArraySlot,
        count: int,
        repairs: frozenset[Repair],
        confined: dict[Repair, Restriction],
    ) -> None:
        if slot.indexed:
            return
        data = descriptor(params[slot.parameter], slot.offset)
        adjoint = descriptor(params[slot.parameter + count], slot.offset)
        memory = self._log.memories.find(int(data.data)) if data.data else None
        if Repair.RETAIN in repairs and memory is not None and confined.get(Repair.RETAIN, EVERYWHERE).admits(memory):
            data.flags &= ~RETAIN_FLAG
        given = Repair.GRADIENT in repairs and memory is not None and slot.scalars.floating and not data.grad
        if given and memory is not None and confined.get(Repair.GRADIENT, EVERYWHERE).admits(memory):
            data.grad = self._shadows.address(Range(memory, int(data.data) - memory.address, memory.size))
        if data.grad and (not adjoint.data or Repair.GRADIENT in repairs):
            adjoint.data, adjoint.ndim = data.grad, data.ndim
            for axis in range(int(data.ndim)):
                adjoint.shape[axis], adjoint.strides[axis] = data.shape[axis], data.strides[axis]

    def _gradient_of(self, where: Range, repairs: frozenset[Repair], confined: dict[Repair, Restriction]) -> int:
        """The address of the gradient of these bytes; 0 where there is none."""
        grad = where.memory.grad
        if grad is not None and grad.size >= where.stop:
            return grad.address + where.start
        if Repair.GRADIENT in repairs and confined.get(Repair.GRADIENT, EVERYWHERE).admits(where.memory):
            return self._shadows.address(where)
        return 0

    def _adjoint_of_copy(
        self, call: NativeCall, repairs: frozenset[Repair], confined: dict[Repair, Restriction]
    ) -> None:
        pair = copied_floats(call, self._analysis)
        if pair is None:
            return
        source, dest = pair
        into = self._gradient_of(call.reads[0], repairs, confined)
        out = self._gradient_of(call.writes[0], repairs, confined)
        if not out:
            return
        incoming = dest.at(out + dest.address - call.writes[0].address)
        if into:
            target = source.at(into + source.address - call.reads[0].address)
            target.write((target.read() + incoming.read()).astype(target.kind))
        if not (call.writes[0].memory.retain and Repair.RETAIN not in repairs):
            incoming.write(np.zeros_like(incoming.read()))

    def _cut(self, step: Step, restriction: Restriction) -> None:
        if isinstance(step.forward, KernelCall) or step.forward is None:
            return
        written = step.forward.writes if isinstance(step.forward, NativeCall) else (step.forward.dest,)
        for where in written:
            grad = where.memory.grad
            if grad is not None and restriction.admits(where.memory) and grad.size >= where.stop:
                grad.live()[where.start : where.stop] = 0
            if where.memory in self._shadows.buffers:
                self._shadows.buffers[where.memory][where.start : where.stop] = 0

    # perfect memory ---------------------------------------------------------------------------------------------------

    @property
    def history(self) -> History:
        """What the arrays of the group's launches held when they ran. Raises ``TooLarge``."""
        self._learn_history()
        assert self._history is not None
        return self._history

    def _learn_history(self) -> None:
        if self._history is None:
            kept = {where.memory for _, where, _ in self.bound()}
            self._history = History(self._machine, self.first, self.group.stop, kept)

    def bound(self) -> Iterator[tuple[KernelCall, Range, Access]]:
        """Every array that a launch of the group binds: the launch, the bytes, what it does with them."""
        for begin in self.group.backwards:
            for step in self._steps[begin.index]:
                if isinstance(step.forward, KernelCall):
                    yield from self._bound_by(step.forward)

    def _bound_by(self, call: KernelCall) -> Iterator[tuple[KernelCall, Range, Access]]:
        for slot in call.layout.slots:
            found = descriptor(call.params[slot.parameter], slot.offset)
            memory = self._log.memories.find(int(found.data)) if found.data else None
            if memory is None or memory in self._log.gradients:
                continue
            low, stop = FloatView.of(found, slot.scalars).span
            where = Range(memory, max(0, low - memory.address), min(memory.size, stop - memory.address))
            if where.size > 0:
                yield call, where, self._analysis.survey.accesses.of(call, slot)

    def version_for(self, call: KernelCall, where: Range, access: Access) -> int:
        """The version that the adjoint of a launch needs: what it found, or what it left where it only stores."""
        if access.writes and not access.reads:
            return self.history.after(where.memory, call.index)
        return self.history.before(where.memory, call.index)

    def _restore(self, call: KernelCall, restriction: Restriction) -> None:
        needed = [bound for bound in self._bound_by(call) if restriction.admits(bound[1].memory)]
        for _, where, access in sorted(needed, key=lambda bound: bound[2].reads):
            if self.history.knows(where.memory):
                contents = self.history.contents(where, self.version_for(call, where, access))
                where.memory.write(np.ascontiguousarray(contents), where.start)


def copied_floats(call: NativeCall, analysis: Analysis) -> tuple[FloatView, FloatView] | None:
    """Source and destination of a copy as floats; None where they are none."""
    from warplint.verify.engine.execution.native_ranges import described_pair

    kind = float_kind_of(call.reads[0].memory, analysis) or float_kind_of(call.writes[0].memory, analysis)
    if kind is None:
        return None
    if call.name == "wp_memcpy_h2h":
        source, dest = call.reads[0], call.writes[0]
        size = min(source.size, dest.size)
        return FloatView.flat(source.address, size, kind), FloatView.flat(dest.address, size, kind)
    return described_pair(call.args, kind)


def float_kind_of(memory: Memory, analysis: Analysis) -> np.dtype[np.generic] | None:
    """The kind of the floats in a memory, from the first launch that binds it."""
    for operation in analysis.of(memory):
        if isinstance(operation, KernelCall):
            for slot in operation.layout.slots:
                view = view_of(operation, slot)
                if view is not None and memory.address <= view.address < memory.stop:
                    return view.kind
    return None


def _identity(step: Step) -> tuple[object, ...] | None:
    call = step.forward
    if isinstance(call, KernelCall):
        return (id(call.kernel), *(bytes(value) for value in call.params))
    return None


def _kernel_of(step: Step) -> int:
    return id(step.forward.kernel) if isinstance(step.forward, KernelCall) else 0

"""The recorder: turns what the hooks see into a log, while the user's program runs as it always does."""

from __future__ import annotations

import functools
import struct
import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from warplint.verify.engine.execution import native_ranges
from warplint.verify.engine.execution.log import Handle, Log
from warplint.verify.engine.execution.memory import CodeStack, Memory, Range, read_bytes
from warplint.verify.engine.execution.operations import (
    BackwardBegin,
    BackwardEnd,
    Entry,
    Happening,
    HostRead,
    HostWrite,
    KernelCall,
    NativeCall,
    TapeMark,
    TapeRecord,
)
from warplint.verify.engine.recording.held_arguments import Change, HeldArguments
from warplint.verify.engine.recording.horizon import Horizon
from warplint.verify.engine.recording.memory_watch import MemoryWatch
from warplint.verify.engine.recording.template import Template
from warplint.verify.engine.recording.user_frames import called_by_user, importing_library, library_call, user_stack
from warplint.verify.engine.warp_hooks import EXACT_WRITERS
from warplint.verify.engine.warp_modules import is_unique, plain
from warplint.verify.engine.warp_values import (
    RETAIN_FLAG,
    Layout,
    adjoint_enabled,
    array_type,
    copied,
    copy_entry,
    layout_of,
    scalars_of,
)
from warplint.verify.records import (
    ConfigSeen,
    EmptiedView,
    ModuleCreatedSeen,
    ModuleOptionsSeen,
    OpaqueSeen,
    OptimiserSeen,
    ReboundSeen,
)


class Evaluating(Protocol):
    """What a process that evaluates for the arbiter is told."""

    def operation(self) -> None:
        """An operation is about to run."""

    def backward(self, begin: BackwardBegin) -> None:
        """A backward call begins."""


def _is_of_library(kernel: Any) -> bool:
    """Whether Warp brings the kernel itself: by one of `wp.map` the backward of `wp.copy` adds up gradients."""
    return str(kernel.module.name).startswith(("warp.", "map_"))


def _lists_of(launch: Any) -> tuple[Any, ...]:
    """The objects that the tape keeps as a launch's inputs and outputs; nothing for a recorded function."""
    return () if callable(launch) else (launch[3], launch[4])


class Recorder:
    """Observes one process. ``horizon`` decides when enough was seen; ``told`` takes what is no native operation.

    Every method runs the user's operation exactly once, with the user's own arguments.
    """

    def __init__(self, log: Log, horizon: Horizon) -> None:
        self.log = log
        self.horizon = horizon
        self.error: BaseException | None = None
        self.evaluation: Evaluating | None = None
        """Set in a process that runs the program again for the arbiter."""
        self.first_backward: Callable[[], None] | None = None
        """Called once, when the first backward call begins."""
        self._active: TapeRecord | None = None
        self._inside: BackwardBegin | None = None
        self._step: Entry | None = None
        self._awaited: list[Entry] = []
        self._mismatch = False
        self._template: Template | None = None
        self._templates: dict[int, Template] = {}
        self._pending: KernelCall | None = None
        self._out: Log | Template = log
        self._layouts: dict[int, Layout] = {}
        self._memory = MemoryWatch(log, self._host_wrote)
        self._tapes: weakref.WeakValueDictionary[int, TapeRecord] = weakref.WeakValueDictionary()
        self._tape_count = 0
        self._last_kernel: KernelCall | None = None
        self._descriptor = struct.Struct("<QQ")
        self._held = HeldArguments(self._array_range)

    # operations ---------------------------------------------------------------------------------------------------

    def kernel(
        self, run: Callable[..., None], kernel: Any, hooks: Any, params: Sequence[Any], adjoint: bool, blocks: bool
    ) -> None:
        """A launch, or the adjoint of one."""
        if self.evaluation is not None:
            self.evaluation.operation()
        self.horizon.tick(self.log)
        call = self._kernel_call(kernel, hooks, params, adjoint, blocks)
        self.log.add(call)
        self.log.launches += not adjoint and not (self._inside is not None and _is_of_library(kernel))
        run(kernel, hooks, params, adjoint)
        self._ran(call.memories)
        self._last_kernel = call

    def _kernel_call(self, kernel: Any, hooks: Any, params: Sequence[Any], adjoint: bool, blocks: bool) -> KernelCall:
        layout = self._layouts.get(id(kernel))
        if layout is None:
            layout = self._layouts[id(kernel)] = layout_of(kernel)
            self.log.kernels[id(kernel)] = kernel
        copies = copied(params)
        memories, unknown = self._memories_of(layout, copies, adjoint)
        step = self._step
        if adjoint and self._inside is not None and step is None:
            step = self._awaited_entry(kernel)
        return KernelCall(
            self._out.next_index,
            user_stack(sys._getframe(3)),
            self._active.number if self._active else None,
            self._inside.number if self._inside else None,
            step,
            kernel=kernel,
            hooks=hooks,
            params=copies,
            adjoint=adjoint,
            blocks=blocks,
            layout=layout,
            memories=memories,
            unknown=unknown,
        )

    def _memories_of(self, layout: Layout, params: list[Any], adjoint: bool) -> tuple[tuple[Memory, ...], bool]:
        found: dict[Memory, None] = {}
        unknown = False
        shift = len(layout.names)
        for slot in layout.slots:
            parameter = params[slot.parameter]
            data, grad = self._descriptor.unpack_from(parameter, slot.offset)
            memory = self._touch(data) if data else None
            unknown |= bool(data) and memory is None
            if memory is not None:
                found[memory] = None
                if grad:
                    self._pair(memory, grad, parameter, slot.offset)
            if adjoint:
                for address in (grad, self._descriptor.unpack_from(params[slot.parameter + shift], slot.offset)[0]):
                    gradient = self._touch(address) if address else None
                    if gradient is not None:
                        found[gradient] = None
        if not adjoint:
            self._note_use(found)
        return tuple(found), unknown

    def _pair(self, memory: Memory, grad: int, parameter: Any, offset: int) -> None:
        """Learn from a descriptor which memory holds the gradient of which."""
        gradient = self.log.memories.find(grad) or self._memory.register_foreign(grad)
        if gradient is not None and gradient is not memory:
            memory.grad = gradient
            if gradient.gradient_of is None:
                gradient.gradient_of = memory
            self.log.gradients.add(gradient)
        (flags,) = struct.unpack_from("<H", parameter, offset + array_type().flags.offset)
        memory.retain = bool(flags & RETAIN_FLAG)

    def _awaited_entry(self, kernel: Any) -> Entry | None:
        """Inside backward, adjoint launches come in the reverse order of the tape's entries."""
        while self._awaited:
            entry = self._awaited.pop()
            if entry.what == "launch" and entry.enabled and entry.forward is not None:
                if isinstance(entry.forward, KernelCall) and entry.forward.kernel is kernel:
                    return entry
                self._mismatch = True
                return None
        self._mismatch = True
        return None

    def native(self, name: str, run: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """A memory operation or native utility."""
        if self._template is not None:
            return self._captured_native(self._template, name, run, args)
        if self.evaluation is not None:
            self.evaluation.operation()
        call = self._native_call(name, run, args)
        result = run(*args)
        if call is not None:
            self._ran(call.touched)
        return result

    def _native_call(self, name: str, run: Callable[..., Any], args: tuple[Any, ...]) -> NativeCall | HostWrite | None:
        if name not in EXACT_WRITERS:
            touched = native_ranges.reachable(args, self.log)
            reads = writes = tuple(self._range_of(memory) for memory in touched)
            for memory in touched:
                self._touch_memory(memory)
            return self._add_native(name, run, args, reads, writes, exact=False)
        extents = native_ranges.exact(name, args)
        if extents is None or extents.size == 0:
            return None
        dest = self._memory.locate(extents.dest, extents.size)
        source = self._memory.locate(extents.source, extents.source_size) if extents.source else None
        if dest is None:
            if source is not None:
                self.log.add(HostRead(*self._here(), source=source, how="copy"))
            return None
        if source is not None:
            self._touch_memory(source.memory)
        self._touch_memory(dest.memory, overwritten=dest.size == dest.memory.size)
        if extents.source and source is None and name != "wp_memtile_host":
            return self._upload(extents, dest)
        args = native_ranges.frozen(name, args)
        reads = (source,) if source is not None else ()
        return self._add_native(name, run, args, reads, (dest,), exact=True)

    def _upload(self, extents: native_ranges.Extents, dest: Range) -> HostWrite | None:
        """Host memory that nobody knows is copied in: its bytes are kept, since the host memory may be gone."""
        if extents.contents is None:
            return None
        call = library_call(sys._getframe(4))
        operation = HostWrite(*self._here(4), dest=dest, contents=extents.contents(), how=call or "copy")
        self._note_use(operation.touched)
        self.log.add(operation)
        return operation

    def _add_native(
        self,
        name: str,
        run: Callable[..., Any],
        args: tuple[Any, ...],
        reads: tuple[Range, ...],
        writes: tuple[Range, ...],
        exact: bool,
    ) -> NativeCall:
        how = library_call(sys._getframe(4))
        call = NativeCall(*self._here(4), name, run, args, reads, writes, exact, how)
        if self._template is None:
            self._note_use(call.touched, clears=exact and not reads)
            self.log.add(call)
        return call

    def _here(self, depth: int = 3) -> tuple[int, CodeStack, int | None, int | None, Entry | None]:
        """The first fields of an operation."""
        return (
            self._out.next_index,
            user_stack(sys._getframe(depth)),
            self._active.number if self._active else None,
            self._inside.number if self._inside else None,
            self._step,
        )

    # memory -------------------------------------------------------------------------------------------------------

    def allocate(self, run: Callable[..., int], args: tuple[Any, ...]) -> int:
        """Memory is allocated."""
        address = self._memory.allocate(run, args)
        if not address and int(args[0]):
            self.horizon.refused(self.log, int(args[0]))
        return address

    def free(self, run: Callable[..., None], address: int) -> None:
        """Python is done with an allocation."""
        self._memory.free(run, address)
        if self._active is None and self._inside is None and self._template is None:
            self.horizon.relieve(self.log)

    def destroy(self, name: str, run: Callable[..., Any], args: tuple[Any, ...]) -> None:
        """Meshes, grids and trees outlive the last replay: they are never destroyed."""

    def created(self, name: str, handle: int, args: tuple[Any, ...]) -> None:
        """Remember what a handle was made from."""
        if handle:
            self.log.handles[int(handle)] = Handle(int(handle), name, tuple(native_ranges.reachable(args, self.log)))

    def array(self, array: Any) -> None:
        """A ``wp.array`` object was constructed."""
        had_gradients = bool(self.log.gradients)
        self._memory.array(array)
        if self.log.gradients and not had_gradients:
            self.horizon.first_gradient()

    def host_view(self, array: Any, view: Any, how: str) -> None:
        """The host reads, and may write as long as the view lives."""
        if self._template is not None:
            return
        if self.evaluation is not None:
            self.evaluation.operation()
        source = self._memory.seen_by_host(array)
        if source is None:
            return
        if source.memory in self.log.gradients and self._inside is None:
            self._gradient_used(source.memory)
        read = HostRead(*self._here(), source=source, how=how)
        self.log.add(read)
        self._memory.expose(source.memory, view)
        if source.memory in self.log.gradients and self._inside is None:
            self._memory.hold(source, view, read.stack)

    def _host_wrote(self, dest: Range) -> None:
        self.log.add(HostWrite(*self._here(), dest=dest, contents=dest.read(), how="numpy"))

    def _ran(self, memories: Sequence[Memory]) -> None:
        """An operation on these memories has run."""
        self._memory.refresh(memories)
        if self._inside is None:
            for held in self._memory.emptied(memories):
                owner = held.source.memory.gradient_of or held.source.memory
                self.happened(EmptiedView, read=held.stack, allocated=owner.stack, largest=held.largest)

    def _touch(self, address: int) -> Memory | None:
        return self._memory.touch(address, save=self._template is None)

    def _touch_memory(self, memory: Memory, overwritten: bool = False) -> None:
        if self._template is None:
            self._memory.before(memory, overwritten)

    @staticmethod
    def _range_of(memory: Memory) -> Range:
        return Range(memory, 0, memory.size)

    def _note_use(self, memories: Iterable[Memory], clears: bool = False) -> None:
        """Gradients that are used or cleared outside backward, leaves that are written: what makes a group complete.

        Clearing an array (a loss, an accumulator) is no step of an optimiser.
        """
        if self._inside is not None or self._template is not None:
            return
        for memory in memories:
            if memory in self.log.gradients:
                self._gradient_used(memory)
            elif self._active is not None:
                memory.taped = True
            elif memory.taped and memory.grad is not None and not clears:
                self.horizon.leaf_written()

    def _gradient_used(self, memory: Memory) -> None:
        """Keep the gradient as it is when the program uses it."""
        self.log.keep_gradient(memory)
        self.horizon.gradient_used()

    # tapes --------------------------------------------------------------------------------------------------------

    def tape(self, what: str, tape: Any) -> None:
        """The life of a tape."""
        if what == "enter":
            if self._template is None:
                self._memory.notice_all()
                self.horizon.entering(self.log, user_stack(sys._getframe(1), limit=1))
            return
        if what == "left" and self._template is None:
            self._memory.notice_all()
        record = self._tape_record(tape)
        mark = TapeMark(*self._here(5), what=what, tape=record)
        self._out.add(mark)
        if what == "entered":
            self._active = record
            if self._template is None:
                record.entered.append(self.log.next_index)
            record.entered_at.append(mark.stack)
        elif what == "left":
            self._active = None
        elif what in ("zero", "reset") and self._template is None:
            self.horizon.gradient_used()

    def _tape_record(self, tape: Any) -> TapeRecord:
        record = self._tapes.get(id(tape))
        if record is None or record.tape is not tape:
            record = TapeRecord(self._tape_count, tape, user_stack(sys._getframe(4)))
            self._tape_count += 1
            self._tapes[id(tape)] = record
            self.log.tapes.append(record)
        return record

    def recorded(self, tape: Any, thing: Any) -> None:
        """The tape took an entry: find the operation that it stands for."""
        record = self._tape_record(tape)
        position = len(tape.launches) - 1
        if not callable(thing):
            self._recorded_launch(record, position, thing)
            return
        copy = copy_entry(getattr(thing, "__wrapped__", thing))
        forward = self._copied_just_now(copy) if copy is not None else None
        entry = Entry(record, position, "function" if copy is None else "copy", thing, forward, copy=copy)
        entry.recorded_at = self._out.next_index
        if forward is not None:
            forward.entry = entry
        record.add(entry)

    def _recorded_launch(self, record: TapeRecord, position: int, thing: Any) -> None:
        kernel = thing[0]
        call = self._last_kernel
        forward = None
        matches = call is not None and call.entry is None and not call.adjoint and call.kernel is kernel
        if matches and call is not None and call.index >= self._out.next_index - 4:
            forward = call
        entry = Entry(record, position, "launch", thing, forward, enabled=adjoint_enabled(kernel))
        entry.device = str(getattr(thing[5], "alias", "cpu"))
        entry.recorded_at = self._out.next_index
        if forward is not None:
            forward.entry = entry
            for change in self._held.changed_items(_lists_of(thing)):
                self._rebound(change)
            entry.given = self._held.given(forward.layout.names, thing[3], thing[4], forward.stack)
            self.log.taped += self._template is None
        elif self._nothing_to_run(thing):
            entry.enabled = False
        record.add(entry)

    def struct_set(self, struct: Any, name: str) -> None:
        """A field of a struct was set, which a tape may hold."""
        change = self._held.changed_field(struct, name)
        if change is not None:
            self._rebound(change)

    def _rebound(self, change: Change) -> None:
        holder, key = change.slot
        self.happened(ReboundSeen, holder=holder, key=key, values=change.values, given=change.given)

    @staticmethod
    def _nothing_to_run(thing: Any) -> bool:
        return bool(np.prod(thing[1]) == 0) if thing[1] else True

    def _copied_just_now(self, copy: Any) -> NativeCall | None:
        for operation in reversed(self._out.operations[-6:]):
            if isinstance(operation, NativeCall) and operation.entry is None and operation.writes:
                dest = operation.writes[0]
                if dest.memory not in self.log.gradients and dest.memory is self.log.memories.find(copy.dest.ptr):
                    return operation
        return None

    def wrap_callable(self, tape: Any, function: Callable[[], Any]) -> Callable[[], Any]:
        """A recorded function tells when it runs, so that what it does in backward is known to be its adjoint."""

        def running() -> Any:
            if self._inside is None:
                return function()
            before = self._step
            self._step = self._function_entry(running)
            try:
                return function()
            finally:
                self._step = before

        running.__wrapped__ = function  # type: ignore[attr-defined]
        return running

    def _function_entry(self, thing: Any) -> Entry | None:
        if self._inside is None:
            return None
        entry = self._inside.tape.by_identity.get(id(thing))
        while self._awaited:
            if self._awaited.pop() is entry:
                return entry
        return entry

    def backward(self, tape: Any, loss: Any, grads: Any, run: Callable[[], Any]) -> Any:
        """``tape.backward``: what it was given, then its operations, then the end."""
        if self._inside is not None:
            return run()
        for change in self._held.changed_items(held for launch in tape.launches for held in _lists_of(launch)):
            self._rebound(change)
        begin = self._backward_begin(tape, loss, grads)
        if self._template is None:
            self._memory.notice_all()
            if self.evaluation is not None:
                self.evaluation.backward(begin)
            begin.index = self.log.next_index
            self.log.backwards.append(begin)
            self.log.backward_count += 1
            if self.first_backward is not None:
                self.first_backward()
                self.first_backward = None
        self._out.add(begin)
        self._inside = begin
        self._awaited = [entry for entry in begin.entries if entry is not None]
        self._mismatch = any(entry is None for entry in begin.entries)
        done = False
        try:
            result = run()
            done = True
            return result
        finally:
            self._inside = None
            end = BackwardEnd(*self._here(), number=begin.number, complete=done and not self._mismatch)
            begin.end = end
            self._out.add(end)
            if self._template is None:
                self.horizon.backward_done()

    def _backward_begin(self, tape: Any, loss: Any, grads: Any) -> BackwardBegin:
        record = self._tape_record(tape)
        where = kind = contents = None
        # An array's truth is that of its length: ``is not None`` would look at arrays of no memory.
        if loss is not None and loss.ptr:
            kind = scalars_of(loss.dtype)
            where = self._memory.locate(loss.ptr, kind.size)
            contents = read_bytes(loss.ptr, kind.size) if self._template is None else None
        entries = record.now(tape.launches)
        given = (grads or {}).items()
        seeds = tuple((array.__ctype__(), seed.__ctype__(), scalars_of(array.dtype)) for array, seed in given)
        return BackwardBegin(
            *self._here(4),
            number=self.log.backward_count,
            tape=record,
            loss=where,
            loss_kind=kind,
            loss_bytes=contents,
            seeds=seeds,
            entries=entries,
            seeded=loss is not None or bool(grads) or self._hold_gradients(entries),
        )

    def _hold_gradients(self, entries: Sequence[Entry | None]) -> bool:
        """Whether any array of a tape's launches has a gradient that is not zero: then a bare backward has a seed."""
        for entry in entries:
            call = entry.forward if entry is not None else None
            if entry is None or not isinstance(call, KernelCall):
                return True
            for slot in call.layout.slots:
                _, grad = self._descriptor.unpack_from(call.params[slot.parameter], slot.offset)
                memory = self.log.memories.find(grad) if grad else None
                if memory is not None and memory.live().any():
                    return True
        return False

    # graph capture ----------------------------------------------------------------------------------------------------

    def capture(self, what: str, state: int, count: Callable[[], int]) -> None:
        """While a graph is captured, operations go into its template and not into the log."""
        if what == "begin":
            template = self._templates.get(state)
            if template is None:
                template = self._templates[state] = Template(len(self._templates), count)
            self._template = self._out = template
        elif what == "end":
            if self._template is not None:
                self._template.finish()
            self._template, self._out = None, self.log
        elif what == "branch" and self._template is not None:
            self._template.broken = "it has branches or loops on the device"
        elif what == "forget":
            self._templates.pop(state, None)

    def captured_kernel(self, kernel: Any, hooks: Any, params: Sequence[Any], adjoint: bool, blocks: bool) -> None:
        """A kernel is announced; it is taken by the native call that follows."""
        if self._template is not None:
            self._pending = self._kernel_call(kernel, hooks, params, adjoint, blocks)

    def captured_launch(self, run: Callable[[], Any]) -> Any:
        """The native recording takes the announced kernel."""
        template, call = self._template, self._pending
        if template is None:
            return run()
        result, taken = template.around(run)
        self._pending = None
        if taken and call is not None:
            call.graph = template.number
            template.add(call)
            self._last_kernel = call
        elif taken:
            template.broken = "a kernel was recorded that was not announced"
        return result

    def _captured_native(self, template: Template, name: str, run: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        call = self._native_call(name, run, args)
        result, taken = template.around(functools.partial(run, *args))
        if taken and isinstance(call, NativeCall):
            template.add(call)
        elif taken:
            template.broken = "it copies from host memory that is gone when the graph is launched"
        return result

    def graph(self, state: int | None, run: Callable[[], Any]) -> Any:
        """A graph is launched: natively, and into the log as if its operations had run one by one."""
        template = self._templates.get(state) if state is not None else None
        if template is None or template.broken:
            self._opaque(template.broken if template is not None else "it was loaded from a file")
            return run()
        if template.records_tape:
            self._memory.notice_all()
            self.horizon.entering(self.log, user_stack(sys._getframe(1), limit=1))
        memories = list(template.touched)
        for memory in memories:
            self._touch_memory(memory)
        self._note_use(memories)
        result = run()
        begins = template.launch(self.log)
        for _ in begins:
            self.horizon.backward_done()
        self._ran(memories)
        if begins:
            self._note_use_after(begins[-1])
        return result

    def _note_use_after(self, begin: BackwardBegin) -> None:
        """Gradients that are used inside the graph, after its last backward call."""
        for operation in self.log.between(begin.index, self.log.next_index):
            if operation.inside is None and any(memory in self.log.gradients for memory in operation.touched):
                self.horizon.gradient_used()

    def _opaque(self, why: str) -> None:
        self.log.graphs_opaque += 1
        self.log.opaque_reason = why
        self.happened(OpaqueSeen, why=f"a captured graph was launched that could not be followed: {why}")

    # what is only told --------------------------------------------------------------------------------------------

    def happened(self, make: Callable[..., Any], **fields: Any) -> None:
        """Something that is no operation of the native library: kept in its place among them."""
        self._out.add(Happening(*self._here(), make=make, fields=fields))

    def kernel_declared(self, kernel: Any) -> None:
        """A kernel was made."""
        self.log.declared[id(kernel)] = (kernel, self.log.next_index, user_stack(sys._getframe(2)))
        self._out.add(Happening(*self._here(), make=None, fields={}))

    def module_created(self, module: Any) -> None:
        """A module was made."""
        if not importing_library(sys._getframe(1)):
            unique = is_unique(module, [])
            self.happened(ModuleCreatedSeen, module=str(module.name), unique=unique)

    def module_options(self, module: str, options: dict[str, Any]) -> None:
        """Module options were set."""
        if not importing_library(sys._getframe(1)):
            self.happened(ModuleOptionsSeen, module=module, options={name: plain(v) for name, v in options.items()})

    def options_written(self, module: str, options: dict[str, Any]) -> None:
        """A module's options were written into, which Warp does not hear."""
        values = {name: plain(value) for name, value in options.items()}
        self.happened(ModuleOptionsSeen, module=module, options=values, direct=True)

    def config(self, option: str, value: Any) -> None:
        """A global option was set."""
        if called_by_user(sys._getframe(1)):
            self.happened(ConfigSeen, option=option, value=plain(value))

    def optimiser(self, optimiser: Any, gradients: Any, run: Callable[[], Any]) -> Any:
        """An optimiser takes a step."""
        params = [self._array_range(array) for array in getattr(optimiser, "params", None) or ()]
        given = [self._array_range(array) for array in (gradients if isinstance(gradients, list | tuple) else ())]
        self.happened(
            OptimiserSeen,
            params=tuple(where for where in params if where is not None),
            gradients=tuple(where for where in given if where is not None),
            how=type(optimiser).__name__,
        )
        return run()

    def _array_range(self, array: Any) -> Range | None:
        address = getattr(array, "ptr", None)
        return self.log.range(address, int(array.capacity)) if address else None

    def failed(self, error: BaseException) -> None:
        """The recorder itself raised: nothing more is recorded, and no verdict is given."""
        self.error = error

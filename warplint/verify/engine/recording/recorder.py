"""The recorder: turns what the hooks see into a log, while the user's program runs as it always does."""

from __future__ import annotations

import functools
import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from warplint.verify.engine.execution import native_ranges
from warplint.verify.engine.execution.log import Handle
from warplint.verify.engine.execution.memory import Memory, Range
from warplint.verify.engine.execution.operations import (
    BackwardBegin,
    Entry,
    HostRead,
    HostWrite,
    KernelCall,
    NativeCall,
)
from warplint.verify.engine.recording.tapes import TapeRecorder
from warplint.verify.engine.recording.template import Template
from warplint.verify.engine.recording.user_frames import library_call, user_stack
from warplint.verify.engine.warp_hooks import EXACT_WRITERS
from warplint.verify.engine.warp_values import (
    RETAIN_FLAG,
    Layout,
    array_type,
    copied,
    layout_of,
)
from warplint.verify.records import (
    EmptiedView,
    OpaqueSeen,
)


def _is_of_library(kernel: Any) -> bool:
    """Whether Warp brings the kernel itself: by one of `wp.map` the backward of `wp.copy` adds up gradients."""
    return str(kernel.module.name).startswith(("warp.", "map_"))


class Recorder(TapeRecorder):
    """Observes one process: its kernels, memory operations and captured graphs, besides its tapes.

    Every method runs the user's operation exactly once, with the user's own arguments.
    """

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
        if not adjoint:
            self.log.found.keep(call)
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
        self._memory.expose(source.memory, view, read.stack)
        if source.memory in self.log.gradients and self._inside is None:
            self._memory.hold(source, view, read.stack)

    def _ran(self, memories: Sequence[Memory]) -> None:
        """An operation on these memories has run."""
        self._memory.refresh(memories)
        if self._inside is None:
            for held in self._memory.emptied(memories):
                owner = held.source.memory.gradient_of or held.source.memory
                self.happened(
                    EmptiedView,
                    read=held.stack,
                    allocated=owner.stack,
                    largest=held.largest,
                    gradient=held.source.memory.number,
                )
        if self.evaluation is not None:
            self.evaluation.ran()

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
            if memory in self.log.gradients and clears:
                self.log.keep_cleared(memory)
                self.horizon.gradient_used()
            elif memory in self.log.gradients:
                self._gradient_used(memory)
            elif self._active is not None:
                memory.taped = True
            elif memory.taped and memory.grad is not None and not clears:
                self.horizon.leaf_written()

    def _gradient_used(self, memory: Memory) -> None:
        """Keep the gradient as it is when the program uses it."""
        self.log.keep_gradient(memory)
        self.horizon.gradient_used()

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

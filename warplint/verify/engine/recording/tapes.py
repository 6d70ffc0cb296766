"""The life of tapes: their entries, each with the operation that it stands for, and their backward calls."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from warplint.verify.engine.execution.memory import read_bytes
from warplint.verify.engine.execution.operations import (
    BackwardBegin,
    BackwardEnd,
    Entry,
    KernelCall,
    NativeCall,
    TapeMark,
    TapeRecord,
)
from warplint.verify.engine.recording.held_arguments import Change
from warplint.verify.engine.recording.recording import Recording
from warplint.verify.engine.recording.user_frames import user_stack
from warplint.verify.engine.warp_values import (
    adjoint_enabled,
    copy_entry,
    scalars_of,
)
from warplint.verify.records import (
    ReboundSeen,
)


def _lists_of(launch: Any) -> tuple[Any, ...]:
    """The objects that the tape keeps as a launch's inputs and outputs; nothing for a recorded function."""
    return () if callable(launch) else (launch[3], launch[4])


class TapeRecorder(Recording):
    """Observes the tapes of one process. Every method runs the user's operation exactly once."""

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

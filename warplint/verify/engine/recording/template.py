"""What a captured graph will do when it is launched: the operations, mirrored beside the native recording.

While a graph is captured nothing runs. The native library keeps its own stream of operations; this is the same stream
as the recorder's operations, so that each launch of the graph can be entered into the log as if it had run operation by
operation. It is trusted only if the native counter moved by exactly the operations that were mirrored.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from warplint.verify.engine.execution.log import Log
from warplint.verify.engine.execution.memory import Memory
from warplint.verify.engine.execution.operations import (
    BackwardBegin,
    BackwardEnd,
    Entry,
    KernelCall,
    NativeCall,
    Operation,
    TapeMark,
)


class Template:
    """The mirrored operations of one graph, numbered from 0. ``broken`` says why it cannot be trusted."""

    def __init__(self, number: int, count: Callable[[], int]) -> None:
        self.number = number
        self.operations: list[Operation] = []
        self.broken = ""
        self._count = count
        self._native = count()

    @property
    def next_index(self) -> int:
        """The number that the next operation gets."""
        return len(self.operations)

    def add(self, operation: Operation) -> None:
        """Append a mark, or an operation that :meth:`around` has seen being recorded."""
        self.operations.append(operation)

    def around(self, run: Callable[[], Any]) -> tuple[Any, bool]:
        """Run a native call: its result, and whether the native recording took exactly one operation for it."""
        before = self._count()
        if before != self._native:
            self.broken = self.broken or "the graph holds native operations that were not seen being recorded"
        result = run()
        self._native = self._count()
        if self._native - before > 1:
            self.broken = self.broken or "one call recorded several native operations"
        return result, self._native - before == 1

    def finish(self) -> None:
        """The capture ends (or pauses): nothing may have been recorded behind our back."""
        if self._count() != self._native:
            self.broken = self.broken or "the graph holds native operations that were not seen being recorded"

    @property
    def touched(self) -> dict[Memory, None]:
        """Every memory that a launch of the graph may read or write."""
        return {memory: None for operation in self.operations for memory in operation.touched}

    @property
    def records_tape(self) -> bool:
        """Whether a tape is opened or runs backward in it."""
        return any(isinstance(operation, TapeMark | BackwardBegin) for operation in self.operations)

    def launch(self, log: Log) -> list[BackwardBegin]:
        """Enter one launch into the log; returns the backward calls in it."""
        return _Launch(self, log).run()


class _Launch:
    """One launch of a graph: copies of its operations, with entries and backward calls of their own."""

    def __init__(self, template: Template, log: Log) -> None:
        self._template = template
        self._log = log
        self._operations = set(template.operations)
        self._entries: dict[int, Entry] = {}
        self._begins: list[BackwardBegin] = []
        self._begun: set[int] = set()

    def run(self) -> list[BackwardBegin]:
        for operation in self._template.operations:
            clone = copy.copy(operation)
            clone.index, clone.graph = self._log.next_index, self._template.number
            if isinstance(clone, KernelCall | NativeCall) and clone.entry is not None:
                clone.entry = self._entry(clone.entry)
                clone.entry.forward = clone
            if clone.step is not None:
                clone.step = self._entry(clone.step)
            if isinstance(clone, TapeMark):
                self._mark(clone)
            if clone.inside is not None and self._begins:
                clone.inside = self._begins[-1].number
            if isinstance(clone, BackwardBegin):
                self._begin(clone)
            elif isinstance(clone, BackwardEnd) and self._begins:
                clone.number = self._begins[-1].number
                self._begins[-1].end = clone
            elif isinstance(clone, KernelCall) and not clone.adjoint:
                self._log.launches += 1
                self._log.taped += clone.entry is not None
            self._log.add(clone)
        return self._begins

    def _mark(self, clone: TapeMark) -> None:
        if clone.what == "entered":
            clone.tape.entered.append(clone.index + 1)
        if clone.what in ("created", "entered"):
            clone.begins_anew = clone.tape.number not in self._begun
            self._begun.add(clone.tape.number)

    def _entry(self, entry: Entry) -> Entry:
        """This launch's copy of an entry that the tape took while a graph was captured.

        Forward and backward may be two graphs: an entry of the other one stands for its last launch.
        """
        own = self._entries.get(id(entry))
        if own is not None:
            return own
        if isinstance(entry.forward, KernelCall | NativeCall) and entry.forward not in self._operations:
            return self._log.launched.get(id(entry), entry)
        clone = copy.copy(entry)
        clone.recorded_at = self._log.next_index
        self._entries[id(entry)] = self._log.launched[id(entry)] = clone
        return clone

    def _begin(self, clone: BackwardBegin) -> None:
        clone.number = self._log.backward_count
        self._log.backward_count += 1
        clone.entries = tuple(self._entry(entry) if entry is not None else None for entry in clone.entries)
        clone.end = None
        self._log.backwards.append(clone)
        self._begins.append(clone)

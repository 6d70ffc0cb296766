"""Where a recording stands: what is open, where operations go, and what is told beside them."""

from __future__ import annotations

import struct
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from warplint.verify.engine.execution.log import Log
from warplint.verify.engine.execution.memory import CodeStack, Range
from warplint.verify.engine.execution.operations import (
    BackwardBegin,
    Entry,
    Happening,
    HostWrite,
    KernelCall,
    TapeRecord,
)
from warplint.verify.engine.recording.held_arguments import HeldArguments
from warplint.verify.engine.recording.horizon import Horizon
from warplint.verify.engine.recording.memory_watch import MemoryWatch, View, stored_at
from warplint.verify.engine.recording.template import Template
from warplint.verify.engine.recording.user_frames import called_by_user, importing_library, user_stack
from warplint.verify.engine.warp_modules import is_unique, plain
from warplint.verify.engine.warp_values import (
    Layout,
)
from warplint.verify.records import (
    ConfigSeen,
    ModuleCreatedSeen,
    ModuleOptionsSeen,
    OptimiserSeen,
)


class Evaluating(Protocol):
    """What a process that evaluates for the arbiter is told."""

    def operation(self) -> None:
        """An operation is about to run."""

    def ran(self) -> None:
        """It has run."""

    def backward(self, begin: BackwardBegin) -> None:
        """A backward call begins."""


class Recording:
    """The state that the observers of one process share. ``horizon`` decides when enough was seen."""

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

    def _here(self, depth: int = 3) -> tuple[int, CodeStack, int | None, int | None, Entry | None]:
        """The first fields of an operation."""
        return (
            self._out.next_index,
            user_stack(sys._getframe(depth)),
            self._active.number if self._active else None,
            self._inside.number if self._inside else None,
            self._step,
        )

    def _host_wrote(self, dest: Range, views: Sequence[View]) -> None:
        write = HostWrite(*self._here(), dest=dest, contents=dest.read(), how="numpy")
        write.stack = stored_at(write.stack, views)
        self.log.add(write)

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

"""What one run of the user's program gave: records, how it ended, where it was last seen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

from warplint.dataclass import dataclass
from warplint.runner import memory_limit
from warplint.runner.process import MEMORY, Exit
from warplint.runner.protocol import Purpose
from warplint.verify.records import Note, Place, Program

Record = TypeVar("Record")
LAST_WORDS = 4096
"""Characters at the end of the output in which the reason of an end is looked for."""


@dataclass(frozen=True)
class RunResult:
    """The answer of one child.

    ``program`` is None when the child left without a ``Program`` record (a crash, a kill, no Warp). ``last_place`` is
    the user's innermost frame at a crash or at the time limit, None where nothing is known of it. ``output_tail`` is
    the end of the program's own output, standard error included.
    """

    command: str
    purpose: Purpose
    interpreter: str
    records: tuple[object, ...]
    program: Program | None
    exit: Exit
    output_tail: str = ""
    last_place: Place | None = None
    memory: int | None = None
    """The limit on its memory, in bytes."""
    children: tuple[RunResult, ...] = ()
    """The answers of processes that the program started."""

    def of(self, kind: type[Record]) -> tuple[Record, ...]:
        """The records of one class, in order."""
        return tuple(record for record in self.records if isinstance(record, kind))

    @property
    def problem(self) -> str | None:
        """Why this program could not be judged to its end, in one line; None when it could."""
        for note in self.of(Note):
            if note.topic.startswith("no-"):
                cure = "" if note.topic == "no-builds" else f" ({_OTHER_INTERPRETER})"
                return f"{self.interpreter} cannot verify this program: {note.text}{cure}"
        if self._wanted_memory:
            return f"ran into its memory limit of {self._memory}{self._said}{self._where} (--memory-limit sets it)"
        if self.exit.limit is not None:
            return f"ran into the {self.exit.limit} after {self.exit.seconds:.1f} s{self._where}"
        if self.exit.signal is not None:
            return f"{self.exit.text}{self._where}{self._overwritten}"
        if self.program is None:
            return f"ended without an answer ({self.exit.text}){self._last_line}"
        return _explain(self.program) if self.program.stopped not in _PLANNED else None

    @property
    def _wanted_memory(self) -> bool:
        """Whether it was ended for its memory, or ended since it was refused more."""
        if self.memory is None or self.exit.limit is not None:
            return self.exit.limit == MEMORY
        if self.exit.signal is not None:
            return memory_limit.is_shortage(self.output_tail[-LAST_WORDS:])
        program = self.program
        if program is None:
            return self.exit.status != 0 and memory_limit.is_shortage(self.output_tail[-LAST_WORDS:])
        return program.stopped == "raised" and memory_limit.is_shortage(program.reason)

    @property
    def _memory(self) -> str:
        return memory_limit.shown(self.memory) if self.memory is not None else "what it may take"

    @property
    def _said(self) -> str:
        """What the program said when it was refused memory."""
        reason = self.program.reason if self.program is not None else ""
        return f": {reason}" if memory_limit.is_shortage(reason) else ""

    @property
    def _where(self) -> str:
        if self.last_place is None:
            return ""
        path, line, function = self.last_place
        return f", last seen in {function} ({path}:{line})"

    @property
    def _overwritten(self) -> str:
        """What the C library said when it found its own notes between the arrays overwritten."""
        said = _HEAP.search(self.output_tail)
        return f": {said[0]}{_OUT_OF_BOUNDS}" if said is not None else ""

    @property
    def _last_line(self) -> str:
        lines = self.output_tail.strip().splitlines()
        return f": {lines[-1].strip()[:200]}" if lines else ""


_PLANNED = frozenset({"end", "horizon", "memory budget"})
"""Ends of a run that are no problem in themselves."""
_HEAP = re.compile(
    r"^(?:(?:free|munmap_chunk|\w*alloc\w*)\(\): |double free or corruption|corrupted (?:size|double)).*$", re.MULTILINE
)
"""What glibc writes before it aborts (``malloc_printerr`` in its malloc.c)."""
_OUT_OF_BOUNDS = " (memory was written outside of an array; wp.config.mode = 'debug' checks the bounds)"
_OTHER_INTERPRETER = "name the one that has: --python, or [tool.warplint.verify] python in pyproject.toml"
_MISSING_DEVICE = re.compile(r"cuda|gpu|invalid device|no device|device identifier", re.IGNORECASE)


def _explain(program: Program) -> str:
    reason = f": {program.reason}" if program.reason else ""
    if program.stopped == "raised" and _MISSING_DEVICE.search(program.reason) and "cuda" in program.reason.lower():
        return f"needs a device that is not here{reason} (--device cpu redirects it)"
    return f"{program.stopped}{reason}"


_FRAME = re.compile(r'^\s*File "(?P<path>.+)", line (?P<line>\d+)(?: in (?P<function>.+))?$')
_LIBRARY = ("/warp/_src/", "/warp/context.py", "/lib/python", "<frozen", "<string>")


def last_place(report: str, own_folder: str) -> Place | None:
    """The user's innermost frame in the last stack that ``faulthandler`` left in ``report``; None without one.

    A frame is the user's unless it lies in the folder of warplint, in Warp's library or in the standard library; when
    all do, the innermost that is not warplint's is better than none.
    """
    stack = _last_stack(report)
    outside = [place for place in stack if not place[0].startswith(own_folder)]
    mine = [place for place in outside if not any(part in place[0] for part in _LIBRARY)]
    return next(iter([*mine, *outside]), None)


def _last_stack(report: str) -> Sequence[Place]:
    """Places of the last block of ``File …`` lines, innermost first."""
    stacks: list[list[Place]] = [[]]
    for line in report.splitlines():
        if match := _FRAME.match(line):
            stacks[-1].append((match["path"], int(match["line"]), match["function"] or "<module>"))
        elif stacks[-1]:
            stacks.append([])
    return next((stack for stack in reversed(stacks) if stack), [])

"""What the child process writes, one JSON object a line, and the parent reads back: events and measurements.

The child knows nothing of findings: it records the program, asks all the questions of the gradient's theory, and
writes what it saw. This module is imported on both sides, so it uses the standard library alone.

Places are ``[path, line, function]``; a stack is a list of places, outermost first. Memories are numbered by
allocation: an address that is handed out again is a new memory.
"""

from __future__ import annotations

import dataclasses
import enum
import json
from dataclasses import dataclass, field
from typing import Any

PROTOCOL = 1

Place = tuple[str, int, str]


class GradientStatus(str, enum.Enum):
    """The judgement of one leaf in one group of backward calls."""

    PASS = "pass"
    FAIL = "fail"
    FLAT = "flat"
    INCONCLUSIVE = "inconclusive"


class Repair(str, enum.Enum):
    """The what-if experiments of the replay."""

    MEMORY = "M"
    """Perfect memory: each entry's inputs are restored to their bytes at forward time before its adjoint runs."""
    GRADIENT = "G"
    """Arrays without a gradient on the path get one."""
    RETAIN = "R"
    """`retain_grad` off: every store consumes the destination's adjoint."""
    CHAIN = "C"
    """The adjoints of the group's tapes are chained backwards through time, across tapes."""
    FRESH = "F"
    """Gradients start from zero: what the program consumed held something of before."""
    ONCE = "O"
    """Recorded operations that repeat an earlier one (re-entered tape, launch doubled) run their adjoint once."""


@dataclass(frozen=True)
class Direction:
    """One directional derivative: AD from the consumed gradient, FD central (and one-sided), step, error estimate."""

    kind: str
    ad: float
    fd: float
    error: float
    step: float
    forward: float | None = None
    backward: float | None = None
    status: GradientStatus = GradientStatus.INCONCLUSIVE
    reason: str = ""


@dataclass(frozen=True)
class Culprit:
    """What a successful repair points to: the memory, the launch that read it, the write that destroyed it.

    ``memory`` is the number of the allocation; ``allocated`` its place. ``reader``/``writer`` are stacks of the
    operations, ``reader_kernel``/``writer_kernel`` their kernels' names. For G the memory lacks a gradient; for C the
    tapes' places stand in ``tapes``; for O the second launch is ``writer``.
    """

    repair: Repair
    memory: int | None = None
    allocated: tuple[Place, ...] = ()
    reader: tuple[Place, ...] = ()
    reader_kernel: str = ""
    writer: tuple[Place, ...] = ()
    writer_kernel: str = ""
    tapes: tuple[tuple[Place, ...], ...] = ()
    alone: bool = True
    """The repair restricted to this culprit changes the gradient (leave-one-in)."""
    effect: float | None = None
    """How much of the error (0..1) this culprit alone accounts for."""


@dataclass(frozen=True)
class Gradient:
    """The judgement of one leaf: what the program consumed against finite differences, and why they differ."""

    leaf: str
    memory: int
    allocated: tuple[Place, ...]
    backward: tuple[tuple[Place, ...], ...]
    group: int
    status: GradientStatus
    reason: str
    ad: float
    fd: float
    relative_error: float | None
    directions: tuple[Direction, ...] = ()
    signature: str = ""
    repaired_by: tuple[Repair, ...] = ()
    """The smallest set of repairs under which FD agrees; empty when none does."""
    culprits: tuple[Culprit, ...] = ()
    consumed_at: tuple[Place, ...] = ()


@dataclass(frozen=True)
class KernelCheck:
    """The adjoint of one launch alone, on restored memory, a random cotangent against FD of that one operation."""

    kernel: str
    defined: Place
    launched: tuple[Place, ...]
    status: GradientStatus
    reason: str
    ad: float
    fd: float
    argument: str = ""
    """The kernel parameter whose adjoint parted from FD."""


@dataclass(frozen=True)
class Program:
    """One line per process: what was run and what became of it."""

    command: str
    seconds: float
    backward_calls: int
    launches: int
    taped_launches: int
    warp: str
    stopped: str
    """``horizon`` (enough was seen), ``end`` (it ran out), ``exit N``, ``raised``, ``time limit``, ``killed`` …"""
    reason: str = ""


@dataclass(frozen=True)
class ModuleLoad:
    """One load of a Warp module for one device: built by the compiler, or taken from the kernel cache.

    ``options`` are those in effect for this build (resolved; by name). ``kernels`` are ``[path, line, name]`` of each
    kernel's ``def``. ``internal``: a module of Warp's own library (``map_add``, ``warp.utils`` …), left out of counts.
    ``cache`` is the kernel cache folder in use. ``at`` is the user's call that needed the module.
    """

    module: str
    hash: str
    device: str
    compiled: bool
    milliseconds: float
    kernels: tuple[Place, ...] = ()
    internal: bool = False
    unique: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    cache: str = ""
    at: tuple[Place, ...] = ()


@dataclass(frozen=True)
class Note:
    """Something that was not done as the program asked, or that the reader must know: said, never silent.

    ``topic``: ``cache`` (a kernel cache was not cleared), ``device`` (requests were redirected), ``unsupported`` …
    """

    topic: str
    text: str
    at: tuple[Place, ...] = ()


def to_json(record: Any) -> str:
    """One line: the record's class name under ``record``, its fields beside it."""
    return json.dumps({"record": type(record).__name__, **_plain(dataclasses.asdict(record))}, allow_nan=True)


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    return value

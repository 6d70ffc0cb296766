"""What the child process writes, one JSON object a line, and the parent reads back: events and measurements.

The child knows nothing of findings: it records the program, asks all the questions of the gradient's theory, and
writes what it saw. This module is imported on both sides, so it uses the standard library alone.

Places are ``[path, line, function]``; a stack is a list of places, outermost first. Memories are numbered by
allocation: an address that is handed out again is a new memory.
"""

from __future__ import annotations

import enum
from dataclasses import field
from typing import Any

from warplint.dataclass import dataclass
from warplint.proof import Draw, Repair
from warplint.verify.build_records import CacheClearedSeen as CacheClearedSeen
from warplint.verify.build_records import ConfigSeen as ConfigSeen
from warplint.verify.build_records import KernelContent as KernelContent
from warplint.verify.build_records import LaunchKind as LaunchKind
from warplint.verify.build_records import ModuleLoad as ModuleLoad
from warplint.verify.build_records import ModuleOptionsSeen as ModuleOptionsSeen
from warplint.verify.build_records import Note as Note
from warplint.verify.build_records import Place as Place
from warplint.verify.build_records import ProcessStarted as ProcessStarted
from warplint.verify.build_records import Workload as Workload
from warplint.verify.build_records import to_json as to_json
from warplint.verify.signatures import Signature as Signature
from warplint.verify.signatures import SignatureKind as SignatureKind


class GradientStatus(str, enum.Enum):
    """The judgement of one leaf in one group of backward calls."""

    PASS = "pass"
    FAIL = "fail"
    FLAT = "flat"
    INCONCLUSIVE = "inconclusive"


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
    evaluations: int = 0
    """How often the objective was evaluated for it."""


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
class Repetition:
    """What it takes to measure a gradient again without the engine, by running the program from the start.

    ``array``: how many arrays with a gradient were made at the leaf's place before it. ``backward``: how many backward
    calls come before the one that counts. ``entered``: the leaf is moved when so many tapes were entered before; None:
    as soon as it is made. ``move``: index and amount of each number of the leaf that moves, ``step`` times.
    """

    array: int
    backward: int
    entered: int | None
    move: tuple[tuple[int, float], ...]
    step: float


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
    signature: Signature | None = None
    """The class of what is wrong, where the figures name one."""
    repaired_by: tuple[Repair, ...] = ()
    """The smallest set of repairs under which FD agrees; empty when none does."""
    culprits: tuple[Culprit, ...] = ()
    consumed_at: tuple[Place, ...] = ()
    also_repaired_by: tuple[tuple[Repair, ...], ...] = ()
    """Other sets of the same size under which FD agrees as well."""
    method: str = "replay"
    """``replay`` of the recorded operations, or ``fork``: the user's own Python ran again (host data in the loop)."""
    repetition: Repetition | None = None
    window: int = 0
    """The part of the run that it lies in, where that was judged in parts; groups are counted in each."""

    @property
    def is_unexplained(self) -> bool:
        """Whether it is wrong, and no repair with a place to it shows by what."""
        return self.status is GradientStatus.FAIL and not (self.repaired_by and self.culprits)


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
    """The kernel parameter whose adjoint is judged."""
    draw: Draw | None = None
    """Inputs made for this check alone, of a kind that not every claim is about; None: the program's, or ordinary."""


@dataclass(frozen=True)
class AdjointCheck:
    """An adjoint of the user's own, checked alone: that of a function, or a function that a tape recorded.

    ``defined`` is the ``def`` of the adjoint, ``forward`` that of the function, None for a recorded one. ``kernels``
    are those that come to it and whose own check failed. ``everywhere``: so on every draw of the inputs, or on the
    program's own.
    """

    function: str
    defined: Place
    status: GradientStatus
    reason: str
    ad: float
    fd: float
    argument: str
    forward: Place | None = None
    kernels: tuple[Place, ...] = ()
    everywhere: bool = True


@dataclass(frozen=True)
class UnconvergedLoop:
    """A loop on a tape that had not come to its fixed point: run on, its answer moves, and the gradient with it.

    ``launched`` is the first launch of a round, ``rounds`` how many the program made, ``further`` how many more it
    took to settle; ``moved``: by how much of itself the answer moved. ``ad``: the derivative along one direction as the
    program has it (right for what it computes), ``fd``: that of the answer.
    """

    launched: tuple[Place, ...]
    kernel: str
    rounds: int
    further: int
    moved: float
    leaf: str
    allocated: tuple[Place, ...]
    ad: float
    fd: float


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
    seen: str = ""
    """At the horizon: how much was seen, in words (``2 iterations``)."""
    more: str = ""
    """The option that would have it see more."""


@dataclass(frozen=True)
class ChildSeen:
    """A process that the program started, in the answer of that process; ``how``: ``fork`` or ``spawn``.

    It is sent when the process computes its first gradient: one that does not is no program of its own. ``at`` is where
    the program started it, as far as the process knows.
    """

    process: int
    how: str
    at: tuple[Place, ...] = ()


@dataclass(frozen=True)
class Unread:
    """A memory that is updated from a gradient, and that no recorded operation reads afterwards: the update is lost.

    ``writer`` is the update (an optimiser's step, a launch that takes a gradient). An optimiser that was handed a copy
    of the parameters looks like this: the parameters' gradient is right, and nothing learns.
    """

    memory: int
    allocated: tuple[Place, ...]
    writer: tuple[Place, ...]
    writer_kernel: str = ""
    reason: str = ""
    times: int = 1
    """The backward calls since the first update, in front of which nothing has read it."""


@dataclass(frozen=True)
class Stagnant:
    """A leaf that the host wrote anew, to the bit as it was, although its gradient was not zero when the host saw it.

    Between the two the gradient was cleared: a view of it (``numpy()`` on the CPU) shows zeros by then.
    """

    memory: int
    allocated: tuple[Place, ...]
    seen: tuple[Place, ...]
    cleared: tuple[Place, ...]
    written: tuple[Place, ...]
    largest: float
    """The largest magnitude in the gradient when it was seen."""


@dataclass(frozen=True)
class SparedView:
    """A leaf that comes out another when the program is run again and a clearing of its gradient is undone.

    ``seen`` is where the program took a view of the gradient, ``cleared`` where that was cleared under it, ``moved`` by
    how much the leaf differs at the next backward call: the program uses the view after it was cleared.
    """

    memory: int
    allocated: tuple[Place, ...]
    seen: tuple[Place, ...]
    cleared: tuple[Place, ...]
    largest: float
    moved: float


@dataclass(frozen=True)
class ConsumedReading:
    """The gradient of an intermediate array, read (``seen``) when the backward pass had consumed it.

    ``consumed_by`` is the recorded operation whose adjoint took it, ``largest`` the largest magnitude it held before.
    """

    memory: int
    allocated: tuple[Place, ...]
    seen: tuple[Place, ...]
    consumed_by: tuple[Place, ...]
    largest: float


# ------------------------------------------------------------------------------------------------------------------
# What happened, in order: the raw material of ``trace/events.py``. Bounded in number (the first two iterations);
# ``seq`` numbers them in one sequence, ``stack`` holds the user's frames, outermost first.


@dataclass(frozen=True)
class Region:
    """The bytes ``[start, stop)`` of a memory that a handle covers. ``gradient``: it is the gradient of another memory.

    ``handle`` tells the ``wp.array`` objects of one process apart where one is known (views and aliases share a memory
    but not a handle). ``grad`` is the memory of the handle's own gradient, None where it has none; ``retain`` its
    ``retain_grad``.
    """

    memory: int
    start: int
    stop: int
    gradient: bool = False
    grad: int | None = None
    retain: bool = False
    handle: int | None = None
    pointer: bool = False
    """The handle has no gradient although the memory has one: another array was made at its address (``ptr=``)."""


@dataclass(frozen=True)
class Bound:
    """What a launch passed for one parameter, or for one field of a struct parameter (``path`` = ``state.q``)."""

    path: str
    region: Region | None = None
    dtype: str = ""
    shape: tuple[int, ...] = ()
    value: Any = None
    """A scalar's value; a list for vectors and matrices."""
    held: tuple[tuple[int, Any], ...] = ()
    """The places of the program's own lists and structs from which the tape takes it again, outermost first: the
    number of the list or struct, the item or field."""


@dataclass(frozen=True)
class KernelSeen:
    """A kernel of the process; ``number`` is what launches call it by.

    ``defined`` is the ``def`` line, ``decorator`` the first decorator's. ``key`` tells kernels of different content
    apart (source and captured values). ``captured`` are the free variables and globals that the body uses as
    constants, by name, where they are plain values. ``declared`` is the stack of the decorator's call.
    """

    number: int
    name: str
    defined: Place
    decorator: Place
    module: str
    key: str
    unique: bool
    generic: bool
    enable_backward: bool | None
    max_unroll: int
    options: dict[str, Any] = field(default_factory=dict)
    captured: dict[str, Any] = field(default_factory=dict)
    declared: tuple[Place, ...] = ()
    seq: int = 0


@dataclass(frozen=True)
class MemorySeen:
    """One allocation (or memory of the host's that a ``wp.array`` wraps: ``foreign``), as it was at the trace's end.

    ``made_by`` is the Warp function that the user's code called (``zeros``, ``array``, ``zeros_like``, ``clone``,
    ``empty``, ``full`` …). ``gradient_of`` is the memory whose gradient this is. ``dtype``, ``shape`` are those of the
    first handle. ``copied_from`` is the memory whose contents a constructor copied (``wp.array(other)``, ``clone``).
    """

    memory: int
    allocated: tuple[Place, ...]
    made_by: str
    size: int
    requires_grad: bool | None = None
    retain_grad: bool = False
    dtype: str = ""
    shape: tuple[int, ...] = ()
    gradient_of: int | None = None
    foreign: bool = False
    copied_from: int | None = None
    seq: int = 0


@dataclass(frozen=True)
class LaunchSeen:
    """A kernel ran (or its adjoint). ``tape`` is the tape that recorded it; ``active`` the one that was open.

    ``graph`` is the number of the captured graph that it ran in; the stack is then that of the capture.
    """

    seq: int
    stack: tuple[Place, ...]
    kernel: int
    bindings: tuple[Bound, ...]
    dim: tuple[int, ...]
    adjoint: bool = False
    tape: int | None = None
    active: int | None = None
    graph: int | None = None


@dataclass(frozen=True)
class CopySeen:
    """``wp.copy``, ``assign(warp array)``, ``clone``: memory to memory. ``how`` is the outermost Warp call."""

    seq: int
    stack: tuple[Place, ...]
    source: Region
    dest: Region
    how: str
    tape: int | None = None
    active: int | None = None


@dataclass(frozen=True)
class HostWriteSeen:
    """A write that no tape records. ``how``: ``zero_``, ``fill_``, ``assign``, ``array`` (constructor), ``numpy`` (a
    store through a zero-copy view, noticed when the memory was touched next), ``native`` (a utility of Warp's)."""

    seq: int
    stack: tuple[Place, ...]
    dest: Region
    how: str
    active: int | None = None


@dataclass(frozen=True)
class HostReadSeen:
    """Contents came to the host: ``numpy``, ``list``, ``array_interface``, ``dlpack`` …; also of gradients."""

    seq: int
    stack: tuple[Place, ...]
    region: Region
    how: str
    active: int | None = None


@dataclass(frozen=True)
class EmptiedView:
    """A gradient was cleared (``stack``) under a numpy view of it that the program had taken before and still held.

    ``read`` is where the view was taken, ``allocated`` the place of the array whose gradient it is, ``largest`` the
    largest magnitude that the view showed when it was taken; since the clearing it shows zeros.
    """

    seq: int
    stack: tuple[Place, ...]
    read: tuple[Place, ...]
    allocated: tuple[Place, ...]
    largest: float
    gradient: int = -1
    """The memory of the gradient."""


@dataclass(frozen=True)
class TapeSeen:
    """``what``: ``created``, ``entered``, ``left``, ``zeroed``, ``reset``, ``recorded`` (the user's ``record_func``).

    ``entries`` is the number of recorded operations on the tape then.
    """

    seq: int
    stack: tuple[Place, ...]
    tape: int
    what: str
    entries: int = 0


@dataclass(frozen=True)
class BackwardSeen:
    """``tape.backward`` begins; the adjoint launches follow. ``stop_seq`` is the number of the event after it."""

    seq: int
    stack: tuple[Place, ...]
    tape: int
    loss: Region | None = None
    seeds: tuple[Region, ...] = ()
    entries: int = 0
    stop_seq: int | None = None
    seeded: bool = True
    """Whether a loss or seeds were given, or some gradient of the tape's arrays was not zero."""


@dataclass(frozen=True)
class OptimiserSeen:
    """``warp.optim`` took a step: the parameters it writes, the gradients it was given, where each is a Warp array."""

    seq: int
    stack: tuple[Place, ...]
    params: tuple[Region, ...]
    gradients: tuple[Region, ...] = ()
    how: str = ""


@dataclass(frozen=True)
class ReboundSeen:
    """An item of a list, or a field of a struct, that a recorded launch was given holds something else from now on.

    ``values`` by path below it. A list is compared when it is given again and when a backward begins, which is then
    the place; ``given`` is the launch that it was given to before.
    """

    seq: int
    stack: tuple[Place, ...]
    holder: int
    key: Any
    values: tuple[Bound, ...] = ()
    given: tuple[Place, ...] = ()


@dataclass(frozen=True)
class ModuleCreatedSeen:
    """A Warp module came into being (its first decorator ran): creation-time options are copied now."""

    seq: int
    stack: tuple[Place, ...]
    module: str
    unique: bool = False


@dataclass(frozen=True)
class ModuleLoadedSeen:
    """The place in the sequence of a :class:`ModuleLoad` (which has the options); ``compiled``: built, not cached."""

    seq: int
    stack: tuple[Place, ...]
    module: str
    compiled: bool
    milliseconds: float
    block_dim: int | None = None


@dataclass(frozen=True)
class OpaqueSeen:
    """Something that the record does not explain: a graph that could not be mirrored, a foreign call."""

    seq: int
    stack: tuple[Place, ...]
    why: str
    regions: tuple[Region, ...] = ()


@dataclass(frozen=True)
class TraceEnd:
    """The events end here. ``cut``: more happened than was written (``limit``), so absence proves nothing."""

    seq: int
    cut: bool
    reason: str = ""

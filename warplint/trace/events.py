"""The one vocabulary of events. The interpreter makes them from source, the recorder's log is turned into them.

A rule is written once, over a :class:`Trace`, and serves both sources. Everything here is frozen data; what follows
from the order of events (which read an adjoint needs, what overwrote it, what reaches the loss) is computed in
``trace/dataflow.py``.

What a source cannot know is ``None`` (or ``Extent.UNKNOWN``) and stays unknown: no rule may warn on it.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from warplint.dataclass import dataclass
from warplint.finding import Source, Span

if TYPE_CHECKING:
    from warplint.trace.flow.enclosing import Enclosing


@dataclass(frozen=True)
class Frame:
    """One level of the call stack: the place of the call (or of the event itself) in a function of the user's."""

    span: Span
    function: str = "<module>"


Stack = tuple[Frame, ...]
"""Outermost frame first; the last frame is where the event happens. Frames inside Warp's library are left out."""


@dataclass(frozen=True)
class Extent:
    """The part of a memory that a handle covers: ``[start, stop)`` in units that one memory uses throughout.

    The interpreter counts rows, the recorder bytes. ``start is None``: all of it; ``known`` false: nobody knows.
    """

    start: int | None = None
    stop: int | None = None
    known: bool = True

    def overlaps(self, other: Extent) -> bool | None:
        """True, False, or None where it cannot be told."""
        if not (self.known and other.known):
            return None
        if self.start is None or other.start is None or self.stop is None or other.stop is None:
            return True
        return self.start < other.stop and other.start < self.stop

    def covers(self, other: Extent) -> bool | None:
        """Whether writing all of this extent leaves nothing of the other one."""
        if not (self.known and other.known):
            return None
        if self.start is None or self.stop is None:
            return True
        if other.start is None or other.stop is None:
            return None
        return self.start <= other.start and other.stop <= self.stop


WHOLE = Extent()
UNKNOWN_EXTENT = Extent(known=False)


@dataclass(frozen=True)
class Memory:
    """One allocation. ``made_by`` is the call that made it: ``zeros``, ``array``, ``zeros_like``, ``clone``, ``numpy``.

    ``requires_grad`` and ``retain_grad`` are the values at the end of the trace (a flag set later, but before backward,
    counts: measured), ``None`` where unknown. ``name`` is the user's own text for it, as well as it is known.
    """

    id: int
    allocated: Stack
    made_by: str
    requires_grad: bool | None
    retain_grad: bool = False
    dtype: str | None = None
    shape: tuple[int | None, ...] | None = None
    name: str = ""
    contents: tuple[float, ...] | None = None
    copied_from: int | None = None
    outside: bool = False
    """Made by code outside the project (a foreign tensor, an unknown call): its life is not in this trace."""

    @property
    def holds_integers(self) -> bool:
        """Whether it is known to be an array of integers, or of vectors of them."""
        return self.dtype is not None and _INTEGERS.search(self.dtype) is not None

    @property
    def span(self) -> Span | None:
        """Where it was allocated, in the user's code."""
        return self.allocated[-1].span if self.allocated else None


_INTEGERS = re.compile(r"int|bool|(vec|mat)\d+u?[bsil]")


class Alias(str, enum.Enum):
    """How a handle came to share another's memory."""

    NONE = "none"
    VIEW = "view"
    POINTER = "pointer"
    NUMPY = "numpy"


@dataclass(frozen=True)
class Array:
    """A handle: a memory and the part of it that is meant. ``gradient``: it is the memory's gradient, not its data.

    ``moved`` is the event number, and the place, of the last assignment that put this existing array (or the object
    holding it) under another name in a loop or on a tape: the swap, the rotation, ``states[0] = states[-1]``.
    """

    memory: int
    extent: Extent = WHOLE
    gradient: bool = False
    alias: Alias = Alias.NONE
    requires_grad: bool | None = None
    name: str = ""
    moved: Moved | None = None


@dataclass(frozen=True)
class Moved:
    """An existing array came under another name: when, where, and by what.

    ``how``: ``swap``, ``rotate``, ``index`` (a ring), ``slot`` (``s[0] = s[-1]``: one place of a container takes what
    another one holds), else ``rebind``.
    """

    seq: int
    stack: Stack
    how: str = "rebind"


@dataclass(frozen=True)
class Kernel:
    """A kernel as declared. ``span`` is the ``def`` line's, ``decorator`` the ``@wp.kernel`` line's.

    ``key`` tells kernels with different content apart: source and captured values. ``max_unroll`` and
    ``enable_backward`` are those in effect for it (decorator, else module options at its creation).
    """

    name: str
    span: Span
    decorator: Span
    module: str
    key: str
    unique: bool = False
    enable_backward: bool | None = True
    max_unroll: int | None = 16
    generic: bool = False
    module_options: Mapping[str, object] | None = field(default=None, hash=False)
    has_own_options: bool = False
    """The decorator gives options to the kernel's module (``module_options=``), which only a unique one takes."""
    captures: bool = False
    """The body uses values of an enclosing function or class: what makes a factory's kernels differ."""
    stable: bool | None = None
    """Declared exactly once, with fixed content, in any run (module level, or a class body). None: in a function, whose
    calls decide."""
    has_fault_trigger: bool | None = None
    """Its own text has a statement that could be a fault by itself; false spares an analysis that finds none."""
    followed: frozenset[str] = frozenset()
    """Asks for a summary in which these scalar parameters or fields of structs are reads too, by their paths."""


@dataclass(frozen=True)
class Slot:
    """One place of an object that is the program's own: an item of a list, a field of a struct.

    ``holder`` is the object's number in the trace, ``name`` the user's text for it.
    """

    holder: int
    key: int | str
    name: str = field(default="", compare=False)


@dataclass(frozen=True)
class Binding:
    """What a launch passes for one parameter, or for one array field of a struct parameter (``path`` = ``state.q``)."""

    path: str
    array: Array | None = None
    value: object = None
    """A scalar's value where known."""
    from_host: frozenset[int] = frozenset()
    """Memories whose ``.numpy()``/``.list()`` contents went into a scalar."""
    held: tuple[Slot, ...] = ()
    """The places, outermost first, from which a recorded launch took it and from which its adjoint takes it again: the
    tape keeps the list of arguments, and each struct in it, by reference."""


@dataclass(frozen=True)
class Event:
    """What every event has: its number in the trace (rising, with gaps) and the call stack."""

    seq: int
    stack: Stack

    @property
    def span(self) -> Span:
        """The innermost user frame."""
        return self.stack[-1].span


BLOCK = 256
"""Threads of a block where a launch says nothing."""


@dataclass(frozen=True)
class Launch(Event):
    """A kernel launch; also ``wp.launch_tiled``, ``Launch.launch``, and the launches behind ``wp.map`` and operators.

    ``tape`` is the tape that recorded it, None where none did. ``active_tape`` is the tape that was open, so that
    ``record_tape=False`` can be told from "outside". ``kernel`` None: the kernel could not be resolved; a rule that
    needs completeness must then be silent. ``complete`` false: some array argument is unknown. ``stood_in``: those that
    are unknown were given or made by code outside the project, and a memory made by ``argument`` stands for each: what
    is the same value is the same array, but another one may be the same too.
    """

    kernel: Kernel | None
    bindings: tuple[Binding, ...]
    tape: int | None
    active_tape: int | None = None
    adjoint: bool = False
    complete: bool = True
    stood_in: bool = False
    dim: tuple[int | None, ...] | None = None
    block_dim: int | None = BLOCK
    """Threads of a block on CUDA, or on the CPU with ``enable_cpu_blocks``; None where unknown."""
    device: str | None = None
    """The device that the call names, as it names it."""


@dataclass(frozen=True)
class Copy(Event):
    """``wp.copy``, ``array.assign(warp array)``, ``wp.clone``: recorded only when both sides have a gradient."""

    source: Array
    dest: Array
    tape: int | None
    active_tape: int | None = None
    how: str = "copy"


@dataclass(frozen=True)
class Rebound(Event):
    """A place of a list or struct that a recorded launch was given holds something else from now on.

    ``values``: what it holds, by path below it: ``""`` for an array or a number, ``.q`` for the fields of a struct.
    """

    slot: Slot
    values: tuple[Binding, ...] = ()


@dataclass(frozen=True)
class HostWrite(Event):
    """A write that no tape records: ``zero_``, ``fill_``, ``assign(numpy)``, a store through a numpy view."""

    dest: Array
    how: str
    active_tape: int | None = None
    from_host: frozenset[int] = frozenset()


@dataclass(frozen=True)
class HostRead(Event):
    """``.numpy()``, ``.list()``, ``float(...)``: contents come to the host."""

    array: Array
    how: str = "numpy"
    active_tape: int | None = None


@dataclass(frozen=True)
class GradRead(Event):
    """A gradient is used: read to the host, handed to an optimiser, to a launch or to code outside.

    ``taken``: it is used through a numpy view of its memory, which was taken at this place.
    """

    array: Array
    how: str = "numpy"
    taken: Stack = ()


@dataclass(frozen=True)
class GradWrite(Event):
    """A gradient is set or cleared by the user (``x.grad.zero_()``, ``x.grad.fill_(1)``, ``x.grad = …``)."""

    array: Array
    clears: bool
    value: float | None = None
    """The one number that all of it is set to, where that is known."""


@dataclass(frozen=True)
class Reduction(Event):
    """The host makes one number of an array's contents: ``how`` is ``mean`` or ``sum``, ``line`` the text there."""

    array: Array
    how: str
    line: str = ""


@dataclass(frozen=True)
class TapeCreated(Event):
    """``wp.Tape()``."""

    tape: int


@dataclass(frozen=True)
class TapeEntered(Event):
    """``with tape:``; the recording goes on after what the tape already holds."""

    tape: int


@dataclass(frozen=True)
class TapeLeft(Event):
    """The end of the ``with`` block."""

    tape: int


@dataclass(frozen=True)
class Backward(Event):
    """``tape.backward(loss=, grads=)``. ``loss`` None and ``seeds`` empty: seeded by hand, or not at all."""

    tape: int
    loss: Array | None = None
    seeds: tuple[Array, ...] = ()
    weights: tuple[float | None, ...] = ()
    """For each of ``seeds`` the one number that the whole of its seed holds, None where that is not known."""
    complete: bool = True
    """False: there is a loss or a seed, but nobody knows which array it is."""


@dataclass(frozen=True)
class TapeZeroed(Event):
    """``tape.zero()``: clears the gradients of every array that the tape knows."""

    tape: int


@dataclass(frozen=True)
class TapeReset(Event):
    """``tape.reset()``: zeroes, and forgets the recording."""

    tape: int


@dataclass(frozen=True)
class OptimiserStep(Event):
    """``warp.optim`` or a launch that takes ``x.grad`` and writes ``x``: the end of an iteration."""

    params: tuple[Array, ...] = ()


@dataclass(frozen=True)
class ConfigSet(Event):
    """``wp.config.option = value``. ``value`` None where unknown; ``varying``: another one in each process.

    ``guarded``: it stands under a condition, so that it may be a switch of the program's; None where unknown.
    """

    option: str
    value: object = None
    varying: bool = False
    guarded: bool | None = None


@dataclass(frozen=True)
class ModuleOptionsSet(Event):
    """``wp.set_module_options``, or a write into ``get_module(n).options`` (``direct``)."""

    module: str
    options: Mapping[str, object]
    direct: bool = False
    changes: frozenset[str] | None = None
    """The options among these whose value in effect differs from what it was; None where unknown."""
    own_file: bool = False
    """The module is that of the file which the call stands in, named by nothing."""
    holds_kernels: bool | None = None
    """Whether the file's text has kernels or functions that could live in the module; None where unknown."""


@dataclass(frozen=True)
class ModuleCreated(Event):
    """The first decorator of a module: creation-time options are copied now."""

    module: str


@dataclass(frozen=True)
class KernelDeclared(Event):
    """A kernel's decorator ran.

    ``varying``: ``wp.static`` expressions, which go into the kernel's hash, that give another value in each process.
    """

    kernel: Kernel
    varying: tuple[Span, ...] = ()


@dataclass(frozen=True)
class Varying:
    """A value that the hash of a kernel has, by its key, and that differs from process to process.

    ``named_as``: the parameter or loop variable of the kernel whose name it has; ``""`` where the kernel reads it.
    """

    kernel: str
    made: Span
    named_as: str = ""


@dataclass(frozen=True)
class ModuleLoaded(Event):
    """A launch (or ``wp.load_module``) needed the module. ``compiled`` None where unknown (interpreted)."""

    module: str
    compiled: bool | None = None
    block_dim: int | None = None
    milliseconds: float | None = None
    again: bool | None = None
    """The module was loaded before with other content or options, so that this is one build more; None: unknown."""
    added: frozenset[str] = frozenset()
    """The content that no earlier load had: keys of kernels, ``key<types>`` for instances of generic ones."""
    changed_options: frozenset[str] = frozenset()
    """The options that the load before had at another value."""
    varying: tuple[Varying, ...] = ()
    device: str | None = None
    started: float | None = None
    """Seconds on a clock of the run's own."""
    link_milliseconds: float | None = None
    """Part of ``milliseconds``: link-time artifacts of tile operations that had to be made."""


@dataclass(frozen=True)
class LoadsAsked(Event):
    """``wp.force_load`` or ``wp.load_module``, before the loads that it brings about."""

    modules: tuple[str, ...] | None = None
    """The modules by name; None where unknown."""
    everything: bool = False
    """No module is named: all that were imported are loaded, the library's own among them."""
    workers: int | None = None
    """Threads that load at the same time, 0 or 1: none; None where unknown."""
    on_cpu: bool | None = None
    """Whether the CPU is among the devices; None where unknown."""


@dataclass(frozen=True)
class CacheCleared(Event):
    """``wp.clear_kernel_cache()``, or the folder of the cache is removed; ``guarded`` as for :class:`ConfigSet`."""

    guarded: bool | None = None


@dataclass(frozen=True)
class Opaque(Event):
    """Something happened that this trace does not explain (a captured graph was launched, a foreign call)."""

    why: str
    arrays: tuple[Array, ...] = ()


@dataclass(frozen=True)
class Interlude(Event):
    """From here on nobody knows what gradients hold.

    An object was made and a method of it is called next, so that what a program does in between is not in this trace;
    a graph was captured, which records what is launched and runs nothing of it; or rounds of a loop were left out of
    which the last may do something else than those before.
    """


@dataclass(frozen=True)
class Unknown:
    """Why something was given up, for ``--statistics`` and for the person who improves the interpreter."""

    span: Span
    text: str
    why: str


@dataclass(frozen=True)
class RefutedAdjoint:
    """An adjoint of the user's own that a run has refuted by finite differences, alone, for one argument.

    ``span`` is the adjoint's ``def``, ``forward`` that of the function (None: a function that a tape recorded).
    ``kernels`` are those that come to it and whose own adjoint parts from finite differences. ``everywhere``: so for
    each kind of inputs that was tried, or for the program's own.
    """

    function: str
    span: Span
    forward: Span | None
    argument: str
    ad: float
    fd: float
    kernels: tuple[Span, ...]
    everywhere: bool


@dataclass(frozen=True)
class UnconvergedSolver:
    """A loop on a tape that a run has seen to stop before its answer: run on, the answer and the gradient move.

    ``launch`` is the first launch of a round, ``rounds`` how many the program makes, ``further`` how many more it takes
    to settle, ``moved`` by how much of itself the answer moves. ``ad`` is the derivative for ``leaf`` along one
    direction as the program has it, ``settled`` that of the answer.
    """

    launch: Stack
    kernel: str
    rounds: int
    further: int
    moved: float
    leaf: str
    allocation: Stack
    ad: float
    settled: float


@dataclass(frozen=True)
class EmptiedReading:
    """A view of a gradient that a run has seen to be used after the gradient was cleared under it.

    ``read`` is where the view was taken, ``cleared`` where it was emptied, ``largest`` the largest magnitude it showed.
    """

    memory: int
    read: Stack
    cleared: Stack
    largest: float


@dataclass(frozen=True)
class Trace:
    """The events of one possible run of one program, in order.

    ``cut`` true: the budget of steps ran out; rules that rest on the absence of an event must be silent. ``path`` is
    the program's entry file.
    """

    path: str
    source: Source
    events: tuple[Event, ...]
    memories: Mapping[int, Memory]
    cut: bool = False
    unknowns: tuple[Unknown, ...] = field(default=(), compare=False)
    warp: tuple[int, int] = (1, 19)
    """The Warp version that the rules speak of (static: settings; recorded: the one that ran)."""
    forward_only: bool = False
    """A whole program is in sight, and nothing in its text could run an adjoint or says whether adjoints are built."""
    warp_import: Span | None = None
    """The entry file's first import of Warp."""
    enclosing: Enclosing | None = field(default=None, compare=False, repr=False)
    """Knows the loops around a place; None: nobody does."""
    names_cuda: bool = False
    """The program's own files name a CUDA device; of a run: it loaded modules for one."""
    is_program: bool = False
    """The run begins with the entry file's first statement, and not in one of its functions."""
    refuted: tuple[RefutedAdjoint, ...] = ()
    """Of a run: what was measured of the user's own adjoints."""
    unconverged: tuple[UnconvergedSolver, ...] = ()
    """Of a run: loops that were run on."""
    emptied: tuple[EmptiedReading, ...] = ()
    """Of a run: views of gradients that were used when they were empty."""
    unread: frozenset[int] = frozenset()
    """Of a run that was stopped: memories that were updated again and again, and that nothing has read."""

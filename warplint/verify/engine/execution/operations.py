"""What a log is made of: native operations that can be run again, and marks between them.

An operation keeps what it needs to run (copied parameters, bytes that came from the host), never what the memory held:
states are rebuilt from checkpoints by running operations again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from warplint.dataclass import dataclass
from warplint.verify.engine.execution.memory import Bytes, CodeStack, Memory, Range
from warplint.verify.engine.warp_values import Layout, Packed, Scalars


@dataclass(eq=False)
class Operation:
    """One element of the log. ``graph`` is the number of the captured graph that it ran in.

    ``index`` is its number in the log; ``stack`` the user's frames; ``active`` the tape that was open; ``inside`` the
    number of the backward call that it ran in, ``step`` the tape entry whose adjoint it belongs to.
    """

    index: int
    stack: CodeStack
    active: int | None
    inside: int | None
    step: Entry | None

    graph: int | None = field(default=None, init=False)

    def run(self) -> None:
        """Do it again on the memory as it is; a mark does nothing."""

    @property
    def touched(self) -> tuple[Memory, ...]:
        """Every memory that it may read or write by address."""
        return ()


@dataclass(eq=False)
class KernelCall(Operation):
    """A kernel ran on the CPU. ``entry`` is the tape entry that it became, None where no tape took it."""

    kernel: Any
    hooks: Any
    params: list[Any]
    adjoint: bool
    blocks: bool
    layout: Layout
    memories: tuple[Memory, ...]
    unknown: bool = False
    """Some array argument points to memory that nobody knows."""
    entry: Entry | None = None
    _packed: Packed | None = field(default=None, repr=False)
    views: dict[str, Any] = field(default_factory=dict, repr=False)
    """Views of its array parameters, by path: they never change, and are asked for again and again."""

    def run(self) -> None:
        """Call the kernel's machine code with the recorded parameters."""
        if self._packed is None:
            self._packed = Packed(self.kernel, self.hooks, self.params, self.adjoint)
        self._packed()

    @property
    def touched(self) -> tuple[Memory, ...]:
        """The memories of its array parameters (and, for an adjoint, of the adjoint parameters)."""
        return self.memories

    @property
    def name(self) -> str:
        """The kernel's name as the user wrote it."""
        return str(self.kernel.key).rsplit(".", 1)[-1]


@dataclass(eq=False)
class NativeCall(Operation):
    """A memory operation or a native utility; ``exact``: ``reads`` and ``writes`` are known to the byte."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    reads: tuple[Range, ...]
    writes: tuple[Range, ...]
    exact: bool
    how: str = ""
    entry: Entry | None = None

    def run(self) -> None:
        """Call the native function with the recorded arguments."""
        self.function(*self.args)

    @property
    def touched(self) -> tuple[Memory, ...]:
        """The memories that it reads or writes."""
        return tuple({r.memory: None for r in (*self.reads, *self.writes)})


@dataclass(eq=False)
class HostWrite(Operation):
    """Bytes that came from the host: an upload, or a store through a numpy view that was noticed afterwards."""

    dest: Range
    contents: Bytes
    how: str

    def run(self) -> None:
        """Put the same bytes there."""
        self.dest.memory.write(self.contents, self.dest.start)

    @property
    def touched(self) -> tuple[Memory, ...]:
        """The memory that is written."""
        return (self.dest.memory,)


@dataclass(eq=False)
class HostRead(Operation):
    """The host looked at memory."""

    source: Range
    how: str


@dataclass(eq=False)
class TapeMark(Operation):
    """``created``, ``entered``, ``left``, ``zero``, ``zeroed``, ``reset``, ``wasreset``."""

    what: str
    tape: TapeRecord
    begins_anew: bool = False
    """A graph is launched again: what it records on the tape is a recording of its own, no more of the one before."""


@dataclass(eq=False)
class BackwardBegin(Operation):
    """``tape.backward`` begins: what it was given, and the entries that the tape held then, in order."""

    number: int
    tape: TapeRecord
    loss: Range | None
    loss_kind: Any
    loss_bytes: Bytes | None
    seeds: tuple[tuple[Any, Any, Scalars], ...]
    """Of ``grads=``: descriptors (``array_t``) of each array and of its seed, and what their elements are."""
    entries: tuple[Entry | None, ...]
    end: BackwardEnd | None = None
    seeded: bool = True
    """Whether a loss or seeds were given, or some gradient of the tape's arrays was not zero."""

    def loss_is_as_recorded(self) -> bool:
        """Whether memory holds, bit for bit, the loss that the program had here."""
        return self.loss is None or self.loss_bytes is None or self.loss.read().tobytes() == self.loss_bytes.tobytes()


@dataclass(eq=False)
class BackwardEnd(Operation):
    """``tape.backward`` is through; ``complete`` false: it raised, or its adjoints could not be told apart."""

    number: int
    complete: bool = True


@dataclass(eq=False)
class Happening(Operation):
    """Anything else that is only told: a record without ``seq`` and ``stack``, to be made when it is sent.

    ``make`` None only takes a number (of a kernel's declaration, which is told with the kernel).
    """

    make: Callable[..., Any] | None
    fields: dict[str, Any]


@dataclass(eq=False)
class Entry:
    """One entry of a tape: the recorded launch, copy or function, and the operation that it was recorded for."""

    tape: TapeRecord
    position: int
    what: str
    """``launch``, ``copy`` or ``function``."""
    thing: Any
    """The tape's own object, by which the entry is found again (``tape.launches[k] is thing``)."""
    forward: KernelCall | NativeCall | None
    enabled: bool = True
    """Whether backward runs an adjoint for it."""
    copy: Any = None
    """For a copy: :class:`~warplint.verify.engine.warp_hooks.CopyEntry`."""
    device: str = "cpu"
    given: tuple[Any, ...] = ()
    """For a launch: :class:`~warplint.verify.engine.recording.held_arguments.Given`, an argument each."""
    recorded_at: int = 0
    """The number of the operation that came next when the tape took it."""

    @property
    def time(self) -> int:
        """Where it stands among the operations."""
        return self.forward.index if self.forward is not None else self.recorded_at


@dataclass(eq=False)
class TapeRecord:
    """A tape of the user's and what it has recorded."""

    number: int
    tape: Any
    stack: CodeStack
    entries: list[Entry] = field(default_factory=list)
    entered: list[int] = field(default_factory=list)
    """The operation numbers of its ``with``."""
    entered_at: list[CodeStack] = field(default_factory=list)
    """The places of its ``with``."""
    by_identity: dict[int, Entry] = field(default_factory=dict)

    def add(self, entry: Entry) -> None:
        """One more entry."""
        self.entries.append(entry)
        self.by_identity[id(entry.thing)] = entry

    def now(self, launches: Sequence[Any]) -> tuple[Entry | None, ...]:
        """What the tape holds at this moment, entry by entry; None for one that nobody saw being made."""
        found: list[Entry | None] = []
        for thing in launches:
            entry = self.by_identity.get(id(thing))
            found.append(entry if entry is not None and entry.thing is thing else None)
        return tuple(found)

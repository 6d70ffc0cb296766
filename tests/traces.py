"""Traces made by hand, event by event, for the tests of what follows from them.

Line numbers are given to each event, so that a test can say where a finding must stand.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from warplint.finding import Source, Span
from warplint.kernels.summary import KernelFault, KernelSummary, Need, Read, Store, StoreKind
from warplint.trace.dataflow import Dataflow
from warplint.trace.events import (
    Array,
    Backward,
    Binding,
    ConfigSet,
    Copy,
    Event,
    Frame,
    GradRead,
    GradWrite,
    HostWrite,
    Kernel,
    KernelDeclared,
    Launch,
    Memory,
    ModuleCreated,
    ModuleLoaded,
    Moved,
    TapeCreated,
    TapeEntered,
    TapeLeft,
    TapeReset,
    TapeZeroed,
    Trace,
)

PATH = "program.py"


def at(line: int, path: str = PATH) -> Span:
    return Span(path, line)


def store(
    path: str,
    active: Iterable[str] = (),
    needs: dict[str, Iterable[str]] | None = None,
    *,
    index: str = "i",
    kind: StoreKind = StoreKind.STORE,
    order: int = 2,
    line: int = 3,
    covers: bool | None = True,
    depends: Iterable[str] = (),
) -> Store:
    """``needs``: what the adjoint reads, each with the paths through which gradient must flow."""
    return Store(
        path,
        index,
        kind,
        order,
        at(line),
        frozenset(active),
        frozenset(active) | frozenset(depends),
        tuple(
            Need(Read(read, index, 1, at(line)), frozenset(given), f"{read}[{index}]", at(line))
            for read, given in (needs or {}).items()
        ),
        covers_array=covers if kind is StoreKind.STORE else None,
    )


@dataclass
class Program:
    """The trace of a made-up program, written down in order."""

    warp: tuple[int, int] = (1, 19)
    cut: bool = False
    events: list[Event] = field(default_factory=list)
    memories: dict[int, Memory] = field(default_factory=dict)
    summaries: dict[str, KernelSummary] = field(default_factory=dict)
    tapes: int = 0
    open: int | None = None

    @property
    def seq(self) -> int:
        return len(self.events)

    def stack(self, line: int) -> tuple[Frame, ...]:
        return (Frame(at(line)),)

    def add(self, event: Event) -> Event:
        self.events.append(event)
        return event

    def array(
        self, name: str, line: int = 10, *, grad: bool | None = True, retain: bool = False, size: int = 8
    ) -> Array:
        number = len(self.memories) + 1
        self.memories[number] = Memory(number, self.stack(line), "zeros", grad, retain, "float32", (size,), name)
        return Array(number, name=name)

    def kernel(
        self,
        name: str,
        *stores: Store,
        reads: Iterable[str] = (),
        faults: Iterable[KernelFault] = (),
        enable_backward: bool | None = True,
        **options: object,
    ) -> Kernel:
        touched = {path for one in stores for path in one.depends} | set(reads)
        self.summaries[name] = KernelSummary(
            name,
            at(2),
            (),
            tuple(Read(path, "i", 1, at(2)) for path in sorted(touched)),
            stores,
            tuple(faults),
            read_paths=frozenset(touched),
            written_paths=frozenset(one.path for one in stores),
        )
        kernel = Kernel(name, at(2), at(1), "program", name, enable_backward=enable_backward)
        return replace(kernel, **options)  # type: ignore[arg-type]

    def launch(
        self,
        kernel: Kernel | None,
        line: int,
        *,
        recorded: bool = True,
        stack: tuple[Frame, ...] | None = None,
        **bindings: Array | float | None,
    ) -> Launch:
        bound = tuple(
            Binding(
                path.replace("__", "."),
                array=value if isinstance(value, Array) else None,
                value=None if isinstance(value, Array) else value,
            )
            for path, value in bindings.items()
        )
        event = Launch(
            self.seq,
            stack or self.stack(line),
            kernel,
            bound,
            self.open if recorded else None,
            active_tape=self.open,
            dim=(8,),
        )
        self.add(event)
        return event

    def copy(self, dest: Array, source: Array, line: int) -> None:
        self.add(Copy(self.seq, self.stack(line), source, dest, self.open, active_tape=self.open))

    def fill(self, dest: Array, line: int, how: str = "zero_") -> None:
        self.add(HostWrite(self.seq, self.stack(line), dest, how, active_tape=self.open))

    def tape(self, line: int) -> int:
        self.tapes += 1
        self.add(TapeCreated(self.seq, self.stack(line), self.tapes))
        return self.tapes

    def enter(self, tape: int, line: int) -> None:
        self.add(TapeEntered(self.seq, self.stack(line), tape))
        self.open = tape

    def leave(self, line: int) -> None:
        assert self.open is not None
        self.add(TapeLeft(self.seq, self.stack(line), self.open))
        self.open = None

    def backward(self, tape: int, loss: Array, line: int) -> None:
        self.add(Backward(self.seq, self.stack(line), tape, loss))

    def zero(self, tape: int, line: int) -> None:
        self.add(TapeZeroed(self.seq, self.stack(line), tape))

    def reset(self, tape: int, line: int) -> None:
        self.add(TapeReset(self.seq, self.stack(line), tape))

    def read_gradient(self, array: Array, line: int) -> None:
        self.add(GradRead(self.seq, self.stack(line), replace(array, gradient=True)))

    def clear_gradient(self, array: Array, line: int) -> None:
        self.add(GradWrite(self.seq, self.stack(line), replace(array, gradient=True), clears=True))

    def configure(self, option: str, value: object, line: int) -> None:
        self.add(ConfigSet(self.seq, self.stack(line), option, value))

    def declare(self, kernel: Kernel, line: int) -> None:
        if not any(isinstance(e, ModuleCreated) and e.module == kernel.module for e in self.events):
            self.add(ModuleCreated(self.seq, self.stack(line), kernel.module))
        self.add(KernelDeclared(self.seq, self.stack(line), kernel))

    def load(self, module: str, line: int) -> None:
        self.add(ModuleLoaded(self.seq, self.stack(line), module))

    def moved(self, array: Array, line: int) -> Array:
        """The handle after a swap at this point of the program."""
        return replace(array, moved=Moved(self.seq, self.stack(line), "swap"))

    def trace(self) -> Trace:
        return Trace(PATH, Source.STATIC, tuple(self.events), dict(self.memories), self.cut, warp=self.warp)

    def dataflow(self) -> Dataflow:
        return Dataflow(self.trace(), lambda kernel: self.summaries.get(kernel.name))

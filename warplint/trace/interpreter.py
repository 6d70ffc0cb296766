"""The abstract interpreter: runs a file's host code over symbolic arrays, without importing it.

One feasible path at a time, and no joins: a root runs once with every unknown condition true and, if there was one that
matters, once with it false. Every trace is that of a program that could run.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial

from warplint.dataclass import dataclass
from warplint.finding import Source
from warplint.project import Module, Project
from warplint.source import Unreadable
from warplint.trace import events
from warplint.trace.events import Trace
from warplint.trace.flow.enclosing import Enclosing
from warplint.trace.forward_only import import_of_warp, is_forward_only
from warplint.trace.host.attributes import get_attribute, set_attribute
from warplint.trace.host.calls import call_value, run_generator
from warplint.trace.host.checkpoint import Checkpoint
from warplint.trace.host.expressions import EVALUATORS
from warplint.trace.host.imports import import_module, run_top_level
from warplint.trace.host.kernel_scope import kernel_source, summarise_kernel
from warplint.trace.host.library.builtins import BUILTINS
from warplint.trace.host.loops import iterate
from warplint.trace.host.machine import BudgetExceeded, Caches, Frame, Machine, Parts, Raised
from warplint.trace.host.roots import Root, opens_tape, start, taped_functions
from warplint.trace.host.statements import EXECUTORS
from warplint.trace.host.values import ModuleValue, Value
from warplint.trace.interpretation import Interpretation
from warplint.trace.miniature import small_numbers
from warplint.trace.screen import Interest, interest, is_beside, names_cuda
from warplint.trace.settings import DEFAULT, TraceSettings

PARTS = Parts(
    evaluators=EVALUATORS,
    executors=EXECUTORS,
    call=call_value,
    get_attribute=get_attribute,
    set_attribute=set_attribute,
    iterate=iterate,
    run_generator=run_generator,
    import_module=import_module,
    builtins=BUILTINS,
    summarise=summarise_kernel,
)


def interpret(path: str, project: Project, settings: TraceSettings = DEFAULT) -> tuple[Interpretation, ...]:
    """The traces of a file: as a program, and of each function of it that opens a tape and is not reached from there.

    Raises :class:`Unreadable` where the file itself cannot be read.
    """
    module = project.module(path)
    found = interest(project, module)
    if found is Interest.NOTHING:
        return ()
    session = _Session(project, module, settings, found)
    session.run_program()
    session.run_functions(taped_functions(module))
    return tuple(session.interpretations)


_ROOTS = 1.5
"""All roots of a file together take as many steps as so many may take alone."""


@dataclass(frozen=True)
class _Base:
    """A run that has gone through a file's top level as it is imported, and the state to start its functions from."""

    machine: Machine
    checkpoint: Checkpoint
    decided: bool
    """No condition of the top level was unknown: it is the same on either path."""


class _Session:
    """The runs over one file; they share its steps."""

    def __init__(self, project: Project, module: Module, settings: TraceSettings, found: Interest) -> None:
        self._project = project
        self._module = module
        self._follows_tapes = found is Interest.TAPES
        self._settings = settings if self._follows_tapes else settings.brief()
        caches = project.memo.get(("trace", "caches"))
        if not isinstance(caches, Caches):
            caches = project.memo["trace", "caches"] = Caches()
        self._caches: Caches = caches
        self._bases: dict[bool, _Base] = {}
        self._entered: set[ast.AST] = set()
        self._spent = 0
        self.interpretations: list[Interpretation] = []

    def run_program(self) -> None:
        """The file as ``__main__``, along one path or two."""
        for polarity in (True, False):
            machine = self._machine(self._settings, polarity)
            cut = self._guarded(partial(self._top_level, machine, "__main__"))
            self._conclude(machine, cut, 0, is_program=True)
            if cut and (parts := self._in_small(machine)) is not None:
                machine = self._machine(self._settings, polarity, parts)
                cut = self._guarded(partial(self._top_level, machine, "__main__"))
                self._conclude(machine, cut, 0)
            if cut or not self._worth_another_path(machine):
                return

    def run_functions(self, roots: Sequence[Root]) -> None:
        """Each function that nothing has entered yet, from the state that an import of the file leaves."""
        for root in roots:
            if root.node not in self._entered and not self._is_late():
                self._run_function(root)

    def _run_function(self, root: Root) -> None:
        for polarity in (True, False):
            machine, cut = self._start(root, self._base(polarity), polarity)
            if cut and (parts := self._in_small(machine)) is not None:
                machine, cut = self._start(root, self._new_base(polarity, parts), polarity)
            if cut or not self._worth_another_path(machine):
                return

    def _start(self, root: Root, base: _Base, polarity: bool) -> tuple[Machine, bool]:
        """One run of a root, and whether the budget ended it."""
        machine = base.machine
        base.checkpoint.restore()
        machine.polarity, machine.undecided, machine.undecided_in = polarity, False, set()
        begun = machine.steps
        allowed = self._settings if opens_tape(root.node) else self._settings.for_functions()
        machine.limit = begun + allowed.steps_before_tape
        machine.frames = [Frame(machine.modules[self._module].environment, "<module>", root.node)]
        cut = self._guarded(partial(start, machine, root))
        self._conclude(machine, cut, begun)
        return machine, cut

    def _base(self, polarity: bool) -> _Base:
        if not polarity and True in self._bases and self._bases[True].decided:
            return self._bases[True]
        if polarity not in self._bases:
            self._bases[polarity] = self._new_base(polarity, PARTS)
        return self._bases[polarity]

    def _new_base(self, polarity: bool, parts: Parts) -> _Base:
        machine = self._machine(self._settings.for_functions(), polarity, parts)
        self._guarded(partial(self._top_level, machine, self._module.name))
        return _Base(machine, Checkpoint(machine), not machine.undecided)

    def _machine(self, settings: TraceSettings, polarity: bool, parts: Parts = PARTS) -> Machine:
        machine = Machine(self._project, settings, parts, self._caches, polarity)
        if parts is PARTS and self._follows_tapes:
            machine.can_shorten = lambda count: bool(self._small_numbers(machine, {count}))
        return machine

    def _small_numbers(self, machine: Machine, counts: Set[ast.expr]) -> Mapping[ast.Constant, int]:
        trees = [module.tree for module in machine.modules if is_beside(module, self._module)]
        return small_numbers(trees, counts)

    def _in_small(self, machine: Machine) -> Parts | None:
        """The interpreter for the same program with fewer rounds of its long loops; None where that is no other one."""
        if not self._follows_tapes or not machine.long_loops:
            return None
        numbers = self._small_numbers(machine, machine.long_loops)
        if not numbers:
            return None

        def constant(machine: Machine, frame: Frame, node: ast.Constant) -> Value:
            return numbers.get(node, node.value)

        return dataclasses.replace(PARTS, evaluators={**EVALUATORS, ast.Constant: constant})

    def _worth_another_path(self, machine: Machine) -> bool:
        """Whether a second path could show more, and the first one left enough of the budget.

        After a run that was not short, only an unknown condition in the file itself is worth it.
        """
        if not machine.undecided or not _matters(machine) or self._is_late():
            return False
        own = self._module in machine.undecided_in
        return machine.steps < self._settings.steps_before_tape * 2 // (5 if own else 20)

    def _is_late(self) -> bool:
        return self._spent > _ROOTS * self._settings.steps

    def _top_level(self, machine: Machine, name: str) -> None:
        value = machine.modules[self._module] = ModuleValue(self._module, name, started=True)
        run_top_level(machine, value)

    def _guarded(self, run: Callable[[], None]) -> bool:
        """Whether the budget ended the run."""
        try:
            run()
        except (BudgetExceeded, RecursionError):
            return True
        except Raised:
            return False
        return False

    def _conclude(self, machine: Machine, cut: bool, begun: int, *, is_program: bool = False) -> None:
        """Keep the trace of a run whose steps were counted from ``begun`` on."""
        self._entered |= machine.entered
        self._spent += machine.steps - begun
        trace = Trace(
            path=self._module.path,
            source=Source.STATIC,
            events=machine.log.finished(),
            memories={number: memory.snapshot() for number, memory in machine.memories.items()},
            cut=cut,
            unknowns=tuple(machine.unknowns),
            warp=self._settings.warp,
            forward_only=is_program and _only_launches(machine) and is_forward_only(self._project, self._module),
            warp_import=import_of_warp(self._module),
            names_cuda=any(
                names_cuda(self._project, module) for module in machine.modules if is_beside(module, self._module)
            ),
            is_program=is_program,
            enclosing=Enclosing(self._project),
        )
        source_of = partial(kernel_source, machine)
        self.interpretations.append(Interpretation(trace, machine.summary_of, _statistics(machine, trace), source_of))


def _only_launches(machine: Machine) -> bool:
    """Whether kernels ran in sight, and no tape was made."""
    return machine.launches > 0 and not machine.tapes


def _matters(machine: Machine) -> bool:
    """Whether another path could show more: something was taped, or options were set."""
    return bool(machine.tapes) or bool(machine.config) or machine.backwards > 0


def _statistics(machine: Machine, trace: Trace) -> dict[str, float]:
    launches = [event for event in trace.events if isinstance(event, events.Launch)]
    taped = [event for event in launches if event.active_tape is not None]
    return {
        "steps": machine.steps,
        "launches": len(launches),
        "taped_launches": len(taped),
        "complete_taped_launches": sum(event.complete for event in taped),
        "unknowns": len(trace.unknowns),
        "cut": int(trace.cut),
    }


__all__ = ["Interpretation", "Unreadable", "interpret"]

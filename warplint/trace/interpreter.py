"""The abstract interpreter: runs a file's host code over symbolic arrays, without importing it.

One feasible path at a time, and no joins: a root runs once with every unknown condition true and, if there was one that
matters, once with it false. Every trace is that of a program that could run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from warplint.finding import Source
from warplint.project import Module, Project
from warplint.source import Unreadable
from warplint.trace import events
from warplint.trace.attributes import get_attribute, set_attribute
from warplint.trace.calls import call_value, run_generator
from warplint.trace.dataflow import SummaryOf
from warplint.trace.events import Trace
from warplint.trace.expressions import EVALUATORS
from warplint.trace.imports import import_module, run_top_level
from warplint.trace.library.builtins import BUILTINS
from warplint.trace.loops import iterate
from warplint.trace.machine import BudgetExceeded, Caches, Frame, Machine, Parts, Raised
from warplint.trace.roots import Root, start, taped_functions
from warplint.trace.scopes import summarise_kernel
from warplint.trace.screen import worth_interpreting
from warplint.trace.settings import DEFAULT, TraceSettings
from warplint.trace.statements import EXECUTORS
from warplint.trace.values import ModuleValue

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


@dataclass(frozen=True)
class Interpretation:
    """One trace of a program, the summaries of its kernels, and figures for ``--statistics``."""

    trace: Trace
    summary_of: SummaryOf
    statistics: Mapping[str, float] = field(default_factory=dict)


def interpret(path: str, project: Project, settings: TraceSettings = DEFAULT) -> tuple[Interpretation, ...]:
    """The traces of a file: as a program, and of each function of it that opens a tape and is not reached from there.

    Raises :class:`Unreadable` where the file itself cannot be read.
    """
    module = project.module(path)
    if not worth_interpreting(project, module):
        return ()
    tree = module.tree
    session = _Session(project, module, settings)
    session.run(None)
    for root in taped_functions(tree):
        if root.node not in session.entered:
            session.run(root)
    return tuple(session.interpretations)


class _Session:
    """The runs over one file; they share its time."""

    def __init__(self, project: Project, module: Module, settings: TraceSettings) -> None:
        self._project = project
        self._module = module
        self._settings = settings
        self._deadline = time.monotonic() + settings.seconds
        caches = project.memo.get(("trace", "caches"))
        if not isinstance(caches, Caches):
            caches = project.memo["trace", "caches"] = Caches()
        self._caches: Caches = caches
        self.interpretations: list[Interpretation] = []
        self.entered: set[object] = set()

    def run(self, root: Root | None) -> None:
        """One root, along one path or two."""
        if time.monotonic() > self._deadline:
            return
        machine, cut = self._run_path(root, polarity=True)
        if machine.undecided and not cut and _matters(machine):
            self._run_path(root, polarity=False)

    def _run_path(self, root: Root | None, polarity: bool) -> tuple[Machine, bool]:
        began = time.monotonic()
        machine = Machine(self._project, self._settings, PARTS, self._caches, polarity, self._deadline)
        name = "__main__" if root is None else self._module.name
        value = machine.modules[self._module] = ModuleValue(self._module, name, started=True)
        cut = False
        try:
            run_top_level(machine, value)
            if root is not None:
                machine.frames = [Frame(value.environment, "<module>", root.node)]
                start(machine, root)
        except (BudgetExceeded, RecursionError):
            cut = True
        except Raised:
            pass
        self.entered |= machine.entered
        trace = Trace(
            path=self._module.path,
            source=Source.STATIC,
            events=machine.log.finished(),
            memories={number: memory.snapshot() for number, memory in machine.memories.items()},
            cut=cut,
            unknowns=tuple(machine.unknowns),
            warp=self._settings.warp,
        )
        statistics = _statistics(machine, trace, time.monotonic() - began)
        self.interpretations.append(Interpretation(trace, machine.summary_of, statistics))
        return machine, cut


def _matters(machine: Machine) -> bool:
    """Whether another path could show more: something was taped, or options were set."""
    return bool(machine.tapes) or bool(machine.config) or machine.backwards > 0


def _statistics(machine: Machine, trace: Trace, seconds: float) -> dict[str, float]:
    launches = [event for event in trace.events if isinstance(event, events.Launch)]
    taped = [event for event in launches if event.active_tape is not None]
    return {
        "steps": machine.steps,
        "seconds": seconds,
        "launches": len(launches),
        "taped_launches": len(taped),
        "complete_taped_launches": sum(event.complete for event in taped),
        "unknowns": len(trace.unknowns),
        "cut": int(trace.cut),
    }


__all__ = ["Interpretation", "Unreadable", "interpret"]

"""Interprets small programs given as text, for the tests of the interpreter."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from warplint.project import Project
from warplint.source import SourceFile
from warplint.trace import events
from warplint.trace.events import Event, Trace
from warplint.trace.interpreter import Interpretation, interpret
from warplint.trace.settings import DEFAULT, TraceSettings

E = TypeVar("E", bound=Event)

PRELUDE = """
import numpy as np
import warp as wp

@wp.kernel
def step(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    b[i] = wp.sin(a[i])

@wp.kernel
def total(a: wp.array(dtype=float), loss: wp.array(dtype=float)):
    wp.atomic_add(loss, 0, a[wp.tid()])

def make(n=3):
    return wp.zeros(n, dtype=float, requires_grad=True)

"""


def run(text: str, *, prelude: str = PRELUDE, settings: TraceSettings = DEFAULT) -> tuple[Interpretation, ...]:
    """Interpret one program; ``prelude`` gives kernels ``step`` and ``total`` and the allocator ``make``."""
    project = Project(())
    project.add(SourceFile("program.py", (prelude + textwrap.dedent(text)).encode()))
    return interpret("program.py", project, settings)


def trace(text: str, *, prelude: str = PRELUDE, settings: TraceSettings = DEFAULT) -> Trace:
    """The first trace of a program."""
    return run(text, prelude=prelude, settings=settings)[0].trace


def write(folder: Path, files: dict[str, str]) -> Path:
    """Write a small project; files are named by relative path."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return folder


def run_file(folder: Path, name: str) -> tuple[Interpretation, ...]:
    """Interpret one file of a project on the disk."""
    return interpret(str(folder / name), Project.for_paths([folder]))


def of_kind(trace: Trace, kind: type[E]) -> list[E]:
    """The events of one kind, in order."""
    return [event for event in trace.events if isinstance(event, kind)]


def launches(trace: Trace, kernel: str = "step") -> list[events.Launch]:
    """The launches of one kernel."""
    return [
        event for event in of_kind(trace, events.Launch) if event.kernel is not None and event.kernel.name == kernel
    ]


def memories(launch: events.Launch) -> tuple[int, ...]:
    """The memories that a launch is bound to, by parameter."""
    return tuple(binding.array.memory for binding in launch.bindings if binding.array is not None)


def pairs(trace: Trace, kernel: str = "step") -> list[tuple[int, ...]]:
    """What each launch of a kernel was bound to, memories renamed by first appearance."""
    return renamed(memories(launch) for launch in launches(trace, kernel))


def renamed(rows: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Numbers renamed by first appearance: what counts is which are the same."""
    names: dict[int, int] = {}
    return [tuple(names.setdefault(number, len(names)) for number in row) for row in rows]

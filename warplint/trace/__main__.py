"""``python -m warplint.trace PATH…``: prints the events and the unknowns of each trace, to look at by eye."""

from __future__ import annotations

import sys

from warplint.project import Project
from warplint.trace import events
from warplint.trace.events import Array, Binding, Event, Frame, Trace
from warplint.trace.interpreter import interpret


def describe(event: Event) -> str:
    """One line: number, place, kind, and what it is about."""
    fields = []
    for name, value in vars(event).items():
        if name in ("seq", "stack") or (value in (None, (), True) and name not in ("tape",)):
            continue
        fields.append(f"{name}={_short(value)}")
    where = ">".join(_place(frame) for frame in event.stack)
    return f"{event.seq:5} {where:30} {type(event).__name__:16} {' '.join(fields)}"


def _place(frame: Frame) -> str:
    return f"{frame.span.path.rpartition('/')[2].removesuffix('.py')}:{frame.span.line}"


def _short(value: object) -> str:
    if isinstance(value, events.Kernel):
        return f"{value.name}@{value.span.line}[{value.module}]"
    if isinstance(value, Array):
        flag = {True: "+g", False: "-g", None: "?g"}[value.requires_grad]
        extent = (
            "" if value.extent.known and value.extent.start is None else f"[{value.extent.start}:{value.extent.stop}]"
        )
        moved = f" moved@{value.moved.stack[-1].span.line}({value.moved.how})" if value.moved is not None else ""
        return f"{value.name}#{value.memory}{'.grad' if value.gradient else ''}{extent}{flag}{moved}"
    if isinstance(value, Binding):
        if value.array is not None:
            return f"{value.path}={_short(value.array)}"
        return f"{value.path}={value.value!r}" + (f" from {set(value.from_host)}" if value.from_host else "")
    if isinstance(value, tuple):
        return "(" + ", ".join(_short(item) for item in value) + ")"
    return repr(value)


def show(trace: Trace) -> None:
    """Print a trace."""
    for event in trace.events:
        print(describe(event))
    for memory in trace.memories.values():
        place = memory.span
        print(
            f"  #{memory.id} {memory.name} {memory.made_by} grad={memory.requires_grad} shape={memory.shape}"
            f" dtype={memory.dtype} line={place.line if place else None}"
        )
    for unknown in trace.unknowns:
        print(f"  ? {unknown.span.path}:{unknown.span.line}: {unknown.text!r}: {unknown.why}")
    if trace.cut:
        print("  (cut)")


def main(paths: list[str]) -> None:
    """Interpret each file and print its traces."""
    project = Project.for_paths(paths)
    for path in paths:
        for number, interpretation in enumerate(interpret(path, project)):
            print(f"--- {path}, trace {number}: {dict(interpretation.statistics)}")
            show(interpretation.trace)


if __name__ == "__main__":
    main(sys.argv[1:])

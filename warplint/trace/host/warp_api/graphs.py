"""Captured graphs: each launch of one makes happen again what the device was told while it was captured.

Nothing of Python runs then: no list grows, no name is bound anew, and no tape records. A tape that was recorded while
the graph was captured is recorded by each launch of it as if anew, since its launches and its backward run again on
the same arrays (measured on the CPU: the gradients of leaves pile up unless the graph clears them).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from warplint.trace import events
from warplint.trace.events import Event
from warplint.trace.host.machine import Call, Machine
from warplint.trace.host.values import Graph, Record, TapeValue, UnknownValue, Value
from warplint.trace.log import Entry, Mark

_AGAIN = (
    events.Launch,
    events.Copy,
    events.HostWrite,
    events.GradRead,
    events.GradWrite,
    events.OptimiserStep,
    events.TapeCreated,
    events.TapeEntered,
    events.TapeLeft,
    events.Backward,
    events.TapeZeroed,
    events.TapeReset,
    events.Opaque,
)
"""What the device does, and what tells which launches a tape holds."""
_BY_DEVICE = {events.GradRead: frozenset({"launch", "copy"}), events.HostWrite: frozenset({"zero_", "fill_", "assign"})}
"""Of these kinds, what the device does; the rest was done on the host, once."""


def begin(machine: Machine) -> None:
    """From here on a graph is captured."""
    machine.captures.append(machine.log.here())


def end(machine: Machine) -> Graph:
    """The graph that holds what happened since its capture began; nothing of it has run."""
    begun = machine.captures.pop()
    graph = Graph(tuple(filter(_is_again, machine.log.since(begun))))
    machine.emit(events.Interlude)
    return graph


def launch(machine: Machine, graph: Graph) -> None:
    """What the graph holds happens again."""
    replay = _Replay(machine)
    for entry in graph.entries:
        replay.run(entry)


def _is_again(entry: Entry) -> bool:
    if isinstance(entry, Mark):
        return True
    how = _BY_DEVICE.get(type(entry))
    return isinstance(entry, _AGAIN) and (how is None or getattr(entry, "how", "") in how)


class _Replay:
    """One launch of a graph."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._numbers: dict[int, int] = {}
        self._anew: set[TapeValue] = set()

    def run(self, entry: Entry) -> None:
        """Have one entry of the graph happen again."""
        machine = self._machine
        machine.take_step()
        event = machine.log.again(entry, self._numbers, self._on_tapes)
        if isinstance(event, events.Launch):
            machine.count_launch(event.tape is not None)
        elif isinstance(event, events.Backward):
            machine.backwards += 1
            machine.tapes_walked.add(event.tape)
        elif isinstance(event, events.TapeEntered):
            machine.tapes_entered += 1

    def _on_tapes(self, event: Event) -> Event:
        """The event on the tapes as they are now."""
        starts = isinstance(event, (events.TapeCreated, events.TapeEntered))
        tapes = {
            name: self._tape(number, starts)
            for name in ("tape", "active_tape")
            if (number := getattr(event, name, None)) is not None
        }
        return dataclasses.replace(event, **tapes) if tapes else event  # type: ignore[arg-type]

    def _tape(self, number: int, starts: bool) -> int:
        """The number now of the tape that had this one; another one where its recording begins."""
        tapes = self._machine.tapes
        tape = tapes[number]
        if starts and tape not in self._anew:
            self._anew.add(tape)
            tape.id = len(tapes)
            tapes.append(tape)
        return tape.id


def _captured(machine: Machine, call: Call) -> Value:
    """``wp.ScopedCapture(…)``: a context that has its graph once it is left."""
    return Record("capture", {"graph": None})


def _begin(machine: Machine, call: Call) -> Value:
    begin(machine)
    return None


def _end(machine: Machine, call: Call) -> Value:
    return end(machine) if machine.captures else UnknownValue("a captured graph")


def _launch(machine: Machine, call: Call) -> Value:
    graph = call.get(0, "graph")
    if isinstance(graph, Graph):
        launch(machine, graph)
    else:
        machine.emit(events.Opaque, why="a captured graph was launched")
    return None


MODELS: dict[str, Callable[[Machine, Call], Value]] = {
    "warp.ScopedCapture": _captured,
    "warp.capture_begin": _begin,
    "warp.capture_end": _end,
    "warp.capture_launch": _launch,
}

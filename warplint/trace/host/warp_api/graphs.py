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
from warplint.trace.host.warp_api.tapes import clear_former
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
_BY_DEVICE = {
    events.GradRead: frozenset({"launch", "copy", "optimiser"}),
    events.HostWrite: frozenset({"zero_", "fill_", "assign"}),
}
"""Of these kinds, what the device does; the rest was done on the host, once."""


def begin(machine: Machine) -> None:
    """From here on a graph is captured."""
    machine.captures.append((machine.log.here(), frozenset(machine.tapes_walked)))


def end(machine: Machine) -> Graph:
    """The graph that holds what happened since its capture began; nothing of it has run.

    A tape that no backward has gone through knows no gradients yet: clearing it tells the device nothing (measured).
    """
    begun, before = machine.captures.pop()
    walked, entries = set(before), []
    for entry in filter(_is_again, machine.log.since(begun)):
        if isinstance(entry, events.Backward):
            walked.add(entry.tape)
        if not isinstance(entry, (events.TapeZeroed, events.TapeReset)) or entry.tape in walked:
            entries.append(entry)
    machine.emit(events.Interlude)
    return Graph(tuple(entries))


def launch(machine: Machine, graph: Graph) -> None:
    """What the graph holds happens again."""
    replay = _Replay(machine)
    for entry in graph.entries:
        replay.run(entry)
    replay.end()


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
        self._open: list[TapeValue] = []
        """Tapes that were open around the capture: their recordings begin and end with the graph."""

    def run(self, entry: Entry) -> None:
        """Have one entry of the graph happen again."""
        machine = self._machine
        machine.take_step()
        if isinstance(entry, (events.Launch, events.Copy)) and entry.tape is not None:
            self._open_around(machine.tapes[entry.tape])
        event = machine.log.again(entry, self._numbers, self._on_tapes)
        if isinstance(event, events.Launch):
            machine.count_launch(event.tape is not None)
        elif isinstance(event, events.Backward):
            machine.backwards += 1
            machine.tapes_walked.add(event.tape)
        elif isinstance(event, events.TapeEntered):
            machine.tapes_entered += 1
        elif isinstance(event, events.TapeZeroed):
            clear_former(machine, machine.tapes[event.tape])

    def end(self) -> None:
        """The graph is through."""
        for tape in self._open:
            self._machine.emit(events.TapeLeft, tape=tape.id)

    def _open_around(self, tape: TapeValue) -> None:
        """A recorded operation of a tape that was entered before the capture."""
        if tape not in self._anew:
            self._renew(tape)
            self._open.append(tape)
            self._machine.emit(events.TapeEntered, tape=tape.id)

    def _on_tapes(self, event: Event) -> Event:
        """The event on the tapes as they are now; their recordings begin anew where they are made or entered."""
        starts = isinstance(event, (events.TapeCreated, events.TapeEntered))
        tapes: dict[str, int] = {}
        for name in ("tape", "active_tape"):
            number = getattr(event, name, None)
            if number is not None:
                tape = self._machine.tapes[number]
                if starts and tape not in self._anew:
                    self._renew(tape)
                tapes[name] = tape.id
        return dataclasses.replace(event, **tapes) if tapes else event  # type: ignore[arg-type]

    def _renew(self, tape: TapeValue) -> None:
        """The tape's recording is another one from here on."""
        tapes = self._machine.tapes
        self._anew.add(tape)
        tape.former, tape.id = tape.id, len(tapes)
        tapes.append(tape)


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

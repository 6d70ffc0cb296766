"""The growing list of events of one run.

A module imported early may run late (its top level waits until a name of it is needed), yet what it does happened at
the import: :meth:`EventLog.reserve` keeps the place, :meth:`EventLog.filling` fills it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from warplint.trace.events import Array, Binding, Event, Moved, Stack

E = TypeVar("E", bound=Event)


@dataclasses.dataclass(frozen=True)
class _Mark:
    """The place of a :class:`Moved` among the events."""

    seq: int


class EventLog:
    """Events in program order, numbered in it."""

    def __init__(self) -> None:
        self._entries: list[Any] = []
        self._target = self._entries
        self._last = 0
        self._out_of_order = False

    def add(self, kind: type[E], stack: Stack, **fields: Any) -> E:
        """Append an event."""
        self._last += 1
        event = kind(seq=self._last, stack=stack, **fields)
        self._target.append(event)
        return event

    def moved(self, stack: Stack, how: str) -> Moved:
        """A stamp for arrays that came under another name now."""
        self._last += 1
        self._target.append(_Mark(self._last))
        return Moved(self._last, stack, how)

    def reserve(self) -> list[Any]:
        """A place for the events of something that happens here but is worked out later."""
        slot: list[Any] = []
        self._target.append(slot)
        return slot

    @contextmanager
    def filling(self, slot: list[Any]) -> Iterator[None]:
        """Events added inside go to the reserved place."""
        before, self._target = self._target, slot
        self._out_of_order = True
        try:
            yield
        finally:
            self._target = before

    def position(self) -> int:
        """Where the program is now, to come back to with :meth:`return_to`."""
        return len(self._entries)

    def return_to(self, position: int) -> None:
        """Forget what happened since; what reserved places hold stays, as it belongs before."""
        del self._entries[position:]

    def finished(self) -> tuple[Event, ...]:
        """All events, numbered in their order (numbers rise; they need not be consecutive)."""
        flat = list(_flattened(self._entries))
        if not self._out_of_order:
            return tuple(entry for entry in flat if isinstance(entry, Event))
        numbers = {entry.seq: position for position, entry in enumerate(flat, 1)}
        return tuple(_renumbered(entry, numbers) for entry in flat if isinstance(entry, Event))


def _flattened(entries: list[Any]) -> Iterator[Any]:
    for entry in entries:
        if isinstance(entry, list):
            yield from _flattened(entry)
        else:
            yield entry


def _renumbered(value: Any, numbers: Mapping[int, int]) -> Any:
    """The event (or what it holds) with the final numbers."""
    if isinstance(value, (Event, Moved)):
        changes = {"seq": numbers[value.seq]}
        for field in dataclasses.fields(value):
            old = getattr(value, field.name)
            if isinstance(old, (Array, tuple)) and field.name != "stack":
                new = _renumbered(old, numbers)
                if new is not old:
                    changes[field.name] = new
        return dataclasses.replace(value, **changes)  # type: ignore[arg-type]
    if isinstance(value, Array):
        return value if value.moved is None else dataclasses.replace(value, moved=_renumbered(value.moved, numbers))
    if isinstance(value, Binding):
        array = _renumbered(value.array, numbers)
        return value if array is value.array else dataclasses.replace(value, array=array)
    if isinstance(value, tuple):
        items = tuple(_renumbered(item, numbers) for item in value)
        return value if all(new is old for new, old in zip(items, value, strict=False)) else items
    return value

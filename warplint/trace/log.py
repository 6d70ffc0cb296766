"""The growing list of events of one run.

A module imported early may run late (its top level waits until a name of it is needed), yet what it does happened at
the import: :meth:`EventLog.reserve` keeps the place, :meth:`EventLog.filling` fills it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from warplint.trace.events import Array, Binding, Event, Moved, Stack

E = TypeVar("E", bound=Event)


@dataclasses.dataclass(frozen=True)
class Mark:
    """The place of a :class:`Moved` among the events."""

    seq: int


Entry = Event | Mark


class Slot:
    """A place among the events, with numbers kept free for what will fill it."""

    def __init__(self, first: int, count: int) -> None:
        self.entries: list[Any] = []
        self.last = first
        self.end = first + count


Place = tuple[Slot, int]
"""A place in the log: how many entries a slot had."""


_OVERFLOW = 1 << 60
"""Numbers above stand for an order that is only known at the end."""

_FREE_NUMBERS = 1 << 40
"""Kept free for one import; for imports inside it a tenth, and so on: enough for imports nested ten deep."""


class EventLog:
    """Events in program order, numbered in it."""

    def __init__(self) -> None:
        self._root = Slot(0, _OVERFLOW)
        self._target = self._root
        self._overflow = 0
        self.count = 0
        """How much has happened so far, wherever it stands."""

    def add(self, kind: type[E], stack: Stack, **fields: Any) -> E:
        """Append an event."""
        event = kind(seq=self._next(), stack=stack, **fields)
        self._target.entries.append(event)
        return event

    def moved(self, stack: Stack, how: str) -> Moved:
        """A stamp for arrays that came under another name now."""
        number = self._next()
        self._target.entries.append(Mark(number))
        return Moved(number, stack, how)

    def here(self) -> Place:
        """Where the program is now, to ask later what happened :meth:`since`."""
        return self._target, len(self._target.entries)

    def since(self, place: Place) -> tuple[Entry, ...]:
        """What happened since the program was there, in its order."""
        slot, position = place
        return tuple(_flattened(slot.entries[position:]))

    def again(self, entry: Entry, numbers: dict[int, int], changed: Callable[[Event], Event]) -> Entry:
        """Have something happen again now; ``numbers`` are those of what has already, by the old ones."""
        numbers[entry.seq] = self._next()
        new = Mark(numbers[entry.seq]) if isinstance(entry, Mark) else changed(_Renumbering(numbers).of(entry))
        self._target.entries.append(new)
        return new

    def _next(self) -> int:
        self.count += 1
        target = self._target
        if target.last < target.end:
            target.last += 1
            return target.last
        self._overflow += 1
        return _OVERFLOW + self._overflow

    def reserve(self) -> Slot:
        """A place for the events of something that happens here but is worked out later."""
        target = self._target
        count = max(min(_FREE_NUMBERS, (target.end - target.last) // 10), 0)
        slot = Slot(target.last, count)
        target.last += count
        target.entries.append(slot)
        return slot

    @contextmanager
    def filling(self, slot: Slot) -> Iterator[None]:
        """Events added inside go to the reserved place."""
        before, self._target = self._target, slot
        try:
            yield
        finally:
            self._target = before

    def position(self) -> int:
        """Where the program is now, to come back to with :meth:`return_to`."""
        return len(self._root.entries)

    def return_to(self, position: int) -> None:
        """Forget what happened since; what reserved places hold stays, as it belongs before."""
        del self._root.entries[position:]

    def finished(self) -> tuple[Event, ...]:
        """All events, numbered in their order: numbers rise, with gaps, unless more came in than was kept free."""
        flat = list(_flattened(self._root.entries))
        if not self._overflow:
            return tuple(entry for entry in flat if isinstance(entry, Event))
        numbers = {entry.seq: position for position, entry in enumerate(flat, 1)}
        return tuple(map(_Renumbering(numbers).of, (entry for entry in flat if isinstance(entry, Event))))


def _flattened(entries: Iterable[Any]) -> Iterator[Any]:
    for entry in entries:
        if isinstance(entry, Slot):
            yield from _flattened(entry.entries)
        else:
            yield entry


class _Renumbering:
    """Gives events, and what they hold, other numbers; what has none of these keeps its own."""

    def __init__(self, numbers: Mapping[int, int]) -> None:
        self._numbers = numbers
        self._fields: dict[type[object], tuple[str, ...]] = {}

    def of(self, value: Any) -> Any:
        """The event (or what it holds) with the other numbers."""
        if isinstance(value, (Event, Moved)):
            changes = {"seq": self._numbers.get(value.seq, value.seq)}
            for name in self._fields_of(type(value)):
                old = getattr(value, name)
                if isinstance(old, (Array, tuple)):
                    new = self.of(old)
                    if new is not old:
                        changes[name] = new
            return dataclasses.replace(value, **changes)  # type: ignore[arg-type]
        if isinstance(value, Array):
            return value if value.moved is None else dataclasses.replace(value, moved=self.of(value.moved))
        if isinstance(value, Binding):
            array = value.array
            if array is None or array.moved is None:
                return value
            return dataclasses.replace(value, array=self.of(array))
        if isinstance(value, tuple):
            items = tuple(map(self.of, value))
            return value if all(new is old for new, old in zip(items, value, strict=False)) else items
        return value

    def _fields_of(self, kind: type[Any]) -> tuple[str, ...]:
        names = self._fields.get(kind)
        if names is None:
            names = self._fields[kind] = tuple(each.name for each in dataclasses.fields(kind) if each.name != "stack")
        return names

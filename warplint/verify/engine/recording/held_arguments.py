"""What tapes hold by reference: lists of arguments and structs, watched from the launch that they were given to.

A struct tells each change (its ``__setattr__`` is hooked). A list tells nothing: what changed in it is seen when it is
given to another launch or when a backward begins, and where it was changed is looked up in the source by whoever reads
the records.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from warplint.dataclass import dataclass
from warplint.verify.engine.execution.memory import CodeStack, Range
from warplint.verify.engine.warp_modules import plain
from warplint.verify.engine.warp_values import struct_fields

Slot = tuple[int, "int | str"]
"""The number of a list or struct, and the item or field of it."""


@dataclass(frozen=True)
class Given:
    """One argument of a recorded launch: ``path`` as in bindings, the places it was taken from, a scalar's value."""

    path: str
    slots: tuple[Slot, ...]
    value: Any = None
    is_array: bool = False


@dataclass(frozen=True)
class HeldValue:
    """What stands in a place now: by path below it, an array's range or a scalar's value."""

    path: str
    where: Range | None
    value: Any = None


@dataclass(frozen=True)
class Change:
    """A place that holds something else. ``given``: of a list, the launch that it was given to, else empty."""

    slot: Slot
    values: tuple[HeldValue, ...]
    given: CodeStack = ()


@dataclass(frozen=True)
class _List:
    number: int
    items: list[Any]
    before: tuple[Any, ...]
    stack: CodeStack


class HeldArguments:
    """The lists and structs that recorded launches of this process were given."""

    def __init__(self, range_of: Callable[[Any], Range | None]) -> None:
        self._range_of = range_of
        self._numbers = itertools.count(1)
        self._structs: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._struct_numbers: dict[int, int] = {}
        self._lists: dict[int, _List] = {}
        self._told: set[tuple[Slot, int]] = set()

    def given(self, names: Sequence[str], inputs: Any, outputs: Any, stack: CodeStack) -> tuple[Given, ...]:
        """Watch what a launch was given; ``names`` are the kernel's parameters."""
        places = [*self._places(inputs, stack), *self._places(outputs, stack)]
        return tuple(
            found
            for name, (value, slots) in zip(names, places, strict=False)
            for found in self._below(name, value, slots)
        )

    def _places(self, values: Any, stack: CodeStack) -> Iterator[tuple[Any, tuple[Slot, ...]]]:
        if type(values) is not list:
            return ((value, ()) for value in values)
        known = self._lists.get(id(values))
        number = known.number if known is not None else next(self._numbers)
        known = self._lists[id(values)] = _List(number, values, tuple(values), stack)
        return ((value, ((known.number, key),)) for key, value in enumerate(values))

    def _below(self, path: str, value: Any, slots: tuple[Slot, ...]) -> Iterator[Given]:
        fields = struct_fields(value)
        if fields is None:
            yield Given(path, slots, plain(value) if _is_scalar(value) else None, not _is_scalar(value))
            return
        number = self._number(value)
        for name, item in fields.items():
            yield from self._below(f"{path}.{name}", item, (*slots, (number, name)))

    def _number(self, struct: Any) -> int:
        if self._structs.get(id(struct)) is not struct:
            self._structs[id(struct)] = struct
            self._struct_numbers[id(struct)] = next(self._numbers)
        return self._struct_numbers[id(struct)]

    def changed_field(self, struct: Any, name: str) -> Change | None:
        """A field of a struct was set: what it holds now, if a recorded launch was given the struct."""
        if self._structs.get(id(struct)) is not struct:
            return None
        slot = self._struct_numbers[id(struct)], name
        return Change(slot, tuple(self._values("", getattr(struct, name, None))))

    def changed_items(self, lists: Iterable[Any]) -> Iterator[Change]:
        """The items of these lists that are others than when they were last given; each replacement once."""
        for items in {id(each): each for each in lists if type(each) is list}.values():
            known = self._lists.get(id(items))
            if known is None or len(items) != len(known.before):
                continue
            for key, (old, new) in enumerate(zip(known.before, items, strict=True)):
                slot = known.number, key
                if not _is_same(old, new) and (slot, id(new)) not in self._told:
                    self._told.add((slot, id(new)))
                    yield Change(slot, tuple(self._values("", new)), known.stack)

    def _values(self, path: str, value: Any) -> Iterator[HeldValue]:
        fields = struct_fields(value)
        if fields is not None:
            for name, item in fields.items():
                yield from self._values(f"{path}.{name}", item)
        elif _is_scalar(value):
            yield HeldValue(path, None, plain(value))
        else:
            yield HeldValue(path, self._range_of(value))


def _is_scalar(value: Any) -> bool:
    return not hasattr(value, "ptr")


def _is_same(old: Any, new: Any) -> bool:
    return old is new or (isinstance(old, int | float) and isinstance(new, int | float) and old == new)

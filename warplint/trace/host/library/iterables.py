"""Python's builtin functions over iterables: exact on known items; unknown ones stand for a few rounds."""

from __future__ import annotations

import ast
import builtins as python
from collections.abc import Callable, Sequence
from typing import Any

from warplint.trace.host import operators
from warplint.trace.host.library.iteration import draw, left_in_iterator
from warplint.trace.host.library.salt import is_unordered, keep_disorder, place_in, varying
from warplint.trace.host.machine import Call, Machine, Raised
from warplint.trace.host.values import (
    Generator,
    Instance,
    Record,
    UnknownValue,
    Value,
    part_of,
    unknown_from,
)


def _range(machine: Machine, call: Call) -> Value:
    bounds = [machine.count_of(part) if isinstance(part, UnknownValue) else part for part in call.args]
    if any(isinstance(part, UnknownValue) for part in call.args) and len(call.args) > 1:
        bounds = _unknown_bounds(machine, call.args)
    try:
        return range(*bounds)
    except (TypeError, ValueError):
        return UnknownValue("a range of something unknown")


def _unknown_bounds(machine: Machine, parts: Sequence[Value]) -> list[Value]:
    """``range(a, n)``: a known start shortens the rounds; an unknown start begins at 0."""
    start, stop = parts[0], parts[1]
    step = parts[2] if len(parts) > 2 and isinstance(parts[2], int) else 1
    if isinstance(start, UnknownValue) and isinstance(stop, UnknownValue):
        if (start.base or start) is (stop.base or stop):
            return [machine.count_of(start), machine.count_of(stop), step]
        if step < 0:
            return [machine.count_of(start), -1, step]
        return [0, machine.count_of(stop), step]
    if isinstance(start, UnknownValue):
        if step < 0:
            return [machine.count_of(start), stop, step]
        return [max(stop - machine.settings.unknown_rounds, 0) if isinstance(stop, int) else 0, stop, step]
    rounds = machine.count_of(stop)
    if isinstance(start, int) and rounds <= start:
        rounds = start + machine.settings.unknown_rounds * abs(step)
    return [start, rounds, step]


def _items_or_unknown(machine: Machine, values: Sequence[Value]) -> tuple[list[Sequence[Value]], int]:
    """The items of several iterables side by side; unknown ones give unknown items, iterators as many as it takes."""
    left = [left_in_iterator(value) for value in values]
    known = [machine.iterate(value) if ahead is None else ahead for value, ahead in zip(values, left, strict=True)]
    lengths = [len(items) for items in known if items is not None]
    length = min(lengths) if lengths else machine.settings.unknown_rounds
    known = [items if ahead is None else draw(ahead, length) for items, ahead in zip(known, left, strict=True)]
    columns = [
        items if items is not None else [part_of("an item of an unknown iterable", value) for _ in range(length)]
        for items, value in zip(known, values, strict=False)
    ]
    return columns, length


def _enumerate(machine: Machine, call: Call) -> Value:
    columns, _ = _items_or_unknown(machine, call.args[:1])
    start = call.get(1, "start", 0)
    pairs = python.enumerate(columns[0] if columns else (), start if isinstance(start, int) else 0)
    return [(place_in(machine, call.args[0], number), item) for number, item in pairs]


def _zip(machine: Machine, call: Call) -> Value:
    columns, _ = _items_or_unknown(machine, call.args)
    unordered = [is_unordered(machine, value) for value in call.args]
    if any(unordered) and not all(unordered):  # numbers beside a set: which belongs to which item, nobody knows
        columns = [
            column if loose else [varying(machine, "what stands beside an item of a set") for _ in column]
            for column, loose in python.zip(columns, unordered, strict=False)
        ]
    return list(python.zip(*columns, strict=False))


def _map(machine: Machine, call: Call) -> Value:
    columns, _ = _items_or_unknown(machine, call.args[1:])
    return [machine.call(call.args[0], list(row)) for row in python.zip(*columns, strict=False)]


def _filter(machine: Machine, call: Call) -> Value:
    items = machine.iterate(call.get(1, "iterable"))
    if items is None or not call.args:
        return unknown_from("a filtered iterable", *call.args)
    test = call.args[0]
    return [
        item for item in items if operators.truth(machine.call(test, [item]) if test is not None else item) is not False
    ]


def _container(kind: Callable[..., Any]) -> Callable[[Machine, Call], Value]:
    def make(machine: Machine, call: Call) -> Value:
        if not call.args:
            return kind(**call.kwargs) if kind is dict else kind()
        items = machine.iterate(call.args[0])
        if items is None:
            return unknown_from("a container of unknown items", call.args[0])
        try:
            if kind is dict:
                source = (
                    call.args[0] if isinstance(call.args[0], dict) else [tuple(machine.iterate(i) or ()) for i in items]
                )
                return dict(source, **call.kwargs)
            return keep_disorder(machine, kind(items), call.args[0])
        except (TypeError, ValueError):
            return UnknownValue("a container of unhashable items")

    return make


def _sorted(machine: Machine, call: Call) -> Value:
    items = machine.iterate(call.get(0, "iterable"))
    if items is None:
        return unknown_from("a sorted iterable", *call.args)
    key = call.kwargs.get("key")
    reverse = call.kwargs.get("reverse", False) is True
    try:
        pairs = [(machine.call(key, [item]) if key is not None else item) for item in items]
        order = python.sorted(python.range(len(items)), key=pairs.__getitem__, reverse=reverse)
        return [items[position] for position in order]
    except Exception:
        return list(items)


def _reversed(machine: Machine, call: Call) -> Value:
    items = machine.iterate(call.get(0, "sequence"))
    return unknown_from("a reversed iterable", *call.args) if items is None else list(python.reversed(list(items)))


def _fold(name: str) -> Callable[[Machine, Call], Value]:
    """``sum``, ``min``, ``max`` of known numbers."""

    def fold(machine: Machine, call: Call) -> Value:
        items: Sequence[Value] | None = (
            call.args if len(call.args) > 1 and name != "sum" else machine.iterate(call.get(0, "x"))
        )
        if items is None:
            return unknown_from(f"{name} of something unknown", *call.args)
        key = call.kwargs.get("key")
        try:
            if key is None and all(isinstance(item, (int, float, str, tuple)) for item in items):
                if name == "sum":
                    return python.sum(items, call.get(1, "start", 0))
                if not items:
                    return call.kwargs.get("default", UnknownValue(f"{name} of nothing"))
                return (python.min if name == "min" else python.max)(items)
            if key is not None and items:
                keys = [machine.call(key, [item]) for item in items]
                best = (python.min if name == "min" else python.max)(python.range(len(items)), key=keys.__getitem__)
                return items[best]
            if name == "sum" and items:
                total: Value = call.get(1, "start", 0)
                for item in items:
                    total = operators.binary(machine, ast.Add, total, item) if total != 0 else item
                return total
        except Exception:
            return unknown_from(f"{name} of mixed values", *items)
        return unknown_from(f"{name} of unknown values", *items)

    return fold


def next_item(machine: Machine, iterator: Value, default: Value = None) -> Value:
    """``next(iterator)``."""
    if isinstance(iterator, Record) and iterator.kind == "iterator":
        items = iterator.attributes["items"]
        return items.pop(0) if items else _exhausted(machine, default)
    if isinstance(iterator, Generator):
        known = machine.iterate(iterator) or ()
        if iterator.consumed >= 1 << 30:
            iterator.consumed = 0
        if iterator.consumed < len(known):
            iterator.consumed += 1
            return known[iterator.consumed - 1]
        return _exhausted(machine, default)
    if isinstance(iterator, list):
        return iterator.pop(0) if iterator else _exhausted(machine, default)
    if isinstance(iterator, Instance) and iterator.cls.find("__next__"):
        return machine.call(machine.parts.get_attribute(machine, iterator, "__next__"))
    return part_of("the next item of something unknown", iterator)


def _exhausted(machine: Machine, default: Value) -> Value:
    if default is not None:
        return default
    if machine.will_catch("StopIteration"):
        raise Raised(("StopIteration",))
    return UnknownValue("the next item of an exhausted iterator")


def _next(machine: Machine, call: Call) -> Value:
    return next_item(machine, call.get(0, "iterator"), call.get(1, "default"))


def _iter(machine: Machine, call: Call) -> Value:
    value = call.get(0, "iterable")
    if isinstance(value, (Generator, Record)):
        return value
    items = machine.iterate(value)
    if items is None:
        return unknown_from("an iterator", value)
    return Record("iterator", {"items": [place_in(machine, value, item) for item in items]})


def _any(machine: Machine, call: Call) -> Value:
    return _quantified(machine, call, True)


def _all(machine: Machine, call: Call) -> Value:
    return _quantified(machine, call, False)


def _quantified(machine: Machine, call: Call, decisive: bool) -> Value:
    items = machine.iterate(call.get(0, "iterable"))
    if items is None:
        return unknown_from("a condition over something unknown", *call.args)
    results = [operators.truth(item) for item in items]
    if decisive in results:
        return decisive
    return unknown_from("a condition", *items) if None in results else not decisive


FUNCTIONS: dict[str, Callable[[Machine, Call], Value]] = {
    "range": _range,
    "enumerate": _enumerate,
    "zip": _zip,
    "map": _map,
    "filter": _filter,
    "list": _container(list),
    "tuple": _container(tuple),
    "dict": _container(dict),
    "set": _container(set),
    "frozenset": _container(frozenset),
    "sorted": _sorted,
    "reversed": _reversed,
    "sum": _fold("sum"),
    "min": _fold("min"),
    "max": _fold("max"),
    "next": _next,
    "iter": _iter,
    "any": _any,
    "all": _all,
}

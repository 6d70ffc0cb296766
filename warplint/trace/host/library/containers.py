"""Methods of lists, dicts, sets, tuples and strings: Python's own, on the real objects."""

from __future__ import annotations

from typing import Any

from warplint.trace.host.held import note_change
from warplint.trace.host.library.salt import keep_disorder, place_in
from warplint.trace.host.machine import Call, Machine, Raised
from warplint.trace.host.moves import stamp, stamp_rotation
from warplint.trace.host.operators import is_plain
from warplint.trace.host.values import Native, UnknownValue, Value, unknown_from


class Deque(list[Any]):
    """``collections.deque``: a list with a length limit."""

    maxlen: int | None = None


class DefaultDict(dict[Any, Any]):
    """``collections.defaultdict``: the factory is called by whoever looks an item up."""

    default_factory: Value = None


def container_method(machine: Machine, container: Any, name: str) -> Value:
    """The bound method ``container.name``."""
    if isinstance(container, (str, bytes)):
        return Native(name, lambda machine, call: _text_method(machine, container, name, call))
    if isinstance(container, list):
        return Native(name, lambda machine, call: _watched_list_method(machine, container, name, call))
    if isinstance(container, dict):
        return Native(name, lambda machine, call: _dict_method(machine, container, name, call))
    return Native(name, lambda machine, call: _other_method(machine, container, name, call))


def _text_method(machine: Machine, text: str | bytes, name: str, call: Call) -> Value:
    method = getattr(text, name, None)
    args = [list(arg) if isinstance(arg, tuple) and name == "join" else arg for arg in call.args]
    if name == "join" and args:
        args = [list(machine.iterate(args[0]) or ["?"])]
    simple = all(is_plain(arg) or isinstance(arg, (list, tuple)) for arg in (*args, *call.kwargs.values()))
    if method is None or not simple:
        return unknown_from("a formatted string", *call.values)
    try:
        return method(*args, **call.kwargs)
    except Exception:
        return unknown_from("a formatted string", *call.values)


def _watched_list_method(machine: Machine, items: list[Value], name: str, call: Call) -> Value:
    result = _list_method(machine, items, name, call)
    note_change(machine, items)
    return result


def _list_method(machine: Machine, items: list[Value], name: str, call: Call) -> Value:
    if name in ("append", "appendleft", "insert", "extend"):
        machine.collect(call.args[-1] if call.args else None)
    if name == "append":
        items.append(call.get(0, "item"))
        _trim(items)
        return None
    if name == "extend":
        more = machine.iterate(call.get(0, "iterable"))
        items.extend(more if more is not None else [unknown_from("an unknown number of items", *call.args)])
        _trim(items)
        return None
    if name in ("pop", "popleft"):
        return _pop(machine, items, 0 if name == "popleft" else call.get(0, "index", -1))
    if name == "appendleft":
        items.insert(0, call.get(0, "item"))
        return None
    if name == "extendleft":
        for item in machine.iterate(call.get(0, "iterable")) or ():
            items.insert(0, item)
        return None
    if name == "rotate":
        by = call.get(0, "n", 1)
        if isinstance(by, int) and items:
            by %= len(items)
            items[:] = items[-by:] + items[:-by] if by else items
        stamp_rotation(machine, items)
        return None
    if name == "reverse":
        items.reverse()
        stamp_rotation(machine, items)
        return None
    if name == "sort":
        machine.unordered.pop(id(items), None)
        return _sort(machine, items, call)
    try:
        if name == "copy":
            return keep_disorder(machine, items.copy(), items)
        found = getattr(items, name)(*call.args)
        return place_in(machine, items, found) if name == "index" else found
    except Exception:
        return UnknownValue(f"list.{name} that fails")


def _trim(items: list[Value]) -> None:
    limit = getattr(items, "maxlen", None)
    if isinstance(limit, int) and len(items) > limit:
        del items[: len(items) - limit]


def _pop(machine: Machine, items: list[Value], index: Value) -> Value:
    if not items or not isinstance(index, int) or not -len(items) <= index < len(items):
        if not items and machine.will_catch("IndexError"):
            raise Raised(("IndexError",))
        return UnknownValue("an item popped from an empty or unknown place")
    value = items.pop(index)
    stamp(machine, value, "rotate")
    return value


def _sort(machine: Machine, items: list[Value], call: Call) -> Value:
    from warplint.trace.host.library.builtins import BUILTINS

    ordered = machine.parts.call(machine, BUILTINS["sorted"], Call([items], call.kwargs))
    if isinstance(ordered, list):
        items[:] = ordered
    return None


def _dict_method(machine: Machine, items: dict[Any, Value], name: str, call: Call) -> Value:
    if name == "items":
        return list(items.items())
    if name == "keys":
        return list(items)
    if name == "values":
        return list(items.values())
    if any(isinstance(arg, UnknownValue) for arg in call.args[:1]) and name in ("get", "pop", "setdefault"):
        return unknown_from("an item under an unknown key", *call.args)
    try:
        if name == "update":
            for source in call.args:
                if isinstance(source, dict):
                    items.update(source)
                else:
                    items.update(dict(machine.iterate(source) or ()))
            items.update(call.kwargs)
            return None
        if name == "copy":
            return type(items)(items) if not isinstance(items, DefaultDict) else items.copy()
        if name == "pop" and call.args and call.args[0] not in items and len(call.args) == 1:
            if machine.will_catch("KeyError"):
                raise Raised(("KeyError",))
            return UnknownValue("a missing key")
        return getattr(items, name)(*call.args)
    except Raised:
        raise
    except Exception:
        return UnknownValue(f"dict.{name} that fails")


def _other_method(machine: Machine, container: Any, name: str, call: Call) -> Value:
    args = [set(machine.iterate(arg) or ()) if isinstance(arg, list) else arg for arg in call.args]
    try:
        return getattr(container, name)(*args)
    except Exception:
        return unknown_from(f"{type(container).__name__}.{name}", *call.args)

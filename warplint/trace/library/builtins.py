"""Python's builtin functions and types."""

from __future__ import annotations

import builtins as python
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from warplint.trace import events, operators
from warplint.trace.library.iteration import draw, left_in_iterator
from warplint.trace.machine import Call, Machine, Raised
from warplint.trace.memory import ArrayValue, NumpyValue, arrays_in
from warplint.trace.moves import stamp
from warplint.trace.values import (
    Bound,
    Class,
    ClassMethod,
    External,
    Function,
    Generator,
    Instance,
    KernelValue,
    ModuleValue,
    Native,
    Property,
    Record,
    StaticMethod,
    SuperValue,
    TapeValue,
    UnknownValue,
    Value,
    Vector,
    WarpFunction,
    unknown_from,
)

SALTED = frozenset({"salted-hash"})

_TYPES: dict[str, type | tuple[type, ...]] = {
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "list": list,
    "tuple": tuple,
    "dict": dict,
    "set": set,
    "frozenset": frozenset,
    "bytes": bytes,
    "range": range,
    "slice": slice,
    "complex": complex,
}

_WRAPPED_TYPES: dict[str, tuple[type, ...]] = {
    "warp.array": (ArrayValue,),
    "warp.Tape": (TapeValue,),
    "warp.Kernel": (KernelValue,),
    "warp.Function": (WarpFunction,),
    "numpy.ndarray": (NumpyValue,),
    "typing.Callable": (Function, Bound, Native, WarpFunction),
    "collections.abc.Callable": (Function, Bound, Native, WarpFunction),
    "collections.abc.Sequence": (list, tuple, range, str),
    "collections.abc.Iterable": (list, tuple, range, str, dict, set, Generator),
    "collections.abc.Mapping": (dict,),
    "numbers.Number": (int, float),
    "numbers.Real": (int, float),
    "numbers.Integral": (int,),
}


def show(machine: Machine, values: Sequence[Value]) -> None:
    """Arrays that are printed or formatted are read."""
    from warplint.trace.warp_api.arrays import use_views

    for value in values:
        use_views(machine, value)
        for array in arrays_in(value, 2):
            if array.gradient:
                machine.emit(events.GradRead, array=array.snapshot(), how="print")
            else:
                machine.emit(events.HostRead, array=array.snapshot(), how="print", active_tape=machine.active_tape_id)


def _print(machine: Machine, call: Call) -> Value:
    show(machine, call.args)
    return None


def _len(machine: Machine, call: Call) -> Value:
    value = call.get(0, "obj")
    if isinstance(value, (list, tuple, dict, set, frozenset, str, bytes, range)):
        return len(value)
    if isinstance(value, ArrayValue):
        return value.size_along(0)
    if isinstance(value, NumpyValue):
        known = value.shape[0] if value.shape else None
        return UnknownValue("the length of a numpy array") if known is None else known
    if isinstance(value, Vector):
        return len(value.components)
    if isinstance(value, Generator):
        return len(machine.iterate(value) or ())
    if isinstance(value, Instance):
        if value.cls.find("__len__"):
            return machine.call(machine.parts.get_attribute(machine, value, "__len__"))
        if value.cls.is_tuple:
            return len(value.attributes)
        if value.cls.namespace.get("__members__"):
            return len(value.cls.namespace)
    return unknown_from("the length of something unknown", value)


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
        items if items is not None else [unknown_from("an item of an unknown iterable", value) for _ in range(length)]
        for items, value in zip(known, values, strict=False)
    ]
    return columns, length


def _enumerate(machine: Machine, call: Call) -> Value:
    columns, _ = _items_or_unknown(machine, call.args[:1])
    start = call.get(1, "start", 0)
    return list(python.enumerate(columns[0] if columns else (), start if isinstance(start, int) else 0))


def _zip(machine: Machine, call: Call) -> Value:
    columns, _ = _items_or_unknown(machine, call.args)
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
            return kind(items)
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
                import ast

                for item in items:
                    total = operators.binary(machine, ast.Add, total, item) if total != 0 else item
                return total
        except Exception:
            return unknown_from(f"{name} of mixed values", *items)
        return unknown_from(f"{name} of unknown values", *items)

    return fold


def _number(kind: Callable[[Any], Any]) -> Callable[[Machine, Call], Value]:
    """``int``, ``float``, ``abs``, ``round`` …: exact on plain values; what came from the host stays marked."""

    def convert(machine: Machine, call: Call) -> Value:
        if not call.args:
            return kind(0) if kind in (int, float, bool) else kind(*call.args)
        value = call.args[0]
        if isinstance(value, ArrayValue):
            kind_of_event = events.GradRead if value.gradient else None
            if kind_of_event is not None:
                machine.emit(events.GradRead, array=value.snapshot(), how=machine.reading("numpy"))
            else:
                machine.emit(events.HostRead, array=value.snapshot(), how="float", active_tape=machine.active_tape_id)
            return UnknownValue("a number read from an array", frozenset({value.memory.id}))
        if isinstance(value, NumpyValue):
            from warplint.trace.warp_api.arrays import use_views

            use_views(machine, value)
        if (
            isinstance(value, NumpyValue)
            and value.contents is not None
            and len(value.contents) == 1
            and not value.sources
        ):
            value = value.contents[0]
        if isinstance(value, Instance) and isinstance(value.attributes.get("value"), (int, float)):
            value = value.attributes["value"]
        if operators.is_plain(value) and value is not None:
            try:
                return kind(*[value, *[a for a in call.args[1:] if operators.is_plain(a)]])
            except Exception as error:
                if machine.will_catch(type(error).__name__):
                    raise Raised((type(error).__name__,)) from None
                return UnknownValue("a number that cannot be converted")
        if isinstance(value, UnknownValue) and kind is int:
            return value
        return unknown_from("a converted number", *call.args)

    return convert


def _str(machine: Machine, call: Call) -> Value:
    if not call.args:
        return ""
    value = call.args[0]
    if operators.is_plain(value):
        return str(value) if not isinstance(value, bytes) else UnknownValue("decoded bytes")
    show(machine, [value])
    if isinstance(value, External):
        return value.path
    return unknown_from("the text of something", value)


def _bool(machine: Machine, call: Call) -> Value:
    known = operators.truth(call.get(0, "x", False))
    if known is not None:
        return known
    value = call.args[0]
    return value if isinstance(value, UnknownValue) else UnknownValue("a truth value")


def is_instance(value: Value, kind: Value) -> bool | None:
    """Whether a value is of a type; None where it is not known."""
    if isinstance(kind, tuple):
        results = [is_instance(value, one) for one in kind]
        return True if True in results else None if None in results else False
    if isinstance(value, UnknownValue) or isinstance(kind, UnknownValue):
        return None
    if isinstance(kind, Class):
        if isinstance(value, Instance):
            if kind in value.cls.ancestry:
                return True
            return None if value.cls.has_outside_base and kind.module is not value.cls.module else False
        return False
    if isinstance(kind, Native) and kind.name in _TYPES:
        if isinstance(value, (Instance,)) and value.cls.is_tuple and kind.name == "tuple":
            return True
        if kind.name == "int" and isinstance(value, bool):
            return True
        return isinstance(value, _TYPES[kind.name]) if not isinstance(value, External) else None
    if isinstance(kind, External):
        if kind.path in _WRAPPED_TYPES:
            return isinstance(value, _WRAPPED_TYPES[kind.path])
        if kind.path.startswith(("torch.", "jax.", "numpy.", "warp.")) and not isinstance(value, (External, Instance)):
            return False
        if isinstance(value, Instance):
            return True if kind.path in value.cls.outside_bases() else None
    return None


def _isinstance(machine: Machine, call: Call) -> Value:
    known = is_instance(call.get(0, "obj"), call.get(1, "kind"))
    return UnknownValue("the type of something unknown") if known is None else known


def _hasattr(machine: Machine, call: Call) -> Value:
    value, name = call.get(0, "obj"), call.get(1, "name")
    if isinstance(value, Instance) and isinstance(name, str):
        if isinstance(value.attributes.get(name), UnknownValue) and value.attributes[name].why.endswith(
            "was never set"
        ):
            return UnknownValue("hasattr") if value.cls.has_outside_base else False
        if name in value.attributes or value.cls.find(name):
            return True
        return UnknownValue("hasattr of an outside base") if value.cls.has_outside_base else False
    if isinstance(value, Record) and value.closed and isinstance(name, str):
        return name in value.attributes
    if isinstance(value, ArrayValue) and isinstance(name, str):
        return name in ("numpy", "grad", "requires_grad", "shape", "dtype", "device", "ptr", "size", "ndim")
    if isinstance(value, ModuleValue) and isinstance(name, str):
        return not isinstance(machine.parts.get_attribute(machine, value, name), UnknownValue)
    return UnknownValue("hasattr of something unknown")


def _getattr(machine: Machine, call: Call) -> Value:
    value, name = call.get(0, "obj"), call.get(1, "name")
    if not isinstance(name, str):
        return unknown_from("an attribute of an unknown name", value)
    if len(call.args) > 2:
        there = _hasattr(machine, Call([value, name]))
        if there is False:
            return call.args[2]
        found = machine.parts.get_attribute(machine, value, name)
        return (
            call.args[2]
            if there is not True and isinstance(found, UnknownValue) and call.args[2] is not None
            else found
        )
    return machine.parts.get_attribute(machine, value, name)


def _setattr(machine: Machine, call: Call) -> Value:
    owner, name, value = call.get(0, "obj"), call.get(1, "name"), call.get(2, "value")
    if isinstance(name, str):
        old = owner.attributes.get(name) if isinstance(owner, Instance) else None
        machine.parts.set_attribute(machine, owner, name, value)
        if old is not value and next(arrays_in(old, 3), None) is not None:
            stamp(machine, value, "rebind")
    return None


def _type(machine: Machine, call: Call) -> Value:
    value = call.get(0, "obj")
    if isinstance(value, Instance):
        return value.cls
    for name, kind in _TYPES.items():
        if type(value) is kind:
            return BUILTINS[name]
    return UnknownValue("the type of something")


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
    return unknown_from("the next item of something unknown", iterator)


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
    return unknown_from("an iterator", value) if items is None else Record("iterator", {"items": list(items)})


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


def _hash(machine: Machine, call: Call) -> Value:
    value = call.get(0, "obj")
    if isinstance(value, (int, float)):
        return hash(value)
    return UnknownValue("a salted hash", taints=SALTED)


def _super(machine: Machine, call: Call) -> Value:
    if len(call.args) == 2 and isinstance(call.args[0], Class):
        return SuperValue(call.args[0], call.args[1])
    return UnknownValue("super()")


def _property(machine: Machine, call: Call) -> Value:
    return Property(call.get(0, "fget"), call.get(1, "fset"))


def _callable(machine: Machine, call: Call) -> Value:
    value = call.get(0, "obj")
    if isinstance(value, UnknownValue):
        return UnknownValue("whether something unknown is callable")
    if isinstance(value, Instance):
        return value.cls.find("__call__") is not None
    return isinstance(value, (Function, Bound, Native, Class, External, WarpFunction))


def _slice(machine: Machine, call: Call) -> Value:
    return slice(*call.args)


def _exit(machine: Machine, call: Call) -> Value:
    return None


def _id(machine: Machine, call: Call) -> Value:
    return UnknownValue("an address", taints=SALTED)


def _issubclass(machine: Machine, call: Call) -> Value:
    if len(call.args) == 2 and isinstance(call.args[0], Class) and isinstance(call.args[1], Class):
        return call.args[1] in call.args[0].ancestry
    return UnknownValue("issubclass")


def _divmod(machine: Machine, call: Call) -> Value:
    try:
        return divmod(call.args[0], call.args[1])
    except Exception:
        return (unknown_from("divmod", *call.args), unknown_from("divmod", *call.args))


def _text(function: Callable[..., Any]) -> Callable[[Machine, Call], Value]:
    def run(machine: Machine, call: Call) -> Value:
        if all(operators.is_plain(value) for value in call.values):
            try:
                return function(*call.args, **call.kwargs)
            except Exception:
                return UnknownValue("a call that fails")
        show(machine, call.values)
        return unknown_from("the text of something", *call.values)

    return run


def _object(machine: Machine, call: Call) -> Value:
    return Record("object")


_FUNCTIONS: dict[str, Callable[[Machine, Call], Value]] = {
    "print": _print,
    "len": _len,
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
    "abs": _number(abs),
    "round": _number(round),
    "int": _number(int),
    "float": _number(float),
    "complex": _number(complex),
    "bool": _bool,
    "str": _str,
    "repr": _text(repr),
    "format": _text(format),
    "chr": _text(chr),
    "ord": _text(ord),
    "bin": _text(bin),
    "hex": _text(hex),
    "pow": _text(pow),
    "bytes": _text(bytes),
    "isinstance": _isinstance,
    "issubclass": _issubclass,
    "hasattr": _hasattr,
    "getattr": _getattr,
    "setattr": _setattr,
    "type": _type,
    "next": _next,
    "iter": _iter,
    "any": _any,
    "all": _all,
    "hash": _hash,
    "id": _id,
    "super": _super,
    "property": _property,
    "staticmethod": lambda machine, call: StaticMethod(call.args[0]),
    "classmethod": lambda machine, call: ClassMethod(call.args[0]),
    "callable": _callable,
    "slice": _slice,
    "divmod": _divmod,
    "exit": _exit,
    "quit": _exit,
    "object": _object,
}

BUILTINS: Mapping[str, Value] = {
    **{name: Native(name, run) for name, run in _FUNCTIONS.items()},
    **{
        name: External(name)
        for name, value in vars(python).items()
        if isinstance(value, type) and issubclass(value, BaseException)
    },
    "NotImplemented": UnknownValue("NotImplemented"),
    "Ellipsis": Ellipsis,
    "__debug__": True,
    "open": External("builtins.open"),
    "input": External("builtins.input"),
}

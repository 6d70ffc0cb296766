"""Python's builtin functions and types."""

from __future__ import annotations

import builtins as python
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from warplint.trace import events
from warplint.trace.host import operators
from warplint.trace.host.library import iterables
from warplint.trace.host.library.salt import varying
from warplint.trace.host.machine import Call, Machine, Raised
from warplint.trace.host.memory import ArrayValue, NumpyValue, arrays_in
from warplint.trace.host.moves import stamp
from warplint.trace.host.values import (
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
    from warplint.trace.host.warp_api.arrays import use_views

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
            from warplint.trace.host.warp_api.arrays import use_views

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


def _hash(machine: Machine, call: Call) -> Value:
    value = call.get(0, "obj")
    numbers = value if isinstance(value, tuple) else (value,)
    if all(isinstance(number, (int, float)) for number in numbers):
        return hash(value)
    return varying(machine, "a salted hash")


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
    return varying(machine, "an address")


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
    **iterables.FUNCTIONS,
    "print": _print,
    "len": _len,
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

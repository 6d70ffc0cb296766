"""``value.name``: loads and stores, by kind of value."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from warplint.names import public_name
from warplint.trace.host.held import note_change
from warplint.trace.host.library.constants import external_constant
from warplint.trace.host.library.containers import container_method
from warplint.trace.host.lookup import module_attribute
from warplint.trace.host.machine import Machine
from warplint.trace.host.memory import ArrayValue, NumpyValue
from warplint.trace.host.values import (
    Bound,
    Class,
    ClassMethod,
    Command,
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
    TapeGradients,
    TapeValue,
    UnknownValue,
    Value,
    Vector,
    WarpFunction,
    WarpModule,
    part_of,
    unknown_from,
)
from warplint.trace.module_options import COPIED_AT_CREATION


def get_attribute(machine: Machine, value: Value, name: str) -> Value:
    """``value.name``."""
    reader = _READERS.get(type(value))
    if reader is not None:
        return reader(machine, value, name)
    if isinstance(value, (list, dict, set, frozenset, tuple, str, bytes)):
        return container_method(machine, value, name)
    if isinstance(value, (int, float)):
        return _number(value, name)
    if value is None:  # a default that no caller leaves as it is, or what another method sets in between
        return UnknownValue(f"the attribute {name} of what is None here", foreign=True)
    return unknown_from(f"the attribute {name}", value)


def set_attribute(machine: Machine, value: Value, name: str, new: Value) -> None:
    """``value.name = new``."""
    if isinstance(value, Instance):
        found = value.cls.find(name)
        if found is not None and isinstance(found[0], Property) and found[0].setter is not None:
            machine.call(Bound(found[0].setter, value), [new])
        elif value.cls.find("__setattr__"):
            value.attributes[name] = new
        else:
            value.attributes[name] = _as_field(value, new)
            note_change(machine, value)
            if value.tape is not None:
                value.tape.attributes[name] = new
    elif isinstance(value, Class):
        value.namespace[name] = new
    elif isinstance(value, External):
        if value.path == "warp.config":
            from warplint.trace.host.warp_api.modules import set_config

            set_config(machine, name, new)
    elif isinstance(value, ArrayValue):
        from warplint.trace.host.warp_api.arrays import set_array_attribute

        set_array_attribute(machine, value, name, new)
    elif isinstance(value, ModuleValue):
        module_attribute(machine, value, name)
        value.environment.variables[name] = new
    elif isinstance(value, (Record, TapeValue, Function)):
        value.attributes[name] = new
    elif isinstance(value, SuperValue) and isinstance(value.receiver, Instance):
        value.receiver.attributes[name] = new


def _as_field(owner: Instance, value: Value) -> Value:
    """What an object keeps of a value that it is given: a Warp struct copies a struct, and refers to all else."""
    if owner.cls.is_struct and isinstance(value, Instance) and value.cls.is_struct:
        return Instance(value.cls, dict(value.attributes))
    return value


def bind(machine: Machine, found: Value, owner: Class, receiver: Value) -> Value:
    """A class attribute as seen through an instance."""
    if isinstance(found, Function):
        return Bound(found, receiver)
    if isinstance(found, Property):
        if found.cached and isinstance(receiver, Instance):
            value = machine.call(Bound(found.getter, receiver))
            for name, item in owner.namespace.items():
                if item is found:
                    receiver.attributes[name] = value
            return value
        return machine.call(Bound(found.getter, receiver))
    if isinstance(found, StaticMethod):
        return found.function
    if isinstance(found, ClassMethod):
        return Bound(found.function, receiver.cls if isinstance(receiver, Instance) else receiver)
    return found


def _instance(machine: Machine, value: Instance, name: str) -> Value:
    found = value.cls.find(name)
    if found is not None and isinstance(found[0], Property):
        if found[0].cached and name in value.attributes:
            return value.attributes[name]
        return bind(machine, *found, value)
    if name in value.attributes:
        return value.attributes[name]
    if found is not None:
        return bind(machine, *found, value)
    if name == "__class__":
        return value.cls
    if name == "__dict__":
        return value.attributes
    if value.tape is not None:
        return get_attribute(machine, value.tape, name)
    if value.cls.is_dataclass and name == "__post_init__":
        return UnknownValue("no __post_init__")
    getter = value.cls.find("__getattr__")
    if getter is not None and not name.startswith("__"):
        return machine.call(Bound(getter[0], value), [name])
    if value.cls.is_tuple and name in ("_replace", "_asdict"):
        return _tuple_method(value, name)
    unknown = UnknownValue(f"the attribute {name} of {value.cls.name} was never set")
    if not name.startswith("__"):
        value.attributes[name] = unknown
    return unknown


def _tuple_method(value: Instance, name: str) -> Value:
    if name == "_asdict":
        return Native("_asdict", lambda machine, call: dict(value.attributes))
    return Native("_replace", lambda machine, call: Instance(value.cls, {**value.attributes, **call.kwargs}))


def _class(machine: Machine, value: Class, name: str) -> Value:
    found = value.find(name)
    if found is not None:
        attribute, _ = found
        if isinstance(attribute, StaticMethod):
            return attribute.function
        if isinstance(attribute, ClassMethod):
            return Bound(attribute.function, value)
        return attribute
    if name == "__name__":
        return value.name
    if name == "__members__":
        return {key: item for key, item in value.namespace.items() if isinstance(item, Instance)}
    if name == "__new__":
        return Native("__new__", lambda machine, call: machine.call(External("object"), []))
    if name == "__init__" and not value.has_outside_base:
        return Native("__init__", lambda machine, call: None)
    return UnknownValue(f"the class {value.name} has no known {name}")


def _super(machine: Machine, value: SuperValue, name: str) -> Value:
    receiver_class = value.receiver.cls if isinstance(value.receiver, Instance) else value.receiver
    ancestry = receiver_class.ancestry if isinstance(receiver_class, Class) else value.cls.ancestry
    behind = ancestry[ancestry.index(value.cls) + 1 :] if value.cls in ancestry else ()
    for cls in behind:
        if name in cls.namespace:
            return bind(machine, cls.namespace[name], cls, value.receiver)
    if isinstance(value.receiver, Instance) and value.receiver.tape is not None and name != "__init__":
        return get_attribute(machine, value.receiver.tape, name)
    if name in ("__init__", "__post_init__", "__init_subclass__", "setUp", "tearDown", "__setattr__"):
        return Native(name, lambda machine, call: None)
    if name == "__new__":
        return Native("__new__", lambda machine, call: Instance(_made_class(call.get(0, "cls"), value.cls)))
    return UnknownValue(f"{name} of a base class outside the project")


def _made_class(asked: Value, own: Class) -> Class:
    """The class that ``super().__new__(cls)`` makes an object of: ``__new__`` may choose a subclass."""
    return asked if isinstance(asked, Class) else own


def _bound(machine: Machine, value: Bound, name: str) -> Value:
    if name == "__self__":
        return value.receiver
    if name == "__func__":
        return value.function
    return get_attribute(machine, value.function, name)


def _function(machine: Machine, value: Function, name: str) -> Value:
    if name in value.attributes:
        return value.attributes[name]
    if name in ("__name__", "__qualname__"):
        return value.name
    if name == "__wrapped__":
        return value
    if name in ("cache_clear", "cache_info"):
        memo = value.memo

        def clear(machine: Machine, call: Any) -> Value:
            if memo is not None:
                memo.clear()
            return None

        return Native(name, clear)
    return UnknownValue(f"the attribute {name} of a function")


def _external(machine: Machine, value: External, name: str) -> Value:
    if value.path == "warp.config":
        default = COPIED_AT_CREATION.get(name, UnknownValue(f"the default of wp.config.{name}"))
        return machine.config.get(name, default)
    return _external_part(value.path, name)


@lru_cache(maxsize=4096)
def _external_part(path: str, name: str) -> Value:
    """The constant or the dotted name behind an attribute of a dotted name: the same in every program."""
    whole = public_name(f"{path}.{name}")
    constant = external_constant(whole)
    return External(whole) if constant is None else constant


def _record(machine: Machine, value: Record, name: str) -> Value:
    if name in value.attributes:
        return value.attributes[name]
    from warplint.trace.host.library.records import record_method

    method = record_method(machine, value, name)
    if method is not None:
        return method
    unknown = UnknownValue(f"the attribute {name} of {value.kind}")
    value.attributes[name] = unknown
    return unknown


def _kernel(machine: Machine, value: KernelValue, name: str) -> Value:
    if name == "module":
        return value.module
    if name == "key":
        return value.name
    if name == "func":
        return value.function
    return UnknownValue(f"the attribute {name} of a kernel")


def _warp_function(machine: Machine, value: WarpFunction, name: str) -> Value:
    return value.function if name == "func" else UnknownValue(f"the attribute {name} of a Warp function")


def _warp_module(machine: Machine, value: WarpModule, name: str) -> Value:
    from warplint.trace.host.warp_api.modules import module_attribute as warp_module_attribute

    return warp_module_attribute(machine, value, name)


def _array(machine: Machine, value: ArrayValue, name: str) -> Value:
    from warplint.trace.host.warp_api.arrays import array_attribute

    return array_attribute(machine, value, name)


def _numpy(machine: Machine, value: NumpyValue, name: str) -> Value:
    from warplint.trace.host.library.numpy import numpy_attribute

    return numpy_attribute(machine, value, name)


def _tape(machine: Machine, value: TapeValue, name: str) -> Value:
    from warplint.trace.host.warp_api.tapes import tape_attribute

    return tape_attribute(machine, value, name)


def _tape_gradients(machine: Machine, value: TapeGradients, name: str) -> Value:
    from warplint.trace.host.warp_api.tapes import gradients_attribute

    return gradients_attribute(machine, value, name)


def _command(machine: Machine, value: Command, name: str) -> Value:
    from warplint.trace.host.warp_api.launches import command_attribute

    return command_attribute(machine, value, name)


def _generator(machine: Machine, value: Generator, name: str) -> Value:
    if name in ("send", "__next__"):
        from warplint.trace.host.library.iterables import next_item

        return Native(name, lambda machine, call: next_item(machine, value))
    return Native(name, lambda machine, call: None)


def _vector(machine: Machine, value: Vector, name: str) -> Value:
    if name in ("x", "y", "z", "w") and "xyzw".index(name) < len(value.components):
        return value.components["xyzw".index(name)]
    return unknown_from(f"the attribute {name} of a {value.type}", value)


def _unknown(machine: Machine, value: UnknownValue, name: str) -> Value:
    return part_of(value.why, value)


def _module(machine: Machine, value: ModuleValue, name: str) -> Value:
    return module_attribute(machine, value, name)


def _slice(machine: Machine, value: slice, name: str) -> Value:
    return getattr(value, name, None)


def _range(machine: Machine, value: range, name: str) -> Value:
    return (
        getattr(value, name) if name in ("start", "stop", "step") else UnknownValue(f"the attribute {name} of a range")
    )


def _property(machine: Machine, value: Property, name: str) -> Value:
    if name == "setter":
        return Native("setter", lambda machine, call: Property(value.getter, call.get(0, "fset"), value.cached))
    return Native(name, lambda machine, call: value)


def _number(value: float, name: str) -> Value:
    if name in ("item", "is_integer", "bit_length", "copy", "as_integer_ratio", "__index__"):
        return Native(
            name, lambda machine, call: value if name in ("item", "copy", "__index__") else getattr(value, name)()
        )
    if name in ("real", "imag", "numerator", "denominator"):
        return getattr(value, name, UnknownValue(name))
    return UnknownValue(f"the attribute {name} of a number")


_READERS: dict[type, Callable[[Machine, Any, str], Value]] = {
    Instance: _instance,
    Class: _class,
    SuperValue: _super,
    Bound: _bound,
    Function: _function,
    External: _external,
    Record: _record,
    KernelValue: _kernel,
    WarpFunction: _warp_function,
    WarpModule: _warp_module,
    ArrayValue: _array,
    NumpyValue: _numpy,
    TapeValue: _tape,
    TapeGradients: _tape_gradients,
    Command: _command,
    Generator: _generator,
    Vector: _vector,
    UnknownValue: _unknown,
    ModuleValue: _module,
    slice: _slice,
    range: _range,
    Property: _property,
}

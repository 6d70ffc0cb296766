"""Classes of the project: their bodies run as code, their objects by their own ``__init__``."""

from __future__ import annotations

import ast

from warplint.trace.host.decorators import decorated
from warplint.trace.host.machine import Call, Frame, Machine
from warplint.trace.host.values import (
    Bound,
    Class,
    Environment,
    External,
    FieldDefault,
    Function,
    Instance,
    StaticMethod,
    UnknownValue,
    Value,
)

_TAPES = ("warp.Tape", "warp.tape.Tape")
_ENUMS = frozenset({"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"})
_NUMBERS = frozenset({"IntEnum", "IntFlag", "Flag"})
_TUPLES = frozenset({"typing.NamedTuple", "NamedTuple"})


def define_class(machine: Machine, frame: Frame, node: ast.ClassDef) -> Value:
    """Run a class statement."""
    bases = tuple(_base(machine, frame, base) for base in node.bases)
    environment = Environment(frame.module, frame.environment, is_class=True)
    cls = Class(node.name, bases, environment.variables, frame.module, node, closure=frame.environment.closure)
    environment.variables["__qualname__"] = node.name
    inner = Frame(environment, frame.function, node, cls)
    outer = machine.frames[-1]
    machine.frames[-1] = inner
    try:
        machine.execute(node.body, inner)
    finally:
        machine.frames[-1] = outer
    cls.annotations = environment.variables.pop("__annotations__", {})
    outside = set(cls.outside_bases())
    cls.is_tuple = bool(outside & _TUPLES)
    if any(path.rpartition(".")[2] in _ENUMS for path in outside):
        _make_members(cls)
    cls.counts = any(path.rpartition(".")[2] in _NUMBERS for path in outside)
    for base in cls.ancestry[1:]:
        cls.is_dataclass = cls.is_dataclass or base.is_dataclass
        hook = base.namespace.get("__init_subclass__")
        if isinstance(hook, Function):
            machine.call(Bound(hook, cls), [])
    value: Value = cls
    if node.decorator_list:
        value = decorated(machine, frame, node, value)
    return value


def _base(machine: Machine, frame: Frame, node: ast.expr) -> Value:
    value = machine.evaluate(node, frame)
    return value if isinstance(value, (Class, External)) else External(f"unknown.{ast.unparse(node)}")


def _make_members(cls: Class) -> None:
    for position, (name, value) in enumerate(list(cls.namespace.items())):
        if (
            name.startswith("_")
            or isinstance(value, (Function, StaticMethod))
            or not isinstance(value, (int, str, tuple, float, External))
        ):
            continue
        number = position + 1 if isinstance(value, External) else value
        cls.namespace[name] = Instance(cls, {"name": name, "value": number})


def instantiate(machine: Machine, cls: Class, call: Call) -> Value:
    """``cls(...)``."""
    if cls.is_struct:
        return _struct(machine, cls)
    if any(isinstance(item, Instance) and item.cls is cls for item in cls.namespace.values()) and len(call.args) == 1:
        return _member(cls, call.args[0])
    constructor = cls.find("__new__")
    instance: Value = Instance(cls)
    if constructor is not None and isinstance(constructor[0], Function):
        made = machine.parts.call(
            machine, constructor[0], Call([cls, *call.args], call.kwargs, call.node, call.complete)
        )
        if isinstance(made, Instance):
            instance = made
        elif not isinstance(made, UnknownValue):
            return made
    assert isinstance(instance, Instance)
    if any(path in _TAPES for path in cls.outside_bases()):
        from warplint.trace.host.warp_api.tapes import new_tape

        instance.tape = new_tape(machine)
    initializer = cls.find("__init__")
    if initializer is not None:
        bound = Bound(initializer[0], instance)
        machine.parts.call(machine, bound, call)
    elif cls.is_dataclass or cls.is_tuple:
        _fill_fields(machine, cls, instance, call)
    elif cls.has_outside_base:
        machine.escape(f"handed to a base class of {cls.name}", call.values)
    return instance


def _member(cls: Class, value: Value) -> Value:
    for item in cls.namespace.values():
        if isinstance(item, Instance) and item.cls is cls and item.attributes.get("value") == value:
            return item
    return UnknownValue(f"a member of {cls.name}")


def fields_of(cls: Class) -> dict[str, Class]:
    """The annotated fields of a dataclass, named tuple or struct with the class that declares each, bases first."""
    if cls.fields is None:
        cls.fields = {
            name: owner
            for owner in reversed(cls.ancestry)
            for name, annotation in owner.annotations.items()
            if not _is_class_variable(annotation)
        }
    return cls.fields


def _is_class_variable(annotation: ast.expr) -> bool:
    node = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and "ClassVar" in node.value
    return getattr(node, "attr", getattr(node, "id", "")) == "ClassVar"


def _fill_fields(machine: Machine, cls: Class, instance: Instance, call: Call) -> None:
    """The ``__init__`` that ``dataclass`` and ``NamedTuple`` write."""
    given = dict(call.kwargs)
    positional = list(call.args)
    for name, owner in fields_of(cls).items():
        if positional:
            value = positional.pop(0)
        elif name in given:
            value = given.pop(name)
        else:
            value = _default(machine, owner, name)
        instance.attributes[name] = value
        _name_arrays(value, name)
    hook = cls.find("__post_init__")
    if hook is not None:
        machine.call(Bound(hook[0], instance), [])


def _name_arrays(value: Value, name: str) -> None:
    from warplint.trace.host.memory import ArrayValue

    if isinstance(value, ArrayValue) and not value.memory.name:
        value.memory.name = name


def _default(machine: Machine, owner: Class, name: str) -> Value:
    if name not in owner.namespace:
        return UnknownValue(f"the field {name} without a value")
    default = owner.namespace[name]
    if not isinstance(default, FieldDefault):
        return default
    if default.factory is not None:
        return machine.call(default.factory, [])
    return default.value if default.has_value else UnknownValue(f"the field {name} without a value")


def _struct(machine: Machine, cls: Class) -> Instance:
    """A ``wp.struct`` instance: arrays ``None``, numbers 0, nested structs made with it."""
    instance = Instance(cls)
    for name, owner in fields_of(cls).items():
        annotation = owner.annotations[name]
        value: Value = None
        if isinstance(annotation, (ast.Name, ast.Attribute)):
            frame = Frame(owner.closure or owner.module.environment, cls.name, annotation)
            kind = machine.evaluate(annotation, frame)
            if isinstance(kind, Class) and kind.is_struct:
                value = _struct(machine, kind)
            elif not (isinstance(kind, External) and kind.name == "array"):
                value = UnknownValue(f"the field {name} of a struct, never set")
        instance.attributes[name] = value
    return instance

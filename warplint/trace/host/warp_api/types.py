"""Warp's types and builtins on the host: vectors, scalars, type expressions."""

from __future__ import annotations

import re
from collections.abc import Callable

from warplint.trace.host.machine import Call, Machine
from warplint.trace.host.memory import NumpyValue
from warplint.trace.host.operators import is_plain
from warplint.trace.host.values import (
    Class,
    External,
    Native,
    TypeExpression,
    UnknownValue,
    Value,
    Vector,
    unknown_from,
)

_VECTOR = re.compile(r"warp\.(vec\d\w*|mat\d+\w*|quat\w?|transform\w?|spatial_vector\w?|spatial_matrix\w?)$")
_SCALAR = re.compile(r"warp\.(float|int|uint)\d+$|warp\.bool$")

Model = Callable[[Machine, Call], Value]


def host_constructor(path: str) -> Model | None:
    """The model of a type or builtin of Warp called on the host, None where it is neither."""
    name = path.rpartition(".")[2]
    if _VECTOR.match(path):
        return lambda machine, call: _vector(name, call)
    if _SCALAR.match(path):
        return _scalar
    if path.count(".") == 1 and (name.islower() or name.startswith("quat")) and name not in _EFFECTS:
        return _pure
    return None


_EFFECTS = frozenset({"fem", "sparse", "optim", "utils"})


def _vector(name: str, call: Call) -> Value:
    components = list(call.args)
    if len(components) == 1 and isinstance(components[0], (tuple, list, Vector)):
        only = components[0]
        components = list(only.components if isinstance(only, Vector) else only)
    elif len(components) == 1 and isinstance(components[0], NumpyValue):
        return unknown_from(f"a {name} made from numpy", components[0])
    if "vec" in name and len(components) == 1 and name[3:4].isdigit():
        components *= int(name[3])
    if not components and name[3:4].isdigit() and "vec" in name:
        components = [0.0] * int(name[3])
    return Vector(name, tuple(components))


def _scalar(machine: Machine, call: Call) -> Value:
    value = call.get(0, "value", 0)
    return value if is_plain(value) else unknown_from("a number", value)


def _pure(machine: Machine, call: Call) -> Value:
    """A builtin evaluated on the host (``wp.sin(1.0)``, ``wp.normalize(v)``): it has no effect on arrays."""
    return unknown_from("a builtin of Warp called on the host", *call.values)


def _type_expression(machine: Machine, call: Call) -> Value:
    if call.node is None:
        return UnknownValue("a type made at run time")
    return TypeExpression(call.node, machine.frame.environment)


def _identity(machine: Machine, call: Call) -> Value:
    return call.get(0, "x")


def dtype_name(value: Value) -> str | None:
    """The name of a data type: ``float32`` for ``float`` and ``wp.float32``, ``vec3``, a struct's name."""
    if isinstance(value, Native):
        return {"float": "float32", "int": "int32", "bool": "bool"}.get(value.name, value.name)
    if isinstance(value, External):
        return value.name
    if isinstance(value, Class):
        return value.name
    if isinstance(value, TypeExpression):
        import ast

        return ast.unparse(value.node)
    return None


def components_of(dtype: str | None) -> int:
    """The number of trailing dimensions that a data type takes from nested lists: 1 for vectors, 2 for matrices."""
    if dtype is None:
        return 0
    if dtype.startswith(("vec", "quat", "transform", "spatial_vector")) or "vector(" in dtype:
        return 1
    if dtype.startswith(("mat", "spatial_matrix")) or "matrix(" in dtype:
        return 2
    return 0


MODELS: dict[str, Model] = {
    "warp.constant": _identity,
    "warp.static": _identity,
    "warp.types.vector": _type_expression,
    "warp.types.matrix": _type_expression,
    "warp.types.quaternion": _type_expression,
    "warp.types.transformation": _type_expression,
    "warp.quaternion": _type_expression,
    "warp.transformation": _type_expression,
}

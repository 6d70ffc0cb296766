"""Operators and comparisons on values: exact on what is known, unknown (with its sources) on the rest."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from warplint.arithmetic import BINARY
from warplint.trace.host.machine import Machine
from warplint.trace.host.memory import ArrayValue, NumpyValue
from warplint.trace.host.values import (
    Bound,
    Class,
    External,
    Function,
    Generator,
    Instance,
    Native,
    Record,
    TapeValue,
    UnknownValue,
    Value,
    Vector,
    unknown_from,
)

SPECIAL_METHODS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.BitOr: "or",
    ast.BitAnd: "and",
    ast.BitXor: "xor",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
}

COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}

_NEGATIVE = (ast.NotEq, ast.IsNot, ast.NotIn, ast.GtE, ast.LtE)

PLAIN = (int, float, complex, str, bytes, bool, type(None))
_NUMBERS = frozenset({int, float, bool})
_CHEAP = frozenset({ast.Add, ast.Sub, ast.Mult})
_CERTAIN = frozenset({int, float, str, bool, type(None), list, tuple, dict, set, frozenset, range, bytes})
_LONGEST = 100_000


def is_plain(value: Value) -> bool:
    """A number, string or None: a value that is all that it looks like."""
    return isinstance(value, PLAIN)


def binary(machine: Machine, kind: type[ast.operator], left: Value, right: Value) -> Value:
    """``left op right``."""
    if type(left) in _NUMBERS and type(right) in _NUMBERS and kind in _CHEAP:
        return BINARY[kind](left, right)
    if isinstance(left, PLAIN) and isinstance(right, PLAIN):
        return _plain(kind, left, right)
    if isinstance(left, Instance) or isinstance(right, Instance):
        numbers = member_number(left), member_number(right)
        if numbers != (left, right):
            return binary(machine, kind, *numbers)
        return _special_method(machine, kind, left, right)
    if isinstance(left, NumpyValue) or isinstance(right, NumpyValue):
        from warplint.trace.host.warp_api.arrays import use_views

        use_views(machine, left, right)
    if isinstance(left, UnknownValue) or isinstance(right, UnknownValue):
        return _with_unknown(machine, kind, left, right)
    if isinstance(left, ArrayValue) or isinstance(right, ArrayValue):
        from warplint.trace.host.warp_api.maps import array_operator

        return array_operator(machine, kind, [left, right])
    if isinstance(left, NumpyValue) or isinstance(right, NumpyValue):
        from warplint.trace.host.library.numpy import elementwise

        return elementwise(BINARY[kind], left, right)
    if isinstance(left, Vector) or isinstance(right, Vector):
        return _vector(kind, left, right)
    if isinstance(left, (list, tuple, set, frozenset, dict, str)) or isinstance(right, (list, tuple)):
        return _plain(kind, left, right)
    return unknown_from("an operation that is not modelled", left, right)


def _plain(kind: type[ast.operator], left: Any, right: Any) -> Value:
    if kind is ast.Pow and isinstance(right, int) and abs(right) > 1024:
        return UnknownValue("a large power")
    if kind is ast.Mult and any(isinstance(side, (list, tuple, str, bytes)) for side in (left, right)):
        times = right if isinstance(right, int) else left
        size = len(left) if not isinstance(left, int) else len(right)
        if isinstance(times, int) and times * size > _LONGEST:
            return UnknownValue("a long sequence")
    if kind is ast.LShift and isinstance(right, int) and right > 256:
        return UnknownValue("a large shift")
    try:
        return BINARY[kind](left, right)
    except Exception as error:
        return UnknownValue(f"{type(error).__name__} in an operation")


def _with_unknown(machine: Machine, kind: type[ast.operator], left: Value, right: Value) -> Value:
    if isinstance(left, UnknownValue) and type(right) is int and kind in (ast.Add, ast.Sub):
        return left.shifted(right if kind is ast.Add else -right)
    if isinstance(right, UnknownValue) and type(left) is int and kind is ast.Add:
        return right.shifted(left)
    if kind is ast.Mult and type(right) is int and isinstance(left, UnknownValue):
        return left.scaled(right)
    if kind is ast.Mult and type(left) is int and isinstance(right, UnknownValue):
        return right.scaled(left)
    if kind is ast.Mult and isinstance(left, (list, tuple)) and isinstance(right, UnknownValue):
        return left * min(machine.count_of(right), 64)
    if kind is ast.Mult and isinstance(right, (list, tuple)) and isinstance(left, UnknownValue):
        return right * min(machine.count_of(left), 64)
    if kind is ast.Sub and _same_base(left, right):
        return left.offset - right.offset
    if isinstance(left, ArrayValue) or isinstance(right, ArrayValue):
        from warplint.trace.host.warp_api.maps import array_operator

        return array_operator(machine, kind, [left, right])
    return unknown_from("an operation on something unknown", left, right)


def _same_base(left: Value, right: Value) -> bool:
    """Whether two unknown counts differ by a known number."""
    if not (isinstance(left, UnknownValue) and isinstance(right, UnknownValue)):
        return False
    return (left.base or left) is (right.base or right) and left.factor == right.factor


def member_number(value: Value) -> Value:
    """The number behind a member of an ``IntEnum`` or ``IntFlag``; any other value itself."""
    if isinstance(value, Instance) and value.cls.counts and isinstance(value.attributes.get("value"), int):
        return value.attributes["value"]
    return value


def _special_method(machine: Machine, kind: type[ast.operator], left: Value, right: Value) -> Value:
    name = SPECIAL_METHODS[kind]
    for receiver, other, prefix in ((left, right, ""), (right, left, "r")):
        if isinstance(receiver, Instance) and receiver.cls.find(f"__{prefix}{name}__"):
            return machine.call(machine.parts.get_attribute(machine, receiver, f"__{prefix}{name}__"), [other])
    return unknown_from("an operator of an object", left, right)


def _vector(kind: type[ast.operator], left: Value, right: Value) -> Value:
    first = left if isinstance(left, Vector) else right
    if isinstance(left, Vector) and isinstance(right, Vector) and kind in (ast.Add, ast.Sub):
        pairs = zip(left.components, right.components, strict=False)
        return Vector(left.type, tuple(_plain(kind, a, b) for a, b in pairs))
    if isinstance(left, Vector) and isinstance(right, (int, float)) and kind in (ast.Mult, ast.Div):
        return Vector(left.type, tuple(_plain(kind, a, right) for a in left.components))
    if isinstance(right, Vector) and isinstance(left, (int, float)) and kind is ast.Mult:
        return Vector(right.type, tuple(_plain(kind, left, b) for b in right.components))
    return unknown_from(f"arithmetic with {first.type}", left, right)


def compare(machine: Machine, kind: type[ast.cmpop], left: Value, right: Value, counting: bool = False) -> Value:
    """``left op right`` as True, False or unknown. ``counting``: unknown counts stand for their rounds."""
    if type(left) in _NUMBERS and type(right) in _NUMBERS and kind in COMPARE:
        return COMPARE[kind](left, right)
    if kind in (ast.Is, ast.IsNot):
        same = _identical(left, right)
        if same is None:
            return _undecided(kind, left, right)
        return same if kind is ast.Is else not same
    if kind in (ast.In, ast.NotIn):
        inside = _contains(machine, left, right)
        if inside is None:
            return _undecided(kind, left, right)
        return inside if kind is ast.In else not inside
    if isinstance(left, Instance) or isinstance(right, Instance):
        left, right = member_number(left), member_number(right)
    if isinstance(left, UnknownValue) or isinstance(right, UnknownValue):
        return _compare_unknown(machine, kind, left, right, counting)
    if isinstance(left, PLAIN) and isinstance(right, PLAIN):
        return _plain_compare(kind, left, right)
    if isinstance(left, NumpyValue) or isinstance(right, NumpyValue):
        return _undecided(kind, left, right)
    if kind in (ast.Eq, ast.NotEq):
        equal = _equal(left, right)
        if equal is None:
            return _undecided(kind, left, right)
        return equal if kind is ast.Eq else not equal
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return _plain_compare(kind, left, right)
    return _undecided(kind, left, right)


def _undecided(kind: type[ast.cmpop], left: Value, right: Value) -> UnknownValue:
    value = unknown_from("a condition", left, right)
    value.negated = kind in _NEGATIVE
    return value


def _plain_compare(kind: type[ast.cmpop], left: Any, right: Any) -> Value:
    try:
        result = COMPARE[kind](left, right)
    except Exception:
        return UnknownValue("a comparison that fails")
    return result if isinstance(result, bool) else UnknownValue("a comparison")


def _compare_unknown(machine: Machine, kind: type[ast.cmpop], left: Value, right: Value, counting: bool) -> Value:
    if _same_base(left, right):
        return _plain_compare(kind, left.offset, right.offset)
    unknown, other = (left, right) if isinstance(left, UnknownValue) else (right, left)
    known = (unknown.base or unknown) in machine.counts
    if type(other) is int and (counting or known) and kind in COMPARE:
        count = machine.count_of(unknown)
        return _plain_compare(kind, *((count, other) if unknown is left else (other, count)))
    return _undecided(kind, left, right)


def _identical(left: Value, right: Value) -> bool | None:
    if left is right:
        return True
    if isinstance(left, UnknownValue) or isinstance(right, UnknownValue):
        return None
    if left is None or right is None:
        return False
    if isinstance(left, External) and isinstance(right, External):
        return left.canonical == right.canonical
    if isinstance(left, Record) and isinstance(right, Record):
        return None
    if isinstance(left, (bool, int, str)) and isinstance(right, (bool, int, str)):
        return left == right if type(left) is type(right) else False
    return False


def _equal(left: Value, right: Value) -> bool | None:
    if left is right:
        return True
    if left is None or right is None:
        return False
    if isinstance(left, External) and isinstance(right, External):
        return left.canonical == right.canonical
    if isinstance(left, (list, tuple, dict, set, Vector)) and type(left) is type(right):
        try:
            return bool(left == right) or (None if _holds_unknown(left) or _holds_unknown(right) else False)
        except Exception:
            return None
    libraries = (External, NumpyValue, Record)
    if isinstance(left, libraries) or isinstance(right, libraries):
        return None
    wrapped = (ArrayValue, Instance, Class, Function, Bound, Native, TapeValue, Generator)
    if isinstance(left, wrapped) or isinstance(right, wrapped):
        custom = isinstance(left, Instance) and left.cls.find("__eq__") is not None
        return None if custom else False
    return False


def _holds_unknown(value: Value, depth: int = 3) -> bool:
    """Whether what is compared has a part whose equality with anything else nobody knows."""
    if isinstance(value, (UnknownValue, Record, NumpyValue)):
        return True
    if isinstance(value, Vector):
        value = value.components
    elif isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple, set)):
        return False
    return depth == 0 or any(_holds_unknown(item, depth - 1) for item in value)


def _contains(machine: Machine, item: Value, container: Value) -> bool | None:
    if isinstance(item, UnknownValue):
        return None
    if isinstance(container, str):
        return item in container if isinstance(item, str) else None
    if isinstance(container, (list, tuple, set, frozenset, dict, range)):
        try:
            if item in container:
                return True
        except TypeError:
            return None
        if isinstance(container, range):
            return False
        if isinstance(item, (External, Record, NumpyValue)):
            found = [_equal(item, each) for each in container]
            return True if True in found else None if None in found else False
        return None if any(isinstance(each, UnknownValue) for each in container) else False
    if isinstance(container, Instance) and container.cls.find("__contains__"):
        result = machine.call(machine.parts.get_attribute(machine, container, "__contains__"), [item])
        return truth(result)
    return None


def unary(machine: Machine, kind: type[ast.unaryop], operand: Value) -> Value:
    """``op operand``, except ``not``."""
    operand = member_number(operand)
    if isinstance(operand, (int, float)):
        if kind is ast.USub:
            return -operand
        if kind is ast.UAdd:
            return operand
        return ~operand if isinstance(operand, int) else UnknownValue("~ of a float")
    if isinstance(operand, NumpyValue):
        from warplint.trace.host.library.numpy import elementwise

        return elementwise(operator.mul, operand, -1) if kind is ast.USub else operand
    if isinstance(operand, ArrayValue):
        from warplint.trace.host.warp_api.maps import array_operator

        return array_operator(machine, "neg", [operand])
    if isinstance(operand, Vector) and kind is ast.USub:
        return Vector(operand.type, tuple(-c if isinstance(c, (int, float)) else c for c in operand.components))
    return unknown_from("an operation on something unknown", operand)


def truth(value: Value) -> bool | None:
    """The truth of a value, None where it is not known. A Warp array is true unless it is known to be empty."""
    if value is True or value is False:
        return value
    if type(value) in _CERTAIN:
        return bool(value)
    if isinstance(value, (UnknownValue, NumpyValue)):
        return None
    if isinstance(value, ArrayValue):
        return value.shape is None or not value.shape or value.shape[0] != 0
    if isinstance(value, Instance):
        if value.cls.counts:
            return bool(value.attributes.get("value", True))
        if value.cls.find("__bool__") or value.cls.find("__len__"):
            return None
        return None if value.cls.has_outside_base else True
    if isinstance(value, External):
        return None if value.path.startswith("warp.config") else True
    return bool(value) if isinstance(value, (list, dict)) else True

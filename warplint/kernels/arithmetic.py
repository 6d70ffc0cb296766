"""Warp's arithmetic on numbers that are known, unknown, or unknown but equal; vectors are tuples of numbers.

Numbers are rounded to single precision, as the arrays of most programs hold them: that two lengths are equal there is
what makes their difference zero.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

from warplint.kernels.contents import UNSEEN, Unseen

MOST_PARTS = 8
"""An unknown result of more unknown numbers than this equals nothing any more."""

Value = Any
"""A number, :class:`Unseen`, or a tuple of values."""


def single(number: float) -> float:
    """The nearest number of single precision."""
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def applied(name: str, arguments: list[Value], rounded: Callable[[float], float]) -> Value:
    """The value of a builtin, :data:`UNSEEN` where it is not modelled."""
    composite = _COMPOSITES.get(name)
    if composite is not None and any(isinstance(each, tuple) for each in arguments):
        return composite(arguments, rounded)
    if any(isinstance(each, tuple) for each in arguments):
        return UNSEEN
    return number(name, arguments, rounded)


def number(name: str, arguments: list[Value], rounded: Callable[[float], float]) -> Value:
    """The value of a builtin on numbers."""
    if any(isinstance(each, Unseen) for each in arguments):
        return _unseen(name, arguments)
    function = _NUMBERS.get(name)
    if function is None or not all(isinstance(each, (int, float)) for each in arguments):
        return UNSEEN
    try:
        value = function(*arguments)
    except (ArithmeticError, ValueError, TypeError):
        return UNSEEN
    return rounded(value) if isinstance(value, float) else value


def _unseen(name: str, arguments: list[Value]) -> Value:
    """What is known of a result although an operand is not: equal numbers differ by zero, zero times any is zero."""
    if name == "sub" and isinstance(arguments[0], Unseen) and arguments[0].same(arguments[1]):
        return 0.0
    if name == "mul" and any(each == 0 for each in arguments):
        return 0.0
    if name == "div" and arguments[0] == 0:
        return 0.0
    if name in ("add", "sub") and arguments[-1] == 0:
        return arguments[0]
    keys: list[object] = []
    size = 0
    for each in arguments:
        if isinstance(each, Unseen):
            if each.key is None:
                return UNSEEN
            size += each.size
            keys.append(each.key)
        else:
            keys.append(each)
    return Unseen((name, *keys), size) if size <= MOST_PARTS else UNSEEN


def _elementwise(name: str) -> Callable[[list[Value], Callable[[float], float]], Value]:
    def run(arguments: list[Value], rounded: Callable[[float], float]) -> Value:
        sizes = {len(each) for each in arguments if isinstance(each, tuple)}
        if len(sizes) != 1 or not all(isinstance(each, tuple) for each in arguments):
            return UNSEEN
        return tuple(applied(name, list(parts), rounded) for parts in zip(*arguments, strict=True))

    return run


def _multiplied(arguments: list[Value], rounded: Callable[[float], float]) -> Value:
    """A vector times a number, a matrix times a vector; products of two vectors are those of quaternions."""
    a, b = arguments
    if isinstance(a, tuple) and isinstance(b, tuple):
        if a and isinstance(a[0], tuple) and b and not isinstance(b[0], tuple):
            return tuple(_dot([row, b], rounded) for row in a)
        return UNSEEN
    whole, factor = (a, b) if isinstance(a, tuple) else (b, a)
    return tuple(applied("mul", [part, factor], rounded) for part in whole)


def _divided(arguments: list[Value], rounded: Callable[[float], float]) -> Value:
    a, b = arguments
    if isinstance(b, tuple):
        return UNSEEN
    return tuple(applied("div", [part, b], rounded) for part in a)


def _dot(arguments: list[Value], rounded: Callable[[float], float]) -> Value:
    a, b = arguments
    if not isinstance(a, tuple) or not isinstance(b, tuple) or len(a) != len(b):
        return UNSEEN
    total: Value = 0.0
    for x, y in zip(a, b, strict=True):
        total = number("add", [total, number("mul", [x, y], rounded)], rounded)
    return total


def _length(arguments: list[Value], rounded: Callable[[float], float]) -> Value:
    return number("sqrt", [_dot([arguments[0], arguments[0]], rounded)], rounded)


def _normalized(arguments: list[Value], rounded: Callable[[float], float]) -> Value:
    length = _length(arguments, rounded)
    if length == 0:
        return tuple(0.0 for _ in arguments[0])
    return tuple(number("div", [part, length], rounded) for part in arguments[0])


def _crossed(arguments: list[Value], rounded: Callable[[float], float]) -> Value:
    a, b = arguments
    if not isinstance(a, tuple) or not isinstance(b, tuple) or not len(a) == len(b) == 3:
        return UNSEEN

    def minor(i: int, j: int) -> Value:
        return number("sub", [number("mul", [a[i], b[j]], rounded), number("mul", [a[j], b[i]], rounded)], rounded)

    return (minor(1, 2), minor(2, 0), minor(0, 1))


def _truncating(a: float, b: float) -> float:
    """``/``: of integers it cuts towards zero."""
    return int(a / b) if isinstance(a, int) and isinstance(b, int) else a / b


_COMPOSITES: dict[str, Callable[[list[Value], Callable[[float], float]], Value]] = {
    **{name: _elementwise(name) for name in ("add", "sub", "neg", "pos", "abs", "min", "max", "cw_mul", "cw_div")},
    "mul": _multiplied,
    "div": _divided,
    "dot": _dot,
    "length": _length,
    "norm_l2": _length,
    "length_sq": lambda arguments, rounded: _dot([arguments[0], arguments[0]], rounded),
    "normalize": _normalized,
    "cross": _crossed,
}

_NUMBERS: dict[str, Callable[..., float]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "cw_mul": lambda a, b: a * b,
    "div": _truncating,
    "cw_div": _truncating,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: int(math.fmod(a, b)) if isinstance(a, int) and isinstance(b, int) else math.fmod(a, b),
    "pow": lambda a, b: a**b if a >= 0 or b == int(b) else math.nan,
    "neg": lambda a: -a,
    "pos": lambda a: a,
    "unot": lambda a: not a,
    "invert": lambda a: ~a,
    "bit_and": lambda a, b: a & b,
    "bit_or": lambda a, b: a | b,
    "bit_xor": lambda a, b: a ^ b,
    "lshift": lambda a, b: a << b,
    "rshift": lambda a, b: a >> b,
    "abs": abs,
    "min": min,
    "max": max,
    "clamp": lambda x, low, high: min(max(x, low), high),
    "sign": lambda a: -1.0 if a < 0 else 1.0,
    "step": lambda a: 1.0 if a < 0 else 0.0,
    "sqrt": math.sqrt,
    "cbrt": lambda a: math.copysign(abs(a) ** (1.0 / 3.0), a),
    "floor": lambda a: float(math.floor(a)),
    "ceil": lambda a: float(math.ceil(a)),
    "trunc": lambda a: float(math.trunc(a)),
    "rint": lambda a: float(round(a)),
    "round": lambda a: math.copysign(math.floor(abs(a) + 0.5), a),
    "lerp": lambda a, b, t: a * (1.0 - t) + b * t,
    "degrees": math.degrees,
    "radians": math.radians,
    **{
        name: getattr(math, name)
        for name in ("sin", "cos", "tan", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "log", "log2", "log10")
    },
    "asin": lambda a: math.asin(min(max(a, -1.0), 1.0)),
    "acos": lambda a: math.acos(min(max(a, -1.0), 1.0)),
    "erf": math.erf,
}

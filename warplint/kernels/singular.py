"""Where operations are singular: which operand must stay away from zero, and what is known to.

The table of builtins says which operands those are. Measured on Warp 1.19: ``sqrt``, ``cbrt``, ``log``, division and
powers below one have infinite derivatives at zero; ``length``, ``normalize``, ``acos`` and ``asin`` are guarded.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Sequence

from warplint.kernels.builtins import table
from warplint.kernels.values import ABSENT, CEILING, FLOOR, Sign, Value
from warplint.syntax import alike

GUARD = 1e-3
"""A positive constant up to this size, added to something, is meant to keep it away from zero."""

EVERYDAY = 80.0
"""Exponentials of numbers up to here are finite in single precision."""

KINKS = frozenset(("abs", "min", "max"))
"""Operations whose derivative jumps: where a number is zero, where two operands are equal."""


def dangerous(name: str, arguments: Sequence[Value]) -> Value | None:
    """The operand at whose zero (``exp``: overflow) the adjoint of ``name`` is not finite, if it may come there."""
    position = _operand(name, arguments)
    if position is None:
        return None
    operand = arguments[position]
    safe = bool(bounds(operand) & CEILING) if name == "exp" else operand.sign is Sign.POSITIVE
    known = not operand.tokens and not operand.threads and operand.constant != 0
    return None if safe or known or operand.type.floating is False else operand


def kinked(name: str, arguments: Sequence[Value]) -> bool:
    """Whether an operation is one of :data:`KINKS`, on real numbers; a value with itself makes none."""
    if name not in KINKS or len(arguments) > 2:
        return False
    alone = len(arguments) == 2 and arguments[0] is arguments[1]
    return not alone and all(each.type.floating is not False for each in arguments)


def _operand(name: str, arguments: Sequence[Value]) -> int | None:
    if name == "pow" and len(arguments) == 2:
        exponent = arguments[1].constant
        steep = isinstance(exponent, (int, float)) and exponent < 1
        return 0 if steep or arguments[1].active else None  # the exponent's adjoint takes the base's logarithm
    position = 0 if name == "exp" else table().singular.get(name)
    return position if position is not None and position < len(arguments) else None


def sign_of(name: str, arguments: Sequence[Value], node: ast.AST) -> Sign:
    """What is known of an operation's sign; :attr:`Sign.POSITIVE` is bounded away from zero."""
    signs = [argument.sign for argument in arguments]
    if name in ("mul", "dot") and _is_square(node):
        return max(Sign.NOT_NEGATIVE, min(signs, default=Sign.UNKNOWN))
    rule = _SIGNS.get(name)
    if rule is not None and signs:
        return rule(signs)
    if name == "add" and len(arguments) == 2:
        return max(signs) if Sign.UNKNOWN not in signs else _guarded(arguments)
    if name == "pow" and len(arguments) == 2 and arguments[1].constant in (2, 4):
        return max(signs[0], Sign.NOT_NEGATIVE)
    return Sign.UNKNOWN


def bounds(value: Value) -> int:
    """On which sides a value is bounded; a number given to the kernel from outside is taken for an everyday one."""
    number = value.constant
    if isinstance(number, (int, float)):
        return FLOOR | CEILING if abs(number) <= EVERYDAY else FLOOR if number > 0 else CEILING
    if number is ABSENT and not value.tokens and not value.threads and not value.active:
        return FLOOR | CEILING
    return value.bounds | (FLOOR if value.sign is not Sign.UNKNOWN else 0)


def bounds_of(name: str, arguments: Sequence[Value], node: ast.AST) -> int:
    """On which sides the result of an operation is bounded: :data:`FLOOR`, :data:`CEILING` or both."""
    if name == "mul" and _is_negated_square(node):
        return CEILING
    rule = _BOUNDS.get(name)
    return rule([bounds(argument) for argument in arguments]) if rule is not None and arguments else 0


def _swapped(sides: int) -> int:
    return (FLOOR if sides & CEILING else 0) | (CEILING if sides & FLOOR else 0)


def _all(sides: Sequence[int]) -> int:
    return functools.reduce(operator.and_, sides)


def _any(sides: Sequence[int]) -> int:
    return functools.reduce(operator.or_, sides)


def _both(sides: Sequence[int]) -> int:
    return FLOOR | CEILING if _all(sides) == FLOOR | CEILING else 0


def _guarded(arguments: Sequence[Value]) -> Sign:
    """``x + eps``: a small constant, or one that nobody knows, is taken for a guard."""
    for each in arguments:
        number = each.constant
        small = isinstance(number, (int, float)) and 0 < number <= GUARD
        if small or (number is ABSENT and not each.tokens and not each.threads):
            return Sign.POSITIVE
    return Sign.UNKNOWN


def _is_square(node: ast.AST) -> bool:
    operands = _operands(node)
    return len(operands) == 2 and alike(operands[0], operands[1])


def _is_negated_square(node: ast.AST) -> bool:
    """``-x * x``, which Python reads as ``(-x) * x``."""
    operands = _operands(node)
    if len(operands) != 2 or not isinstance(operands[0], ast.UnaryOp) or not isinstance(operands[0].op, ast.USub):
        return False
    return alike(operands[0].operand, operands[1])


def _operands(node: ast.AST) -> Sequence[ast.expr]:
    if isinstance(node, ast.BinOp):
        return (node.left, node.right)
    return node.args if isinstance(node, ast.Call) else ()


def _at_least_zero(signs: Sequence[Sign]) -> Sign:
    return max(Sign.NOT_NEGATIVE, min(signs))


_SIGNS: dict[str, Callable[[Sequence[Sign]], Sign]] = {
    "mul": min,
    "div": min,
    "max": max,
    "min": min,
    "clamp": lambda signs: signs[1] if len(signs) > 1 else Sign.UNKNOWN,
    "sqrt": _at_least_zero,
    "abs": lambda signs: Sign.NOT_NEGATIVE,
    "length": lambda signs: Sign.NOT_NEGATIVE,
    "length_sq": lambda signs: Sign.NOT_NEGATIVE,
    "norm_l1": lambda signs: Sign.NOT_NEGATIVE,
    "norm_l2": lambda signs: Sign.NOT_NEGATIVE,
    "exp": lambda signs: Sign.POSITIVE,
    "cosh": lambda signs: Sign.POSITIVE,
    "pos": min,
    "float": min,
}

_BOUNDS: dict[str, Callable[[Sequence[int]], int]] = {
    "min": lambda sides: _all(sides) | _any(sides) & CEILING,
    "max": lambda sides: _all(sides) | _any(sides) & FLOOR,
    "clamp": lambda sides: sides[0] | sides[1] & FLOOR | sides[2] & CEILING if len(sides) == 3 else 0,
    "neg": lambda sides: _swapped(sides[0]),
    "pos": _all,
    "float": _all,
    "add": _all,
    "sub": lambda sides: sides[0] & _swapped(sides[1]) if len(sides) == 2 else 0,
    "mul": _both,
    "abs": _both,
    "sin": lambda sides: FLOOR | CEILING,
    "cos": lambda sides: FLOOR | CEILING,
    "tanh": lambda sides: FLOOR | CEILING,
}

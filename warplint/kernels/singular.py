"""Where operations are singular: which operand must stay away from zero, and what is known to.

The table of builtins says which operands those are. Measured on Warp 1.19: ``sqrt``, ``cbrt``, ``log``, division and
powers below one have infinite derivatives at zero; ``length``, ``normalize``, ``acos`` and ``asin`` are guarded.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from warplint.kernels.builtins import table
from warplint.kernels.values import ABSENT, Sign, Value

GUARD = 1e-3
"""A positive constant up to this size, added to something, is meant to keep it away from zero."""

KINKS = frozenset(("abs", "min", "max"))
"""Operations whose derivative jumps: where a number is zero, where two operands are equal."""


def dangerous(name: str, arguments: Sequence[Value]) -> Value | None:
    """The operand at whose zero (``exp``: overflow) the adjoint of ``name`` is not finite, if it may come there."""
    position = _operand(name, arguments)
    if position is None:
        return None
    operand = arguments[position]
    safe = operand.sign is Sign.POSITIVE and name != "exp"
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


def _guarded(arguments: Sequence[Value]) -> Sign:
    """``x + eps``: a small constant, or one that nobody knows, is taken for a guard."""
    for each in arguments:
        number = each.constant
        small = isinstance(number, (int, float)) and 0 < number <= GUARD
        if small or (number is ABSENT and not each.tokens and not each.threads):
            return Sign.POSITIVE
    return Sign.UNKNOWN


def _is_square(node: ast.AST) -> bool:
    operands = (
        [node.left, node.right] if isinstance(node, ast.BinOp) else node.args if isinstance(node, ast.Call) else []
    )
    return len(operands) == 2 and ast.dump(operands[0]) == ast.dump(operands[1])


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

"""Cheap questions to a function's ``ast``, so that most kernels are never analysed."""

from __future__ import annotations

import ast

_MULTIPLYING = (ast.Mult, ast.Div, ast.MatMult, ast.Pow, ast.Mod, ast.FloorDiv)


def has_inplace_multiply(node: ast.FunctionDef) -> bool:
    """Whether a ``*=``, ``/=`` or the like on an element or component stands in the function itself.

    Without one, in the kernel and the functions it calls, the summary has no fault of the multiplying kinds.
    """
    return any(_multiplies_in_place(statement) for statement in _statements(node.body))


def _multiplies_in_place(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.AugAssign)
        and isinstance(node.target, (ast.Subscript, ast.Attribute))
        and isinstance(node.op, _MULTIPLYING)
    )


def _statements(body: list[ast.stmt]) -> list[ast.stmt]:
    """All statements of a block, those of inner blocks too; expressions are not walked."""
    found: list[ast.stmt] = []
    pending = list(body)
    while pending:
        statement = pending.pop()
        found.append(statement)
        for block in ("body", "orelse"):
            pending.extend(getattr(statement, block, ()))
    return found

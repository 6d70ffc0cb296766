"""Cheap questions to a function's ``ast``, so that most kernels are never analysed."""

from __future__ import annotations

import ast

from warplint.kernels.liveness import facts_of

_MULTIPLYING = (ast.Mult, ast.Div, ast.MatMult, ast.Pow, ast.Mod, ast.FloorDiv)


def has_fault_trigger(node: ast.FunctionDef) -> bool:
    """Whether the function's own statements could make a fault of the kinds that are told of kernels nobody launches.

    Those are in-place multiplication, stores to parts of locals, and loops that carry a local. Without a trigger, in
    the kernel and the functions it calls, the summary has no such fault.
    """
    statements = _statements(node.body)
    targets = [target for each in statements for target in _targets(each)]
    own = {target.id for target in targets if isinstance(target, ast.Name)}
    return (
        any(map(_multiplies_in_place, statements))
        or any(isinstance(each, (ast.For, ast.While)) and facts_of(each).carried & own for each in statements)
        or any(_root(target) in own for target in targets if isinstance(target, (ast.Subscript, ast.Attribute)))
    )


def _multiplies_in_place(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.AugAssign)
        and isinstance(node.target, (ast.Subscript, ast.Attribute))
        and isinstance(node.op, _MULTIPLYING)
    )


def _targets(node: ast.stmt) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, (ast.AugAssign, ast.AnnAssign)) else []


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


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

"""A kernel that adds to one number, made into one that stores what each of its threads adds.

A sum in single precision swallows what is small beside it; the terms themselves do not. So the kernel's text is changed
in one place: what it added to the array goes into an array of its own, at the thread's own index.
"""

from __future__ import annotations

import ast
from typing import Any

import warp

from warplint.dataclass import dataclass
from warplint.verify.engine.kernels.rewriting import NotRewritable, defined, module_like, names_of, source_of

wp: Any = warp

ADDED = "_added"
"""The parameter that takes the contributions."""


@dataclass(frozen=True)
class Contributing:
    """The changed kernel: its parameters are those of the kernel and one more, an array with an axis a thread index."""

    kernel: Any
    axes: int


def contributing(kernel: Any, parameter: str) -> Contributing:
    """The kernel with what it adds to ``parameter`` stored apart.

    Raises:
        NotRewritable: see there.
    """
    tree, function = source_of(kernel)
    index = _thread_index(function)
    function.body = [_Apart(parameter, index).visit(statement) for statement in function.body]
    uses = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == parameter]
    if uses:
        raise NotRewritable(f"`{parameter}` is not only added to")
    types = {str(argument.label): argument.type for argument in kernel.adj.args}
    function.decorator_list, function.returns = [], None
    function.name = "contributing"
    for argument in function.args.args:
        argument.annotation = ast.Name(f"_type_{argument.arg}", ast.Load())
    function.args.args.append(ast.arg(ADDED, ast.Name(f"_type_{ADDED}", ast.Load())))
    types[ADDED] = wp.array(dtype=types[parameter].dtype, ndim=len(index))
    names = {**names_of(kernel.func), **{f"_type_{name}": kind for name, kind in types.items()}}
    made = wp.Kernel(
        func=defined(ast.unparse(ast.fix_missing_locations(tree)), "contributing", names),
        key="contributing",
        module=module_like(kernel, "contributing"),
        options={"enable_backward": False},
    )
    return Contributing(made, len(index))


def _thread_index(function: ast.FunctionDef) -> tuple[str, ...]:
    """The names that the thread's index is kept in, all through the kernel."""
    found: list[tuple[str, ...]] = []
    for statement in function.body:
        if isinstance(statement, ast.Assign) and _is_call_of(statement.value, "tid"):
            target = statement.targets[0]
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            found.append(tuple(name.id for name in names if isinstance(name, ast.Name)))
    if len(found) != 1 or not found[0]:
        raise NotRewritable("its thread index has no name")
    stored = [n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    if any(stored.count(name) != 1 for name in found[0]):
        raise NotRewritable("its thread index changes")
    return found[0]


def _is_call_of(value: ast.AST, name: str) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == name


class _Apart(ast.NodeTransformer):
    """Turns ``wp.atomic_add(loss, 0, e)`` and ``loss[0] += e`` into an addition to the thread's own element."""

    def __init__(self, parameter: str, index: tuple[str, ...]) -> None:
        self._parameter = parameter
        self._index = index

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        call = node.value
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and len(call.args) >= 3):
            return node
        if call.func.attr in ("atomic_add", "atomic_sub") and self._is_it(call.args[0]):
            return self._added(call.func.attr, call.args[-1])
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        if not (isinstance(node.target, ast.Subscript) and self._is_it(node.target.value)):
            return node
        if isinstance(node.op, (ast.Add, ast.Sub)):
            return self._added("atomic_add" if isinstance(node.op, ast.Add) else "atomic_sub", node.value)
        return node

    def _is_it(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id == self._parameter

    def _added(self, how: str, value: ast.expr) -> ast.Expr:
        arguments = [ast.Name(name, ast.Load()) for name in (ADDED, *self._index)]
        function = ast.Attribute(ast.Name("_wp", ast.Load()), how, ast.Load())
        return ast.Expr(ast.Call(function, [*arguments, value], []))

"""A kernel in double precision: the same text with every number of single precision made one of double.

What a sum in single precision swallows, the adjoint in double shows; it is made from the same text.
Kernels that call functions of the user's, take structs or use what Warp has in single precision only stay as they are.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from typing import Any

import warp

from warplint.verify.engine.kernels.rewriting import NotRewritable, defined, module_like, names_of, source_of
from warplint.verify.engine.warp_types import doubled, is_single, is_users_function

wp: Any = warp

NAME = "in_double"


def in_double(kernel: Any) -> Any:
    """The kernel in double precision, with an adjoint; not built yet.

    Raises:
        NotRewritable: see there.
    """
    tree, function = source_of(kernel)
    names = names_of(kernel.func)
    types = {str(argument.label): _doubled(argument.type) for argument in kernel.adj.args}
    rewriter = _InDouble(names, _locals_of(function))
    function.body = [rewriter.visit(statement) for statement in function.body]
    function.decorator_list, function.returns, function.name = [], None, NAME
    for argument in function.args.args:
        argument.annotation = ast.Name(f"_type_{argument.arg}", ast.Load())
    known = {**names, **rewriter.types, **{f"_type_{name}": kind for name, kind in types.items()}}
    return wp.Kernel(
        func=defined(ast.unparse(ast.fix_missing_locations(tree)), NAME, known),
        key=NAME,
        module=module_like(kernel, NAME),
        options={"enable_backward": True},
    )


def _doubled(kind: Any) -> Any:
    try:
        return doubled(kind)
    except TypeError as error:
        raise NotRewritable(str(error)) from error


def _locals_of(function: ast.FunctionDef) -> frozenset[str]:
    """The names that mean something of the kernel's own."""
    stored = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return frozenset(stored | {argument.arg for argument in function.args.args})


class _InDouble(ast.NodeTransformer):
    """Makes numbers and types of single precision those of double; ``types`` are the names that it uses for them."""

    def __init__(self, names: Mapping[str, Any], own: frozenset[str]) -> None:
        self._names = names
        self._own = own
        self.types: dict[str, Any] = {}

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return _as_double(node) if isinstance(node.value, float) else node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._meant(node) if isinstance(node.ctx, ast.Load) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        meant = self._meant(node)
        return self.generic_visit(node) if meant is node and self._value(node) is None else meant

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function = self._value(node.func)
        if getattr(function, "__name__", "") == "static" or is_users_function(function):
            raise NotRewritable("it calls a function of the user's, or `wp.static`")
        return self.generic_visit(node)

    def _meant(self, node: ast.Name | ast.Attribute) -> ast.AST:
        """What stands for a name from outside the kernel."""
        value = self._value(node)
        if isinstance(value, float):
            return _as_double(node)
        if value is float or is_single(value):
            name = f"_double_{len(self.types)}"
            self.types[name] = _doubled(value)
            return ast.Name(name, ast.Load())
        if is_single(type(value)):
            raise NotRewritable("it uses a constant of single precision")
        return node

    def _value(self, node: ast.AST) -> Any:
        """The value of a name, or of an attribute of a module or object, outside the kernel; None where unknown."""
        if isinstance(node, ast.Name):
            if node.id in self._own:
                return None
            return self._names.get(node.id, getattr(builtins, node.id, None))
        if isinstance(node, ast.Attribute):
            owner = self._value(node.value)
            return getattr(owner, node.attr, None) if owner is not None else None
        return None


def _as_double(node: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name("_wp", ast.Load()), "float64", ast.Load()), [node], [])

"""A long program in small: the numbers that say how often its loops run, made small and kept in order.

A run that used up its steps in loops of thousands of rounds says nothing about what comes behind them. The same program
with fewer frames, steps and substeps is a program as well, and does in each round what the long one does; so it is run
in its place. A number that a kernel reads stays what it is, since it decides what the kernel is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import combinations_with_replacement

from warplint.dataclass import dataclass

_FEWEST = 3
"""What happens from one round to the next shows in three of them."""
_GAP = 4
"""Numbers that lie as close together or closer keep their distance."""
_EVERYDAY = 16
"""Numbers up to here stand for many things in one program."""
_KERNELS = frozenset({"kernel", "func", "func_native", "func_grad", "func_replay"})
_SEEN_THROUGH = frozenset(
    {"range", "trange", "int", "round", "ceil", "floor", "min", "max", "abs", "enumerate", "list", "tqdm", "constant"}
)
"""Functions whose arguments decide their result as an expression's parts do."""


def small_numbers(trees: Sequence[ast.Module], counts: Iterable[ast.expr]) -> Mapping[ast.Constant, int]:
    """The literals that decide the expressions ``counts``, and what to put in their place; empty where none is large.

    Literals are found by name, through assignments, defaults, arguments of calls and of ``add_argument``. A number
    that is no everyday one means the same wherever it stands: ``states[4800]`` behind ``range(4800)``.
    """
    definitions = _Definitions()
    for tree in trees:
        definitions.collect(tree)
    fixed = set(definitions.read_by_kernels())
    deciding = {literal for literal in definitions.deciding(counts) if literal not in fixed and _count(literal) > 0}
    small = _shrunk({_count(literal) for literal in deciding})
    same = {literal for literal in definitions.literals if _count(literal) > _EVERYDAY and literal not in fixed}
    return {literal: small[_count(literal)] for literal in deciding | same if _count(literal) in small}


def _count(literal: ast.Constant) -> int:
    """The number that a literal is, where it is a large one; else 0."""
    value = literal.value
    return value if isinstance(value, int) and not isinstance(value, bool) and value > _FEWEST + 1 else 0


def _shrunk(values: Iterable[int]) -> Mapping[int, int]:
    """Smaller numbers in the same order: near ones stay as near, even ones even, odd ones odd, products products."""
    small: dict[int, int] = {}
    products: list[tuple[int, int, int]] = []
    previous = 0
    for value in sorted(values):
        factors = next(((a, b) for a, b in combinations_with_replacement(small, 2) if abs(value - a * b) <= _GAP), None)
        if factors is not None:
            products.append((value, *factors))
            continue
        taken = small[previous] + min(value - previous, _GAP) if previous else _FEWEST + (value + 1) % 2
        small[value] = min(taken + (taken - value) % 2, value)
        previous = value
    return small | {value: small[a] * small[b] + value - a * b for value, a, b in products}


@dataclass
class _Definitions:
    """What names are given in some files: every expression by the bare name that it is given to."""

    values: dict[str, list[ast.expr]] = field(default_factory=dict)
    parameters: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)
    """The positional parameters of functions by the function's (or, for ``__init__``, the class's) name."""
    kernels: list[ast.FunctionDef | ast.AsyncFunctionDef] = field(default_factory=list)
    literals: list[ast.Constant] = field(default_factory=list)
    """Those outside of kernels."""

    def collect(self, tree: ast.Module) -> None:
        """Take in a file."""
        nodes = list(_host_nodes(tree))
        self.literals += [node for node in nodes if isinstance(node, ast.Constant)]
        for node in nodes:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self._collect_definition(node)
        for node in nodes:
            self._collect_values(node)

    def _collect_definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        if isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and member.name == "__init__":
                    self.parameters.setdefault(node.name, []).append(_names(member)[1:])
            return
        if _is_kernel(node):
            self.kernels.append(node)
            return
        names = _names(node)
        self.parameters.setdefault(node.name, []).append(names[1:] if names[:1] in (("self",), ("cls",)) else names)
        arguments = node.args
        defaults = zip(reversed((*arguments.posonlyargs, *arguments.args)), reversed(arguments.defaults), strict=False)
        for parameter, default in (*defaults, *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)):
            self._give(parameter.arg, default)

    def _collect_values(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._give_target(target, node.value)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
            self._give(_last_name(node.target), node.value)
        elif isinstance(node, ast.Call):
            self._collect_call(node)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                self._give(_text(key), value)

    def _give_target(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
            for part, item in zip(target.elts, value.elts, strict=False):
                self._give_target(part, item)
        else:
            self._give(_last_name(target) or _text(getattr(target, "slice", None)), value)

    def _collect_call(self, node: ast.Call) -> None:
        name = _last_name(node.func)
        if name == "add_argument":
            options = [_text(argument).lstrip("-").replace("-", "_") for argument in node.args]
            for keyword in node.keywords:
                for option in options if keyword.arg == "default" else ():
                    self._give(option, keyword.value)
            return
        for keyword in node.keywords:
            self._give(keyword.arg or "", keyword.value)
        for parameters in self.parameters.get(name, ()):
            for parameter, argument in zip(parameters, node.args, strict=False):
                self._give(parameter, argument)

    def _give(self, name: str, value: ast.expr | None) -> None:
        if name and value is not None:
            self.values.setdefault(name, []).append(value)

    def read_by_kernels(self) -> Iterator[ast.Constant]:
        """The literals that decide what kernels read from outside."""
        for kernel in self.kernels:
            own = set(_names(kernel))
            names = [item for item in ast.walk(kernel) if isinstance(item, ast.Name)]
            own |= {name.id for name in names if isinstance(name.ctx, ast.Store)}
            yield from self.deciding(
                item
                for item in ast.walk(kernel)
                if isinstance(item, (ast.Name, ast.Attribute)) and _root_name(item) not in own
            )

    def deciding(self, counts: Iterable[ast.expr]) -> Iterator[ast.Constant]:
        """The literals that the expressions come from."""
        todo, seen = list(counts), set[str]()
        while todo:
            for part in _parts(todo.pop()):
                if isinstance(part, ast.Constant):
                    yield part
                elif (name := _last_name(part) or _text(getattr(part, "slice", None))) and name not in seen:
                    seen.add(name)
                    todo.extend(self.values.get(name, ()))


def _is_kernel(node: ast.AST) -> bool:
    decorators = node.decorator_list if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else ()
    return any(_last_name(decorator) in _KERNELS for decorator in decorators)


def _host_nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """All nodes but those in the bodies of kernels."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        yield node
        if not _is_kernel(node):
            todo.extend(ast.iter_child_nodes(node))


def _parts(expression: ast.expr) -> Iterator[ast.expr]:
    """The names and literals whose values decide an expression's."""
    if isinstance(expression, (ast.Name, ast.Attribute, ast.Constant, ast.Subscript)):
        yield expression
    elif isinstance(expression, ast.Call):
        if _last_name(expression.func) in _SEEN_THROUGH:
            for argument in expression.args:
                yield from _parts(argument)
    elif isinstance(expression, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp)):
        for child in ast.iter_child_nodes(expression):
            if isinstance(child, ast.expr):
                yield from _parts(child)


def _names(node: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[str, ...]:
    return tuple(parameter.arg for parameter in (*node.args.posonlyargs, *node.args.args))


def _last_name(node: ast.AST) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _root_name(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return getattr(node, "id", "")


def _text(node: ast.AST | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""

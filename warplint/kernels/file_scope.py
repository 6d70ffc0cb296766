"""The names that a kernel sees, from its file's text alone: for kernels known only by file and line.

What a running interpretation knows of a kernel's names is :mod:`warplint.trace.host.kernel_scope`; here nothing has
run, so that a variable of an enclosing function is a constant that nobody knows.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator

from warplint.arithmetic import BINARY
from warplint.kernels.source import (
    PYTHON_BUILTINS,
    Adjoint,
    Builtin,
    Constant,
    Function,
    Meaning,
    Struct,
    TypeAlias,
    Unknown,
)
from warplint.names import ImportTable, dotted, public_name
from warplint.project import Module, Project
from warplint.source import Unreadable
from warplint.syntax import walk

_FOLDABLE = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.Name, ast.Attribute, ast.Call, ast.Tuple, ast.List)
_DEPTH = 12


class FileScope:
    """The globals of a file and, for a ``line``, the functions and classes that enclose it."""

    def __init__(self, project: Project, module: Module, line: int | None = None) -> None:
        self._project = project
        self._module = module
        self._known: dict[str, Meaning | None] = {}
        self._scopes: list[tuple[dict[str, ast.AST], ImportTable]] = []
        try:
            body = module.tree.body
        except Unreadable:
            body = []
        self._scopes.append((_definitions(body), module.imports if body else ImportTable({})))
        for owner in _enclosing(body, line):
            table = ImportTable.of(owner.body, module.name, module.is_package)
            names: dict[str, ast.AST] = {}
            if isinstance(owner, (ast.FunctionDef, ast.AsyncFunctionDef)):
                names.update((argument.arg, argument) for argument in _parameters(owner))
            names.update(_definitions(owner.body))
            self._scopes.insert(0, (names, table))

    def resolve(self, dotted_name: str) -> Meaning | None:
        """See :meth:`warplint.kernels.source.Scope.resolve`."""
        return self._resolve(dotted_name, _DEPTH)

    def _resolve(self, name: str, depth: int) -> Meaning | None:
        if name not in self._known:
            self._known[name] = None
            self._known[name] = self._look_up(name, depth)
        return self._known[name]

    def _look_up(self, name: str, depth: int) -> Meaning | None:
        if depth <= 0:
            return None
        head, _, rest = name.partition(".")
        for names, imports in self._scopes:
            if head in names:
                return self._meaning(names[head], head, rest, depth)
            path = imports.meaning(name)
            if path is not None:
                return self._outside(path, depth)
        for star in self._scopes[-1][1].stars:
            found = self._from_star(star, name, depth)
            if found is not None:
                return found
        return Builtin(name) if name in PYTHON_BUILTINS else None

    def _from_star(self, star: str, name: str, depth: int) -> Meaning | None:
        if star == "warp":
            return None if name in PYTHON_BUILTINS else Builtin(name)
        module = self._project.find(star, self._module)
        return None if module is None else scope_of(self._project, module)._resolve(name, depth - 1)

    def _outside(self, path: str, depth: int) -> Meaning | None:
        """The meaning of an absolute dotted path: Warp's, another file's, or a constant of ``math``."""
        if path.startswith("warp."):
            parts = path.split(".")
            if parts[1] not in ("tests", "examples", "fem"):
                return Builtin(public_name(path).rpartition(".")[2])
        if path.startswith(("math.", "numpy.")):
            value = getattr(math, path.rpartition(".")[2], None)
            return Constant(value) if isinstance(value, float) else None
        parts = path.split(".")
        for length in range(len(parts) - 1, 0, -1):
            module = self._project.find(".".join(parts[:length]), self._module)
            if module is not None and module is not self._module:
                return scope_of(self._project, module)._resolve(".".join(parts[length:]), depth - 1)
        return None

    def _meaning(self, node: ast.AST, name: str, rest: str, depth: int) -> Meaning | None:
        if isinstance(node, ast.arg):
            return Constant(Unknown.VALUE)
        if isinstance(node, ast.FunctionDef):
            return self._function(node) if not rest else None
        if isinstance(node, ast.ClassDef):
            return self._class(node, rest, depth)
        if isinstance(node, ast.expr):
            return self._value(node, rest, depth)
        return None

    def _function(self, node: ast.FunctionDef) -> Function:
        others = [other for other in self._same_name(node.name) if other is not node]
        return Function(
            node=node,
            path=self._module.path,
            scope=self,
            adjoint=self._adjoint(node),
            replay=self._custom(node.name, "func_replay"),
            gradient=self._custom(node.name, "func_grad"),
            overloads=tuple(Function(other, self._module.path, self, lines=self._module.lines) for other in others),
            lines=self._module.lines,
        )

    def _same_name(self, name: str) -> Iterator[ast.FunctionDef]:
        for statement in self._module.tree.body:
            if isinstance(statement, ast.FunctionDef) and statement.name == name and self._decorator(statement, "func"):
                yield statement

    def _adjoint(self, node: ast.FunctionDef) -> Adjoint:
        native = self._decorator(node, "func_native")
        if native is not None:
            given = isinstance(native, ast.Call) and (
                len(native.args) > 1 or any(keyword.arg == "adj_snippet" for keyword in native.keywords)
            )
            return Adjoint.NATIVE if given else Adjoint.NATIVE_MISSING
        return Adjoint.CUSTOM if self._custom(node.name, "func_grad") is not None else Adjoint.GENERATED

    def _custom(self, name: str, kind: str) -> Function | None:
        """The function that ``@wp.func_grad(name)`` or ``@wp.func_replay(name)`` decorates."""
        for statement in walk(self._module.tree):
            if isinstance(statement, ast.FunctionDef):
                decorator = self._decorator(statement, kind)
                if isinstance(decorator, ast.Call) and decorator.args and dotted(decorator.args[0]) == name:
                    return Function(statement, self._module.path, self, lines=self._module.lines)
        return None

    def _decorator(self, node: ast.FunctionDef | ast.ClassDef, kind: str) -> ast.expr | None:
        for decorator in node.decorator_list:
            callee = decorator.func if isinstance(decorator, ast.Call) else decorator
            for _, imports in self._scopes:
                if imports.meaning_of(callee) == f"warp.{kind}":
                    return decorator
        return None

    def _class(self, node: ast.ClassDef, rest: str, depth: int) -> Meaning | None:
        if not rest:
            return Struct(node, self._module.path, self) if self._decorator(node, "struct") is not None else None
        names = _definitions(node.body)
        head, _, tail = rest.partition(".")
        if tail in ("", "value") and isinstance(names.get(head), ast.expr):
            return self._value(names[head], "", depth)  # type: ignore[arg-type]
        member = names.get(head)
        return self._meaning(member, head, tail, depth) if member is not None else None

    def _value(self, node: ast.expr, rest: str, depth: int) -> Meaning | None:
        if rest:
            path = dotted(node)
            return self._resolve(f"{path}.{rest}", depth - 1) if path is not None else Constant(Unknown.VALUE)
        path = dotted(node)
        if path is not None:
            return self._resolve(path, depth - 1) or Constant(Unknown.VALUE)
        if isinstance(node, ast.Call):
            callee = dotted(node.func)
            meaning = self._resolve(callee, depth - 1) if callee is not None else None
            if isinstance(meaning, Builtin):
                if meaning.name == "constant" and node.args:
                    return self._value(node.args[0], "", depth - 1)
                if meaning.name in ("vector", "matrix", "quaternion", "transformation"):
                    return TypeAlias(node, self)
        return Constant(self._fold(node, depth))

    def _fold(self, node: ast.expr, depth: int) -> object:
        """The number that a module-level expression has, where it is plain arithmetic."""
        try:
            return self._number(node, depth)
        except (ValueError, TypeError, ArithmeticError):
            return Unknown.VALUE

    def _number(self, node: ast.expr, depth: int) -> object:
        if depth <= 0 or not isinstance(node, _FOLDABLE):
            raise ValueError
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, (ast.Tuple, ast.List)):
            return tuple(self._number(item, depth - 1) for item in node.elts)
        if isinstance(node, (ast.Name, ast.Attribute)):
            meaning = self._resolve(dotted(node) or "", depth - 1)
            if isinstance(meaning, Constant) and meaning.value is not Unknown.VALUE:
                return meaning.value
            raise ValueError
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            operand = self._number(node.operand, depth - 1)
            return -operand if isinstance(node.op, ast.USub) else operand  # type: ignore[operator]
        if isinstance(node, ast.BinOp):
            left, right = self._number(node.left, depth - 1), self._number(node.right, depth - 1)
            if isinstance(node.op, ast.Pow) and isinstance(right, int) and abs(right) > 64:
                raise ValueError
            return BINARY[type(node.op)](left, right)
        if isinstance(node, ast.Call) and len(node.args) == 1 and dotted(node.func) in ("int", "float"):
            value = self._number(node.args[0], depth - 1)
            return int(value) if dotted(node.func) == "int" else float(value)  # type: ignore[call-overload,arg-type]
        raise ValueError


def scope_of(project: Project, module: Module) -> FileScope:
    """The scope of a file's globals, one per file and project."""
    known = project.memo.get(("scope", module))
    if not isinstance(known, FileScope):
        known = project.memo["scope", module] = FileScope(project, module)
    return known


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.arg]:
    arguments = node.args
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from (argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None)


Enclosing = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _enclosing(body: Iterable[ast.stmt], line: int | None) -> list[Enclosing]:
    """The functions around the definition at ``line``, outermost first (class bodies are no scope of their methods)."""
    found: list[Enclosing] = []
    if line is None:
        return found
    todo = list(body)
    while todo:
        node = todo.pop()
        end = getattr(node, "end_lineno", None) or 0
        if not node.lineno <= line <= end:
            continue
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.lineno < line:
            inner = any(isinstance(child, (ast.FunctionDef, ast.ClassDef)) for child in walk(node) if child is not node)
            if inner:
                found.append(node)
            todo = list(node.body)
            continue
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                todo.append(child)
    return found


def _definitions(body: Iterable[ast.stmt]) -> dict[str, ast.AST]:
    """What a body binds: functions, classes, and names assigned exactly once (others change)."""
    found: dict[str, ast.AST] = {}
    changing: set[str] = set()
    for statement in _statements(body):
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            found[statement.name] = statement
            continue
        targets: list[ast.expr] = []
        value: ast.expr | None = None
        if isinstance(statement, ast.Assign):
            targets, value = statement.targets, statement.value
        elif isinstance(statement, ast.AnnAssign):
            targets, value = [statement.target], statement.value
        elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            changing.add(statement.target.id)
        for target in targets:
            for name, item in _bound(target, value):
                if name in found and isinstance(found[name], ast.expr):
                    changing.add(name)
                if item is not None:
                    found[name] = item
    for name in changing:
        found[name] = ast.arg(name)
    return found


def _bound(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple):
        parts = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts) else None
        for position, part in enumerate(target.elts):
            yield from _bound(part, parts[position] if parts is not None else ast.Constant(Ellipsis))


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, (ast.If, ast.Try, ast.With, ast.For, ast.While)):
            for block in (statement.body, getattr(statement, "orelse", ()), getattr(statement, "finalbody", ())):
                yield from _statements(block)

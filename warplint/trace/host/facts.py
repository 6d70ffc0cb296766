"""What one look at a function's body tells, kept for as long as the project lives."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import TypeGuard

from warplint.dataclass import dataclass
from warplint.syntax import walk

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)

EXITS = frozenset({"exit", "quit", "skip", "fail", "skipTest", "abort", "_exit"})
"""Calls after which nothing runs: an arm that ends in one is not a path worth following."""

_REPLAY = frozenset({"capture_launch"})
_GROWING = frozenset({"append", "extend", "insert", "appendleft", "add", "update", "setdefault"})
_SCALAR = re.compile(r"bool|int(?:8|16|32|64)?|uint(?:8|16|32|64)|float(?:16|32|64)?")
_TYPE_VARIABLES = frozenset({"Any", "Scalar", "Float", "Int"})


@dataclass(frozen=True)
class FunctionFacts:
    """``global_names`` and ``nonlocal_names`` as declared; ``yields``: it is a generator; ``free`` names are read."""

    global_names: frozenset[str]
    nonlocal_names: frozenset[str]
    yields: bool


@dataclass(frozen=True)
class CallShape:
    """What the text of a call tells: ``special`` names of functions that look at the frame; what it is made for.

    ``asserts``: an assertion about its arguments (``assert_np_equal``, ``test.assertTrue``). ``shows``: a ``print``.
    ``starred``: items of a sequence are among the arguments.
    """

    special: str | None
    asserts: bool
    shows: bool
    starred: bool


_SPECIAL = frozenset({"super", "locals", "vars", "globals"})


def call_shape(node: ast.Call) -> CallShape:
    """See :class:`CallShape`."""
    function = node.func
    own = function.id if isinstance(function, ast.Name) else ""
    name = function.attr if isinstance(function, ast.Attribute) else own
    return CallShape(
        special=own if own in _SPECIAL and not node.args else None,
        asserts=name.startswith("assert"),
        shows=own == "print",
        starred=any(isinstance(argument, ast.Starred) for argument in node.args),
    )


@dataclass(frozen=True)
class Signature:
    """The names of a function's parameters."""

    positional: tuple[str, ...]
    keyword_only: tuple[str, ...]
    rest: str | None
    keywords: str | None


def signature_of(node: FunctionNode) -> Signature:
    """See :class:`Signature`."""
    arguments = node.args
    return Signature(
        tuple(argument.arg for argument in (*arguments.posonlyargs, *arguments.args)),
        tuple(argument.arg for argument in arguments.kwonlyargs),
        arguments.vararg.arg if arguments.vararg is not None else None,
        arguments.kwarg.arg if arguments.kwarg is not None else None,
    )


PLAIN_FUNCTION = FunctionFacts(frozenset(), frozenset(), False)
"""A function without ``global``, ``nonlocal`` and ``yield``."""

_LINE_END = re.compile(r"\r\n|\r|\n")
TELLING = ("yield", "global", "nonlocal")
"""What may make a function other than plain."""

STATIC = ("static",)
"""What stands where a kernel's expression is evaluated at its declaration."""


def lines_with(text: str, words: tuple[str, ...]) -> list[int]:
    """The numbers of the lines in which one of the words occurs, alone or in another word: a screen, and a fast one."""
    starts: list[int] = []
    for word in words:
        at = text.find(word)
        while at >= 0:
            starts.append(at)
            at = text.find(word, at + len(word))
    return _lines_of(text, sorted(starts))


def line_numbers(text: str, pattern: re.Pattern[str]) -> list[int]:
    """The numbers of the lines in which a pattern occurs (lines as Python counts them)."""
    return _lines_of(text, [match.start() for match in pattern.finditer(text)])


def _lines_of(text: str, positions: Iterable[int]) -> list[int]:
    """The numbers of the lines at rising positions."""
    numbers: list[int] = []
    line, start = 1, 0
    for position in positions:
        line += text.count("\n", start, position) if "\r" not in text else len(_LINE_END.findall(text, start, position))
        start = position
        if not numbers or numbers[-1] != line:
            numbers.append(line)
    return numbers


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a body, without those of nested functions and classes (but the nested definitions themselves)."""
    body = getattr(node, "body", None)
    todo: list[ast.AST] = list(body) if isinstance(body, list) else [body] if isinstance(body, ast.AST) else []
    while todo:
        item = todo.pop()
        yield item
        if not isinstance(item, _SCOPES):
            todo.extend(ast.iter_child_nodes(item))


def function_facts(node: FunctionNode) -> FunctionFacts:
    """See :class:`FunctionFacts`."""
    global_names: set[str] = set()
    nonlocal_names: set[str] = set()
    yields = False
    for item in own_nodes(node):
        if isinstance(item, ast.Global):
            global_names.update(item.names)
        elif isinstance(item, ast.Nonlocal):
            nonlocal_names.update(item.names)
        elif isinstance(item, (ast.Yield, ast.YieldFrom)):
            yields = True
    return FunctionFacts(frozenset(global_names), frozenset(nonlocal_names), yields)


def free_names(node: ast.FunctionDef) -> frozenset[str]:
    """The names that a kernel's body reads and does not assign, and that are not its parameters."""
    read: set[str] = set()
    bound = {argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    for statement in node.body:
        for item in walk(statement):
            if isinstance(item, ast.Name):
                (read if isinstance(item.ctx, ast.Load) else bound).add(item.id)
    return frozenset(read - bound)


def names_bound_otherwise(node: ast.FunctionDef) -> frozenset[str]:
    """The names of plain numbers that a kernel binds, but not by an assignment: scalar parameters, loop variables."""
    parameters = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    bound = {parameter.arg for parameter in parameters if _is_scalar(parameter.annotation)}
    read, assigned = set(), set()
    for statement in node.body:
        for item in walk(statement):
            if isinstance(item, ast.For) and isinstance(item.target, ast.Name):
                bound.add(item.target.id)
            elif isinstance(item, ast.Assign):
                assigned |= {name.id for target in item.targets for name in walk(target) if _is_stored(name)}
            elif isinstance(item, ast.Name):
                read.add(item.id)
    return frozenset(bound & read - assigned)


def _is_stored(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _is_scalar(annotation: ast.expr | None) -> bool:
    """``int``, ``wp.float32`` …"""
    name = annotation.attr if isinstance(annotation, ast.Attribute) else getattr(annotation, "id", "")
    return _SCALAR.fullmatch(name) is not None


def grows(loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """Whether something may grow in a loop's body: by a method, by ``+=``, by a new key, by a call that may do it."""
    for statement in loop.body:
        for item in walk(statement):
            if isinstance(item, ast.Attribute) and item.attr in _GROWING:
                return True
            if isinstance(item, (ast.Yield, ast.YieldFrom, ast.FunctionDef, ast.ClassDef)):
                return True
            if isinstance(item, ast.AugAssign) and isinstance(item.op, ast.Add) and isinstance(item.value, ast.List):
                return True
    return False


def asks_for_round(loop: ast.For | ast.AsyncFor) -> bool:
    """Whether a condition in the loop's body hangs on what the loop goes through: ``if epoch < last``."""
    names = {item.id for item in walk(loop.target) if isinstance(item, ast.Name)}
    items = [item for statement in loop.body for item in walk(statement)]
    for item in items:
        if isinstance(item, ast.Assign) and _mentions_name(item.value, names):
            names |= {target.id for target in item.targets if isinstance(target, ast.Name)}
    return any(isinstance(item, (ast.If, ast.IfExp)) and _mentions_name(item.test, names) for item in items)


def _mentions_name(node: ast.expr, names: set[str]) -> bool:
    return any(isinstance(item, ast.Name) and item.id in names for item in walk(node))


def ends_run(statements: Iterable[ast.stmt]) -> bool:
    """Whether a block ends in ``raise`` or in a call that ends the program or the test."""
    last = _last(statements)
    if isinstance(last, ast.Raise):
        return True
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        function = last.value.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        return name in EXITS
    if isinstance(last, ast.Assert):
        return isinstance(last.test, ast.Constant) and not last.test.value
    if isinstance(last, ast.If) and last.orelse:
        return ends_run(last.body) and ends_run(last.orelse)
    return False


def leaves(statements: Iterable[ast.stmt]) -> bool:
    """Whether a block ends in ``break``, ``continue`` or ``return``."""
    return isinstance(_last(statements), (ast.Break, ast.Continue, ast.Return))


_HOLDING = frozenset({"kernel", "Kernel", "func", "func_native", "integrand", "overload", "fem", "exec"})
"""Names whose use in a file's text means that its module may hold something."""


def may_hold_kernels(tree: ast.Module) -> bool:
    """Whether anything in a file's text could put a kernel or a function into the file's module."""
    return any(
        (node.attr if isinstance(node, ast.Attribute) else node.id) in _HOLDING
        for node in walk(tree)
        if isinstance(node, (ast.Attribute, ast.Name))
    )


def is_under_condition(tree: ast.Module, line: int) -> bool:
    """Whether a line stands in an ``if``, other than one that tests ``__name__``."""
    return any(
        isinstance(item, (ast.If, ast.IfExp))
        and item.lineno <= line <= (item.end_lineno or 0)
        and not (isinstance(item, ast.If) and "__name__" in ast.unparse(item.test))
        for item in walk(tree)
    )


def static_calls(node: ast.FunctionDef) -> tuple[ast.expr, ...]:
    """The arguments of ``wp.static(…)`` in a kernel that call something themselves."""
    return tuple(
        item.args[0]
        for item in walk(node)
        if isinstance(item, ast.Call)
        and (item.func.attr if isinstance(item.func, ast.Attribute) else getattr(item.func, "id", "")) == "static"
        and item.args
        and any(isinstance(inner, ast.Call) for inner in walk(item.args[0]))
    )


def is_generic(node: ast.FunctionDef) -> bool:
    """Whether a kernel has a parameter of a type that each launch decides."""
    return any(is_open(parameter.annotation) for parameter in node.args.args)


def is_open(annotation: ast.expr | None) -> bool:
    """Whether a parameter's type is decided by each launch: ``Any``, ``wp.array(dtype=Any)``, ``Float``."""
    if isinstance(annotation, ast.Call):
        return any(is_open(keyword.value) for keyword in annotation.keywords) or any(map(is_open, annotation.args))
    if isinstance(annotation, ast.Subscript):
        return is_open(annotation.slice)
    if isinstance(annotation, ast.Tuple):
        return any(map(is_open, annotation.elts))
    name = annotation.attr if isinstance(annotation, ast.Attribute) else getattr(annotation, "id", None)
    return name in _TYPE_VARIABLES


def takes_modulo(index: ast.expr) -> bool:
    """Whether an index is taken modulo something: a ring, or two buffers in turn."""
    wrapping = (ast.Mod, ast.BitAnd, ast.BitXor)
    return any(isinstance(item, ast.BinOp) and isinstance(item.op, wrapping) for item in walk(index))


def rings_of(loop: ast.For | ast.AsyncFor | ast.While) -> tuple[ast.expr, ...]:
    """The names and attributes that a loop's body indexes modulo something."""
    found: dict[str, ast.expr] = {}
    for statement in loop.body:
        for item in walk(statement):
            if isinstance(item, ast.Subscript) and _is_path(item.value) and takes_modulo(item.slice):
                found[ast.dump(item.value)] = item.value
    return tuple(found.values())


def preferred_arm(node: ast.If) -> bool | None:
    """The arm to follow where a condition is not known, None where neither is better.

    An arm that ends the run, leaves the loop or function, or replays a captured graph shows nothing more.
    """
    for shows_nothing in (ends_run, leaves, _replays):
        body, orelse = shows_nothing(node.body), shows_nothing(node.orelse)
        if body != orelse:
            return orelse
    return None


def _replays(statements: Iterable[ast.stmt]) -> bool:
    return mentions(statements, _REPLAY)


def _is_path(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def mentions(node: ast.AST | Iterable[ast.AST], names: frozenset[str]) -> bool:
    """Whether a name or attribute among ``names`` occurs anywhere below."""
    roots = [node] if isinstance(node, ast.AST) else list(node)
    for root in roots:
        for item in walk(root):
            if isinstance(item, ast.Attribute) and item.attr in names:
                return True
            if isinstance(item, ast.Name) and item.id in names:
                return True
    return False


def _last(statements: Iterable[ast.stmt]) -> ast.stmt | None:
    block = list(statements)
    return block[-1] if block else None

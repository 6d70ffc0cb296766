"""Runs a kernel for one thread on contents that the program's text shows.

What no text shows is :class:`~warplint.kernels.contents.Unseen` and stays so; a condition on it ends the thread, since
nobody knows what runs next. On the way each operation that stands just where it has no derivative is noted: the square
root of zero, the division by it, the absolute value of it, the larger one of two equals.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from warplint.dataclass import dataclass
from warplint.finding import Span
from warplint.kernels import types
from warplint.kernels.arithmetic import Value, applied, single
from warplint.kernels.builtins import table
from warplint.kernels.contents import UNSEEN, Index, Unseen
from warplint.kernels.expressions import COMPARED, OPERATORS
from warplint.kernels.handles import Bound, Handle, constructed, forget, further, loaded, stored, with_part
from warplint.kernels.singular import KINKS
from warplint.kernels.source import (
    Adjoint,
    Builtin,
    Constant,
    Function,
    KernelSource,
    Scope,
    Struct,
    TypeAlias,
)
from warplint.kernels.types import Type
from warplint.names import dotted
from warplint.source import span_of

DEEPEST_CALL = 16
COMPONENTS = {"x": 0, "y": 1, "z": 2, "w": 3}


class Stuck(Exception):
    """Nobody knows what the thread does next."""


class Spent(Exception):
    """The budget of steps is used up."""


@dataclass(frozen=True)
class Group:
    """A struct parameter, whose fields the launch binds by path."""

    path: str
    struct: Struct | None


@dataclass(frozen=True)
class Nudge:
    """Moves the results of a kink by what its operand's step of ``size`` would make of it, in one thread."""

    span: Span
    thread: Index
    size: float


@dataclass
class Budget:
    """Steps left, for all threads together."""

    steps: int

    def step(self) -> None:
        """Count one; raises :class:`Spent`."""
        self.steps -= 1
        if self.steps < 0:
            raise Spent


@dataclass
class Environment:
    """A function in execution. ``returned`` holds its value once it has ended."""

    scope: Scope
    path: str
    lines: Any
    locals: dict[str, Value] = field(default_factory=dict)
    returned: list[Value] = field(default_factory=list)
    left: str = ""
    """``break``, ``continue`` or ``return``: what is on its way."""


def parameter_types(source: KernelSource) -> Mapping[str, Type]:
    """The types of a kernel's parameters, by name."""
    arguments = source.node.args
    return {
        parameter.arg: types.annotated(parameter.annotation, source.scope)
        for parameter in (*arguments.posonlyargs, *arguments.args)
    }


@dataclass
class Execution:
    """One thread of one launch. ``types``: those of the parameters, the same for all threads (:func:`parameter_types`).
    ``arguments`` by path: numbers, tuples, :class:`Bound` arrays.

    ``met`` is told of operations that stand at a point without derivative, of loops that are left early, and of the
    ``break``s and ``continue``s that are reached.
    """

    source: KernelSource
    types: Mapping[str, Type]
    arguments: Mapping[str, object]
    thread: Index
    budget: Budget
    met: Callable[[Span], None]
    rounded: Callable[[float], float] = single
    nudge: Nudge | None = None
    depth: int = 0
    custom: int = 0
    """Inside functions whose adjoint is the user's: no operation there has one of its own."""

    def run(self) -> None:
        """Execute the kernel's body; raises :class:`Stuck` and :class:`Spent`."""
        source = self.source
        environment = Environment(source.scope, source.path, source.lines)
        for name, of in self.types.items():
            environment.locals[name] = self._argument(name, of)
        self._block(source.node.body, environment)

    def _argument(self, path: str, of: Type) -> Value:
        value = self.arguments.get(path, UNSEEN)
        if isinstance(value, Bound):
            return Handle(value)
        if path not in self.arguments and any(name.startswith(f"{path}.") for name in self.arguments):
            return Group(path, of.struct)
        if isinstance(value, (bool, int, float, tuple, Unseen)):
            return float(value) if of.floating and isinstance(value, int) else value
        return UNSEEN

    # -- statements ------------------------------------------------------------------------------------------------

    def _block(self, statements: list[ast.stmt], environment: Environment) -> None:
        for statement in statements:
            self.budget.step()
            handler = _STATEMENTS.get(type(statement))
            if handler is None:
                raise Stuck
            handler(self, statement, environment)
            if environment.left:
                return

    def _expression(self, node: ast.Expr, environment: Environment) -> None:
        if not isinstance(node.value, ast.Constant):
            self._evaluate(node.value, environment)

    def _pass(self, node: ast.stmt, environment: Environment) -> None:
        return

    def _assignment(self, node: ast.Assign, environment: Environment) -> None:
        value = self._evaluate(node.value, environment)
        for target in node.targets:
            if isinstance(target, ast.Tuple) and self._builtin_of(node.value, environment) == "tid":
                value = (*self.thread, 0, 0, 0)[: len(target.elts)]
            self._assign(target, value, environment)

    def _annotated(self, node: ast.AnnAssign, environment: Environment) -> None:
        if node.value is not None:
            self._assign(node.target, self._evaluate(node.value, environment), environment)

    def _augmented(self, node: ast.AugAssign, environment: Environment) -> None:
        old = self._evaluate(node.target, environment)
        value = self._evaluate(node.value, environment)
        self._assign(
            node.target, self._operate(OPERATORS[type(node.op)][0], [old, value], node, environment), environment
        )

    def _assign(self, target: ast.expr, value: Value, environment: Environment) -> None:
        if isinstance(target, ast.Name):
            environment.locals[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = (
                value if isinstance(value, tuple) and len(value) == len(target.elts) else [UNSEEN] * len(target.elts)
            )
            for each, part in zip(target.elts, parts, strict=True):
                self._assign(each, part, environment)
        elif isinstance(target, ast.Subscript):
            self._assign_part(target.value, self._indices(target.slice, environment), value, environment)
        elif isinstance(target, ast.Attribute):
            self._assign_attribute(target, value, environment)

    def _assign_attribute(self, target: ast.Attribute, value: Value, environment: Environment) -> None:
        owner = self._evaluate(target.value, environment)
        if isinstance(owner, dict):
            owner[target.attr] = value
        elif target.attr in COMPONENTS:
            self._assign_part(target.value, (COMPONENTS[target.attr],), value, environment)
        else:
            raise Stuck

    def _assign_part(self, owner_node: ast.expr, indices: Index | None, value: Value, environment: Environment) -> None:
        """``owner[indices] = value``: an element of an array, or a component of a local or of an element."""
        owner = self._evaluate(owner_node, environment)
        if isinstance(owner, Handle):
            stored(further(owner, indices), value)
        elif isinstance(owner, tuple) and indices is not None:
            self._assign(owner_node, with_part(owner, indices, value), environment)
        else:
            self._assign(owner_node, UNSEEN, environment)

    def _branch(self, node: ast.If, environment: Environment) -> None:
        self._block(node.body if self._decided(node.test, environment) else node.orelse, environment)

    def _decided(self, test: ast.expr, environment: Environment) -> bool:
        value = self._evaluate(test, environment)
        if not isinstance(value, (bool, int, float)):
            raise Stuck
        return bool(value)

    def _for(self, node: ast.For, environment: Environment) -> None:
        if not isinstance(node.iter, ast.Call) or self._builtin_of(node.iter, environment) != "range":
            raise Stuck
        bounds = [self._evaluate(argument, environment) for argument in node.iter.args]
        if not all(isinstance(bound, int) for bound in bounds) or (len(bounds) > 2 and bounds[2] == 0):
            raise Stuck
        numbers = range(*bounds)
        for number in numbers:
            self.budget.step()
            self._assign(node.target, number, environment)
            left = self._round(node, environment)
            if left == "break" or (left == "return" and number != numbers[-1]):
                self._note_left(node, environment)
            if left:
                return

    def _while(self, node: ast.While, environment: Environment) -> None:
        while self._decided(node.test, environment):
            self.budget.step()
            if self._round(node, environment):
                self._note_left(node, environment)
                return

    def _round(self, node: ast.For | ast.While, environment: Environment) -> str:
        """One round of a loop: ``break`` or ``return`` where that left the loop, else ``""``."""
        self._block(node.body, environment)
        left = environment.left
        if left in ("break", "continue"):
            environment.left = ""
        return left if left != "continue" else ""

    def _note_left(self, node: ast.For | ast.While, environment: Environment) -> None:
        """A loop that a ``break``, or a ``return`` in another round than the last, leaves."""
        self.met(span_of(node, environment.path, environment.lines))

    def _return(self, node: ast.Return, environment: Environment) -> None:
        if node.value is not None:
            environment.returned.append(self._evaluate(node.value, environment))
        environment.left = "return"

    def _break(self, node: ast.Break, environment: Environment) -> None:
        self.met(span_of(node, environment.path, environment.lines))
        environment.left = "break"

    def _continue(self, node: ast.Continue, environment: Environment) -> None:
        self.met(span_of(node, environment.path, environment.lines))
        environment.left = "continue"

    # -- expressions -----------------------------------------------------------------------------------------------

    def _evaluate(self, node: ast.expr, environment: Environment) -> Value:
        self.budget.step()
        handler = _EXPRESSIONS.get(type(node))
        return handler(self, node, environment) if handler is not None else UNSEEN

    def _constant(self, node: ast.Constant, environment: Environment) -> Value:
        return node.value if isinstance(node.value, (bool, int, float)) else UNSEEN

    def _name(self, node: ast.Name, environment: Environment) -> Value:
        if node.id in environment.locals:
            return environment.locals[node.id]
        return _captured(environment.scope, node.id)

    def _attribute(self, node: ast.Attribute, environment: Environment) -> Value:
        name = dotted(node)
        if name is not None and name.partition(".")[0] not in environment.locals:
            return _captured(environment.scope, name)
        owner = self._evaluate(node.value, environment)
        if isinstance(owner, Group):
            of = types.fields(owner.struct).get(node.attr, types.UNKNOWN) if owner.struct else types.UNKNOWN
            return self._argument(f"{owner.path}.{node.attr}", of)
        if isinstance(owner, dict):
            return owner.get(node.attr, UNSEEN)
        if isinstance(owner, Handle) and node.attr == "shape":
            shape = owner.bound.contents.shape
            whole = owner.bound.known and not owner.bound.first and not owner.bound.offset and not owner.indices
            return shape if whole and shape is not None and None not in shape else UNSEEN
        if isinstance(owner, tuple) and COMPONENTS.get(node.attr, len(owner)) < len(owner):
            return owner[COMPONENTS[node.attr]]
        return UNSEEN

    def _subscript(self, node: ast.Subscript, environment: Environment) -> Value:
        owner = self._evaluate(node.value, environment)
        indices = self._indices(node.slice, environment)
        if isinstance(owner, Handle):
            part = further(owner, indices)
            if part.indices is not None and len(part.indices) < part.bound.dimensions:
                return part
            return loaded(part)
        for index in indices or ():
            if not isinstance(owner, tuple) or not -len(owner) <= index < len(owner):
                return UNSEEN
            owner = owner[index]
        return owner if indices is not None else UNSEEN

    def _indices(self, node: ast.expr, environment: Environment) -> Index | None:
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        numbers = [self._evaluate(part, environment) for part in parts]
        return tuple(numbers) if all(isinstance(each, int) for each in numbers) else None

    def _binary(self, node: ast.BinOp, environment: Environment) -> Value:
        operands = [self._evaluate(node.left, environment), self._evaluate(node.right, environment)]
        return self._operate(OPERATORS[type(node.op)][0], operands, node, environment)

    def _unary(self, node: ast.UnaryOp, environment: Environment) -> Value:
        return self._operate(
            OPERATORS[type(node.op)][0], [self._evaluate(node.operand, environment)], node, environment
        )

    def _logical(self, node: ast.BoolOp, environment: Environment) -> Value:
        decisive = isinstance(node.op, ast.Or)
        unknown = False
        for part in node.values:
            value = self._evaluate(part, environment)
            if not isinstance(value, (bool, int, float)):
                unknown = True
            elif bool(value) is decisive:
                return decisive
        return UNSEEN if unknown else not decisive

    def _comparison(self, node: ast.Compare, environment: Environment) -> Value:
        a = self._evaluate(node.left, environment)
        for operator, other in zip(node.ops, node.comparators, strict=True):
            b = self._evaluate(other, environment)
            compare = COMPARED.get(type(operator))
            if compare is None or not isinstance(a, (int, float)) or not isinstance(b, (int, float)):
                return UNSEEN
            if not compare(a, b):
                return False
            a = b
        return True

    def _choice(self, node: ast.IfExp, environment: Environment) -> Value:
        return self._evaluate(node.body if self._decided(node.test, environment) else node.orelse, environment)

    def _tuple(self, node: ast.Tuple | ast.List, environment: Environment) -> Value:
        return tuple(self._evaluate(part, environment) for part in node.elts)

    def _operate(self, name: str, operands: list[Value], node: ast.AST, environment: Environment) -> Value:
        """A builtin on its operands; noted where it has no derivative there."""
        value = applied(name, operands, self.rounded)
        if not self.custom and (_is_singular(name, operands) or _is_kink(name, operands)):
            span = span_of(node, environment.path, environment.lines)
            self.met(span)
            nudge = self.nudge
            if nudge is not None and nudge.span == span and nudge.thread == self.thread:
                return value + _kinked_step(name, nudge.size)
        return value

    # -- calls -----------------------------------------------------------------------------------------------------

    def _call(self, node: ast.Call, environment: Environment) -> Value:
        meaning = self._meaning(node.func, environment)
        if isinstance(meaning, Builtin):
            return self._builtin(meaning.name, node, environment)
        arguments = [self._evaluate(argument, environment) for argument in node.args]
        keywords = {each.arg: self._evaluate(each.value, environment) for each in node.keywords if each.arg}
        if isinstance(meaning, Function):
            return self._function(meaning, arguments, keywords)
        if isinstance(meaning, Struct):
            return dict(zip(types.fields(meaning), arguments, strict=False)) | keywords
        if isinstance(meaning, TypeAlias):
            return constructed(types.annotated(meaning.expression, meaning.scope), arguments)
        forget([*arguments, *keywords.values()])
        return UNSEEN

    def _meaning(self, callee: ast.expr, environment: Environment) -> object:
        name = dotted(callee)
        if name is None or name.partition(".")[0] in environment.locals:
            return None
        return environment.scope.resolve(name)

    def _builtin_of(self, node: ast.expr, environment: Environment) -> str:
        meaning = self._meaning(node.func, environment) if isinstance(node, ast.Call) else None
        return meaning.name if isinstance(meaning, Builtin) else ""

    def _builtin(self, name: str, node: ast.Call, environment: Environment) -> Value:
        if name == "tid":
            return self.thread[0] if self.thread else 0
        arguments = [self._evaluate(argument, environment) for argument in node.args]
        arguments += [self._evaluate(each.value, environment) for each in node.keywords if each.arg != "dtype"]
        if name in ("atomic_add", "atomic_sub") and arguments and isinstance(arguments[0], Handle):
            return self._accumulate(name, arguments)
        if name == "where" and len(arguments) == 3:
            test = arguments[0]
            return arguments[1 if test else 2] if isinstance(test, (bool, int, float)) else UNSEEN
        if name == "static" and arguments:
            return arguments[0]
        of = types.named(name)
        if of is not None:
            return constructed(of, arguments)
        forget(arguments)
        return self._operate(name, arguments, node, environment)

    def _accumulate(self, name: str, arguments: list[Value]) -> Value:
        """``wp.atomic_add``: the old value depends on who came first."""
        indices = tuple(arguments[1:-1])
        handle = further(arguments[0], indices if all(isinstance(each, int) for each in indices) else None)
        stored(handle, applied(name.removeprefix("atomic_"), [loaded(handle), arguments[-1]], self.rounded))
        return UNSEEN

    def _function(self, function: Function, arguments: list[Value], keywords: Mapping[str, Value]) -> Value:
        """A call of a ``@wp.func``."""
        parameters = [*function.node.args.posonlyargs, *function.node.args.args]
        plain = not function.overloads and function.adjoint in (Adjoint.GENERATED, Adjoint.CUSTOM)
        if not plain or len(arguments) > len(parameters) or self.depth >= DEEPEST_CALL:
            forget([*arguments, *keywords.values()])
            return UNSEEN
        environment = Environment(function.scope, function.path, function.lines)
        for position, parameter in enumerate(parameters):
            given = arguments[position] if position < len(arguments) else keywords.get(parameter.arg)
            environment.locals[parameter.arg] = given if given is not None else UNSEEN
        own = function.adjoint is Adjoint.CUSTOM
        self.depth, self.custom = self.depth + 1, self.custom + own
        try:
            self._block(function.node.body, environment)
        finally:
            self.depth, self.custom = self.depth - 1, self.custom - own
        return environment.returned[0] if environment.returned else UNSEEN


def _is_singular(name: str, operands: list[Value]) -> bool:
    position = table().singular.get(name, len(operands))
    return position < len(operands) and _is_zero(operands[position])


def _is_zero(operand: Value) -> bool:
    """Whether a real number is zero; of a vector, one component."""
    return any(map(_is_zero, operand)) if isinstance(operand, tuple) else isinstance(operand, float) and operand == 0


def _is_kink(name: str, operands: list[Value]) -> bool:
    if name not in KINKS or not all(isinstance(each, float) for each in operands):
        return False
    return operands[0] == 0 if name == "abs" else len(operands) == 2 and operands[0] == operands[1]


def _kinked_step(name: str, size: float) -> float:
    """By how much ``abs``, ``min`` or ``max`` at its kink moves when one operand moves by ``size``."""
    return abs(size) if name == "abs" else max(size, 0.0) if name == "max" else min(size, 0.0)


def _captured(scope: Scope, name: str) -> Value:
    meaning = scope.resolve(name)
    value = meaning.value if isinstance(meaning, Constant) else UNSEEN
    return value if isinstance(value, (bool, int, float, tuple)) else UNSEEN


_STATEMENTS: dict[type[ast.stmt], Callable[[Any, Any, Environment], None]] = {
    ast.Expr: Execution._expression,
    ast.Assign: Execution._assignment,
    ast.AnnAssign: Execution._annotated,
    ast.AugAssign: Execution._augmented,
    ast.If: Execution._branch,
    ast.For: Execution._for,
    ast.While: Execution._while,
    ast.Return: Execution._return,
    ast.Break: Execution._break,
    ast.Continue: Execution._continue,
    ast.Pass: Execution._pass,
    ast.Assert: Execution._pass,
}
_EXPRESSIONS: dict[type[ast.expr], Callable[[Any, Any, Environment], Value]] = {
    ast.Constant: Execution._constant,
    ast.Name: Execution._name,
    ast.Attribute: Execution._attribute,
    ast.Subscript: Execution._subscript,
    ast.BinOp: Execution._binary,
    ast.UnaryOp: Execution._unary,
    ast.BoolOp: Execution._logical,
    ast.Compare: Execution._comparison,
    ast.IfExp: Execution._choice,
    ast.Call: Execution._call,
    ast.Tuple: Execution._tuple,
    ast.List: Execution._tuple,
}

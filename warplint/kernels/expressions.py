"""Expressions: the value of each node."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from warplint.kernels import types
from warplint.kernels.elements import LONGEST_SYMBOL, Elements
from warplint.kernels.ledger import File, Token, TokenKind
from warplint.kernels.source import Builtin, Constant, Meaning, Unknown
from warplint.kernels.values import Value, constant, joined, needing, union
from warplint.names import dotted

OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("add", "+"),
    ast.Sub: ("sub", "-"),
    ast.Mult: ("mul", "*"),
    ast.MatMult: ("mul", "@"),
    ast.Div: ("div", "/"),
    ast.FloorDiv: ("floordiv", "//"),
    ast.Mod: ("mod", "%"),
    ast.Pow: ("pow", "**"),
    ast.LShift: ("lshift", "<<"),
    ast.RShift: ("rshift", ">>"),
    ast.BitAnd: ("bit_and", "&"),
    ast.BitOr: ("bit_or", "|"),
    ast.BitXor: ("bit_xor", "^"),
    ast.USub: ("neg", "-"),
    ast.UAdd: ("pos", "+"),
    ast.Not: ("unot", "not "),
    ast.Invert: ("invert", "~"),
}
_FOLDED: dict[type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}
COMPARED: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
}


class Expressions(Elements, ABC):
    """Evaluates expressions in the frame."""

    @abstractmethod
    def call(self, node: ast.Call) -> Value:
        """The value of a call."""

    def evaluate(self, node: ast.expr) -> Value:
        """The value of an expression."""
        self.ledger.step()
        handler = _HANDLERS.get(type(node))
        return handler(self, node) if handler else self.any_expression(node)

    def any_expression(self, node: ast.expr) -> Value:
        """An expression of no known form: its adjoint may read all of its parts."""
        parts = [self.evaluate(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
        return self.apply("", parts, node)

    def literal(self, node: ast.Constant) -> Value:
        """A literal."""
        return constant(node.value)

    def name(self, node: ast.Name) -> Value:
        """A local, or what the scope says."""
        known = self.frame.locals.get(node.id)
        if known is None:
            return self.captured(node.id)
        if known in self.ledger.watched:
            return self._contributing(known)
        if known in self.ledger.chained:
            return self._chained(known)
        return self._made_again(known) if self.loop_entries else known

    def _made_again(self, variable: Value) -> Value:
        """A variable from outside as a loop's body uses it: the backward pass makes anew whatever is made of it there.

        Measured: where a later loop assigns the variable, that is made of another value.
        """
        held = self.ledger.variables.get(variable, 0)
        if not held or not any(id(variable) in entry for entry in self.loop_entries):
            return variable
        use = variable.like(tokens=variable.tokens | held)
        self.ledger.variables[use] = held
        return use

    def summand(self, node: ast.Name) -> Value:
        """A variable as something is added to it, which is what a ``while`` loop may do."""
        known = self.frame.locals.get(node.id)
        return known if known is not None and known in self.ledger.chained else self.name(node)

    def _chained(self, variable: Value) -> Value:
        """A use of a variable that a ``while`` loop carries: its gradient comes too late for the one of the sum."""
        use = needing(variable, self.ledger.chained[variable])
        self.ledger.variables[use] = self.ledger.variables.get(variable, 0)
        return use

    def _contributing(self, variable: Value) -> Value:
        """A further use of a variable whose adjoint a function assigns: what this use contributes is lost."""
        ledger = self.ledger
        needs = (
            ledger.need(each.token, variable.active | each.reached, each.node, each.file, each.what)
            for each in ledger.watched[variable]
        )
        use = needing(variable, union(needs))
        ledger.variables[use] = ledger.variables.get(variable, 0)
        return use

    def adjoint_need(self, kind: TokenKind, given: int, parameter: str, node: ast.AST, file: File) -> int:
        """The need of what a custom adjoint wipes out (ASSIGNED) or never gives (OMITTED), standing at its ``node``."""
        return self.ledger.need(self.adjoint_token(kind, parameter, node, file), given, node, file)

    def adjoint_token(self, kind: TokenKind, parameter: str, node: ast.AST, file: File) -> int:
        """What a custom adjoint wipes out or never gives."""
        return self.ledger.token(Token(kind, parameter, "", "", self.ledger.order, node, file), (node,))

    def captured(self, name: str) -> Value:
        """A name from outside: a constant without gradient, or a function or type."""
        return of_meaning(self.frame.scope.resolve(name), name)

    def is_captured(self, name: str) -> bool:
        """Whether a dotted name starts outside the function."""
        return name.partition(".")[0] not in self.frame.locals

    def builtin_of(self, node: ast.expr) -> str:
        """The bare name of the builtin that an expression means, or ""."""
        name = dotted(node)
        meaning = self.frame.scope.resolve(name) if name is not None and self.is_captured(name) else None
        return meaning.name if isinstance(meaning, Builtin) else ""

    def attribute(self, node: ast.Attribute) -> Value:
        """A captured dotted name, or a part of a value."""
        name = dotted(node)
        if name is not None and self.is_captured(name):
            return self.captured(name)
        return self.attribute_of(self.evaluate(node.value), node.attr)

    def subscript(self, node: ast.Subscript) -> Value:
        """``owner[index]``."""
        owner = self.evaluate(node.value)
        return self.subscripted(owner, self.indices(node.slice), node)

    def indices(self, node: ast.expr) -> tuple[Value, ...]:
        """The values of the indices in ``[...]``."""
        return tuple(self.index(part) for part in (node.elts if isinstance(node, ast.Tuple) else [node]))

    def index(self, node: ast.expr) -> Value:
        """One index; a value without a symbol gets one that equals no other."""
        value = self.evaluate(node)
        if value.symbol:
            return value
        if value.lane > 0:
            return value.like(symbol=self.ledger.lane_symbol(value.lane, f"tid()[{value.lane - 1}]"))
        return value.like(symbol=self.ledger.fresh_symbol())

    def binary(self, node: ast.BinOp) -> Value:
        """``a + b`` and the like."""
        left, right = self.operands((node.left, node.right))
        return self.operator(node.op, left, right, node)

    def operands(self, nodes: Sequence[ast.expr]) -> list[Value]:
        """The operands of one operation, which uses them once all are there.

        In ``h + f(h)`` the sum comes after the call: where the custom adjoint of ``f`` assigns, the sum's part is lost.
        """
        values = [self.evaluate(node) for node in nodes]
        if not self.ledger.watched:
            return values
        pairs = zip(nodes, values, strict=True)
        return [self.name(node) if isinstance(node, ast.Name) else value for node, value in pairs]

    def operator(self, op: ast.operator, left: Value, right: Value, node: ast.AST) -> Value:
        """The value of ``left op right``, with integers folded and the thread's index followed."""
        fold = _FOLDED.get(type(op))
        a, b = left.constant, right.constant
        if fold is not None and isinstance(a, int) and isinstance(b, int):
            if b == 0 and isinstance(op, (ast.FloorDiv, ast.Mod)):
                return Value(type=types.INTEGER)
            return constant(fold(a, b)).like(fixed=False)
        builtin, sign = OPERATORS[type(op)]
        value = self.apply(builtin, [left, right], node)
        if left.symbol and right.symbol and value.type.floating is not True:
            text = f"{_grouped(left.symbol)} {sign} {_grouped(right.symbol)}"
            value.symbol = text if len(text) <= LONGEST_SYMBOL else ""
        if left.lane and not right.threads and isinstance(op, (ast.Add, ast.Sub)):
            value.lane = -abs(left.lane)
        elif right.lane and not left.threads and isinstance(op, ast.Add):
            value.lane = -abs(right.lane)
        return value

    def unary(self, node: ast.UnaryOp) -> Value:
        """``-a``, ``not a``, ``~a``."""
        operand = self.evaluate(node.operand)
        number = operand.constant
        if isinstance(node.op, ast.USub) and isinstance(number, (int, float)):
            return constant(-number).like(fixed=isinstance(node.operand, ast.Constant))
        if isinstance(node.op, ast.Not) and isinstance(number, (bool, int, float, str)):
            return constant(not number).like(fixed=False)
        builtin, sign = OPERATORS[type(node.op)]
        value = self.apply(builtin, [operand], node)
        value.symbol = f"{sign}{_grouped(operand.symbol)}" if operand.symbol else ""
        return value

    def logical(self, node: ast.BoolOp) -> Value:
        """``a and b``: folded where the constants in it decide."""
        values = [self.evaluate(part) for part in node.values]
        decisive = isinstance(node.op, ast.Or)
        known = [bool(value.constant) for value in values if isinstance(value.constant, (bool, int))]
        if decisive in known:
            return constant(decisive)
        if len(known) == len(values):
            return constant(not decisive)
        return self.flat(values, node=node).like(type=types.BOOLEAN)

    def comparison(self, node: ast.Compare) -> Value:
        """``a < b``."""
        values = self.operands((node.left, *node.comparators))
        compare = COMPARED.get(type(node.ops[0]))
        a, b = values[0].constant, values[-1].constant
        if compare is not None and len(values) == 2 and isinstance(a, (int, float)) and isinstance(b, (int, float)):
            return constant(compare(a, b))
        return self.flat(values, node=node).like(type=types.BOOLEAN)

    def choice(self, node: ast.IfExp) -> Value:
        """``a if c else b``: each arm is evaluated under the condition, as Warp does."""
        test = self.evaluate(node.test)
        if isinstance(test.constant, (bool, int)):
            return self.evaluate(node.body if test.constant else node.orelse)
        condition = self.condition(test, node.test)
        self.conditions.append(condition)
        first, second = self.evaluate(node.body), self.evaluate(node.orelse)
        self.conditions.pop()
        return self.chosen(joined(first, second), condition)

    def sequence(self, node: ast.Tuple | ast.List) -> Value:
        """A tuple of values."""
        parts = tuple(self.copied(self.evaluate(part)) for part in node.elts)
        return self.linear(parts).like(type=types.TUPLE, components=parts)

    def sliced(self, node: ast.Slice) -> Value:
        """A slice as an index."""
        parts = [self.evaluate(part) for part in (node.lower, node.upper, node.step) if part is not None]
        text = ast.unparse(node) if all(part.symbol for part in parts) else ""
        return self.flat(parts).like(type=types.TUPLE, symbol=text)

    def named(self, node: ast.NamedExpr) -> Value:
        """``(a := b)``."""
        value = self.evaluate(node.value)
        self.frame.locals[node.target.id] = value
        return value


def of_meaning(meaning: Meaning | None, name: str) -> Value:
    """What a meaning is as a value. A name without meaning is a captured constant that nobody knows."""
    if not isinstance(meaning, Constant):
        return Value(symbol=name, meaning=meaning)
    if meaning.value is Unknown.VALUE:
        return Value(symbol=name, fixed=True)
    value = constant(meaning.value)
    if not value.symbol:
        value.symbol = name
    return value


def _grouped(symbol: str) -> str:
    """A symbol as an operand: in parentheses where it is compound."""
    return f"({symbol})" if " " in symbol and symbol[-1] not in "])" else symbol


_HANDLERS: dict[type[ast.expr], Callable[[Any, Any], Value]] = {
    ast.Constant: Expressions.literal,
    ast.Name: Expressions.name,
    ast.Attribute: Expressions.attribute,
    ast.Subscript: Expressions.subscript,
    ast.BinOp: Expressions.binary,
    ast.UnaryOp: Expressions.unary,
    ast.BoolOp: Expressions.logical,
    ast.Compare: Expressions.comparison,
    ast.IfExp: Expressions.choice,
    ast.Call: lambda expressions, node: expressions.call(node),
    ast.Tuple: Expressions.sequence,
    ast.List: Expressions.sequence,
    ast.Slice: Expressions.sliced,
    ast.NamedExpr: Expressions.named,
}

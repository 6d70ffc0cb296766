"""Statements: blocks, branches, early exits."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from warplint.kernels import types
from warplint.kernels.liveness import facts_of, is_sum
from warplint.kernels.loops import Loops
from warplint.kernels.operations import Condition, End, Environment, Exit
from warplint.kernels.summary import LEFT_BEHIND
from warplint.kernels.types import Kind
from warplint.kernels.values import ABSENT, NOTHING, Place, Value, joined, needing, union


class Interpreter(Loops):
    """Executes a kernel's body."""

    def block(self, statements: Sequence[ast.stmt]) -> End:
        """Execute statements until one leaves the block."""
        for statement in statements:
            self.ledger.step()
            handler = _HANDLERS.get(type(statement))
            if handler is not None:
                end = handler(self, statement)
                if end is not None and end is not End.REACHED:
                    return end
        return End.REACHED

    def expression(self, node: ast.Expr) -> None:
        """A call for its effects; a docstring."""
        if not isinstance(node.value, ast.Constant):
            self.evaluate(node.value)

    def assignment(self, node: ast.Assign) -> None:
        """``a = b``; ``a, b = c, d``. A name's copy is a variable of its own, and no constant to Warp."""
        value = self._summed(node) if is_sum(node) else self.evaluate(node.value)
        if isinstance(node.value, (ast.Name, ast.Attribute)) and (value.fixed or not value.places):
            value = value.like(fixed=False)
        for target in node.targets:
            self.assign(target, value, node)

    def _summed(self, node: ast.Assign) -> Value:
        """The value of ``s = s + e``."""
        sum_, target = node.value, node.targets[0]
        assert isinstance(sum_, ast.BinOp)
        left, right = self._term(sum_.left, target), self._term(sum_.right, target)
        if isinstance(sum_.left, ast.Name):  # as in :meth:`operands`: a call on the right may take away what it gets
            left = self._term(sum_.left, target)
        return self.operator(sum_.op, left, right, sum_)

    def _term(self, node: ast.expr, target: ast.expr) -> Value:
        """A term of a sum that is assigned to ``target``."""
        if isinstance(node, ast.Name) and isinstance(target, ast.Name) and node.id == target.id:
            return self.summand(node)
        value = self.evaluate(node)
        if isinstance(target, ast.Name):
            self.note_added(target.id, value)
        return value

    def annotated_assignment(self, node: ast.AnnAssign) -> None:
        """``a: T = b``."""
        if node.value is None:
            return
        value = self.evaluate(node.value)
        if value.type.kind is Kind.UNKNOWN:
            value = value.like(type=self.annotation(node.annotation, self.frame.scope))
        self.assign(node.target, value, node)

    def branch(self, node: ast.If) -> End:
        """``if``: each arm on its own copy of the locals; behind it, those that differ were selected by the test."""
        test = self.evaluate(node.test)
        if test.constant is not ABSENT and isinstance(test.constant, (bool, int, float)):
            return self.block(node.body if test.constant else node.orelse)
        condition = self.condition(test, node.test)
        self.ledger.branches += 1
        present = frozenset(place.path for place in test.places) if len(test.places) == 1 else frozenset[str]()
        taken = dataclasses.replace(condition, arm=(self.ledger.branches, True), present=present)
        other = dataclasses.replace(condition, arm=(self.ledger.branches, False))
        before = self.frame.locals
        first, first_locals, first_left = self._arm(node.body, taken, before)
        second, second_locals, second_left = self._arm(node.orelse, other, before)
        if first is not End.REACHED and second is not End.REACHED:
            return first if first is second else End.LEFT_ITERATION
        if first is End.REACHED and second is End.REACHED:
            self.frame.locals = self._merged(first_locals, second_locals, condition)
            left = [*first_left, *second_left]
            if left:
                self.conditions.append(_left_by(condition, left))
        else:
            goes_on, leaver = (taken, second) if first is End.REACHED else (other, first)
            self.frame.locals = first_locals if first is End.REACHED else second_locals
            self.conditions.append(dataclasses.replace(goes_on, returns=leaver is End.RETURNED))
            left = first_left if first is End.REACHED else second_left
        self.conditions.extend(left)
        return End.REACHED

    def _arm(
        self, statements: Sequence[ast.stmt], condition: Condition, before: Environment
    ) -> tuple[End, Environment, list[Condition]]:
        """Execute one arm: how it ended, its locals, and the conditions under which it was left early."""
        height = len(self.conditions)
        self.conditions.append(condition)
        self.frame.locals = dict(before)
        end = self.block(statements)
        left = self.conditions[height + 1 :]
        del self.conditions[height:]
        return end, self.frame.locals, left

    def _merged(self, first: Environment, second: Environment, condition: Condition) -> Environment:
        """The locals behind a branch."""
        merged = dict(second)
        for name, value in first.items():
            other = second.get(name)
            if other is not value:
                chosen = value if other is None else self.chosen(joined(value, other), condition)
                merged[name] = self.variable(name, chosen, condition.node)
        return merged

    def returns(self, node: ast.Return) -> End:
        """``return``: the value depends on the conditions under which it is returned."""
        value = NOTHING if node.value is None else self.evaluate(node.value)
        value = needing(value, self.need(self._lost_by(node, value), value.active, node, f"{LEFT_BEHIND} "))
        conditions = self.conditions[self.frame.conditions_at_entry :]
        self.frame.returned.append(self.under(value, conditions))
        return End.RETURNED

    def _lost_by(self, node: ast.Return, value: Value) -> int:
        """What a dynamic loop makes of a value that is returned from inside it: its adjoint takes all iterations."""
        loops = (loop for loop in self.loop_nodes if isinstance(loop, (ast.For, ast.While)))
        return value.tokens & union(self._tokens_of(loop) for loop in loops if node in facts_of(loop).returns)

    def continues(self, node: ast.Continue) -> End:
        """``continue``."""
        if self.frame.loops:
            self.frame.loops[-1].at_continue.append(self._exit(node))
        return End.LEFT_ITERATION

    def breaks(self, node: ast.Break) -> End:
        """``break``."""
        if self.frame.loops:
            self.frame.loops[-1].at_break.append(self._exit(node))
        return End.LEFT_ITERATION

    def _exit(self, node: ast.stmt) -> Exit:
        conditions = tuple(each for each in self.conditions[self.frame.loops[-1].height :] if not each.loop)
        return Exit(dict(self.frame.locals), conditions, node, self.ledger.order, self.arms())

    def asserts(self, node: ast.Assert) -> None:
        """``assert``: reads."""
        self.evaluate(node.test)

    def context(self, node: ast.With) -> End:
        """``with``: its body."""
        return self.block(node.body)


def _left_by(condition: Condition, left: Sequence[Condition]) -> Condition:
    """The condition of an ``if`` inside which some path was left early."""
    return dataclasses.replace(condition, returns=all(each.returns for each in left))


def parameter_value(name: str, of: types.Type) -> Value:
    """A kernel parameter at entry: an array or struct lives at its own path, a scalar carries no gradient."""
    if of.kind in (Kind.ARRAY, Kind.STRUCT, Kind.UNKNOWN):
        return Value(type=of, symbol=name, places=(Place(name),))
    return Value(type=of, symbol=name)


_HANDLERS: dict[type[ast.stmt], Callable[[Any, Any], End | None]] = {
    ast.Expr: Interpreter.expression,
    ast.Assign: Interpreter.assignment,
    ast.AnnAssign: Interpreter.annotated_assignment,
    ast.AugAssign: Interpreter.augment,
    ast.If: Interpreter.branch,
    ast.For: Interpreter.for_loop,
    ast.While: Interpreter.while_loop,
    ast.Return: Interpreter.returns,
    ast.Continue: Interpreter.continues,
    ast.Break: Interpreter.breaks,
    ast.Assert: Interpreter.asserts,
    ast.With: Interpreter.context,
}

"""Loops: unrolled where Warp unrolls them, otherwise run to a fixpoint.

A loop that stays a loop at run time keeps one copy of each local. The backward pass runs its body again from the last
iteration to the first, without the values that carried locals had: they are lost, whatever memory holds (measured:
products, recurrences, conditions on an accumulator, uses after the loop). So a carried local stands on a token CARRIED
inside, every local assigned inside stands on a token AFTER behind the loop, and whoever needs such a token is wrong.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from warplint.dataclass import dataclass
from warplint.kernels import types
from warplint.kernels.calls import Calls
from warplint.kernels.ledger import Astray, Bound, Mark, Token, TokenKind
from warplint.kernels.liveness import LoopFacts, facts_of, is_sum
from warplint.kernels.operations import Condition, End, Environment, Exit, LoopExits
from warplint.kernels.summary import BY_REFERENCE, LEFT_BEHIND, OUT_OF_ORDER, SKIPPED, StoreKind
from warplint.kernels.types import Kind
from warplint.kernels.values import ABSENT, Sign, Value, constant, members, needing, union
from warplint.syntax import walk

FEWEST_PASSES = 2
"""Passes over a loop's body to see that nothing grows any more."""

MOST_PASSES = 6
"""Joining passes over a loop's body before the fixpoint is taken as reached; sets only grow, two or three suffice."""

UNROLLS_CONTINUE = (1, 19)
"""The version from which a ``continue`` does not keep a loop a loop (measured: 1.18 does, 1.19 does not)."""


@dataclass
class Loop:
    """A loop run to a fixpoint. ``loses_locals`` false: Warp unrolls it, it is only too long to be followed exactly."""

    node: ast.For | ast.While
    facts: LoopFacts
    bit: int
    loses_locals: bool
    begin: Callable[[], Condition]
    bound: Bound | None = None
    at_once: bool = False
    """Whether a ``break`` that leaves it does so in the first iteration: its condition stays what it is."""

    @property
    def leaves(self) -> ast.stmt | None:
        """A statement that may leave it before its bound is reached, if Warp keeps it as a loop."""
        if not self.loses_locals:
            return None
        by_break = None if self.at_once else self.facts.leaves
        return by_break or (self.facts.returns[0] if self.facts.returns else None)


class Loops(Calls):
    """Executes loops."""

    def for_loop(self, node: ast.For) -> None:
        """``for i in range(...)`` and loops over queries."""
        if not (isinstance(node.iter, ast.Call) and self.builtin_of(node.iter.func) == "range"):
            self._fixpoint(self._counted(node, [self.evaluate(node.iter)], loses_locals=True))
            return
        bounds = [self.evaluate(argument) for argument in node.iter.args]
        numbers = _constant_range(bounds)
        unrolls = numbers is not None and self._unrolls(node, numbers)
        if numbers is not None and unrolls and self._affordable(node, len(numbers)):
            self._unrolled(node, numbers)
        else:
            may_unroll = numbers is None and all(bound.fixed for bound in bounds) and not self._leaves_early(node)
            self._fixpoint(self._counted(node, bounds, loses_locals=not (unrolls or may_unroll)))

    def while_loop(self, node: ast.While) -> None:
        """``while test``."""

        def begin() -> Condition:
            test = self.evaluate(node.test)
            test = test.like(tokens=test.tokens & ~self._tokens_of(node))
            return self.condition(test, node.test, "the condition ", loop=True)

        self._fixpoint(Loop(node, facts_of(node), self._loop_bit(node), True, begin))

    def _tokens_of(self, loop: ast.AST) -> int:
        """The tokens of a loop's own carried locals: the backward pass counts through the loop as the forward did."""
        tokens = self.ledger.tokens
        return union(1 << number for number in members(self.ledger.carried) if tokens[number].node is loop)

    # -- unrolling -----------------------------------------------------------------------------------------------

    def _unrolls(self, node: ast.For, numbers: range) -> bool:
        """Warp's own decision (``Adjoint.get_unroll_range``); under an unknown limit, the harmless one."""
        if self._contains_static(node):
            return True
        return (self.max_unroll is None or len(numbers) <= self.max_unroll) and not self._leaves_early(node)

    def _leaves_early(self, node: ast.For) -> bool:
        """A ``break``, and in older versions a ``continue``, keeps a loop a loop."""
        facts = facts_of(node)
        return facts.leaves is not None or (facts.continues is not None and self.ledger.warp < UNROLLS_CONTINUE)

    def _contains_static(self, node: ast.For) -> bool:
        """A ``wp.static`` that could not be evaluated at declaration, since it reads locals, forces unrolling."""
        target = node.target.id if isinstance(node.target, ast.Name) else ""
        for call in facts_of(node).statics:
            read = {name.id for name in walk(call) if isinstance(name, ast.Name)}
            if self.builtin_of(call.func) == "static" and (target in read or not read.isdisjoint(self.frame.locals)):
                return True
        return False

    def _affordable(self, node: ast.For, trips: int) -> bool:
        """Whether following each iteration leaves budget for the rest of the kernel."""
        return trips * facts_of(node).size <= (self.unrolled_steps - self.ledger.steps) // 4

    def _unrolled(self, node: ast.For, numbers: range) -> None:
        """Each iteration in turn, with its index a constant."""
        height = len(self.conditions)
        target = node.target.id if isinstance(node.target, ast.Name) else ""
        breaks: list[Exit] = []
        ways = [Exit(self.frame.locals, ())]
        for rounds, number in enumerate(numbers):
            self.frame.locals = self.meet(ways)
            self.frame.locals[target] = constant(number)
            exits = LoopExits(height)
            self.frame.loops.append(exits)
            with self._sparing(rounds):
                end = self.block(node.body)
            self.frame.loops.pop()
            self._leave(height)
            breaks += exits.at_break
            ways = [Exit(self.frame.locals, ())] if end is End.REACHED else []
            ways += exits.at_continue
            if not ways:
                break
        self.frame.locals = self.meet(ways + breaks) if ways or breaks else self.frame.locals

    @contextmanager
    def _sparing(self, rounds: int) -> Iterator[None]:
        """A round after others: what it takes is spared by a run to the fixpoint, whatever loops inside it spare."""
        steps, sparable = self.ledger.steps, self.ledger.sparable
        try:
            yield
        finally:
            if rounds >= FEWEST_PASSES:
                self.ledger.sparable = sparable + self.ledger.steps - steps

    def _leave(self, height: int) -> None:
        """Behind a loop only the conditions count under which the function was not left."""
        self.conditions[height:] = [each for each in self.conditions[height:] if each.returns]

    # -- fixpoint ------------------------------------------------------------------------------------------------

    def _counted(self, node: ast.For, bounds: list[Value], *, loses_locals: bool) -> Loop:
        """A ``for`` loop. The backward pass counts its index down from the bounds, which are needed as a condition."""
        bit = self._loop_bit(node)
        target = node.target.id if isinstance(node.target, ast.Name) else ""
        bound, of = self.flat(bounds), _bound(node, bounds)

        def begin() -> Condition:
            if target:
                symbol = self.ledger.own_symbol(target, (node, self.frame.functions))
                self.frame.locals[target] = Value(
                    type=types.INTEGER, symbol=symbol, threads=bound.threads, varies=bound.varies | bit
                )
            condition = self.condition(bound, node.iter, "the loop's bound ", loop=True)
            condition.bound = of
            return condition

        return Loop(node, facts_of(node), bit, loses_locals, begin, of)

    def _loop_bit(self, node: ast.AST) -> int:
        """The bit of a loop, by node and call chain."""
        loops = self.ledger.loops
        return 1 << loops.setdefault((node, self.frame.functions), len(loops))

    def _fixpoint(self, loop: Loop) -> None:
        """Run the body until what comes in stops growing; only the last pass leaves records."""
        before = Exit(dict(self.frame.locals), ())
        kept = Exit(self._kept(loop, before.locals), ())
        if loop.loses_locals:
            for name in loop.facts.assigned & before.locals.keys():
                self.ledger.lose(before.locals[name], name, loop.node, loop.bound)
        entry = {**kept.locals, **self._carried(loop, before.locals)}
        for remaining in reversed(range(MOST_PASSES)):
            mark = self.ledger.mark()
            ends, exits, condition = self._pass(loop, entry)
            grown = self._grown(loop, entry, ends)
            if not grown:
                break
            if remaining:
                self.ledger.rollback(mark)
            entry.update(grown)
        loop.at_once = loop.loses_locals and self._leaves_at_once(loop, exits, mark)
        breaks = self._skipping(loop, entry, exits.at_break) if loop.at_once else exits.at_break
        self._share_parameters(loop, before.locals, ends)
        self._skipped(loop, mark, exits)
        self._left_behind(loop, mark)
        self._in_order(loop, mark)
        leaving = self.meet([self._not_run(loop, kept), *ends, *breaks])
        self.frame.locals = {**leaving, **dict(self._after(loop, leaving, condition))}

    def _pass(self, loop: Loop, entry: Environment) -> tuple[list[Exit], LoopExits, Condition]:
        """One run of the body: the ways to its end, and its ``break``s and ``continue``s."""
        height = len(self.conditions)
        outer_bits, exits = self.loop_bits, LoopExits(height)
        self.loop_bits |= loop.bit
        self.loop_nodes.append(loop.node)
        constant = (value for name, value in entry.items() if name not in loop.facts.assigned)
        self.loop_entries.append(frozenset(map(id, constant)))
        self.frame.locals = dict(entry)
        self.frame.loops.append(exits)
        condition = loop.begin()
        self.conditions.append(condition)
        end = self.block(loop.node.body)
        self._leave(height)
        self.frame.loops.pop()
        self.loop_bits = outer_bits
        self.loop_nodes.pop()
        self.loop_entries.pop()
        ends = [Exit(self.frame.locals, ())] if end is End.REACHED else []
        return ends + self._skipping(loop, entry, exits.at_continue), exits, condition

    def _share_parameters(self, loop: Loop, before: Environment, ends: Sequence[Exit]) -> None:
        """Note the parameters that a loop assigns: the adjoint of each is that of the caller's variable.

        Measured: whatever the caller does with that variable afterwards has contributed to its adjoint already, and
        goes through the adjoint of the function's loop as well, be the function's own result used or not. Only a sum
        passes it on as it is, unless what is added carries gradient itself.
        """
        parameters = self.frame.parameters
        for name in loop.facts.assigned & parameters.keys() if loop.loses_locals else ():
            made = union(way.locals[name].active for way in ends)
            harmless = name in loop.facts.summed and not self.frame.added.get(name, 0)
            if parameters[name] is before.get(name) and not harmless:
                token = Token(TokenKind.CARRIED, name, "", "", self.ledger.order, loop.node, self.frame.file)
                bit = self.ledger.token(token, (loop.node, self.frame.functions, "parameter"))
                astray = Astray(bit, loop.node, self.frame.file, BY_REFERENCE, made)
                self.ledger.watch(before[name], astray)

    def _kept(self, loop: Loop, before: Environment) -> Environment:
        """The locals from before, as the loop may leave them: those it does not read it either replaces or keeps.

        In a variable that is kept there is still the result that its own operation's adjoint reads; to one that is
        replaced no gradient comes back from behind the loop.
        """
        locals_ = dict(before)
        for name in (loop.facts.assigned - loop.facts.carried) & locals_.keys() if loop.loses_locals else ():
            held = self.ledger.variables.get(locals_[name], 0)
            own = union(1 << each for each in members(locals_[name].needs) if self.ledger.needs[each].tokens == held)
            if held and own:
                kept = locals_[name] = locals_[name].like(needs=locals_[name].needs & ~own)
                self.ledger.variables[kept] = held
        return locals_

    def _not_run(self, loop: Loop, kept: Exit) -> Exit:
        """The locals where the loop runs no iteration, so that no other loop over the same range has lost one."""
        there = self.ledger.there_without(loop.bound)
        assigned = loop.facts.assigned & kept.locals.keys() if there else ()
        return Exit({**kept.locals, **{name: self._spared(kept.locals[name], there) for name in assigned}}, ())

    def _spared(self, value: Value, there: int) -> Value:
        """A value, and its components, made of nothing lost among the tokens that are ``there``."""
        spared = value.like(tokens=value.tokens & ~there, needs=self.ledger.spared(value.needs, there))
        if value.components is not None:
            spared.components = tuple(self._spared(part, there) for part in value.components)
        if value in self.ledger.variables:
            self.ledger.variables[spared] = self.ledger.variables[value]
        return spared

    def _grown(self, loop: Loop, entry: Environment, ends: list[Exit]) -> Environment:
        """The carried locals of which the body made more than came in."""
        incoming = self.meet([Exit(entry, ()), *ends])
        return {
            name: self._overwritten(loop, name, incoming[name], TokenKind.CARRIED)
            for name in loop.facts.carried
            if name in incoming and not incoming[name].places and not _same(entry.get(name), incoming[name])
        }

    def _carried(self, loop: Loop, before: Environment) -> Environment:
        """The carried locals as the body sees them: of some iteration, and lost in the backward pass."""
        return {
            name: self._overwritten(loop, name, before[name], TokenKind.CARRIED)
            for name in loop.facts.carried
            if name in before and not before[name].places
        }

    def _after(self, loop: Loop, leaving: Environment, condition: Condition) -> Iterator[tuple[str, Value]]:
        """The locals that the body assigned, as the code behind the loop sees them."""
        leaves = loop.leaves
        for name in loop.facts.assigned:
            value = leaving.get(name)
            if value is None or value.places:
                continue
            value = self._overwritten(loop, name, self.chosen(value, condition), TokenKind.AFTER)
            if leaves is not None:
                lost = value.tokens & self.ledger.carried
                value.needs |= self.need(lost, value.active, leaves, f"{LEFT_BEHIND} ")
            yield name, value

    def _leaves_at_once(self, loop: Loop, exits: LoopExits, since: Mark) -> bool:
        """Whether the conditions of all ``break``s stay as they are, so that the first iteration decides."""
        stored = {record.path for record in self.ledger.stores[since.stores :]}
        conditions = [condition for exit_ in exits.at_break for condition in exit_.conditions]
        tokens = union(condition.tokens for condition in conditions)
        read = {self.ledger.tokens[number].path for number in members(tokens)}
        return not any(condition.varies & loop.bit for condition in conditions) and stored.isdisjoint(read)

    def _skipping(self, loop: Loop, entry: Environment, exits: Sequence[Exit]) -> list[Exit]:
        """The ways to a loop's ``continue``s: what they have made of the locals until then is not differentiated."""
        if not loop.loses_locals:
            return list(exits)
        token = Token(TokenKind.CARRIED, "", "", "", self.ledger.order, loop.node, self.frame.file)
        found: list[Exit] = []
        for way in exits:
            locals_ = dict(way.locals)
            for name in loop.facts.assigned & locals_.keys():
                value = locals_[name]
                if value is not entry.get(name) and not value.places and way.node is not None:
                    own = dataclasses.replace(token, path=name)
                    bit = self.ledger.token(own, (loop.node, self.frame.functions, "skipped"))
                    locals_[name] = needing(value, self.need(bit, value.active, way.node, f"{SKIPPED} "))
            found.append(Exit(locals_, way.conditions))
        return found

    def _skipped(self, loop: Loop, since: Mark, exits: LoopExits) -> None:
        """Stores before a ``continue``, or before a ``break`` that only the first iteration comes to.

        Measured: the adjoint of an iteration runs it once more, up to the statement that leaves it, and ends there.
        """
        ways = [*exits.at_continue, *(exits.at_break if loop.at_once else ())] if loop.loses_locals else []
        for way in ways:
            for record in self.ledger.stores[since.stores :]:
                apart = any((number, not arm) in record.arms for number, arm in way.arms)
                if record.order <= way.order and not apart and way.node is not None:
                    token = Token(TokenKind.CARRIED, record.path, "", "", self.ledger.order, loop.node, self.frame.file)
                    bit = self.ledger.token(token, (loop.node, self.frame.functions, "skipped"))
                    record.needs |= self.need(bit, record.value.active, way.node, f"{SKIPPED} ")

    def _left_behind(self, loop: Loop, since: Mark) -> None:
        """Stores in a loop that a ``break`` or ``return`` leaves: the adjoint goes through other iterations.

        Measured: it starts at the last iteration that the bound allows; where it meets a ``break`` it stops.
        """
        leaves = loop.leaves
        if leaves is None:
            return
        for record in self.ledger.stores[since.stores :]:
            token = Token(TokenKind.CARRIED, record.path, "", "", self.ledger.order, loop.node, self.frame.file)
            bit = self.ledger.token(token, (loop.node, self.frame.functions, "stored"))
            record.needs |= self.need(bit, record.value.active, leaves, f"{LEFT_BEHIND} ")

    def _overwritten(self, loop: Loop, name: str, value: Value, kind: TokenKind) -> Value:
        """A local as a loop leaves it: no constant, of no known index, and (if Warp keeps one copy) lost."""
        symbol = ""
        if value.type.floating is not True:
            symbol = self.ledger.own_symbol(name, (loop.node, self.frame.functions, name, kind))
        value = value.like(
            constant=ABSENT, fixed=False, symbol=symbol, lane=0, components=None, varies=value.varies | loop.bit
        )
        value.sign = Sign.UNKNOWN
        if not loop.loses_locals or value.local or value.type.kind in (Kind.STRUCT, Kind.TILE):
            return value
        present = frozenset[str]().union(*(condition.present for condition in self.conditions))
        token = Token(kind, name, "", "", self.ledger.order, loop.node, self.frame.file, present=present)
        lost = self.ledger.token(token, (loop.node, self.frame.functions))
        self.ledger.bounds.setdefault(lost, set()).add(loop.bound)
        if kind is TokenKind.CARRIED and isinstance(loop.node, ast.While):
            self.ledger.variables[value] = lost
            self.ledger.chained[value] = self.need(lost, value.active, loop.node.test, OUT_OF_ORDER)
        else:
            value.tokens |= lost
        return value

    def _in_order(self, loop: Loop, since: Mark) -> None:
        """Stores in a ``while`` loop: its adjoint goes from the first iteration to the last, as the loop did.

        So the gradient of an element that later iterations build on is not complete when it is handed on, and of
        several stores to one element the first one gets what the last one should. Measured.
        """
        if not isinstance(loop.node, ast.While):
            return
        tokens = (token for token in self.ledger.tokens if token.kind is TokenKind.READ and token.loops & loop.bit)
        reads = [(token.path, token.node) for token in tokens]
        for record in self.ledger.stores[since.stores :]:
            own = set(walk(record.node)) if is_sum(record.node) else set()
            again = record.kind is StoreKind.STORE and not own and not record.varies & loop.bit
            built_on = any(path == record.path and node not in own for path, node in reads)
            if built_on or (again and record.value.varies & loop.bit):
                token = Token(TokenKind.CARRIED, record.path, "", "", self.ledger.order, loop.node, self.frame.file)
                bit = self.ledger.token(token, (loop.node, self.frame.functions, "order"))
                record.needs |= self.need(bit, record.value.active, record.node, OUT_OF_ORDER)


def _same(a: Value | None, b: Value | None) -> bool:
    """Whether two values know the same."""
    if a is None or b is None:
        return a is b
    return (a.active, a.depends, a.tokens, a.needs, a.cuts, a.varies) == (
        b.active,
        b.depends,
        b.tokens,
        b.needs,
        b.cuts,
        b.varies,
    )


def _bound(node: ast.For, bounds: Sequence[Value]) -> Bound | None:
    """The range of a loop, where it is one and its numbers are known by name."""
    symbols = [value.symbol for value in bounds]
    if not all(symbols) or any("?" in each for each in symbols) or not 1 <= len(symbols) <= 3:
        return None
    if not isinstance(node.iter, ast.Call) or len(node.iter.args) != len(symbols):
        return None
    start, stop = ("0", symbols[0]) if len(symbols) == 1 else symbols[:2]
    return start, stop, symbols[2] if len(symbols) == 3 else "1"


def _constant_range(bounds: Sequence[Value]) -> range | None:
    """The range, where Warp sees its bounds as constants (computed numbers are none: ``range(3 * 2)``)."""
    numbers = [value.constant for value in bounds if value.fixed and isinstance(value.constant, int)]
    if len(numbers) != len(bounds) or not 1 <= len(bounds) <= 3 or (len(numbers) == 3 and numbers[2] == 0):
        return None
    return range(*numbers)

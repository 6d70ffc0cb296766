"""Functions of the project, which are executed in place: generated adjoints, the user's own, and native snippets."""

from __future__ import annotations

import ast
import dataclasses
from abc import abstractmethod
from collections.abc import Mapping, Sequence

from warplint.kernels.adjoints import adjoint_of
from warplint.kernels.ledger import Astray, File, TokenKind
from warplint.kernels.liveness import assigned_in_loops
from warplint.kernels.operations import End, Frame
from warplint.kernels.source import Adjoint, Function
from warplint.kernels.stores import Stores, Target
from warplint.kernels.summary import Cut, StoreKind
from warplint.kernels.types import Kind, Type
from warplint.kernels.values import NOTHING, Place, Value, joined, members, needing, union, without

DEEPEST_CALL = 32


class Functions(Stores):
    """Evaluates calls of ``@wp.func``s."""

    @abstractmethod
    def block(self, statements: Sequence[ast.stmt]) -> End:
        """Execute statements."""

    def project_function(self, function: Function, node: ast.Call) -> Value:
        """A call of a ``@wp.func``."""
        values = self.operands(node.args)
        keywords = {each.arg: self.evaluate(each.value) for each in node.keywords if each.arg}
        return self.inline(self._overload(function, values, len(keywords)), values, keywords, node)

    def _overload(self, function: Function, values: Sequence[Value], keywords: int) -> Function:
        """The overload that fits the arguments best."""
        if not function.overloads:
            return function
        fitting = [each for each in (function, *function.overloads) if _arity_fits(each, len(values) + keywords)]

        def clashes(candidate: Function) -> int:
            parameters = zip(candidate.node.args.args, values, strict=False)
            wanted = [(self.annotation(each.annotation, candidate.scope), value) for each, value in parameters]
            return sum(_clash(of, value) for of, value in wanted)

        return min(fitting, key=clashes, default=function)

    def inline(
        self, function: Function, values: Sequence[Value], keywords: Mapping[str, Value], node: ast.Call
    ) -> Value:
        """Execute a function in place; its adjoint recomputes it, so its own loops lose nothing of what it returns."""
        caller = self.frame
        if function.node in caller.functions or len(caller.functions) > DEEPEST_CALL:
            self.ledger.unresolved[f"recursive {function.node.name}"] = None
            return self.linear([*values, *keywords.values()])
        given = [*values, *keywords.values()]
        if function.adjoint in (Adjoint.NATIVE, Adjoint.NATIVE_MISSING):
            return self._native(function, given, node)
        stores, order, watched = len(self.ledger.stores), self.ledger.order, dict(self.ledger.watched)
        value = self._executed(function, values, keywords, node)
        if function.adjoint is Adjoint.CUSTOM:
            self.ledger.watched = watched  # its own body is not differentiated
            written = {store.path for store in self.ledger.stores[stores:]}
            inner = self.ledger.carried | self._read_of(written, order)
            for store in self.ledger.stores[stores:]:
                store.value = self._custom(without(store.value, inner), given, node)
                store.needs, store.multiplier = store.value.needs, 0
            differentiated = self._custom(without(value, inner & ~self.ledger.carried), given, node)
            value = self._with_adjoint(function, values, written, differentiated, value.active)
        if function.replay is not None:
            for record in self.ledger.stores[stores:]:
                record.again = False
            tokens = self._replayed(function.replay, values, keywords, node)
            value = value.like(tokens=tokens, components=None, fields=None)
        own = union(self.ledger.variables.get(argument, 0) for argument in given)
        recomputed = (self.ledger.carried | own) & ~union(argument.tokens for argument in given)
        return without(value, recomputed) if recomputed else self.copied(value)

    def _read_of(self, paths: set[str], since: int) -> int:
        """The tokens of what was read of ``paths`` since a statement.

        A custom adjoint reads what its function left in the arrays that it wrote, not what it met there on the way.
        """
        tokens = enumerate(self.ledger.tokens)
        return union(1 << number for number, token in tokens if token.path in paths and token.order > since)

    def _executed(
        self, function: Function, values: Sequence[Value], keywords: Mapping[str, Value], node: ast.Call
    ) -> Value:
        """The joined value of a function's ``return``s."""
        caller = self.frame
        entry = len(self.conditions)
        self.frame = Frame(
            function.scope,
            File(function.path, function.lines),
            conditions_at_entry=entry,
            functions=(*caller.functions, function.node),
        )
        try:
            self._bind_parameters(function, values, keywords)
            self.frame.parameters = dict(self.frame.locals)
            self.block(function.node.body)
            returned, final, bound = self.frame.returned, self.frame.locals, self.frame.parameters
        finally:
            del self.conditions[entry:]
            self.frame = caller
        self._write_back(function, node, final)
        value = returned[0] if returned else NOTHING
        for other in returned[1:]:
            value = joined(value, other)
        return self._assigned(function, values, bound, value, node)

    def _assigned(
        self, function: Function, values: Sequence[Value], bound: Mapping[str, Value], result: Value, node: ast.Call
    ) -> Value:
        """The result, and the caller's variables that were given for parameters which a loop of the function assigns.

        They are shared with what the caller makes of them later: of the same call in another iteration, if not more.
        """
        needs = 0
        for parameter, argument, value in zip(function.node.args.args, node.args, values, strict=False):
            astray = self.ledger.watched.get(bound[parameter.arg], ()) if isinstance(argument, ast.Name) else ()
            for each in [each for each in astray if each.what]:
                again = values.count(value) > 1 or (
                    any(id(value) in entry for entry in self.loop_entries)
                    and self._is_returned(parameter.arg, each, function, result)
                )
                given = result.active & (value.active | each.reached) if again else 0
                needs |= self.ledger.need(each.token, given, node, self.frame.file, each.what)
                if bound[parameter.arg] is not value and value.active | each.reached:
                    self.ledger.watch(value, dataclasses.replace(each, node=node, file=self.frame.file))
        return needing(result, needs) if needs else result

    def _is_returned(self, parameter: str, astray: Astray, function: Function, result: Value) -> bool:
        """Whether a result may stand on what the loop makes of a parameter; of loops further inside nobody knows."""
        if astray.node not in ast.walk(function.node):
            return True
        tokens = (self.ledger.tokens[number] for number in members(result.tokens & self.ledger.carried))
        return any(token.path == parameter for token in tokens)

    def _bind_parameters(self, function: Function, values: Sequence[Value], keywords: Mapping[str, Value]) -> None:
        """Bind arguments, then defaults."""
        arguments = function.node.args
        parameters = [*arguments.posonlyargs, *arguments.args]
        defaults = dict(zip([each.arg for each in parameters][::-1], arguments.defaults[::-1], strict=False))
        for number, parameter in enumerate(parameters):
            if number < len(values):
                value = values[number]
            elif parameter.arg in keywords:
                value = keywords[parameter.arg]
            elif parameter.arg in defaults:
                value = self.evaluate(defaults[parameter.arg])
            else:
                value = NOTHING
            self.frame.locals[parameter.arg] = self._passed(parameter, value, function)

    def _passed(self, parameter: ast.arg, value: Value, function: Function) -> Value:
        """An argument as the parameter: a variable of its own, which the caller's adjoint reads from the caller's."""
        if value.fixed or value in self.ledger.variables:
            value = value.like(fixed=False, tokens=self.read(value))
        if value.type.kind is Kind.UNKNOWN:
            value = value.like(type=self.annotation(parameter.annotation, function.scope))
        if parameter.arg in assigned_in_loops(function.node):
            value = value.like()
        return self.variable(parameter.arg, value, parameter)

    def _write_back(self, function: Function, node: ast.Call, final: Mapping[str, Value]) -> None:
        """Parameters annotated ``wp.ref[T]`` change the caller's variable."""
        for parameter, argument in zip(function.node.args.args, node.args, strict=False):
            if not isinstance(parameter.annotation, ast.Subscript):
                continue
            if self.annotation(parameter.annotation, function.scope).by_reference and parameter.arg in final:
                self.assign(argument, final[parameter.arg], node)

    def _replayed(
        self, replay: Function, values: Sequence[Value], keywords: Mapping[str, Value], node: ast.Call
    ) -> int:
        """What a replay function reads in place of the body: it runs in the backward pass and records nothing."""
        mark, watched = self.ledger.mark(), dict(self.ledger.watched)
        tokens = self._executed(replay, values, keywords, node).tokens
        self.ledger.rollback(mark)
        self.ledger.watched = watched
        return tokens

    def _custom(self, value: Value, given: Sequence[Value], node: ast.Call) -> Value:
        """A function with a custom adjoint: gradient may flow to any argument, and any argument may be read."""
        arguments = self.linear(given)
        active = value.active | arguments.active
        needs = arguments.needs | self.need(value.tokens | union(map(self.read, given)), active, node)
        cuts = arguments.cuts  # what stops gradient inside is not differentiated
        return value.like(active=active, needs=needs, cuts=cuts, dangers=0, components=None, fields=None)

    def _with_adjoint(
        self, function: Function, values: Sequence[Value], written: set[str], value: Value, flowing: int
    ) -> Value:
        """What a custom adjoint in sight leaves out, or assigns where it had to add."""
        if function.gradient is None:
            return value
        text, file = adjoint_of(function.gradient.node), File(function.gradient.path, function.gradient.lines)
        needs = 0
        for name, argument in zip(text.parameters, values, strict=False):
            own = [place for place in argument.places if argument.type.floating is not False]
            paths = argument.active | union(self.ledger.path_bit(each.path) for each in own if each.path not in written)
            if name not in text.mentioned:
                omitted = paths & flowing
                needs |= self.adjoint_need(TokenKind.OMITTED, omitted, name, function.gradient.node, file)
            for statement, index in text.assigned.get(name, ()):
                if index is None and argument.active:
                    token = self.adjoint_token(TokenKind.ASSIGNED, name, statement, file)
                    self.ledger.watch(argument, Astray(token, statement, file))
                    again = any(id(argument) in entry for entry in self.loop_entries)
                    given = argument.active if again else 0
                    needs |= self.adjoint_need(TokenKind.ASSIGNED, given, name, statement, file)
                elif index in text.parameters and self._is_shared(text.parameters.index(index), values):
                    needs |= self.adjoint_need(TokenKind.ASSIGNED, paths, name, statement, file)
        return needing(value, needs) if needs else value

    def _is_shared(self, position: int, values: Sequence[Value]) -> bool:
        """Whether an argument, used as an index, is the same for all threads."""
        return position < len(values) and not values[position].threads and not values[position].depends

    def _native(self, function: Function, given: Sequence[Value], node: ast.Call) -> Value:
        """A native snippet: it may read and store to any array it gets; without an adjoint, gradient stops here."""
        missing = function.adjoint is Adjoint.NATIVE_MISSING
        loads: list[Value] = []
        for argument in given:
            for place in argument.places:
                unknown = Place(place.path, (*place.indices, Value(symbol=self.ledger.fresh_symbol())))
                loads.append(self.load(unknown, argument.type, node))
        inputs = [*(argument for argument in given if not argument.places), *loads]
        if missing:
            value = self.flat(inputs, Cut.NATIVE, function.node, File(function.path, function.lines))
        else:
            value = self.apply("", inputs, node)
        for argument in given:
            for place in argument.places:
                unknown = Place(place.path, (*place.indices, Value(symbol=self.ledger.fresh_symbol())))
                self.store(unknown, Target("", argument, [], of=argument.type), StoreKind.STORE, value, node)
        return value.like(type=self.annotation(function.node.returns, function.scope))


def _arity_fits(function: Function, given: int) -> bool:
    arguments = function.node.args
    most = len(arguments.posonlyargs) + len(arguments.args)
    return most - len(arguments.defaults) <= given <= most


def _clash(wanted: Type, value: Value) -> bool:
    """Whether a value certainly is not of a parameter's type."""
    has = value.type
    if Kind.UNKNOWN in (wanted.kind, has.kind):
        return False
    if wanted.kind is not has.kind:
        return True
    return any(
        None not in pair and pair[0] != pair[1]
        for pair in ((wanted.floating, has.floating), (wanted.length, has.length), (wanted.struct, has.struct))
    )

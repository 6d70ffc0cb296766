"""Calls: Warp's builtins, constructors, atomics and tiles; functions of the project, which are executed in place."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Mapping, Sequence

from warplint.kernels import types
from warplint.kernels.adjoints import adjoint_of
from warplint.kernels.elements import LONGEST_SYMBOL
from warplint.kernels.ledger import File, Token, TokenKind
from warplint.kernels.operations import End, Frame
from warplint.kernels.source import Adjoint, Builtin, Function, Struct, TypeAlias
from warplint.kernels.stores import Stores, Target
from warplint.kernels.summary import Cut, StoreKind
from warplint.kernels.types import COMPOSITES, Kind, Type
from warplint.kernels.values import ABSENT, NOTHING, Place, Sign, Value, joined, members, needing, union, without
from warplint.names import dotted

DEEPEST_CALL = 32
ZERO_AT_MOST, OVERFLOW_FROM = 1e-2, 5.0
"""Numbers in a condition that may guard an operand against zero, or an exponential against overflow."""

_ATOMICS = {
    "atomic_add": StoreKind.ACCUMULATE,
    "atomic_sub": StoreKind.ACCUMULATE,
    "atomic_min": StoreKind.ACCUMULATE,
    "atomic_max": StoreKind.ACCUMULATE,
    "atomic_and": StoreKind.ACCUMULATE,
    "atomic_or": StoreKind.ACCUMULATE,
    "atomic_xor": StoreKind.ACCUMULATE,
    "atomic_cas": StoreKind.STORE,
    "atomic_exch": StoreKind.STORE,
}
_TILE_STORES = {
    "tile_store": StoreKind.STORE,
    "tile_store_indexed": StoreKind.STORE,
    "tile_atomic_add": StoreKind.ACCUMULATE,
    "tile_atomic_add_indexed": StoreKind.ACCUMULATE,
}
_TILE_LOADS = frozenset(("tile_load", "tile_load_indexed"))
_TILES = frozenset(("tile_zeros", "tile_ones", "tile_full", "tile_empty", "tile_arange", "tile_stack"))
_SILENT = frozenset(("print", "printf", "expect_eq", "expect_neq", "expect_near", "breakpoint"))
_TYPE_ARGUMENTS = frozenset(("dtype", "shape", "length", "ndim", "storage", "m", "n"))


class Calls(Stores):
    """Evaluates calls."""

    @abstractmethod
    def block(self, statements: Sequence[ast.stmt]) -> End:
        """Execute statements."""

    def call(self, node: ast.Call) -> Value:
        """The value of a call."""
        callee = node.func
        name = dotted(callee)
        if name is None or not self.is_captured(name):
            return self._call_of_value(node)
        meaning = self.frame.scope.resolve(name)
        if isinstance(meaning, Builtin):
            return self._builtin(meaning.name, node)
        if isinstance(meaning, Function):
            return self._project_function(meaning, node)
        if isinstance(meaning, Struct):
            return self._new_struct(meaning, node)
        if isinstance(meaning, TypeAlias):
            return self._converted(types.annotated(meaning.expression, meaning.scope), node)
        return self._unresolved(name, node)

    def _call_of_value(self, node: ast.Call) -> Value:
        """A call of something computed: ``wp.grad(f)(x)``, ``a.dtype(0)``, ``type(x)(0)``, a function-valued local."""
        callee = node.func
        if isinstance(callee, ast.Call):
            outer = self.builtin_of(callee.func)
            if outer == "grad":
                return self.flat(self.arguments(node), Cut.NONDIFFERENTIABLE, node)
            if outer == "static":
                function = self.evaluate(callee)
                if isinstance(function.meaning, Function):
                    return self._project_function(function.meaning, node)
            of = self.annotation(callee, self.frame.scope)
            if of.kind is not Kind.UNKNOWN:
                return self._converted(of, node)
        value = self.evaluate(callee)
        if value.type.kind is Kind.TYPE:
            return self._converted(value.type.element or types.UNKNOWN, node)
        meaning = value.meaning
        if isinstance(meaning, Function):
            return self._project_function(meaning, node)
        if isinstance(meaning, Builtin):
            return self._builtin(meaning.name, node)
        if isinstance(meaning, Struct):
            return self._new_struct(meaning, node)
        return self._unresolved(ast.unparse(callee), node)

    def _unresolved(self, name: str, node: ast.Call) -> Value:
        """A callee that nobody knows: a conversion if nothing of interest goes in, else the analysis is incomplete."""
        arguments = self.arguments(node)
        if any(argument.depends or argument.tokens or argument.places for argument in arguments):
            self.ledger.unresolved[name] = None
        return self.linear(arguments)

    def arguments(self, node: ast.Call) -> list[Value]:
        """The values of all arguments but types and sizes."""
        values = [self.evaluate(argument) for argument in node.args]
        values += [self.evaluate(each.value) for each in node.keywords if each.arg not in _TYPE_ARGUMENTS]
        return values

    # -- builtins ------------------------------------------------------------------------------------------------

    def _builtin(self, name: str, node: ast.Call) -> Value:
        """A call of one of Warp's builtins."""
        if name == "tid":
            return self._thread_index()
        if name in ("where", "select") and node.args:
            return self._selected(self.arguments(node), node)
        if name in _ATOMICS:
            return self._atomic(name, node)
        if name in _TILE_STORES:
            return self._tile_store(_TILE_STORES[name], node)
        if name in _TILE_LOADS:
            return self._tile_load(node)
        of = types.named(name)
        if of is not None:
            return self._converted(of, node)
        arguments = self.arguments(node)
        if name == "static":
            return arguments[0].like(fixed=arguments[0].constant is not ABSENT) if arguments else NOTHING
        if name in _SILENT:
            return NOTHING
        if name == "type":
            return Value(type=Type(Kind.TYPE, element=arguments[0].type if arguments else None))
        if name in ("zeros", "array") and not any(argument.places for argument in arguments):
            return Value(type=Type(Kind.OTHER), local=True)
        if name in _TILES:
            return self.linear(arguments).like(type=types.TILE, local=True)
        generic = types.generic(name)
        if generic is not None:
            return self._converted(generic, node, arguments)
        if name in ("tile_map", "map") and arguments and isinstance(arguments[0].meaning, Function):
            return self.inline(arguments[0].meaning, arguments[1:], {}, node)
        return self._applied(name, arguments, node)

    def _applied(self, name: str, arguments: list[Value], node: ast.Call) -> Value:
        """An ordinary builtin: by the table; then the arguments that receive results."""
        value = self.apply(name, arguments, node)
        if name.startswith("tile") or name == "untile":
            value.local = name != "untile"
            value.type = Type(Kind.TILE, value.type.floating)
        elif value.type.floating is not True and all(argument.symbol for argument in arguments):
            symbol = f"{name}({', '.join(argument.symbol for argument in arguments)})"
            value.symbol = symbol if len(symbol) <= LONGEST_SYMBOL else ""
        first = self.table.outputs.get(name)
        if first == 0 and node.args and isinstance(node.args[0], ast.Name):
            target = node.args[0].id
            self.frame.locals[target] = joined(arguments[0], value).like(local=True)
        elif first:
            for argument in node.args[first:]:
                if isinstance(argument, ast.Name) and argument.id in self.frame.locals:
                    self.frame.locals[argument.id] = value
        return value

    def _selected(self, arguments: list[Value], node: ast.Call) -> Value:
        """``wp.where(c, a, b)``: both operands are evaluated, one is taken."""
        value = arguments[-1]
        for argument in arguments[1:-1]:
            value = joined(argument, value)
        test = arguments[0]
        needs = told = 0
        for number in members(value.dangers):
            danger = self.ledger.dangers[number]
            if not danger.guarded and danger.tokens & test.tokens and _speaks_of_zero(node.args[0]):
                told |= 1 << number
                token = Token(TokenKind.UNSELECTED, "", "", "", self.ledger.order, danger.node, danger.file)
                needs |= self.ledger.need(
                    self.ledger.token(token, (danger.node,)), danger.given, danger.node, danger.file
                )
        guards = [each for each in arguments[1:] if each.sign is Sign.POSITIVE and each.constant is not ABSENT]
        if guards and any(each.tokens & test.tokens for each in arguments[1:]):
            value.sign = Sign.POSITIVE
        value = needing(value, needs) if needs else value
        return self.chosen(value.like(dangers=value.dangers & ~told), self.condition(test, node.args[0]))

    def _thread_index(self) -> Value:
        """``wp.tid()``: one index, or a tuple of up to four where it is unpacked."""
        lanes = tuple(Value(type=types.INTEGER, threads=1 << number, lane=number + 1) for number in range(4))
        return lanes[0].like(components=lanes)

    def _converted(self, of: Type, node: ast.Call, values: list[Value] | None = None) -> Value:
        """A constructor or a cast."""
        arguments = list(map(self.copied, self.arguments(node) if values is None else values))
        if of.kind is Kind.SCALAR:
            return self._cast(of, arguments, node)
        value = self.linear(arguments)
        if of.kind is Kind.UNKNOWN:
            return value
        value.type = of
        if of.kind is Kind.TRANSFORM and len(arguments) in (0, 2):
            value.fields = dict(zip(("p", "q"), arguments or (Value(), Value()), strict=True))
        if of.kind in COMPOSITES and of.length is not None:
            value.components = _components(of.length, arguments)
        elif of.kind in COMPOSITES and arguments and all(each.type.kind is Kind.SCALAR for each in arguments):
            value.components = tuple(arguments) if len(arguments) > 1 else None
        return value

    def _cast(self, of: Type, arguments: list[Value], node: ast.AST) -> Value:
        """``float(x)`` passes gradient, ``int(x)`` of a real number stops it."""
        if not arguments:
            return Value(type=of)
        argument = arguments[0]
        if of.floating or argument.type.floating is False:
            number = argument.constant
            kept = number if of.floating is argument.type.floating and isinstance(number, (int, float)) else ABSENT
            return argument.like(
                type=of, constant=kept, fixed=False, components=None, symbol="" if of.floating else argument.symbol
            )
        return self.flat(arguments, node=node).like(type=of, symbol="")

    def _new_struct(self, struct: Struct, node: ast.Call) -> Value:
        """A new instance of a struct."""
        fields = types.fields(struct)
        given = {name: self.copied(self.evaluate(each)) for name, each in zip(fields, node.args, strict=False)}
        given.update({each.arg: self.copied(self.evaluate(each.value)) for each in node.keywords if each.arg})
        values = {name: given.get(name) or Value(type=of) for name, of in fields.items()}
        of_struct = Type(Kind.STRUCT, None, struct.node.name, struct=struct)
        return self.linear(given.values()).like(type=of_struct, fields=values)

    # -- atomics and tiles ---------------------------------------------------------------------------------------

    def _atomic(self, name: str, node: ast.Call) -> Value:
        """``wp.atomic_add(a, i, …, value)``: a store, and the old value, which nothing can bring back."""
        given = [*node.args, *(each.value for each in node.keywords)]
        if len(given) < 2:
            return self._unresolved(name, node)
        owner = self.evaluate(given[0])
        indices = tuple(self.index(argument) for argument in given[1:-1])
        if name == "atomic_cas":
            indices = indices[:-1]
        value = self.evaluate(given[-1])
        if name in ("atomic_min", "atomic_max"):
            value = value.like(needs=value.needs | self.need(value.tokens, value.active, node))
        old = Value()
        for place in owner.places:
            full = Place(place.path, place.indices + indices)
            target = Target("", owner, [], (full,), owner.type)
            record = self.store(full, target, _ATOMICS[name], value, node)
            if name in ("atomic_min", "atomic_max"):
                winner = self.load(full, owner.type, node)
                record.needs |= self.need(winner.tokens, value.active | winner.active, node)
                record.needs |= self._outdone(place.path, winner.active, record.order, node)
            old = joined(old, self._old_value(full, owner.type, node, record.order))
        return old

    def _outdone(self, path: str, given: int, order: int, node: ast.AST) -> int:
        """The need of an old value's cotangent to be cleared. Measured: it never is."""
        token = Token(TokenKind.OUTDONE, path, "", "", order, node, self.frame.file)
        return self.need(self.ledger.token(token, (node, self.frame.functions)), given, node)

    def _old_value(self, place: Place, of: Type, node: ast.Call, order: int) -> Value:
        """What an atomic returns."""
        ledger = self.ledger
        path = ledger.path_bit(place.path)
        symbol = f"{place.path}@{order}"
        returned = Token(TokenKind.ATOMIC, place.path, symbol, "", order, node, self.frame.file)
        token = ledger.token(returned, (order,))
        stops = (node, self.frame.file) if of.floating is not False else (None, None)
        cuts = ledger.cut(path, Cut.NONDIFFERENTIABLE, *stops)
        element = of.element or Type(floating=of.floating)
        return Value(0, path, token, 0, cuts, element, symbol, threads=1, varies=self.loop_bits)

    def _tile_load(self, node: ast.Call) -> Value:
        """``wp.tile_load(a, shape=…, offset=…)``: reads a block of an array."""
        owner = self.evaluate(node.args[0]) if node.args else NOTHING
        values = [self.load(place, owner.type, node) for place in self._blocks(owner, node)]
        value = self.linear(values)
        return value.like(type=Type(Kind.TILE, owner.type.floating), local=True)

    def _tile_store(self, kind: StoreKind, node: ast.Call) -> Value:
        """``wp.tile_store(a, tile, offset=…)``: writes a block of an array."""
        owner = self.evaluate(node.args[0]) if node.args else NOTHING
        tiles = [self.evaluate(argument) for argument in node.args[1:]]
        tiles += [self.evaluate(each.value) for each in node.keywords if each.arg == "t"]
        value = next((tile for tile in reversed(tiles) if tile.local or tile.active), NOTHING)
        for place in self._blocks(owner, node):
            self.store(place, Target("", owner, [], (place,), owner.type), kind, value, node)
        return NOTHING

    def _blocks(self, owner: Value, node: ast.Call) -> list[Place]:
        """The blocks of memory that a tile operation touches; its offset and indices tell blocks apart."""
        keys = [each.value for each in node.keywords if each.arg in ("offset", "indices")]
        values = [self.index(key) for key in keys]
        for value in values:
            value.lane = 0
        if not keys:
            values = [Value(symbol="block")] if len(node.args) <= 2 else [Value(symbol=self.ledger.fresh_symbol())]
        return [Place(place.path, place.indices + tuple(values)) for place in owner.places]

    # -- functions of the project --------------------------------------------------------------------------------

    def _project_function(self, function: Function, node: ast.Call) -> Value:
        """A call of a ``@wp.func``."""
        values = [self.evaluate(argument) for argument in node.args]
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
        stores = len(self.ledger.stores)
        value = self._executed(function, values, keywords, node)
        if function.adjoint is Adjoint.CUSTOM:
            written = {store.path for store in self.ledger.stores[stores:]}
            for store in self.ledger.stores[stores:]:
                store.value = self._custom(without(store.value, self.ledger.carried), given, node)
                store.needs, store.multiplier = store.value.needs, 0
            value = self._with_adjoint(function, values, written, self._custom(value, given, node), value.active)
        if function.replay is not None:
            for record in self.ledger.stores[stores:]:
                record.again = False
            tokens = self._replayed(function.replay, values, keywords, node)
            value = value.like(tokens=tokens, components=None, fields=None)
        own = union(self.ledger.variables.get(argument, 0) for argument in given)
        recomputed = (self.ledger.carried | own) & ~union(argument.tokens for argument in given)
        return without(value, recomputed) if recomputed else self.copied(value)

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
            self.block(function.node.body)
            returned, final = self.frame.returned, self.frame.locals
        finally:
            del self.conditions[entry:]
            self.frame = caller
        self._write_back(function, node, final)
        if not returned:
            return NOTHING
        value = returned[0]
        for other in returned[1:]:
            value = joined(value, other)
        return value

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
        mark = self.ledger.mark()
        tokens = self._executed(replay, values, keywords, node).tokens
        self.ledger.rollback(mark)
        return tokens

    def _custom(self, value: Value, given: Sequence[Value], node: ast.Call) -> Value:
        """A function with a custom adjoint: gradient may flow to any argument, and any argument may be read."""
        self.ledger.custom_adjoint = True
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
                    self.ledger.watched.setdefault(argument, []).append((name, statement, file))
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


def _speaks_of_zero(test: ast.expr) -> bool:
    """Whether a condition compares with zero, or with a number that nobody sees in it: not with, say, 1.0."""
    constants = [each.value for each in ast.walk(test) if isinstance(each, ast.Constant)]
    numbers = [abs(value) for value in constants if isinstance(value, (int, float))]
    return all(number <= ZERO_AT_MOST or number >= OVERFLOW_FROM for number in numbers)


def _components(length: int, arguments: list[Value]) -> tuple[Value, ...] | None:
    """The components of a composite made from ``arguments``, where each can be told."""
    if not arguments:
        return (Value(type=types.REAL),) * length
    if len(arguments) == length and all(argument.type.kind is not Kind.VECTOR for argument in arguments):
        return tuple(arguments)
    if len(arguments) == 1:
        only = arguments[0]
        if only.type.kind is Kind.SCALAR:
            return (only,) * length
        return only.components if only.components is not None and len(only.components) == length else None
    return None


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

"""Calls: Warp's builtins, constructors, atomics and tiles."""

from __future__ import annotations

import ast

from warplint.kernels import types
from warplint.kernels.elements import LONGEST_SYMBOL
from warplint.kernels.functions import Functions
from warplint.kernels.ledger import Token, TokenKind
from warplint.kernels.source import Builtin, Function, Struct, TypeAlias
from warplint.kernels.stores import Target
from warplint.kernels.summary import Cut, StoreKind
from warplint.kernels.types import COMPOSITES, Kind, Type
from warplint.kernels.values import ABSENT, NOTHING, Place, Sign, Value, joined, members, needing
from warplint.names import dotted
from warplint.syntax import walk

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
_OF_THE_DIAGONAL = frozenset(("trace", "get_diag"))
_TYPE_ARGUMENTS = frozenset(("dtype", "shape", "length", "ndim", "storage", "m", "n"))


class Calls(Functions):
    """Evaluates calls."""

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
            return self.project_function(meaning, node)
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
                    return self.project_function(function.meaning, node)
            of = self.annotation(callee, self.frame.scope)
            if of.kind is not Kind.UNKNOWN:
                return self._converted(of, node)
        value = self.evaluate(callee)
        if value.type.kind is Kind.TYPE:
            return self._converted(value.type.element or types.UNKNOWN, node)
        meaning = value.meaning
        if isinstance(meaning, Function):
            return self.project_function(meaning, node)
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
        return self.operands([*node.args, *(each.value for each in node.keywords if each.arg not in _TYPE_ARGUMENTS)])

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
        if name in _OF_THE_DIAGONAL:
            arguments = list(map(self._diagonal, arguments))
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

    def _diagonal(self, matrix: Value) -> Value:
        """What of a matrix stands on its diagonal, where its entries are known."""
        if matrix.components is None or not matrix.type.columns:
            return matrix
        return self.linear(matrix.components[:: matrix.type.columns + 1]).like(type=matrix.type)

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
                self.ledger.versions[place.path] += 1  # who reads the element behind this reads it anew
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


def _speaks_of_zero(test: ast.expr) -> bool:
    """Whether a condition compares with zero, or with a number that nobody sees in it: not with, say, 1.0."""
    constants = [each.value for each in walk(test) if isinstance(each, ast.Constant)]
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

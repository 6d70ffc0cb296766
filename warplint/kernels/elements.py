"""Parts of values: elements and rows of arrays, components of vectors and matrices, fields of structs."""

from __future__ import annotations

import ast
import dataclasses

from warplint.kernels import types
from warplint.kernels.ledger import Token, TokenKind
from warplint.kernels.operations import Operations
from warplint.kernels.summary import Cut
from warplint.kernels.types import COMPOSITES, Kind, Type
from warplint.kernels.values import Load, Place, Value, constant, joined, union

LONGEST_SYMBOL = 80
"""Index expressions longer than this are told apart by number."""

ARRAY_PROPERTIES = frozenset(("shape", "dtype", "ptr", "size", "ndim", "strides", "length", "capacity"))
COMPONENTS = {"x": 0, "y": 1, "z": 2, "w": 3}


class Elements(Operations):
    """Takes values apart."""

    def attribute_of(self, owner: Value, name: str) -> Value:
        """``owner.name``: a field, a component, or a property of an array."""
        if owner.places:
            return self._attribute_of_place(owner, name)
        if owner.fields is not None and name in owner.fields:
            return owner.fields[name]
        of = owner.type
        if name == "dtype":
            return Value(type=Type(Kind.TYPE, element=Type(Kind.SCALAR, of.floating)))
        if of.kind in COMPOSITES:
            if name in COMPONENTS and (of.kind is not Kind.TRANSFORM):
                return self.component(owner, (COMPONENTS[name],))
            return self._part(owner, Type(Kind.VECTOR, of.floating), "")
        if of.struct is not None:
            return self._part(owner, types.fields(of.struct).get(name, types.UNKNOWN), name)
        return self._part(owner, types.UNKNOWN, str(COMPONENTS.get(name, name)))

    def _attribute_of_place(self, owner: Value, name: str) -> Value:
        """A field of a struct parameter, or a property of an array."""
        if name == "dtype":
            return Value(type=Type(Kind.TYPE, element=owner.type.element))
        if owner.type.kind is Kind.ARRAY and name != "grad":
            symbol = f"{_text(owner.places[0])}.{name}"
            return Value(type=types.INTEGER if name == "size" else types.TUPLE, symbol=symbol)
        symbol = f"{owner.places[0].path}.{name}"
        part = types.UNKNOWN
        if owner.type.struct is not None:
            part = types.fields(owner.type.struct).get(name, types.UNKNOWN)
        elif owner.type.kind is Kind.ARRAY:
            part = dataclasses.replace(owner.type, floating=False)
        elif name in ARRAY_PROPERTIES:
            return Value(type=types.TUPLE, symbol=symbol)
        if part.kind in (Kind.ARRAY, Kind.STRUCT, Kind.UNKNOWN):
            places = tuple(Place(f"{each.path}.{name}", each.indices) for each in owner.places)
            return Value(type=part, symbol=symbol, places=places)
        return self._followed_field(Value(type=part, symbol=symbol), owner, name)

    def _followed_field(self, value: Value, owner: Value, name: str) -> Value:
        """A scalar field of a struct parameter, which stands on the struct where that is followed."""
        place = owner.places[0]
        if not self.ledger.followed or place.indices:
            return value
        function = self.frame.functions[-1]
        return self.ledger.followed_value(value, f"{place.path}.{name}", function, self.frame.file)

    def subscripted(self, owner: Value, indices: tuple[Value, ...], node: ast.expr) -> Value:
        """``owner[indices]``: an element or row of an array, a component, an entry of a captured tuple."""
        if owner.places:
            return self.element(owner, indices, node)
        if isinstance(owner.constant, (tuple, list)):
            return _entry(owner.constant, indices)
        keys = component_keys(indices)
        if keys is not None:
            return self.component(owner, keys)
        number = Type(Kind.SCALAR, owner.type.floating)
        if owner.type.kind is Kind.MATRIX and len(indices) == 1:
            number = Type(Kind.VECTOR, owner.type.floating)
        return self.steered(self._part(owner, number, ""), indices, node)

    def component(self, owner: Value, keys: tuple[int, ...]) -> Value:
        """The component at constant ``keys``: exact where the components are known."""
        of = owner.type
        found = positions(owner, keys)
        if owner.components is not None and found:
            parts = owner.components[found.start : found.stop]
            if len(keys) == 1 and of.kind is Kind.MATRIX:
                return self.linear(parts).like(type=Type(Kind.VECTOR, of.floating, length=len(parts)), components=parts)
            return parts[0]
        if of.kind is Kind.TUPLE:
            text = f"{owner.symbol}[{keys[0]}]" if owner.symbol else ""
            return self._part(owner, types.INTEGER, "").like(symbol=text)
        row = of.kind is Kind.MATRIX and len(keys) == 1
        part = Type(Kind.VECTOR if row else Kind.SCALAR, of.floating) if of.kind in COMPOSITES else types.UNKNOWN
        return self._part(owner, part, ", ".join(map(str, keys)))

    def _part(self, owner: Value, of: Type, key: str) -> Value:
        """A part of a value: whatever the value is; of a loaded element, with a ``key``, that part of memory alone."""
        tokens, load = owner.tokens, None
        if owner.load is not None and key:
            tokens, load = self._narrowed(owner.tokens, owner.load, key)
        part = Value(
            owner.active,
            owner.depends,
            tokens,
            owner.needs,
            owner.cuts,
            of,
            f"{owner.symbol}.{key}" if owner.symbol and key and of.floating is not True else "",
            threads=owner.threads,
            varies=owner.varies,
            load=load,
            local=owner.local,
            dangers=owner.dangers,
        )
        if of.floating is False and part.active:
            part.cuts |= self.ledger.cut(part.active, Cut.FLAT)
            part.active = part.needs = 0
        return part

    def _narrowed(self, tokens: int, load: Load, key: str) -> tuple[int, Load]:
        """The tokens of a component of a loaded element: that component of that element alone."""
        whole = self.ledger.tokens[load.token]
        component = f"{load.component}.{key}" if load.component else key
        bit = self.ledger.component_token(whole, component)
        return tokens & ~(1 << load.token) | bit, Load(bit.bit_length() - 1, component)

    def element(self, owner: Value, indices: tuple[Value, ...], node: ast.expr) -> Value:
        """Read an element, or take a row (a view: nothing is read yet), of each array that ``owner`` may be."""
        places = tuple(Place(place.path, place.indices + indices) for place in owner.places)
        if owner.type.ndim is not None and len(places[0].indices) < owner.type.ndim:
            return owner.like(places=places)
        value = self.load(places[0], owner.type, node)
        for place in places[1:]:
            value = joined(value, self.load(place, owner.type, node))
        return value

    def load(self, place: Place, of: Type, node: ast.expr) -> Value:
        """The value of one element as memory holds it now."""
        ledger = self.ledger
        bit = ledger.path_bit(place.path)
        text = index_text(place.indices)
        version = ledger.versions.get(place.path, 0)
        varies = union(index.varies for index in place.indices)
        order, file, loops, arms = ledger.tick(), self.frame.file, self.loop_bits, self.arms()
        read = Token(
            TokenKind.READ, place.path, text, "", order, node, file, varies, loops, arms, indices=place.indices
        )
        token = ledger.token(read, (version, loops, arms))
        real = of.floating is not False
        element = of.element or Type(floating=of.floating)
        symbol = "" if element.floating else f"{place.path}[{text}]" + "'" * version
        value = Value(
            bit if real else 0,
            bit,
            token,
            0,
            0 if real else ledger.cut(bit, Cut.FLAT),
            element,
            symbol if len(symbol) <= LONGEST_SYMBOL else "",
            threads=union(index.threads for index in place.indices),
            varies=varies | self.loop_bits if version else varies,
            load=Load(token.bit_length() - 1, ""),
        )
        return self.steered(value, place.indices, node)


def index_text(indices: tuple[Value, ...]) -> str:
    """The canonical text of an index."""
    return ", ".join(index.symbol for index in indices)


def component_keys(indices: tuple[Value, ...]) -> tuple[int, ...] | None:
    """The constant numbers that indices are, or None where one is not known."""
    keys = tuple(index.constant for index in indices)
    numbers = tuple(key for key in keys if isinstance(key, int))
    return numbers if len(numbers) == len(keys) else None


def positions(owner: Value, keys: tuple[int, ...] | None) -> range:
    """The positions among a composite's components that constant keys mean: one, a matrix' row, none if unknown."""
    if owner.components is None or keys is None:
        return range(0)
    count, columns = len(owner.components), owner.type.columns
    if owner.type.kind is not Kind.MATRIX:
        number, width = keys[0] if len(keys) == 1 else count, 1
    elif not columns:
        return range(0)
    else:
        number, width = keys[0] * columns + (keys[1] if len(keys) == 2 else 0), columns if len(keys) == 1 else 1
    number += count if number < 0 else 0
    return range(number, number + width) if number >= 0 and number + width <= count else range(0)


def _entry(entries: tuple[object, ...] | list[object], indices: tuple[Value, ...]) -> Value:
    """An entry of a captured tuple."""
    number = indices[0].constant
    if isinstance(number, int) and -len(entries) <= number < len(entries):
        return constant(entries[number])
    return Value()


def _text(place: Place) -> str:
    return f"{place.path}[{index_text(place.indices)}]" if place.indices else place.path

"""Stores: to array elements (recorded), to components of locals, to names."""

from __future__ import annotations

import ast

from warplint.dataclass import dataclass
from warplint.kernels import types
from warplint.kernels.elements import component_keys, index_text, positions
from warplint.kernels.expressions import Expressions
from warplint.kernels.ledger import Mutation, StoreRecord, Token, TokenKind
from warplint.kernels.liveness import is_sum
from warplint.kernels.summary import Cut, StoreKind
from warplint.kernels.types import COMPOSITES, Kind, Type
from warplint.kernels.values import ABSENT, Place, Value, joined, needing, union

_ACCUMULATING = (ast.Add, ast.Sub, ast.BitAnd, ast.BitOr, ast.BitXor)
_MULTIPLYING = (ast.Mult, ast.Div, ast.MatMult)


@dataclass
class Step:
    """One step of a target's access path: ``[indices]`` or ``.attribute``."""

    indices: tuple[Value, ...] = ()
    attribute: str = ""

    @property
    def text(self) -> str:
        """The step as part of a component's name; constant positions of ``x`` and ``[0]`` agree."""
        return {"x": "0", "y": "1", "z": "2", "w": "3"}.get(self.attribute, self.attribute) or index_text(self.indices)


@dataclass
class Target:
    """What a store goes to: elements of arrays (``places``), with a component, or the local ``name`` with steps."""

    name: str
    owner: Value
    steps: list[Step]
    places: tuple[Place, ...] = ()
    of: Type = types.UNKNOWN
    component: str = ""


class Stores(Expressions):
    """Executes the storing half of assignments."""

    # -- targets -------------------------------------------------------------------------------------------------

    def target(self, node: ast.expr) -> Target:
        """The place that an assignment's left side means."""
        steps: list[Step] = []
        while True:
            if isinstance(node, ast.Subscript):
                steps.append(Step(indices=self.indices(node.slice)))
            elif isinstance(node, ast.Attribute):
                steps.append(Step(attribute=node.attr))
            else:
                break
            node = node.value
        steps.reverse()
        name = node.id if isinstance(node, ast.Name) else ""
        owner = self.evaluate(node)
        return self._resolved(Target(name, owner, steps))

    def _resolved(self, target: Target) -> Target:
        """Follow the steps through struct parameters and rows to the elements they end at, if they do."""
        owner = target.owner
        for number, step in enumerate(target.steps):
            if step.attribute:
                owner = self.attribute_of(owner, step.attribute)
            elif not owner.places:
                return target
            else:
                places = tuple(Place(place.path, place.indices + step.indices) for place in owner.places)
                if owner.type.ndim is None or len(places[0].indices) >= owner.type.ndim:
                    target.places, target.of = places, owner.type
                    target.component = ".".join(step.text for step in target.steps[number + 1 :])
                    return target
                owner = owner.like(places=places)
        return target

    def assign(self, node: ast.expr, value: Value, statement: ast.AST) -> None:
        """``node = value``."""
        if isinstance(node, ast.Name):
            self.bind(node.id, value, statement)
        elif isinstance(node, (ast.Tuple, ast.List)):
            parts = value.components if value.components and len(value.components) >= len(node.elts) else None
            for number, part in enumerate(node.elts):
                self.assign(part, parts[number] if parts else value.like(components=None, symbol=""), statement)
        else:
            target = self.target(node)
            if target.places:
                for place in target.places:
                    self.store(place, target, StoreKind.STORE, value, statement)
            elif target.name in self.frame.locals and target.steps:
                self._assign_part(target, value, node, statement)

    def _assign_part(self, target: Target, value: Value, node: ast.expr, statement: ast.AST) -> None:
        """``v[0] = e`` on a local. Warp stores into the one copy of ``v`` that all of its readers share."""
        if self._ends_in_composite(target, node) and len(target.steps) == 1:
            old = self._followed(target.owner, target.steps, node)
            value = self._replaced_in_place(old, value, target, statement, TokenKind.REASSIGNED)
            self.ledger.filled.update((loop, target.name) for loop in self.loop_nodes)
            self._mutate(target.owner, statement)
        updated = self._updated(target.owner, target.steps, value, statement)
        self._rebind(target, updated)

    def _rebind(self, target: Target, updated: Value) -> None:
        """A composite with another component is still the same variable."""
        self.ledger.readers[updated] = self.ledger.readers.get(target.owner, 0)
        if target.owner in self.ledger.variables:
            self.ledger.variables[updated] = self.ledger.variables[target.owner]
        self.frame.locals[target.name] = updated

    def _mutate(self, composite: Value, statement: ast.AST) -> None:
        """Note that a component changes in the one copy of a composite, where some adjoint has read the whole of it."""
        readers = self.ledger.readers.get(composite, 0)
        if readers:
            place = (statement, self.frame.file, self.ledger.order)
            self.ledger.mutations.append(Mutation(*place, readers, self._innermost_loop()))

    def _innermost_loop(self) -> ast.AST | None:
        return self.loop_nodes[-1] if self.loop_nodes else None

    def bind(self, name: str, value: Value, statement: ast.AST) -> None:
        """Give a local its value. Integers without a symbol get one, so that what they index can be compared."""
        if value.lane > 0 and not value.symbol:
            value = value.like(symbol=self.ledger.lane_symbol(value.lane, name), components=None)
        elif not value.symbol and value.type.floating is not True and not value.places:
            value = value.like(symbol=self.ledger.own_symbol(name, (statement, self.ledger.order)))
        held = self.variable(name, value, statement)
        before = self.frame.locals.get(name, held)
        if before in self.ledger.chained and is_sum(statement):
            self.ledger.chained[held] = self.ledger.chained[before]
        self.frame.locals[name] = held

    # -- augmented assignments -----------------------------------------------------------------------------------

    def augment(self, node: ast.AugAssign) -> None:
        """``target op= value``."""
        if isinstance(node.target, ast.Name):
            old = self.summand(node.target) if is_sum(node) else self.evaluate(node.target)
            by = self.evaluate(node.value)
            self.note_added(node.target.id, by)
            value = self.operator(node.op, old, by, node)
            self.bind(node.target.id, value.like(local=True) if old.local else value, node)
            return
        target = self.target(node.target)
        if target.places:
            for place in target.places:
                self._augment_element(place, target, self.evaluate(node.value), node)
        elif target.name in self.frame.locals:
            old = self._followed(target.owner, target.steps, node.target)
            value = self.operator(node.op, old, self.evaluate(node.value), node)
            if self._ends_in_composite(target, node.target):
                value = self._augmented_in_place(old, value, target, node)
            updated = self._updated(target.owner, target.steps, value, node)
            self._rebind(target, updated)

    def note_added(self, name: str, term: Value) -> None:
        """Something is added to a variable: if that is a parameter, it matters what gradient flows into the term."""
        if name in self.frame.parameters:
            self.frame.added[name] = self.frame.added.get(name, 0) | term.active

    def _augmented_in_place(self, old: Value, value: Value, target: Target, node: ast.AugAssign) -> Value:
        """A component's new value. Measured: ``v[0] += e`` adds in place, ``v.x += e`` stores a sum as ``v.x = …``."""
        self._mutate(target.owner, node)
        if not isinstance(node.op, _ACCUMULATING):
            return self._replaced_in_place(old, value, target, node, TokenKind.COMPONENT)
        if target.steps[-1].attribute:
            return self._replaced_in_place(old, value, target, node, TokenKind.REASSIGNED)
        return value

    def _augment_element(self, place: Place, target: Target, value: Value, node: ast.AugAssign) -> None:
        """``a[i] += e`` adds, ``a[i] *= e`` multiplies in place, anything else loads, computes and stores."""
        if isinstance(node.op, _ACCUMULATING):
            self.store(place, target, StoreKind.ACCUMULATE, value, node)
        elif isinstance(node.op, _MULTIPLYING):
            self.multiply(place, target, value, node)
        else:
            old = self.load(place, target.of, node.target)
            self.store(place, target, StoreKind.STORE, self.operator(node.op, old, value, node), node)

    def multiply(self, place: Place, target: Target, value: Value, node: ast.AugAssign) -> None:
        """``a[i] *= e``: e is needed where a's gradient is wanted; a's old value, needed for e's, is lost at once."""
        ledger = self.ledger
        own = ledger.path_bit(place.path) if target.of.floating is not False else 0
        product = self.linear([value]).like(
            active=(value.active | own) if own else 0,
            depends=value.depends | ledger.path_bit(place.path),
            needs=value.needs | self.need(self.read(value), own, node),
        )
        self.store(place, target, StoreKind.MULTIPLY, product, node, value.active if own else 0)

    def _followed(self, value: Value, steps: list[Step], node: ast.expr) -> Value:
        """The part of a value at the end of ``steps``."""
        for step in steps:
            if step.attribute:
                value = self.attribute_of(value, step.attribute)
            else:
                value = self.subscripted(value, step.indices, node)
        return value

    def _replaced_in_place(self, old: Value, value: Value, target: Target, node: ast.AST, kind: TokenKind) -> Value:
        """A component's new value. Warp does not clear the component's cotangent, so the old value gets too much.

        Measured, for ``v[0] = e`` as for ``v[0] *= e``: wrong whenever gradient flows into the old component, also
        when ``e`` is a literal; right otherwise.
        """
        if not old.active:
            return value
        order, file = self.ledger.order, self.frame.file
        replaced = Token(kind, target.name, "", "", order, node, file, loop=self._innermost_loop())
        token = self.ledger.token(replaced, (node, self.frame.functions))
        return needing(value, self.need(token, old.active, node))

    def _ends_in_composite(self, target: Target, node: ast.expr) -> bool:
        """Whether the last step of a local target takes a component of a vector, matrix, quaternion or transform."""
        value = self._followed(target.owner, target.steps[:-1], node)
        if value.local or any(map(_is_slice, target.steps[-1].indices)):
            return False
        if value.type.kind is Kind.UNKNOWN:
            return bool(target.steps[-1].indices) or target.steps[-1].attribute in ("x", "y", "z", "w")
        return value.type.kind in COMPOSITES

    def _updated(self, owner: Value, steps: list[Step], value: Value, node: ast.AST) -> Value:
        """``owner`` with the part at ``steps`` replaced by ``value``: exactly where the parts are known, else added."""
        if not steps:
            return value
        step, rest = steps[0], steps[1:]
        is_field = owner.fields is not None and step.attribute in owner.fields
        if is_field or (step.attribute and owner.type.kind not in COMPOSITES):
            old = self.attribute_of(owner, step.attribute)
            fields = {**(owner.fields or {}), step.attribute: self._updated(old, rest, value, node)}
            base = [] if owner.fields is not None and step.attribute in owner.fields else [owner]
            return self.linear([*base, *fields.values()]).like(type=owner.type, fields=fields)
        keys = component_keys(step.indices) if step.indices else _named_component(step.attribute)
        if keys is not None:
            owner = self._taken_apart(owner)
        found = positions(owner, keys)
        if owner.components is not None and found:
            parts = list(owner.components)
            if len(found) == 1:
                parts[found.start] = self._updated(parts[found.start], rest, value, node)
            elif not rest:
                known = value.components
                row = known if known is not None and len(known) == len(found) else (value,) * len(found)
                parts[found.start : found.stop] = row
            else:
                row_of = self.component(owner, (found.start // len(found),))
                changed = self._updated(row_of, rest, value, node).components
                parts[found.start : found.stop] = changed if changed is not None else (value,) * len(found)
            return self.linear(parts).like(type=owner.type, components=tuple(parts))
        part = self.steered(value, step.indices, node)
        return joined(owner, part).like(
            type=owner.type, components=None, symbol="", constant=ABSENT, local=owner.local, load=None
        )

    def _taken_apart(self, owner: Value) -> Value:
        """A composite by its components, as far as their number is known: one of them is about to be replaced."""
        length, columns = owner.type.length, owner.type.columns
        if owner.components is not None or owner.local or not length or owner.type.kind not in COMPOSITES:
            return owner
        if owner.type.kind is not Kind.MATRIX:
            return owner.like(components=tuple(self.component(owner, (number,)) for number in range(length)))
        if not columns:
            return owner
        keys = (divmod(number, columns) for number in range(length))
        return owner.like(components=tuple(self.component(owner, key) for key in keys))

    # -- recording -----------------------------------------------------------------------------------------------

    def store(
        self,
        place: Place,
        target: Target,
        kind: StoreKind,
        value: Value,
        node: ast.AST,
        multiplier: int = 0,
    ) -> StoreRecord:
        """Record a store to one element (or a component of it), with everything its adjoint reads."""
        ledger, file = self.ledger, self.frame.file
        ledger.path_bit(place.path)
        depends = union(index.depends for index in place.indices)
        depends |= union(condition.depends for condition in self.conditions)
        kept = value.like(depends=value.depends | depends, cuts=value.cuts | ledger.cut(depends, Cut.FLAT))
        if target.of.floating is False:
            kept = kept.like(active=0, needs=0, cuts=kept.cuts | ledger.cut(kept.active, Cut.FLAT))
        else:
            kept.needs |= self._needs_of_place(place, value, node)
        guards = [condition for condition in self.conditions if not condition.loop]
        record = StoreRecord(
            place.path,
            place.indices,
            index_text(place.indices),
            target.component,
            kind,
            ledger.tick(),
            node,
            file,
            kept,
            kept.needs,
            multiplier,
            bool(guards),
            bool(guards) and all(guard.bounded for guard in guards),
            self.loop_bits,
            self.arms(),
            tuple(guard.node for guard in guards),
            tuple(self.conditions),
            len(self.frame.functions) > 1,
            self._copied(place, target, kind, value),
        )
        ledger.stores.append(record)
        ledger.versions[place.path] = ledger.versions.get(place.path, 0) + 1
        return record

    def _copied(self, place: Place, target: Target, kind: StoreKind, value: Value) -> str:
        """The path from which a store copies the element at its own index, if nothing was stored there since."""
        load = self.ledger.tokens[value.load.token] if value.load is not None else None
        if load is None or kind is not StoreKind.STORE or load.component != target.component:
            return ""
        since = any(store.path == load.path and store.order > load.order for store in self.ledger.stores)
        return load.path if load.index == index_text(place.indices) and not since and "?" not in load.index else ""

    def _needs_of_place(self, place: Place, value: Value, node: ast.AST) -> int:
        """Where and under which conditions a value goes is needed for its gradient and for the destination's."""
        ledger, active = self.ledger, value.active
        tokens = union(map(self.read, place.indices))
        needs = ledger.need(tokens, active, node, self.frame.file, "the index in ", destination=True)
        for by in self.conditions:
            needs |= ledger.need(by.tokens, active, by.node, by.file, by.what, destination=True)
        return needs


def _is_slice(index: Value) -> bool:
    return index.type.kind is Kind.TUPLE


def _named_component(attribute: str) -> tuple[int, ...] | None:
    number = {"x": 0, "y": 1, "z": 2, "w": 3}.get(attribute)
    return None if number is None else (number,)

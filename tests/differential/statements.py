"""Random statements: the bodies of kernels and functions."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.differential.cases import LONG_LOOP
from tests.differential.expressions import Arrays, Expressions, Names
from tests.differential.features import Features

DEPTH = 2
"""Of the expressions."""
NESTING = 2
"""Of loops and branches."""


@dataclass
class Body:
    """Lines of code and the names that they can use; ``loops`` says how each loop around them is made."""

    lines: list[str]
    names: Names
    indent: int = 0
    dynamic: tuple[bool, ...] = ()
    leavable: bool = False
    """Whether a ``break`` or ``continue`` may stand here."""

    def add(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def inner(self, *, loop: bool | None = None, leavable: bool | None = None) -> Body:
        """The block of a statement; ``loop``: whether it is a dynamic loop's, None for a branch."""
        dynamic = self.dynamic if loop is None else (*self.dynamic, loop)
        can_leave = self.leavable if leavable is None else leavable
        return Body(self.lines, self.names.inner(), self.indent + 1, dynamic, can_leave)


@dataclass
class Statements:
    """Writes statements. ``outputs``: the arrays that may be stored to, by type."""

    random: Random
    features: Features
    expressions: Expressions
    arrays: Arrays
    outputs: Arrays
    local: bool = False
    """A function without arrays: only locals are assigned."""
    writers: tuple[str, ...] = ()
    """Functions that store to an array they are given."""
    count: int = 0
    _choices: list[tuple[float, Callable[[Body], None]]] = field(default_factory=list)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def real(self, body: Body) -> str:
        return self.expressions.real(body.names, DEPTH)

    def new_name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def block(self, body: Body, count: int) -> None:
        """``count`` statements."""
        for _ in range(count):
            self.statement(body)

    def statement(self, body: Body) -> None:
        """One statement of any kind."""
        features, nested = self.features, len(body.dynamic) + body.indent >= NESTING
        choices: list[tuple[float, Callable[[Body], None]]] = [
            (2.0, self.new_real),
            (2.5, self.assign_real),
            (0.0 if nested else 2.0 * features.branches, self.branch),
            (0.0 if nested else 1.2 * features.static_loops, self.static_loop),
            (0.0 if nested else 2.0 * features.dynamic_loops, self.dynamic_loop),
            (0.0 if nested else 2.0 * features.while_loops, self.while_loop),
            (1.0 * features.vectors, self.new_vector),
            (1.0 * features.vectors, self.assign_vector),
            (1.6 * features.vectors * features.components, self.assign_component),
            (1.0 * features.matrices, self.new_matrix),
            (1.2 * features.matrices * features.components, self.assign_entry),
            (0.8 * body.leavable * (features.breaks or features.returns), self.leave),
        ]
        if not self.local:
            choices += [
                (3.0, self.store),
                (1.5 * features.atomics, self.atomic),
                (0.8 * features.grids, self.store_entry),
                (0.8 * features.vectors, self.store_vector),
                (1.0 * features.returned_atomics, self.returned_atomic),
                (1.0 if self.writers else 0.0, self.call_writer),
                (0.8 * features.local_aliases, self.alias),
                (0.5 * features.shared_stores * self.expressions.threads, self.shared_store),
            ]
        self.random.choices([each for _, each in choices], [float(weight) for weight, _ in choices])[0](body)

    # -- locals --------------------------------------------------------------------------------------------------

    def new_real(self, body: Body) -> None:
        name = self.new_name("t")
        value = self.real(body) if self.chance(0.75) else f"real({self.random.choice(('0.4', '1.0', '0.5'))})"
        body.add(f"{name} = {value}")
        self.made(name, value, body, body.names.reals)

    def made(self, name: str, value: str, body: Body, among: list[str]) -> None:
        """There is a new variable."""
        if not self.expressions.varies(value, body.names):
            body.names.fixed.append(name)
        among.append(name)

    def assign_real(self, body: Body) -> None:
        """``t = e``, ``t += e``, ``t *= e`` …"""
        if not body.names.reals:
            self.new_real(body)
            return
        name = self.random.choice(body.names.reals)
        sign = self.random.choice(("=", "=", "+=", "+=", "+=", "-=", "*=", "/="))
        if sign == "/=":
            body.add(f"{name} /= real(1.1) + real(0.4) * wp.cos({self.real(body)})")
        elif sign == "*=" and any(body.dynamic):  # of many factors below one nothing would be left to be wrong
            body.add(f"{name} *= real(1.2) + wp.sin({self.real(body)})")
        elif sign == "=" and self.chance(0.6):
            body.add(f"{name} = {self._of_itself(name, body)}")
        else:
            value = self.expressions.varying(self._without(name, body), body.names, without=name)
            body.add(f"{name} {sign} {value if value != name else f'({value} * {value})'}")

    def _without(self, place: str, body: Body) -> str:
        """A real that is not made of what it is assigned to, if one comes soon: ``t -= t + x`` would leave nothing."""
        values = (self.real(body) for _ in range(8))
        return next((value for value in values if place not in value), self.real(body))

    def _of_itself(self, name: str, body: Body) -> str:
        """A new value from the old one: linear in it or not."""
        other = self.expressions.leaf(body.names)
        forms = (
            f"{name} + {self.real(body)}",
            f"real(0.9) * {name} + {other}",
            f"{name} * {other}",
            f"wp.sin({name}) + {other}",
            f"wp.max({name}, {self._rising(other, body)})" if name != other else f"wp.abs({name})",
            f"{name} - real(0.3) * {name} * {other}",
        )
        return self.random.choice(forms)

    def _rising(self, value: str, body: Body) -> str:
        """In a loop, something that another iteration may find larger: a maximum with one value is taken only once."""
        return f"{value} + real(0.4) * real({body.names.loops[-1]})" if body.names.loops else value

    def new_vector(self, body: Body) -> None:
        name = self.new_name("p")
        if self.features.components and self.chance(0.4):
            body.add(f"{name} = Vec()")
            values = [self.real(body) for _ in range(3)]
            for part, value in enumerate(values):
                body.add(f"{name}[{part}] = {value}")
        else:
            values = [self.expressions.vector(body.names, DEPTH)]
            body.add(f"{name} = {values[0]}")
        self.made(name, " ".join(values), body, body.names.vectors)

    def assign_vector(self, body: Body) -> None:
        if not body.names.vectors:
            self.new_vector(body)
            return
        name = self.random.choice(body.names.vectors)
        kind = self.random.randrange(4)
        if kind == 0:
            body.add(f"{name} = {self.expressions.vector(body.names, DEPTH)}")
        elif kind == 1:
            body.add(f"{name} {self.random.choice('+-')}= {self.expressions.vector(body.names, DEPTH)}")
        else:
            body.add(f"{name} *= {self.expressions.leaf(body.names)}")

    def assign_component(self, body: Body) -> None:
        """``p[0] = e`` and its kin."""
        if not body.names.vectors:
            self.new_vector(body)
            return
        part = self.random.choice(("[0]", "[1]", "[2]", ".x", ".y"))
        if body.names.loops and self.chance(0.4):
            part = f"[{self.random.choice(body.names.loops)} % 3]"
        sign = self.random.choice(("=", "=", "=", "=", "+=", "-=", "*=", "/="))
        name = self.random.choice(body.names.vectors)
        value = f"real(2.0) + wp.sin({self.real(body)})" if sign == "/=" else self.real(body)
        body.add(f"{name}{part} {sign} {value}")

    def new_matrix(self, body: Body) -> None:
        name = self.new_name("q")
        if self.features.components and self.chance(0.4):
            body.add(f"{name} = Mat()")
            value = self.expressions.new_matrix(body.names)
            entries = [ast.unparse(each) for each in ast.parse(value, mode="eval").body.args]
            for place, entry in zip(("0, 0", "0, 1", "1, 0", "1, 1"), entries, strict=True):
                body.add(f"{name}[{place}] = {entry}")
        else:
            value = self.expressions.matrix(body.names, DEPTH)
            body.add(f"{name} = {value}")
        self.made(name, value, body, body.names.matrices)

    def assign_entry(self, body: Body) -> None:
        if not body.names.matrices:
            self.new_matrix(body)
            return
        name = self.random.choice(body.names.matrices)
        place = f"{self.random.choice('01')}, {self.random.choice('01')}"
        body.add(f"{name}[{place}] {self.random.choice(('=', '=', '+=', '*='))} {self.real(body)}")

    def alias(self, body: Body) -> None:
        """A local name of an array, or of a row."""
        if body.indent:
            self.new_real(body)
            return
        if self.arrays.grids and self.chance(0.5):
            row = self.new_name("r")
            grid = self.random.choice(list(self.arrays.grids))
            body.add(f"{row} = {grid}[{self.expressions.index_of(grid, body.names)}]")
            body.names.rows.append(row)
            return
        choices = [*self.arrays.reals, *self.outputs.reals]
        array, name = self.random.choice(choices), self.new_name("x")
        body.add(f"{name} = {array}")
        self.arrays.aliases[name] = self.arrays.aliases.get(array, array)
        if array in self.outputs.reals:
            self.outputs.reals = (*self.outputs.reals, name)
        if array in self.arrays.reals:
            self.arrays.reals = (*self.arrays.reals, name)

    # -- control flow --------------------------------------------------------------------------------------------

    def branch(self, body: Body) -> None:
        body.add(f"if {self.expressions.condition(body.names)}:")
        self.block(body.inner(), self.random.randint(1, 2))
        if self.chance(0.4):
            body.add("else:")
            self.block(body.inner(), 1)

    def static_loop(self, body: Body) -> None:
        index = self.new_name("k")
        body.add(f"for {index} in range({self.random.choice(('3', '1, 4', '0, 4, 2'))}):")
        self._loop(body, index, dynamic=False)

    def dynamic_loop(self, body: Body) -> None:
        index = self.new_name("k")
        bound = self.random.choice(("n", "n", "n", "n", "1, n", str(LONG_LOOP)))
        body.add(f"for {index} in range({bound}):")
        self._loop(body, f"{index} % 4" if bound == str(LONG_LOOP) else index, dynamic=True)

    def _loop(self, body: Body, index: str, *, dynamic: bool) -> None:
        inner = body.inner(loop=dynamic, leavable=self.features.breaks)
        inner.names.loops.append(f"({index})" if "%" in index else index)
        self.block(inner, self.random.randint(1, 3))

    def while_loop(self, body: Body) -> None:
        """With an index of its own, which is counted up at the end."""
        index = self.new_name("j")
        body.add(f"{index} = int(0)")
        body.add(f"while {index} < n:")
        inner = body.inner(loop=True, leavable=False)
        inner.names.loops.append(index)
        self.block(inner, self.random.randint(1, 2))
        inner.add(f"{index} += 1")

    def leave(self, body: Body) -> None:
        """``break`` or ``continue`` under a condition; ``return`` where there is no loop."""
        inside = bool(body.dynamic)
        body.add(f"if {self.expressions.condition(body.names)}:")
        body.add("    " + (self.random.choice(("break", "continue", "continue")) if inside else "return"))

    # -- arrays --------------------------------------------------------------------------------------------------

    def store(self, body: Body) -> None:
        """``b[i] = e``, ``b[i] += e``, rarely ``b[i] *= e``."""
        array = self.random.choice(list(self.outputs.reals))
        place = f"{array}[{self.expressions.index_of(array, body.names)}]"
        signs = ["=", "=", "+=", "-="]
        if self.features.multiplies_elements and "." not in array:  # Warp does not build it for a struct's array
            signs += ["*=", "/="] * 2
        sign = self.random.choice(signs)
        value = f"real(2.0) + wp.sin({self.real(body)})" if sign == "/=" else self._stored(sign, place, body)
        if self.features.multiplies_elements and sign in ("*=", "/=") and self.chance(0.2):
            value = "s" if sign == "*=" else "real(1.7)"
        body.add(f"{place} {sign} {value if value != place else f'({value} * {value})'}")

    def _stored(self, sign: str, place: str, body: Body) -> str:
        """What is stored; no number where the array is read again, whose gradient would go nowhere."""
        value = self.real(body) if sign == "=" else self._without(place, body)
        return self.expressions.varying(value, body.names) if self.features.reads_outputs else value

    def store_entry(self, body: Body) -> None:
        index, column = self.expressions.index_of("g", body.names), self.expressions.column(body.names)
        if self.chance(0.3) and not body.indent:
            row = self.new_name("r")
            body.add(f"{row} = g[{index}]")
            body.add(f"{row}[{column}] {self.random.choice(('=', '+='))} {self.real(body)}")
            return
        body.add(f"g[{index}, {column}] {self.random.choice(('=', '=', '+='))} {self.real(body)}")

    def store_vector(self, body: Body) -> None:
        """A vector element, or a component of one."""
        place = f"w[{self.expressions.index_of('w', body.names)}]"
        if self.chance(0.4):
            part = self.random.choice(("[0]", "[1]", ".x", ".z"))
            body.add(f"{place}{part} {self.random.choice(('=', '=', '+='))} {self.real(body)}")
            return
        body.add(f"{place} {self.random.choice(('=', '=', '+=', '-='))} {self.expressions.vector(body.names, DEPTH)}")

    def atomic(self, body: Body) -> None:
        if self.chance(0.5):
            body.add(f"wp.atomic_add(total, 0, {self.real(body)})")
            return
        operation = self.random.choices(("atomic_add", "atomic_sub", "atomic_max", "atomic_min"), (6, 3, 1, 1))[0]
        array = self.random.choice(list(self.outputs.reals))
        index = self.expressions.index_of(array, body.names)
        value = self.real(body)
        if operation in ("atomic_max", "atomic_min"):
            body.add(f"{array}[{index}] = {self.random.choice((self.real(body), 'real(0.6)'))}")
            value += f" + real(3.0) * wp.sin(real(5.0) * {self.expressions.varying('real(0.0)', body.names)})"
        body.add(f"wp.{operation}({array}, {index}, {value})")

    def returned_atomic(self, body: Body) -> None:
        """What an atomic returns is used."""
        name = self.new_name("t")
        body.add(f"{name} = wp.atomic_add(total, 0, {self.real(body)})")
        body.names.reals.append(name)

    def shared_store(self, body: Body) -> None:
        body.add(f"total[0] = {self.real(body)}")

    def call_writer(self, body: Body) -> None:
        """A function that stores to an array."""
        name = self.random.choice(self.writers)
        kinds = self.expressions.functions[name]
        given = [self.expressions.argument(kind, body.names, DEPTH - 1) for kind in kinds[1:]]
        body.add(f"{name}({', '.join(given)})")

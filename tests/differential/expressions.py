"""Random expressions, typed: of reals, vectors, matrices, conditions and indices that are in bounds.

Values stay bounded and away from singular points, so that finite differences are good wherever there is no kink.

And nothing is degenerate, lest a wrong adjoint be hidden: conditions stand on inputs and decide both ways, either
operand of a maximum wins on some input, and no difference, determinant or product vanishes whatever the inputs are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from tests.differential.features import Features

SMOOTH = (
    "wp.sin({})",
    "wp.cos({})",
    "wp.tanh({})",
    "wp.exp(wp.tanh({}))",
    "wp.atan({})",
    "wp.sqrt(real(0.5) + {0} * {0})",
    "wp.log(real(1.5) + {0} * {0})",
    "wp.pow(real(1.2) + wp.sin({}), real(1.5))",
    "wp.sinh(wp.tanh({}))",
    "wp.asin(real(0.5) * wp.sin({}))",
    "wp.cbrt(real(2.0) + wp.sin({}))",
    "wp.atan2({}, real(1.5))",
)
KINKED = (
    "wp.abs(wp.sin(real(3.0) * {}))",
    "wp.max({0}, real(0.6) * {0} + wp.sin(real(4.0) * {1}))",
    "wp.min(real(0.6) * {0} + wp.sin(real(4.0) * {1}), {0})",
    "wp.clamp(real(1.5) * wp.sin(real(3.0) * {}), real(-1.1), real(1.3))",
)
FLAT = ("wp.floor(real(3.0) * {})", "wp.round({})", "wp.sign({})", "real(int(real(2.0) * {}))", "wp.step({})")
MISSING = ("wp.frac({})",)


@dataclass
class Names:
    """The variables in reach, by type. ``loops``: indices below four."""

    reals: list[str] = field(default_factory=list)
    vectors: list[str] = field(default_factory=list)
    matrices: list[str] = field(default_factory=list)
    loops: list[str] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    """Local names of rows of the two-dimensional input."""
    fixed: list[str] = field(default_factory=list)
    """The variables that are made of numbers alone, which no condition should stand on."""
    constants: list[str] = field(default_factory=list)
    """Real parameters and fields of structs."""

    def inner(self) -> Names:
        """A copy: what a block adds is not seen behind it."""
        return Names(*(list(each) for each in vars(self).values()))


@dataclass
class Arrays:
    """Which arrays a kernel (or function) may read, by type, and which of them it also writes."""

    reals: Sequence[str] = ()
    vectors: Sequence[str] = ()
    grids: Sequence[str] = ()
    written: frozenset[str] = frozenset()
    aliases: dict[str, str] = field(default_factory=dict)
    """Local names of arrays to the arrays."""


class Expressions:
    """Writes expressions as text."""

    def __init__(self, random: Random, features: Features, arrays: Arrays, *, threads: bool) -> None:
        """``threads``: the launch has several, whose index is ``i``; else indices are numbers and loop indices."""
        self.random, self.features, self.arrays, self.threads = random, features, arrays, threads
        self.tested: set[str] = set()
        """What conditions compare: the same once more, or the other way round, would make code that nothing reaches."""
        self.functions: dict[str, tuple[str, ...]] = {}
        """Functions that can be called: the types of their arguments."""

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    # -- indices -------------------------------------------------------------------------------------------------

    def own_index(self, names: Names) -> str:
        """The index of an element that is this thread's alone."""
        return "i" if self.threads else self.any_index(names)

    def any_index(self, names: Names) -> str:
        """An index, the same for two threads or not."""
        choices = [self.random.choice("0123")]
        if self.threads:
            choices += ["i", "i", "i", "i + 1"]
        if names.loops:
            loop = self.random.choice(names.loops)
            choices += [loop, loop, f"{loop} + 1"]
            if self.threads:
                choices.append(f"i + {loop}")
        if self.features.gathers and self.chance(0.3):
            choices = [f"where[{self.random.choice(choices)}]"]
        return self.random.choice(choices)

    def index_of(self, array: str, names: Names) -> str:
        """An index to read (or write) ``array`` at."""
        array = self.arrays.aliases.get(array, array)
        return self.own_index(names) if array in self.arrays.written else self.any_index(names)

    def column(self, names: Names) -> str:
        """An index into a row."""
        return self.random.choice([self.random.choice("0123"), *names.loops])

    # -- reals ---------------------------------------------------------------------------------------------------

    def real(self, names: Names, depth: int) -> str:
        """A real number."""
        if depth <= 0 or self.chance(0.15):
            return self.leaf(names)
        choices: list[tuple[float, Callable[[Names, int], str]]] = [
            (5.0, self._arithmetic),
            (3.0, self._smooth),
            (0.6 * self.features.kinks, self._kinked),
            (0.8 * self.features.flat, self._flat),
            (0.8 * self.features.missing, self._missing),
            (0.8, self._choice),
            (2.0 * self.features.vectors, self._of_vector),
            (1.2 * self.features.matrices, self._of_matrix),
            (3.0 if "real" in {kinds[0] for kinds in self.functions.values()} else 0.0, self._called),
        ]
        return self.random.choices([each for _, each in choices], [weight for weight, _ in choices])[0](names, depth)

    def leaf(self, names: Names) -> str:
        """A variable, an element, rarely a number."""
        choices = [*names.reals, *names.reals, *self._elements(names)]
        if not choices or self.chance(0.12):
            choices = [f"real({self.random.choice(('0.3', '0.7', '1.3', '-0.6', '2.0'))})", *names.constants]
        return self.random.choice(choices)

    def _elements(self, names: Names) -> list[str]:
        found = [f"{array}[{self.index_of(array, names)}]" for array in self.arrays.reals]
        for grid in self.arrays.grids:
            found.append(f"{grid}[{self.index_of(grid, names)}, {self.column(names)}]")
        found += [f"{row}[{self.column(names)}]" for row in names.rows]
        if self.features.vectors and self.arrays.vectors and self.chance(0.5):
            found.append(f"{self.vector_leaf(names)}{self.random.choice(('[0]', '[1]', '.y', '.z'))}")
        return found

    def varies(self, text: str, names: Names) -> bool:
        """Whether what an expression says depends on arrays: on one that is not written, or on a local made of one."""
        words = {*re.findall(r"[a-z]\w*", text), *re.findall(r"[a-z]\w*\.[a-z]\w*", text)}
        made = {*names.reals, *names.vectors, *names.matrices} - set(names.fixed)
        arrays = {*self.arrays.reals, *self.arrays.vectors, *self.arrays.grids}
        fresh = {array for array in arrays if self.arrays.aliases.get(array, array) not in self.arrays.written}
        return bool(words & {*made, *names.rows, *fresh})

    def varying(self, text: str, names: Names, without: str = "") -> str:
        """The expression, or one that depends on the inputs as well, though on nothing ``without`` occurs in."""
        if self.varies(text, names):
            return text
        choices = [each for each in [*names.reals, *self._elements(names)] if self.varies(each, names)]
        choices = [each for each in choices if not without or without not in each]
        return f"({text} + {self.random.choice(choices)})" if choices else text

    def _arithmetic(self, names: Names, depth: int) -> str:
        left, right = self.real(names, depth - 1), self.real(names, depth - 1)
        differ = self._owned(left) != self._owned(right)
        sign = self.random.choice(("+", "*", "*", "*", "/", *(["-"] if differ else [])))
        if sign == "/":
            return f"({left} / (real(2.0) + wp.cos({right})))"
        return f"({left} {sign} {right})"

    def _owned(self, text: str) -> str:
        """The expression with arrays in place of their other names."""
        return re.sub(r"[a-z]\w*", lambda word: self.arrays.aliases.get(word[0], word[0]), text)

    def _template(self, templates: Sequence[str], names: Names, depth: int) -> str:
        template = self.random.choice(templates)
        if "{1}" not in template:
            return template.format(self.real(names, depth - 1))
        return template.format(self.real(names, depth - 1), self.varying(self.real(names, depth - 1), names))

    def _smooth(self, names: Names, depth: int) -> str:
        return self._template(SMOOTH, names, depth)

    def _kinked(self, names: Names, depth: int) -> str:
        return self._template(KINKED, names, depth)

    def _flat(self, names: Names, depth: int) -> str:
        return self._template(FLAT, names, depth)

    def _missing(self, names: Names, depth: int) -> str:
        return self._template(MISSING, names, depth)

    def _choice(self, names: Names, depth: int) -> str:
        condition, one, other = self.condition(names), self.real(names, depth - 1), self.real(names, depth - 1)
        if self.chance(0.5):
            return f"wp.where({condition}, {one}, {other})"
        return f"({one} if {condition} else {other})"

    def _of_vector(self, names: Names, depth: int) -> str:
        v = self.vector(names, depth - 1)
        return self.random.choice(
            (
                f"wp.dot({v}, {self.vector(names, depth - 1)} + Vec(real(0.4), real(0.9), real(-0.2)))",
                f"wp.length({v} + Vec(real(0.0), real(0.0), real(3.0)))",
                f"wp.length_sq({v})",
                f"{self.vector_leaf(names)}[{self.random.choice('012')}]",
            )
        )

    def _of_matrix(self, names: Names, depth: int) -> str:
        q = self.matrix(names, depth - 1)
        return self.random.choice((f"wp.determinant({q})", f"wp.trace({q})", f"{q}[{self.random.choice('01')}, 1]"))

    def _called(self, names: Names, depth: int) -> str:
        return self.call("real", names, depth)

    def call(self, result: str, names: Names, depth: int) -> str:
        """A call of a function with this result."""
        name = self.random.choice([name for name, kinds in self.functions.items() if kinds[0] == result])
        arguments = [self.argument(kind, names, depth - 1) for kind in self.functions[name][1:]]
        return f"{name}({', '.join(arguments)})"

    def argument(self, kind: str, names: Names, depth: int) -> str:
        """An argument of a function."""
        if kind == "real":
            return self.varying(self.real(names, depth), names)
        if kind == "vector":
            return self.vector(names, depth)
        if kind == "count":
            return "n"
        if kind == "array":
            return self.random.choice([name for name in ("a", "c") if name not in self.arrays.written] or ["a"])
        if kind == "output":
            return self.random.choice([name for name in ("b", "d") if name in self.arrays.written])
        return self.own_index(names)

    # -- vectors and matrices ------------------------------------------------------------------------------------

    def vector(self, names: Names, depth: int) -> str:
        """A vector of three."""
        if depth <= 0 or self.chance(0.25):
            return self.vector_leaf(names)
        v, other, kind = self.vector(names, depth - 1), self.vector(names, depth - 1), self.random.randrange(6)
        if kind == 0:
            return f"({v} {'+' if v == other else self.random.choice('+-')} {other})"
        if kind == 1:
            return f"({self.real(names, depth - 1)} * {v})"
        if kind == 2:
            return f"wp.cross({v}, {other} + Vec(real(0.3), real(-0.7), real(1.1)))"
        if kind == 3:
            return f"wp.cw_mul({v}, {other})"
        if kind == 4:
            return f"({v} / (real(2.0) + wp.sin({self.real(names, depth - 1)})))"
        return self.new_vector(names, depth)

    def new_vector(self, names: Names, depth: int) -> str:
        return f"Vec({', '.join(self.real(names, depth - 2) for _ in range(3))})"

    def vector_leaf(self, names: Names) -> str:
        """A vector variable or element."""
        choices = [*names.vectors, *names.vectors]
        choices += [f"{array}[{self.index_of(array, names)}]" for array in self.arrays.vectors]
        return self.random.choice(choices) if choices else self.new_vector(names, 1)

    def matrix(self, names: Names, depth: int) -> str:
        """A two by two matrix."""
        if names.matrices and (depth <= 0 or self.chance(0.5)):
            return self.random.choice(names.matrices)
        if depth > 1 and self.chance(0.4):
            q, r = self.matrix(names, depth - 1), self.matrix(names, depth - 1)
            return self.random.choice((f"({q} * {r})", f"({q} + {r})", f"({self.real(names, depth - 1)} * {q})"))
        return self.new_matrix(names)

    def new_matrix(self, names: Names) -> str:
        """A matrix of four reals; not one that is singular whatever these are."""
        entries = [self.leaf(names) for _ in range(4)]
        if sorted(entries[::3]) == sorted(entries[1:3]):
            entries[3] = f"({entries[3]} + real(1.7))"
        return f"Mat({', '.join(entries)})"

    # -- conditions ----------------------------------------------------------------------------------------------

    def condition(self, names: Names) -> str:
        """A condition that is true about as often as not."""
        fresh = [array for array in self.arrays.reals if array not in self.arrays.written]
        varying = [each for each in [*names.reals, *self._elements(names)] if self.varies(each, names)]
        varying = [each for each in varying if each not in self.tested] or varying
        choices = []
        if varying:
            one = self.random.choice(varying)
            self.tested.add(one)
            choices.append(f"wp.sin(real({self.random.choice(('5.0', '7.0', '8.0', '9.0'))}) * {one}) > real(0.0)")
        if fresh:
            array = self.random.choice(fresh)
            element = f"{array}[{self.any_index(names)}]"
            if element not in self.tested:
                self.tested.add(element)
                choices += [f"{element} {self.random.choice('<>')} real(1.0)"] * 2
        if names.loops:
            choices.append(f"{self.random.choice(names.loops)} {self.random.choice(('< 2', '% 2 == 0', '> 0'))}")
        if self.features.gathers:
            choices.append(f"where[{self.any_index(names)}] % 2 == 0")
        return self.random.choice(choices or [f"{self.random.choice(names.reals or names.constants)} < real(1.0)"])

"""Abstract values: what the adjoint analysis knows of each expression.

Sets are bit sets (Python ints), since joining is the only thing that is done to them often: ``active`` and
``depends`` hold paths, ``tokens`` what memory must still hold for the value to be had again, ``needs`` what the adjoint
of the operations behind the value reads. All of them are numbered by the :class:`~warplint.kernels.ledger.Ledger`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from warplint.kernels import types
from warplint.kernels.source import Meaning
from warplint.kernels.types import Type


class Absent(enum.Enum):
    """Marks a value that is no compile-time constant."""

    CONSTANT = "absent"


ABSENT = Absent.CONSTANT


class Sign(enum.IntEnum):
    """What is known of a number's sign. ``POSITIVE``: bounded away from zero, as far as anybody can mean it."""

    UNKNOWN = 0
    NOT_NEGATIVE = 1
    POSITIVE = 2


FLOOR, CEILING = 1, 2
"""A number does not go below, or above, some everyday number."""


@dataclass(slots=True, eq=False)
class Place:
    """Where an array value lives: an access path, and the indices that were applied to it so far (``row = a[i]``)."""

    path: str
    indices: tuple[Value, ...] = ()

    @property
    def key(self) -> tuple[str, ...]:
        """Equal for places that are the same."""
        return (self.path, *(index.symbol for index in self.indices))


@dataclass(slots=True)
class Load:
    """An element as it was loaded, so that taking a component narrows what is needed to that component."""

    token: int
    component: str


@dataclass(slots=True, eq=False)
class Value:
    """What is known of one expression. Never changed once made (not frozen: that triples the cost of making one).

    active: paths through which gradient flows into it. depends: paths it truly depends on, cuts ignored.
    tokens: what must be recomputed or still be in memory for it. needs: what the adjoints behind it read.
    cuts: why gradient stops, by path. symbol: canonical text where the value can index an array, else "".
    threads: dimensions of the thread index it varies with. lane: ``k + 1`` where it is the thread's index ``k`` itself,
    ``-(k + 1)`` where it is that index plus something common to all threads, 0 otherwise.
    varies: dynamic loops in which it changes. places: the arrays (or struct parameters) it may be.
    """

    active: int = 0
    depends: int = 0
    tokens: int = 0
    needs: int = 0
    cuts: int = 0
    type: Type = types.UNKNOWN
    symbol: str = ""
    constant: object = ABSENT
    threads: int = 0
    lane: int = 0
    varies: int = 0
    places: tuple[Place, ...] = ()
    components: tuple[Value, ...] | None = None
    fields: Mapping[str, Value] | None = None
    meaning: Meaning | None = None
    load: Load | None = None
    local: bool = False
    """An array on the thread's stack (``wp.zeros`` in a kernel) or a tile: stores into it add to the value."""
    fixed: bool = False
    """Warp itself sees a constant at code generation (a literal, a captured number), so a loop over it unrolls; nobody
    else may know which one."""
    sign: Sign = Sign.UNKNOWN
    dangers: int = 0
    """The singular operations behind it (numbers in the ledger)."""
    bounds: int = 0
    """:data:`FLOOR`, :data:`CEILING` or both, where the kernel's text keeps it from there."""

    def like(self, **changes: object) -> Value:
        """A copy with some parts changed."""
        made = Value(
            self.active,
            self.depends,
            self.tokens,
            self.needs,
            self.cuts,
            self.type,
            self.symbol,
            self.constant,
            self.threads,
            self.lane,
            self.varies,
            self.places,
            self.components,
            self.fields,
            self.meaning,
            self.load,
            self.local,
            self.fixed,
            self.sign,
            self.dangers,
            self.bounds,
        )
        for name, changed in changes.items():
            setattr(made, name, changed)
        return made


NOTHING = Value()


def constant(value: object) -> Value:
    """A compile-time constant."""
    if isinstance(value, bool):
        return Value(type=types.BOOLEAN, constant=value, fixed=True)
    if isinstance(value, int):
        return Value(type=types.INTEGER, constant=int(value), symbol=str(int(value)), fixed=True, sign=_sign(value))
    if isinstance(value, float):
        return Value(type=types.REAL, constant=value, fixed=True, sign=_sign(value))
    return Value(constant=value, fixed=True)


def _sign(number: float) -> Sign:
    return Sign.POSITIVE if number > 0 else Sign.NOT_NEGATIVE if number == 0 else Sign.UNKNOWN


def members(bits: int) -> Iterator[int]:
    """The numbers in a bit set, rising."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def joined_type(a: Type, b: Type) -> Type:
    """The type of a value that is one or the other (or the result of arithmetic on both)."""
    if a is b or b.kind is types.Kind.UNKNOWN:
        return a
    if a.kind is types.Kind.UNKNOWN:
        return b
    return a if a.kind is not types.Kind.SCALAR else b


def joined(a: Value, b: Value) -> Value:
    """A value that is one or the other: the union of what is known of both."""
    if a is b:
        return a
    same = a.constant is not ABSENT and type(a.constant) is type(b.constant) and a.constant == b.constant
    agreed = a.symbol == b.symbol
    components = None
    if a.components is not None and b.components is not None and len(a.components) == len(b.components):
        components = tuple(map(joined, a.components, b.components))
    fields = None
    if a.fields is not None and b.fields is not None:
        fields = {
            name: joined(a.fields.get(name, NOTHING), b.fields.get(name, NOTHING)) for name in {**a.fields, **b.fields}
        }
    places = a.places
    if b.places is not places and b.places:
        known = {place.key for place in places}
        places = places + tuple(place for place in b.places if place.key not in known)
    return Value(
        a.active | b.active,
        a.depends | b.depends,
        a.tokens | b.tokens,
        a.needs | b.needs,
        a.cuts | b.cuts,
        joined_type(a.type, b.type),
        a.symbol if agreed else "",
        a.constant if same else ABSENT,
        a.threads | b.threads,
        a.lane if a.lane == b.lane and agreed else 0,
        a.varies | b.varies,
        places,
        components,
        fields,
        a.meaning if a.meaning == b.meaning else None,
        None,
        a.local or b.local,
        sign=min(a.sign, b.sign),
        dangers=a.dangers | b.dangers,
        bounds=a.bounds & b.bounds,
    )


def needing(value: Value, needs: int) -> Value:
    """A value that, like each of its components, has further needs."""
    more = value.like(needs=value.needs | needs)
    if value.components is not None:
        more.components = tuple(needing(part, needs) for part in value.components)
    return more


def without(value: Value, tokens: int) -> Value:
    """A value that does not stand on ``tokens``, nor do its parts."""
    kept = value.like(tokens=value.tokens & ~tokens)
    if value.components is not None:
        kept.components = tuple(without(part, tokens) for part in value.components)
    if value.fields is not None:
        kept.fields = {name: without(part, tokens) for name, part in value.fields.items()}
    return kept


def union(bits: Iterable[int]) -> int:
    """The union of bit sets."""
    result = 0
    for each in bits:
        result |= each
    return result

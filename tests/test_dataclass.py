"""``warplint.dataclass`` makes what the standard library makes, whatever is asked of it."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import field
from functools import cached_property
from typing import Any, ClassVar

import pytest

from warplint.dataclass import dataclass

Maker = Callable[[type], type]


def point(make: Callable[..., Any]) -> type:
    @make(frozen=True)
    class Point:
        """A place."""

        kind: ClassVar[str] = "point"
        x: float
        y: float = 0.0
        tags: tuple[str, ...] = ()
        notes: dict[str, int] = field(default_factory=dict, compare=False, repr=False)
        held: list[int] = field(default_factory=list, hash=False)

        @property
        def size(self) -> float:
            return abs(self.x) + abs(self.y)

    return Point


def heir(make: Callable[..., Any]) -> type:
    @make(frozen=True)
    class Named(point(make)):
        """A place with a name."""

        name: str = "?"
        y: float = 7.0

        @cached_property
        def twice(self) -> float:
            return 2 * self.size

    return Named


def of_its_own(make: Callable[..., Any]) -> type:
    @make(frozen=True)
    class Own:
        """Compared and shown in its own way."""

        x: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, int) and other == self.x

        def __repr__(self) -> str:
            return "own"

    return Own


def empty(make: Callable[..., Any]) -> type:
    @make(frozen=True)
    class Empty:
        """Without fields."""

    return Empty


def node(make: Callable[..., Any]) -> type:
    @make(frozen=True)
    class Node:
        """May hold itself."""

        inner: list[Any]

    return Node


QUESTIONS: tuple[tuple[Callable[[Callable[..., Any]], type], Callable[[type], object]], ...] = (
    (point, lambda c: repr(c(1.0, tags=("a",)))),
    (point, lambda c: (c(1.0) == c(1.0, 0.0), c(1.0) == c(2.0), c(1.0) == (1.0, 0.0, ()), c(1.0) != c(1.0))),
    (point, lambda c: c(1.0, notes={"a": 1}) == c(1.0)),
    (point, lambda c: hash(c(1.0, 2.0)) == hash(c(1.0, 2.0, notes={"a": 1}, held=[1]))),
    (point, lambda c: c(1.0, held=[1]) == c(1.0)),
    (point, lambda c: len({c(1.0), c(1.0, 0.0), c(1.0, 3.0)})),
    (point, lambda c: c(1.0).notes is c(1.0).notes),
    (point, lambda c: (c.kind, c.y, c.size.fget is not None, hasattr(c, "notes"), c.__match_args__, c.__doc__)),
    (point, lambda c: dataclasses.asdict(c(1.0, tags=("a",)))),
    (point, lambda c: repr(dataclasses.replace(c(1.0), y=4.0))),
    (point, lambda c: [(each.name, each.type, each.compare) for each in dataclasses.fields(c)]),
    (point, lambda c: c()),
    (point, lambda c: c(1.0, z=2.0)),
    (point, lambda c: setattr(c(1.0), "x", 2.0)),
    (point, lambda c: setattr(c(1.0), "z", 2.0)),
    (point, lambda c: delattr(c(1.0), "x")),
    (heir, lambda c: (repr(c(1.0)), c(1.0).twice, c(1.0) == c.__base__(1.0, 7.0), c.__base__(1.0, 7.0) == c(1.0))),
    (heir, lambda c: setattr(c(1.0), "name", "!")),
    (of_its_own, lambda c: (repr(c(1)), c(1) == 1, hash(c(1)) == hash(c(1)))),
    (empty, lambda c: (repr(c()), c() == c(), len({c(), c()}))),
    (node, lambda c: (lambda inner: (inner.append(c(inner)), repr(inner[0])))([])[1]),
)


@pytest.mark.parametrize("number", range(len(QUESTIONS)))
def test_a_frozen_class_answers_as_that_of_the_standard_library(number: int) -> None:
    declare, question = QUESTIONS[number]
    assert _answer(question, declare(dataclass)) == _answer(question, declare(dataclasses.dataclass))


def _answer(question: Callable[[type], object], kind: type) -> object:
    try:
        return question(kind)
    except Exception as error:
        return type(error), str(error)


@dataclass(frozen=True)
class Kept:
    """Found again by its name when it is unpickled."""

    x: int
    y: tuple[str, ...] = ()


def test_it_goes_through_pickle() -> None:
    assert pickle.loads(pickle.dumps(Kept(1, ("a",)))) == Kept(1, ("a",))


def test_other_options_are_the_standard_librarys() -> None:
    @dataclass(frozen=True, order=True)
    class Version:
        """Ordered."""

        number: int

    @dataclass
    class Counter:
        """Changed."""

        count: int = 0

    counter = Counter()
    counter.count += 1
    assert counter == Counter(1)
    assert sorted([Version(2), Version(1)]) == [Version(1), Version(2)]


@pytest.mark.parametrize("options", [{"kw_only": True}, {"init": False}])
def test_a_field_out_of_the_ordinary_is_refused(options: dict[str, bool]) -> None:
    with pytest.raises(TypeError, match="`odd`"):

        @dataclass(frozen=True)
        class Odd:
            """Not made."""

            odd: int = field(default=0, **options)

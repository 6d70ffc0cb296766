"""``warplint.dataclass`` makes what the standard library makes, whatever is asked of it."""

from __future__ import annotations

import dataclasses
import pickle
import re
from collections.abc import Callable
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import pytest

from warplint.dataclass import dataclass

ROOT = Path(__file__).parent.parent


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


def changed(make: Callable[..., Any]) -> type:
    @make
    class Changed:
        """Not frozen; part of it is made by itself."""

        x: int
        seen: list[int] = field(default_factory=list)
        made: list[int] = field(init=False, default_factory=list)
        size: int = field(init=False)
        rest: int = field(init=False, default=3)

        def __post_init__(self) -> None:
            self.size = self.x + 1

    return Changed


def one_of_a_kind(make: Callable[..., Any]) -> type:
    @make(eq=False)
    class Single:
        """Equal to itself alone."""

        x: int = 1

    return Single


def frozen_one_of_a_kind(make: Callable[..., Any]) -> type:
    @make(frozen=True, eq=False)
    class Single:
        """Equal to itself alone, and frozen."""

        x: int = 1

    return Single


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
    (changed, lambda c: (repr(c(1)), c(1) == c(1), c(1) == c(2), c(1).made is c(1).made, c(1).rest)),
    (changed, lambda c: hash(c(1))),
    (changed, lambda c: c(1, [2], [3])),
    (changed, lambda c: (lambda each: (setattr(each, "x", 5), repr(each)))(c(1))[1]),
    (one_of_a_kind, lambda c: (repr(c()), c() == c(), len({c(), c()}))),
    (one_of_a_kind, lambda c: setattr(c(), "x", 2)),
    (frozen_one_of_a_kind, lambda c: (repr(c(2)), c() == c(), len({c(), c()}))),
    (frozen_one_of_a_kind, lambda c: setattr(c(), "x", 2)),
    (empty, lambda c: (repr(c()), c() == c(), len({c(), c()}))),
    (node, lambda c: (lambda inner: (inner.append(c(inner)), repr(inner[0])))([])[1]),
)


@pytest.mark.parametrize("number", range(len(QUESTIONS)))
def test_a_class_answers_as_that_of_the_standard_library(number: int) -> None:
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

    assert sorted([Version(2), Version(1)]) == [Version(1), Version(2)]


def test_a_field_that_is_given_by_keyword_is_refused() -> None:
    with pytest.raises(TypeError, match="`odd`"):

        @dataclass(frozen=True)
        class Odd:
            """Not made."""

            odd: int = field(default=0, kw_only=True)


def test_the_packages_make_their_classes_with_it() -> None:
    """A frozen class of the standard library cannot inherit from one of ours, and takes its time."""
    ours = re.compile(r"^ *@dataclass(\((frozen=True|eq=False|frozen=True, eq=False)\))?$", re.MULTILINE)
    alone = {"warplint/builds/startup.py", "warplint/runner/bootstrap.py"}  # they run where warplint is not there yet
    files = [file for folder in ("warplint", "rules") for file in (ROOT / folder).rglob("*.py")]
    texts = {file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8") for file in files}
    assert [
        name
        for name, text in texts.items()
        if ours.search(text) and "from warplint.dataclass import dataclass" not in text and name not in alone
    ] == []


def test_a_plain_subclass_has_attributes_of_its_own() -> None:
    @dataclass(frozen=True)
    class Base:
        a: int

    class Plain(Base):
        def __init__(self, a: int) -> None:
            super().__init__(a)
            self.beside = 1

    plain = Plain(2)
    assert (plain.a, plain.beside) == (2, 1)
    del plain.beside
    for name in ("a",):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(plain, name, 3)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(plain, name)

"""``dataclass`` as the standard library has it; a frozen one is made in a third of the time.

A start of the linter, and one of the process that it follows a program in, makes some two hundred frozen classes. The
standard library compiles six methods for each, one by one (0.4 ms a class, measured with Python 3.11), which was half
of all imports. Here three of them are compiled at once, and those that seldom run (how it is shown, the refusals to
change it) are the same functions for all classes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, /, **options: Any) -> Any:
        """As :func:`dataclasses.dataclass`, options and all.

        Raises:
            TypeError: for a field of a frozen class that cannot be given by position.
        """
        make = _frozen if options == {"frozen": True} else dataclasses.dataclass(**options)
        return make if cls is None else make(cls)


def _frozen(cls: type) -> type:
    """What ``dataclasses.dataclass(frozen=True)`` makes of a class: methods of the class's own are left as they are."""
    made: type = dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    for name, method in (*_compiled(made).items(), *_SHARED.items()):
        if vars(made).get(name) is None:  # a class with an `__eq__` of its own has a `__hash__` that is None
            setattr(made, name, method)
    return made


_METHODS = """
def __init__(self, {parameters}):
    {assignments}
def __eq__(self, other):
    return ({mine}) == ({others}) if other.__class__ is self.__class__ else NotImplemented
def __hash__(self):
    return hash(({hashed}))
"""


def _compiled(cls: type) -> dict[str, Callable[..., Any]]:
    """The methods that run often: they have the names of the fields in their text."""
    fields = dataclasses.fields(cls)
    names: dict[str, Any] = {"_put": object.__setattr__, "_MISSING": MISSING}
    given = [_given(field, names) for field in fields]
    compared = [field.name for field in fields if field.compare]
    hashed = [field.name for field in fields if (field.compare if field.hash is None else field.hash)]
    text = _METHODS.format(
        parameters=", ".join(parameter for parameter, _ in given),
        assignments="; ".join(assignment for _, assignment in given) or "pass",
        mine="".join(f"self.{name}, " for name in compared),
        others="".join(f"other.{name}, " for name in compared),
        hashed="".join(f"self.{name}, " for name in hashed),
    )
    methods: dict[str, Callable[..., Any]] = {}
    exec(text, names, methods)
    for name, method in methods.items():
        method.__qualname__ = f"{cls.__qualname__}.{name}"  # as messages about its arguments show it
    return methods


def _given(field: Field[Any], names: dict[str, Any]) -> tuple[str, str]:
    """The parameter of a field and its assignment; ``names`` are what the text can use, and get the field's default."""
    name = field.name
    if field.kw_only or not field.init:
        raise TypeError(f"`{name}`: fields of a frozen class are given by position; else use `dataclasses.dataclass`")
    if field.default_factory is not MISSING:
        names[f"_make_{name}"] = field.default_factory
        return f"{name}=_MISSING", f"_put(self, {name!r}, _make_{name}() if {name} is _MISSING else {name})"
    if field.default is not MISSING:
        names[f"_default_{name}"] = field.default
        return f"{name}=_default_{name}", f"_put(self, {name!r}, {name})"
    return name, f"_put(self, {name!r}, {name})"


@recursive_repr()
def _shown(self: Any) -> str:
    shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in dataclasses.fields(self) if each.repr)
    return f"{type(self).__qualname__}({shown})"


def _set_nothing(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete_nothing(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


_SHARED: dict[str, Callable[..., Any]] = {
    "__repr__": _shown,
    "__setattr__": _set_nothing,
    "__delattr__": _delete_nothing,
}

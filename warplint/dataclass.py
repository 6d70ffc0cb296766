"""``dataclass`` as the standard library has it; a class is made in a third of the time.

A start of the linter, and one of the process that it follows a program in, makes some two hundred and fifty classes.
The standard library compiles up to six methods for each, one by one (0.4 ms a class, measured with Python 3.11), which
was half of all imports. Here those that run often are compiled at once, and those that seldom run (how a value is
shown, the refusals to change it) are the same functions for all classes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, FrozenInstanceError
from functools import partial
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, /, **options: Any) -> Any:
        """As :func:`dataclasses.dataclass`; with options other than ``frozen`` and ``eq`` it is that function.

        A frozen class that is made by the standard library's own cannot inherit from one that is made here.

        Raises:
            TypeError: for a field that is given by keyword only, where it is not.
        """
        ours = options.keys() <= {"frozen", "eq"}
        make = partial(_made, **options) if ours else dataclasses.dataclass(**options)
        return make if cls is None else make(cls)


def _made(cls: type, frozen: bool = False, eq: bool = True) -> type:
    """The class with the methods that it has not defined itself."""
    made: type = dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    methods: dict[str, Any] = {**_compiled(made, frozen, eq), "__repr__": _shown}
    if frozen:
        methods |= {"__setattr__": _set_nothing, "__delattr__": _delete_nothing}
    elif eq:
        methods["__hash__"] = None
    for name, method in methods.items():
        if vars(made).get(name) is None:  # a class with an `__eq__` of its own has a `__hash__` that is None
            setattr(made, name, method)
    return made


_INIT = """
def __init__(self, {parameters}):
    {statements}
"""
_EQ = """
def __eq__(self, other):
    return ({mine}) == ({others}) if other.__class__ is self.__class__ else NotImplemented
"""
_HASH = """
def __hash__(self):
    return hash(({hashed}))
"""


def _compiled(cls: type, frozen: bool, eq: bool) -> dict[str, Callable[..., Any]]:
    """The methods that run often: they have the names of the fields in their text."""
    fields = dataclasses.fields(cls)
    names: dict[str, Any] = {"_put": object.__setattr__, "_MISSING": MISSING}
    assign = "_put(self, {0!r}, {1})" if frozen else "self.{0} = {1}"
    statements = [assign.format(field.name, value) for field in fields if (value := _value(field, names))]
    if hasattr(cls, "__post_init__"):
        statements.append("self.__post_init__()")
    compared = [field.name for field in fields if field.compare]
    text = (_INIT + _EQ * eq + _HASH * (eq and frozen)).format(
        parameters=", ".join(_parameter(field, names) for field in fields if field.init),
        statements="; ".join(statements) or "pass",
        mine=_listed("self", compared),
        others=_listed("other", compared),
        hashed=_listed("self", [f.name for f in fields if (f.compare if f.hash is None else f.hash)]),
    )
    methods: dict[str, Callable[..., Any]] = {}
    exec(text, names, methods)
    for name, method in methods.items():
        method.__qualname__ = f"{cls.__qualname__}.{name}"  # as messages about its arguments show it
    return methods


def _parameter(field: Field[Any], names: dict[str, Any]) -> str:
    """A field as a parameter; ``names`` are what the text of a method can use, and get the field's default."""
    if field.kw_only:
        raise TypeError(f"`{field.name}`: fields are given by position here; else use `dataclasses.dataclass`")
    if field.default_factory is not MISSING:
        return f"{field.name}=_MISSING"
    if field.default is not MISSING:
        names[f"_default_{field.name}"] = field.default
        return f"{field.name}=_default_{field.name}"
    return field.name


def _value(field: Field[Any], names: dict[str, Any]) -> str:
    """What a field is set to when an object is made; ``""``: nothing."""
    if field.default_factory is MISSING:
        return field.name if field.init else ""
    names[f"_make_{field.name}"] = field.default_factory
    made = f"_make_{field.name}()"
    return f"{made} if {field.name} is _MISSING else {field.name}" if field.init else made


def _listed(owner: str, names: Iterable[str]) -> str:
    return "".join(f"{owner}.{name}, " for name in names)


@recursive_repr()
def _shown(self: Any) -> str:
    shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in dataclasses.fields(self) if each.repr)
    return f"{type(self).__qualname__}({shown})"


def _set_nothing(self: Any, name: str, value: object) -> None:
    if _is_own(self, name):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _delete_nothing(self: Any, name: str) -> None:
    if _is_own(self, name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _is_own(instance: Any, name: str) -> bool:
    """A plain subclass may have attributes beside the fields."""
    return "__dataclass_fields__" in vars(type(instance)) or name in instance.__dataclass_fields__

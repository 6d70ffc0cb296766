"""Read back what a child wrote: JSON lines into the record classes of ``warplint/verify/records.py``."""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import types
import typing
from pathlib import Path
from typing import Any

from warplint.verify import records


@dataclasses.dataclass(frozen=True)
class Unreadable:
    """A line that is no record of this protocol: cut off by a crash, or written by another version."""

    line: str
    why: str


def read(path: Path) -> tuple[object, ...]:
    """Every record of the file in order; a line that cannot be read becomes :class:`Unreadable`, never an error."""
    try:
        text = path.read_bytes().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ()
    return tuple(_record(line) for line in text.splitlines() if line.strip())


def _record(line: str) -> object:
    try:
        fields = json.loads(line)
        name = fields.pop("record")
        kind = getattr(records, name)
        return _build(kind, fields)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return Unreadable(line[:200], f"{type(error).__name__}: {error}")


@functools.cache
def _fields(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind, vars(records))


def _build(hint: Any, value: Any) -> Any:
    """``value`` (as JSON gave it) in the shape that the annotation ``hint`` asks for."""
    origin = typing.get_origin(hint)
    if value is None or hint is Any or hint is object:
        return value
    if origin in (typing.Union, types.UnionType):
        inner = [option for option in typing.get_args(hint) if option is not type(None)]
        return _build(inner[0], value) if len(inner) == 1 else value
    if origin is tuple:
        return _tuple(typing.get_args(hint), value)
    if origin is frozenset:
        return frozenset(_build(typing.get_args(hint)[0], item) for item in value)
    if origin is not None:  # dict and Mapping: their values are JSON values
        return value
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        hints = _fields(hint)
        return hint(**{name: _build(hints[name], item) for name, item in value.items()})
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(value)
    return float(value) if hint is float else value


def _tuple(arguments: tuple[Any, ...], value: list[Any]) -> tuple[Any, ...]:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_build(arguments[0], item) for item in value)
    return tuple(_build(hint, item) for hint, item in zip(arguments, value, strict=True))

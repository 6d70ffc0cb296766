"""Read back what a child wrote: JSON lines into the record classes of ``warplint/verify/records.py``."""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import types
import typing
from collections.abc import Callable
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


_decoded = json.JSONDecoder().raw_decode


def _record(line: str) -> object:
    try:
        fields, end = _decoded(line)
        if end != len(line):
            raise ValueError(f"a record, and more from character {end} on")
        kind = getattr(records, fields.pop("record"))
        return _reader(kind)(fields)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return Unreadable(line[:200], f"{type(error).__name__}: {error}")


Reader = Callable[[Any], Any]
"""Makes a value as JSON gave it into what an annotation asks for."""


@functools.cache
def _reader(hint: Any) -> Reader:
    """The reader for one annotation; made once, since a program may tell thousands of launches."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        inner = [option for option in arguments if option is not type(None)]
        read = _reader(inner[0]) if len(inner) == 1 else _as_it_is
        return read if read is _as_it_is else lambda value: None if value is None else read(value)
    if origin is tuple:
        return _tuple_reader(arguments)
    if origin is frozenset:
        return _frozen_set_reader(_reader(arguments[0]))
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _record_reader(hint)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint
    return float if hint is float else _as_it_is


def _as_it_is(value: Any) -> Any:
    return value


def _record_reader(kind: type) -> Reader:
    readers = {name: _reader(hint) for name, hint in typing.get_type_hints(kind, vars(records)).items()}
    changing = {name: read for name, read in readers.items() if read is not _as_it_is}

    def read(fields: dict[str, Any]) -> Any:
        for name, reader in changing.items():
            if name in fields:
                fields[name] = reader(fields[name])
        return kind(**fields)

    return read


def _tuple_reader(arguments: tuple[Any, ...]) -> Reader:
    readers = [_reader(hint) for hint in arguments if hint is not Ellipsis]
    if all(read is _as_it_is for read in readers):
        return tuple
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        read_one = readers[0]
        return lambda value: tuple([read_one(item) for item in value])
    return lambda value: tuple(read(item) for read, item in zip(readers, value, strict=True))


def _frozen_set_reader(read: Reader) -> Reader:
    return lambda value: frozenset(read(item) for item in value)

"""Results kept between runs, by content: of the file, of all it imports, of the linter, its rules and the Warp version.

What is kept is everything that a file told down to a severity, whatever is selected, so that ``--select`` and comments
need no new look. An entry is one JSON file, written beside its place and renamed: a run that is killed, or two at
once, leave no half an entry. JSON and not pickle, since a cache that comes with somebody's repository must stay data.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import hashlib
import json
import os
import sys
import tempfile
import time
import types
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from warplint import __version__

FOLDER = ".warplint_cache"
KEPT_DAYS = 30

_FORMAT = 2
_SPREAD = 2
_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# Written by warplint. See https://bford.info/cachedir/\n"

T = TypeVar("T")


class Cache:
    """A folder of entries. Every failure to read or write is a miss: a cache never stops a run."""

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self._folder = folder
        self._fingerprint = fingerprint.encode()

    def key(self, path: str, content: bytes) -> str:
        """The key of the result for the entry file ``path``; ``content``: of all the files that it rests on."""
        path_ = path.encode(errors="surrogateescape")
        return hashlib.blake2b(self._fingerprint + content + path_, digest_size=20).hexdigest()

    def get(self, key: str, kind: type[T]) -> T | None:
        """What was kept under ``key``, of that dataclass; None where there is nothing, or nothing readable."""
        place = self._place(key)
        try:
            data = json.loads(place.read_bytes())
            entry: T = from_json(kind, data)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None
        return entry

    def put(self, key: str, value: Any) -> None:
        """Keep ``value`` (a dataclass of findings) under ``key``; silently not where that cannot be."""
        place = self._place(key)
        try:
            data = json.dumps(to_json(value), separators=(",", ":")).encode()
            place.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=place.parent, prefix=".new-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                os.replace(name, place)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(name)
                raise
        except (OSError, TypeError, ValueError):
            return

    def tidy(self, now: float | None = None) -> None:
        """Mark the folder as a cache for git and backups; once a day remove what was not written for a month."""
        now = time.time() if now is None else now
        tag = self._folder / "CACHEDIR.TAG"
        with contextlib.suppress(OSError):
            if tag.exists() and now - tag.stat().st_mtime < 86_400:
                return
            self._folder.mkdir(parents=True, exist_ok=True)
            (self._folder / ".gitignore").write_text("*\n")
            tag.write_text(_TAG)
            for entry in self._folder.glob("*/*"):
                if now - entry.stat().st_mtime > KEPT_DAYS * 86_400:
                    entry.unlink()

    def _place(self, key: str) -> Path:
        return self._folder / key[:_SPREAD] / f"{key[_SPREAD:]}.json"


def fingerprint(packs: Iterable[Path], warp: tuple[int, int]) -> str:
    """What a result depends on besides the files: this program, the rule packs and Python's grammar.

    The code is watched file by file, by size and time, so that a pack under development never meets a result of its
    older self. ``packs`` are the folders (or files) of the packs.
    """
    stamps = [f"{_FORMAT} {__version__} {sys.version_info[:2]} {warp}"]
    for place in sorted({Path(__file__).parent, *packs}):
        for file in sorted(_modules_below(place)) if place.is_dir() else (place,):
            status = os.stat(file)
            stamps.append(f"{file} {status.st_size} {status.st_mtime_ns}")
    return hashlib.blake2b("\n".join(stamps).encode(), digest_size=20).hexdigest()


def _modules_below(folder: Path) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        yield from (os.path.join(place, name) for name in names if name.endswith(".py"))


def default_folder(root: Path) -> Path:
    """The project's own cache folder; the user's, where the project cannot be written to or is no project."""
    given = os.environ.get("WARPLINT_CACHE_DIR")
    if given:
        return Path(given)
    is_project = any((root / mark).exists() for mark in ("pyproject.toml", ".git"))
    if is_project and os.access(root, os.W_OK):
        return root / FOLDER
    return _user_caches() / "warplint"


def to_json(value: Any) -> Any:
    """Plain JSON of a dataclass; fields that hold their default are left out."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        held = ((field, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {field.name: to_json(item) for field, item in held if item != _default(field)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (frozenset, set)):
        return sorted(to_json(item) for item in value)
    if isinstance(value, (tuple, list)):
        return [to_json(item) for item in value]
    return value


def from_json(kind: Any, data: Any) -> Any:
    """The inverse of :func:`to_json` for dataclasses of tuples, sets, mappings, enums and plain values."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        inner = [argument for argument in arguments if argument is not type(None)]
        return None if data is None else from_json(inner[0], data)
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return tuple(from_json(arguments[0], item) for item in data)
        return tuple(from_json(argument, item) for argument, item in zip(arguments, data, strict=True))
    if origin is frozenset:
        return frozenset(from_json(arguments[0], item) for item in data)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = _hints(kind)
        return kind(**{name: from_json(hints[name], item) for name, item in data.items()})
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(data)
    return data


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _user_caches() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")

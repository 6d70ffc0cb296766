"""Settings: what ``[tool.warplint]`` of the nearest pyproject.toml says, and what the command line says over it.

One declaration per setting (:data:`_READERS`) serves both. A key or value that means nothing is a
:class:`ConfigError` with the place in the file; the command line ends with status 2 on it.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePath
from typing import Any

from warplint.dataclass import dataclass
from warplint.finding import Severity

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NEWEST_WARP = (1, 19)
"""The newest version of Warp whose behaviour was measured; what rules speak of unless the settings say otherwise."""

OLDEST_WARP = (1, 0)

DEFAULT_EXCLUDE = (
    ".bzr", ".direnv", ".eggs", ".git", ".hg", ".ipynb_checkpoints", ".mypy_cache", ".nox", ".pants.d", ".pytest_cache",
    ".pytype", ".ruff_cache", ".svn", ".tox", ".venv", ".vscode", ".warplint_cache", "__pycache__", "__pypackages__",
    "_build", "build", "dist", "node_modules", "site-packages", "venv",
)  # fmt: skip

UNREADABLE = "NVW900"
"""Always reported, unless ignored by its own code: a file that was not checked is never passed over in silence."""


class ConfigError(Exception):
    """A setting that cannot be used. The message names the file and the key."""


@dataclass(frozen=True)
class VerifySettings:
    """What ``--verify`` runs, by which interpreter, on which device, for how long (seconds a program) and how far.

    ``memory_limit``: gigabytes that a program may take; 0: any; None: three quarters of what the machine has.
    ``iterations``: a program is stopped when so many of its iterations were seen, ``horizon``: or when one has had so
    many backward calls (None: four for each iteration). ``keep``: a folder for scripts that
    repeat the measurements.
    """

    run: tuple[str, ...] = ()
    python: str | None = None
    device: str | None = None
    time_limit: float = 120.0
    memory_limit: float | None = None
    iterations: int = 2
    horizon: int | None = None
    keep: str | None = None


@dataclass(frozen=True)
class Settings:
    """All settings of one run. Patterns are relative to ``root``, the folder of the pyproject.toml they come from.

    ``baseline`` is the file of known findings.
    ``select`` and ``ignore`` hold codes (``NVW101``), beginnings of codes (``NVW1``) or names (``ping-pong``).
    """

    root: Path
    file: Path | None = None
    select: tuple[str, ...] = ("NVW",)
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    severity: Severity = Severity.WARNING
    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    extend_exclude: tuple[str, ...] = ()
    force_exclude: bool = False
    notebooks: bool = False
    warp_version: tuple[int, int] = NEWEST_WARP
    baseline: str | None = None
    verify: VerifySettings = VerifySettings()

    def selected(self, code: str, name: str, path: str) -> bool:
        """Whether a rule is on for a file.

        Of ``select`` and ``ignore`` the most specific word wins, among equals ``ignore``. What ``per-file-ignores``
        says of the file holds against both.
        """
        if _weight(code, name, self.ignored_in(path)) >= (len(code) if code == UNREADABLE else 0):
            return False
        against = _weight(code, name, self.ignore)
        if code == UNREADABLE:
            return against < len(code)
        return _weight(code, name, [*self.select, *self.extend_select]) > against

    def ignored_in(self, path: str) -> tuple[str, ...]:
        """The codes that ``per-file-ignores`` gives for this file."""
        found: list[str] = []
        for pattern, codes in self.per_file_ignores:
            negated = pattern.startswith("!")
            if matches(pattern.removeprefix("!"), path, self.root) is not negated:
                found += codes
        return tuple(found)

    def excludes_itself(self, path: str) -> bool:
        """Whether ``exclude`` or ``extend-exclude`` names this file or folder itself (its parents left aside)."""
        return any(matches(pattern, path, self.root) for pattern in (*self.exclude, *self.extend_exclude))

    def excludes(self, path: str) -> bool:
        """Whether this file or any folder that it lies in is excluded, up to :attr:`root`."""
        root = self.root.resolve()
        at = Path(path).resolve()
        inside = [at, *at.parents]
        below = inside[: inside.index(root)] if root in inside else [at]
        return any(self.excludes_itself(str(part)) for part in below)


def matches(pattern: str, path: str, root: Path) -> bool:
    """A pattern without a slash is compared with the last part of the path, any other with the path below ``root``.

    A pattern that names a folder (``docs/``, ``src/gen``) is compared as it stands: callers ask for folders too.
    """
    pattern = pattern.rstrip("/").removeprefix("./")
    if "/" not in pattern:
        return fnmatch.fnmatchcase(PurePath(path).name, pattern)
    try:
        relative = Path(path).resolve().relative_to(root.resolve()).as_posix()
    except (ValueError, OSError):
        relative = PurePath(path).as_posix()
    return bool(_translated(pattern).match(relative)) or fnmatch.fnmatchcase(PurePath(path).as_posix(), pattern)


def load(start: Path) -> Settings:
    """The settings that hold for ``start``: of the nearest pyproject.toml with a ``[tool.warplint]``, else defaults."""
    folder = start.resolve()
    folder = folder if folder.is_dir() else folder.parent
    for candidate in (folder, *folder.parents):
        file = candidate / "pyproject.toml"
        if file.is_file():
            table = _table(file)
            if table is not None:
                return _anchored(update(Settings(root=candidate, file=file), table, str(file)))
    return Settings(root=_project_root(folder))


def update(settings: Settings, values: Mapping[str, Any], origin: str) -> Settings:
    """``settings`` with the values of a table (keys as in pyproject.toml) laid over; ``origin`` stands in messages."""
    changes: dict[str, Any] = {}
    for key, value in values.items():
        if key == "verify":
            changes["verify"] = _update_verify(settings.verify, value, origin)
            continue
        reader = _READERS.get(key)
        if reader is None:
            raise ConfigError(f"{origin}: unknown setting `{key}`{_hint(key, [*_READERS, 'verify'])}")
        changes[key.replace("-", "_")] = _read(reader, value, key, origin)
    return dataclasses.replace(settings, **changes)


def check_codes(settings: Settings, known: Iterable[tuple[str, str]], origin: str) -> None:
    """Raise :class:`ConfigError` for a word in select, ignore or per-file-ignores that no rule answers to."""
    rules = list(known)
    words = [*settings.select, *settings.extend_select, *settings.ignore]
    words += [code for _, codes in settings.per_file_ignores for code in codes]
    for word in words:
        if not any(_means(word, code, name) for code, name in rules):
            names = [text for rule in rules for text in rule]
            raise ConfigError(f"{origin}: no rule has the code or name `{word}`{_hint(word, names)}")


def as_table(settings: Settings) -> dict[str, object]:
    """The settings under their names in pyproject.toml, for ``--show-settings``."""
    verify = settings.verify
    return {
        "select": list(settings.select),
        "extend-select": list(settings.extend_select),
        "ignore": list(settings.ignore),
        "per-file-ignores": {pattern: list(codes) for pattern, codes in settings.per_file_ignores},
        "severity": settings.severity.value,
        "exclude": list(settings.exclude),
        "extend-exclude": list(settings.extend_exclude),
        "force-exclude": settings.force_exclude,
        "notebooks": settings.notebooks,
        "warp-version": ".".join(map(str, settings.warp_version)),
        "baseline": settings.baseline,
        "verify": {
            "run": list(verify.run),
            "python": verify.python,
            "device": verify.device,
            "time-limit": verify.time_limit,
            "memory-limit": verify.memory_limit,
            "iterations": verify.iterations,
            "horizon": verify.horizon,
            "keep": verify.keep,
        },
    }


def _table(file: Path) -> Mapping[str, Any] | None:
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: not a valid TOML file: {error}") from error
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
    tool = document.get("tool", {})
    table = tool.get("warplint") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise ConfigError(f"{file}: `tool.warplint` must be a table")
    return table


def _anchored(settings: Settings) -> Settings:
    """Paths that the file names are meant from its folder: the baseline, and the interpreter where it is a path."""
    if settings.baseline is not None:
        settings = dataclasses.replace(settings, baseline=os.path.join(settings.root, settings.baseline))
    python = settings.verify.python
    if python is None or not ("/" in python or os.sep in python):
        return settings
    place = os.path.join(settings.root, os.path.expanduser(python))
    return dataclasses.replace(settings, verify=dataclasses.replace(settings.verify, python=place))


def _project_root(folder: Path) -> Path:
    marks = ("pyproject.toml", ".git")
    return next((at for at in (folder, *folder.parents) if any((at / mark).exists() for mark in marks)), folder)


def _update_verify(verify: VerifySettings, value: object, origin: str) -> VerifySettings:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{origin}: `verify` must be a table")
    changes: dict[str, Any] = {}
    for key, item in value.items():
        reader = _VERIFY_READERS.get(key)
        if reader is None:
            raise ConfigError(f"{origin}: unknown setting `verify.{key}`{_hint(key, _VERIFY_READERS)}")
        changes[key.replace("-", "_")] = _read(reader, item, f"verify.{key}", origin)
    return dataclasses.replace(verify, **changes)


def _read(reader: Callable[[Any], Any], value: object, key: str, origin: str) -> Any:
    try:
        return reader(value)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{origin}: `{key}`: {error}") from error


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) and item.strip() for item in value):
        raise TypeError(f"expected a list of strings, not {_shown(value)}")
    return tuple(item.strip() for item in value)


def _string(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise TypeError(f"expected a string, not {_shown(value)}")
    return value


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"expected true or false, not {_shown(value)}")
    return value


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise ValueError(f"expected a number of seconds above 0, not {_shown(value)}")
    return float(value)


def _gigabytes(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        raise ValueError(f"expected a number of gigabytes, or 0 for no limit, not {_shown(value)}")
    return float(value)


def _positive(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"expected a whole number above 0, not {_shown(value)}")
    return value


def _severity(value: object) -> Severity:
    words = [severity.value for severity in Severity]
    if value not in words:
        raise ValueError(f"expected one of {', '.join(words)}, not {_shown(value)}")
    return Severity(value)


def _version(value: object) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)\.(\d+)(\.\d+.*)?", value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f'expected a version such as "1.19", not {_shown(value)}')
    version = (int(match[1]), int(match[2]))
    if version < OLDEST_WARP:
        raise ValueError(f"Warp {match[0]} is older than any version this program knows")
    return version


def _patterns_to_codes(value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, Mapping):
        raise TypeError(f"expected a table of patterns to lists of codes, not {_shown(value)}")
    return tuple((_string(pattern), _strings(codes)) for pattern, codes in value.items())


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "select": _strings,
    "extend-select": _strings,
    "ignore": _strings,
    "per-file-ignores": _patterns_to_codes,
    "severity": _severity,
    "exclude": _strings,
    "extend-exclude": _strings,
    "force-exclude": _boolean,
    "notebooks": _boolean,
    "warp-version": _version,
    "baseline": _string,
}

_VERIFY_READERS: Mapping[str, Callable[[Any], Any]] = {
    "run": _strings,
    "python": _string,
    "device": _string,
    "time-limit": _seconds,
    "memory-limit": _gigabytes,
    "iterations": _positive,
    "horizon": _positive,
    "keep": _string,
}


def _means(word: str, code: str, name: str) -> bool:
    return code.startswith(word.upper()) or name == word.lower()


def _weight(code: str, name: str, words: Iterable[str]) -> int:
    """How specific the most specific of the words is that means the rule: its length, -1 where none does."""
    return max(
        (len(code) if word.lower() == name else len(word) for word in words if _means(word, code, name)), default=-1
    )


def _hint(word: str, known: Iterable[str]) -> str:
    import difflib  # slow to import, and needed for errors alone

    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean `{close[0]}`?" if close else ""


def _shown(value: object) -> str:
    if isinstance(value, (Mapping, list)):
        return "a table" if isinstance(value, Mapping) else repr(value)
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _translated(pattern: str) -> re.Pattern[str]:
    """A glob in which ``*`` stays within one part of the path and ``**`` does not."""
    parts = re.split(r"(\*\*/?|\*|\?)", pattern)
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(words.get(part, re.escape(part)) for part in parts) + r"\Z")

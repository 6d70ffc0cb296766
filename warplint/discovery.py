"""Which files are checked: those named, and those found in the folders named.

``.gitignore`` files and the excludes count for what is found by walking; what is named on the command line is checked
as it stands, unless ``force-exclude`` says otherwise (a pre-commit hook names every file).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from warplint.config import Settings
from warplint.dataclass import dataclass
from warplint.notebook import SUFFIX as NOTEBOOK

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

SUFFIXES = (".py", ".pyw")


class DiscoveryError(Exception):
    """A path that was named and cannot be checked."""


@dataclass(frozen=True)
class Discovered:
    """The files, each once, in order, as they are shown; which of them were named themselves; what was passed over."""

    files: tuple[str, ...]
    named: frozenset[str]
    notebooks: tuple[str, ...] = ()


def discover(paths: Sequence[str], settings: Settings) -> Discovered:
    """The Python files that ``paths`` name; raises :class:`DiscoveryError` for a path that is missing.

    Notebooks are among them where they are named, and those in folders where the settings say so.
    """
    files: dict[str, str] = {}
    named: set[str] = set()
    notebooks: list[str] = []
    for path in paths:
        if not os.path.exists(path):
            raise DiscoveryError(f"{path}: no such file or folder")
        if os.path.isdir(path):
            for found in _walk(path, settings):
                if found.endswith(NOTEBOOK) and not settings.notebooks:
                    notebooks.append(found)
                else:
                    files.setdefault(os.path.realpath(found), found)
            continue
        if settings.force_exclude and settings.excludes(path):
            continue
        shown = shown_path(path)
        named.add(files.setdefault(os.path.realpath(path), shown))
    return Discovered(tuple(sorted(files.values())), frozenset(named), tuple(notebooks))


def shown_path(path: str) -> str:
    """A path as findings show it: without ``./``, with ``/``; relative below the working directory unless given so."""
    return os.path.normpath(path).replace(os.sep, "/")


def _walk(top: str, settings: Settings) -> Iterator[str]:
    """The files below a folder that is checked, in the order of their names."""
    ignores = _Ignores(top)
    for folder, folders, names in os.walk(top):
        inside = [name for name in folders if _admitted(os.path.join(folder, name), settings, ignores, is_folder=True)]
        folders[:] = sorted(inside)
        for name in sorted(names):
            path = os.path.join(folder, name)
            wanted = name.endswith((*SUFFIXES, NOTEBOOK)) and os.path.isfile(path)
            if wanted and _admitted(path, settings, ignores, is_folder=False):
                yield shown_path(path)


def _admitted(path: str, settings: Settings, ignores: _Ignores, *, is_folder: bool) -> bool:
    return not settings.excludes_itself(path) and not ignores.ignored(path, is_folder=is_folder)


class _Ignores:
    """The ``.gitignore`` files that govern a folder: those below the root of its repository, the deepest one first."""

    def __init__(self, top: str) -> None:
        start = Path(top).resolve()
        repository = next((at for at in (start, *start.parents) if (at / ".git").exists()), None)
        self._root = repository or start
        self._spec = lru_cache(maxsize=None)(_spec)

    def ignored(self, path: str, *, is_folder: bool) -> bool:
        """Whether git would not see this path (its folders were asked before)."""
        at = Path(os.path.realpath(os.path.dirname(path))) / os.path.basename(path)
        for folder in at.parents:
            spec = self._spec(str(folder), is_root=folder == self._root)
            if spec is not None:
                relative = at.relative_to(folder).as_posix() + ("/" if is_folder else "")
                answer = spec.check_file(relative).include
                if answer is not None:
                    return bool(answer)
            if folder == self._root:
                break
        return False


def _spec(folder: str, *, is_root: bool) -> GitIgnoreSpec | None:
    names: Iterable[str] = (".git/info/exclude", ".gitignore") if is_root else (".gitignore",)
    lines: list[str] = []
    for name in names:
        try:
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                lines += file.read().splitlines()
        except OSError:
            continue
    if not lines:
        return None
    from pathspec import GitIgnoreSpec  # slow to import, and needed for folders alone

    return GitIgnoreSpec.from_lines(lines)

"""The flake8 plugin: the static half, one file at a time. It never runs anything and never lets flake8 crash.

flake8 calls every plugin for every file, so the first test is a search for the word ``warp``, and nothing else of
warplint is imported before a file passes it. What another file would have to tell is not known here: rules say it as
``info`` or not at all, and ``warplint`` itself tells more.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import ClassVar

from warplint import __version__

Report = tuple[int, int, str, type]
"""Line (1-based), column (0-based), text that begins with the code, the plugin."""


class Plugin:
    """What flake8 makes for each file."""

    name: ClassVar[str] = "warplint"
    version: ClassVar[str] = __version__

    def __init__(self, tree: ast.Module, filename: str, lines: list[str]) -> None:
        self._tree = tree
        self._filename = filename
        self._lines = lines

    def run(self) -> Iterator[Report]:
        """The findings that the settings admit, in order."""
        text = "".join(self._lines)
        if "warp" not in text:
            return
        for line, column, message in self._found(text):
            yield line, column, message, type(self)

    def _found(self, text: str) -> Iterable[tuple[int, int, str]]:
        try:
            from warplint.flake8_file import found

            return found(self._filename, text, self._tree)
        except Exception as error:
            return [(1, 0, f"NVW900 unreadable: {_of_ours(error)}".replace("\n", " "))]


def _of_ours(error: Exception) -> str:
    """A setting that cannot be used, in its own words; anything else is a fault of warplint."""
    if type(error).__name__ == "ConfigError":
        return str(error)
    return f"warplint failed on this file ({type(error).__name__}: {error}); please report it"

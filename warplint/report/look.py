"""How a report looks on the stream it goes to: colours or none, and where the source lines come from."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TextIO

from warplint.dataclass import dataclass

LinesOf = Callable[[str], tuple[str, ...]]
"""The source lines of a file, without their ends; empty where it cannot be read."""

STYLES: Mapping[str, str] = {
    "bold": "1",
    "dim": "2",
    "red": "31;1",
    "green": "32",
    "yellow": "33;1",
    "blue": "34;1",
    "cyan": "36",
}


def _no_lines(path: str) -> tuple[str, ...]:
    del path
    return ()


@dataclass(frozen=True)
class Look:
    """Plain or coloured text. ``lines_of`` gives the source for code frames."""

    coloured: bool = False
    lines_of: LinesOf = _no_lines

    def paint(self, style: str, text: str) -> str:
        """``text`` in a style of :data:`STYLES`, where colours are shown."""
        return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if self.coloured and text else text

    def code(self, line: str) -> str:
        """A line of Python, highlighted where colours are shown."""
        if not self.coloured or not line.strip():
            return line
        import pygments  # needed on a terminal alone
        from pygments.formatters import TerminalFormatter
        from pygments.lexers import PythonLexer

        lexer = PythonLexer(stripnl=False, ensurenl=False)
        return str(pygments.highlight(line, lexer, TerminalFormatter())).rstrip("\n")


def wants_colour(stream: TextIO, environment: Mapping[str, str] | None = None) -> bool:
    """Whether colours are to be shown: on a terminal, unless ``NO_COLOR`` (no-color.org) or ``TERM=dumb`` is set.

    ``FORCE_COLOR`` shows them also where the stream is no terminal; ``NO_COLOR`` wins over it.
    """
    environment = os.environ if environment is None else environment
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return stream.isatty() and environment.get("TERM") != "dumb"

"""Jupyter notebooks as Python modules: the code cells one below the other, and which line belongs to which cell.

What is IPython's own in a cell (magics, shell commands, questions) becomes an empty statement of the same line, so that
lines and columns stay what they are in the cell; of `%time STATEMENT` the statement stays. A cell whose magic hands its
text to something other than Python is empty. Cells are counted as in the notebook, text cells among them, from 1.
"""

from __future__ import annotations

import ast
import bisect
import re
from collections.abc import Callable, Iterator
from typing import Any

from warplint.dataclass import dataclass

SUFFIX = ".ipynb"

_PYTHON_CELLS = frozenset({"capture", "prun", "python", "python3", "time", "timeit"})
"""Magics of cells whose text is Python all the same."""

_TIMED = re.compile(r"^(\s*|\s*[\w.,\s]+=\s*)%(?:time|timeit|prun|memit|mprun)[ \t]+(?=[^\s\-])")
"""Magics of a line whose rest is a statement, which IPython runs."""

_COMMAND = re.compile(r"^(\s*)(?:[%!?]|/[A-Za-z]).*$")
_ASSIGNED_COMMAND = re.compile(r"^(\s*[\w.,\s]+=\s*)[%!].*$")
_QUESTION = re.compile(r"^(\s*)[%\w.]+\?{1,2}\s*$")


class NotANotebook(Exception):
    """What is wrong with the file."""


@dataclass(frozen=True)
class Cells:
    """The cells of a notebook's code: their numbers, and the line of the whole at which each begins."""

    numbers: tuple[int, ...]
    starts: tuple[int, ...]

    def place(self, line: int) -> tuple[int, int]:
        """The cell of a line of the whole, and the line in the cell."""
        at = max(bisect.bisect_right(self.starts, line) - 1, 0)
        return self.numbers[at], line - self.starts[at] + 1

    def lines_of(self, cell: int, lines: tuple[str, ...]) -> tuple[str, ...]:
        """The lines of a cell, of the lines of the whole."""
        at = self.numbers.index(cell)
        stop = self.starts[at + 1] - 1 if at + 1 < len(self.starts) else len(lines)
        return lines[self.starts[at] - 1 : stop]


CellsOf = Callable[[str], "Cells | None"]
"""The cells of a file by its path; None for a file that is no notebook."""


def python_of(data: bytes) -> tuple[str, Cells]:
    """The module that a notebook's code cells make, in their order; raises :class:`NotANotebook`."""
    text, numbers, starts = "", [1], [1]
    for number, source in _code_cells(data):
        if text:
            starts.append(text.count("\n") + 1)
            numbers.append(number)
        else:
            numbers = [number]
        text += "".join(f"{line}\n" for line in _as_python(source))
    return text, Cells(tuple(numbers), tuple(starts))


def _code_cells(data: bytes) -> Iterator[tuple[int, str]]:
    import json  # needed for notebooks alone

    try:
        notebook = json.loads(data)
    except ValueError as error:
        raise NotANotebook(f"the file is no notebook: {error}") from error
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise NotANotebook("the file is no notebook of format 4: it has no list of cells")
    if _language(notebook) not in ("", "python"):
        return
    for number, cell in enumerate(cells, 1):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            source = cell.get("source", "")
            text = "".join(map(str, source)) if isinstance(source, list) else str(source)
            if text.strip():
                yield number, text


def _language(notebook: dict[str, Any]) -> str:
    metadata = notebook.get("metadata")
    information = metadata.get("language_info") if isinstance(metadata, dict) else None
    return str(information.get("name", "")).lower() if isinstance(information, dict) else ""


def _as_python(cell: str) -> list[str]:
    """The lines of a cell without what is not Python."""
    lines = cell.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n").split("\n")
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("%%"):
        if first[2:].split(" ", 1)[0] not in _PYTHON_CELLS:
            return [""] * len(lines)
        lines[lines.index(first)] = ""
    if _parses(lines):
        return lines
    return [_without_command(line) for line in lines]


def _parses(lines: list[str]) -> bool:
    try:
        ast.parse("\n".join(lines))
    except (SyntaxError, ValueError):
        return False
    return True


def _without_command(line: str) -> str:
    timed = _TIMED.match(line)
    if timed is not None:  # as long as before, so that columns stay what they are
        before = timed[1] if timed[1].strip() else f"{timed[1]}0;"
        return before.ljust(timed.end()) + line[timed.end() :]
    assigned = _ASSIGNED_COMMAND.match(line)
    if assigned is not None:
        return f"{assigned[1]}None"
    command = _COMMAND.match(line) or _QUESTION.match(line)
    return line if command is None else f"{command[1]}pass"

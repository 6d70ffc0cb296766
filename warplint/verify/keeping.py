"""Scripts that measure the gradients of a run again (``--keep DIR``): small, and without warplint.

Each is the text of ``measured_again.py`` with what it is to measure filled in.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from warplint.report import words
from warplint.runner.command import Command
from warplint.verify.evidence import Evidence
from warplint.verify.figures import comparison
from warplint.verify.records import Gradient

_TEMPLATE = Path(__file__).with_name("measured_again.py")
_HOLE = "MEASURED: dict[str, Any] = {}"


def keep_scripts(runs: Iterable[tuple[Command, Evidence]], folder: str) -> str:
    """Write a script for each gradient that can be measured by moving one array; returns what to tell of it.

    Raises:
        OSError: the folder cannot be written.
    """
    scripts = [script for command, evidence in runs for script in _scripts(command, evidence, folder)]
    missing = sum(gradient.repetition is None for _, evidence in runs for gradient in evidence.gradients)
    Path(folder).mkdir(parents=True, exist_ok=True)
    for number, (name, text) in enumerate(scripts, 1):
        Path(folder, f"{number:02}_{name}.py").write_text(text, encoding="utf-8")
    told = f"{words.counted(len(scripts), 'script')} for measuring again written to {folder}"
    if not missing:
        return told
    return (
        f"{told}; {words.counted(missing, 'gradient')} cannot be measured by moving one array before one backward call"
    )


def _scripts(command: Command, evidence: Evidence, folder: str) -> Iterator[tuple[str, str]]:
    written = {os.path.realpath(path): _module_in(folder, path, text) for path, text in command.texts.items()}
    for gradient in evidence.gradients:
        if gradient.repetition is not None and gradient.allocated:
            name = re.sub(r"\W+", "_", gradient.leaf).strip("_") or "leaf"
            yield f"{name}_{gradient.status.value}", _script(command, gradient, written)


def _module_in(folder: str, path: str, text: str) -> str:
    """A file with what a notebook's cells are, which the scripts run in its place; its path."""
    file = Path(folder, Path(path).stem).with_suffix(".py").resolve()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return str(file)


def _script(command: Command, gradient: Gradient, written: Mapping[str, str]) -> str:
    again = gradient.repetition
    assert again is not None
    path, line, _ = gradient.allocated[-1]
    target, made = command.entry.target, os.path.realpath(path)
    measured = {
        "kind": command.entry.kind.value,
        "target": written.get(os.path.realpath(target), target),
        "notebook": bool(written),
        "beside": os.path.dirname(os.path.abspath(target)),
        "arguments": list(command.entry.arguments),
        "folder": command.folder or os.getcwd(),
        "path": written.get(made, made),
        "line": line,
        "array": again.array,
        "backward": again.backward,
        "entered": again.entered,
        "move": [list(pair) for pair in again.move],
        "step": again.step,
    }
    body = ",\n".join(f"    {json.dumps(key)}: {value!r}" for key, value in measured.items())
    told = f"# {command.shown}: {comparison(gradient)}\n"
    return told + _TEMPLATE.read_text(encoding="utf-8").replace(_HOLE, f"MEASURED: dict[str, Any] = {{\n{body},\n}}")

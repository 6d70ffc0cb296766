"""A figure of the table: what it is, what it should be, what it is now."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Row:
    """One measured figure. ``target`` is in the same unit; ``of`` are the quantities that it was made from."""

    figure: str
    target: str
    measured: float
    unit: str = ""
    of: str = ""


@dataclass(frozen=True)
class Cost:
    """What a command took: seconds of wall clock, and of processor time with all that it started."""

    wall: float
    cpu: float


def run(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> Cost:
    """Run a command to its end, whatever its exit status; its output is dropped."""
    before, start = _children(), time.perf_counter()
    subprocess.run(command, env=dict(environment), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return Cost(time.perf_counter() - start, _children() - before)


def best(commands: int, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> Cost:
    """The least of several runs: what disturbs a measurement only adds to it."""
    costs = [run(command, environment, folder) for _ in range(commands)]
    return Cost(min(cost.wall for cost in costs), min(cost.cpu for cost in costs))


def environment_of(folder: Path) -> dict[str, str]:
    """The environment of a child: this checkout first on the path, and what is kept between runs in ``folder``.

    Bytecode is kept, as it is of what is installed, whatever the environment says of it: to compile a checkout at each
    start took a quarter of what ``gradcheck`` of a short program takes.
    """
    path = os.pathsep.join([str(ROOT), str(ROOT / "rules"), os.environ.get("PYTHONPATH", "")])
    kept = {"WARPLINT_CACHE_DIR": str(folder / "answers"), "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    variables = {**os.environ, "PYTHONPATH": path.rstrip(os.pathsep), **kept}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    return variables


def parse_time(files: Iterable[Path]) -> float:
    """Seconds of processor time that ``ast.parse`` of the files takes in a process of its own."""
    code = (
        "import ast, gc, json, sys, time, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "texts = [open(name, 'rb').read() for name in json.load(sys.stdin)]\n"
        "gc.disable()\n"
        "start = time.process_time()\n"
        "trees = [ast.parse(text) for text in texts]\n"
        "print(time.process_time() - start)\n"
    )
    names = json.dumps([str(file) for file in files])
    done = subprocess.run([sys.executable, "-c", code], input=names, capture_output=True, text=True, check=True)
    return float(done.stdout)


def show(rows: Iterable[Row]) -> str:
    """The rows as a table in Markdown."""
    lines = ["| figure | target | measured | from |", "| --- | --- | --- | --- |"]
    lines += [f"| {row.figure} | {row.target} | {row.measured:.3g}{row.unit} | {row.of} |" for row in rows]
    return "\n".join(lines)


def _children() -> float:
    times = os.times()
    return times.children_user + times.children_system

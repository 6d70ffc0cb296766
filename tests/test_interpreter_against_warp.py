"""The interpreted trace of a program against what Warp really launches: kernels, memories, flags, in order."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from interpreted import of_kind, renamed

from warplint.project import Project
from warplint.trace import events
from warplint.trace.interpreter import interpret

HERE = Path(__file__).parent
PROGRAMS = HERE / "interpreter_programs"

Row = tuple[str, bool, tuple[int, ...], tuple["bool | None", ...]]


def really_launched(program: Path) -> dict[str, list[Row]]:
    """Run the program and take down its launches."""
    command = [sys.executable, str(HERE / "recorded_launches.py"), str(program)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith("ROWS"))
    found: dict[str, list[Row]] = defaultdict(list)
    for row in json.loads(line[4:]):
        found[row["place"]].append((row["kernel"], row["taped"], tuple(row["memories"]), tuple(row["flags"])))
    return found


def interpreted(program: Path) -> dict[str, list[Row]]:
    """Interpret the program."""
    (interpretation,) = interpret(str(program), Project.for_paths([program]))
    found: dict[str, list[Row]] = defaultdict(list)
    for launch in of_kind(interpretation.trace, events.Launch):
        place = next(frame.function for frame in launch.stack if frame.function[1:].isdigit())
        arrays = [binding.array for binding in launch.bindings if binding.array is not None]
        assert launch.kernel is not None
        memories, flags = tuple(array.memory for array in arrays), tuple(array.requires_grad for array in arrays)
        found[place].append((launch.kernel.name, launch.tape is not None, memories, flags))
    return found


def comparable(rows: list[Row]) -> list[tuple[object, ...]]:
    """Memories renamed by first appearance."""
    memories = renamed(row[2] for row in rows)
    return [(row[0], row[1], named, row[3]) for row, named in zip(rows, memories, strict=True)]


@pytest.mark.warp
@pytest.mark.parametrize("name", ["constructs.py", "warp_calls.py"])
def test_interpreted_launches_are_the_real_ones(name: str) -> None:
    real, ours = really_launched(PROGRAMS / name), interpreted(PROGRAMS / name)
    assert real.keys() == ours.keys()
    for place, rows in real.items():
        assert comparable(ours[place]) == comparable(rows), place

"""Measures kernels in child processes, so that a crash costs one kernel only."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.differential.cases import Case

ROOT = Path(__file__).parents[2]
PER_MODULE = 100
OPTIMIZATION = 0
"""Compiling takes far longer than running."""


@dataclasses.dataclass(frozen=True)
class Measured:
    """``outcome``: right, wrong, unmeasured, refused (Warp does not build it) or crashed. ``what``: details."""

    outcome: str
    what: str = ""


def measured(cases: Sequence[Case], folder: Path, cache: str | None = None) -> list[Measured]:
    """The measurements of all cases, a module of at most :data:`PER_MODULE` at a time.

    ``cache``: folder for Warp's kernel cache; None: the user's own.
    """
    found: dict[int, Measured] = {}
    for first in range(0, len(cases), PER_MODULE):
        numbered = dict(enumerate(cases[first : first + PER_MODULE], first))
        found |= _batch(numbered, folder / f"module_{first}", cache)
    return [found[number] for number in range(len(cases))]


def _batch(cases: Mapping[int, Case], folder: Path, cache: str | None) -> dict[int, Measured]:
    """Measure in one child; where it dies on a case, go on behind that; where it dies on the module, by halves."""
    if not cases:
        return {}
    found, loaded, started, errors = _child(cases, folder, cache)
    left = {number: case for number, case in cases.items() if number not in found}
    if not left:
        return found
    if loaded and started is not None:
        found[started] = Measured("crashed", errors)
        del left[started]
        return found | _batch(left, folder, cache)
    if len(left) == 1:
        return found | {number: Measured("refused", errors) for number in left}
    numbers = list(left)
    half = len(numbers) // 2
    for part in (numbers[:half], numbers[half:]):
        found |= _batch({number: left[number] for number in part}, folder, cache)
    return found


def _child(
    cases: Mapping[int, Case], folder: Path, cache: str | None
) -> tuple[dict[int, Measured], bool, int | None, str]:
    """The results of one child, whether its module was loaded, the case it was at last, what it said on stderr."""
    folder.mkdir(parents=True, exist_ok=True)
    request = {
        "folder": str(folder),
        "cache": cache,
        "optimization": OPTIMIZATION,
        "cases": {number: dataclasses.asdict(case) for number, case in cases.items()},
    }
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.differential.child"]
    done = subprocess.run(command, input=json.dumps(request), capture_output=True, text=True, env=environment, cwd=ROOT)
    found: dict[int, Measured] = {}
    loaded, started = False, None
    for line in done.stdout.splitlines():
        if not line.startswith("{"):
            continue
        said = json.loads(line)
        loaded |= "loaded" in said
        started = said.get("starts", started)
        if "case" in said:
            found[said["case"]] = _read(said)
            started = None
    return found, loaded, started, done.stderr[-2000:]


def _read(said: Mapping[str, object]) -> Measured:
    if said["outcome"] == "wrong":
        return Measured("wrong", f"adjoint {said['adjoint']:.6g}, difference {said['difference']:.6g}")
    return Measured(str(said["outcome"]), str(said.get("why", "")))

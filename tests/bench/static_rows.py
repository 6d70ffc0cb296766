"""The rows about linting without running anything."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bench.rows import Row, best, environment_of, parse_time, run
from tests.installed import environment as with_plugin

_IMPORTS_WARP = re.compile(rb"^[ \t]*(?:import|from)[ \t]+warp\b", re.MULTILINE)
_LINES = 1_000
_WITHOUT_WARP = 300
"""Files without Warp that are given to flake8 at once, so that its start-up vanishes in the difference."""


def users_of_warp(folders: Sequence[Path]) -> list[Path]:
    """The Python files below the folders that import Warp."""
    found = (file for folder in folders for file in ([folder] if folder.is_file() else sorted(folder.rglob("*.py"))))
    return [file for file in found if _IMPORTS_WARP.search(file.read_bytes())]


def static_rows(folders: Sequence[Path], repeat: int) -> Iterator[Row]:
    """Cold and warm lint of the files that import Warp, and flake8 on one file."""
    files = users_of_warp(folders)
    with tempfile.TemporaryDirectory() as scratch:
        yield from _lint_rows(files, Path(scratch), repeat)
        yield from _flake8_rows(files, Path(scratch), repeat)


def _lint_rows(files: Sequence[Path], scratch: Path, repeat: int) -> Iterator[Row]:
    environment = environment_of(scratch / "lint")
    command = [sys.executable, "-m", "warplint", "check", "--exit-zero", "--jobs", "1", *map(str, files)]
    parsing = min(parse_time(files) for _ in range(max(repeat, 2)))
    cold = best(repeat, [*command, "--no-cache"], environment, scratch)
    first = run(command, environment, scratch)
    warm = best(max(repeat, 2), command, environment, scratch)
    of = f"{cold.cpu:.1f} s against {parsing:.1f} s, {len(files)} files"
    yield Row("cold lint, CPU against ast.parse", "≤ 2.5", cold.cpu / parsing, of=of)
    yield Row("warm against cold lint, wall", "≤ 0.1", warm.wall / first.wall, of=f"{warm.wall:.2f} s")


def _flake8_rows(files: Sequence[Path], scratch: Path, repeat: int) -> Iterator[Row]:
    repeat = max(5, repeat)
    plain = environment_of(scratch / "flake8")
    plugged = {**plain, "PYTHONPATH": with_plugin(scratch / "metadata").get("PYTHONPATH", "")}
    subject = min(files, key=lambda file: abs(file.read_bytes().count(b"\n") - _LINES))
    (scratch / "subject.py").write_bytes(subject.read_bytes())
    empty = scratch / "without"
    empty.mkdir()
    for number in range(_WITHOUT_WARP):
        (empty / f"module_{number}.py").write_text('"""A module."""\n\nVALUE = 1\n')
    flake8 = [sys.executable, "-m", "flake8", "--isolated", "--exit-zero", "--jobs", "1"]

    files_and_start = [[*flake8, "without"], [*flake8, "--version"]]
    walls = [[best(repeat, each, kind, scratch).wall for kind in (plugged, plain)] for each in files_and_start]
    added = (walls[0][0] - walls[0][1]) - (walls[1][0] - walls[1][1])
    yield Row("flake8, a file without Warp, time added", "≤ 0.1 ms", 1000 * added / _WITHOUT_WARP, " ms")

    without = best(repeat, [*flake8, "subject.py"], plain, scratch)
    uncached = {**plugged, "WARPLINT_CACHE_DIR": "/dev/null/none"}
    cold = best(repeat, [*flake8, "subject.py"], uncached, scratch)
    run([*flake8, "subject.py"], plugged, scratch)
    warm = best(repeat, [*flake8, "subject.py"], plugged, scratch)
    what = f"{subject.name}, {subject.read_bytes().count(10)} lines"
    yield Row("flake8 with against without the plugin, wall", "≤ 1.5", cold.wall / without.wall, of=what)
    yield Row("the same, answer kept", "≤ 1.5", warm.wall / without.wall, of=what)

"""What judging a program costs against running it, and against ``wp.autograd.gradcheck`` of the same function.

    python -m tests.bench.verify_rows [--rounds N] [--large]

The program is ``training_program.py`` in several sizes. Each round runs it plainly and under ``warplint gradcheck`` in
turn, so that what else the machine does falls on both alike; told are medians of processor time with all that a run
started, since wall time is anybody's on a shared machine. The processor time of what a limit has ended is not in it:
a run that was not judged to its end is an error here. ``--large`` adds a size that takes minutes on a slow machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.rows import Row, environment_of, show

PROGRAM = Path(__file__).parent / "training_program.py"
LIMIT = "3600"
"""Seconds that one judging may take: no figure hangs on it."""
SHORT = 5.0
"""A plain run of fewer seconds is short: what is added to it counts, not the ratio."""
INPUTS = 1000


@dataclass(frozen=True)
class Size:
    """A size of the program, and its name in the table; ``target`` is the ratio for it where it is a long run."""

    what: str
    arguments: tuple[str, ...]
    target: str = "≤ 1.5"


SIZES = (
    Size("10 iterations of 100 steps", ("--iterations", "10")),
    Size("2,000 iterations of 100 steps", ("--iterations", "2000"), "below 1"),
    Size("12 iterations on 240 MB", ("--iterations", "12", "--steps", "300", "--size", "200000")),
)
LARGE = (Size("4 iterations on 800 MB", ("--iterations", "4", "--steps", "1000", "--size", "200000")),)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.verify_rows", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    print(show(_rows((*SIZES, *LARGE) if options.large else SIZES, options.rounds)))


def verify_rows(folders: Sequence[Path], repeat: int) -> Iterator[Row]:
    """The rows of the table; the folders play no part."""
    return _rows(SIZES, max(repeat, 3))


def _rows(sizes: Sequence[Size], rounds: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="verify-rows-") as scratch:
        measured = _Measured({**environment_of(Path(scratch)), "OMP_NUM_THREADS": "1"}, rounds)
        measured.judged(SIZES[0].arguments)  # the kernels are built now, if they never were
        for size in sizes:
            plain, judged = measured.in_turn(size.arguments)
            of = f"{judged:.2f} s against {plain:.2f} s"
            if plain < SHORT:
                yield Row(f"`gradcheck` of {size.what}, added", "1.5 s at most", judged - plain, " s", of)
            else:
                yield Row(f"`gradcheck` of {size.what}, against the plain run", size.target, judged / plain, of=of)
        yield _against_warp(measured)


@dataclass(frozen=True)
class _Measured:
    """Processor seconds of runs of the program."""

    environment: dict[str, str]
    rounds: int

    def in_turn(self, arguments: Sequence[str]) -> tuple[float, float]:
        """The medians of plain and of judged runs, taken in turn."""
        pairs = [(self.plain(arguments), self.judged(arguments)) for _ in range(self.rounds)]
        plain, judged = zip(*pairs, strict=True)
        return statistics.median(plain), statistics.median(judged)

    def plain(self, arguments: Sequence[str]) -> float:
        """One run by itself."""
        before = _spent()
        subprocess.run(_command(arguments), env=self.environment, capture_output=True, check=True)
        return _spent() - before

    def judged(self, arguments: Sequence[str]) -> float:
        """One run under ``gradcheck``; raises where a gradient was left undecided."""
        check = ["-m", "warplint", "gradcheck", "--time-limit", LIMIT, "--format", "json", "--"]
        before = _spent()
        done = subprocess.run(
            [sys.executable, *check, *_command(arguments)], env=self.environment, capture_output=True, text=True
        )
        seconds = _spent() - before
        answer = json.loads(done.stdout)
        statuses = [gradient["status"] for gradient in answer["gradients"]]
        if not statuses or set(statuses) != {"pass"} or any(program["problem"] for program in answer["programs"]):
            raise RuntimeError(f"not judged to its end: {done.stdout}{done.stderr}")
        return seconds


def _against_warp(measured: _Measured) -> Row:
    """One gradient with a thousand inputs: Warp moves each of them, warplint all of them along a few directions.

    What the program takes without any check is taken from both sides.
    """
    function = ("--steps", "1000", "--size", str(INPUTS))
    plain, judged = measured.in_turn(("--iterations", "1", *function))
    by_warp = measured.plain((*function, "--gradcheck")) - plain
    of = f"{judged - plain:.2f} s against {by_warp:.1f} s"
    what = f"`gradcheck` against `wp.autograd.gradcheck`, {INPUTS:,} inputs, times faster"
    return Row(what, "≥ 20", by_warp / (judged - plain), of=of)


def _command(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, str(PROGRAM), *arguments]


def _spent() -> float:
    """Processor seconds of all children that have ended."""
    times = os.times()
    return times.children_user + times.children_system


if __name__ == "__main__":
    main()

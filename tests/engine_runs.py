"""Run a small program under the child and read what it answers."""

import textwrap
from dataclasses import dataclass
from pathlib import Path

from warplint.proof import Repair
from warplint.runner.command import parse
from warplint.runner.process import Limits
from warplint.runner.result import RunResult
from warplint.runner.run import RunOptions, run
from warplint.verify.records import Gradient, GradientStatus, Place, Program

TESTS = Path(__file__).resolve().parent

PRELUDE = f"""\
import sys
sys.path.insert(0, {str(TESTS)!r})
import numpy as np
import warp as wp
from engine_kernels import *
"""


@dataclass(frozen=True)
class Answer:
    """What the child said of one program; lines are those of the source as it was given."""

    result: RunResult
    path: str

    @property
    def gradients(self) -> tuple[Gradient, ...]:
        """In the order in which they were judged."""
        return self.result.of(Gradient)

    @property
    def program(self) -> Program:
        """The last record."""
        assert self.result.program is not None, self.result.output_tail
        return self.result.program

    def of(self, leaf: str) -> list[Gradient]:
        """The judgements of one leaf, group by group."""
        found = sorted((g for g in self.gradients if g.leaf == leaf), key=lambda gradient: gradient.group)
        seen = [(gradient.leaf, gradient.status.value) for gradient in self.gradients]
        assert found, f"{leaf} was not judged, only {seen}\n{self.result.output_tail}"
        return found

    def status(self, leaf: str) -> list[GradientStatus]:
        """The judgements of one leaf in short."""
        return [gradient.status for gradient in self.of(leaf)]

    def lines(self, stack: tuple[Place, ...]) -> list[int]:
        """The lines of the program in a call stack, outermost first."""
        skipped = PRELUDE.count("\n")
        return [line - skipped for path, line, _ in stack if path == self.path]


def judged(source: str, folder: Path, limit: float = 120.0, memory: int | None = None, **options: int) -> Answer:
    """Judge a program: ``source`` follows imports of ``np``, ``wp`` and the shared kernels; ``memory`` in bytes."""
    path = folder / "program.py"
    path.write_text(PRELUDE + textwrap.dedent(source))
    return Answer(run(parse(["python", str(path)]), RunOptions(limits=Limits(limit, memory), **options)), str(path))


def repairing(repairs: tuple[Repair, ...]) -> str:
    """``memory+gradient`` for perfect memory and given gradients."""
    return "+".join(repair.value for repair in repairs)

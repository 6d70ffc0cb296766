"""``python -m tests.mutation``: plant faults into right programs and see what ``warplint --verify`` says of them.

Prints, by kind of fault: how many mutants are wrong (by ``oracle.py``), how many of these were detected (a confirmed
finding, or a gradient called wrong), how many were placed (a confirmed finding names a line that was changed), how many
stayed undecided; and how many right programs were called wrong, which must be none.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .mutators import Mutant, mutants
from .oracle import Truth, truth

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAMS = Path(__file__).parent / "programs"
KERNELS = "mutation_kernels.py"


@dataclass(frozen=True)
class Answer:
    """What warplint said of one program."""

    wrong: bool
    undecided: bool
    placed: bool


@dataclass(frozen=True)
class Case:
    """A mutant (or, with no changed lines, a base program), what is so of it, and what warplint said."""

    mutant: Mutant
    truth: Truth
    answer: Answer
    file: str


def bases() -> tuple[str, ...]:
    """The names of the base programs."""
    return tuple(sorted(path.stem for path in PROGRAMS.glob("*.py") if path.name != KERNELS))


def planted(base: str, most: int, seed: int) -> Iterator[tuple[Mutant, Truth]]:
    """The base program itself, and mutants of it whose truth is known, ``most`` of them drawn by ``seed``."""
    _prepare_warp()
    source = (PROGRAMS / f"{base}.py").read_text(encoding="utf-8")
    yield Mutant(base, "none", source, frozenset()), truth(source)
    drawn = list(mutants(base, source))
    random.Random(f"{seed}{base}").shuffle(drawn)
    for mutant in drawn[:most]:
        told = truth(mutant.text)
        if told in (Truth.RIGHT, Truth.WRONG):
            yield mutant, told


def _prepare_warp() -> None:
    """The kernels are loaded before the oracle forks."""
    import warp as wp

    wp.config.quiet = True
    sys.path.insert(0, str(PROGRAMS))
    import mutation_kernels  # type: ignore[import-not-found]

    wp.load_module(mutation_kernels, device="cpu")


def judged(cases: Sequence[tuple[Mutant, Truth]], folder: Path) -> list[Case]:
    """Verify programs, each in a folder of its own with the kernels: a finding may stand in these."""
    names = [f"{mutant.base}_{number:03}/main.py" for number, (mutant, _) in enumerate(cases)]
    for name, (mutant, _) in zip(names, cases, strict=True):
        (folder / name).parent.mkdir()
        shutil.copy(PROGRAMS / KERNELS, (folder / name).parent)
        (folder / name).write_text(mutant.text, encoding="utf-8")
    words = [sys.executable, "-m", "warplint", "--verify", "--no-cache", "--format", "json", *names]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "rules")))}
    done = subprocess.run(words, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise RuntimeError(done.stderr)
    told = json.loads(done.stdout)
    return [
        Case(mutant, known, _answer(told, name, mutant), name)
        for name, (mutant, known) in zip(names, cases, strict=True)
    ]


def _answer(told: Mapping[str, Any], name: str, mutant: Mutant) -> Answer:
    confirmed = [
        _lines_in(finding, name)
        for finding in told["findings"]
        if (finding["verdict"] or {}).get("status") == "confirmed" and finding["code"] < "NVW3"
    ]
    lines = set[int]().union(*confirmed)
    programs = [program for program in told["programs"] if program["command"].endswith(name)]
    gradients = [gradient["status"] for gradient in told["gradients"] if gradient["program"].endswith(name)]
    undecided = any(program["problem"] for program in programs) or "inconclusive" in gradients
    return Answer(bool(lines) or "fail" in gradients, undecided, bool(lines & mutant.lines))


def _lines_in(finding: Mapping[str, Any], name: str) -> set[int]:
    """The lines of a program that a finding speaks of; kernels lie in a file that all programs share."""
    return {
        line
        for place in (finding, *finding["labels"])
        if place["path"] == name
        for line in range(place["line"], (place.get("end_line") or place["line"]) + 1)
    }


def alarms(cases: Sequence[Case]) -> list[Case]:
    """The right programs that were called wrong."""
    return [case for case in cases if case.truth is Truth.RIGHT and case.answer.wrong]


def table(cases: Sequence[Case]) -> str:
    """The counts by kind, and the mutants that were missed, misplaced or called wrong for nothing."""
    kinds = dict.fromkeys(case.mutant.kind for case in cases)
    lines = [f"{'fault':24} {'wrong':>6} {'detected':>9} {'placed':>7} {'undecided':>10} {'right':>6} {'alarms':>7}"]
    for kind in (*kinds, "all"):
        mine = [case for case in cases if kind in (case.mutant.kind, "all")]
        wrong = [case for case in mine if case.truth is Truth.WRONG]
        right = [case for case in mine if case.truth is Truth.RIGHT]
        detected = [case for case in wrong if case.answer.wrong]
        undecided = [case for case in wrong if not case.answer.wrong and case.answer.undecided]
        lines.append(
            f"{kind:24} {len(wrong):6} {len(detected):9} {sum(case.answer.placed for case in detected):7} "
            f"{len(undecided):10} {len(right):6} {len(alarms(mine)):7}"
        )
    return "\n".join(lines)


def main() -> int:
    """Run a batch; status 1 where a right program was called wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--most", type=int, default=1000, help="mutants of each base program")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--base", action="append", choices=bases(), help="these base programs alone")
    parser.add_argument("--keep", type=Path, help="write the mutants there")
    options = parser.parse_args()
    cases: list[Case] = []
    for base in options.base or bases():
        drawn = list(planted(base, options.most, options.seed))
        with tempfile.TemporaryDirectory() as name:
            folder = options.keep / base if options.keep else Path(name)
            folder.mkdir(parents=True, exist_ok=True)
            cases += judged(drawn, folder)
        print(f"{base}: {len(drawn)} programs", file=sys.stderr, flush=True)
    print(table(cases))
    for case in cases:
        missed = case.truth is Truth.WRONG and not (case.answer.wrong and case.answer.placed)
        if missed or (case.truth is Truth.RIGHT and case.answer.wrong):
            lines = sorted(case.mutant.lines)
            print(f"{case.file}: {case.mutant.kind}, {case.truth.value}, {case.answer}, lines {lines}")
    return 1 if alarms(cases) else 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Runs the programs of ``programs/`` and keeps what each variant measured: ``python -m tests.facts.measure``.

A program prints one line of JSON for each variant: the adjoint's gradient beside central differences, or what a probe
saw. ``measured.json`` holds the verdicts with their figures, and the version of Warp that made them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from .claims import CLAIMS, Claim

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
DATA = HERE / "measured.json"

KERNEL_PROGRAMS = (
    "p03_inplace",
    "p04_muldiv",
    "p04b_while",
    "p04c_oob",
    "p08_components",
    "p09_dynloops",
    "p09b_dynloops2",
    "p10_singular",
    "p12_custom",
    "p22_more",
    "p24_more2",
    "p25_addonto",
    "p26_breaks",
    "p27_replays",
)
TAPE_PROGRAMS = (
    "p01_pingpong",
    "p02_overwrite_copy",
    "p05_requires_grad",
    "p06_duplicate",
    "p07_tape",
    "p13_misc",
    "p28_tracked",
)
PROGRAM_NAMES = KERNEL_PROGRAMS + TAPE_PROGRAMS
OVERWRITES = "[OVW=1]"
"""The suffix of variants of p08_components that were built with ``enable_vector_component_overwrites``."""
TOLERANCE = 2e-2
"""Of one-sided differences in float32, relative to the larger of them (and absolute below one)."""


@dataclass(frozen=True)
class Measured:
    """What one variant gave. ``verdict`` is a value of :class:`Verdict`; the figures are those that speak for it."""

    verdict: str
    adjoint: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    error: str = ""


class Verdict:
    """REAL: the gradient is wrong. RAISES: Warp refuses to build. CHANGED: the backward pass changed an array's values;
    UNCHANGED: it did not, whatever the gradients are.

    SINGULAR: the gradient is not finite. FLAT: it is zero everywhere, and rightly so. KINK: there is no derivative; the
    gradient is finite (and one of the one-sided derivatives, or between them, where those exist). BENIGN: it is right.
    """

    REAL, BENIGN, RAISES, SINGULAR, FLAT, KINK = "real", "benign", "raises", "singular", "flat", "kink"
    CHANGED, UNCHANGED = "changed", "unchanged"


Table = dict[str, dict[str, Measured]]


def measure(programs: Iterable[str] = PROGRAM_NAMES) -> Table:
    """Run the programs, one after the other, and judge each of their variants."""
    table: Table = {}
    for program in programs:
        rows = [*_run(program, {})]
        if program == "p08_components":
            rows += _run(program, {"OVW": "1"})
        judged = {row["case"]: _judged(program, row) for row in rows if not row["case"].startswith("<<")}
        table[program] = {case: found for case, found in judged.items() if found is not None}
    return table


def warp_version() -> str:
    """The version of the Warp that runs."""
    import warp

    return str(warp.config.version)


def load() -> tuple[str, Table]:
    """The kept measurements, and the version of Warp that made them."""
    kept = json.loads(DATA.read_text())
    return kept["warp"], {
        program: {
            case: Measured(
                row["verdict"], tuple(row.get("adjoint", ())), tuple(row.get("differences", ())), row.get("error", "")
            )
            for case, row in rows.items()
        }
        for program, rows in kept["programs"].items()
    }


def store(version: str, table: Table, path: Path = DATA) -> None:
    """Keep measurements."""
    rows = {
        program: {case: {key: value for key, value in asdict(row).items() if value} for case, row in cases.items()}
        for program, cases in table.items()
    }
    path.write_text(json.dumps({"warp": version, "programs": rows}, indent=1) + "\n")


def _run(program: str, environment: Mapping[str, str]) -> Iterator[dict]:
    done = subprocess.run(
        [sys.executable, f"{program}.py"],
        cwd=PROGRAMS,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )
    if done.returncode:
        raise RuntimeError(f"{program} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            yield json.loads(line)


def _judged(program: str, row: Mapping) -> Measured | None:
    """The verdict on one line of output; None where it compares nothing."""
    claim = CLAIMS.get(program, {}).get(row["case"])
    if claim is not None:
        return _claimed(row, claim)
    if row.get("exc"):
        return Measured(Verdict.RAISES, error=row["exc"].partition(":")[0])
    if "fd" in row:
        verdict = Verdict.BENIGN if row["ok"] else Verdict.REAL
        return Measured(verdict, _texts(row["ad"]), _texts(row["fd"]), f"{row['rel']:.1e}")
    if "sides" in row:
        return _at_points(row)
    for before, after in (("counter_fwd", "counter_after_backward"), ("fwd", "after")):
        if before in row:
            verdict = Verdict.UNCHANGED if row[before] == row[after] else Verdict.CHANGED
            return Measured(verdict, (f"{row[after]}",), (f"{row[before]}",))
    if "memory_after_grad" in row:
        beyond = row["memory_after_grad"][len(row["xgrad"]) :]
        verdict = Verdict.REAL if any(beyond) else Verdict.BENIGN
        return Measured(verdict, _texts(row["memory_after_grad"]))
    return None


def _claimed(row: Mapping, claim: Claim) -> Measured:
    """Whether a probe read the gradient that it takes itself to read."""
    read, right = [*map(float, row[claim.field])], [*claim.gradient]
    same = all(math.isclose(one, other, rel_tol=1e-5, abs_tol=1e-9) for one, other in zip(read, right, strict=True))
    return Measured(Verdict.BENIGN if same else Verdict.REAL, _texts(read), _texts(right))


def _texts(numbers: Iterable[float]) -> tuple[str, ...]:
    return tuple(f"{number:.4g}" for number in numbers)


def _at_points(row: Mapping) -> Measured:
    """The verdict of p10_singular's variants, which are differentiated at the points where they may be singular."""
    gradient = [float(each) for each in row["grad"]]
    (left, right), (nearer_left, nearer_right) = (
        [[float(each) for each in side] for side in pair] for pair in row["sides"]
    )
    points = list(zip(gradient, left, right, nearer_left, nearer_right, strict=True))
    slopes = [float(each) for each in row["slopes"]]
    if not all(map(math.isfinite, gradient)):
        verdict = Verdict.SINGULAR
    elif not all(_agrees(*point) for point in points):
        verdict = Verdict.REAL
    elif not any(gradient) and not any(slopes):
        verdict = Verdict.FLAT
    else:
        kinked = any(_is_kink(*sides) for _, *sides in points)
        verdict = Verdict.KINK if kinked else Verdict.BENIGN
    between = tuple(f"{a:.3g}..{b:.3g}" for _, _, _, a, b in points)
    return Measured(verdict, _texts(gradient), between)


def _agrees(gradient: float, left: float, right: float, nearer_left: float, nearer_right: float) -> bool:
    """Whether a finite gradient is a derivative from one side or between them; true where there is no derivative."""
    if _diverges(left, nearer_left) or _diverges(right, nearer_right):
        return True
    slack = TOLERANCE * max(1.0, abs(nearer_left), abs(nearer_right))
    low, high = sorted((nearer_left, nearer_right))
    return low - slack <= gradient <= high + slack


def _is_kink(left: float, right: float, nearer_left: float, nearer_right: float) -> bool:
    """Whether there is no derivative."""
    apart = abs(nearer_left - nearer_right) > TOLERANCE * max(1.0, abs(nearer_left), abs(nearer_right))
    return apart or _diverges(left, nearer_left) or _diverges(right, nearer_right)


def _diverges(far: float, near: float) -> bool:
    return not (math.isfinite(far) and math.isfinite(near)) or abs(near) > 1.5 * abs(far) + TOLERANCE


def main() -> None:
    """Measure all, or the programs that are named, and keep it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", help="which programs; the others keep what they have")
    chosen = parser.parse_args().programs
    kept = load()[1] if chosen and DATA.exists() else {}
    store(warp_version(), {**kept, **measure(chosen or PROGRAM_NAMES)})


if __name__ == "__main__":
    main()

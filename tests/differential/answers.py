"""What warplint says of kernels: each one in a program of its own that launches it on a tape."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.differential.cases import Case, program
from warplint.config import Settings
from warplint.finding import Finding, Severity
from warplint.lint import lint

ADJOINT_CODES = frozenset(
    [f"NVW{number}" for number in (*range(101, 110), 201, 202, 203, 207, 208, 209, 211, 212, 213)]
)
"""The rules that say: this gradient is wrong. (NVW204 to NVW206 speak of single points, and of zero gradients.)"""


class Verdict(enum.Enum):
    """What warplint says of a gradient."""

    RIGHT = "right"
    UNDECIDED = "undecided"
    """Information only: the data decide."""
    WRONG = "wrong"


@dataclass(frozen=True)
class Answer:
    """``codes``: of the findings that decided."""

    verdict: Verdict
    codes: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()


def answers(cases: Sequence[Case], folder: Path) -> list[Answer]:
    """One answer a case; the programs are written to ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"case_{number}.py" for number in range(len(cases))]
    for file, case in zip(files, cases, strict=True):
        file.write_text(program(case))
    found: Mapping[str, list[Finding]] = {file.name: [] for file in files}
    for finding in lint([str(file) for file in files], Settings(folder)).findings:
        found[Path(finding.span.path).name].append(finding)
    return [_answer(found[file.name]) for file in files]


def _answer(findings: Sequence[Finding]) -> Answer:
    broken = [each.message for each in findings if each.code.startswith("NVW9")]
    if broken:
        raise RuntimeError(broken[0])
    adjoint = [each for each in findings if each.code in ADJOINT_CODES]
    for severity, verdict in ((Severity.WARNING, Verdict.WRONG), (Severity.INFO, Verdict.UNDECIDED)):
        deciding = [each for each in adjoint if each.severity is severity]
        if deciding:
            codes = tuple(sorted({each.code for each in deciding}))
            return Answer(
                verdict, codes, tuple(f"{each.code} line {each.span.line}: {each.message}" for each in deciding)
            )
    return Answer(Verdict.RIGHT)

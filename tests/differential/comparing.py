"""Answers against measurements: the confusion matrix, and the cases in which they disagree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.differential.answers import Answer, Verdict, answers
from tests.differential.cases import Case
from tests.differential.measuring import Measured, measured


@dataclass(frozen=True)
class Compared:
    """One case with both views of it."""

    case: Case
    answer: Answer
    measured: Measured

    @property
    def disagrees(self) -> bool:
        """Whether warplint is decided, and Warp's gradient is otherwise."""
        decided = self.answer.verdict is not Verdict.UNDECIDED
        return decided and self.measured.outcome in ("right", "wrong") and self.differs

    @property
    def differs(self) -> bool:
        return self.answer.verdict.value != self.measured.outcome

    @property
    def cell(self) -> tuple[Verdict, str]:
        """Its place in the matrix."""
        return self.answer.verdict, self.measured.outcome


@dataclass(frozen=True)
class Matrix:
    """How many cases had which answer and which measurement."""

    cells: Counter[tuple[Verdict, str]]

    def called(self, verdict: Verdict) -> int:
        """The measured cases with this answer."""
        return self.cells[verdict, "right"] + self.cells[verdict, "wrong"]

    @property
    def false_wrong(self) -> float:
        """The share of right gradients among those that warplint calls wrong."""
        return self.cells[Verdict.WRONG, "right"] / max(1, self.called(Verdict.WRONG))

    @property
    def false_right(self) -> float:
        """The share of wrong gradients among those that warplint calls right."""
        return self.cells[Verdict.RIGHT, "wrong"] / max(1, self.called(Verdict.RIGHT))

    @property
    def undecided(self) -> float:
        """The share of the measured gradients that warplint leaves to the data."""
        return self.called(Verdict.UNDECIDED) / max(1, sum(map(self.called, Verdict)))

    @property
    def wrong(self) -> float:
        """The share of wrong gradients among all that were measured."""
        return sum(self.cells[verdict, "wrong"] for verdict in Verdict) / max(1, sum(map(self.called, Verdict)))

    def text(self) -> str:
        """The matrix, one row an answer."""
        rows = [f"{'warplint says':14}{'is right':>10}{'is wrong':>10}"]
        rows += [
            f"{verdict.value:14}{self.cells[verdict, 'right']:10}{self.cells[verdict, 'wrong']:10}"
            for verdict in Verdict
        ]
        other = Counter({outcome: count for (_, outcome), count in self.cells.items() if outcome not in _DECIDED})
        rows.append(", ".join(f"{count} {outcome}" for outcome, count in sorted(other.items())) or "all measured")
        rows.append(
            f'false "wrong" {self.false_wrong:.2%}, false "right" {self.false_right:.2%}, '
            f"{self.undecided:.1%} undecided, {self.wrong:.0%} of the gradients are wrong"
        )
        return "\n".join(rows)


_DECIDED = ("right", "wrong")


def compared(cases: Sequence[Case], folder: Path, cache: str | None = None) -> list[Compared]:
    """Judge and measure cases."""
    return joined(cases, answers(cases, folder / "programs"), measured(cases, folder, cache))


def joined(cases: Sequence[Case], said: Sequence[Answer], found: Sequence[Measured]) -> list[Compared]:
    """Cases with both views of them."""
    return [Compared(case, answer, what) for case, answer, what in zip(cases, said, found, strict=True)]


def matrix(results: Sequence[Compared]) -> Matrix:
    """The confusion matrix."""
    return Matrix(Counter(result.cell for result in results))


def codes(results: Sequence[Compared]) -> Counter[str]:
    """How often each rule was among those that called a gradient wrong that is wrong."""
    hits = [result for result in results if result.cell == (Verdict.WRONG, "wrong")]
    return Counter(code for result in hits for code in result.answer.codes)

"""The analysis against measured adjoints of random kernels: a small sample always, a large one on demand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.differential.comparing import Matrix

pytest.importorskip("warp")
pytestmark = pytest.mark.warp

FALSE_WRONG, FALSE_RIGHT = 0.01, 0.02
"""The shares that may be: of right gradients among those called wrong, of wrong ones among those called right."""
UNDECIDED = 0.06
"""The share that may be left to the data."""


def judged(seed: int, count: int, folder: Path, cache: Path | None = None) -> tuple[Matrix, str]:
    """The confusion matrix, and as text with the cases that disagree.

    ``cache``: for Warp's kernels; None: the user's own, where the sample's module stays.
    """
    from tests.differential.comparing import compared, matrix
    from tests.differential.generate import cases

    results = compared(cases(seed, count), folder, str(cache) if cache is not None else None)
    found = matrix(results)
    told = [f"{each.answer.verdict.value}, {each.measured}\n{each.case.text('')}" for each in results if each.disagrees]
    return found, "\n".join([found.text(), *told])


def assert_agreement(found: Matrix, text: str) -> None:
    assert 0.2 < found.wrong < 0.5, text
    assert found.false_wrong < FALSE_WRONG, text
    assert found.false_right < FALSE_RIGHT, text


def test_a_sample(tmp_path: Path) -> None:
    assert_agreement(*judged(7, 60, tmp_path))


@pytest.mark.slow
def test_two_thousand(tmp_path: Path) -> None:
    found, text = judged(64007, 2000, tmp_path, tmp_path / "cache")
    assert_agreement(found, text)
    assert found.undecided < UNDECIDED, text

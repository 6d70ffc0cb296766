"""The analysis against measured adjoints of random kernels: a small sample always, a large one on demand."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("warp")
pytestmark = pytest.mark.warp

FALSE_WRONG, FALSE_RIGHT = 0.01, 0.02
"""The shares that may be: of right gradients among those called wrong, of wrong ones among those called right."""


def disagreements(seed: int, count: int, folder: Path, cache: Path | None = None) -> tuple[float, float, float, str]:
    """The shares of false answers, the share of wrong gradients, and the matrix with the cases as text.

    ``cache``: for Warp's kernels; None: the user's own, where the sample's module stays.
    """
    from tests.differential.comparing import compared, matrix
    from tests.differential.generate import cases

    results = compared(cases(seed, count), folder, str(cache) if cache is not None else None)
    found = matrix(results)
    told = [f"{each.answer.verdict.value}, {each.measured}\n{each.case.text('')}" for each in results if each.disagrees]
    return found.false_wrong, found.false_right, found.wrong, "\n".join([found.text(), *told])


def test_a_sample(tmp_path: Path) -> None:
    false_wrong, false_right, wrong, text = disagreements(7, 60, tmp_path)
    assert 0.2 < wrong < 0.5, text
    assert false_wrong < FALSE_WRONG, text
    assert false_right < FALSE_RIGHT, text


@pytest.mark.slow
def test_two_thousand(tmp_path: Path) -> None:
    false_wrong, false_right, wrong, text = disagreements(1, 2000, tmp_path, tmp_path / "cache")
    assert 0.2 < wrong < 0.5, text
    assert false_wrong < FALSE_WRONG, text
    assert false_right < FALSE_RIGHT, text

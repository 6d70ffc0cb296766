"""Sensitivity: faults planted at random places of right programs are found, placed, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutation.__main__ import Case, alarms, bases, judged, planted, table
from mutation.oracle import Truth

pytestmark = pytest.mark.warp


def verdicts(folder: Path, base: str, most: int) -> list[Case]:
    return judged(list(planted(base, most, seed=0)), folder)


def test_planted_faults_are_found(tmp_path) -> None:
    cases = verdicts(tmp_path, "heat_rod", 6)
    print(table(cases))
    wrong = [case for case in cases if case.truth is Truth.WRONG]
    assert wrong
    assert all(case.answer.wrong for case in wrong)
    assert not alarms(cases)


@pytest.mark.slow
def test_every_kind_of_fault_in_every_program(tmp_path) -> None:
    cases: list[Case] = []
    for base in bases():
        (tmp_path / base).mkdir()
        cases += verdicts(tmp_path / base, base, 1000)
    print(table(cases))
    wrong = [case for case in cases if case.truth is Truth.WRONG]
    found = [case for case in wrong if case.answer.wrong]
    assert len(cases) >= 300
    assert not alarms(cases)
    assert len(found) >= 0.95 * len(wrong)
    assert sum(case.answer.placed for case in found) >= 0.85 * len(found)

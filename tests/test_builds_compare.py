"""Two measurements: another workload is refused, times count beyond their noise, the structure counts as it is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from build_runs import WORK, content, load, measurement

from warplint import cli
from warplint.builds import document
from warplint.builds.compared import Outcome, compare
from warplint.builds.measure import Measurement
from warplint.verify.records import LaunchKind, Workload

QUIET = ((10.0, 2.0), (10.1, 2.0), (9.9, 2.0))
TWICE = (load(), load(content("k", 4, "k2"), at=3.0))


@pytest.fixture
def outcome(tmp_path: Path):
    """The outcome and the reason for two measurements, by way of their files."""

    def judge(before: Measurement, after: Measurement) -> tuple[Outcome, str]:
        found = compare(*(written(tmp_path / name, each) for name, each in (("a", before), ("b", after))))
        return found.verdict, found.reason

    return judge


def written(path: Path, measured: Measurement) -> document.Recorded:
    path.write_text(json.dumps(document.as_json(measured)))
    return document.read(str(path))


def test_fewer_builds_are_an_improvement_whatever_the_clock_says(outcome) -> None:
    one, two = measurement((10.0, 2.0)), measurement((10.0, 2.0), records=TWICE)
    verdict, reason = outcome(two, one)
    assert verdict is Outcome.IMPROVEMENT
    assert reason == "builds in a fresh cache and bytes of generated source went down, and nothing went up"
    assert outcome(one, two)[0] is Outcome.REGRESSION


def test_times_count_when_they_leave_the_noise(outcome) -> None:
    base = measurement(*QUIET)
    assert outcome(base, measurement((10.15, 2.0), (10.2, 2.0), (10.1, 2.0)))[0] is Outcome.INCONCLUSIVE, "2 MAD = 0.2"
    verdict, reason = outcome(base, measurement((9.0, 2.0), (9.0, 2.0), (9.0, 2.0)))
    assert verdict is Outcome.IMPROVEMENT
    assert reason.endswith("the builds are as many and as large as before: was the machine as busy?")
    assert outcome(base, measurement((10.0, 2.1), (10.0, 2.1), (10.0, 2.1)))[0] is Outcome.REGRESSION, (
        "warm, 1 % = 0.02"
    )


def test_a_single_sample_has_no_noise_to_compare_with(outcome) -> None:
    verdict, reason = outcome(measurement((10.0, 2.0)), measurement((5.0, 1.0)))
    assert (verdict, reason) == (Outcome.INCONCLUSIVE, "the builds are the same, and no time leaves its noise")


def test_what_speaks_for_and_against_is_inconclusive(outcome) -> None:
    slower = measurement((12.0, 2.0), (12.0, 2.0), (12.0, 2.0))
    verdict, reason = outcome(measurement(*QUIET, records=TWICE), slower)
    assert verdict is Outcome.INCONCLUSIVE
    assert reason.endswith("went down, but cold wall went up")


KIND = LaunchKind("k", (8,), ("float32[1]",), "cpu", 1)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (replace(KIND, dim=(9,)), "launch 1 is k[9] (float32[1]) on cpu, block size 1, was k[8]"),
        (replace(KIND, arrays=("float64[1]",)), "launch 1 is k[8] (float64[1])"),
        (replace(KIND, device="cuda:0"), "on cuda:0"),
        (replace(KIND, block_dim=64), "block size 64"),
        (replace(KIND, adjoint=True), "launch 1 is adjoint of k[8]"),
        (replace(KIND, kernel="other"), "launch 1 is other[8]"),
    ],
)
def test_another_workload_is_refused(outcome, changed: LaunchKind, told: str) -> None:
    verdict, reason = outcome(measurement(*QUIET), measurement(*QUIET, workload=replace(WORK, kinds=(changed,))))
    assert verdict is Outcome.REFUSED
    assert reason.startswith("the work is not the same: ")
    assert told in reason


def test_order_and_number_of_launches_belong_to_the_work(outcome) -> None:
    other = replace(KIND, kernel="other")
    forth = Workload((KIND, other), (2, 1), "d2", (0, 0, 1), True)
    back = replace(forth, digest="d3", first=(0, 1, 0))
    assert "launch 2 is other[8]" in outcome(measurement(*QUIET, workload=forth), measurement(*QUIET, workload=back))[1]
    more = replace(WORK, counts=(2,), digest="d4", first=(0, 0))
    assert "2 launches, were 1" in outcome(measurement(*QUIET), measurement(*QUIET, workload=more))[1]


def test_launches_that_are_not_all_known_compare_nothing(outcome) -> None:
    cut = measurement(*QUIET, workload=replace(WORK, complete=False))
    verdict, reason = outcome(measurement(*QUIET), cut)
    assert verdict is Outcome.REFUSED
    assert "not all launches of the second measurement are known" in reason


def test_a_program_that_does_something_else_each_time_compares_nothing(outcome) -> None:
    one, two = measurement(*QUIET[:1]), measurement(*QUIET[:1], workload=replace(WORK, digest="d2", counts=(3,)))
    changing = replace(one, samples=(*one.samples, *two.samples))
    verdict, reason = outcome(changing, measurement(*QUIET))
    assert verdict is Outcome.REFUSED
    assert "differ from run to run (3 launches, were 1)" in reason


def test_exit_statuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = str(tmp_path / "one.json"), str(tmp_path / "two.json")
    written(Path(one), measurement((10.0, 2.0)))
    written(Path(two), measurement((10.0, 2.0), records=TWICE))
    assert cli.main(["builds", "compare", two, one]) == 0
    assert capsys.readouterr().out.startswith("improvement: ")
    assert cli.main(["builds", "compare", one, two]) == 1
    assert cli.main(["builds", "compare", one, one]) == 3
    written(Path(two), measurement((10.0, 2.0), workload=replace(WORK, kinds=(replace(KIND, dim=(9,)),))))
    assert cli.main(["builds", "compare", one, two]) == 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("no json", "is no JSON"),
        ("[]", "is no measurement"),
        ('{"kind": "builds", "schema": 99}', "has schema 99"),
        ('{"kind": "builds", "schema": 1, "samples": [], "problem": "the cold run failed"}', "the cold run failed"),
        ('{"kind": "builds", "schema": 1, "samples": [{}]}', "is incomplete"),
    ],
)
def test_files_that_hold_no_measurement(tmp_path: Path, capsys, text: str, told: str) -> None:
    (tmp_path / "a.json").write_text(text)
    assert cli.main(["builds", "compare", str(tmp_path / "a.json"), str(tmp_path / "a.json")]) == 2
    assert told in capsys.readouterr().err

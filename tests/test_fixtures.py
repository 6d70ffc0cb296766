"""The fixture programs say on their own lines what must be found; the real command line finds that and nothing else.

``# expect: NVW101 confirmed`` (several separated by ``;``): a finding of that code stands on this line, and
``--verify`` gives it that verdict. ``# expect-info: NVW120``: the same, hidden without ``--severity info`` and never
confirmed. ``# expect-run: NVW210 confirmed``: the finding is there with ``--verify`` only. Information that no line
expects is not asserted; every other unexpected finding is a failure.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "fixtures"
EXPECT = re.compile(r"#\s*expect(?P<kind>-info|-run)?:\s*(?P<what>[^#]+)")

VERIFIED_ALWAYS = {
    "mutated-arguments/bad_step_size_in_struct.py",
    "mutated-arguments/good_number_not_needed.py",
    "alias-overwrite/bad_pointer_scratch.py",
    "unseeded-backward/bad_seed_for_another_array.py",
    "retained-grad/bad_cleared_by_kernel.py",
    "write-before-backward/good_loss_cleared.py",
    "severed-copy/good_copied_back.py",
    "ping-pong/bad_parity_index.py",
    "ping-pong/good_linear_diffusion.py",
    "missing-requires-grad/bad_buffer_module",
    "missing-requires-grad/good_diagnostics_beside.py",
    "duplicate-launch/bad_evaluated_for_logging.py",
    "duplicate-launch/good_sweeps_between.py",
    "tape-per-step/bad_truncated_windows.py",
    "tape-per-step/good_reverse_order.py",
    "inplace-mul/bad_softmax_normaliser.py",
    "inplace-mul/good_fixed_mask.py",
    "component-reassign/bad_provisional_value.py",
    "component-reassign/good_overwrites_enabled.py",
    "dynamic-loop/bad_sum_then_root.py",
    "dynamic-loop/good_sums.py",
    "where-nan/bad_empty_cell.py",
    "nonsmooth-point/bad_fitted_already.py",
    "piecewise-constant/bad_encoder_ticks.py",
    "piecewise-constant/good_cell_and_weight.py",
    "func-grad-incomplete/bad_stiffness_forgotten.py",
    "func-grad-incomplete/good_every_argument.py",
    "nonsmooth-point/good_guarded_length.py",
    "func-grad-assign/good_single_use.py",
    "late-config/bad_unroll_from_command_line.py",
    "late-config/good_before_first_launch.py",
    "late-module-options/bad_beside_unique_kernel.py",
    "late-module-options/good_tried_and_put_back.py",
    "kernel-in-loop/bad_plugin_imported_late",
    "kernel-in-loop/good_all_made_first.py",
    "cache-defeated/bad_salted_material.py",
    "load-everything/bad_before_the_loop.py",
    "unique-stable-kernel/bad_class_body.py",
    "unique-stable-kernel/good_only_kernel.py",
}


@dataclass(frozen=True)
class Expectation:
    """A finding that a comment announces: ``verdict`` is empty for information."""

    file: pathlib.Path
    line: int
    code: str
    verdict: str

    @property
    def place(self) -> tuple[pathlib.Path, int, str]:
        return self.file, self.line, self.code


@dataclass(frozen=True)
class Program:
    """A fixture: one script, or the folder of a program of several files."""

    path: pathlib.Path

    @property
    def name(self) -> str:
        return self.path.relative_to(FIXTURES).as_posix()

    @property
    def is_bad(self) -> bool:
        return self.path.name.startswith("bad_")

    @property
    def entry(self) -> pathlib.Path:
        return self.path / "main.py" if self.path.is_dir() else self.path

    @property
    def files(self) -> list[pathlib.Path]:
        return sorted(self.path.rglob("*.py")) if self.path.is_dir() else [self.path]

    def expectations(self, *kinds: str) -> list[Expectation]:
        """Those of the comments ``expect``, ``expect-info``, ``expect-run`` that are asked for, by their endings."""
        found = []
        for file in self.files:
            for number, line in enumerate(file.read_text().splitlines(), 1):
                match = EXPECT.search(line)
                if match and (match["kind"] or "") in kinds:
                    for one in match["what"].split(";"):
                        code, _, verdict = one.strip().partition(" ")
                        found.append(Expectation(file, number, code, verdict))
        return found


def _programs() -> list[Program]:
    return [Program(path) for path in sorted(FIXTURES.glob("*/*")) if path.name.startswith(("bad_", "good_"))]


PROGRAMS = _programs()


def _warplint(*arguments: str) -> tuple[int, dict]:
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(ROOT), str(ROOT / "rules")]), OMP_NUM_THREADS="1")
    done = subprocess.run(
        [sys.executable, "-m", "warplint", "check", "--format", "json", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)


def _place(finding: dict) -> tuple[pathlib.Path, int, str]:
    return (ROOT / finding["path"]).resolve(), finding["line"], finding["code"]


@pytest.fixture(scope="module")
def linted() -> list[dict]:
    """All findings in all fixtures, information included."""
    return _warplint("--severity", "info", str(FIXTURES))[1]["findings"]


def test_every_rule_has_bad_and_good_programs():
    for rule in sorted(path for path in FIXTURES.iterdir() if path.is_dir()):
        kinds = [p.is_bad for p in PROGRAMS if p.path.parent == rule]
        assert kinds.count(True) >= 3, rule.name
        assert kinds.count(False) >= 3, rule.name


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_bad_programs_expect_something_and_good_ones_nothing(program: Program):
    assert bool(program.expectations("", "-run")) == program.is_bad


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_static_findings_are_those_expected(program: Program, linted: list[dict]):
    mine = [finding for finding in linted if _place(finding)[0] in program.files]
    claims = sorted(_place(finding) for finding in mine if finding["severity"] != "info")
    assert claims == sorted(e.place for e in program.expectations(""))
    hints = {_place(finding) for finding in mine if finding["severity"] == "info"}
    assert hints >= {e.place for e in program.expectations("-info")}


@pytest.mark.warp
@pytest.mark.parametrize(
    "program",
    [pytest.param(p, id=p.name, marks=() if p.name in VERIFIED_ALWAYS else pytest.mark.slow) for p in PROGRAMS],
)
def test_verdicts_are_those_expected(program: Program):
    code, report = _warplint("--verify", str(program.path))
    judged = sorted(
        (*_place(finding), finding["verdict"] and finding["verdict"]["status"]) for finding in report["findings"]
    )
    assert judged == sorted((*e.place, e.verdict) for e in program.expectations("", "-run"))
    assert code == (1 if program.is_bad else 0)
    for finding in report["findings"]:
        assert finding["severity"] == "error"
        assert finding["verdict"]["figures"]
    if not program.is_bad:
        assert not [gradient for gradient in report["gradients"] if gradient["status"] == "fail"]


def test_representatives_exist():
    assert {p.name for p in PROGRAMS} >= VERIFIED_ALWAYS


MEASURED = json.loads((FIXTURES / "measured.json").read_text())


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_measured_truth_agrees_with_the_name(program: Program):
    """The differences and counts of measure_fixtures.py, which knows nothing of warplint."""
    _assert_truth(program, MEASURED[program.entry.relative_to(FIXTURES).as_posix()])


@pytest.mark.warp
@pytest.mark.slow
def test_measured_truth_can_be_derived_again(tmp_path: pathlib.Path):
    output = tmp_path / "measured.json"
    subprocess.run(
        [sys.executable, str(ROOT / "tests" / "measure_fixtures.py"), "--output", str(output)], check=True, cwd=ROOT
    )
    measured = json.loads(output.read_text())
    for program in PROGRAMS:
        _assert_truth(program, measured[program.entry.relative_to(FIXTURES).as_posix()])


def test_every_measurement_is_of_a_program():
    assert set(MEASURED) == {program.entry.relative_to(FIXTURES).as_posix() for program in PROGRAMS}


def _assert_truth(program: Program, figures: dict) -> None:
    if "relative_error" in figures:
        assert figures["spread"] < 0.05
        if program.is_bad:
            assert figures["relative_error"] > 0.05
        else:
            assert figures["relative_error"] < 1e-3
    elif figures["repaired_cold"] is not None:
        assert program.is_bad
        told = ("cold", "warm", "source_bytes", "header_passes")
        assert any(figures[figure] > figures[f"repaired_{figure}"] for figure in told)
    else:
        assert bool(figures["ignored"]) == program.is_bad
        assert figures["warm"] == 0

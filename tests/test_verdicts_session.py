"""From files and findings to the report's data, with a child whose answers are given: the parent's side whole."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from fake_engine import ANSWERS, engine
from test_verdicts_judging import TEXT, gradient, overwritten, ping_pong, trace

from warplint.config import Settings, VerifySettings
from warplint.discovery import discover
from warplint.finding import Severity, Status
from warplint.proof import Repair
from warplint.report.model import GradientCheck
from warplint.verify.records import GradientStatus, Note, Program, Signature, SignatureKind, to_json
from warplint.verify.session import gradcheck, verify


@pytest.fixture
def answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Verify TEXT with a child that answers with the given records."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys.modules["warplint.runner.run"], "PACKAGE", engine(tmp_path, ANSWERS))
    monkeypatch.setenv("ANSWERS", str(tmp_path / "answers.jsonl"))
    (tmp_path / "prog.py").write_text(TEXT)
    said: list[str] = []

    def run(*records: object, findings=(), **verify_settings):
        (tmp_path / "answers.jsonl").write_text("".join(to_json(record) + "\n" for record in records))
        settings = Settings(root=tmp_path, verify=VerifySettings(python=sys.executable, **verify_settings))
        found = discover(["prog.py"], settings)
        result = verify(findings, found, settings, lambda text, seconds=0.0: said.append(text))
        assert said[-1] == "", "the progress line is ended"
        return result, list(dict.fromkeys(said))[:-1]

    run.path = str(tmp_path / "prog.py")  # type: ignore[attr-defined]
    return run


def ran(stopped: str = "horizon", backward: int = 1, reason: str = "", seen: str = "") -> Program:
    return Program("", 1.0, backward, 2, 2, "1.19.0", stopped, reason, seen)


def test_a_confirmed_finding_with_its_gradient_and_program(answered):
    path = answered.path
    failed = gradient(path, GradientStatus.FAIL, repaired_by=(Repair.MEMORY,), culprits=(overwritten(path),))
    result, said = answered(*trace(path), failed, ran(), findings=[ping_pong(path)])
    assert said == ["running python prog.py"]
    (finding,) = [each for each in result.findings if each.code == "NVW101"]
    assert finding.verdict is not None
    assert (finding.verdict.status, finding.severity) == (Status.CONFIRMED, Severity.ERROR)
    told = ("fail", 2.0, 1.0, 0.5, "too much noise", "python prog.py")
    check = GradientCheck("a", "prog.py", 8, *told, backward=1, backward_path="prog.py", backward_line=13)
    assert result.gradients == (check,)
    (program,) = result.programs
    assert (program.command, program.backward_calls, program.warp, program.problem) == (
        "python prog.py",
        1,
        "1.19.0",
        "",
    )
    assert result.judged


def test_places_in_reasons_and_signatures_are_shown_as_those_of_findings_are(answered):
    path = answered.path
    signature = Signature(SignatureKind.NOT_FINITE, f"inf, first made by the adjoint of `lin` ({path}:9)", at=())
    failed = replace(gradient(path, GradientStatus.FAIL), signature=signature, reason=f"no snapshot at {path}:11")
    result, _ = answered(*trace(path), failed, ran(), Note("hint", f"see /elsewhere/lib.py:3 and {path}:4"))
    (check,) = result.gradients
    assert check.signature is not None
    assert (check.signature.text, check.reason) == (
        "inf, first made by the adjoint of `lin` (prog.py:9)",
        "no snapshot at prog.py:11",
    )
    assert result.programs[0].notes == ("see /elsewhere/lib.py:3 and prog.py:4",)


def test_a_problem_of_the_program_is_told_and_the_findings_are_not_reached(answered):
    path = answered.path
    finding = replace(ping_pong(path, 40), anchor=ping_pong(path).anchor)
    result, _ = answered(ran("raised", 0, "ModuleNotFoundError: No module named 'nothing'"), findings=[finding])
    assert result.programs[0].problem == "raised: ModuleNotFoundError: No module named 'nothing'"
    assert not result.judged
    (judged,) = result.findings
    assert judged.verdict is not None
    assert judged.verdict.status is Status.NOT_REACHED


def test_a_wrong_gradient_is_explained_by_a_confirmed_finding_alone(answered):
    path = answered.path
    failed = gradient(path, GradientStatus.FAIL)
    result, _ = answered(*trace(path), failed, ran())
    assert [check.leaf for check in result.unexplained] == ["a"]
    convicted = gradient(path, GradientStatus.FAIL, repaired_by=(Repair.MEMORY,), culprits=(overwritten(path),))
    result, _ = answered(*trace(path), convicted, ran(), findings=[ping_pong(path)])
    assert result.unexplained == ()


def test_gradients_of_one_leaf_are_told_apart_by_their_backward_calls(answered):
    path = answered.path
    first, second = gradient(path, GradientStatus.PASS), gradient(path, GradientStatus.PASS, group=1)
    other = gradient(path, GradientStatus.PASS, leaf="b", allocated=((path, 9, "<module>"),))
    result, _ = answered(*trace(path), first, second, other, ran())
    assert [(check.leaf, check.backward, check.backward_line, check.repeated) for check in result.gradients] == [
        ("a", 1, 13, True), ("a", 2, 13, True), ("b", 1, 13, False),
    ]  # fmt: skip


def test_a_program_is_judged_when_one_of_its_gradients_is(answered):
    path = answered.path
    unclear, right = gradient(path, GradientStatus.INCONCLUSIVE), gradient(path, GradientStatus.PASS)
    result, _ = answered(*trace(path), unclear, ran())
    assert result.programs[0].problem == "its gradient could not be judged: too much noise"
    assert not result.judged
    assert answered(*trace(path), unclear, right, ran())[0].judged
    result, _ = answered(*trace(path), ran(reason="the time limit ended the judging"))
    assert result.programs[0].problem == "no gradient was judged: the time limit ended the judging"
    assert answered(*trace(path), right, ran(reason="the time limit ended the judging"))[0].judged


def test_what_lies_behind_the_part_that_was_run_is_not_reached_in_it(answered):
    path = answered.path
    finding = replace(ping_pong(path, 40), anchor=ping_pong(path).anchor)
    result, _ = answered(ran(seen="2 iterations"), findings=[finding])
    assert result.programs[0].stopped == "after 2 iterations"
    (judged,) = result.findings
    assert judged.verdict is not None
    assert judged.verdict.reason.startswith("not reached in the part that was run (stopped after 2 iterations")
    result, _ = answered(ran("end"), findings=[finding])
    assert result.programs[0].stopped == ""
    assert result.findings[0].verdict.reason == "the program did not come here"


def test_a_program_without_backward_is_fine_and_says_so(answered):
    note = Note("device", "every request for a device was redirected to cpu")
    result, _ = answered(note, ran("end", 0), device="cpu")
    assert result.judged
    assert result.programs[0].notes == (note.text, "no tape ran backward: there is no gradient to check")
    assert result.programs[0].device == "cpu"


def test_an_interpreter_without_warp_is_one_error_however_many_programs(answered):
    result, _ = answered(Note("no-warp", "it has no warp"), run=("python prog.py", "python prog.py 2"))
    (error,) = result.errors
    assert error.startswith(f"{sys.executable} cannot verify this program: it has no warp (")
    assert not result.programs


def test_commands_that_cannot_be_run_are_errors_and_the_others_run(answered):
    result, said = answered(ran(), run=("python prog.py", "prog | tee"))
    assert len(result.programs) == 1
    assert len(result.errors) == 1
    assert said == ["running python prog.py"]
    result, _ = answered(ran(), run=("python a.py", "python b.py"))
    assert [program.command for program in result.programs] == ["python a.py", "python b.py"]


def test_a_named_file_that_was_not_run_is_said(answered):
    path = answered.path
    finding = replace(ping_pong(path, 40), anchor=ping_pong(path).anchor)
    result, _ = answered(ran("end"), run=("python other.py",), findings=[finding])
    assert result.notes == ("prog.py was not run: the configured commands were run instead",)
    assert result.findings[0].verdict.reason == "no configured command came here"
    assert answered(ran("end"), run=("python prog.py 2",))[0].notes == ()


def test_gradcheck_runs_one_command_and_keeps_what_is_confirmed(answered, tmp_path):
    path = answered.path
    answered(*trace(path), gradient(path, GradientStatus.PASS), ran())
    settings = Settings(root=tmp_path, verify=VerifySettings(python=sys.executable))
    result = gradcheck(["python", "prog.py", "--steps", "3"], settings, lambda text, seconds=0.0: None)
    assert result.findings == ()
    assert [(check.leaf, check.status) for check in result.gradients] == [("a", "pass")]
    assert result.programs[0].command == "python prog.py --steps 3"
    missing = Settings(root=tmp_path, verify=VerifySettings(python="/no/python"))
    assert gradcheck(["prog.py"], missing, lambda text, seconds=0.0: None).errors == (
        "there is no Python interpreter /no/python",
    )
    assert gradcheck([], settings, lambda text, seconds=0.0: None).errors == ("the command is empty",)

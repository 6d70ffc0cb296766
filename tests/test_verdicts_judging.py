"""Findings against measurements: what convicts, what acquits, what cannot tell. Records are made by hand here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from warplint.finding import Anchor, Finding, Label, Role, Severity, Source, Span, Status
from warplint.project import Project
from warplint.proof import Experiment, Repair
from warplint.runner.process import Exit
from warplint.runner.protocol import Purpose
from warplint.runner.result import RunResult
from warplint.verify.evidence import Evidence
from warplint.verify.records import (
    BackwardSeen,
    Bound,
    ConfigSeen,
    Culprit,
    Gradient,
    GradientStatus,
    KernelCheck,
    KernelSeen,
    LaunchSeen,
    MemorySeen,
    ModuleCreatedSeen,
    ModuleLoad,
    Program,
    Region,
    TapeSeen,
    TraceEnd,
)
from warplint.verify.trace_of import recorded_trace
from warplint.verify.verdicts import Measurements, judge

TEXT = """\
import warp as wp

@wp.kernel
def step(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    b[wp.tid()] = wp.sin(a[wp.tid()])

wp.config.max_unroll = 4
a = wp.zeros(1, dtype=float, requires_grad=True)
b = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(step, dim=1, inputs=[a], outputs=[b])
    wp.launch(step, dim=1, inputs=[b], outputs=[a])
tape.backward(a)
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prog.py").write_text(TEXT)
    return str(tmp_path / "prog.py")


def evidence(path: str, *measured: object, stopped: str = "end", findings: tuple[Finding, ...] = ()) -> Evidence:
    """A run of TEXT: two launches on tape 1, one backward, and what was measured."""
    records = (*trace(path), *measured, Program("python prog.py", 1.0, 1, 2, 2, "1.19.0", stopped))
    program = records[-1]
    assert isinstance(program, Program)
    result = RunResult("python prog.py", Purpose.GRADIENTS, "python", records, program, Exit(0))
    project = Project.for_paths([path])
    return Evidence(result, recorded_trace(records, project, path), findings)


def trace(path: str) -> tuple[object, ...]:
    def at(line: int) -> tuple[tuple[str, int, str], ...]:
        return ((path, line, "<module>"),)

    def launch(seq: int, line: int, read: int, write: int) -> LaunchSeen:
        bound = (Bound("a", Region(read, 0, 4, grad=read + 10)), Bound("b", Region(write, 0, 4, grad=write + 10)))
        return LaunchSeen(seq, at(line), 0, bound, (1,), tape=1, active=1)

    return (
        ModuleCreatedSeen(1, at(3), "__main__"),
        KernelSeen(0, "step", (path, 4, "step"), (path, 3, "step"), "__main__", "k", False, False, True, 16, seq=2),
        ConfigSeen(3, at(7), "max_unroll", 4),
        MemorySeen(1, at(8), "zeros", 4, True, seq=4),
        MemorySeen(2, at(9), "zeros", 4, True, seq=5),
        MemorySeen(11, at(8), "zeros", 4, gradient_of=1),
        MemorySeen(12, at(9), "zeros", 4, gradient_of=2),
        TapeSeen(6, at(10), 1, "entered"),
        launch(7, 11, 1, 2),
        launch(8, 12, 2, 1),
        TapeSeen(9, at(10), 1, "left"),
        BackwardSeen(10, at(13), 1, Region(1, 0, 4, grad=11), stop_seq=13),
        LaunchSeen(11, at(13), 0, (), (1,), adjoint=True),
        TraceEnd(14, False),
    )


def gradient(path: str, status: GradientStatus, **fields: object) -> Gradient:
    base = Gradient(
        leaf="a", memory=1, allocated=((path, 8, "<module>"),), backward=(((path, 13, "<module>"),),), group=0,
        status=status, reason="too much noise", ad=2.0, fd=1.0, relative_error=0.5,
    )  # fmt: skip
    return replace(base, **fields)  # type: ignore[arg-type]


def overwritten(path: str, **fields: object) -> Culprit:
    base = Culprit(
        Repair.MEMORY, 1, ((path, 8, "<module>"),), ((path, 11, "<module>"),), "step", ((path, 12, "<module>"),),
        "step", effect=1.0,
    )  # fmt: skip
    return replace(base, **fields)  # type: ignore[arg-type]


def ping_pong(path: str, line: int = 12) -> Finding:
    anchor = Anchor(allocation=Span(path, 8), write=Span(path, line), read=Span(path, 11))
    return Finding("NVW101", "ping-pong", Severity.WARNING, Span(path, line, 5), "m", anchor=anchor)


def verdict(finding: Finding, *runs: Evidence, alone: tuple[KernelCheck, ...] = ()) -> Finding:
    (judged,) = judge([finding], Measurements(runs, alone))
    return judged


def test_a_repair_that_names_the_memory_and_the_writer_confirms(program):
    failed = gradient(program, GradientStatus.FAIL, repaired_by=(Repair.MEMORY,), culprits=(overwritten(program),))
    judged = verdict(ping_pong(program), evidence(program, failed))
    assert judged.verdict is not None
    assert judged.verdict.status is Status.CONFIRMED
    assert judged.severity is Severity.ERROR
    assert dict(judged.verdict.figures) == {
        "ad": 2.0, "fd": 1.0, "relative_error": 0.5, "leaf": "a", "status": "fail", "repaired": True,
        "repaired_by": ["memory"], "effect": 1.0,
    }  # fmt: skip


def test_another_writer_of_the_same_memory_confirms_nothing(program):
    elsewhere = overwritten(program, writer=((program, 11, "<module>"),))
    failed = gradient(program, GradientStatus.FAIL, repaired_by=(Repair.MEMORY,), culprits=(elsewhere,))
    judged = verdict(ping_pong(program), evidence(program, failed))
    assert judged.verdict is not None
    assert (judged.verdict.status, judged.severity) == (Status.REFUTED, Severity.WARNING)
    assert "other faults explain all of it" in judged.verdict.reason


def test_another_array_or_another_repair_confirms_nothing(program):
    for culprit in (
        overwritten(program, allocated=((program, 9, "<module>"),)),
        overwritten(program, repair=Repair.GRADIENT),
        overwritten(program, alone=False, effect=0.0),
    ):
        failed = gradient(program, GradientStatus.FAIL, repaired_by=(culprit.repair,), culprits=(culprit,))
        judged = verdict(ping_pong(program), evidence(program, failed))
        assert judged.verdict is not None
        assert judged.verdict.status is Status.REFUTED


def test_a_labelled_allocation_is_as_good_as_the_anchors(program):
    other = overwritten(program, allocated=((program, 9, "<module>"),))
    failed = gradient(program, GradientStatus.FAIL, repaired_by=(Repair.MEMORY,), culprits=(other,))
    labelled = replace(ping_pong(program), labels=(Label(Span(program, 9), Role.ALLOCATION, "b"),))
    judged = verdict(labelled, evidence(program, failed))
    assert judged.verdict is not None
    assert judged.verdict.status is Status.CONFIRMED


@pytest.mark.parametrize(
    ("status", "expected", "says"),
    [
        (GradientStatus.PASS, Status.REFUTED, "is right"),
        (GradientStatus.FLAT, Status.REFUTED, "is right"),
        (GradientStatus.INCONCLUSIVE, Status.INCONCLUSIVE, "too much noise"),
        (GradientStatus.FAIL, Status.INCONCLUSIVE, "no repair shows by what"),
    ],
)
def test_what_was_reached_is_judged_by_its_gradients(program, status, expected, says):
    judged = verdict(ping_pong(program), evidence(program, gradient(program, status)))
    assert judged.verdict is not None
    assert judged.verdict.status is expected
    assert says in judged.verdict.reason
    assert judged.verdict.figures["ad"] == 2.0


def test_the_repair_is_told_in_words_and_the_share_only_beside_other_faults(program):
    mine = replace(overwritten(program), effect=0.6)
    failed = gradient(program, GradientStatus.FAIL, repaired_by=(Repair.MEMORY,), culprits=(mine,))
    alone = verdict(ping_pong(program), evidence(program, failed)).verdict
    assert alone is not None
    assert alone.reason.endswith("; restoring the overwritten values repairs it")
    lacking = Culprit(Repair.GRADIENT, allocated=((program, 99, "<module>"),))
    both = replace(failed, repaired_by=(Repair.MEMORY, Repair.GRADIENT), culprits=(mine, lacking))
    shared = verdict(ping_pong(program), evidence(program, both)).verdict
    assert shared is not None
    assert "restoring the overwritten values and giving the arrays on the way a gradient repair it" in shared.reason
    assert shared.reason.endswith("(other places have part in it; this one alone makes 60% of the error)")


def test_reached_but_not_measured_says_why(program):
    judged = verdict(ping_pong(program), evidence(program, stopped="raised"))
    assert judged.verdict is not None
    assert judged.verdict.status is Status.INCONCLUSIVE
    assert judged.verdict.reason == "reached, but not measured: raised"


def test_what_no_run_came_to_is_not_reached(program):
    finding = replace(ping_pong(program, 40), anchor=Anchor(write=Span(program, 40)))
    judged = verdict(finding, evidence(program, gradient(program, GradientStatus.PASS)))
    assert judged.verdict is not None
    assert (judged.verdict.status, judged.verdict.reason) == (Status.NOT_REACHED, "the program did not come here")
    assert verdict(finding).verdict.reason == "no program that comes here was run"  # type: ignore[union-attr]
    ended = verdict(finding, evidence(program, stopped="exit 3")).verdict
    assert ended is not None
    assert ended.reason == "the program did not come here: exit 3"


def test_one_run_that_confirms_outweighs_the_others(program):
    failed = gradient(program, GradientStatus.FAIL, repaired_by=(Repair.MEMORY,), culprits=(overwritten(program),))
    runs = [evidence(program, gradient(program, GradientStatus.PASS)), evidence(program, failed)]
    assert verdict(ping_pong(program), *runs).verdict.status is Status.CONFIRMED  # type: ignore[union-attr]
    doubtful = evidence(program, gradient(program, GradientStatus.INCONCLUSIVE))
    assert verdict(ping_pong(program), runs[0], doubtful).verdict.status is Status.INCONCLUSIVE  # type: ignore[union-attr]


def test_a_missing_gradient_is_confirmed_by_its_allocation(program):
    finding = Finding("NVW110", "missing-requires-grad", Severity.WARNING, Span(program, 9, 5), "m")
    lacking = Culprit(Repair.GRADIENT, 2, ((program, 9, "<module>"),), effect=0.8)
    both = (Repair.GRADIENT, Repair.ONCE)
    failed = gradient(program, GradientStatus.FAIL, repaired_by=both, culprits=(lacking,))
    judged = verdict(finding, evidence(program, failed)).verdict
    assert judged is not None
    assert (judged.status, judged.figures["repaired_by"]) == (Status.CONFIRMED, ["gradient", "once"])


def test_a_finding_only_the_run_shows_is_added_unless_the_run_refutes_it(program):
    seen = ping_pong(program)
    failed = gradient(program, GradientStatus.FAIL, repaired_by=(Repair.MEMORY,), culprits=(overwritten(program),))
    (added,) = judge([], Measurements((evidence(program, failed, findings=(seen,)),)))
    assert (added.source, added.severity) == (Source.RUNTIME, Severity.ERROR)
    passed = gradient(program, GradientStatus.PASS)
    assert judge([], Measurements((evidence(program, passed, findings=(seen,)),))) == ()


def test_static_and_recorded_findings_of_one_fault_are_one(program):
    static = replace(ping_pong(program), span=Span(program, 2))  # the swap; the run only sees the launch
    failed = gradient(program, GradientStatus.FAIL, repaired_by=(Repair.MEMORY,), culprits=(overwritten(program),))
    (judged,) = judge([static], Measurements((evidence(program, failed, findings=(ping_pong(program),)),)))
    assert (judged.source, judged.span.line) == (Source.STATIC, 2)
    assert judged.verdict is not None
    assert judged.verdict.status is Status.CONFIRMED


def kernel_finding(path: str, *arguments: str) -> Finding:
    anchor = Anchor(kernel=Span(path, 4), arguments=arguments)
    return Finding("NVW201", "inplace-mul", Severity.WARNING, Span(path, 5, 5), "m", anchor=anchor)


def check(path: str, status: GradientStatus, argument: str = "a") -> KernelCheck:
    return KernelCheck("step", (path, 4, "step"), ((path, 11, "<module>"),), status, "noise", 3.0, 2.0, argument)


def test_a_kernel_is_confirmed_where_its_adjoint_and_a_gradient_fail(program):
    wrong = gradient(program, GradientStatus.FAIL)
    judged = verdict(kernel_finding(program), evidence(program, wrong, check(program, GradientStatus.FAIL))).verdict
    assert judged is not None
    assert judged.status is Status.CONFIRMED
    assert (judged.figures["ad"], judged.figures["kernel_ad"]) == (2.0, 3.0)
    right = gradient(program, GradientStatus.PASS)
    judged = verdict(kernel_finding(program), evidence(program, right, check(program, GradientStatus.FAIL))).verdict
    assert judged is not None
    assert judged.status is Status.INCONCLUSIVE
    assert "yet every gradient" in judged.reason
    for unknown in ([], [gradient(program, GradientStatus.INCONCLUSIVE)]):
        judged = verdict(
            kernel_finding(program), evidence(program, *unknown, check(program, GradientStatus.FAIL))
        ).verdict
        assert judged is not None
        assert judged.status is Status.INCONCLUSIVE
        assert "what it does to a leaf is not known" in judged.reason


def test_a_right_adjoint_refutes_and_another_argument_says_nothing(program):
    passed = evidence(program, gradient(program, GradientStatus.PASS), check(program, GradientStatus.PASS))
    assert verdict(kernel_finding(program), passed).verdict.status is Status.REFUTED  # type: ignore[union-attr]
    elsewhere = evidence(program, gradient(program, GradientStatus.FAIL), check(program, GradientStatus.FAIL, "b"))
    judged = verdict(kernel_finding(program, "a"), elsewhere).verdict
    assert judged is not None
    assert judged.status is Status.INCONCLUSIVE


def test_a_kernel_that_no_run_reached_is_judged_alone(program):
    finding = verdict(kernel_finding(program), alone=(check(program, GradientStatus.FAIL),))
    assert finding.verdict is not None
    assert finding.verdict.status is Status.CONFIRMED
    assert finding.verdict.reason.startswith("no run reached it; alone")
    hint = replace(kernel_finding(program), severity=Severity.INFO)
    hint = verdict(hint, alone=(check(program, GradientStatus.FAIL),))
    assert hint.verdict is not None
    assert (hint.verdict.status, hint.severity) == (Status.INCONCLUSIVE, Severity.INFO)


def late_option(path: str) -> Finding:
    anchor = Anchor(option="max_unroll", module="__main__")
    return Finding("NVW301", "late-config", Severity.WARNING, Span(path, 7), "m", anchor=anchor)


def load(value: int, digest: str = "h", module: str = "__main__") -> ModuleLoad:
    return ModuleLoad(module, digest, "cpu", True, 1.0, options={"max_unroll": value})


def test_an_option_that_is_not_in_effect_confirms(program):
    judged = verdict(late_option(program), evidence(program, load(16))).verdict
    assert judged is not None
    assert judged.status is Status.CONFIRMED
    assert (judged.figures["asked"], judged.figures["effective"]) == (4, 16)


def test_an_option_in_effect_refutes_unless_it_cost_a_build(program):
    assert verdict(late_option(program), evidence(program, load(4))).verdict.status is Status.REFUTED  # type: ignore[union-attr]
    twice = verdict(late_option(program), evidence(program, load(16, "g"), load(4, "h"))).verdict
    assert twice is not None
    assert (twice.status, twice.figures["builds"]) == (Status.CONFIRMED, 2)


def test_modules_made_after_the_assignment_do_not_count(program):
    finding = replace(late_option(program), anchor=Anchor(option="max_unroll"))
    judged = verdict(finding, evidence(program, load(16, module="later"), load(4))).verdict
    assert judged is not None
    assert judged.status is Status.REFUTED


def test_what_no_run_can_prove_gets_no_verdict(program):
    finding = Finding("NVW900", "unreadable", Severity.WARNING, Span(program, 1), "m")
    assert verdict(finding, evidence(program)).verdict is None


def test_the_recorded_trace_speaks_the_rules_vocabulary(program):
    recorded = evidence(program).recorded
    kinds = [type(event).__name__ for event in recorded.trace.events]
    assert kinds == [
        "ModuleCreated", "ConfigSet", "TapeEntered", "Launch", "Launch", "TapeLeft", "Backward",
    ]  # fmt: skip
    launch = recorded.trace.events[3]
    assert launch.span == Span("prog.py", 11, 5, 11, 52)
    assert recorded.trace.memories[1].name == "a"
    kernel = launch.kernel  # type: ignore[attr-defined]
    assert (kernel.stable, kernel.decorator.line, kernel.span.line) == (True, 3, 4)
    summary = recorded.summary_of(kernel)
    assert summary is not None
    assert [read.path for read in summary.reads] == ["a"]
    assert [store.path for store in summary.stores] == ["b"]


def nonsmooth(path: str, severity: Severity = Severity.WARNING) -> Finding:
    anchor = Anchor(write=Span(path, 11), kernel=Span(path, 4))
    return Finding("NVW205", "nonsmooth-point", severity, Span(path, 5, 20), "m", anchor=anchor)


def checked(path: str, status: GradientStatus, ad: float, reason: str = "") -> KernelCheck:
    return KernelCheck("step", (path, 4, "step"), ((path, 11, "<module>"),), status, reason, ad, 1.0, "a")


KINK = "a kink at the starting point"
NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("local", "leaf", "severity", "expected"),
    [
        (("FAIL", NAN, ""), ("FAIL", NAN, ""), Severity.WARNING, Status.CONFIRMED),
        (("FAIL", INF, ""), ("FAIL", NAN, ""), Severity.INFO, Status.CONFIRMED),
        (("FAIL", NAN, ""), ("PASS", 1.0, ""), Severity.WARNING, Status.INCONCLUSIVE),
        (("FAIL", 2.0, ""), ("FAIL", 2.0, ""), Severity.WARNING, Status.REFUTED),
        (("PASS", 1.0, ""), ("PASS", 1.0, ""), Severity.WARNING, Status.REFUTED),
        (("PASS", 1.0, KINK), ("PASS", 1.0, KINK), Severity.WARNING, Status.CONFIRMED),
        (("PASS", 1.0, KINK), ("PASS", 1.0, ""), Severity.WARNING, Status.INCONCLUSIVE),
        (("PASS", 1.0, KINK), ("PASS", 1.0, KINK), Severity.INFO, Status.REFUTED),
        (("INCONCLUSIVE", NAN, "noise"), ("INCONCLUSIVE", NAN, ""), Severity.WARNING, Status.INCONCLUSIVE),
    ],
)
def test_a_point_without_a_derivative_is_proven_by_what_the_adjoint_gives_there(
    program: str, local: tuple[str, float, str], leaf: tuple[str, float, str], severity: Severity, expected: Status
) -> None:
    check = checked(program, GradientStatus[local[0]], *local[1:])
    found = gradient(program, GradientStatus[leaf[0]], ad=leaf[1], reason=leaf[2])
    judged = verdict(nonsmooth(program, severity), evidence(program, check, found))
    assert judged.verdict is not None
    assert judged.verdict.status is expected
    assert judged.verdict.experiment is Experiment.NONSMOOTH_POINT

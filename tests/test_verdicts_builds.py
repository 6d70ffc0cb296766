"""Builds are counted in fresh caches by running the program, and a fix is tried without touching the file."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from warplint.builds.count import Builds, Comparison, compare, count
from warplint.builds.remedy import remedied
from warplint.config import Settings
from warplint.discovery import discover
from warplint.finding import (
    Anchor,
    Applicability,
    Edit,
    Finding,
    Fix,
    KeywordChange,
    Label,
    Role,
    Severity,
    Source,
    Span,
    Status,
)
from warplint.fix.text import Overlap, applied
from warplint.project import Project
from warplint.runner.command import for_script
from warplint.runner.process import Limits
from warplint.runner.run import RunOptions
from warplint.verify.build_verdicts import by_build_count
from warplint.verify.records import ModuleLoad
from warplint.verify.session import verify

PROGRAM = """\
import warp as wp

wp.set_module_options({"enable_backward": False})

@wp.kernel(module="unique")
def one(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0

@wp.kernel(module="unique")
def two(x: wp.array(dtype=float)):
    x[wp.tid()] = 2.0

if __name__ == "__main__":
    x = wp.zeros(1, dtype=float, device="cpu")
    wp.launch(one, dim=1, inputs=[x], device="cpu")
    wp.launch(two, dim=1, inputs=[x], device="cpu")
    y = x + x
"""


def unique(path: str, line: int) -> Finding:
    lines = Path(path).read_text().splitlines() if Path(path).exists() else []
    place = _decorator(path, line, lines) if lines else Span(path, line, 2)
    fix = Fix(Applicability.SAFE, "share", changes=(KeywordChange(place, "module", None),))
    anchor = Anchor(kernel=Span(path, line + 1))
    return Finding("NVW303", "unique-stable-kernel", Severity.WARNING, place, "m", anchor=anchor, fix=fix)


def _decorator(path: str, line: int, lines: list[str]) -> Span:
    end = next(number for number in range(line, len(lines) + 1) if number == len(lines) or "def" in lines[number])
    return Span(path, line, 2, end, len(lines[end - 1]) + 1)


@pytest.mark.warp
def test_unique_modules_are_counted_before_and_after_the_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prog.py").write_text(PROGRAM)
    findings = [unique("prog.py", 5), unique("prog.py", 9)]
    options = RunOptions(python=sys.executable, limits=Limits(300.0))
    compared = compare(for_script("prog.py"), options, findings, Project.for_paths(["prog.py"]))
    assert compared.before.problem is None
    assert compared.after is not None
    assert (compared.before.built_cold, compared.before.built_warm) == (2, 0), "map_add is Warp's own and left out"
    assert (compared.after.built_cold, compared.after.modules) == (1, ("__main__",))
    verdict = by_build_count(findings[0], [compared])
    assert verdict is not None
    assert (verdict.status, verdict.reason) == (Status.CONFIRMED, "2 builds in a fresh cache, 1 with the fix")
    assert (tmp_path / "prog.py").read_text() == PROGRAM
    assert os.listdir(tmp_path) == ["prog.py"]


def load(module: str, *lines: int, compiled: bool = True) -> ModuleLoad:
    kernels = tuple((os.path.abspath("prog.py"), line, "k") for line in lines)
    return ModuleLoad(module, "h", "cpu", compiled, 1.0, kernels)


def compared(cold: tuple[ModuleLoad, ...], fixed: tuple[ModuleLoad, ...] | None) -> Comparison:
    after = Builds("python prog.py", fixed) if fixed is not None else None
    return Comparison(Builds("python prog.py", cold), after)


def test_the_counts_decide():
    two = (load("a", 6), load("b", 10))
    finding = unique("prog.py", 5)
    shared = compared(two, (load("__main__", 6, 10),))
    assert by_build_count(finding, [shared]).status is Status.CONFIRMED  # type: ignore[union-attr]
    moved = compared(two, (load("__main__", 7, 11),))
    assert by_build_count(finding, [moved]).status is Status.CONFIRMED, "a fix moves lines"  # type: ignore[union-attr]
    assert by_build_count(finding, [compared(two, two)]).status is Status.REFUTED  # type: ignore[union-attr]
    assert by_build_count(finding, [compared(two, None)]).status is Status.INCONCLUSIVE  # type: ignore[union-attr]
    assert by_build_count(finding, [compared((load("b", 10),), None)]) is None, "its module was not loaded"
    broken = replace(shared, before=replace(shared.before, problem="exit 3"))
    judged = by_build_count(finding, [broken])
    assert judged is not None
    assert (judged.status, judged.reason) == (Status.INCONCLUSIVE, "builds could not be counted: exit 3")


def test_modules_are_held_against_each_other_where_there_is_no_fix():
    two = (load("a", 6), load("b", 10))
    beside = Label(Span("prog.py", 9, 2, 9, 9), Role.KERNEL, "`k`")
    finding = replace(unique("prog.py", 5), fix=None, labels=(beside,))
    verdict = by_build_count(finding, [compared(two, (load("__main__", 20, 30),))])
    assert verdict is not None
    assert (verdict.status, verdict.reason[:9]) == (Status.CONFIRMED, "2 modules")
    for other in ({"block_dim": 64}, {"device": "cuda:0"}, {"options": {"fast_math": True}}, {"compiled": False}):
        differs = compared((two[0], replace(two[1], **other)), None)
        assert by_build_count(finding, [differs]).status is Status.REFUTED  # type: ignore[union-attr]


def test_a_program_that_could_not_be_counted_at_all_is_no_program_that_does_not_come_there():
    failed = Comparison(Builds("python prog.py", (), problem="exit 3"))
    judged = by_build_count(unique("prog.py", 5), [failed])
    assert judged is not None
    assert (judged.status, judged.reason) == (Status.INCONCLUSIVE, "builds could not be counted: exit 3")
    assert by_build_count(unique("prog.py", 5), [failed, failed]) is None, "which of them was to come there?"


def test_what_is_mechanical_is_changed_in_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    text = '@wp.kernel(\n    enable_backward=False, module="unique"\n)\ndef k(x: float):\n    pass\n'
    (tmp_path / "prog.py").write_text(text)
    project = Project.for_paths(["prog.py"])
    changed = "@wp.kernel(\n    enable_backward=False\n)\ndef k(x: float):\n    pass\n"
    assert remedied([unique("prog.py", 1)], project) == {"prog.py": changed}
    assert remedied([unique("prog.py", 4)], project) == {}
    (tmp_path / "named.py").write_text('shared = wp.kernel(module="unique")\n\n@shared\ndef k(x: float):\n    pass\n')
    (text_of_named,) = remedied([unique("named.py", 3)], project).values()
    assert text_of_named.startswith("shared = wp.kernel\n")
    edit = Edit(Span("prog.py", 4, 5, 4, 6), "other")
    fixed = replace(unique("prog.py", 1), fix=Fix(Applicability.SAFE, "rename", (edit,)))
    assert remedied([fixed], project) == {"prog.py": text.replace("def k", "def other")}


def test_edits_are_applied_together_or_not_at_all():
    text = "first = 1\nsecond = 2\n"
    edits = [Edit(Span("f", 2, 10, 2, 11), "3"), Edit(Span("f", 1, 1, 1, 6), "1st"), Edit(Span("f", 1, 1, 1, 6), "1st")]
    assert applied(text, edits) == "1st = 1\nsecond = 3\n"
    assert applied(text, [Edit(Span("f", 1, 6), "")]) == "first\nsecond = 2\n"
    with pytest.raises(Overlap):
        applied(text, [*edits, Edit(Span("f", 1, 3, 1, 8), "x")])


CLEARING = """\
import os
import warp as wp

@wp.kernel
def one(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0

if __name__ == "__main__":
    if "OWN" in os.environ:
        wp.config.kernel_cache_dir = os.environ["OWN"]
    wp.clear_kernel_cache()
    wp.launch(one, dim=1, inputs=[wp.zeros(1, dtype=float, device="cpu")], device="cpu")
"""


@pytest.mark.slow
@pytest.mark.warp
def test_only_a_cache_of_the_runs_own_is_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prog.py").write_text(CLEARING)
    kept = tmp_path / "mine" / "wp_precious"
    kept.mkdir(parents=True)
    command = for_script("prog.py")
    options = RunOptions(python=sys.executable, limits=Limits(300.0))
    cleared = count(command, options)
    assert (cleared.problem, cleared.built_cold, cleared.built_warm) == (None, 1, 1), "the second run builds again"
    own = count(replace(command, environment={"OWN": str(kept.parent)}), options)
    assert kept.exists()
    assert own.problem is not None
    assert own.problem.startswith(f"the program keeps its kernels in a cache of its own ({kept.parent}")


def found(path: str, code: str, line: int, **fields: object) -> Finding:
    return Finding(code, "name", Severity.WARNING, Span(path, line, 1), "m", **fields)  # type: ignore[arg-type]


def test_what_a_person_would_try_first_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    lines = [
        "import tempfile",
        "import warp as wp",
        "",
        "wp.clear_kernel_cache()",
        "wp.config.kernel_cache_dir = tempfile.mkdtemp()",
        "cache = wp.config.kernel_cache_dir = tempfile.mkdtemp()",
        'wp.set_module_options({"fast_math": True})',
        "wp.set_module_options(options)",
    ]
    (tmp_path / "prog.py").write_text("\n".join([*lines, ""]))

    def tried(*findings: Finding) -> list[str]:
        texts = remedied(findings, Project.for_paths(["prog.py"]))
        return texts["prog.py"].splitlines() if texts else []

    assert tried(found("prog.py", "NVW306", 4)) == [*lines[:3], "pass", *lines[4:]]
    assert tried(found("prog.py", "NVW306", 5)) == [*lines[:4], "pass", *lines[5:]]
    assert tried(found("prog.py", "NVW306", 6)) == [], "the name is used elsewhere, perhaps"
    moved = ["import tempfile", "import warp as wp", lines[6], *lines[2:6], "pass", lines[7]]
    assert tried(found("prog.py", "NVW302", 7)) == moved
    assert tried(found("prog.py", "NVW302", 8)) == [], "what the options are is not known so early"
    both = tried(found("prog.py", "NVW306", 4), found("prog.py", "NVW302", 7))
    assert (both[2], both[4], both[7]) == (lines[6], "pass", "pass")


MAPS = """\
import warp as wp

wp.config.optimization_level = 0

@wp.kernel
def one(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0

wp.clear_kernel_cache()
x = wp.zeros(3, dtype=float, device="cpu")
wp.launch(one, dim=3, inputs=[x], device="cpu")
wp.set_module_options({"fast_math": True})
wp.launch(one, dim=3, inputs=[x], device="cpu")
for c in (1.0, 2.0):
    y = wp.map(lambda v: v + c, x)
"""


@pytest.mark.slow
@pytest.mark.warp
def test_builds_are_counted_where_devices_are_redirected_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prog.py").write_text(PROGRAM.replace('"cpu"', '"cuda"').replace("    y = x + x\n", ""))
    options = RunOptions(python=sys.executable, limits=Limits(300.0))
    counted = count(for_script("prog.py"), replace(options, device="cpu"))
    assert (counted.problem, counted.built_cold, {load.device for load in counted.cold}) == (None, 2, {"cpu"})


LIBRARY = """\
import warp as wp

wp.config.optimization_level = 0

@wp.kernel
def one(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0

def main():
    x = wp.zeros(4, dtype=float, device="cpu")
    wp.launch(one, dim=4, inputs=[x], device="cpu")
    for c in (1.0, 2.0):
        @wp.kernel
        def two(x: wp.array(dtype=float)):
            x[wp.tid()] = c
        wp.launch(two, dim=4, inputs=[x], device="cpu")
"""
HIDING = """\
import importlib

import warp as wp

if __name__ == "__main__":
    importlib.import_module("li" + "b").main()
"""


@pytest.mark.slow
@pytest.mark.warp
def test_what_only_the_run_shows_is_counted_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lib.py").write_text(LIBRARY)
    (tmp_path / "prog.py").write_text(HIDING)
    settings = Settings(tmp_path)
    settings = replace(settings, verify=replace(settings.verify, python=sys.executable, time_limit=300.0))
    verification = verify((), discover(["prog.py"], settings), settings, lambda text, seconds=0.0: None)
    (seen,) = [finding for finding in verification.findings if finding.code == "NVW304"]
    assert (seen.source, seen.span.line) == (Source.RUNTIME, 13)
    assert seen.verdict is not None
    assert seen.verdict.status is Status.CONFIRMED
    assert "module `lib` was built 3 times in one run" in seen.verdict.reason
    (count,) = verification.builds
    assert (count.module, count.cold, count.warm) == ("lib", 3, 0)
    assert count.why
    assert all(reason.endswith("(lib.py:14)") for reason in count.why), count.why
    assert verification.notes == (
        "python prog.py: 3 builds in a fresh cache; 1 would remain if each module were built once",
    )


@pytest.mark.slow
@pytest.mark.warp
def test_each_harm_of_one_program_is_confirmed_by_its_own_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prog.py").write_text(MAPS)
    at = Anchor(kernel=Span("prog.py", 15), write=Span("prog.py", 15))
    mapped = found("prog.py", "NVW304", 15, anchor=at)
    cleared = found("prog.py", "NVW306", 9)
    late = found("prog.py", "NVW302", 12, anchor=Anchor(module="__main__"))
    needless = found("prog.py", "NVW307", 1, anchor=Anchor(kernel=Span("prog.py", 6), module="__main__"))
    options = RunOptions(python=sys.executable, limits=Limits(300.0))
    findings = [mapped, cleared, late, needless]
    compared = compare(for_script("prog.py"), options, findings, Project.for_paths(["prog.py"]))
    reasons = []
    for finding in findings:
        verdict = by_build_count(finding, [compared])
        assert verdict is not None
        assert verdict.status is Status.CONFIRMED, verdict
        reasons.append(verdict.reason)
    assert reasons[0] == "the kernel that Warp writes for this call was built 2 times in one run"
    assert reasons[1] == "2 builds in a second run on the cache that the first one filled; without it 0"
    assert reasons[2].endswith("2 builds in a fresh cache, 1 when it is repaired")
    assert "bytes of generated source become" in reasons[3]
    assert compared.ceiling == 1

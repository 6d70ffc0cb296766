"""Which programs are run for the paths given: only what is a program, uses Warp, and can say something."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from warplint.config import Settings
from warplint.discovery import discover
from warplint.finding import Anchor, Finding, Severity, Span
from warplint.project import Project
from warplint.proof import Draw
from warplint.runner.protocol import Entry, EntryKind, KernelTarget
from warplint.verify.plan import is_program, kernel_targets, plan, reaches

GUARD = "if __name__ == '__main__':\n    main()\n"
TAPE = "import warp as wp\ndef main():\n    with wp.Tape():\n        pass\n"
KERNEL = "import warp as wp\n@wp.kernel\ndef k(x: wp.array(dtype=float)):\n    x[0] = 1.0\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Writes files and plans for paths among them."""
    monkeypatch.chdir(tmp_path)

    def planned(files: dict[str, str], *paths: str, findings: tuple[Finding, ...] = (), run: tuple[str, ...] = ()):
        for name, text in files.items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        found = discover(list(paths), Settings(root=tmp_path))
        return plan(found, findings, run, Project.for_paths(found.files), sys.executable)

    return planned


def shown(planned) -> list[str]:
    return [command.shown for command in planned.commands]


def finding(path: str) -> Finding:
    return Finding("NVW101", "ping-pong", Severity.WARNING, Span(path, 1), "m")


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        (TAPE + GUARD, True),
        (TAPE, True),
        ("import warp as wp\nclass S:\n    def go(self):\n        wp.launch(k, dim=1)\nS().go()\n", True),
        ("import warp as wp\n" + GUARD, True),
        ("import warp as wp\nwith wp.Tape() as tape:\n    pass\n", True),
        ("import warp as wp\nwp.launch(None, dim=1)\n", True),
        ("import numpy\n" + GUARD, False),
        ("# warp\n" + GUARD, False),
        ("import warp as wp\nX = 1\n", False),
    ],
)
def test_a_named_file_runs_if_it_is_a_program_that_uses_warp(project, text, runs):
    assert shown(project({"prog.py": text}, "prog.py")) == (["python prog.py"] if runs else [])


def test_a_named_file_runs_for_what_it_imports(project):
    files = {"main.py": "import model\n" + GUARD, "model.py": KERNEL}
    assert shown(project(files, "main.py")) == ["python main.py"]
    assert shown(project(files, "model.py")) == []


TEST = "import warp as wp\ndef test_gradient():\n    with wp.Tape():\n        pass\n"
CASE = "import unittest, warp\nclass Gradients(unittest.TestCase):\n    def test_it(self):\n        warp.Tape()\n"


@pytest.mark.parametrize(
    ("name", "text", "command"),
    [
        ("test_x.py", TEST, "python -m pytest -q test_x.py"),
        ("test_x.py", TEST + GUARD, "python -m pytest -q test_x.py"),
        ("x_test.py", CASE, "python -m pytest -q x_test.py"),
        ("checks.py", TEST, "python -m pytest -q checks.py"),
        ("checks.py", TEST + GUARD, "python checks.py"),
        ("test_x.py", TAPE + GUARD, "python test_x.py"),
    ],
)
def test_a_file_of_tests_is_run_by_a_test_runner(project, name, text, command):
    assert shown(project({name: text}, name)) == [command]
    assert shown(project({f"d/{name}": text}, "d")) == [command.replace(name, f"d/{name}")]


def test_tests_of_a_folder_run_for_findings_and_tapes_alone(project):
    quiet = TEST.replace("wp.Tape()", "wp.ScopedTimer('')")
    assert shown(project({"d/test_x.py": quiet}, "d")) == []
    assert shown(project({}, "d", findings=(finding("d/test_x.py"),))) == ["python -m pytest -q d/test_x.py"]


def test_without_pytest_unittest_runs_its_own_tests_and_others_are_an_error(project, tmp_path):
    bare = tmp_path / "python"
    bare.write_text("#!/bin/sh\nexit 1\n")
    bare.chmod(0o755)
    for name, text in (("test_a.py", CASE), ("test_b.py", TEST)):
        (tmp_path / name).write_text(text)
    found = discover(["."], Settings(root=tmp_path))
    planned = plan(found, (), (), Project.for_paths(found.files), str(bare))
    assert shown(planned) == ["python -m unittest test_a.py"]
    (error,) = planned.errors
    assert error.endswith(f"test_b.py holds tests for pytest, which {bare} does not have")


def test_setup_is_never_run(project):
    assert shown(project({"setup.py": TAPE + GUARD}, "setup.py")) == []


def test_of_a_folder_run_those_that_open_a_tape_or_have_a_finding_in_reach(project):
    files = {
        "d/tape.py": TAPE + GUARD,
        "d/quiet.py": "import warp as wp\n" + GUARD,
        "d/flagged.py": "import warp as wp\nimport helper\n" + GUARD,
        "d/helper.py": KERNEL,
        "d/library.py": TAPE,
    }
    assert shown(project(files, "d")) == ["python d/tape.py"]
    assert shown(project(files, "d", findings=(finding("d/helper.py"),))) == ["python d/flagged.py", "python d/tape.py"]


def test_given_commands_are_all_that_is_run(project):
    planned = project({"prog.py": TAPE + GUARD}, "prog.py", run=("python -m pkg.train", "a | b"))
    assert shown(planned) == ["python -m pkg.train"]
    assert len(planned.errors) == 1
    assert "needs a shell" in planned.errors[0]


def test_a_named_file_that_the_given_commands_do_not_run_is_told(project):
    files = {"pkg/__init__.py": "", "pkg/train.py": TAPE + GUARD, "test_x.py": TEST, "prog.py": TAPE + GUARD}
    run = ("python -m pkg.train", "pytest test_x.py::test_gradient")
    assert project(files, "pkg/train.py", "test_x.py", "prog.py", run=run).instead == ("prog.py",)
    assert project({}, ".", run=run).instead == ()
    assert project({}, "prog.py", run=("python ./prog.py --steps 3",)).instead == ()
    assert project({}, "prog.py").instead == ()


def test_a_file_of_a_package_with_relative_imports_runs_as_a_module(project, tmp_path):
    files = {"src/pkg/__init__.py": "", "src/pkg/model.py": KERNEL, "src/pkg/train.py": "from . import model\n" + GUARD}
    (command,) = project(files, "src/pkg/train.py").commands
    assert command.entry == Entry(EntryKind.MODULE, "pkg.train")
    assert command.environment is not None
    assert command.environment["PYTHONPATH"].split(":")[0] == str(tmp_path / "src")


def test_a_program_reaches_what_it_imports(project, tmp_path):
    files = {"main.py": "import model\nimport warp\n" + GUARD, "model.py": KERNEL, "other.py": KERNEL}
    (command,) = project(files, "main.py").commands
    everything = Project.for_paths([str(tmp_path / "main.py")])
    assert reaches(command, "model.py", everything)
    assert not reaches(command, "other.py", everything)


def test_a_kernel_to_check_alone_can_be_imported_without_running_its_program(project, tmp_path):
    files = {
        "pkg/__init__.py": "",
        "pkg/kernels.py": KERNEL,
        "guarded.py": KERNEL + GUARD,
        "launching.py": KERNEL + "wp.launch(k, dim=1)\n",
    }
    project(files, ".")
    found = [
        Finding("NVW201", "n", Severity.WARNING, Span(path, 4), "m", anchor=Anchor(kernel=Span(path, line)))
        for path, line in (("pkg/kernels.py", 3), ("pkg/kernels.py", 2), ("guarded.py", 3), ("launching.py", 3))
    ]
    targets = kernel_targets(found, Project.for_paths(["."]))
    assert targets == (
        KernelTarget(str(tmp_path / "pkg/kernels.py"), 3, "k", "pkg.kernels", str(tmp_path)),
        KernelTarget(str(tmp_path / "guarded.py"), 3, "k", "guarded", str(tmp_path)),
    )


def test_a_kernel_is_checked_once_on_all_inputs_that_its_findings_ask_for(project):
    project({"k.py": KERNEL}, ".")
    found = [
        Finding(code, "n", Severity.WARNING, Span("k.py", 4), "m", anchor=Anchor(kernel=Span("k.py", 3)))
        for code in ("NVW201", "NVW204", "NVW204")
    ]
    (target,) = kernel_targets(found, Project.for_paths(["."]))
    assert target.draws == (Draw.ZEROS, Draw.LARGE)


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("def f():\n    wp.launch(k, dim=1)\n", False),
        ("for i in range(3):\n    wp.launch(k, dim=1)\n", True),
        ("import warp\ny = warp.map(warp.sin, x)\n", True),
        ("from warp import map as mapped\ny = mapped(abs, x)\n", True),
        ("names = list(map(str, range(3)))\n", False),
        ("import helper\nhelper.model.run()\n", True),
        ("from helper import run as go\nx = go()\n", True),
        ("import math\nX = math.sqrt(2.0)\n", False),
        ("@decorate()\ndef f():\n    pass\n", False),
    ],
)
def test_what_runs_when_the_file_runs_makes_a_program(tmp_path, text, runs):
    (tmp_path / "helper.py").write_text("def run():\n    pass\n")
    (tmp_path / "prog.py").write_text(text)
    project = Project.for_paths([tmp_path / "prog.py"])
    assert is_program(project.module(tmp_path / "prog.py"), project) is runs

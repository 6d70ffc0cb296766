"""``builds measure`` on real commands: it changes nothing of them, sees their children, says what it cannot measure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from installed import environment
from jsonschema import Draft202012Validator

from warplint.builds.observe import invocation, observe
from warplint.runner.process import Limits

SCHEMA = json.loads((Path(__file__).parent.parent / "docs" / "builds-schema.json").read_text())


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str
    document: dict[str, Any] | None


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run ``warplint builds measure`` with these words in the folder of the test."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str, options: tuple[str, ...] = (), **variables: str) -> Outcome:
        file = tmp_path / "measured.json"
        asked = ["builds", "measure", "--json", str(file), "--python", sys.executable, *options, "--", *words]
        command = [sys.executable, "-m", "warplint", *asked]
        found = {**environment(tmp_path / "installed"), **variables}
        ended = subprocess.run(command, capture_output=True, text=True, env=found, timeout=600)
        document = json.loads(file.read_text()) if file.exists() else None
        if document is not None:
            Draft202012Validator(SCHEMA).validate(document)
        return Outcome(ended.returncode, ended.stdout, ended.stderr, document)

    return run


# ------------------------------------------------------------------------------------------------------------------
# Commands that cannot be measured: one clear line each


def last_line(outcome: Outcome) -> str:
    return outcome.err.strip().splitlines()[-1]


def test_a_command_without_warp(measured) -> None:
    outcome = measured("python", "-c", "print('hello')")
    assert (outcome.status, outcome.out) == (2, "hello\n")
    assert "the cold run imported Warp in none of its processes" in last_line(outcome)


def test_a_command_that_fails_keeps_its_exit_status_and_its_output(measured) -> None:
    outcome = measured("python", "-c", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)")
    assert (outcome.status, outcome.out) == (7, "out\n")
    assert "err" in outcome.err.splitlines()
    assert last_line(outcome).startswith(
        "warplint: the cold run failed with exit status 7, before any of its processes"
    )
    assert outcome.document is not None
    assert (outcome.document["exit_status"], outcome.document["samples"]) == (7, [])


def test_a_command_that_is_killed(measured) -> None:
    outcome = measured("python", "-c", "import os; os.kill(os.getpid(), 11)")
    assert outcome.status == 128 + 11
    assert "the cold run was ended by SIGSEGV (segmentation fault), before any of its" in last_line(outcome)


def test_a_command_that_hangs_is_ended_with_its_children(measured, tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "open('child', 'w').write(str(child.pid))\n"
        "time.sleep(600)\n"
    )
    outcome = measured("python", "prog.py", options=("--time-limit", "2"))
    assert (outcome.status, outcome.out) == (2, "")
    assert "ran into the time limit after 2." in last_line(outcome)
    child = (tmp_path / "child").read_text()
    state = Path(f"/proc/{child}/stat")
    assert not state.exists() or state.read_text().split()[2] == "Z"


def test_a_command_that_imports_warp_and_builds_nothing(measured) -> None:
    outcome = measured("python", "-c", "import warp")
    assert outcome.status == 2
    assert last_line(outcome).endswith("imported Warp, but loaded no module: there is nothing to measure")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("no-such-program",), "there is no program no-such-program"),
        ((), "the command is missing"),
        (("A=1",), "the command is empty"),
        (("",), "there is no program without a name"),
        ((".",), ". is a folder, not a program"),
        (("run.sh",), "there is no program run.sh on PATH; the file here is ./run.sh"),
        (("./notes.txt",), "./notes.txt is a file that cannot be executed"),
        (("./run.sh",), "./run.sh cannot be started: the interpreter that its first line names is not there"),
        (("./words",), "./words cannot be started: Exec format error"),
    ],
)
def test_commands_that_do_not_exist(measured, tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    for name, text, mode in (
        ("run.sh", "#!/no/such/shell\n", 0o700),
        ("words", "hi\n", 0o700),
        ("notes.txt", "", 0o600),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    outcome = measured(*words)
    assert (outcome.status, outcome.out, outcome.document) == (2, "", None)
    assert told in outcome.err
    assert "Traceback" not in outcome.err


def test_the_program_cannot_tell_that_it_is_watched(measured, tmp_path: Path) -> None:
    (tmp_path / "behind").mkdir()
    (tmp_path / "behind" / "sitecustomize.py").write_text("import builtins\nbuiltins.BEHIND = True\n")
    (tmp_path / "prog.py").write_text(
        "import sys\n"
        "print(__name__, sys.argv, sys.path[0] == sys.argv[1], BEHIND, 'warplint' in sys.modules)\n"
        "print([entry for entry in sys.path if 'warplint-builds' in entry], sys.stdin.read() == '')\n"
        "print(sys.modules['sitecustomize'].__file__)\n"
    )
    outcome = measured("python", "prog.py", str(tmp_path), PYTHONPATH=path_with(tmp_path, "behind"))
    first, second, third = outcome.out.splitlines()
    assert first == f"__main__ ['prog.py', '{tmp_path}'] True True False"
    assert second == "[] True"
    assert third == str(tmp_path / "behind" / "sitecustomize.py")


def path_with(folder: Path, name: str) -> str:
    behind = environment(folder / "installed").get("PYTHONPATH")
    return os.pathsep.join(part for part in (str(folder / name), behind) if part)


# ------------------------------------------------------------------------------------------------------------------
# Commands that build

PROGRAM = """\
import multiprocessing, os, subprocess, sys
import warp as wp

wp.config.optimization_level = 0

@wp.kernel
def one(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0

def use(kernel, n):
    wp.launch(kernel, dim=n, inputs=[wp.zeros(n, dtype=float, device="cpu")], device="cpu")

def main():
    use(one, 4)

    @wp.kernel
    def two(x: wp.array(dtype=float)):
        x[wp.tid()] = 2.0

    use(two, 8)
    use(two, 8)
    sys.stdout.flush()
    child = subprocess.run([sys.executable, "child.py"])
    forked = multiprocessing.get_context("fork").Process(target=use, args=(one, 2))
    forked.start()
    forked.join()
    print("done", child.returncode, forked.exitcode)

if __name__ == "__main__":
    main()
"""
CHILD = """\
import warp as wp

wp.config.optimization_level = 0

@wp.kernel
def small(x: wp.array(dtype=float)):
    x[wp.tid()] = 3.0

wp.launch(small, dim=1, inputs=[wp.zeros(1, dtype=float, device="cpu")], device="cpu")
"""


@pytest.mark.warp
def test_builds_of_a_program_and_its_children(measured, tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(PROGRAM)
    (tmp_path / "child.py").write_text(CHILD)
    outcome = measured("python", "prog.py")
    assert outcome.status == 0, outcome.err
    assert outcome.out.splitlines().count("done 0 0") == 2, "a cold run and a warm one, both to be seen"
    assert "builds of" not in outcome.out
    assert outcome.document is not None
    (sample,) = outcome.document["samples"]
    first, forked, child = sorted(sample["cold"]["processes"], key=lambda each: -len(each["loads"]) or each["process"])[
        :3
    ]
    if forked["loads"]:
        forked, child = child, forked
    assert [load["why"][0]["kind"] for load in first["loads"]] == ["first", "kernel-set"]
    (cause,) = first["loads"][1]["why"]
    assert (cause["text"], Path(cause["path"]).name) == ("`two` was defined after the module was loaded", "prog.py")
    assert PROGRAM.splitlines()[cause["line"] - 1].strip().startswith("def two")
    assert [load["compiled"] for load in child["loads"]] == [True]
    assert child["parent"] == first["process"] == forked["parent"]
    assert [kind["kernel"] for kind in child["launches"]["kinds"]] == ["small"]
    assert (first["launches"]["counts"], first["launches"]["first"]) == ([1, 2], [0, 1, 1])
    assert [(kind["kernel"], kind["dim"]) for kind in forked["launches"]["kinds"]] == [("one", [2])]
    assert all(process["launches"]["complete"] for process in (first, forked, child))
    summary = outcome.document["summary"]
    assert (summary["builds_cold"], summary["builds_warm"], summary["cache_reused"]) == (3, 0, True)
    assert (summary["ceiling"]["builds"], summary["ceiling"]["remaining"]) == (3, 2)
    assert summary["source_bytes"] > 3 * 2000
    assert summary["module_work"]["median"] >= summary["native"]["median"] > 0
    assert summary["compile_elapsed"]["median"] == pytest.approx(sample["cold"]["wall"] - sample["warm"]["wall"])
    assert "2 of 3 builds would remain if each module were built once" in outcome.err
    assert "and none was launched: see `warplint rule NVW307`" in outcome.err


LAUNCHES = """\
import os
import warp as wp

wp.config.kernel_cache_dir = os.path.expanduser("~/.cache/warp")  # this is about launches, not about builds

@wp.kernel
def scale(x: wp.array(dtype=float)):
    x[wp.tid()] = x[wp.tid()] * 2.0

x = wp.ones(4, dtype=float, device="cpu", requires_grad=True)
wp.launch(kernel=scale, dim=[4], inputs=[x], device="cpu", block_dim=64)
wp.launch(scale, 4, [x], [], [], [], "cpu")
with wp.ScopedDevice("cpu"):
    wp.launch(scale, dim=(4,), inputs=(x,))
prepared = wp.launch(scale, dim=4, inputs=[x], device="cpu", record_cmd=True)
prepared.launch()
with wp.ScopedCapture(device="cpu") as capture:
    wp.launch(scale, dim=2, inputs=[x], device="cpu")
wp.capture_launch(capture.graph)
with wp.Tape() as tape:
    wp.launch(scale, dim=1, inputs=[x], device="cpu")
tape.backward(grads={x: wp.ones_like(x)})
try:
    wp.launch(scale, dim=4, inputs=[], device="cpu")
except RuntimeError:
    print("refused", flush=True)
os._exit(0)
"""


@pytest.mark.warp
def test_launches_are_the_work_however_they_are_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "prog.py").write_text(LAUNCHES)
    command = invocation(["python", str(tmp_path / "prog.py")], sys.executable)
    (process,) = observe(command, str(tmp_path / "cache"), Limits(300.0)).processes
    assert capfd.readouterr().out.endswith("refused\n")
    work = process.workload
    assert work is not None
    assert work.complete
    found = [(kind.kernel, kind.dim, kind.adjoint, count) for kind, count in zip(work.kinds, work.counts, strict=True)]
    assert found == [
        ("scale", (4,), False, 5),
        ("scale", (2,), False, 1),
        ("(graph)", (), False, 1),
        ("scale", (1,), False, 1),
        ("scale", (1,), True, 1),
    ]
    assert {(kind.device, kind.arrays) for kind in work.kinds if kind.arrays} == {("cpu", ("float32[1]",))}


KERNEL = """\
import warp as wp

{before}
wp.config.optimization_level = 0

@wp.kernel
def one(x: wp.array(dtype=float)):
    x[wp.tid()] = {value}

{after}
wp.launch(one, dim=4, inputs=[wp.zeros(4, dtype=float, device="cpu")], device="cpu")
"""


@pytest.mark.slow
@pytest.mark.warp
@pytest.mark.parametrize(
    ("before", "after", "value", "told"),
    [
        ("", "wp.clear_kernel_cache()", "1.0", "the kernel cache was cleared by `clear_kernel_cache()` (prog.py:10)"),
        ("wp.config.cache_kernels = False", "", "1.0", "`wp.config.cache_kernels` is off"),
        ("import time\nNOW = time.time() % 1.0", "", "NOW", "from run to run, `one` has `NOW` = "),
        (
            "import shutil, os",
            "wp.init()\nshutil.rmtree(wp.config.kernel_cache_dir)\nos.makedirs(wp.config.kernel_cache_dir)",
            "1.0",
            "the kernel cache was cleared by removing its folder (prog.py:11)",
        ),
    ],
)
def test_a_cache_that_is_not_reused(measured, tmp_path: Path, before: str, after: str, value: str, told: str) -> None:
    (tmp_path / "prog.py").write_text(KERNEL.format(before=before, after=after, value=value))
    outcome = measured("python", "prog.py")
    assert outcome.status == 0
    assert "the cache is not reused: the warm run built 1 of 1 module again" in outcome.err
    assert told in outcome.err
    assert outcome.document is not None
    assert outcome.document["summary"]["cache_reused"] is False


@pytest.mark.slow
@pytest.mark.warp
def test_measurements_that_are_compared(measured, tmp_path: Path) -> None:
    fixed = KERNEL.format(before="wp.config.enable_backward = False", after="", value="1.0")
    (tmp_path / "prog.py").write_text(KERNEL.format(before="", after="", value="1.0"))
    measured("prog.py")
    (tmp_path / "measured.json").rename(tmp_path / "before.json")
    (tmp_path / "prog.py").write_text(fixed)
    measured("python", "-m", "prog")
    command = [sys.executable, "-m", "warplint", "builds", "compare", "before.json", "measured.json"]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment(tmp_path / "installed"))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.startswith("improvement: bytes of generated source went down")


@pytest.mark.slow
@pytest.mark.warp
def test_pytest_is_a_command_like_any_other(measured, tmp_path: Path) -> None:
    source = KERNEL.format(before="", after="", value="1.0").replace("wp.launch", "def test_it():\n    wp.launch")
    (tmp_path / "test_it.py").write_text(source)
    outcome = measured("pytest", "-q", "-p", "no:cacheprovider", "test_it.py")
    assert outcome.status == 0, outcome.err
    assert outcome.out.count("1 passed") == 2
    assert "nothing is built redundantly here" in outcome.err

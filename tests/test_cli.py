"""The command line, as a shell sees it: words in, streams and exit status out."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from warplint import __version__, cli

ROOT = Path(__file__).parent.parent

BROKEN = "def f(:\n    pass\n"
RIGHT = "x = 1\n"

SWAP = """\
import warp as wp


@wp.kernel
def step(q: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = q[i] + 0.1 * wp.sin(q[i])


@wp.kernel
def total(q: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, q[i])


def main():
    start = wp.full(8, 0.5, dtype=float, requires_grad=True)
    a = wp.zeros(8, dtype=float, requires_grad=True)
    b = wp.zeros(8, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(step, dim=8, inputs=[start], outputs=[a])
        for _ in range(4):
            wp.launch(step, dim=8, inputs=[a], outputs=[b])
            a, b = b, a
        wp.launch(total, dim=8, inputs=[a], outputs=[loss])
    tape.backward(loss)
    print(start.grad.numpy())


if __name__ == "__main__":
    main()
"""


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    return tmp_path


@pytest.fixture
def warplint(here, capsys):
    """Runs the command line in this process; gives status, stdout, stderr."""

    def run(*words: str) -> tuple[int, str, str]:
        try:
            status = cli.main(list(words))
        except SystemExit as left:
            status = int(left.code or 0)
        out, err = capsys.readouterr()
        return status, out, err

    return run


def started(*words: str, cwd: Path, **options) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **options.pop("env", {})}
    command = [sys.executable, "-m", "warplint", *words]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, **options)


def test_nothing_to_report(warplint, here) -> None:
    (here / "a.py").write_text(RIGHT)
    assert warplint("a.py") == (0, "No findings in 1 file.\n", "")
    assert warplint("check", ".") == (0, "No findings in 1 file.\n", "")
    assert warplint() == (0, "No findings in 1 file.\n", "")


def test_findings_are_status_1(warplint, here) -> None:
    (here / "a.py").write_text(BROKEN)
    status, out, err = warplint("a.py")
    assert (status, err) == (1, "")
    assert "warning[NVW900] unreadable: syntax error" in out
    assert warplint("a.py", "--exit-zero")[0] == 0


def test_a_fault_is_found_with_all_its_places(warplint, here) -> None:
    (here / "train.py").write_text(SWAP)
    status, out, _ = warplint("train.py")
    assert status == 1
    assert "warning[NVW101] ping-pong: " in out
    assert " --> train.py:25:" in out
    assert "24 |             wp.launch(step, dim=8, inputs=[a], outputs=[b])" in out
    assert "----" in out
    document = json.loads(warplint("train.py", "--format", "json")[1])
    (finding,) = document["findings"]
    assert (finding["code"], finding["name"], finding["line"]) == ("NVW101", "ping-pong", 25)
    assert (finding["path"], finding["source"], finding["verdict"]) == ("train.py", "static", None)
    assert finding["labels"]


def test_selection_and_severity(warplint, here) -> None:
    (here / "train.py").write_text(SWAP)
    assert warplint("train.py", "--ignore", "ping-pong")[0] == 0
    assert warplint("train.py", "--select", "NVW2,NVW3")[0] == 0
    assert warplint("train.py", "--select", "NVW2", "--extend-select", "NVW101")[0] == 1
    assert warplint("train.py", "--per-file-ignores", "*.py:NVW1")[0] == 0
    assert warplint("train.py", "--severity", "error")[0] == 0
    assert "1 below severity error not shown" in warplint("train.py", "--severity", "error")[1]


def test_suppressions_count_in_the_command_line(warplint, here) -> None:
    (here / "train.py").write_text(SWAP.replace("a, b = b, a", "a, b = b, a  # noqa: NVW101"))
    status, out, _ = warplint("train.py")
    assert (status, out) == (0, "No findings in 1 file; 1 suppressed.\n")
    (here / "train.py").write_text(SWAP.replace("range(4):", "range(4):  # noqa: NVW101"))
    _, out, _ = warplint("train.py", "--format", "concise")
    assert "train.py:23:29: NVW901 " in out


def test_every_setting_can_be_given_on_the_command_line(warplint) -> None:
    """Under the name that it has in ``pyproject.toml``, as the README says."""
    _, out, _ = warplint("--show-settings")
    shown = json.loads(out)
    names = {*shown, *shown["verify"]} - {"file", "verify"}
    options = cli.check_parser().format_help()
    assert [name for name in sorted(names) if f"--{name} " not in options and f"--{name}\n" not in options] == []


def test_the_version_that_rules_speak_of_can_be_named(warplint) -> None:
    _, out, _ = warplint("--show-settings", "--warp-version", "1.15")
    assert json.loads(out)["warp-version"] == "1.15"
    status, _, err = warplint("--show-settings", "--warp-version", "new")
    assert (status, "expected a version" in err) == (2, True)


def test_settings_of_the_project_hold_and_the_command_line_over_them(warplint, here) -> None:
    (here / "sub").mkdir()
    (here / "sub" / "train.py").write_text(SWAP)
    (here / "pyproject.toml").write_text('[tool.warplint]\nignore = ["NVW101"]\n')
    assert warplint("sub/train.py")[0] == 0
    assert warplint("sub/train.py", "--ignore", "NVW2")[0] == 1
    status, out, _ = warplint("sub", "--show-settings", "--severity", "info")
    shown = json.loads(out)
    assert status == 0
    assert (shown["ignore"], shown["severity"]) == (["NVW101"], "info")
    assert shown["file"] == str(here / "pyproject.toml")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["missing.py"], "missing.py: no such file or folder"),
        (["--select", "NVW1x"], "no rule has the code or name `NVW1x`"),
        (["--ignore", "pingpong"], "did you mean `ping-pong`?"),
        (["--per-file-ignores", "tests"], "expected PATTERN:CODE"),
        (["--time-limit", "-1"], "expected a number of seconds above 0"),
        (["--run", "python a.py"], "--run does nothing without --verify"),
        (["--device", "cpu"], "--device does nothing without --verify"),
        (["--time-limit", "9"], "--time-limit does nothing without --verify"),
        (["--python", "python3"], "--python does nothing without --verify"),
        (["--iterations", "3"], "--iterations does nothing without --verify"),
        (["--fail-on", "confirmed"], "--fail-on does nothing without --verify"),
        (["--verify", "--iterations", "0"], "expected a whole number above 0"),
        (["--severity", "loud"], "invalid choice"),
        (["--format", "html"], "invalid choice"),
        (["--jobs", "0"], "a number of processes above 0 is needed"),
        (["--no-such-option"], "unrecognized arguments"),
        (["-", "a.py"], "cannot be checked together"),
        (["-", "--verify"], "--verify needs a file to run"),
        (["a.py", "--output-file", "nowhere/report"], "nowhere/report: cannot be written"),
        (["rule", "NVW999"], "no rule has the code or name `NVW999`"),
        (["gradcheck"], "the command is missing"),
        (["gradcheck", "--"], "the command is missing"),
    ],
)
def test_a_wrong_use_is_status_2_and_one_line(warplint, here, words, told) -> None:
    (here / "a.py").write_text(RIGHT)
    status, out, err = warplint(*words)
    assert (status, out) == (2, "")
    assert told in err
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1 or "usage:" in err


def test_a_bad_setting_is_status_2_with_its_place(warplint, here) -> None:
    (here / "a.py").write_text(RIGHT)
    (here / "pyproject.toml").write_text("[tool.warplint]\nselct = []\n")
    status, out, err = warplint("a.py")
    assert (status, out) == (2, "")
    assert err == f"warplint: error: {here}/pyproject.toml: unknown setting `selct`; did you mean `select`?\n"


def test_no_python_files_is_status_0_and_a_line(warplint, here) -> None:
    (here / "empty").mkdir()
    (here / "empty" / "notes.txt").write_text("warp")
    status, out, err = warplint("empty")
    assert (status, out) == (0, "No findings in 0 files.\n")
    assert err == "warplint: no Python files in empty\n"


def test_notebooks_in_a_folder_are_passed_over_aloud(warplint, here) -> None:
    (here / "n.ipynb").write_text("{}")
    (here / "a.py").write_text(RIGHT)
    assert warplint(".")[2] == "warplint: 1 notebook not checked: name it, or set `notebooks`\n"


def test_bad_files_are_one_finding_each(warplint, here) -> None:
    (here / "broken.py").write_text(BROKEN)
    (here / "bytes.py").write_bytes(b"x = '\xff'\n")
    (here / "empty.py").write_text("")
    (here / "null.py").write_bytes(b"x = 1\0\n")
    (here / "imports.py").write_text("import warp as wp\nimport no_such_module\nfrom . import nothing\nnothing.f()\n")
    status, out, _ = warplint(".", "--format", "json")
    found = [(finding["path"], finding["line"], finding["code"]) for finding in json.loads(out)["findings"]]
    assert status == 1
    assert found == [("broken.py", 1, "NVW900"), ("bytes.py", 1, "NVW900"), ("null.py", 1, "NVW900")]


def test_nothing_of_the_users_is_changed(warplint, here) -> None:
    (here / "train.py").write_text(SWAP)
    (here / "broken.py").write_text(BROKEN)
    before = {path: path.read_bytes() for path in here.iterdir()}
    warplint(".")
    after = {path: path.read_bytes() for path in here.iterdir() if path.name != ".warplint_cache"}
    assert after == before


def test_standard_input(warplint, here, monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SWAP.encode())))
    status, out, _ = warplint("-", "--stdin-filename", "pkg/train.py", "--format", "concise")
    assert status == 1
    assert out.startswith("pkg/train.py:25:")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BROKEN.encode())))
    assert warplint("-", "--format", "concise")[1].startswith("<stdin>:1:")


def test_standard_input_that_is_excluded(warplint, here, monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SWAP.encode())))
    assert warplint("-", "--stdin-filename", "build/train.py", "--force-exclude")[0] == 0


def test_the_report_goes_to_a_file(warplint, here) -> None:
    (here / "a.py").write_text(BROKEN)
    assert warplint("a.py", "--format", "json", "--output-file", "report.json") == (1, "", "")
    assert json.loads((here / "report.json").read_text())["findings"][0]["code"] == "NVW900"


def test_statistics(warplint, here) -> None:
    (here / "train.py").write_text(SWAP)
    lines = warplint("train.py", "--statistics", "--format", "concise")[1].splitlines()
    assert "     1  NVW101  ping-pong" in lines
    assert "     1  files with traces" in lines
    assert json.loads(warplint("train.py", "--statistics", "--format", "json")[1])["statistics"]["files"] == 1


def test_cached_results_are_the_same(warplint, here) -> None:
    (here / "pyproject.toml").write_text("[tool.warplint]\n")
    (here / "train.py").write_text(SWAP)
    cold = warplint("train.py", "--format", "json")
    assert list((here / ".warplint_cache").glob("*/*.json"))
    assert warplint("train.py", "--format", "json") == cold
    assert warplint("train.py", "--format", "json", "--no-cache") == cold


def test_rules_are_listed_and_shown(warplint) -> None:
    status, out, _ = warplint("rule")
    assert status == 0
    assert [line.split()[:2] for line in out.splitlines()[:1]] == [["NVW101", "ping-pong"]]
    page = warplint("rule", "ping-pong")[1]
    assert page.startswith("# ping-pong (NVW101)\n")
    assert warplint("rule", "NVW101")[1] == page
    everything = warplint("rule", "--all")[1]
    assert "# unreadable (NVW900)" in everything
    assert "# unused-suppression (NVW901)" in everything
    declared = json.loads(warplint("rule", "--format", "json")[1])
    assert {"code", "name", "summary", "group", "severity", "experiment", "since", "documentation"} == set(declared[0])


def test_version_and_help(warplint) -> None:
    assert warplint("--version") == (0, f"warplint {__version__}\n", "")
    assert "exit status:" in warplint("--help")[1]


def test_an_error_of_ours_is_status_2(warplint, here, monkeypatch) -> None:
    from warplint import commands

    def fail(*_: object) -> int:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(commands, "check", fail)
    status, _, err = warplint("a.py")
    assert status == 2
    assert err.startswith("warplint: internal error: ZeroDivisionError: oh (test_cli.py:")


def test_python_dash_m_and_a_name_that_the_terminal_cannot_show(here) -> None:
    (here / "größe.py").write_text(BROKEN)
    done = started(".", cwd=here, env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert (done.returncode, done.stderr) == (1, "")
    assert "gr\\xf6\\xdfe.py:1:" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX pipes")
def test_a_reader_that_leaves_is_no_traceback(here) -> None:
    for number in range(300):
        (here / f"broken_{number}.py").write_text(BROKEN)
    command = [sys.executable, "-m", "warplint", ".", "--jobs", "1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=here, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == ""


def test_an_interruption_is_one_line(warplint, here, monkeypatch) -> None:
    from warplint import commands

    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "check", interrupted)
    assert warplint("a.py") == (130, "", "warplint: interrupted\n")

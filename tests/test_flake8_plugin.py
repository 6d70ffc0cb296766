"""The plugin inside a real flake8: found, positioned, silenced, and never the end of flake8."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest
from installed import environment

from warplint.flake8_plugin import Plugin

pytest.importorskip("flake8")

INPLACE = """\
import warp as wp


@wp.kernel
def normalise(x: wp.array(dtype=float), s: wp.array(dtype=float)):
    i = wp.tid()
    x[i] *= s[0]


@wp.kernel
def fill(p: wp.array(dtype=float), x: wp.array(dtype=float), s: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = p[i] * 2.0
    wp.atomic_add(s, 0, p[i])


@wp.kernel
def total(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    wp.atomic_add(loss, 0, x[wp.tid()])


def main():
    p = wp.full(8, 0.5, dtype=float, requires_grad=True)
    x = wp.zeros(8, dtype=float, requires_grad=True)
    s = wp.zeros(1, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(fill, dim=8, inputs=[p], outputs=[x, s])
        wp.launch(normalise, dim=8, inputs=[x, s])
        wp.launch(total, dim=8, inputs=[x], outputs=[loss])
    tape.backward(loss)
    return p.grad.numpy()


main()
"""


@pytest.fixture
def flake8(tmp_path):
    """Runs flake8 with our codes alone; gives status, lines, stderr."""
    work = tmp_path / "work"
    work.mkdir()
    variables = environment(tmp_path / "metadata")

    def run(*words: str, files: dict[str, str], stdin: str | None = None) -> tuple[int, list[str], str]:
        for name, text in files.items():
            path = work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "flake8", "--isolated", "--select=NVW", *words]
        done = subprocess.run(command, cwd=work, env=variables, capture_output=True, text=True, input=stdin)
        return done.returncode, done.stdout.splitlines(), done.stderr

    return run


def test_flake8_lists_the_plugin(flake8) -> None:
    assert "warplint: 0." in flake8("--version", files={})[1][0]


def test_line_column_and_code(flake8) -> None:
    status, lines, err = flake8("train.py", files={"train.py": INPLACE})
    assert (status, err) == (1, "")
    assert len(lines) == 1
    assert lines[0].startswith("train.py:7:5: NVW201 inplace-mul: ")


def test_several_files_in_several_processes(flake8) -> None:
    files = {f"train_{number}.py": INPLACE for number in range(4)}
    _, lines, _ = flake8("--jobs", "2", *files, files=files)
    assert sorted(line.split(":")[0] for line in lines) == sorted(files)


def test_standard_input(flake8) -> None:
    _, lines, _ = flake8("--stdin-display-name", "train.py", "-", files={}, stdin=INPLACE)
    assert [line.split(" ")[0] for line in lines] == ["train.py:7:5:"]


@pytest.mark.parametrize(
    ("comment", "options", "count"),
    [
        ("# noqa: NVW201", [], 0),
        ("# noqa", [], 0),
        ("# noqa: NVW101", [], 1),
        ("# noqa: NVW201", ["--disable-noqa"], 1),
        ("# warplint: ignore[inplace-mul] measured", [], 0),
        ("# warplint: ignore[NVW201]", ["--disable-noqa"], 0),
    ],
)
def test_comments(flake8, comment: str, options: list[str], count: int) -> None:
    text = INPLACE.replace("x[i] *= s[0]", f"x[i] *= s[0]  {comment}")
    assert len(flake8("train.py", *options, files={"train.py": text})[1]) == count


def test_settings_of_the_project(flake8) -> None:
    table = '[tool.warplint]\nextend-exclude = ["gen"]\n[tool.warplint.per-file-ignores]\n"tests/*" = ["NVW2"]\n'
    files = {"pyproject.toml": table, "a.py": INPLACE, "tests/b.py": INPLACE, "gen/c.py": INPLACE}
    _, lines, _ = flake8(".", files=files)
    assert [line.split(":")[0] for line in lines] == ["./a.py"]
    files["pyproject.toml"] = '[tool.warplint]\nseverity = "error"\n'
    assert flake8(".", files=files)[1] == []


def test_a_bad_setting_is_one_finding_and_no_crash(flake8) -> None:
    files = {"pyproject.toml": "[tool.warplint]\nselct = []\n", "a.py": INPLACE, "b.py": "x = 1\n"}
    status, lines, err = flake8(".", files=files)
    assert (status, err) == (1, "")
    assert len(lines) == 1
    assert lines[0].startswith("./a.py:1:1: NVW900 unreadable: ")
    assert "unknown setting `selct`" in lines[0]


def test_broken_files_are_flake8s_own_business(flake8) -> None:
    status, lines, err = flake8("a.py", "--extend-select=E9", files={"a.py": "import warp\ndef f(:\n"})
    assert (status, err) == (1, "")
    assert [line.split(" ")[1] for line in lines] == ["E999"]


def test_a_failure_of_ours_is_one_finding(monkeypatch) -> None:
    from warplint import flake8_file

    def fail(*_: object) -> list[tuple[int, int, str]]:
        raise ValueError("a\nb")

    monkeypatch.setattr(flake8_file, "found", fail)
    ((line, column, text, kind),) = Plugin(ast.parse("import warp"), "a.py", ["import warp\n"]).run()
    assert (line, column, kind) == (1, 0, Plugin)
    assert text == "NVW900 unreadable: warplint failed on this file (ValueError: a b); please report it"


def test_the_program_is_never_run(flake8, tmp_path) -> None:
    text = INPLACE + f"\nopen({str(tmp_path / 'ran')!r}, 'w')\n"
    flake8("train.py", files={"train.py": text})
    assert not (tmp_path / "ran").exists()


def test_a_file_without_warp_imports_nothing_of_ours(tmp_path) -> None:
    code = (
        "import ast, sys\n"
        "from warplint.flake8_plugin import Plugin\n"
        "lines = ['x = 1\\n'] * 1000\n"
        "assert list(Plugin(ast.parse(''.join(lines)), 'a.py', lines).run()) == []\n"
        "print(sorted(name for name in sys.modules if name.startswith('warplint')), 'libcst' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "['warplint', 'warplint.flake8_plugin'] False\n"

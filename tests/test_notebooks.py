"""Notebooks: their code cells as one module, magics blanked, and places told by cell."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from programs import PRELUDE

from warplint import cli
from warplint.config import Settings
from warplint.lint import lint
from warplint.notebook import NotANotebook, python_of
from warplint.report.cells import in_cells
from warplint.report.model import Report
from warplint.source import read

Run = Callable[..., tuple[int, str, str]]

TEXT = "markdown"
LAUNCHES = """\
%%time
y, l = zer(), zer(1)
tape = wp.Tape()
with tape:
    for _ in range(3):
        wp.launch({kernel}, dim=3, inputs=[x, y])
        x, y = y, x
    wp.launch(ssq, dim=3, inputs=[x, l])
"""
AFTER = "!nvidia-smi\ntape.backward(l)\nwp.utils?\nstart.grad"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    return tmp_path


@pytest.fixture
def warplint(here: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command line in this process; gives status, stdout, stderr."""

    def run(*words: str) -> tuple[int, str, str]:
        status = cli.main(list(words))
        return status, *capsys.readouterr()

    return run


def notebook(*cells: str | tuple[str, str], language: str = "python") -> bytes:
    """A notebook of code cells; a pair is a cell of another type."""
    rows = []
    for cell in cells:
        kind, source = cell if isinstance(cell, tuple) else ("code", cell)
        rows.append({"cell_type": kind, "metadata": {}, "source": source.splitlines(keepends=True)})
    metadata = {"language_info": {"name": language}}
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": rows}).encode()


def program(kernel: str) -> bytes:
    """A loop that uses two buffers in turn, told over four code cells."""
    return notebook(
        (TEXT, "# Rollout"),
        "%matplotlib inline\n" + PRELUDE,
        "start = x = arr([0.1, 0.2, 0.3])",
        (TEXT, "with a tape"),
        LAUNCHES.format(kernel=kernel),
        AFTER,
    )


def test_a_fault_across_cells_is_found_and_told_by_cell(here: Path) -> None:
    (here / "rollout.ipynb").write_bytes(program("nl"))
    report = Report(lint(["rollout.ipynb"], Settings(here)).findings, 1, "1.19")
    (told,) = in_cells(report, lambda path: read(path).cells).findings
    assert (told.code, told.span.path, told.span.cell, told.span.line) == ("NVW101", "rollout.ipynb", 5, 7)
    assert told.span.file == "rollout.ipynb:cell 5"
    assert {(label.span.cell, label.span.line) for label in told.labels} == {(2, 34), (2, 37), (5, 3), (5, 6), (6, 2)}


def test_a_linear_loop_over_cells_stays_silent(tmp_path: Path) -> None:
    (tmp_path / "rollout.ipynb").write_bytes(program("lin"))
    assert lint([str(tmp_path / "rollout.ipynb")], Settings(tmp_path)).findings == ()


def test_reports_name_cells_and_leave_the_notebook_as_it_is(warplint: Run, here: Path) -> None:
    (here / "rollout.ipynb").write_bytes(program("nl"))
    before = (here / "rollout.ipynb").read_bytes()
    status, out, _ = warplint("rollout.ipynb", "--format", "concise")
    assert (status, out.splitlines()[0].split(" NVW101")[0]) == (1, "rollout.ipynb:cell 5:7:9:")
    _, out, _ = warplint("rollout.ipynb", "--format", "json")
    (finding,) = json.loads(out)["findings"]
    assert (finding["path"], finding["cell"], finding["line"], finding["column"]) == ("rollout.ipynb", 5, 7, 9)
    _, out, _ = warplint("rollout.ipynb")
    assert "--> rollout.ipynb:cell 5:7:9" in out
    assert "7 |         x, y = y, x" in out
    assert "::: rollout.ipynb:cell 6:2:1" in out
    warplint("rollout.ipynb", "--fix", "--unsafe-fixes")
    warplint("rollout.ipynb", "--add-ignore")
    assert (here / "rollout.ipynb").read_bytes() == before


def test_a_message_counts_its_lines_in_the_cell(warplint: Run, here: Path) -> None:
    swapped = LAUNCHES.format(kernel="nl").replace("        x, y = y, x\n", "")
    overwritten = swapped.replace("in range(3):\n", "in range(3):\n        wp.copy(x, y)\n")
    (here / "rollout.ipynb").write_bytes(notebook(PRELUDE, "start = x = arr([0.1, 0.2, 0.3])", overwritten, AFTER))
    _, out, _ = warplint("rollout.ipynb", "--format", "json")
    (finding,) = json.loads(out)["findings"]
    assert (finding["cell"], finding["line"]) == (3, 6)
    assert any("of the loop at cell 3, line 5" in label["text"] for label in finding["labels"]), finding


@pytest.mark.warp
def test_a_notebook_is_run_in_its_folder_and_judged_by_cell(warplint: Run, here: Path) -> None:
    folder = here / "notes"
    folder.mkdir()
    (folder / "start.txt").write_text("0.1 0.2 0.3")
    (folder / "scale.py").write_text("FACTOR = 1.5\n")
    cells = (
        PRELUDE,
        "from scale import FACTOR\nstart = x = arr(FACTOR * np.loadtxt('start.txt'))\ndisplay(start)",
        LAUNCHES.format(kernel="nl"),
        AFTER.replace("start.grad", "print(start.grad.numpy())"),
    )
    (folder / "rollout.ipynb").write_bytes(notebook((TEXT, "# Rollout"), *cells))
    status, out, err = warplint("--verify", "notes/rollout.ipynb", "--format", "json", "--keep", "kept")
    told = json.loads(out)
    (finding,) = told["findings"]
    assert (status, finding["code"], finding["cell"], finding["line"]) == (1, "NVW101", 4, 7), err
    assert finding["verdict"]["status"] == "confirmed"
    wrong = next(each for each in told["gradients"] if each["leaf"] == "start")
    assert (wrong["path"], wrong["cell"], wrong["line"]) == ("notes/rollout.ipynb", 2, 33)
    assert (wrong["backward_cell"], wrong["backward_line"], wrong["status"]) == (5, 2, "fail")
    (script,) = (here / "kept").glob("*_fail.py")
    again = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert "the tape's slope" in again.stdout, again.stderr


@pytest.mark.warp
def test_what_jupyter_runs_is_run(warplint: Run, here: Path) -> None:
    cells = (
        "import asyncio\nget_ipython().run_line_magic('matplotlib', 'inline')\npaged = 1\n\x0c\nmore = '\u2028'",
        PRELUDE,
        "await asyncio.sleep(0)\nstart = x = arr([0.1, 0.2, 0.3])",
        LAUNCHES.format(kernel="nl"),
        "%time tape.backward(l)\nslopes = %time start.grad.numpy()\nprint(slopes)",
    )
    (here / "rollout.ipynb").write_bytes(notebook(*cells))
    status, out, err = warplint("--verify", "rollout.ipynb", "--format", "json")
    told = json.loads(out)
    (finding,) = told["findings"]
    assert (status, finding["code"], finding["cell"], finding["line"]) == (1, "NVW101", 4, 7), err
    assert finding["verdict"]["status"] == "confirmed"


def test_a_file_that_is_no_notebook_cannot_be_run(warplint: Run, here: Path) -> None:
    (here / "empty.ipynb").write_text("{}")
    status, out, _ = warplint("gradcheck", "--", "empty.ipynb")
    assert status == 2
    assert "empty.ipynb: the file is no notebook" in out


def test_comments_in_cells_silence_what_is_found_there(tmp_path: Path) -> None:
    silenced = LAUNCHES.format(kernel="nl").replace("x, y = y, x", "x, y = y, x  # noqa: NVW101")
    (tmp_path / "quiet.ipynb").write_bytes(notebook(PRELUDE, "start = x = arr([0.1])", silenced, AFTER))
    assert lint([str(tmp_path / "quiet.ipynb")], Settings(tmp_path)).findings == ()


@pytest.mark.parametrize(
    ("cell", "python"),
    [
        ("%load_ext autoreload\nx = 1", "pass\nx = 1\n"),
        ("%%bash\nrm -r x", "\n\n"),
        ("%%timeit -n 3\nx = 1", "\nx = 1\n"),
        ("if x:\n    !pip install x\n    y = 1", "if x:\n    pass\n    y = 1\n"),
        ("files = !ls\nfor f in files: pass", "files = None\nfor f in files: pass\n"),
        ("?wp.launch\nwp.launch??", "pass\npass\n"),
        ("x = (a\n  % b)", "x = (a\n  % b)\n"),
        ("text = '''\n%no magic\n'''", "text = '''\n%no magic\n'''\n"),
        ("x = 1\r\ny = 2\r\n", "x = 1\ny = 2\n"),
    ],
)
def test_what_is_not_python_becomes_an_empty_statement_of_its_line(cell: str, python: str) -> None:
    assert python_of(notebook(cell))[0] == python


def test_cells_keep_their_numbers_and_lines() -> None:
    text, cells = python_of(notebook((TEXT, "a\nb"), "x = 1\ny = 2", "", ("raw", "no"), "z = 3"))
    assert text == "x = 1\ny = 2\nz = 3\n"
    assert [cells.place(line) for line in (1, 2, 3)] == [(2, 1), (2, 2), (5, 1)]
    assert cells.lines_of(2, tuple(text.splitlines())) == ("x = 1", "y = 2")


def test_other_languages_and_other_files() -> None:
    assert python_of(notebook("x <- 1", language="R"))[0] == ""
    for data in (b"", b"[]", b'{"worksheets": []}', b"\xff"):
        with pytest.raises(NotANotebook, match="no notebook"):
            python_of(data)


def test_a_broken_notebook_or_cell_is_one_finding_at_its_place(warplint: Run, here: Path) -> None:
    (here / "broken.ipynb").write_text("{")
    (here / "cell.ipynb").write_bytes(notebook("import warp as wp", "x = (1"))
    _, out, _ = warplint("broken.ipynb", "cell.ipynb", "--format", "concise")
    first, second, *_ = out.splitlines()
    assert first.startswith("broken.ipynb:1:1: NVW900 the file is no notebook")
    assert second.startswith("cell.ipynb:cell 2:1:5: NVW900")

"""``--verify`` and ``gradcheck`` from the command line: what is said of programs that cannot be judged, the status."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from warplint import cli

pytest.importorskip("warp")
pytestmark = pytest.mark.warp

FIXTURES = Path(__file__).parent.parent / "fixtures"

PROGRAMS = {
    "raises.py": "tape = wp.Tape()\nraise ValueError('oh no')\n",
    "exits.py": "import sys\ntape = wp.Tape()\nsys.exit(3)\n",
    "hangs.py": "import time\ntape = wp.Tape()\nwhile True:\n    time.sleep(0.1)\n",
    "device.py": "tape = wp.Tape()\nwp.init()\nwp.zeros(3, dtype=float, device='cuda:7')\n",
    "imports.py": "import no_such_module\ntape = wp.Tape()\n",
    "tapeless.py": "if __name__ == '__main__':\n    print('hello')\n",
    "library.py": "def f():\n    return wp.zeros(3, dtype=float)\n",
}


@pytest.fixture
def warplint(tmp_path, monkeypatch, capsys):
    """Runs the command line on the CPU, where the programs above lie; gives status, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    for name, text in PROGRAMS.items():
        Path(name).write_text(f"import warp as wp\n{text}")

    def run(*words: str) -> tuple[int, str, str]:
        try:
            status = cli.main([words[0], "--python", sys.executable, *words[1:]])
        except SystemExit as left:
            status = int(left.code or 0)
        out, err = capsys.readouterr()
        return status, out, err

    return run


@pytest.mark.parametrize(
    ("name", "status", "told"),
    [
        ("raises.py", 2, "raised: ValueError: oh no (raises.py:3)"),
        ("exits.py", 2, "exit 3"),
        ("hangs.py", 2, "hangs.py:5"),
        ("device.py", 2, "needs a device that is not here"),
        ("imports.py", 2, "No module named 'no_such_module'"),
        ("tapeless.py", 0, "no tape ran backward: there is no gradient to check"),
        ("library.py", 0, "nothing was run: no program among these files"),
    ],
)
def test_a_program_that_cannot_be_judged_is_one_line(warplint, name, status, told) -> None:
    left, out, _ = warplint("check", "--verify", "--time-limit", "6", name)
    assert left == status, out
    assert sum(told in line for line in out.splitlines()) == 1
    assert "Traceback" not in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--run", "ls | wc"], "needs a shell"),
        (["--run", "python -m"], "something must follow -m"),
        (["--python", "/nowhere/python"], "there is no Python interpreter /nowhere/python"),
    ],
)
def test_a_command_that_cannot_be_run_is_one_line(warplint, words, told) -> None:
    status, out, _ = warplint("check", "--verify", "raises.py", *words)
    assert status == 2
    assert sum(told in line for line in out.splitlines()) == 1


def test_json_is_complete_when_a_program_cannot_be_judged(warplint) -> None:
    status, out, err = warplint("check", "--verify", "--format", "json", "raises.py")
    document = json.loads(out)
    assert status == 2
    assert [program["problem"] for program in document["programs"]] == ["raised: ValueError: oh no (raises.py:3)"]
    assert "running python raises.py" in err


def test_a_confirmed_fault_is_status_1_and_its_comment_silences_it(warplint) -> None:
    source = FIXTURES / "ping-pong" / "bad_nonlinear_rod.py"
    shutil.copy(source, "rod.py")
    status, out, _ = warplint("check", "--verify", "--device", "cpu", "rod.py", "--format", "json")
    (finding,) = json.loads(out)["findings"]
    assert status == 1
    assert (finding["severity"], finding["verdict"]["status"]) == ("error", "confirmed")
    assert finding["verdict"]["figures"]["ad"] != finding["verdict"]["figures"]["fd"]
    text = source.read_text().replace("# expect: NVW101 confirmed", "# warplint: ignore[NVW101] known")
    Path("rod.py").write_text(text)
    status, out, _ = warplint("check", "--verify", "--device", "cpu", "rod.py")
    assert status == 0, out
    assert "1 suppressed" in out


WRONG_ADJOINT = """\
import warp as wp

@wp.func
def cube(x: float, handle: wp.uint64):
    return x * x * x

@wp.func_grad(cube)
def adj_cube(x: float, handle: wp.uint64, adj: float):
    wp.adjoint[x] += 2.0 * x * x * adj

@wp.kernel
def total(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    wp.atomic_add(loss, 0, cube(x[wp.tid()], wp.uint64(1)))

x = wp.array([0.5, 1.5], dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(total, dim=2, inputs=[x, loss])
tape.backward(loss)
print(x.grad.numpy())
"""


def test_a_wrong_gradient_that_no_finding_explains_is_status_1(warplint) -> None:
    """The adjoint is wrong, but what takes a handle cannot be called on inputs made for it."""
    Path("cube.py").write_text(WRONG_ADJOINT)
    status, out, _ = warplint("check", "--verify", "--device", "cpu", "--format", "github", "cube.py")
    assert status == 1, out
    assert "::error file=cube.py,line=15,title=wrong gradient::gradient of `x` (cube.py:15) is wrong: AD" in out


def test_gradcheck_judges_a_whole_program(warplint) -> None:
    wrong, right = (FIXTURES / "ping-pong" / name for name in ("bad_nonlinear_rod.py", "good_linear_diffusion.py"))
    status, out, _ = warplint("gradcheck", "--device", "cpu", "--", "python", str(wrong))
    assert status == 1, out
    assert "is wrong: AD" in out
    status, out, _ = warplint("gradcheck", "--device", "cpu", "--", "python", str(right))
    assert status == 0, out
    assert "agrees with finite differences" in out


ROOT = """\
@wp.kernel
def distances(squares: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, wp.sqrt(squares[i]))


squares = wp.array([0.0, 1.0, 2.0, 3.0], dtype=float, device="cpu", requires_grad=True)
loss = wp.zeros(1, dtype=float, device="cpu", requires_grad=True)
with wp.Tape() as tape:
    wp.launch(distances, dim=4, inputs=[squares, loss], device="cpu")
tape.backward(loss)
print(squares.grad.numpy())
"""


def test_a_gradient_that_is_infinite_where_the_slope_is_confirms_the_point(warplint) -> None:
    Path("root.py").write_text(f"import warp as wp\n{ROOT}")
    status, out, _ = warplint("--verify", "root.py", "--format", "json")
    (finding,) = json.loads(out)["findings"]
    assert (status, finding["code"], finding["verdict"]["status"]) == (1, "NVW205", "confirmed")

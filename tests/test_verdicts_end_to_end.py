"""Programs started in every ordinary way, and programs that go wrong, through the whole tool with the real engine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from warplint.config import Settings, VerifySettings
from warplint.discovery import discover
from warplint.finding import Finding, Severity, Status
from warplint.lint import lint
from warplint.report.model import Verification
from warplint.verify.session import verify

pytestmark = pytest.mark.warp

SWAP = """\
import sys
import warp as wp

@wp.kernel
def advance(q: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = q[i] + 0.4 * wp.sin(q[i])

@wp.kernel
def total(q: wp.array(dtype=float), loss: wp.array(dtype=float)):
    wp.atomic_add(loss, 0, q[wp.tid()] * q[wp.tid()])

def main():
    a = wp.array([0.5, 0.9], dtype=float, requires_grad=True, device="cpu")
    b = wp.zeros(2, dtype=float, requires_grad=True, device="cpu")
    loss = wp.zeros(1, dtype=float, requires_grad=True, device="cpu")
    first = a
    with wp.Tape() as tape:
        for _ in range(4):
            wp.launch(advance, dim=2, inputs=[a], outputs=[b], device="cpu")
            a, b = b, a
        wp.launch(total, dim=2, inputs=[a], outputs=[loss], device="cpu")
    tape.backward(loss)
    return first.grad.numpy()
"""
GUARD = 'if __name__ == "__main__" and "--go" in sys.argv:\n    main()\n'

LONE = """\
import warp as wp

@wp.kernel
def shade(s: wp.array(dtype=float), x: wp.array(dtype=float)):
    x[wp.tid()] *= s[wp.tid()]

@wp.kernel
def total(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    wp.atomic_add(out, 0, x[wp.tid()])

def train():
    s = wp.array([0.5, 0.7], dtype=float, requires_grad=True)
    x = wp.array([2.0, 3.0], dtype=float, requires_grad=True)
    out = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(shade, dim=2, inputs=[s, x])
        wp.launch(total, dim=2, inputs=[x], outputs=[out])
    tape.backward(out)

if __name__ == "__main__":
    print("nothing today")
"""


@pytest.fixture
def verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write files, lint and verify a path among them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")

    def run(files: dict[str, str], path: str, **options: object) -> Verification:
        for name, text in files.items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        settings = Settings(root=tmp_path, verify=VerifySettings(python=sys.executable, **options))  # type: ignore[arg-type]
        found = discover([path], settings)
        return verify(lint(found.files, settings).selected, found, settings, lambda text, seconds=0.0: None)

    return run


def confirmed(result: Verification) -> list[tuple[str, str]]:
    def is_confirmed(finding: Finding) -> bool:
        return finding.verdict is not None and finding.verdict.status is Status.CONFIRMED

    return [(finding.code, finding.span.path) for finding in result.findings if is_confirmed(finding)]


def test_a_module_of_a_package_is_run_as_the_user_runs_it(verified):
    result = verified({"pkg/__init__.py": "", "pkg/train.py": SWAP + GUARD}, ".", run=("python -m pkg.train --go",))
    assert confirmed(result) == [("NVW101", "pkg/train.py")]
    assert result.judged
    (program,) = result.programs
    assert (program.launches, program.backward_calls) == (5, 1)
    assert [check.status for check in result.gradients if check.leaf == "a"] == ["fail"]


@pytest.mark.slow
def test_pytest_runs_a_test_of_it(verified):
    files = {
        "model.py": SWAP,
        "test_model.py": "import model\n\ndef test_gradient():\n    assert model.main() is not None\n",
    }
    result = verified(files, ".", run=("pytest -q -p no:cacheprovider test_model.py",))
    assert confirmed(result) == [("NVW101", "model.py")]


@pytest.mark.slow
def test_a_file_of_tests_that_is_named_is_run_by_pytest_and_judged(verified):
    test = "import model\ndef test_one():\n    assert 1\ndef test_gradient():\n    assert model.main() is not None\n"
    result = verified({"model.py": SWAP, "test_model.py": test}, "test_model.py")
    (program,) = result.programs
    assert (program.command, program.backward_calls, program.problem) == ("python -m pytest -q test_model.py", 1, "")
    assert confirmed(result) == [("NVW101", "model.py")]


@pytest.mark.slow
def test_a_kernel_that_no_run_reaches_is_proven_alone(verified):
    result = verified({"lone.py": LONE}, "lone.py")
    (finding,) = result.findings
    assert (finding.code, finding.severity) == ("NVW201", Severity.ERROR)
    assert finding.verdict is not None
    assert finding.verdict.reason.startswith("no run reached it; alone")
    assert finding.verdict.figures["argument"] == "s"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("import nothing_here\n", "raised: ModuleNotFoundError: No module named 'nothing_here'"),
        ("raise ValueError('bad step')\n", "raised: ValueError: bad step"),
        ("import sys\nsys.exit(3)\n", "exit 3"),
        ("x = 1\n", ""),
        ("wp.zeros(1, dtype=float, device='cuda:7')\n", "needs a device that is not here"),
        ("import ctypes\nctypes.string_at(0)\n", "segmentation fault, last seen in <module>"),
        ("while True:\n    pass\n", "time limit: no backward call was recorded"),
    ],
)
def test_a_program_that_goes_wrong_gives_one_clear_line(verified, text, problem):
    body = "".join("    " + line + "\n" for line in text.splitlines())
    limit = 40.0 if "while" in text else 120.0
    result = verified(
        {"prog.py": 'import warp as wp\nif __name__ == "__main__":\n' + body}, "prog.py", time_limit=limit
    )
    assert result.findings == ()
    (program,) = result.programs
    assert program.problem.startswith(problem)
    assert result.judged is (problem == "")
    if not problem:
        assert program.notes == ("no tape ran backward: there is no gradient to check",)

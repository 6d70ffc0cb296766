"""The engine under other versions of Warp: the same verdicts, and what is known to differ between them.

``.ci/versions`` makes the environments; by hand, ``WARPLINT_INTERPRETERS`` names interpreters that have Warp, separated
as in ``PATH``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from installed import environment

FIXTURES = Path(__file__).parent.parent / "fixtures"
INTERPRETERS = [each for each in os.environ.get("WARPLINT_INTERPRETERS", "").split(os.pathsep) if each]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not INTERPRETERS, reason="WARPLINT_INTERPRETERS names no interpreter"),
    pytest.mark.parametrize("interpreter", INTERPRETERS or [""]),
]

WRONG = [
    "ping-pong/bad_nonlinear_rod.py",
    "overwrite-copy",
    "missing-requires-grad/bad_hidden_layer.py",
    "duplicate-launch/bad_scattered_twice",
    "missing-tape-zero",
    "stale-grad",
    "tape-scope",
    "host-round-trip",
    "tape-per-step/bad_truncated_windows.py",
    "inplace-mul/bad_softmax_normaliser.py",
    "dynamic-loop/bad_sum_then_root.py",
]
RIGHT = ["ping-pong/good_linear_diffusion.py", "tape-per-step/good_reverse_order.py", "dynamic-loop/good_sums.py"]

CLONES = """\
import warp as wp


@wp.kernel
def step(a: wp.array(dtype=wp.float64), b: wp.array(dtype=wp.float64)):
    i = wp.tid()
    b[i] = a[i] + wp.float64(0.5) * wp.sin(a[i])


@wp.kernel
def total(a: wp.array(dtype=wp.float64), loss: wp.array(dtype=wp.float64)):
    i = wp.tid()
    wp.atomic_add(loss, 0, a[i] * a[i])


x = wp.array([0.3, 0.8, -1.2], dtype=wp.float64, requires_grad=True)
loss = wp.zeros(1, dtype=wp.float64, requires_grad=True)
with wp.Tape() as tape:
    state = x
    for _ in range(3):
        following = wp.clone(state)
        wp.launch(step, dim=3, inputs=[state], outputs=[following])
        state = following
    wp.launch(total, dim=3, inputs=[state], outputs=[loss])
tape.backward(loss)
print(x.grad.numpy())
"""


def first_of(name: str) -> Path:
    """A fixture, or the first bad one of a rule."""
    path = FIXTURES / name
    return path if path.name.startswith(("bad_", "good_")) else sorted(path.glob("bad_*"))[0]


def told(interpreter: str, folder: Path, *words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "warplint", *words, "--python", interpreter, "--format", "json", "--no-cache"]
    if "gradcheck" in words:
        command = [*command[:-1], "--", interpreter, "program.py"]
    with tempfile.TemporaryDirectory() as metadata:
        variables = environment(Path(metadata))
        done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def version_of(answer: dict[str, Any]) -> tuple[int, ...]:
    return tuple(int(part) for part in answer["warp"].split(".")[:2])


@pytest.mark.parametrize("name", WRONG)
def test_faults_are_confirmed(interpreter: str, name: str) -> None:
    path = first_of(name)
    entry = path / "main.py" if path.is_dir() else path
    answer = told(interpreter, entry.parent, "--verify", entry.name)
    confirmed = [each for each in answer["findings"] if (each["verdict"] or {}).get("status") == "confirmed"]
    assert confirmed, [(each["code"], each["verdict"]) for each in answer["findings"]] + answer["programs"]


@pytest.mark.parametrize("name", RIGHT)
def test_right_programs_are_called_right(interpreter: str, name: str) -> None:
    path = first_of(name)
    answer = told(interpreter, path.parent, "--verify", path.name)
    assert not [each for each in answer["findings"] if (each["verdict"] or {}).get("status") == "confirmed"]
    assert {each["status"] for each in answer["gradients"]} == {"pass"}


def test_copies_had_an_adjoint_that_assigns(interpreter: str, tmp_path: Path) -> None:
    """Up to 1.16 the adjoint of a copy overwrites what other readers have left: measured wrong there, right since."""
    (tmp_path / "program.py").write_text(CLONES, encoding="utf-8")
    answer = told(interpreter, tmp_path, "gradcheck")
    expected = "pass" if version_of(answer) >= (1, 17) else "fail"
    assert [each["status"] for each in answer["gradients"] if each["leaf"] == "x"] == [expected]


def test_a_continue_kept_a_loop_from_being_unrolled(interpreter: str) -> None:
    """Before 1.19 the local that such a loop carries is lost: measured wrong on 1.13 to 1.18, right on 1.19."""
    path = first_of("dynamic-loop/good_unrolled.py")
    answer = told(interpreter, path.parent, "--verify", path.name)
    expected = "pass" if version_of(answer) >= (1, 19) else "fail"
    assert [each["status"] for each in answer["gradients"]] == [expected]

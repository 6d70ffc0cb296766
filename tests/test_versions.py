"""The engine under other versions of Warp: the same verdicts, and what is known to differ between them.

``.ci/versions`` makes the environments; by hand, ``WARPLINT_INTERPRETERS`` names interpreters that have Warp, separated
as in ``PATH``. All fixtures about gradients are run under each: a quarter of an hour for one.
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
from test_fixtures import PROGRAMS, Program
from version_differences import difference_of, is_measured

from warplint.catalogue import catalogue
from warplint.rule import Group

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

ABOUT_GRADIENTS = {rule.name for rule in catalogue() if rule.group in (Group.TAPE, Group.KERNEL)}

ADDED = """\
import warp as wp


@wp.kernel
def add(p: wp.array(dtype=float), y: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    y[i].x += p[i] * p[i]


@wp.kernel
def total(y: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
    wp.atomic_add(loss, 0, wp.length_sq(y[wp.tid()]))


p = wp.array([0.8, -0.4], dtype=float, requires_grad=True)
y = wp.zeros(2, dtype=wp.vec3, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(add, dim=2, inputs=[p], outputs=[y])
    wp.launch(total, dim=2, inputs=[y], outputs=[loss])
tape.backward(loss)
print(p.grad.numpy())
"""

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


def test_sums_onto_components_of_elements_had_no_adjoint(interpreter: str, tmp_path: Path) -> None:
    """``y[i].x += e``: measured AD 0, FD 2.048 on 1.13, 1.15 and 1.17, right on 1.18 and 1.19."""
    (tmp_path / "program.py").write_text(ADDED, encoding="utf-8")
    answer = told(interpreter, tmp_path, "--verify", "program.py")
    old = version_of(answer) < (1, 18)
    confirmed = [each["code"] for each in answer["findings"] if (each["verdict"] or {}).get("status") == "confirmed"]
    assert confirmed == (["NVW202"] if old else [])
    assert [each["status"] for each in answer["gradients"] if each["leaf"] == "p"] == ["fail" if old else "pass"]


@pytest.mark.parametrize(
    "program",
    [pytest.param(each, id=each.name) for each in PROGRAMS if each.path.parent.name in ABOUT_GRADIENTS],
)
def test_fixtures_show_what_they_say_or_what_is_known_to_differ(interpreter: str, program: Program) -> None:
    answer = told(interpreter, program.path.parent, "--verify", program.path.name)
    version = version_of(answer)
    differing = difference_of(program.name, version)
    if differing is not None and not is_measured(differing, version):
        pytest.skip(f"not measured: {differing.why}")
    found = {(each["line"], each["code"], (each["verdict"] or {}).get("status", "")) for each in answer["findings"]}
    said = {(each.line, each.code, each.verdict) for each in program.expectations("", "-run")}
    wrong = {each["leaf"] for each in answer["gradients"] if each["status"] == "fail"}
    more, less, expected = (set[Any](), set[Any](), set[str]())
    if differing is not None:
        more, less, expected = set(differing.more), set(differing.less), set(differing.wrong)
    assert found == (said - less) | more
    assert program.is_bad or wrong == expected

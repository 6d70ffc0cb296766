"""In-place multiplication inside kernels, on the measured variants."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import PRELUDE, check

KERNELS = {
    "local scalar": ("x: A, l: A", "s = float(1.3)\ns *= x[0]\ns /= x[1]\nwp.atomic_add(l, 0, s * s)"),
    "local vector": (
        "x: A, l: A",
        "v = wp.vec3(x[0], x[1], x[2])\nv *= x[0]\nv /= x[1]\nwp.atomic_add(l, 0, wp.dot(v, v))",
    ),
    "component of a local vector": (
        "x: A, l: A",
        "v = wp.vec3(x[0], x[1], x[2])\nv[0] *= x[1]  # expect: NVW201\nwp.atomic_add(l, 0, wp.dot(v, v))",
    ),
    "component by name, divided": (
        "x: A, l: A",
        "v = wp.vec3(x[0], x[1], x[2])\nv.y /= x[2]  # expect: NVW201\nwp.atomic_add(l, 0, wp.dot(v, v))",
    ),
    "static loop": (
        "x: A, l: A",
        "s = float(1.0)\nfor i in range(3):\n    s *= x[i]\nwp.atomic_add(l, 0, s * s)",
    ),
    "in a branch": ("x: A, l: A", "s = x[0] * 2.0\nif x[1] > 0.0:\n    s *= x[1]\nwp.atomic_add(l, 0, s * x[2])"),
}


@pytest.mark.parametrize(("parameters", "body"), KERNELS.values(), ids=KERNELS)
def test_locals(tmp_path: Path, parameters: str, body: str) -> None:
    indented = "\n".join(f"    {line}" for line in body.splitlines())
    check(
        tmp_path,
        f"""{PRELUDE}
@wp.kernel
def k({parameters}):
{indented}

x, l = arr([0.7, 1.3, -0.4]), zer(1)
with wp.Tape() as tape:
    wp.launch(k, 1, inputs=[x, l])
tape.backward(l)
print(x.grad.numpy())
""",
    )


def elements(statement: str, *, z: str = "arr([1.2, 0.8, -1.4])", used: str = "z", tape: bool = True) -> str:
    run = "    wp.launch(scale, 3, inputs=[y, z, 0.5])\n    wp.launch(ssq, 3, inputs=[y, l])"
    if tape:
        recorded = f"with wp.Tape() as tape:\n{run}\ntape.backward(l)\nprint({used}.grad.numpy())"
    else:
        recorded = f"tape = wp.Tape()\nif True:\n{run}"
    return f"""{PRELUDE}
@wp.kernel
def scale(y: A, z: A, c: float):
    i = wp.tid()
    {statement}

y, z, l = arr([1.5, -0.6, 0.9]), {z}, zer(1)
{recorded}
"""


def test_array_elements(tmp_path: Path) -> None:
    for statement in ("y[i] *= z[i]", "y[i] /= z[i]", "y[i] *= wp.exp(z[i]) + 1.0"):
        check(tmp_path, elements(f"{statement}  # expect: NVW201"))
    for statement in ("y[i] *= 2.5", "y[i] *= c", "y[i] /= c", "y[i] += z[i] * z[i]", "y[i] = y[i] + z[i]"):
        check(tmp_path, elements(statement))


def test_only_the_gradient_of_the_factor_is_wrong(tmp_path: Path) -> None:
    check(tmp_path, elements("y[i] *= z[i]", used="y"))
    check(tmp_path, elements("y[i] *= z[i]", z="arr([1.2, 0.8, -1.4], rg=False)", used="y"))


def test_without_a_tape_it_is_information(tmp_path: Path) -> None:
    check(tmp_path, elements("y[i] *= z[i]  # expect-info: NVW201", tape=False))


def test_what_does_not_reach_the_loss_is_information(tmp_path: Path) -> None:
    source = elements("y[i] *= z[i]  # expect-info: NVW201").replace("inputs=[y, l]", "inputs=[z, l]")
    check(tmp_path, source)


def test_inside_a_function(tmp_path: Path) -> None:
    check(
        tmp_path,
        f"""{PRELUDE}
@wp.func
def damped(v: wp.vec3, c: float):
    w = v
    w[1] *= c  # expect: NVW201
    return w

@wp.kernel
def k(x: A, l: A):
    v = damped(wp.vec3(x[0], x[1], x[2]), x[0])
    wp.atomic_add(l, 0, wp.dot(v, v))

x, l = arr([0.7, 1.3, -0.4]), zer(1)
with wp.Tape() as tape:
    wp.launch(k, 1, inputs=[x, l])
tape.backward(l)
print(x.grad.numpy())
""",
    )

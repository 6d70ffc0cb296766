"""Operations without a derivative at a point: what the contents in sight show, and what nobody can know."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import PRELUDE, check
from test_rules_kernel_adjoints import launched

AT_ZERO = "arr([0.0, 1.3, -0.4])"

HIT = {
    "root": "wp.atomic_add(l, 0, wp.sqrt(x[i] * x[i]))  # expect: NVW205",
    "cube root": "wp.atomic_add(l, 0, wp.cbrt(x[i]))  # expect: NVW205",
    "logarithm": "wp.atomic_add(l, 0, wp.log(wp.abs(x[i])))  # expect: NVW205",
    "quotient": "wp.atomic_add(l, 0, 1.0 / x[i])  # expect: NVW205",
    "quotient of another": "wp.atomic_add(l, 0, x[i] / float(c[i]))  # expect: NVW205",
    "power": "wp.atomic_add(l, 0, wp.pow(x[i], 0.5))  # expect: NVW205",
    "power of a differentiated exponent": "wp.atomic_add(l, 0, wp.pow(0.0, x[i] + 2.0))  # expect: NVW205",
    "operator power": "wp.atomic_add(l, 0, x[i] ** 0.25)  # expect: NVW205",
    "through a local": "d = x[i] - x[i] * 2.0\nr = wp.sqrt(d)  # expect: NVW205\nwp.atomic_add(l, 0, r * r)",
    "divided by the index": "wp.atomic_add(l, 0, x[i] / float(i))  # expect: NVW205",
    "in one arm": "if i == 0:\n    wp.atomic_add(l, 0, wp.sqrt(x[i]))  # expect: NVW205",
    "in a loop": "s = float(0.0)\nfor j in range(3):\n    s += wp.sqrt(x[j] + 0.4)  # expect: NVW205\nl[i] += s",
    "a condition on another number": "if x[i] < 1.0:\n    wp.atomic_add(l, 0, wp.sqrt(x[i]))  # expect: NVW205",
    "absolute value": "wp.atomic_add(l, 0, wp.abs(x[i]))  # expect: NVW205",
    "larger one": "wp.atomic_add(l, 0, wp.max(x[i], 0.0))  # expect: NVW205",
    "smaller one": "wp.atomic_add(l, 0, 2.0 * wp.min(0.0, x[i]))  # expect: NVW205",
}

SILENT = {
    "guarded by a sum": "wp.atomic_add(l, 0, wp.sqrt(x[i] * x[i] + 1.0e-8))",
    "guarded by a maximum": "wp.atomic_add(l, 0, wp.sqrt(wp.max(x[i] * x[i], 1.0e-8)))",
    "branch": "if x[i] > 0.0:\n    wp.atomic_add(l, 0, wp.sqrt(x[i]))",
    "ternary": "wp.atomic_add(l, 0, wp.sqrt(x[i]) if x[i] > 0.0 else 0.0)",
    "a power above one": "wp.atomic_add(l, 0, wp.pow(x[i], 2.0))",
    "the larger of a number and itself": "a = x[i]\nwp.atomic_add(l, 0, wp.max(a, a))",
    "a power of one": "wp.atomic_add(l, 0, wp.pow(x[i], 1.0))",
    "no gradient flows": "wp.atomic_add(l, 0, x[i] * wp.sqrt(float(c[i])))",
    "guarded arc": "wp.atomic_add(l, 0, wp.acos(x[i] + 1.0))",
    "squared kink": "wp.atomic_add(l, 0, wp.abs(x[i]) * wp.abs(x[i]))",
    "squared rectifier": "r = wp.max(x[i], 0.0)\nwp.atomic_add(l, 0, r * r)",
    "kink beside the data": "wp.atomic_add(l, 0, wp.abs(x[i] - 0.25))",
    "an early return": "if x[i] == 0.0:\n    return\nwp.atomic_add(l, 0, wp.sqrt(wp.abs(x[i])))",
    "an integer quotient": "wp.atomic_add(l, 0, x[i] * float(i / 2))",
}


@pytest.mark.parametrize("body", HIT.values(), ids=HIT)
def test_points_that_the_data_reach(tmp_path: Path, body: str) -> None:
    check(tmp_path, launched(body, x=AT_ZERO))


@pytest.mark.parametrize("body", SILENT.values(), ids=SILENT)
def test_points_that_the_data_do_not_reach(tmp_path: Path, body: str) -> None:
    found = check(tmp_path, launched(body, x=AT_ZERO))
    assert not [one for one in found if one.code == "NVW205" and "kink" in one.message]


def test_where_has_a_rule_of_its_own(tmp_path: Path) -> None:
    found = check(
        tmp_path, launched("wp.atomic_add(l, 0, wp.where(x[i] > 0.0, wp.sqrt(x[i]), 0.0))  # expect: NVW204", x=AT_ZERO)
    )
    assert [one.code for one in found] == ["NVW204"]


ROOT = """
@wp.kernel
def root(x: A, y: A, l: A):
    i = wp.tid()
    wp.atomic_add(l, 0, wp.sqrt((x[i] - y[i]) * (x[i] - y[i])))  # {expect}
"""

WITH = "expect: NVW205"
WITHOUT = "expect-info: NVW205"

EQUAL = {
    "zeros": ("x, y = zer(), zer()", WITH),
    "many zeros": ("x, y = zer(1000), zer(1000)", WITH),
    "like": ("x = zer()\ny = wp.zeros_like(x)", WITH),
    "literals": ("x, y = arr([0.1, 0.2, 0.3]), arr([0.3, 0.2, 0.1])", WITH),
    "far apart": ("x, y = arr([0.1, 0.2, 0.3]), arr([0.4, 0.5, 0.6])", WITHOUT),
    "a clone": ("x = arr(np.random.rand(3))\ny = wp.clone(x)", WITH),
    "a copy": ("x, y = arr(np.random.rand(3)), zer()\nwp.copy(y, x)", WITH),
    "the array itself": ("x = arr(np.random.rand(3))\ny = x", WITH),
    "assigned": ("x, y = arr(np.random.rand(3)), zer()\ny.assign(x)", WITH),
    "random": ("x, y = arr(np.random.rand(3)), arr(np.random.rand(3))", WITHOUT),
    "filled anew": ("x = arr(np.random.rand(3))\ny = wp.clone(x)\ny.assign(np.random.rand(3))", WITHOUT),
    "emptied": ("x, y = arr([1.0, 2.0, 3.0]), arr([4.0, 5.0, 6.0])\nx.zero_()\ny.zero_()", WITH),
    "numpy grid": ("x, y = arr(np.linspace(0.0, 1.0, 3)), zer()", WITH),
    "written by a launch": ("x, y = zer(), zer()\nwp.launch(lin, 3, inputs=[x, y])", WITHOUT),
    "by an unknown launch": ("x, y = zer(), zer()\nwp.launch(unknown, 3, inputs=[x, y])", WITHOUT),
    "handed away": ("x, y = zer(), zer()\nfill(x)", WITHOUT),
}


@pytest.mark.parametrize(("before", "expect"), EQUAL.values(), ids=EQUAL)
def test_differences_of_equal_arrays(tmp_path: Path, before: str, expect: str) -> None:
    source = f"""{PRELUDE}
try:
    from elsewhere import unknown, fill
except ImportError:
    pass
{ROOT.format(expect=expect)}
{before}
l = zer(1)
with wp.Tape() as tape:
    wp.launch(root, 3, inputs=[x, y, l])
tape.backward(l)
print(x.grad.numpy())
"""
    check(tmp_path, source)


CHAIN = """
@wp.func
def norm(v: wp.vec3):
    return wp.sqrt(wp.dot(v, v))  # {expect}

@wp.struct
class Rod:
    rest: float
    ends: wp.array(dtype=wp.vec3)

@wp.kernel
def advance(rod: Rod, v: wp.array(dtype=wp.vec3), q: wp.array(dtype=wp.vec3), dt: float):
    i = wp.tid()
    q[i] = rod.ends[i] + v[i] * dt

@wp.kernel
def stretch(rod: Rod, q: wp.array(dtype=wp.vec3), l: A):
    i = wp.tid()
    d = norm(q[i] - rod.ends[i]) - rod.rest
    wp.atomic_add(l, 0, d * d)

rod = Rod()
rod.rest = 0.5
rod.ends = wp.array(np.random.rand(3, 3), dtype=wp.vec3)
v = {v}
q = wp.zeros(3, dtype=wp.vec3, requires_grad=True)
l = zer(1)
with wp.Tape() as tape:
    wp.launch(advance, 3, inputs=[rod, v, q, 0.1])
    wp.launch(stretch, 3, inputs=[rod, q, l])
tape.backward(l)
print(v.grad.numpy())
"""


def test_a_start_at_rest_is_followed_through_launches_structs_and_functions(tmp_path: Path) -> None:
    check(tmp_path, PRELUDE + CHAIN.format(expect=WITH, v="wp.zeros(3, dtype=wp.vec3, requires_grad=True)"))


def test_a_moving_start_is_only_information(tmp_path: Path) -> None:
    moving = "wp.array(np.ones((3, 3)), dtype=wp.vec3, requires_grad=True)"
    check(tmp_path, PRELUDE + CHAIN.format(expect=WITHOUT, v=moving))


def test_a_kernel_that_no_tape_records_is_silent(tmp_path: Path) -> None:
    source = launched("wp.atomic_add(l, 0, wp.sqrt(x[i]))", x=AT_ZERO).replace("tape.backward(l)", "")
    assert not check(tmp_path, source)

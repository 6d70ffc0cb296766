"""Where gradient stops in a kernel, custom adjoints that add up wrongly, atomics that nothing can repeat."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import PRELUDE, check


def launched(body: str, *, before: str = "", x: str = "arr([0.7, 1.3, -0.4])") -> str:
    indented = "\n".join(f"    {line}" for line in body.splitlines())
    return f"""{PRELUDE}
{before}

@wp.kernel
def k(x: A, c: wp.array(dtype=int), l: A):
    i = wp.tid()
{indented}

x, c, l = {x}, wp.zeros(3, dtype=int), zer(1)
with wp.Tape() as tape:
    wp.launch(k, 3, inputs=[x, c, l])
tape.backward(l)
print(x.grad.numpy())
"""


CUBE = """
@wp.func
def cube(v: float):
    return v * v * v

@wp.func_grad(cube)
def adj_cube(v: float, adj_ret: float):
    wp.adjoint[v] {op} 3.0 * v * v * adj_ret{expect}
"""
ASSIGNS = CUBE.format(op="=", expect="  # expect: NVW207")
ASSIGNS_RIGHTLY = CUBE.format(op="=", expect="")
ADDS = CUBE.format(op="+=", expect="")

USED_AGAIN = {
    "later": "v = x[i]\nr = cube(v) + wp.sin(v)\nwp.atomic_add(l, 0, r)",
    "twice": "v = x[i]\nwp.atomic_add(l, 0, cube(v) + cube(v))",
    "beside the call": "v = x[i]\nwp.atomic_add(l, 0, v + cube(v))",
    "as the other factor": "v = x[i]\nwp.atomic_add(l, 0, v * cube(v))",
    "in another argument": "v = x[i]\nwp.atomic_add(l, 0, wp.max(v, cube(v)))",
    "in its own sum": "v = x[i]\nv = v + cube(v)\nwp.atomic_add(l, 0, v)",
    "in a static loop": "v = x[i]\ns = float(0.0)\nfor j in range(3):\n    s += cube(v)\nwp.atomic_add(l, 0, s)",
    "in a dynamic loop": "v = x[i]\ns = float(0.0)\nfor j in range(c[0]):\n    s += cube(v)\nwp.atomic_add(l, 0, s)",
}
USED_ONCE = {
    "inline": "wp.atomic_add(l, 0, cube(x[i]))",
    "two loads": "wp.atomic_add(l, 0, cube(x[i]) + wp.sin(x[i]))",
    "before the call": "v = x[i]\nwp.atomic_add(l, 0, wp.sin(v) + cube(v))",
    "a copy": "v = x[i]\nw = v\nr = cube(w)\nwp.atomic_add(l, 0, r + wp.sin(v))",
    "later without gradient": "v = x[i]\nr = cube(v)\nif v > 0.0:\n    c[i] = int(v)\nwp.atomic_add(l, 0, r)",
}


@pytest.mark.parametrize("body", USED_AGAIN.values(), ids=USED_AGAIN)
def test_assigned_adjoints_of_variables_with_other_uses(tmp_path: Path, body: str) -> None:
    check(tmp_path, launched(body, before=ASSIGNS))
    check(tmp_path, launched(body, before=ADDS))


@pytest.mark.parametrize("body", USED_ONCE.values(), ids=USED_ONCE)
def test_assigned_adjoints_of_variables_used_once(tmp_path: Path, body: str) -> None:
    check(tmp_path, launched(body, before=ASSIGNS_RIGHTLY))


ELEMENT = """
@wp.func
def pick(a: wp.array(dtype=float), j: int):
    return a[j] * a[j]

@wp.func_grad(pick)
def adj_pick(a: wp.array(dtype=float), j: int, adj_ret: float):
    wp.adjoint[a][j] = 2.0 * a[j] * adj_ret{expect}
"""


def test_an_element_that_all_threads_share(tmp_path: Path) -> None:
    check(tmp_path, launched("wp.atomic_add(l, 0, pick(x, 0))", before=ELEMENT.format(expect="  # expect: NVW207")))
    check(tmp_path, launched("wp.atomic_add(l, 0, pick(x, i))", before=ELEMENT.format(expect="")))


SPRING = """
@wp.func
def spring(v: float, s: float):
    return s * v * v

@wp.func_grad(spring)
def adj_spring(v: float, s: float, adj_ret: float):{expect}
    wp.adjoint[v] += 2.0 * s * v * adj_ret
"""


def test_an_argument_that_the_custom_adjoint_leaves_out(tmp_path: Path) -> None:
    told, silent = SPRING.format(expect="  # expect: NVW213"), SPRING.format(expect="")
    check(tmp_path, launched("wp.atomic_add(l, 0, spring(x[i], x[0]))", before=told))
    check(tmp_path, launched("wp.atomic_add(l, 0, spring(x[i], 2.0))", before=silent))
    check(tmp_path, launched("wp.atomic_add(l, 0, spring(x[i], float(c[0])))", before=silent))


NATIVE = """
@wp.func_native("return v * v * v;"{adjoint})
def cube(v: float) -> float: ...{expect}
"""


def test_native_functions(tmp_path: Path) -> None:
    bare, told = NATIVE.format(adjoint="", expect=""), NATIVE.format(adjoint="", expect="  # expect: NVW208")
    whole = NATIVE.format(adjoint=', adj_snippet="adj_v += 3.0f * v * v * adj_ret;"', expect="")
    check(tmp_path, launched("wp.atomic_add(l, 0, cube(x[i]) + x[i])", before=told))
    check(tmp_path, launched("wp.atomic_add(l, 0, cube(x[i]) + x[i])", before=whole))
    check(tmp_path, launched("wp.atomic_add(l, 0, cube(float(i)) + x[i])", before=bare))


def test_operations_without_an_adjoint(tmp_path: Path) -> None:
    check(tmp_path, launched("wp.atomic_add(l, 0, wp.frac(x[i]) + x[i])  # expect: NVW212"))
    check(tmp_path, launched("wp.atomic_add(l, 0, wp.frac(float(i)) + x[i])"))
    check(tmp_path, launched("y = wp.frac(x[i])\nwp.atomic_add(l, 0, x[i])"))


FLAT = {
    "rounded": "wp.atomic_add(l, 0, wp.round(x[i] * 4.0))  # expect: NVW206",
    "cast": "q = float(int(x[i]))  # expect: NVW206\nwp.atomic_add(l, 0, q * q)",
    "compared": "wp.atomic_add(l, 0, wp.where(x[i] > 0.0, 1.0, 0.0))  # expect: NVW206",
    "beside another way": "wp.atomic_add(l, 0, wp.floor(x[i]) + 0.1 * x[i])",
    "as a weight": "wp.atomic_add(l, 0, (x[i] - wp.floor(x[i])) * 2.0)",
    "as an index": "j = int(wp.floor(wp.abs(x[i])))\nwp.atomic_add(l, 0, x[j] * x[j])",
    "off the loss": "c[i] = int(x[i])\nwp.atomic_add(l, 0, x[i] * x[i])",
}


@pytest.mark.parametrize("body", FLAT.values(), ids=FLAT)
def test_flat_operations(tmp_path: Path, body: str) -> None:
    check(tmp_path, launched(body))


COUNTERS = {
    "as a slot to read from": "j = wp.atomic_add(c, 0, 1)  # expect: NVW209\nwp.atomic_add(l, 0, x[j] * x[j])",
    "as a slot to write to": "j = wp.atomic_add(c, 0, 1)  # expect: NVW209\nl[j] = x[i] * x[i]",
    "as a condition": "if wp.atomic_add(c, 0, 1) < 9:  # expect-info: NVW209\n    wp.atomic_add(l, 0, x[i] * x[i])",
    "for statistics": "wp.atomic_add(c, 0, 1)\nwp.atomic_add(l, 0, x[i] * x[i])",
    "kept": "c[i] = wp.atomic_add(c, 0, 1)\nwp.atomic_add(l, 0, x[i] * x[i])",
}
REPLAYED = """
@wp.func
def slot(n: wp.array(dtype=int), kept: wp.array(dtype=int), i: int):
    kept[i] = wp.atomic_add(n, 0, 1){expect}
    return kept[i]
"""
REPLAY = """
@wp.func_replay(slot)
def replay_slot(n: wp.array(dtype=int), kept: wp.array(dtype=int), i: int):
    return kept[i]
"""


@pytest.mark.parametrize("body", COUNTERS.values(), ids=COUNTERS)
def test_counters(tmp_path: Path, body: str) -> None:
    check(tmp_path, launched(body))


def test_a_replay_function_has_the_slot_again(tmp_path: Path) -> None:
    body = "j = slot(c, c, i)\nwp.atomic_add(l, 0, x[j] * x[j])"
    check(tmp_path, launched(body, before=REPLAYED.format(expect="") + REPLAY))


def test_without_gradient_nothing_is_claimed(tmp_path: Path) -> None:
    for body in (COUNTERS["as a slot to read from"], FLAT["rounded"], "wp.atomic_add(l, 0, wp.frac(x[i]))"):
        source = launched(body.replace("# expect:", "#"), x="arr([0.7, 1.3, -0.4], rg=False)")
        check(tmp_path, source.replace("print(x.grad.numpy())", ""))


ATOMICS = {
    "returned and used linearly": "t = wp.atomic_add(l, 0, x[i])  # expect: NVW212\nwp.atomic_add(l, 1, 2.0 * t)",
    "largest of all": "wp.atomic_max(l, 0, x[i] * x[i])",
    "larger than a number": "y[i] = 0.5\nwp.atomic_max(y, i, x[i])\nl[0] += y[i]",
    "larger of two": "y[i] = x[i]\nwp.atomic_max(y, i, 0.5)  # expect-info: NVW212\nl[0] += y[i]",
}


@pytest.mark.parametrize("body", ATOMICS.values(), ids=ATOMICS)
def test_what_an_atomic_does_to_the_old_value(tmp_path: Path, body: str) -> None:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    check(
        tmp_path,
        f"""{PRELUDE}
@wp.kernel
def k(x: A, y: A, l: A):
    i = wp.tid()
{lines}

x, y, l = arr([0.7, 1.3, -0.4]), zer(3), zer(2)
with wp.Tape() as tape:
    wp.launch(k, 3, inputs=[x, y, l])
tape.backward(grads={{l: wp.ones_like(l)}})
print(x.grad.numpy())
""",
    )

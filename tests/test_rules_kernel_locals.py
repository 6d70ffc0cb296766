"""Components assigned again and locals that loops overwrite, on launches: what is differentiated decides."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import PRELUDE, check


def launched(body: str, *, before: str = "", arguments: str = "x, 3, l", x: str = "arr([0.7, 1.3, -0.4])") -> str:
    indented = "\n".join(f"    {line}" for line in body.splitlines())
    return f"""{PRELUDE}
{before}

@wp.kernel
def k(x: A, n: int, l: A):
{indented}

x, l = {x}, zer(1)
with wp.Tape() as tape:
    wp.launch(k, 1, inputs=[{arguments}])
tape.backward(l)
print(x.grad.numpy())
"""


COMPONENTS = {
    "after a constructor": "v = wp.vec2(x[0], x[1])\nv[0] = x[2]  # expect: NVW202\nl[0] = wp.dot(v, v)",
    "twice": "v = wp.vec2()\nv.x = x[0]\nv.x = x[2]  # expect: NVW202\nl[0] = wp.dot(v, v)",
    "from itself": "v = wp.vec2(x[0], x[1])\nv[0] = v[0] * v[1]  # expect: NVW202\nl[0] = wp.dot(v, v)",
    "once": "v = wp.vec2()\nv[0] = x[0]\nv[1] = x[1]\nl[0] = wp.dot(v, v)",
    "over constants": "v = wp.vec2(1.0, 1.0)\nv[0] = x[0]\nl[0] = wp.dot(v, v)",
    "added to": "v = wp.vec2(x[0], x[1])\nv[0] += x[2]\nl[0] = wp.dot(v, v)",
    "added to by name": "v = wp.vec2(x[0], x[1])\nv.x += x[2]  # expect: NVW202\nl[0] = wp.dot(v, v)",
    "added to after a use of the whole": (
        "v = wp.vec2(x[0], x[1])\ns = wp.dot(v, v)\nv[0] += x[2]  # expect: NVW202\nl[0] = s + v[0]"
    ),
    "of a transform": (
        "t = wp.transform()\nt.p = wp.vec3(x[0], x[1], 0.0)\nt.q = wp.quat(0.0, 0.0, x[2], 1.0)\n"
        "l[0] = wp.length_sq(wp.transform_point(t, wp.vec3(1.0, 2.0, 3.0)))"
    ),
}
FILLED = """v = wp.vec3()
for j in range(n):
    v[j] = x[j]  # expect: NVW202
l[0] = wp.dot(v, v)"""


@pytest.mark.parametrize("body", COMPONENTS.values(), ids=COMPONENTS)
def test_components(tmp_path: Path, body: str) -> None:
    check(tmp_path, launched(body))


def test_the_option_in_effect_silences(tmp_path: Path) -> None:
    on = "wp.config.enable_vector_component_overwrites = True"
    check(tmp_path, launched(COMPONENTS["twice"].replace("  # expect: NVW202", ""), before=on))
    off = "wp.config.enable_vector_component_overwrites = False"
    check(tmp_path, launched(COMPONENTS["twice"], before=off))


def test_the_option_does_not_help_a_loop(tmp_path: Path) -> None:
    for value in (True, False):
        check(tmp_path, launched(FILLED, before=f"wp.config.enable_vector_component_overwrites = {value}"))


LOOPS = {
    "product": "s = float(1.0)\nfor j in range(n):\n    s = s * x[j]  # expect: NVW203\nl[0] = s",
    "use behind": "s = float(0.0)\nfor j in range(n):\n    s += x[j]\nl[0] = s * s  # expect: NVW203",
    "two uses": "s = float(0.0)\nfor j in range(n):\n    s += x[j]\nl[0] = s * s  # expect: NVW203\nl[0] += wp.sin(s)",
    "maximum": "s = float(0.0)\nfor j in range(n):\n    s = wp.max(s, x[j])  # expect: NVW203\nl[0] = s",
    "index by hand": (
        "s = float(0.0)\nj = int(0)\nwhile j < n:\n    s += x[j] * x[j]  # expect: NVW203\n    j += 1\nl[0] = s"
    ),
    "sum": "s = float(0.0)\nfor j in range(n):\n    s += x[j] * x[j]\nl[0] = 2.0 * s",
    "unrolled": "s = float(1.0)\nfor j in range(3):\n    s = s * x[j]\nl[0] = s",
    "break": (
        "s = float(0.0)\nfor j in range(n):\n    if x[j] < 0.0:\n        break  # expect: NVW203\n"
        "    s += x[j]\nl[0] = s"
    ),
    "break from a loop that adds to an array": (
        "for j in range(n):\n    if x[j] < 0.0:\n        break  # expect: NVW203\n    l[0] += x[j] * x[j]"
    ),
    "return from a loop that adds to an array": (
        "for j in range(n):\n    if x[j] > 1.0:\n        return  # expect: NVW203\n    l[0] += x[j] * x[j]"
    ),
    "break that the data never reach": (
        "s = float(0.0)\nfor j in range(n):\n    if x[j] > 9.0:\n        break\n    s += x[j]\nl[0] = s"
    ),
    "return in the last iteration": "for j in range(n):\n    if x[j] < 0.0:\n        return\n    l[0] += x[j] * x[j]",
    "return from an unrolled loop": ("for j in range(3):\n    if x[j] > 1.0:\n        return\n    l[0] += x[j] * x[j]"),
    "break beside a worse thing": (
        "s = float(1.0)\nfor j in range(n):\n    if x[j] < 0.0:\n        break\n"
        "    s *= x[j]  # expect: NVW203\nl[0] = s"
    ),
}


@pytest.mark.parametrize("body", LOOPS.values(), ids=LOOPS)
def test_loops(tmp_path: Path, body: str) -> None:
    check(tmp_path, launched(body))


def test_the_unroll_limit_of_the_module_decides(tmp_path: Path) -> None:
    body = "s = float(1.0)\nfor j in range(20):\n    s = s * (1.0 + x[0])\nl[0] = s"
    check(tmp_path, launched(body, before='wp.set_module_options({"max_unroll": 20})'))
    check(tmp_path, launched(body.replace("x[0])", "x[0])  # expect: NVW203")))
    late = launched(body.replace("x[0])", "x[0])  # expect: NVW203")).replace(
        "x, l =", "wp.config.max_unroll = 20  # expect: NVW301\nx, l ="
    )
    check(tmp_path, late)


@pytest.mark.parametrize(
    "before",
    [
        "COUNT = 24\nwp.set_module_options({'max_unroll': max(wp.config.max_unroll, COUNT)})",
        "import os\nCOUNT = int(os.environ['STAGES'])\nwp.set_module_options({'max_unroll': COUNT})",
        "import os\nCOUNT = int(os.environ['STAGES'])",
        "import os\nCOUNT = 24\nwp.set_module_options({'max_unroll': int(os.environ['STAGES'])})",
    ],
    ids=["raised to it", "both unknown", "unknown bound", "unknown limit"],
)
def test_what_may_be_unrolled_is_no_fault(tmp_path: Path, before: str) -> None:
    """A captured number that only a run knows is a constant to Warp all the same."""
    check(
        tmp_path, launched("s = float(1.0)\nfor j in range(COUNT):\n    s = s * (1.0 + x[0])\nl[0] = s", before=before)
    )


@pytest.mark.parametrize("read", ["os.environ.get('STAGES', '24')", "os.getenv('STAGES', '24')"])
def test_a_variable_of_the_environment_has_its_default(tmp_path: Path, read: str) -> None:
    """As an option has: this is the run in which nobody has set it."""
    body = "s = float(1.0)\nfor j in range(COUNT):\n    s = s * (1.0 + x[0])  # expect: NVW203\nl[0] = s"
    check(tmp_path, launched(body, before=f"import os\nCOUNT = int({read})"))


def test_a_break_keeps_a_loop_a_loop_whatever_its_bound(tmp_path: Path) -> None:
    body = LOOPS["break beside a worse thing"].replace("range(n)", "range(COUNT)")
    check(tmp_path, launched(body, before="import os\nCOUNT = int(os.environ['STAGES'])"))


def test_the_place_that_is_active_is_shown(tmp_path: Path) -> None:
    """The first operation that reads the lost value multiplies it by an array without gradient."""
    body = """s = float(1.0)
t = float(0.0)
for j in range(n):
    t += s * w[j]
    s = s + x[j]
l[0] = t + s * s  # expect: NVW203"""
    source = launched(body, arguments="x, 3, w, l").replace("n: int, l: A", "n: int, w: A, l: A")
    check(tmp_path, source.replace("x, l =", "w = arr([1.0, 2.0, 3.0], rg=False)\nx, l ="))


def test_without_gradient_it_is_information(tmp_path: Path) -> None:
    body = LOOPS["product"].replace("expect:", "expect-info:")
    check(tmp_path, launched(body, x="arr([0.7, 1.3, -0.4], rg=False)").replace("print(x.grad.numpy())", ""))


FUNCTIONS = {
    "of the sum so far": (
        "s = float(0.0)\nfor j in range(n):\n    if x[j] > 1.0:\n        return s  # expect: NVW203\n"
        "    s += x[j]\nreturn s"
    ),
    "of what the iteration found": "for j in range(n):\n    if x[j] > 1.0:\n        return x[j] * x[j]\nreturn 0.0",
    "behind the loop": "s = float(0.0)\nfor j in range(n):\n    s += x[j]\nif x[0] > 1.0:\n    return 1.0\nreturn s",
}


@pytest.mark.parametrize("body", FUNCTIONS.values(), ids=FUNCTIONS)
def test_returns_of_a_function_with_a_loop(tmp_path: Path, body: str) -> None:
    indented = "\n".join(f"    {line}" for line in body.splitlines())
    check(tmp_path, launched("l[0] = f(x, n)", before=f"\n@wp.func\ndef f(x: A, n: int):\n{indented}\n"))


def test_a_break_on_data_that_nobody_knows_is_reached(tmp_path: Path) -> None:
    body = LOOPS["break that the data never reach"].replace("break", "break  # expect: NVW203")
    check(tmp_path, launched(body, x="arr(np.load('x.npy'))"))


OPTIONAL = """
@wp.kernel
def push(x: A, extra: A, n: int, l: A):
    i = wp.tid()
    s = x[i]
    if extra:
        for j in range(n):
            s = s + extra[j]
    wp.atomic_add(l, 0, s * s)  # {expect}

x, extra, l = arr([0.7, 1.3, -0.4]), arr([1.0, 2.0, 3.0]), zer(1)
with wp.Tape() as tape:
    wp.launch(push, 3, inputs=[x, {given}, 3, l])
tape.backward(l)
print(x.grad.numpy())
"""


@pytest.mark.parametrize(("given", "expect"), [("extra", "expect: NVW203"), ("None", "expect-info: NVW203")])
def test_a_loop_over_an_array_that_is_not_given_does_not_run(tmp_path: Path, given: str, expect: str) -> None:
    check(tmp_path, PRELUDE + OPTIONAL.format(given=given, expect=expect))

"""The rules say of each variant whether it costs a build: counts of one process, measured on 1.19."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import check

HEAD = """
import functools
import warp as wp
wp.config.enable_backward = False

def floats():
    return wp.zeros(3, dtype=float)
"""
AGAIN, ALONE, LATE, GROWS = (f"  # expect: NVW{code}" for code in (304, 303, 302, 305))


def kernel(name: str, value: str = "1.0", options: str = "") -> str:
    return f"""
@wp.kernel{options}
def {name}(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] + {value}
"""


def launch(name: str, array: str = "floats()", mark: str = "") -> str:
    return f"wp.launch({name}, dim=3, inputs=[{array}]){mark}\n"


FACTORY = """
{cache}
def make(c):
    @wp.kernel{options}
    def k(x: wp.array(dtype=float)):
        x[wp.tid()] += c
    return k

"""


def factory(options: str = "", cache: str = "") -> str:
    return FACTORY.format(options=options, cache=cache)


UNIQUE = '(module="unique")'
GENERIC = """
from typing import Any

@wp.kernel
def g(x: wp.array(dtype=Any)):
    x[wp.tid()] = x[wp.tid()] + x[wp.tid()]

"""
TYPED = "wp.launch(g, dim=3, inputs=[wp.zeros(3, dtype={name})])"


def option(text: str, mark: str = "") -> str:
    return kernel("a") + launch("a") + f"wp.set_module_options({{{text}}}){mark}\n" + launch("a")


MEASURED: dict[str, tuple[int, str]] = {
    "four kernels, each defined and launched": (
        4,
        "".join(kernel(name, f"{i}.0", AGAIN if i else "") + launch(name) for i, name in enumerate("abcd")),
    ),
    "an identical kernel defined three times": (
        1,
        "def go():" + kernel("k").replace("\n", "\n    ") + launch("k") + "\nfor _ in range(3):\n    go()\n",
    ),
    "a constant that changes in a loop": (
        3,
        "for C in (1.0, 2.0, 3.0):" + kernel("k", "C", AGAIN).replace("\n", "\n    ") + launch("k"),
    ),
    "three values, created up front": (
        1,
        factory() + "ks = [make(c) for c in (1.0, 2.0, 3.0)]\nfor k in ks:\n    " + launch("k"),
    ),
    "three values, one by one": (3, factory(AGAIN) + "for c in (1.0, 2.0, 3.0):\n    " + launch("make(c)")),
    "one value, three times": (1, factory() + "for c in (1.0, 1.0, 1.0):\n    " + launch("make(c)")),
    "a new function after the load": (
        1,
        kernel("a") + launch("a") + "@wp.func\ndef f(v: float):\n    return v + 1.0\n\n" + launch("a"),
    ),
    "a new struct after the load": (
        1,
        kernel("a") + launch("a") + "@wp.struct\nclass S:\n    v: float\n\n" + launch("a"),
    ),
    "maps of two builtins": (2, "x = floats()\nwp.map(wp.sin, x)\nwp.map(wp.cos, x)\nwp.map(wp.sin, x)\n"),
    "array operators": (3, "x = floats()\ny = x + x\ny = x * x\ny = -x\ny = x + x\n"),
    "fast_math after the load": (2, option('"fast_math": True', LATE)),
    "max_unroll after the load": (2, option('"max_unroll": 4', LATE)),
    "lineinfo after the load": (2, option('"lineinfo": True', LATE)),
    "block_dim after the load": (1, option('"block_dim": 64')),
    "the same value after the load": (1, option('"max_unroll": 16')),
    "four unique kernels": (
        4,
        "".join(kernel(name, f"{i}.0", UNIQUE + ALONE) for i, name in enumerate("abcd"))
        + "".join(launch(name) for name in "abcd"),
    ),
    "a generic kernel with three types": (
        3,
        GENERIC
        + TYPED.format(name="float")
        + "\n"
        + "\n".join(TYPED.format(name=name) + GROWS for name in ("wp.float64", "int"))
        + "\n",
    ),
    "a generic kernel with one type, three times": (1, GENERIC + (TYPED.format(name="float") + "\n") * 3),
    "a generic function alone": (
        1,
        "from typing import Any\n\n@wp.func\ndef f(v: Any):\n    return v + v\n"
        + kernel("a", "f(x[i])")
        + kernel("b", "f(2.0)")
        + launch("a")
        + launch("b"),
    ),
    "a unique factory, one value": (
        1,
        factory(UNIQUE) + "ks = [make(1.0) for _ in range(3)]\nfor k in ks:\n    " + launch("k"),
    ),
    "a unique factory, three values": (3, factory(UNIQUE) + "for c in (1.0, 2.0, 3.0):\n    " + launch("make(c)")),
    "an identical unique kernel in a loop": (
        1,
        "for _ in range(3):" + kernel("k", options=UNIQUE).replace("\n", "\n    ") + launch("k"),
    ),
    "unique kernels that differ by an option": (
        2,
        kernel("a", options='(module="unique", enable_backward=False)')
        + kernel("b", "2.0", '(module="unique", enable_backward=True)')
        + launch("a")
        + launch("b"),
    ),
    "a global in wp.static that changes": (
        3,
        "for N in (1, 2, 3):" + kernel("k", "float(wp.static(N))", AGAIN).replace("\n", "\n    ") + launch("k"),
    ),
    "one function decorated again in a loop": (
        1,
        "def f(x: wp.array(dtype=float)):\n    x[wp.tid()] += 1.0\n\nfor _ in range(3):\n    k = wp.kernel(f)\n    "
        + launch("k"),
    ),
    "a global constant that changes after the load": (
        1,
        "C = 1.0\n" + kernel("a", "C") + launch("a") + "C = 2.0\n" + launch("a"),
    ),
    "a scalar argument that changes": (
        1,
        "@wp.kernel\ndef a(x: wp.array(dtype=float), c: float):\n    x[wp.tid()] += c\n\n"
        + "for c in (1.0, 2.0, 3.0):\n    "
        + launch("a", "floats(), c"),
    ),
}


@pytest.mark.parametrize(("builds", "source"), MEASURED.values(), ids=MEASURED)
def test_what_costs_a_build(tmp_path: Path, builds: int, source: str) -> None:
    assert builds > 1 or "expect" not in source
    check(tmp_path, HEAD + source)

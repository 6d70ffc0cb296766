"""Locals that a dynamic loop overwrites, components that are assigned in place: verdicts as measured on Warp 1.19."""

from __future__ import annotations

import pytest
from kernel_sources import fault_lines, kernel

from warplint.kernels.summary import KernelFaultKind

LOOP = KernelFaultKind.DYNAMIC_LOOP
REASSIGNED = KernelFaultKind.COMPONENT_REASSIGN
PARAMETERS = "a: R, b: R, c: R, n: int"
FUNCTIONS = """
N = 3

@wp.func
def advance(s: float, x: float):
    return wp.sin(s) + x

@wp.func
def sums(values: wp.array(dtype=float), n: int):
    s = float(0.0)
    w = float(0.0)
    for k in range(n):
        s += values[k]
        w += wp.exp(values[k])
    return s, w

@wp.func
def product(values: wp.array(dtype=float), n: int):
    s = float(1.0)
    for k in range(n):
        s *= values[k]
    return s
"""


def _faults(body: str, kind: KernelFaultKind) -> list[str]:
    return fault_lines(kernel(body, PARAMETERS, FUNCTIONS), kind)


def _first_of_each_loop(body: str) -> list[str]:
    """Where each loop goes wrong first; what an operation reads goes before what steers it."""
    faults = [fault for fault in kernel(body, PARAMETERS, FUNCTIONS).faults if fault.kind is LOOP]
    first = {}
    for fault in sorted(faults, key=lambda fault: (bool(fault.steers), fault.order)):
        first.setdefault(fault.loop, fault.operation)
    return list(first.values())


def _loop(statement: str, after: str = "b[i] = s", bound: str = "range(n)") -> str:
    return f"s = float(0.5)\nfor k in {bound}:\n    {statement}\n{after}"


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (_loop("s *= a[k]"), "s *= a[k]"),
        (_loop("s = wp.sin(s) + a[k]"), "wp.sin(s)"),
        (_loop("s += a[k] * a[k]", "b[i] = s * s"), "s * s"),
        (_loop("s += a[k]", "b[i] = s * c[i]"), "s * c[i]"),
        (_loop("s = wp.max(s, a[k])"), "wp.max(s, a[k])"),
        (_loop("s = a[k] * a[k]", "b[i] = s * c[i]"), "s * c[i]"),
        (_loop("if a[k] > s:\n        s = a[k]"), "a[k] > s"),
        (_loop("if s < 1.0:\n        s += a[k]"), "s < 1.0"),
        (_loop("s += a[k]", "if s > 1.0:\n    s = 2.0 * s\nb[i] = s"), "s > 1.0"),
        (_loop("if a[k] < 0.0:\n        break\n    s += a[k]"), "break"),
        ("for k in range(n):\n    if a[k] < 0.0:\n        break\n    b[k] = a[k] * a[k]", "break"),
        ("for k in range(n):\n    if a[k] < 0.0:\n        return\n    b[k] += a[k] * a[k]", "return"),
        (_loop("s = wp.sin(s) + a[k]", bound="range(17)"), "wp.sin(s)"),
        (_loop("s = wp.sin(s) + a[k]\n    if c[k] < 0.0:\n        break", bound="range(3)"), "wp.sin(s)"),
        (_loop("s = wp.sin(s) + a[k]", bound="range(wp.static(20))"), "wp.sin(s)"),
        (_loop("s = wp.sin(s) + a[k]", bound="range(2 * 2)"), "wp.sin(s)"),
        (_loop("s = advance(s, a[k])"), "wp.sin(s)"),
        ("b[i] = product(a, n)", "s *= values[k]"),
        ("s = float(0.0)\nj = int(0)\nwhile j < n:\n    s += a[j] * a[j]\n    j += 1\nb[i] = s", "a[j]"),
        ("s = float(0.0)\nj = int(0)\nfor k in range(n):\n    s += a[j] * a[j]\n    j += 1\nb[i] = s", "a[j] * a[j]"),
        ("s = float(0.0)\np = float(1.0)\nfor k in range(n):\n    s += p * a[k]\n    p += c[k]\nb[i] = s", "p * a[k]"),
    ],
)
def test_a_lost_local_that_an_adjoint_reads_is_a_fault(body, place):
    assert _first_of_each_loop(body) == [place]


@pytest.mark.parametrize(
    "body",
    [
        _loop("s += a[k] * a[k]"),
        _loop("s -= a[k] * a[k]"),
        _loop("s = 0.9 * s + a[k]"),
        _loop("s *= 0.9", "b[i] = s + a[i]"),
        _loop("t = wp.sin(a[k])\n    u = t * t\n    s += u * t"),
        _loop("if a[k] > 0.0:\n        s += a[k] * a[k]"),
        _loop("if a[k] < 0.0:\n        continue\n    s += a[k] * a[k]"),
        _loop("s += a[k]", "b[i] = s / 7.0"),
        _loop("s = wp.sin(s) + a[k]", bound="range(16)"),
        _loop("s = wp.sin(s) + a[k]", bound="range(N)"),
        _loop("s = wp.sin(s) + a[k]", bound="range(0, 30, 10)"),
        _loop("s = wp.sin(s) + a[k]\n    if c[k] < 0.0:\n        continue", bound="range(3)"),
        _loop("t = a[k]\n    for j in range(2):\n        t = wp.sin(t)\n    s += t"),
        "s, w = sums(a, n)\nb[i] = s / w",
        "t = a[i] + 1.0\ns = float(0.0)\nfor k in range(n):\n    s += t * t * a[k]\nb[i] = s",
        "for k in range(n):\n    b[k + 1] = wp.sin(b[k]) + a[k]",
        "for k in range(3):\n    if a[k] < 0.0:\n        return\n    wp.atomic_add(b, 0, a[k] * a[k])",
        "s = float(0.0)\nfor k in range(n):\n    s += a[k]\nb[0] = s\nc[0] = b[0] * b[0]",
    ],
)
def test_loops_whose_adjoint_reads_nothing_lost(body):
    assert _faults(body, LOOP) == []


def test_the_first_operation_speaks_for_the_loop():
    body = _loop("s = wp.sin(s) * a[k] * s", "b[i] = wp.cos(s) * s\nc[i] = wp.exp(s)")
    assert _first_of_each_loop(body) == ["wp.sin(s)"]


@pytest.mark.parametrize(
    ("body", "places"),
    [
        ("p = wp.vec3()\np[0] = a[i]\np[0] = c[i]\nb[i] = wp.dot(p, p)", ["p[0] = c[i]"]),
        ("p = wp.vec3(a[i], c[i], 1.0)\np.x = 0.5\nb[i] = p[0] + p[1]", ["p.x = 0.5"]),
        ("p = wp.vec3(a[i], c[i], 1.0)\np[0] = p[0] * p[1]\nb[i] = p[0]", ["p[0] = p[0] * p[1]"]),
        ("p = wp.vec3(a[i], c[i], 1.0)\nif c[i] > 0.0:\n    p[0] = 0.5\nb[i] = p[0]", ["p[0] = 0.5"]),
        ("p = wp.vec3()\np[0] = a[i]\ns = wp.length(p)\np[1] = c[i]\nb[i] = s + p[1]", ["p[1] = c[i]"]),
        ("p = wp.vec3()\nfor k in range(n):\n    p[k] = a[k]\nb[i] = wp.dot(p, p)", ["p[k] = a[k]"]),
        (
            "m = wp.mat22(a[i], a[i], a[i], a[i])\nm[0] = wp.vec2(1.0, c[i])\nb[i] = wp.trace(m)",
            ["m[0] = wp.vec2(1.0, c[i])"],
        ),
    ],
)
def test_a_component_assigned_over_one_that_carries_gradient_is_a_fault(body, places):
    assert _faults(body, REASSIGNED) == places


@pytest.mark.parametrize(
    "body",
    [
        "p = wp.vec3()\np[0] = a[i]\np[1] = c[i]\nb[i] = wp.dot(p, p)",
        "p = wp.vec3(1.0, 2.0, 3.0)\np[0] = a[i]\nb[i] = wp.dot(p, p)",
        "p = wp.vec3()\np[0] = a[i]\np[0] += c[i]\nb[i] = wp.dot(p, p)",
        "p = wp.vec3()\nif c[i] > 0.0:\n    p[0] = a[i]\nelse:\n    p[0] = c[i]\nb[i] = wp.dot(p, p)",
        "p = wp.vec3()\nfor k in range(3):\n    p[k] = a[k]\nb[i] = wp.dot(p, p)",
        "m = wp.mat22()\nm[0] = wp.vec2(1.0, c[i])\nm[1] = wp.vec2(a[i], 1.0)\nb[i] = wp.determinant(m)",
        "p = wp.vec3()\np[0] = a[i]\nt = p[0] * p[0]\np[1] = c[i]\nb[i] = t + p[1]",
        "p = wp.vec3(a[i], c[i], 1.0)\nq = p\np = wp.vec3(0.5, p[1], p[2])\nb[i] = wp.dot(p, q)",
    ],
)
def test_first_assignments_and_sums_of_components_are_harmless(body):
    assert _faults(body, REASSIGNED) == []


def test_a_component_selected_by_a_branch_stands_on_its_condition():
    body = "p = wp.vec3(1.0, 2.0, 3.0)\nif c[i] > 0.0:\n    p = wp.vec3(a[i], 2.0, 3.0)\nb[i] = p[0]"
    summary = kernel(body)
    assert {need.read.path for store in summary.stores for need in store.needs} == {"c"}


ASKED_AGAIN = """
    for j in range(n):
        p = int(c[j])
        if p >= 0:
            t = a[p] * a[p]
        {between}
        if {test}:
            b[i] += t * a[j]
"""


@pytest.mark.parametrize(
    ("between", "test", "carried"),
    [
        ("q = p", "p >= 0", False),
        ("q = p", "p > 0", True),
        ("p = p - 1", "p >= 0", True),
        ("for p in range(2):\n            q = p", "p >= 0", True),
    ],
)
def test_what_a_condition_assigns_is_there_where_it_is_asked_again(between, test, carried):
    body = ASKED_AGAIN.format(between=between, test=test)
    summary = kernel(body, "a: R, b: R, c: Z, n: int")
    assert any(fault.detail == "t" for fault in summary.faults) is carried

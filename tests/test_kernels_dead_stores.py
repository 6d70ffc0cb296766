"""Stores that the kernel itself replaces before anybody reads them: nothing about their adjoints matters."""

from __future__ import annotations

import pytest
from kernel_sources import kernel, needed


@pytest.mark.parametrize(
    "body",
    [
        "b[i] = a[i] * c[i]\nb[i] = 2.0",
        "b[i] += a[i] * c[i]\nb[i] *= c[i]\nb[i] = 2.0",
        "if c[i] > 0.0:\n    b[i] = a[i] * a[i]\nb[i] = 2.0",
        "for k in range(n):\n    b[i] += a[k] * a[k]\nb[i] = 2.0",
        "for k in range(n):\n    b[k] = a[k] * a[k]\n    b[k] = 2.0",
        "for k in range(3):\n    b[i] = a[k] * a[k]\nb[i] = 2.0",
        "if i >= n:\n    return\nb[i] = a[i] * a[i]\nb[i] = 2.0",
        "wp.atomic_add(b, i, wp.frac(a[i]))\nb[i] = 2.0",
        "wp.atomic_max(b, i, a[i] * a[i])\nb[i] = 2.0",
        "b[i] = a[i] * a[i]\nb[i] = b[i] * b[i]\nb[i] = 2.0",
        "for k in range(n):\n    b[i] = b[i] * a[k]\nb[i] = 2.0",
        "b[i] = a[i] * a[i]\nc[i] = b[i]\nc[i] = 2.0\nb[i] = 2.0",
        "b[i] *= a[i]\nwp.atomic_add(b, i + 1, 2.0)\nb[i] = 2.0",
    ],
)
def test_dead(body):
    summary = kernel(body, "a: R, b: R, c: R, n: int")
    assert needed(summary) <= {"c[i]"}  # the condition of a store
    assert not any(store.active for store in summary.stores)
    assert summary.faults == ()


@pytest.mark.parametrize(
    "body",
    [
        "b[i] = a[i] * a[i]\nc[i] = b[i]\nb[i] = 2.0",
        "b[i] = a[i] * a[i]\nb[i] = 2.0 * b[i]",
        "b[i] = a[i] * a[i]\nc[i] = b[i + 1]\nb[i] = 2.0",
        "b[i] = a[i] * a[i]\nb[i] += 2.0",
        "wp.atomic_max(b, i, a[i] * a[i])\nc[i] = b[i]\nb[i] = 2.0",
        "b[i] = a[i] * a[i]\nif c[i] > 0.0:\n    b[i] = 2.0",
        "b[i] = a[i] * a[i]\nfor k in range(n):\n    b[i] = 2.0",
        "b[i] = a[i] * a[i]\nif c[i] > 0.0:\n    return\nb[i] = 2.0",
        "for k in range(n):\n    c[i] = b[i]\n    b[i] = a[k] * a[k]\nb[i] = 2.0",
        "for k in range(n):\n    b[k] = a[k] * a[k]\nb[k] = 2.0",
        "b[i + 1] = a[i] * a[i]\nb[i] = 2.0",
        "for k in range(n):\n    b[k] = a[k] * a[k]\n    c[k] = b[k + s]\n    b[k] = 2.0",
        "for k in range(n):\n    b[k + 1] = a[k] * a[k]\n    c[k] = b[k]\nb[0] = 2.0",
    ],
)
def test_alive(body):
    summary = kernel(body, "a: R, b: R, c: R, n: int, s: int")
    assert any("a[" in read for read in needed(summary))


@pytest.mark.parametrize(
    "body",
    [
        "for k in range(n):\n    b[k] *= a[k]\n    b[k] = 0.5 * b[k + 1]",
        "for k in range(n):\n    b[k + 1] = a[k] * a[k]\n    c[k] = b[k]\n    b[k + 1] = 2.0",
        "b[0] = a[i] * a[i]\nb[2] = b[1]\nb[0] = 2.0",
    ],
)
def test_a_read_of_the_next_element_keeps_no_store_alive(body):
    summary = kernel(body, "a: R, b: R, c: R, n: int")
    assert needed(summary) == set()
    assert summary.faults == ()


@pytest.mark.parametrize(
    "body",
    [
        "b[i] = a[i] * a[i]\nif b[i] > 0.5:\n    c[i] = 3.0\nb[i] = 2.0",
        "b[i] = a[i] * a[i]\nc[i] += wp.step(b[i]) * c[i + 1]\nb[i] = 2.0",
        "b[i] = b[i] * b[i]\nc[i] = 3.0\nb[i] = wp.floor(b[i])",
    ],
)
def test_a_read_through_which_no_gradient_flows_keeps_no_store_alive(body):
    summary = kernel(body, "a: R, b: R, c: R, n: int")
    (first, *_) = (store for store in summary.stores if store.path == "b")
    assert (first.needs, first.active) == ((), frozenset())


LOST = "t = a[i] * c[i]\nb[i] = t * t\n"


@pytest.mark.parametrize(
    ("loops", "lost"),
    [
        ("for k in range(n):\n    t += a[k]\nfor k in range(n):\n    b[i] = c[k]", False),
        ("for k in range(n):\n    t += a[k]\n    b[i] = c[k]", False),
        ("for k in range(1, n):\n    t += a[k]\nfor k in range(n):\n    b[i] = c[k]", False),
        ("for k in range(n):\n    t += a[k]\nfor k in range(1, n):\n    b[i] = c[k]", True),
        ("for k in range(n):\n    t += a[k]\nfor k in range(m):\n    b[i] = c[k]", True),
        ("for k in range(n):\n    t += a[k]\n    if c[k] > 0.0:\n        b[i] = c[k]", True),
        ("for k in range(n):\n    t += a[k]\n    if c[k] > 0.0:\n        continue\n    b[i] = c[k]", True),
        ("for k in range(n):\n    t += a[k]\n    d[k] = 2.0 * b[i]\n    b[i] = c[k]", True),
    ],
)
def test_where_a_loop_loses_a_variable_another_one_over_the_same_range_runs_too(loops, lost):
    summary = kernel(LOST + loops, "a: R, b: R, c: R, d: R, n: int, m: int")
    assert ("t * t" in [fault.operation for fault in summary.faults]) is lost


def test_a_component_kills_that_component_only():
    summary = kernel("v[i][0] = a[i] * a[i]\nv[i].x = 1.0\nv[i][1] = b[i] * b[i]\nv[i].x = 2.0", "v: V, a: R, b: R")
    assert needed(summary) == {"b[i]"}
    summary = kernel("v[i] = wp.vec3(a[i] * a[i])\nv[i].x = 1.0", "v: V, a: R")
    assert needed(summary) == {"a[i]"}

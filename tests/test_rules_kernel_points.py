"""Singular operands that ``where`` does not select, and stores that all threads share."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import check
from test_rules_kernel_adjoints import launched

SELECTED = {
    "division": "wp.atomic_add(l, 0, wp.where(x[i] > 0.0, 1.0 / x[i], 0.0))  # expect: NVW204",
    "division by what is not differentiated": (
        "m = float(c[i])\nwp.atomic_add(l, 0, wp.where(m != 0.0, x[i] / m, 0.0))  # expect: NVW204"
    ),
    "root": "wp.atomic_add(l, 0, wp.where(x[i] < 0.0, wp.sqrt(-x[i]), x[i]))  # expect: NVW204",
    "through a local": "r = wp.log(x[i])  # expect: NVW204\nwp.atomic_add(l, 0, wp.where(x[i] > 0.0, r, 0.0))",
    "overflow": "e = x[i]\nwp.atomic_add(l, 0, wp.where(e > 20.0, e, wp.log(1.0 + wp.exp(e))))  # expect: NVW204",
    "guarded by max": "s = wp.max(x[i], 1.0e-6)\nwp.atomic_add(l, 0, wp.where(x[i] > 0.0, wp.sqrt(s), 0.0))",
    "guarded by a sum": "wp.atomic_add(l, 0, wp.where(x[i] > 0.0, 1.0 / (wp.abs(x[i]) + 1.0e-6), 0.0))",
    "guarded twice": "s = wp.where(x[i] > 0.0, x[i], 1.0)\nwp.atomic_add(l, 0, wp.where(x[i] > 0.0, 1.0 / s, 0.0))",
    "ternary": "wp.atomic_add(l, 0, 1.0 / x[i] if x[i] > 0.0 else 0.0)",
    "branch": "r = float(0.0)\nif x[i] > 0.0:\n    r = wp.where(x[i] > 0.0, 1.0 / x[i], 0.0)\nwp.atomic_add(l, 0, r)",
    "another operand": "wp.atomic_add(l, 0, wp.where(x[0] > 0.0, 1.0 / (x[i] * x[i] + 2.0), 0.0))",
    "another number": "wp.atomic_add(l, 0, wp.where(x[i] > 1.0, wp.log(x[i]), 0.0))",
}


@pytest.mark.parametrize("body", SELECTED.values(), ids=SELECTED)
def test_operands_of_where(tmp_path: Path, body: str) -> None:
    check(tmp_path, launched(body))


SHARED = {
    "all": "l[0] = x[i] * x[i]  # expect: NVW211",
    "summed by hand": "l[0] = l[0] + x[i]  # expect-info: NVW211",
    "added": "l[0] += x[i] * x[i]",
    "one thread": "if i == 0:\n    l[0] = x[i] * x[i]",
    "the same for all": "l[0] = x[0] * x[1]",
    "each its own": "l[i] = x[i] * x[i]",
}


@pytest.mark.parametrize("body", SHARED.values(), ids=SHARED)
def test_stores_to_one_element(tmp_path: Path, body: str) -> None:
    check(tmp_path, launched(body))


def test_a_launch_of_one_thread_shares_nothing(tmp_path: Path) -> None:
    source = launched(SHARED["all"].replace("  # expect: NVW211", ""))
    check(tmp_path, source.replace("wp.launch(k, 3", "wp.launch(k, 1"))

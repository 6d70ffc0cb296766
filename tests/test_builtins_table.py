"""The table of builtins against the installed Warp, and what the analysis makes of its rows."""

from __future__ import annotations

import json

import pytest
from kernel_sources import fault_lines, kernel, needed

from warplint.kernels.summary import KernelFaultKind

wp = pytest.importorskip("warp")

from builtins_table import TABLE, table  # noqa: E402
from warp._src.context import builtin_functions  # noqa: E402

HELD = json.loads(TABLE.read_text())


def of_this_warp() -> None:
    if wp.config.version != HELD["warp"]:
        pytest.skip(f"the table is that of Warp {HELD['warp']}")


@pytest.mark.warp
def test_it_knows_each_builtin_and_whether_it_has_an_adjoint() -> None:
    of_this_warp()
    held = {name: row["adjoint"] for name, row in HELD["builtins"].items()}
    assert held == {name: bool(each.is_differentiable) for name, each in builtin_functions.items()}


@pytest.mark.warp
def test_no_newer_warp_has_a_builtin_that_it_does_not_know() -> None:
    unknown = sorted(set(builtin_functions) - set(HELD["builtins"]))
    assert not unknown, "make the table again: python tests/builtins_table.py"


@pytest.mark.warp
@pytest.mark.slow
def test_its_rows_can_be_measured_again() -> None:
    of_this_warp()
    assert json.loads(json.dumps(table())) == HELD["builtins"]


def test_most_builtins_on_numbers_are_measured() -> None:
    measured = {name for name, row in HELD["builtins"].items() if row.get("measured")}
    assert {
        "sin",
        "sqrt",
        "pow",
        "atan2",
        "dot",
        "normalize",
        "quat_slerp",
        "transform_point",
        "svd3",
        "frac",
    } <= measured
    assert not [name for name in measured if HELD["builtins"][name].get("wrong")]


VECTORS = "a: V, b: V, c: V"

NEEDED = {
    "quotient": ("c[i] = a[i] / b[i]", {"a[i]", "b[i]"}),
    "product": ("c[i] = a[i] * b[i]", {"a[i]", "b[i]"}),
    "sum": ("c[i] = a[i] + b[i]", set()),
    "absolute value": ("c[i] = wp.abs(a[i])", {"a[i]"}),
    "weight": ("c[i] = wp.lerp(a[i], b[i], 0.5)", set()),
    "remainder": ("c[i] = a[i] % b[i]", set()),
    "cast": ("c[i] = float(wp.float64(a[i]))", set()),
}


@pytest.mark.parametrize(("body", "expected"), NEEDED.values(), ids=NEEDED)
def test_adjoints_read_what_was_measured(body: str, expected: set[str]) -> None:
    assert needed(kernel(body)) == expected


def test_a_product_of_transforms_reads_its_first_factor_for_both() -> None:
    before = "T = wp.array(dtype=wp.transform)"
    summary = kernel("c[i] = a[i] * b[i]", "a: T, b: T, c: T", before)
    first = {need.read.path for store in summary.stores for need in store.needs if need.given == {"a"}}
    assert first == {"a", "b"}


def test_remainders_give_nothing_to_the_divisor_nor_to_vectors() -> None:
    assert fault_lines(kernel("c[i] = a[i] % b[i]"), KernelFaultKind.NONDIFFERENTIABLE) == ["a[i] % b[i]"]
    summary = kernel("c[i] = wp.mod(a[i], b[i])", VECTORS)
    (fault,) = [each for each in summary.faults if each.kind is KernelFaultKind.NONDIFFERENTIABLE]
    assert fault.given == {"a", "b"}
    assert not fault_lines(kernel("c[i] = a[i] % 2.0"), KernelFaultKind.NONDIFFERENTIABLE)

"""Functions of the project in kernels, loops, budgets, what cannot be resolved."""

from __future__ import annotations

import pytest
from kernel_sources import kernel, needed, sources_of, store_to, summary_of

from warplint.kernels.analysis import summarise
from warplint.kernels.summary import KernelFaultKind, StoreKind

FUNCTIONS = """
@wp.func
def scale(x: float, s: float):
    return s * x

@wp.func
def swing(x: float):
    y = x + 1.0
    return wp.sin(y)

@wp.func
def clip(x: float):
    if x < 0.0:
        return 0.1 * x
    return x

@wp.func
def pick(values: wp.array(dtype=float), k: int):
    return values[k]

@wp.func
def put(values: wp.array(dtype=float), k: int, x: float):
    values[k] = x * x

@wp.func
def both(x: float, y: float):
    return 2.0 * x, wp.sin(y)

@wp.func
def total(values: wp.array(dtype=float), n: int):
    s = float(0.0)
    for k in range(n):
        s += values[k]
    return s

@wp.func
def optional(x: float, s: float = 2.0):
    return s * x

@wp.func
def apply(f: wp.Function, x: float):
    return f(x)
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("b[i] = scale(a[i], 3.0)", set()),
        ("b[i] = scale(a[i], c[i])", {"a[i]", "c[i]"}),
        ("b[i] = swing(a[i])", {"a[i]"}),
        ("b[i] = clip(a[i])", {"a[i]"}),
        ("b[i] = wp.sin(pick(a, i + 1))", {"a[i + 1]"}),
        ("put(b, i, a[i])", {"a[i]"}),
        ("x, y = both(a[i], c[i])\nb[i] = x", set()),
        ("x, y = both(a[i], c[i])\nb[i] = y", {"c[i]"}),
        ("b[i] = optional(a[i])", set()),
        ("b[i] = apply(swing, a[i])", {"a[i]"}),
    ],
)
def test_functions_are_followed(body, expected):
    summary = kernel(body, before=FUNCTIONS)
    assert summary.complete, summary.why
    assert needed(summary) == expected


def test_a_store_in_a_function_stands_where_it_is_written():
    store = store_to(kernel("put(b, i, a[i])", before=FUNCTIONS), "b")
    assert (store.index, store.every_thread) == ("i", True)
    assert store.span.line == 26


def test_overloads_are_told_apart_by_their_arguments():
    functions = """
    @wp.func
    def f(x: float):
        return 2.0 * x

    @wp.func
    def f(x: float, y: float):
        return x * y

    @wp.func
    def f(v: wp.vec3):
        return wp.length(v)
    """
    assert needed(kernel("b[i] = f(a[i])", before=functions)) == set()
    assert needed(kernel("b[i] = f(a[i], c[i])", before=functions)) == {"a[i]", "c[i]"}
    assert needed(kernel("b[i] = f(v[i])", "v: V, b: R", before=functions)) == {"v[i]"}


def test_a_native_function_without_adjoint_cuts():
    functions = """
    @wp.func_native(snippet="return x * x;")
    def square(x: float) -> float: ...
    """
    store = store_to(kernel("b[i] = square(a[i])", before=functions), "b")
    assert [(path, cut.value) for path, cut in store.cuts] == [("a", "native")]
    assert store.active == frozenset()


def test_a_native_function_with_an_adjoint_reads_its_arguments():
    functions = """
    @wp.func_native(snippet="return x * x;", adj_snippet="adj_x += 2.0 * x * adj_ret;")
    def square(x: float) -> float: ...
    """
    summary = kernel("b[i] = square(a[i])", before=functions)
    assert store_to(summary, "b").active == {"a"}
    assert needed(summary) == {"a[i]"}


def test_a_custom_adjoint_may_read_any_argument():
    functions = """
    @wp.func
    def f(x: float, y: float):
        return x + y

    @wp.func_grad(f)
    def adjoint_of_f(x: float, y: float, adj: float):
        wp.adjoint[x] += y * adj
    """
    summary = kernel("b[i] = f(a[i], c[i])", before=functions)
    assert needed(summary) == {"a[i]", "c[i]"}


def test_a_replay_is_what_the_backward_pass_reads():
    functions = """
    @wp.func
    def slot(count: wp.array(dtype=int), slots: wp.array(dtype=int), i: int):
        n = wp.atomic_add(count, 0, 1)
        slots[i] = n
        return n

    @wp.func_replay(slot)
    def replay_slot(count: wp.array(dtype=int), slots: wp.array(dtype=int), i: int):
        return slots[i]
    """
    summary = kernel("b[slot(n, s, i)] = a[i]", "a: R, b: R, n: Z, s: Z", before=functions)
    assert needed(summary) == {"s[i]"}
    assert [store.kind for store in summary.stores if store.path == "n"] == [StoreKind.ACCUMULATE]


def test_a_gradient_taken_inside_a_kernel_is_no_part_of_the_chain():
    functions = """
    @wp.func
    def f(x: float):
        return wp.sin(x)
    """
    store = store_to(kernel("b[i] = wp.grad(f)(a[i])", before=functions), "b")
    assert (store.active, store.depends) == (frozenset(), {"a"})


def test_an_unknown_callee_leaves_the_summary_incomplete():
    summary = kernel("b[i] = helpers.mystery(a[i])")
    assert not summary.complete
    assert "helpers.mystery" in summary.why
    assert [store.path for store in summary.stores] == ["b"]


def test_an_unknown_conversion_of_a_literal_is_harmless():
    assert kernel("b[i] = settings.dtype(0.5) * a[i]").complete


def test_unrolled_loops_see_their_index():
    summary = kernel("s = float(1.0)\nfor k in range(3):\n    s *= a[k]\nb[i] = s")
    assert needed(summary) == {"a[0]", "a[1]", "a[2]"}


def test_a_captured_constant_bounds_an_unrolled_loop():
    assert needed(kernel("s = float(0.0)\nfor k in range(N):\n    s += a[k] * a[k]\nb[i] = s", before="N = 2")) == {
        "a[0]",
        "a[1]",
    }


def test_a_loop_longer_than_the_limit_stays_a_loop():
    text = """
    @wp.kernel
    def k(a: wp.array(dtype=float), b: wp.array(dtype=float)):
        s = float(0.0)
        for k in range(4):
            s += a[k] * a[k]
        b[0] = s
    """
    assert needed(summary_of(text)) == {"a[0]", "a[1]", "a[2]", "a[3]"}
    assert needed(summary_of(text, max_unroll=2)) == {"a[k]"}


def test_a_local_carried_by_a_loop_gathers_what_it_is_made_from():
    summary = kernel(
        "s = c[i]\nt = c[0]\nfor k in range(n):\n    t = s\n    s = s + a[k]\nb[i] = wp.sin(t)",
        "a: R, b: R, c: R, n: int",
    )
    assert needed(summary) == {"a[k]", "c[i]", "c[0]"}


def test_a_loop_that_is_left_by_its_data_reads_them():
    summary = kernel(
        "s = float(0.0)\nfor k in range(n):\n    if c[k] > 0.0:\n        break\n    s += a[k]\nb[i] = s",
        "a: R, b: R, c: R, n: int",
    )
    assert needed(summary) == {"c[k]"}


def test_what_follows_a_return_inside_a_loop_stands_under_its_condition():
    summary = kernel("for k in range(n):\n    if c[k] > 0.0:\n        return\nb[i] = a[i]", "a: R, b: R, c: R, n: int")
    assert store_to(summary, "b").conditional
    assert needed(summary) == {"c[k]"}


def test_a_long_unrolled_loop_is_summarised_within_the_budget():
    body = "s = float(0.0)\n" + "".join(f"{'    ' * depth}for k{depth} in range(16):\n" for depth in range(5))
    body += "    " * 5 + "s += a[k4] * a[k4]\nb[i] = s"
    summary = kernel(body)
    assert summary.complete, summary.why
    assert {need.read.path for need in store_to(summary, "b").needs} == {"a"}


def test_a_kernel_beyond_the_budget_says_so():
    body = "\n".join(f"b[{k}] = " + " + ".join(f"a[{j}] * c[{k}]" for j in range(200)) for k in range(200))
    summary = kernel(body)
    assert not summary.complete
    assert "steps" in summary.why or "needs" in summary.why


def test_a_summary_goes_by_what_is_captured():
    text = """
    N = {}

    @wp.kernel
    def k(a: wp.array(dtype=float), b: wp.array(dtype=float)):
        for j in range(N):
            b[j] = a[j]
    """
    source = sources_of(text.format(2))["k"]
    changed = type(source)(source.node, source.path, sources_of(text.format(3))["k"].scope)
    assert len(summarise(source).stores) == 2
    assert len(summarise(changed).stores) == 3


def test_a_fault_in_a_function_stands_in_the_function():
    functions = """
    @wp.func
    def damp(values: wp.array(dtype=float), k: int, factor: float):
        values[k] *= factor
    """
    found = kernel("damp(b, i, a[i])", before=functions).faults
    (fault,) = [each for each in found if each.kind is KernelFaultKind.INPLACE_MULTIPLY]
    assert (fault.given, fault.operation) == ({"a"}, "values[k] *= factor")
    assert [each.kind for each in found if each.certain] == [fault.kind]


CHOLESKY = """
@wp.func
def root(n: int, a: R, l: R):
    for j in range(n):
        s = a[j]
        for k in range(j):
            s -= l[k] * l[k]
        l[j] = wp.sqrt(s)

@wp.func_grad(root)
def adj_root(n: int, a: R, l: R):
    for j in range(n):
        wp.adjoint[a][j] += wp.adjoint[l][j]
"""


def test_what_a_function_with_a_custom_adjoint_stores_is_not_differentiated_inside():
    summary = kernel("root(3, a, b)", before="R = wp.array(dtype=float)" + CHOLESKY)
    assert not [fault for fault in summary.faults if fault.kind is KernelFaultKind.DYNAMIC_LOOP]
    assert not summary.points
    assert not [fault for fault in summary.faults if fault.kind is KernelFaultKind.READ_THEN_OVERWRITTEN]
    assert not [need for store in summary.stores for need in store.needs if need.read.path == "b"]
    assert store_to(summary, "b").active == {"a", "b"}
    plain = kernel("root(3, a, b)", before="R = wp.array(dtype=float)" + CHOLESKY.partition("@wp.func_grad")[0])
    assert [fault for fault in plain.faults if fault.kind is KernelFaultKind.DYNAMIC_LOOP]

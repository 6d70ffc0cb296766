"""Stores: where they go, whether they cover the array; faults that lie inside one kernel."""

from __future__ import annotations

import ast

import pytest
from kernel_sources import fault_lines, kernel, store_to, summary_of

from warplint.kernels.screen import has_fault_trigger
from warplint.kernels.summary import KernelFaultKind, StoreKind

OVERWRITTEN = KernelFaultKind.READ_THEN_OVERWRITTEN
MULTIPLIED = KernelFaultKind.INPLACE_MULTIPLY
COMPONENT = KernelFaultKind.COMPONENT_MULTIPLY


@pytest.mark.parametrize(
    ("body", "covers", "every_thread"),
    [
        ("b[i] = 1.0", True, True),
        ("j = i\nb[j] = 1.0", True, True),
        ("b[i + 1] = 1.0", False, True),
        ("b[0] = 1.0", None, False),
        ("b[int(c[i])] = 1.0", None, None),
        ("b[i] += 1.0", False, True),
        ("if c[i] > 0.0:\n    b[i] = 1.0", False, True),
        ("if i >= n:\n    return\nb[i] = 1.0", None, True),
        ("for k in range(n):\n    b[k] = 1.0", None, False),
    ],
)
def test_coverage(body, covers, every_thread):
    store = store_to(kernel(body, "a: R, b: R, c: R, n: int"), "b")
    assert (store.covers_array, store.every_thread) == (covers, every_thread)


def test_one_dimension_of_two_is_not_an_element_of_its_own():
    summary = summary_of(
        """
        @wp.kernel
        def k(a: wp.array2d(dtype=float), b: wp.array(dtype=float), c: wp.array2d(dtype=float)):
            i, j = wp.tid()
            b[i] = a[i, j]
            c[j, i] = a[i, j]
        """
    )
    assert store_to(summary, "b").every_thread is None
    assert store_to(summary, "c").covers_array is True


def test_components_of_elements_are_stored_apart():
    summary = kernel("v[i].x = a[i]\nv[i][1] += a[i]", "v: V, a: R")
    assert [(store.component, store.whole, store.kind) for store in summary.stores] == [
        ("0", False, StoreKind.STORE),
        ("1", False, StoreKind.ACCUMULATE),
    ]
    assert not any(store.covers_array for store in summary.stores)


def test_a_store_of_a_constant_has_neither_active_nor_needed_values():
    store = store_to(kernel("b[i] = 0.0"), "b")
    assert (store.active, store.depends, store.needs) == (frozenset(), frozenset(), ())


def test_tiles_read_and_store_blocks():
    summary = summary_of(
        """
        @wp.kernel
        def k(a: wp.array(dtype=float), b: wp.array(dtype=float)):
            i = wp.tid()
            t = wp.tile_load(a, shape=64, offset=i * 64)
            s = wp.tile_sum(wp.tile_map(wp.sin, t))
            wp.tile_atomic_add(b, s, offset=i)
        """
    )
    store = store_to(summary, "b")
    assert (store.kind, store.active) == (StoreKind.ACCUMULATE, {"a"})
    assert {need.read.path for need in store.needs} == {"a"}


@pytest.mark.parametrize(
    "body",
    [
        "b[i] = wp.sin(b[i])",
        "b[i] = b[i] * b[i]",
        "t = b[i]\nc[i] = t * t\nb[i] = 0.5 * t",
        "b[i] += b[i] * b[i]",
        "b[i] = a[i]\nb[i] = 3.0 * b[i] + wp.sin(b[i])",
        "c[i] = b[i] * b[i]\nb[i] = 1.0",
        "c[i] = b[i] * b[i]\nwp.atomic_add(b, i, 1.0)",
        "j = i\nc[i] = b[i] * b[i]\nb[j] = 1.0",
        "if b[i] < 0.0:\n    b[i] = 0.0",
        "b[i] = b[i] ** 2.0",
        "b[i] **= 2.0",
        "for k in range(4):\n    b[i] = b[i] + a[k] * b[i] * b[i]",
        "for k in range(n):\n    b[i] = a[k]\n    c[k] = b[i] * b[i]",
    ],
)
def test_an_element_overwritten_after_a_needed_read_is_a_fault(body):
    faults = [f for f in kernel(body, "a: R, b: R, c: R, n: int").faults if f.kind is OVERWRITTEN]
    (fault,) = {f.span.line: f for f in faults}.values()
    assert fault.read is not None
    assert fault.read.path == "b"


@pytest.mark.parametrize(
    "body",
    [
        "b[i] = 2.5 * b[i]",
        "b[i] = b[i] + c[i] * c[i]",
        "b[i] += 0.3 * b[i]",
        "b[i] += c[i] * c[i]",
        "b[i] = a[i] * a[i]\nc[i] = wp.sin(b[i]) * b[i]",
        "b[i] = a[i] * a[i]\nb[i] = wp.sin(a[i])",
        "c[i] = b[i] * b[i]\nb[i + n] = 1.0",
        "if a[i] > 0.0:\n    c[i] = b[i] * b[i]\nelse:\n    b[i] = 1.0",
        "if a[i] > 0.0:\n    c[i] = b[i] * b[i]\n    return\nb[i] = 1.0",
        "for k in range(n):\n    b[k + 1] = wp.sin(b[k]) + a[k]",
        "for k in range(n):\n    b[k] = a[k]\n    c[k] = b[k] * b[k]",
    ],
)
def test_what_no_adjoint_needs_may_be_overwritten(body):
    assert kernel(body, "a: R, b: R, c: R, n: int").faults == ()


def test_a_fault_is_conditional_on_activity_and_on_what_it_reaches():
    (fault,) = kernel("c[i] = b[i] * a[i]\nb[i] = 1.0").faults
    assert (fault.given, fault.into) == ({"a"}, {"c"})
    assert fault.operation == "b[i] = 1.0"


def test_another_component_may_be_overwritten():
    assert kernel("b[i] = v[i].y * v[i].y\nv[i].x = 1.0", "v: V, b: R").faults == ()
    assert len(kernel("b[i] = v[i].y * v[i].y\nv[i][1] = 1.0", "v: V, b: R").faults) == 1
    assert len(kernel("b[i] = wp.dot(v[i], v[i])\nv[i].x = 1.0", "v: V, b: R").faults) == 1


@pytest.mark.parametrize(
    ("body", "given"),
    [
        ("b[i] *= a[i]", {"a"}),
        ("b[i] /= a[i]", {"a"}),
        ("b[i] = c[i]\nb[i] *= a[0] + c[0]", {"a", "c"}),
        ("b[i] *= b[0]", {"b"}),
    ],
)
def test_multiplying_an_element_in_place_loses_the_multipliers_gradient(body, given):
    (fault,) = kernel(body).faults
    assert fault.kind is MULTIPLIED
    assert (fault.given, fault.into) == (given, {"b"})


@pytest.mark.parametrize(
    ("body", "parameters"),
    [
        ("b[i] *= 2.0", "b: R"),
        ("b[i] *= scale", "b: R, scale: float"),
        ("b[i] /= float(z[i])", "b: R, z: Z"),
        ("b[i] *= wp.floor(a[i])", "a: R, b: R"),
        ("s = a[i]\ns *= a[i]\ns /= a[0]\nb[i] = s", "a: R, b: R"),
        ("p = v[i]\np *= a[i]\nout[i] = p", "v: V, a: R, out: V"),
        ("z[i] *= z[0]", "z: Z"),
    ],
)
def test_factors_without_gradient_and_whole_locals_are_harmless(body, parameters):
    assert [fault for fault in kernel(body, parameters).faults if fault.kind is not KernelFaultKind.FLAT] == []


@pytest.mark.parametrize(
    "body",
    [
        "p = wp.vec3(a[i], c[i], 1.0)\np[0] *= c[i]\nb[i] = wp.dot(p, p)",
        "p = wp.vec3(a[i], c[i], 1.0)\np.y /= a[i]\nb[i] = wp.dot(p, p)",
        "p = wp.vec3()\np[0] = a[i]\np[0] *= 2.0\nb[i] = wp.dot(p, p)",
        "m = wp.mat22(a[i], c[i], a[i], c[i])\nm[0, 1] *= 2.0\nb[i] = wp.determinant(m)",
    ],
)
def test_multiplying_a_component_that_carries_gradient_is_a_fault(body):
    (fault,) = kernel(body).faults
    assert fault.kind is COMPONENT
    assert fault.into == {"b"}


@pytest.mark.parametrize(
    "body",
    [
        "p = wp.vec3(2.0, 3.0, 4.0)\np[0] *= a[i]\nb[i] = wp.dot(p, p)",
        "p = wp.vec3(a[i], c[i], 1.0)\np[2] *= a[i]\nb[i] = wp.dot(p, p)",
        "p = wp.vec3(a[i], c[i], 1.0)\np[0] += c[i]\nb[i] = wp.dot(p, p)",
        "p = wp.vec3(a[i], c[i], 1.0)\np[0] *= 2.0\nb[i] = a[i]",
    ],
)
def test_multiplying_a_component_without_gradient_is_harmless(body):
    assert kernel(body).faults == ()


def test_a_field_of_a_local_struct_is_no_component():
    summary = summary_of(
        """
        @wp.struct
        class Pair:
            first: float
            second: float

        @wp.kernel
        def k(a: wp.array(dtype=float), b: wp.array(dtype=float)):
            i = wp.tid()
            pair = Pair()
            pair.first = a[i]
            pair.first *= a[0]
            b[i] = pair.first
        """
    )
    assert summary.faults == ()
    assert store_to(summary, "b").active == {"a"}


def test_fault_stands_at_the_store():
    summary = kernel("c[i] = b[i] * b[i]\nb[i] *= a[i]")
    assert fault_lines(summary, OVERWRITTEN) == ["b[i] *= a[i]"]
    assert fault_lines(summary, MULTIPLIED) == ["b[i] *= a[i]"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y[i] *= 2.0", True),
        ("if c:\n    v.x /= 2.0", True),
        ("s *= 2.0", False),
        ("y[i] += 2.0", False),
        ("w = v\nw[0] = 2.0", True),
        ("y[i] = 2.0", False),
        ("s = 1.0\nfor j in range(i):\n    s = s + c", True),
        ("for j in range(i):\n    s = c\n    y[j] = s", False),
    ],
)
def test_screen_for_what_could_be_a_fault_by_itself(body, expected):
    text = "def k(y, v, c, i):\n" + "\n".join(f"    {line}" for line in body.splitlines())
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.FunctionDef)
    assert has_fault_trigger(node) is expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("p = b[i]\nc[i] = p * p\nb[i] = p", []),
        ("p = b[i]\nc[i] = p * p\nb[i] = 2.0 * p", ["b[i] = 2.0 * p"]),
        ("p = b[i]\nc[i] = p * p\nb[i + 1] = p\nb[i] = p", ["b[i] = p"]),
        ("p = b[i + 1]\nc[i] = b[i] * b[i]\nb[i] = p", ["b[i] = p"]),
    ],
)
def test_a_value_that_is_put_back_destroys_nothing(body, expected):
    assert fault_lines(kernel(body), OVERWRITTEN) == expected

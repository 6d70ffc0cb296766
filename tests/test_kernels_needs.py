"""Which values the adjoint of a kernel reads, and under which activity. Verdicts as measured on Warp 1.13 to 1.19."""

from __future__ import annotations

import pytest
from kernel_sources import kernel, needed, needs_of, store_to, summary_of

NOTHING: set[str] = set()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("b[i] = 2.5 * a[i]", NOTHING),
        ("b[i] = a[i] + c[i] - 3.0", NOTHING),
        ("b[i] = -a[i] / 4.0", NOTHING),
        ("b[i] = c[i] * a[i]", {"a[i]", "c[i]"}),
        ("b[i] = wp.sin(a[i])", {"a[i]"}),
        ("b[i] = wp.sin(a[i]) * 1.4", {"a[i]"}),
        ("b[i] = a[i] ** 2.0", {"a[i]"}),
        ("b[i] = a[i + 1] * a[i + 1]", {"a[i + 1]"}),
        ("b[i] = wp.max(a[i], 0.0)", {"a[i]"}),
        ("t = a[i] + 1.0\nu = 2.0 * t\nb[i] = wp.exp(u)", {"a[i]"}),
        ("b[i] = wp.floor(a[i]) + c[i]", NOTHING),
        ("b[i] = float(int(wp.sin(a[i]))) + c[i]", NOTHING),
        ("b[i] += a[i]", NOTHING),
        ("b[i] -= a[i] * a[i]", {"a[i]"}),
        ("wp.atomic_add(b, 0, a[i] * a[i])", {"a[i]"}),
        ("x = b[i] * b[i]", NOTHING),
        ("d = a\nb[i] = wp.sin(d[i])", {"a[i]"}),
        ("s = a[i]\ns += s * s\nb[i] = s", {"a[i]"}),
        ("b[i] = a[i] * 0.5 if i > 3 else a[i]", NOTHING),
    ],
)
def test_values_that_are_read(body, expected):
    summary = kernel(body)
    assert summary.complete
    assert needed(summary) == expected


def test_a_multiplier_is_read_only_where_the_other_factor_carries_gradient():
    store = store_to(kernel("b[i] = c[i] * a[i]"), "b")
    assert needs_of(store) == {
        ("a[i]", "c[i] * a[i]", frozenset("c")),
        ("c[i]", "c[i] * a[i]", frozenset("a")),
    }
    assert store.active == {"a", "c"}


def test_a_divisor_is_read_for_both_operands():
    assert needs_of(store_to(kernel("b[i] = a[i] / c[i]"), "b")) == {
        ("c[i]", "a[i] / c[i]", frozenset("a")),
        ("a[i]", "a[i] / c[i]", frozenset("c")),
        ("c[i]", "a[i] / c[i]", frozenset("c")),
    }


def test_the_weight_of_an_interpolation_is_read_for_its_ends():
    store = store_to(kernel("b[i] = wp.lerp(a[i], 1.0, c[i])"), "b")
    assert ("c[i]", "wp.lerp(a[i], 1.0, c[i])", frozenset("a")) in needs_of(store)
    assert ("a[i]", "wp.lerp(a[i], 1.0, c[i])", frozenset("c")) in needs_of(store)


def test_integers_carry_no_gradient_but_their_values_are_read():
    summary = kernel("b[i] = a[z[i]]", "a: R, z: Z, b: R")
    store = store_to(summary, "b")
    assert store.active == {"a"}
    assert needs_of(store) == {("z[i]", "the index in a[z[i]]", frozenset("a"))}
    assert dict(store.cuts)["z"].value == "flat"


def test_the_index_of_a_store_is_read_whenever_its_destination_is_live():
    (need,) = store_to(kernel("b[z[i]] = 2.0", "z: Z, b: R"), "b").needs
    assert (need.read.path, need.given_destination) == ("z", True)


def test_a_condition_is_read_for_what_is_stored_under_it_and_for_its_destination():
    store = store_to(kernel("if c[i] > 0.0:\n    b[i] = 2.0 * a[i]"), "b")
    (need,) = store.needs
    assert (need.read.path, need.given, need.given_destination) == ("c", frozenset("a"), True)
    assert need.operation == "the condition c[i] > 0.0"
    assert store.conditional


def test_a_condition_is_read_for_the_local_it_selects():
    summary = kernel("v = a[i]\nif c[i] > 0.0:\n    v = 0.1 * a[i]\nb[i] = v")
    assert needs_of(store_to(summary, "b")) == {("c[i]", "the condition c[i] > 0.0", frozenset("a"))}
    assert not store_to(summary, "b").conditional


@pytest.mark.parametrize("choice", ["a[i] if c[i] > 0.0 else 0.5 * a[i]", "wp.where(c[i] > 0.0, a[i], 0.5 * a[i])"])
def test_a_choice_reads_its_condition_alone(choice):
    summary = kernel(f"b[i] = {choice}")
    assert needed(summary) == {"c[i]"}


def test_what_stands_behind_an_early_return_stands_under_its_condition():
    store = store_to(kernel("if c[i] > 0.0:\n    return\nb[i] = 2.0 * a[i]"), "b")
    assert {need.read.path for need in store.needs} == {"c"}
    assert store.conditional


def test_a_bound_is_read():
    summary = kernel("s = float(0.0)\nfor k in range(z[i]):\n    s += a[k]\nb[i] = s", "a: R, z: Z, b: R")
    assert needs_of(store_to(summary, "b")) == {("z[i]", "the loop's bound range(z[i])", frozenset("a"))}


def test_a_diagnostic_off_the_way_to_the_store_costs_nothing():
    assert needed(kernel("energy = a[i] * a[i]\nwp.printf('%f', energy)\nb[i] = 2.0 * a[i]")) == NOTHING


def test_needs_of_an_operation_without_gradient_do_not_arrive():
    assert needed(kernel("b[i] = wp.round(wp.sin(a[i])) * c[i]")) == {"a[i]"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("out[i] = wp.cross(v[i], w[i])", {"v[i]", "w[i]"}),
        ("out[i] = wp.vec3(v[i][0], 2.0 * w[i].y, 0.0)", NOTHING),
        ("out[i] = wp.normalize(v[i]) + w[i]", {"v[i]"}),
        ("out[i] = v[i] * wp.length(w[i])", {"v[i]", "w[i]"}),
        ("out[i] = wp.dot(v[i], wp.vec3(1.0, 2.0, 3.0)) * wp.vec3(1.0)", NOTHING),
        ("p = v[i]\nq = wp.vec3(p[0], 0.0, 0.0)\nq[1] = 3.0 * w[i][2]\nout[i] = q", NOTHING),
    ],
)
def test_vectors(body, expected):
    summary = kernel(body, "v: V, w: V, out: V")
    assert needed(summary) == expected


def test_components_of_a_constructed_vector_are_followed_one_by_one():
    summary = kernel("p = wp.vec3(a[i], c[i], 1.0)\nb[i] = wp.sin(p[0]) + p.y")
    assert needed(summary) == {"a[i]"}


def test_a_component_of_an_element_is_read_alone():
    summary = kernel("p = v[i]\nb[i] = wp.sin(p.y)", "v: V, b: R")
    (need,) = store_to(summary, "b").needs
    assert (need.read.path, need.read.index, need.read.component) == ("v", "i", "1")


def test_normalisation_by_a_sum_reads_sum_and_elements():
    summary = kernel("b[i] = a[i] / c[0]")
    assert needed(summary) == {"a[i]", "c[0]"}


def test_array_fields_of_structs_are_access_paths():
    summary = summary_of(
        """
        @wp.struct
        class Material:
            stiffness: wp.array(dtype=float)
            scale: float

        @wp.struct
        class State:
            q: wp.array(dtype=wp.vec3)
            material: Material

        @wp.kernel
        def step(state: State, out: State):
            i = wp.tid()
            out.q[i] = state.q[i] * state.material.stiffness[0] * state.material.scale
        """
    )
    store = store_to(summary, "out.q")
    assert store.active == {"state.q", "state.material.stiffness"}
    assert needed(summary) == {"state.q[i]", "state.material.stiffness[0]"}
    assert [parameter.kind for parameter in summary.parameters] == ["struct", "struct"]


def test_rows_are_views_of_their_array():
    summary = summary_of(
        """
        @wp.kernel
        def k(m: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
            i, j = wp.tid()
            row = m[i]
            target = out[i]
            target[j] = row[j] * row[j]
        """
    )
    assert needed(summary) == {"m[i, j]"}
    assert store_to(summary, "out").index == "i, j"
    assert store_to(summary, "out").every_thread


def test_what_has_no_adjoint_cuts_the_gradient_and_says_why():
    cuts = {
        "wp.floor(a[i])": "flat",
        "float(a[i] > 0.0)": "flat",
        "float(int(a[i]))": "flat",
        "wp.frac(a[i])": "nondifferentiable",
    }
    for expression, why in cuts.items():
        store = store_to(kernel(f"b[i] = {expression}"), "b")
        assert store.active == frozenset()
        assert store.depends == {"a"}
        assert [(path, cut.value) for path, cut in store.cuts] == [("a", why)]


def test_a_way_around_a_cut_leaves_the_array_active():
    store = store_to(kernel("b[i] = a[i] * wp.floor(a[i])"), "b")
    assert store.active == {"a"}
    assert store.cuts == ()


def test_an_atomic_minimum_reads_its_operand_and_the_winner():
    assert needed(kernel("wp.atomic_min(b, 0, a[i])")) == {"a[i]", "b[0]"}


def test_the_value_that_an_atomic_returns_carries_no_gradient():
    store = store_to(kernel("old = wp.atomic_add(c, 0, a[i])\nb[i] = old"), "b")
    assert store.active == frozenset()
    assert dict(store.cuts)["c"].value == "nondifferentiable"


def test_multiplying_in_place_reads_the_multiplier_for_the_arrays_own_gradient():
    store = store_to(kernel("b[i] *= a[i]"), "b")
    assert needs_of(store) == {("a[i]", "b[i] *= a[i]", frozenset("b"))}
    assert (store.active, store.multiplier) == ({"a", "b"}, {"a"})


def test_places_are_exact_and_count_characters():
    text = "@wp.kernel\ndef k(a: wp.array(dtype=float), b: wp.array(dtype=float)):\n    é = 2.0; b[0] = wp.sin(a[0])\n"
    import ast

    from kernel_sources import scope_of

    from warplint.kernels.analysis import summarise
    from warplint.kernels.source import KernelSource

    tree = ast.parse(text)
    summary = summarise(KernelSource(tree.body[0], "f.py", scope_of(tree), lines=text.splitlines()))
    (store,) = summary.stores
    (need,) = store.needs
    assert (store.span.path, store.span.line, store.span.column, store.span.end_column) == ("f.py", 3, 14, 33)
    assert (need.span.column, need.span.end_column) == (21, 33)
    assert (need.read.span.column, need.read.span.end_column) == (28, 32)


def test_a_store_to_integers_reads_nothing():
    summary = kernel("if c[i] > 0.0:\n    z[z[i]] = int(a[i])", "a: R, c: R, z: Z")
    store = store_to(summary, "z")
    assert (store.needs, store.active, store.depends) == ((), frozenset(), {"a", "c", "z"})


def test_an_entry_of_a_matrix_is_needed_where_gradient_flows_through_the_one_across():
    two = "c[i] = wp.determinant(wp.mat22(a[i], b[i], s, 2.0))"
    assert needed(kernel(two, "a: R, b: R, c: R, s: float")) == set()
    two = "c[i] = wp.determinant(wp.mat22(a[i], b[i], 1.0, b[i + 1]))"
    assert needed(kernel(two, "a: R, b: R, c: R")) == {"a[i]", "b[i + 1]"}
    held = "m = wp.mat22(a[i], b[i], s, 2.0)\nc[i] = wp.determinant(m)"
    assert needed(kernel(held, "a: R, b: R, c: R, s: float")) == {"a[i]", "b[i]"}

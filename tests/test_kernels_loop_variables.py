"""What loops do to variables from before them, and to the order of adjoints. All measured, on Warp 1.19."""

from __future__ import annotations

import pytest
from kernel_sources import fault_lines, kernel

from warplint.kernels.summary import OUT_OF_ORDER, KernelFaultKind

LOOP = KernelFaultKind.DYNAMIC_LOOP
FUNCTION = """
@wp.func
def squared(x: float, y: float):
    z = x * y
    return z * z

@wp.func
def advanced(x: float, y: float):
    z = x * y
    for k in range(int(y)):
        x += y
    return z + x
"""


IN_LOOP = """
@wp.func
def halved(x: float, n: int):
    for k in range(n):
        x = 0.5 * x + 1.0
    return x

@wp.func
def warmed(x: float, n: int):
    for k in range(n):
        x += 2.0
    return x

@wp.func
def gathered(x: float, y: float, n: int):
    for k in range(n):
        y += x
    return x

@wp.func
def copied(x: float, n: int):
    y = x
    for k in range(n):
        y = 0.5 * y + 1.0
    return y

@wp.func
def passed_on(x: float, n: int):
    return halved(x, n) + 1.0
"""


def faulty(body: str) -> list[str]:
    summary = kernel(body, "a: R, b: R, c: R, d: R, n: int, v: V, w: V, s: float", FUNCTION + IN_LOOP)
    assert summary.complete, summary.why
    return fault_lines(summary, LOOP)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("t = a[i] * c[i]\nb[i] = t * t\nfor k in range(n):\n    t += a[k]\nd[i] = t", "t * t"),
        ("t = float(0.5)\nb[i] = a[i] * t\nfor k in range(n):\n    t += 0.3\nd[i] = t", "a[i] * t"),
        ("t = a[i]\nb[i] = t * t\nfor k in range(n):\n    t = c[k]\n    d[k] = t", "t * t"),
        ("t = a[i]\nif c[i] > 0.0:\n    t = t * 3.0\nb[i] = t * t\nfor k in range(n):\n    t += c[k]", "t * t"),
        ("p = wp.vec3(a[i])\nb[i] = wp.dot(p, p)\nfor k in range(n):\n    p += v[k]\nw[i] = p", "wp.dot(p, p)"),
        ("p = wp.vec3()\np[0] = a[i]\nw[i] = c[i] * p\nfor k in range(n):\n    p *= c[k]", "c[i] * p"),
        ("t = a[i]\nb[i] = squared(t, c[i])\nfor k in range(n):\n    t += c[k]\nd[i] = t", "x * y"),
        ("b[i] = advanced(a[i], c[i])", "x * y"),
        ("j = int(0)\nb[5] = a[j]\nwhile j < n:\n    d[0] += c[1]\n    j += 1", "a[j]"),
        (
            "for m in range(n):\n    t = a[i] * c[m]\n    b[i] += t * t\n"
            "    for k in range(n):\n        t += a[k]\n    d[i] += t",
            "t * t",
        ),
    ],
)
def test_a_variable_that_a_later_loop_assigns_is_lost_for_what_reads_it_before(body, place):
    assert place in faulty(body)


@pytest.mark.parametrize(
    "body",
    [
        "t = a[i]\nu = t\nb[i] = u * u\nfor k in range(n):\n    t = c[k]\nd[i] = t",
        "t = a[i]\nb[i] = 2.0 * t\nfor k in range(n):\n    t += c[k]\nd[i] = t",
        "t = a[i]\nif t > 1.5:\n    b[i] = c[i]\nfor k in range(n):\n    t += c[k]\nd[i] = t",
        "t = a[i]\nb[i] = t * t\nfor k in range(3):\n    t += a[k]\nd[i] = t",
        "t = a[i]\nb[i] = t * t\nt = float(0.0)\nfor k in range(n):\n    t += a[k]\nd[i] = t",
        "t = a[i]\nu = wp.vec3(t, t, t)\nb[i] = u[0] * u[1]\nfor k in range(n):\n    t += a[k]\nd[i] = t",
        "for k in range(n):\n    t = a[k]\n    b[k] = t * t\n    t = c[k]\n    d[k] = t",
    ],
)
def test_values_made_from_a_variable_are_not_lost(body):
    assert faulty(body) == []


RESULT = "t = {}\nfor k in range(n):\n    t -= c[k]\nd[i] = t"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("wp.sqrt(a[i])", ["wp.sqrt(a[i])"]),
        ("c[i] / a[i]", ["c[i] / a[i]"]),
        ("a[i] / 3.0", []),
        ("wp.sin(a[i])", []),
        ("root(a[i])", []),
    ],
)
def test_some_adjoints_read_the_result_which_the_loop_overwrites(value, expected):
    before = "@wp.func\ndef root(x: float):\n    return wp.sqrt(x)"
    summary = kernel(RESULT.format(value), "a: R, c: R, d: R, n: int", before)
    assert fault_lines(summary, LOOP) == expected


OPERAND = "t = c[i]\nu = a[i]\nb[i] = {}\nfor k in range(n):\n    t += c[k + 1]\nd[i] = t"


@pytest.mark.parametrize("value", ["wp.tanh(t)", "wp.exp(t)", "wp.sqrt(t)", "wp.cbrt(t)", "t / u", "2.0 / wp.exp(t)"])
def test_of_an_operand_for_which_the_result_stands_nothing_is_lost(value):
    assert faulty(OPERAND.format(value)) == []


@pytest.mark.parametrize("value", ["wp.sin(t)", "u / t", "wp.pow(t, 2.0)", "wp.tanh(t) * t", "t * u"])
def test_an_operand_that_the_adjoint_reads_itself_is_lost(value):
    assert len(faulty(OPERAND.format(value))) == 1


PRODUCT = "r = float(1.0)\nfor k in range(n):\n    r *= c[k]\nt = r * r\nfor k in range({}):\n    {}\nd[i] = t"


@pytest.mark.parametrize(
    ("bound", "line", "lost"),
    [
        ("n", "t = a[k]", False),
        ("m", "t = a[k]", True),
        ("n", "t += a[k]", True),
        ("n", "t = t + a[k] if i > 2 else a[k]", True),
    ],
)
def test_what_a_loop_replaces_is_left_only_where_loops_over_its_range_do_not_run(bound, line, lost):
    summary = kernel(PRODUCT.format(bound, line), "a: R, c: R, d: R, n: int, m: int")
    assert bool(fault_lines(summary, LOOP)) is lost


@pytest.mark.parametrize("line", ["b[i] += wp.where(c[k] > 0.0, t, c[k]) * a[k]", "u = 2.0 * t\n    b[i] += u * a[k]"])
def test_what_a_loop_makes_of_a_variable_that_a_later_one_assigns_is_made_again_of_another_value(line):
    body = "t = a[i]\nfor k in range(n):\n    {}\nfor k in range({}):\n    t += c[k]\nd[i] = t"
    assert len(faulty(body.format(line, "n"))) == 1
    assert faulty(body.format(line, "3")) == []


def test_a_result_made_of_what_a_loop_carries_is_no_more_there_than_that():
    assert faulty("t = c[i]\nfor k in range(n):\n    t = wp.exp(t)\nd[i] = t") == ["wp.exp(t)"]
    assert faulty("t = c[i]\nfor k in range(n):\n    t += c[k]\nd[i] = wp.exp(t)") == ["wp.exp(t)"]


def test_the_result_of_normalize_changes_with_its_components():
    changed = "p = {}\np[0] += a[i]\nw[i] = p"
    kind = KernelFaultKind.COMPONENT_REASSIGN
    parameters = "a: R, b: R, v: V, w: V"
    assert fault_lines(kernel(changed.format("wp.normalize(v[i])"), parameters), kind) == ["p[0] += a[i]"]
    assert fault_lines(kernel(changed.format("2.0 * v[i]"), parameters), kind) == []
    assert fault_lines(kernel(changed.format("v[i] / b[i]"), parameters), kind) == []
    assert fault_lines(kernel(changed.format("v[i] / wp.dot(v[i], w[i])"), parameters), kind) == []
    assert fault_lines(kernel(changed.format("wp.cw_div(w[i], v[i])"), parameters), kind) == ["p[0] += a[i]"]


@pytest.mark.warp
def test_the_adjoints_that_read_their_result_are_those_of_warp():
    pytest.importorskip("warp")
    from warp._src.context import builtin_functions

    from warplint.kernels.builtins import table

    given = {name for name, function in builtin_functions.items() if function.require_original_output_arg}
    found = {name for name, row in table().rows.items() if row.keys() & {"result", "result_mixed"}}
    assert found == {name for name in given if table().rows[name].get("measured")}


WHILE = "s = float(0.0)\nj = int(0)\nwhile j < n:\n{}\n    j += 1\nd[0] = s"


def while_(*lines: str) -> str:
    return WHILE.format("\n".join(f"    {line}" for line in lines))


@pytest.mark.parametrize(
    "body",
    [
        while_("s += a[j + 1] * a[j + 1]"),
        while_("s = s + a[j + 1]", "b[j + 1] = a[j + 1]"),
        while_("t = a[j + 1]", "s = s - t * t", "b[j + 1] += t"),
        while_("s += a[j + 1]", "if s > 0.5:", "    b[j + 1] += a[j + 1]"),
        while_("b[7] = b[7] + a[j + 1]"),
        while_("b[7] += a[j + 1]"),
    ],
)
def test_the_body_of_a_while_loop_is_run_again_as_it_was(body):
    assert faulty(body) == []


@pytest.mark.parametrize(
    "body",
    [
        while_("s = 0.9 * s + a[j + 1]"),
        while_("s += a[j + 1]", "b[j + 1] = s"),
        while_("b[j + 1] = 0.9 * b[j + 0] + a[j + 1]"),
        while_("x = b[j + 0]", "b[j + 1] += a[j + 1]", "d[j + 1] = x"),
        while_("b[7] = a[j + 1]"),
    ],
)
def test_the_adjoint_of_a_while_loop_goes_the_wrong_way(body):
    summary = kernel(body, "a: R, b: R, c: R, d: R, n: int")
    assert {fault.steers for fault in summary.faults if fault.kind is LOOP} == {OUT_OF_ORDER}


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("t = a[i]\nb[i] = halved(t, n)\nd[i] = t", "halved(t, n)"),
        ("t = a[i]\nu = halved(t, n)\nd[i] = t", "halved(t, n)"),
        ("t = a[i]\nb[i] = halved(t, n) + t", "halved(t, n)"),
        ("t = a[i]\nb[i] = t + halved(t, n)", "halved(t, n)"),
        ("t = a[i]\nb[i] = passed_on(t, n)\nd[i] = t", "halved(x, n)"),
        ("t = a[i]\nfor k in range(3):\n    b[k] = halved(t, n)", "halved(t, n)"),
        ("t = a[i]\nfor k in range(n):\n    b[k] += halved(t, n)", "halved(t, n)"),
        ("t = a[i]\nb[i] = gathered(c[i], t, n)\nd[i] = t", "gathered(c[i], t, n)"),
        ("b[i] = gathered(c[i], s, n)\nd[i] = a[i] * s", "gathered(c[i], s, n)"),
    ],
)
def test_a_parameter_that_a_loop_assigns_shares_its_adjoint_with_the_callers_variable(body, place):
    assert place in faulty(body)


@pytest.mark.parametrize(
    "body",
    [
        "t = a[i]\nd[i] = t\nb[i] = halved(t, n)",
        "t = a[i]\nb[i] = warmed(t, n)\nd[i] = t",
        "t = a[i]\nb[i] = copied(t, n)\nd[i] = t",
        "t = a[i]\nu = t\nb[i] = halved(u, n)\nd[i] = t",
        "b[i] = halved(a[i], n)\nd[i] = a[i]",
        "t = a[i]\nb[i] = halved(t + c[i], n)\nd[i] = t",
        "b[i] = warmed(c[i], n)\nd[i] = a[i] * s",
        "for k in range(n):\n    t = a[k]\n    b[k] = halved(t, n)",
        "t = a[i]\nfor k in range(n):\n    b[k] += gathered(c[k], t, n)",
    ],
)
def test_what_the_caller_does_before_or_with_a_copy_is_not_shared(body):
    assert faulty(body) == []


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (
            "s = float(0.0)\nfor k in range(n):\n    s += a[k]\n    if c[k] > 0.0:\n        continue\nb[i] = s",
            "continue",
        ),
        ("for k in range(n):\n    b[k] = a[k] * 2.0\n    if c[k] > 0.0:\n        continue", "continue"),
        (
            "s = float(0.0)\nfor k in range(n):\n    if c[k] > 0.0:\n        s += a[k]\n        continue\n"
            "    s += 2.0 * a[k]\nb[i] = s",
            "continue",
        ),
        ("for k in range(n):\n    b[k] = a[k]\n    if c[5] > 0.0:\n        break", "break"),
        ("for k in range(n):\n    if c[k] > 0.0:\n        break\n    b[k] = a[k]", "break"),
        ("for k in range(n):\n    if b[5] > 0.0:\n        break\n    b[k] = a[k]", "break"),
    ],
)
def test_what_an_iteration_does_before_it_is_left_is_not_differentiated(body, place):
    assert place in faulty(body)


@pytest.mark.parametrize(
    "body",
    [
        "s = float(0.0)\nfor k in range(n):\n    if c[k] > 0.0:\n        continue\n    s += a[k]\nb[i] = s",
        "s = float(0.0)\nfor k in range(n):\n    t = a[k]\n    if c[k] > 0.0:\n        continue\n    s += t\nb[i] = s",
        "for k in range(3):\n    b[k] = a[k]\n    if c[k] > 0.0:\n        continue",
        "for k in range(n):\n    b[k] = a[k]\n    for m in range(n):\n        if c[m] > 0.0:\n            continue",
        "for k in range(n):\n    if c[5] > 0.0:\n        break\n    b[k] = a[k]",
        "s = float(0.0)\nfor k in range(n):\n    if c[5] > 0.0:\n        break\n    s += a[k]\nb[i] = s",
    ],
)
def test_what_comes_behind_a_continue_or_behind_a_break_of_the_first_iteration_is_differentiated(body):
    assert faulty(body) == []


@pytest.mark.parametrize(
    "body",
    [
        "t = wp.sqrt(a[i])\nfor k in range(n):\n    t = c[k] * a[i]\nb[i] = t",
        "t = wp.sqrt(a[i])\nfor k in range(n):\n    if c[k] > 0.0:\n        t = 2.0 * c[k]\nb[i] = t",
    ],
)
def test_a_result_that_a_loop_replaces_or_keeps_is_there_where_its_gradient_is(body):
    assert faulty(body) == []
    assert faulty(body.replace("\nfor", "\nd[i] = t\nfor")) == ["wp.sqrt(a[i])"]


@pytest.mark.parametrize(
    ("body", "harm"),
    [
        ("added(b, i, a[i])\nc[i] = b[i] * b[i]", True),
        ("for k in range(n):\n    added(b, i, a[k])\nc[i] = b[i] * b[i]", False),
        ("for k in range(n):\n    added(b, i, a[k])\n    c[k] = b[i] * b[i]", True),
    ],
)
def test_a_function_in_a_loop_runs_again_after_the_adjoint_of_what_is_behind_the_loop(body, harm):
    before = "@wp.func\ndef added(out: wp.array(dtype=float), k: int, x: float):\n    out[k] = out[k] + x"
    faults = kernel(body, "a: R, b: R, c: R, n: int", before).faults
    assert any(each.certain for each in faults if each.kind is KernelFaultKind.STORE_REPLAYED) is harm

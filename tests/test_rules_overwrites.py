"""The rules about destroyed values other than by turns, on the measured variants."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from programs import PRELUDE, check, taped

from warplint.finding import Role

MORE = """
@wp.kernel
def lin3(a: A, b: A):
    i = wp.tid()
    b[i] = 3.0 * a[i]

@wp.kernel
def zk(t: A):
    t[wp.tid()] = 0.0

@wp.kernel
def gather(k: wp.array(dtype=int), c: A, b: A):
    i = wp.tid()
    b[i] = c[k[i]] * c[k[i]]

@wp.kernel
def put(k: wp.array(dtype=int), v: int):
    k[wp.tid()] = v

def la(kernel, a, b):
    wp.launch(kernel, 3, inputs=[a, b])
    return b

def total(*arrays):
    for each in arrays:
        wp.launch(ssq, 3, inputs=[each, l])
"""

HOST = {
    "copied back after a non-linear read": """
        q, z, y = wp.clone(x), zer(), zer()
        la(nl, q, y)
        la(nl, q, z)
        wp.copy(q, z)  # expect: NVW102
        total(q, y)
    """,
    "by keyword": """
        q, z, y = wp.clone(x), zer(), zer()
        la(nl, q, y)
        la(nl, q, z)
        wp.copy(src=z, dest=q)  # expect: NVW102
        total(q, y)
    """,
    "assigned": """
        q, z, y = wp.clone(x), zer(), zer()
        la(nl, q, y)
        la(nl, q, z)
        q.assign(z)  # expect: NVW102
        total(q, y)
    """,
    "assigned from the host": """
        q, z, y = wp.clone(x), zer(), zer()
        la(nl, q, y)
        la(nl, q, z)
        q.assign(z.numpy())  # expect: NVW103
        total(q, y)
    """,
    "copied back after linear reads only": """
        q, z, y = wp.clone(x), zer(), zer()
        la(lin3, q, z)
        wp.copy(q, z)
        la(nl, q, y)
        total(y)
    """,
    "rebound": """
        q, z, y = wp.clone(x), zer(), zer()
        la(nl, q, y)
        la(nl, q, z)
        q = z
        total(q, y)
    """,
    "history kept": """
        history = [zer() for _ in range(3)]
        q = x
        for k in range(3):
            z = zer()
            la(nl, q, z)
            wp.copy(history[k], z)
            q = z
        total(q)
    """,
    "zeroed after a non-linear read": """
        t, y = zer(), zer()
        la(nl, x, t)
        la(nl, t, y)
        t.zero_()  # expect: NVW103
        total(y)
    """,
    "filled in part": """
        t, y = wp.clone(x), zer()
        la(nl, t, y)
        t[0:1].fill_(9.0)  # expect: NVW103
        total(y)
    """,
    "an accumulator reused, linear readers": """
        t, y, z = zer(), zer(), zer()
        la(acc, x, t)
        la(lin3, t, y)
        t.zero_()  # expect: NVW103
        la(acc, y, t)
        la(lin3, t, z)
        total(y, z)
    """,
    "an accumulator cleared by a kernel": """
        t, y, z = zer(), zer(), zer()
        la(acc, x, t)
        la(lin3, t, y)
        wp.launch(zk, 3, inputs=[t])
        la(acc, y, t)
        la(lin3, t, z)
        total(y, z)
    """,
    "zeroed at first touch": """
        t, y = zer(), zer()
        t.zero_()
        la(acc, x, t)
        la(nl, t, y)
        total(y)
    """,
    "the chain cut by a fill": """
        t, y = zer(), zer()
        la(nl, x, t)
        t.fill_(0.5)  # expect: NVW103
        la(nl, t, y)
        total(y, wp.clone(x))
    """,
    "stored anew after a fill": """
        t, y, z = zer(), zer(), zer()
        la(nl, x, t)
        la(lin3, t, y)
        t.zero_()
        la(nl, y, t)
        la(lin3, t, z)
        total(z)
    """,
    "the loss zeroed at the top": """
        y = zer()
        la(nl, x, y)
        l.zero_()
        total(y)
    """,
    "an index array refilled": """
        k, y = wp.zeros(3, dtype=int), zer()
        wp.launch(gather, 3, inputs=[k, x, y])
        wp.launch(put, 3, inputs=[k, 2])  # expect: NVW101
        total(y)
    """,
    "the loop's only accumulator": """
        f = zer()
        a = x
        for _ in range(3):
            b = zer()
            f.zero_()  # expect: NVW103
            la(acc, a, f)
            la(lin3, f, b)
            a = b
        total(a)
    """,
}


@pytest.mark.parametrize("body", HOST.values(), ids=HOST)
def test_writes_of_the_host_program(tmp_path: Path, body: str) -> None:
    check(tmp_path, taped(body, before=MORE))


AFTER = {
    "a reset": ("t.zero_()  # expect: NVW108", "y"),
    "a copy": ("wp.copy(t, y)  # expect: NVW108", "y"),
    "a launch": ("wp.launch(zk, 3, inputs=[t])  # expect: NVW108", "y"),
    "the loss cleared": ("l.zero_()", "y"),
    "a result that no adjoint reads": ("z.zero_()", "y"),
}


@pytest.mark.parametrize(("write", "reader"), AFTER.values(), ids=AFTER)
def test_writes_before_the_backward(tmp_path: Path, write: str, reader: str) -> None:
    program = taped(
        f"t, y, z = zer(), zer(), zer()\nla(nl, x, t)\nla(nl, t, y)\nla(lin3, t, z)\ntotal({reader})", before=MORE
    )
    check(tmp_path, program.replace("tape.backward(l)", f"{write}\ntape.backward(l)"))


IN_PLACE = {
    "y[i] = wp.sin(y[i])": True,
    "y[i] = y[i] * y[i]": True,
    "y[i] = 2.5 * y[i]": False,
    "y[i] = y[i] + z[i] * z[i]": False,
    "y[i] += z[i] * z[i]": False,
    "y[i] -= z[i] * z[i]": False,
    "y[i] += y[i] * y[i]": True,
    "y[i] += 0.3 * y[i]": False,
    "y[i] *= 2.5": False,
    "wp.atomic_add(y, i, z[i] * z[i])": False,
}


@pytest.mark.parametrize(("statement", "wrong"), IN_PLACE.items(), ids=list(IN_PLACE))
def test_kernels_that_work_in_place(tmp_path: Path, statement: str, wrong: bool) -> None:
    kernel = f"""
@wp.kernel
def inplace(y: A, z: A):
    i = wp.tid()
    {statement}{"  # expect: NVW104" if wrong else ""}
"""
    body = "y = wp.clone(x)\nwp.launch(inplace, 3, inputs=[y, arr([1.2, 0.8, -1.4])])\nwp.launch(ssq, 3, inputs=[y, l])"
    check(tmp_path, taped(body, before=kernel))


INSIDE = {
    "read to a local, then overwritten": (
        "t = y[i]\nz[i] = t * t\ny[i] = 0.5 * t  # expect: NVW104",
        "wp.launch(ssq, 3, inputs=[y, l])\nwp.launch(ssq, 3, inputs=[z, l])",
    ),
    "overwritten by a constant": (
        "z[i] = y[i] * y[i]\ny[i] = 1.0  # expect: NVW104",
        "wp.launch(ssq, 3, inputs=[z, l])",
    ),
    "written, then read": (
        "z[i] = y[i] * y[i]\ny[i] = wp.sin(z[i]) * z[i]  # expect: NVW104",
        "wp.launch(ssq, 3, inputs=[y, l])",
    ),
    "overwritten by the loop's next round": (
        "for k in range(int(y[2]) + 5):\n    y[i] += 0.1  # expect: NVW104\n    wp.atomic_add(z, i, y[i] * y[i])",
        "wp.launch(ssq, 3, inputs=[z, l])",
    ),
    "written twice": ("z[i] = y[i] * y[i]\nz[i] = wp.sin(y[i])", "wp.launch(ssq, 3, inputs=[z, l])"),
    "other arms of a branch": (
        "if i == 0:\n    z[i] = y[i] * y[i]\nelse:\n    y[i] = 0.0",
        "wp.launch(ssq, 3, inputs=[z, l])",
    ),
}


@pytest.mark.parametrize(("statements", "loss"), INSIDE.values(), ids=INSIDE)
def test_elements_read_and_overwritten_in_one_kernel(tmp_path: Path, statements: str, loss: str) -> None:
    indented = "\n".join(f"    {line}" for line in statements.splitlines())
    kernel = f"\n@wp.kernel\ndef inside(y: A, z: A):\n    i = wp.tid()\n{indented}\n"
    body = f"y, z = wp.clone(x), zer()\nwp.launch(inside, 3, inputs=[y, z])\n{loss}"
    check(tmp_path, taped(body, before=kernel))


def test_one_array_for_input_and_output(tmp_path: Path) -> None:
    source = taped("y = wp.clone(x)\nwp.launch(nl, 3, inputs=[y], outputs=[y])\nwp.launch(ssq, 3, inputs=[y, l])")
    check(
        tmp_path,
        source.replace(
            "    b[i] = 0.3 * a[i] + wp.sin(a[i])", "    b[i] = 0.3 * a[i] + wp.sin(a[i])  # expect: NVW104"
        ),
    )
    check(
        tmp_path, taped("y = wp.clone(x)\nwp.launch(lin, 3, inputs=[y], outputs=[y])\nwp.launch(ssq, 3, inputs=[y, l])")
    )


def test_adding_onto_what_was_read(tmp_path: Path) -> None:
    body = """
        t, y = wp.clone(x), zer()
        wp.launch({reader}, 3, inputs=[t, y])
        wp.launch(acc, 3, inputs=[x, t])
        wp.launch(ssq, 3, inputs=[y, l])
        wp.launch(ssq, 3, inputs=[t, l])
    """
    adding = "    wp.atomic_add(b, i, a[i] * a[i])"
    source = taped(body.format(reader="nl"))
    check(tmp_path, source.replace(adding, f"{adding}  # expect: NVW104"))
    check(tmp_path, taped(body.format(reader="lin")))


STRUCTS = """
@wp.struct
class State:
    q: A
    v: A

@wp.kernel
def advance(s: State, t: State):
    i = wp.tid()
    t.v[i] = s.v[i] - 0.1 * wp.sin(s.q[i])
    t.q[i] = s.q[i] + 0.1 * t.v[i]{mark}

def state():
    s = State()
    s.q, s.v = zer(), zer()
    return s
"""


def test_structs(tmp_path: Path) -> None:
    body = """
        s, t = state(), state()
        wp.copy(s.q, x)
        wp.launch(advance, 3, inputs=[s, {to}])
        wp.launch(ssq, 3, inputs=[{to}.q, l])
    """
    check(tmp_path, taped(body.format(to="t"), before=STRUCTS.format(mark="")))
    check(tmp_path, taped(body.format(to="s"), before=STRUCTS.format(mark="  # expect: NVW105")))


ALIASES = {
    "a slice of what was read": """
        t = wp.clone(x)
        la(nl, t, y)
        wp.launch(zk, 2, inputs=[t[0:2]])  # expect: NVW106
    """,
    "flattened": """
        t = wp.clone(x)
        la(nl, t, y)
        wp.launch(zk, 3, inputs=[t.flatten()])  # expect: NVW106
    """,
    "a pointer": """
        t = wp.clone(x)
        la(nl, t, y)
        p = wp.array(ptr=t.ptr, shape=3, dtype=float)
        wp.launch(zk, 3, inputs=[p])  # expect: NVW106
    """,
    "the numpy view": """
        t = wp.clone(x)
        la(nl, t, y)
        t.numpy()[:] = 0.0  # expect: NVW106
    """,
    "another row": """
        t = wp.zeros((2, 3), dtype=float, requires_grad=True)
        wp.copy(t[0], x)
        la(nl, t[0], y)
        wp.launch(zk, 3, inputs=[t[1]])
    """,
    "a backing store": """
        k = np.ones(3, dtype=np.float32)
        t = wp.array(k, dtype=float, copy=False)
        wp.launch(bil, 3, inputs=[t, x, y])
        k[:] = 2.0  # expect: NVW106
    """,
}


@pytest.mark.parametrize("body", ALIASES.values(), ids=ALIASES)
def test_other_names(tmp_path: Path, body: str) -> None:
    check(tmp_path, taped(f"y = zer()\n{textwrap.dedent(body)}\ntotal(y)", before=MORE))


def test_without_gradient_nothing_is_destroyed(tmp_path: Path) -> None:
    check(
        tmp_path,
        PRELUDE
        + """
x, y = arr([0.7, 1.3, -0.4], rg=False), zer(3, False)
w, l = arr([0.1, 0.2, 0.3]), zer(1)
with wp.Tape() as tape:
    wp.launch(nl, 3, inputs=[x], outputs=[y])
    wp.copy(x, y)
    z = zer()
    wp.launch(bil, 3, inputs=[w, x], outputs=[z])
    wp.launch(ssq, 3, inputs=[z, l])
tape.backward(l)
print(w.grad.numpy())
""",
    )


def test_arrays_that_one_statement_exchanges_are_not_said_to_be_exchanged_with_each_other(tmp_path):
    body = """
class State:
    def __init__(self):
        self.q = zer()
        self.qd = zer()

s_in, s_out = State(), State()
l = zer(1)
with wp.Tape() as tape:
    for _ in range(3):
        wp.launch(bil, dim=3, inputs=[s_in.q, s_in.qd, s_out.q])
        wp.launch(bil, dim=3, inputs=[s_in.qd, s_in.q, s_out.qd])
        s_in, s_out = s_out, s_in  # expect: NVW101
    wp.launch(ssq, dim=3, inputs=[s_in.q, l])
tape.backward(l)
"""
    (found,) = [each for each in check(tmp_path, PRELUDE + body) if each.code == "NVW101"]
    assert " are each reused on one tape: " in found.message
    assert "s_in.q" in found.message


NEIGHBOURS = {
    "the next one, around the end": ("y[i] = 0.5 * y[i] + 0.25 * y[(i + 1) % n]", True),
    "the one before": ("if i > 0:\n    y[i] = y[i] + 0.25 * y[i - 1]", True),
    "the one before, added": ("if i >= n or i < 1:\n    return\ny[i] += 0.25 * y[i - 1]", True),
    "kept inside": ("y[i] = y[i] + 0.25 * y[wp.min(i + 1, n - 1)]", True),
    "through a local": ("j = (i + 2) % n\nt = 2.0 * y[j]\ny[i] = t", True),
    "only its own": ("y[i] = y[i] + 0.25 * z[(i + 1) % n]", False),
    "into another array": ("z[i] = 0.5 * y[i] + 0.25 * y[(i + 1) % n]", False),
    "evens from odds": ("if i % 2 == 0:\n    y[i] = y[i] + 0.25 * y[(i + 1) % n]", False),
    "the other half": ("y[i] = y[i] + 0.25 * y[i + n]", False),
    "as a condition of a constant": ("z[i] = 1.0\nif y[i] > 0.0:\n    z[i] = 2.0", False),
}


@pytest.mark.parametrize(("statements", "wrong"), NEIGHBOURS.values(), ids=NEIGHBOURS)
def test_elements_that_other_threads_read(tmp_path: Path, statements: str, wrong: bool) -> None:
    """Measured: wrong whether the neighbour's turn comes before or after, linear or not."""
    lines = [f"    {line}" for line in statements.splitlines()]
    if wrong:
        lines[-1] += "  # expect: NVW104"
    kernel = "\n@wp.kernel\ndef relax(y: A, z: A, n: int):\n    i = wp.tid()\n" + "\n".join(lines) + "\n"
    launches = ["relax, 3, inputs=[y, z, 3]", "ssq, 3, inputs=[y, l]", "ssq, 3, inputs=[z, l]"]
    body = "\n".join(["y, z = wp.clone(x), zer(3)", *(f"wp.launch({each})" for each in launches)])
    check(tmp_path, taped(body, before=kernel))


def test_one_thread_has_no_neighbours(tmp_path: Path) -> None:
    kernel = "\n@wp.kernel\ndef relax(y: A):\n    i = wp.tid()\n    y[i] = y[i] + 0.25 * y[i + 1]\n"
    check(
        tmp_path,
        taped("y = wp.clone(x)\nwp.launch(relax, 1, inputs=[y])\nwp.launch(ssq, 3, inputs=[y, l])", before=kernel),
    )


def test_neighbours_in_a_struct_are_a_struct_s_fault(tmp_path: Path) -> None:
    kernel = """
@wp.struct
class State:
    y: A

@wp.kernel
def relax(s: State):
    i = wp.tid()
    s.y[i] = s.y[i] + 0.25 * s.y[wp.max(i - 1, 0)]  # expect: NVW105
"""
    body = "s = State()\ns.y = wp.clone(x)\nwp.launch(relax, 3, inputs=[s])\nwp.launch(ssq, 3, inputs=[s.y, l])"
    check(tmp_path, taped(body, before=kernel))


def test_a_value_read_before_a_store_of_a_constant_is_still_made_of_what_was_there(tmp_path: Path) -> None:
    check(
        tmp_path,
        f"""{PRELUDE}
@wp.kernel
def take(a: A, b: A):
    i = wp.tid()
    t = a[i] * a[i]
    a[i] = 0.0  # expect: NVW104
    b[i] = wp.sin(t)

x, l = arr([0.7, 1.3, -0.4]), zer(1)
y, z = zer(), zer()
with wp.Tape() as tape:
    wp.launch(nl, 3, inputs=[x, y])
    wp.launch(take, 3, inputs=[y, z])
    wp.launch(ssq, 3, inputs=[z, l])
tape.backward(l)
print(x.grad.numpy())
""",
    )


def test_the_pass_of_the_loop_is_told(tmp_path: Path) -> None:
    body = """
def advance(a, b):
    wp.launch(nl, 3, inputs=[a, b])

x, y, l = arr([0.7, 1.3, -0.4]), zer(), zer(1)
with wp.Tape() as tape:
    for _ in range(3):  # the loop
        advance(x, y)
        x, y = y, x  # expect: NVW101
    wp.launch(ssq, 3, inputs=[x, l])
tape.backward(l)
"""
    (found,) = check(tmp_path, PRELUDE + body)
    loop = 1 + (PRELUDE + body).splitlines().index("    for _ in range(3):  # the loop")
    (written,) = [label for label in found.labels if label.role is Role.WRITE]
    assert written.text.endswith(f", in the next pass of the loop at line {loop}")


def test_no_pass_is_told_where_nothing_comes_round(tmp_path: Path) -> None:
    body = "q, z = wp.clone(x), zer()\nla(nl, q, z)\nwp.copy(q, z)  # expect: NVW102\ntotal(z)"
    (found,) = check(tmp_path, taped(body, before=MORE))
    assert not [label for label in found.labels if " pass of the loop" in label.text]


def test_an_array_copied_to_itself_stays_as_it_is(tmp_path: Path) -> None:
    check(
        tmp_path,
        f"""{PRELUDE}
@wp.kernel
def keep(a: A, b: A, c: A):
    i = wp.tid()
    b[i] = a[i]
    c[i] = a[i] * a[i]

x, y, l = arr([0.7, 1.3, -0.4]), zer(), zer(1)
with wp.Tape() as tape:
    wp.launch(keep, 3, inputs=[x, x, y])
    wp.launch(ssq, 3, inputs=[y, l])
tape.backward(l)
print(x.grad.numpy())
""",
    )


def test_an_array_that_only_constants_were_added_to_is_still_a_leaf(tmp_path: Path) -> None:
    check(
        tmp_path,
        f"""{PRELUDE}
@wp.kernel
def shift(a: A):
    i = wp.tid()
    a[i] -= 0.5
    a[i] += wp.sin(a[i])  # expect: NVW104

x, l = arr([0.7, 1.3, -0.4]), zer(1)
with wp.Tape() as tape:
    wp.launch(shift, 3, inputs=[x])
    wp.launch(ssq, 3, inputs=[x, l])
tape.backward(l)
print(x.grad.numpy())
""",
    )


COPIED = {
    "after linear reads": "q, z = wp.clone(x), zer()\nla(lin3, q, z)\nwp.copy(q, z)\ntotal(q)",
    "into an array of its own": "q, z = zer(), zer()\nla(lin3, x, z)\nwp.copy(q, z)\ntotal(q)",
}


@pytest.mark.parametrize("warp", [(1, 16), (1, 17)])
@pytest.mark.parametrize("name", COPIED)
def test_copies_leave_the_gradient_standing_before_1_17(tmp_path: Path, name: str, warp: tuple[int, int]) -> None:
    wrong = warp < (1, 17) and name == "after linear reads"
    body = COPIED[name].replace("wp.copy(q, z)", "wp.copy(q, z)  # expect: NVW102" if wrong else "wp.copy(q, z)")
    check(tmp_path, taped(body, before=MORE), warp_version=warp)


ASSIGNED = {
    "read again later": "q = wp.clone(x)@\nla(nl, x, z)\ntotal(z)\ntotal(q)",
    "the step starts from a copy": "q = wp.clone(x)@\nla(nl, x, q)\ntotal(q)",
    "read before only": "la(nl, x, z)\nq = wp.clone(x)\ntotal(z)\ntotal(q)",
    "made anew before it is read": "la(nl, x, z)\nq = wp.clone(z)\nla(lin3, x, z)\ntotal(q)\ntotal(z)",
}


@pytest.mark.parametrize("warp", [(1, 16), (1, 17)])
@pytest.mark.parametrize("name", ASSIGNED)
def test_copies_assign_their_source_s_gradient_before_1_17(tmp_path: Path, name: str, warp: tuple[int, int]) -> None:
    body = "z = zer()\n" + ASSIGNED[name].replace("@", "  # expect: NVW102" if warp < (1, 17) else "")
    check(tmp_path, taped(body, before=MORE), warp_version=warp)


UNCHANGED = {
    "put back": "wp.copy(z, q)\nwp.copy(q, z)",
    "by way of a third": "wp.copy(z, q)\nwp.copy(b, z)\nwp.copy(q, z)",
    "changed in between": "wp.copy(z, q)\nla(lin3, x, z)\nwp.copy(q, z)  # expect: NVW102",
    "changed itself": "wp.copy(z, q)\nla(lin3, x, q)  # expect: NVW101\nwp.copy(q, z)",
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_what_is_put_back_unchanged_destroys_nothing(tmp_path: Path, name: str) -> None:
    body = f"q, z, b, y = wp.clone(x), zer(), zer(), zer()\nla(nl, q, y)\n{UNCHANGED[name]}\ntotal(y)\ntotal(q)"
    check(tmp_path, taped(body, before=MORE))


def test_a_launch_that_is_not_recorded_destroys_like_a_fill(tmp_path: Path) -> None:
    hidden = "wp.launch(lin3, 3, inputs=[y], outputs=[x], record_tape=False)  # expect: NVW103"
    check(tmp_path, taped(f"y = zer()\nla(nl, x, y)\n{hidden}\ntotal(y)", before=MORE))

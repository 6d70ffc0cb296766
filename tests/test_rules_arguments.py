"""Lists and structs that the tape keeps by reference, changed before the backward: the measured variants."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import check, taped

STRUCTS = """
@wp.struct
class Inner:
    q: A
    k: float

@wp.struct
class P:
    dt: float
    q: A
    inner: Inner

@wp.kernel
def useq(p: P, b: A):
    i = wp.tid()
    b[i] = wp.sin(p.q[i]) * p.dt

@wp.kernel
def outq(a: A, p: P):
    i = wp.tid()
    p.q[i] = wp.sin(a[i]) * a[i]

@wp.kernel
def usein(p: P, a: A, b: A):
    i = wp.tid()
    b[i] = wp.sin(a[i]) * p.inner.k

@wp.kernel
def shift(p: P, a: A, b: A):
    i = wp.tid()
    b[i] = a[i] + p.dt

@wp.kernel
def scale(a: A, k: float, b: A):
    i = wp.tid()
    b[i] = wp.sin(a[i]) * k

def params():
    p = P()
    p.dt = 0.5
    p.q = zer()
    p.inner.k = 0.7
    return p
"""

LISTS = {
    "an input array": """
        args = [x, zer()]
        wp.launch(nl, 3, inputs=args)
        y = args[1]
        args[0] = zer()  # expect: NVW109
        wp.launch(ssq, 3, inputs=[y, l])
    """,
    "an input array of a linear kernel": """
        args = [x, zer()]
        wp.launch(lin, 3, inputs=args)
        y = args[1]
        args[0] = wp.clone(x)  # expect: NVW109
        wp.launch(ssq, 3, inputs=[y, l])
    """,
    "an output array": """
        outputs = [zer()]
        wp.launch(nl, 3, inputs=[x], outputs=outputs)
        y = outputs[0]
        outputs[0] = zer()  # expect: NVW109
        wp.launch(ssq, 3, inputs=[y, l])
    """,
    "a number that the adjoint reads": """
        args = [x, 0.5, zer()]
        wp.launch(scale, 3, inputs=args)
        args[1] = 2.0  # expect: NVW109
        wp.launch(ssq, 3, inputs=[args[2], l])
    """,
    "one list for all launches": """
        args = [x, zer()]
        for k in range(3):
            wp.launch(nl, 3, inputs=args)
            args[0] = args[1]  # expect: NVW109
            args[1] = zer()
        wp.launch(ssq, 3, inputs=[args[0], l])
    """,
    "arrays of one list that take turns": """
        args = [wp.clone(x), zer()]
        for k in range(3):
            wp.launch(nl, 3, inputs=args)
            args[0], args[1] = args[1], args[0]  # expect: NVW109
        wp.launch(ssq, 3, inputs=[args[0], l])
    """,
    "popped and appended": """
        args = [x, zer()]
        for k in range(3):
            wp.launch(nl, 3, inputs=args)
            args.pop(0)
            args.append(zer())  # expect: NVW109
        wp.launch(ssq, 3, inputs=[args[0], l])
    """,
    "the same array put back": """
        args = [x, zer()]
        wp.launch(nl, 3, inputs=args)
        args[0] = zer()
        args[0] = x
        wp.launch(ssq, 3, inputs=[args[1], l])
    """,
    "a new list under the same name": """
        a = x
        for k in range(3):
            args = [a, zer()]
            wp.launch(nl, 3, inputs=args)
            a = args[1]
        wp.launch(ssq, 3, inputs=[a, l])
    """,
    "a copy of the list": """
        args = [x, zer()]
        wp.launch(nl, 3, inputs=args[:])
        y = args[1]
        args[0] = zer()
        wp.launch(ssq, 3, inputs=[y, l])
    """,
    "a longer list made of it": """
        args = [x]
        y = zer()
        wp.launch(nl, 3, inputs=args + [y])
        args[0] = zer()
        wp.launch(ssq, 3, inputs=[y, l])
    """,
    "a tuple": """
        args = (x, zer())
        wp.launch(nl, 3, inputs=args)
        y = args[1]
        args = (zer(), zer())
        wp.launch(ssq, 3, inputs=[y, l])
    """,
    "an array off the path": """
        args = [x, zer()]
        wp.launch(nl, 3, inputs=args)
        args[0] = zer()
        wp.launch(ssq, 3, inputs=[x, l])
    """,
}

FIELDS = {
    "an input array": """
        p, y = params(), zer()
        p.q = x
        wp.launch(useq, 3, inputs=[p, y])
        p.q = zer()  # expect: NVW109
        wp.launch(ssq, 3, inputs=[y, l])
    """,
    "an output array": """
        p = params()
        wp.launch(outq, 3, inputs=[x, p])
        y = p.q
        p.q = zer()  # expect: NVW109
        wp.launch(ssq, 3, inputs=[y, l])
    """,
    "a number of each step": """
        p, a = params(), x
        for k in range(3):
            p.dt = 0.5 + 0.4 * k  # expect: NVW109
            b = zer()
            p.q = a
            wp.launch(useq, 3, inputs=[p, b])
            a = b
        wp.launch(ssq, 3, inputs=[a, l])
    """,
    "a struct inside": """
        p, y = params(), zer()
        wp.launch(usein, 3, inputs=[p, x, y])
        p.inner.k = 3.0  # expect: NVW109
        wp.launch(ssq, 3, inputs=[y, l])
    """,
    "what was copied into a struct": """
        inner = Inner()
        inner.k = 0.7
        p, y = params(), zer()
        p.inner = inner
        wp.launch(usein, 3, inputs=[p, x, y])
        inner.k = 3.0
        wp.launch(ssq, 3, inputs=[y, l])
    """,
    "a number that no adjoint reads": """
        p, y = params(), zer()
        wp.launch(shift, 3, inputs=[p, x, y])
        p.dt = 3.0
        wp.launch(ssq, 3, inputs=[y, l])
    """,
    "the same number again": """
        p, y = params(), zer()
        wp.launch(usein, 3, inputs=[p, x, y])
        p.inner.k = 0.7
        wp.launch(ssq, 3, inputs=[y, l])
    """,
    "a struct for each step": """
        a = x
        for k in range(3):
            p = params()
            p.dt = 0.5 + 0.4 * k
            p.q = a
            b = zer()
            wp.launch(useq, 3, inputs=[p, b])
            a = b
        wp.launch(ssq, 3, inputs=[a, l])
    """,
}


@pytest.mark.parametrize("body", LISTS.values(), ids=LISTS)
def test_lists_of_arguments(tmp_path: Path, body: str) -> None:
    check(tmp_path, taped(body, before=STRUCTS))


@pytest.mark.parametrize("body", FIELDS.values(), ids=FIELDS)
def test_fields_of_structs(tmp_path: Path, body: str) -> None:
    check(tmp_path, taped(body, before=STRUCTS))


def test_changes_after_the_backward_are_nobodys_business(tmp_path: Path) -> None:
    body = "args = [x, zer()]\nwp.launch(nl, 3, inputs=args)\nwp.launch(ssq, 3, inputs=[args[1], l])"
    check(tmp_path, taped(body, before=STRUCTS, after="args[0] = zer()\nprint(x.grad.numpy())"))


def test_the_message_names_the_users_own_things(tmp_path: Path) -> None:
    (found,) = check(
        tmp_path, taped(LISTS["an input array"].replace("zer()  #", "other  #"), before=f"{STRUCTS}\nother = zer()")
    )
    assert "`args` is changed" in found.message
    assert "finds `other` there in place of `x`" in found.message
    assert [label.role.value for label in found.labels] == ["read", "write", "tape", "backward"]

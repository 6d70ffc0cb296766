"""The rules about chains that the tape does not see, and about what keeps gradient or moves nothing."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from programs import PRELUDE, check, taped

MORE = """
@wp.kernel(enable_backward=False)
def blind(a: A, b: A):
    i = wp.tid()
    b[i] = wp.sin(a[i])

@wp.kernel
def scaled(a: A, s: float, b: A):
    i = wp.tid()
    b[i] = s * a[i]

b, c, d = zer(), zer(), zer()
plain = zer(rg=False)
"""
NL = "wp.launch(nl, 3, inputs=[x], outputs=[b])\n"
LOSS_OF_B = "wp.launch(ssq, 3, inputs=[b], outputs=[l])"
LOSS_OF_C = "wp.launch(ssq, 3, inputs=[c], outputs=[l])"

ON_TAPE = {
    "not recorded": "wp.launch(nl, 3, inputs=[x], outputs=[b], record_tape=False)  # expect: NVW111\n" + LOSS_OF_B,
    "a command": (
        "cmd = wp.launch(nl, 3, inputs=[x], outputs=[b], record_cmd=True)\ncmd.launch()  # expect: NVW111\n" + LOSS_OF_B
    ),
    "copied to an array without gradient": (
        NL + "wp.copy(plain, b)  # expect: NVW111\nwp.launch(ssq, 3, inputs=[plain], outputs=[l])"
    ),
    "a copy off the path": NL + "wp.copy(plain, b)\n" + LOSS_OF_B,
    "a utility's sum": NL + "wp.utils.array_sum(b, out=l)  # expect: NVW111",
    "a utility's product": NL + "wp.utils.array_inner(b, b, out=l)  # expect: NVW111",
    "a constructor that copies": (
        NL + "c = wp.array(b, dtype=float, requires_grad=True)  # expect: NVW111\n" + LOSS_OF_C
    ),
    "diagnostics not recorded": NL + "wp.launch(nl, 3, inputs=[b], outputs=[d], record_tape=False)\n" + LOSS_OF_B,
    "wrapped again": (NL + "c = wp.array(b.numpy(), dtype=float, requires_grad=True)  # expect: NVW112\n" + LOSS_OF_C),
    "by way of a list": (
        NL + "c = wp.array(b.list(), dtype=float, requires_grad=True)  # expect: NVW112\n" + LOSS_OF_C
    ),
    "assigned from the host": NL + "c.assign(2.0 * b.numpy())  # expect: NVW112\n" + LOSS_OF_C,
    "a leaf's element as a scalar": (
        "s = float(x.numpy()[0])\nwp.launch(scaled, 3, inputs=[x, s], outputs=[b])  # expect: NVW112\n" + LOSS_OF_B
    ),
    "a result's element as a scalar": (
        NL + "s = float(b.numpy()[0])\nwp.launch(scaled, 3, inputs=[x, s], outputs=[c])  # expect: NVW112\n" + LOSS_OF_C
    ),
    "read on by pointer": (
        NL + "c = wp.array(ptr=b.ptr, dtype=float, shape=3, requires_grad=True)\n"
        "wp.launch(ssq, 3, inputs=[c], outputs=[l])  # expect: NVW106"
    ),
    "read on by pointer, with the gradient": (
        NL + "c = wp.array(ptr=b.ptr, dtype=float, shape=3, grad=b.grad)\n" + LOSS_OF_C
    ),
    "written and read by pointer": (
        "c = wp.array(ptr=b.ptr, dtype=float, shape=3, requires_grad=True)\n"
        "wp.launch(nl, 3, inputs=[x], outputs=[c])\n" + LOSS_OF_C
    ),
    "read on as numpy's memory": (
        NL + "c = wp.array(b.numpy(), dtype=float, copy=False, requires_grad=True)\n"
        "wp.launch(ssq, 3, inputs=[c], outputs=[l])  # expect: NVW106"
    ),
    "logged": NL + "print(b.numpy().max())\n" + LOSS_OF_B,
    "an end of the loop": (
        "for _ in range(3):\n    wp.launch(nl, 3, inputs=[x], outputs=[b])\n"
        "    if float(b.numpy()[0]) < 0.1:\n        break\n" + LOSS_OF_B
    ),
    "without backward code, off the path": "wp.launch(blind, 3, inputs=[x], outputs=[d])\n" + NL + LOSS_OF_B,
}


@pytest.mark.parametrize("name", ON_TAPE)
def test_links_while_the_tape_is_open(name: str, tmp_path: Path) -> None:
    check(tmp_path, taped(ON_TAPE[name], before=MORE))


def test_a_kernel_without_backward_is_told_at_its_decorator(tmp_path: Path) -> None:
    kernel = MORE.replace("enable_backward=False)", "enable_backward=False)  # expect: NVW114")
    check(tmp_path, taped("wp.launch(blind, 3, inputs=[x], outputs=[b])\n" + LOSS_OF_B, before=kernel))


PROGRAMS = {
    "the module's option": """
        wp.set_module_options({"enable_backward": False})  # expect: NVW114
        l = zer(1)
        with wp.Tape() as t:
            wp.launch(ssq, 3, inputs=[x], outputs=[l])
        t.backward(l)
        print(x.grad.numpy())
    """,
    "the loss outside": """
        b, l = zer(), zer(1)
        with wp.Tape() as t:
            wp.launch(nl, 3, inputs=[x], outputs=[b])
        wp.launch(ssq, 3, inputs=[b], outputs=[l])  # expect: NVW113
        t.backward(l)
        print(x.grad.numpy())
    """,
    "the loss in a helper outside": """
        def cost(y, l):
            wp.launch(ssq, 3, inputs=[y], outputs=[l])

        def train():
            for _ in range(3):
                b, l = zer(), zer(1)
                with wp.Tape() as t:
                    wp.launch(nl, 3, inputs=[x], outputs=[b])
                cost(b, l)  # expect: NVW113
                t.backward(l)
                x.assign(x.numpy() - 0.1 * x.grad.numpy())
                t.zero()

        train()
    """,
    "a transform before the tape": """
        b, l = zer(), zer(1)
        wp.launch(nl, 3, inputs=[x], outputs=[b])  # expect: NVW113
        with wp.Tape() as t:
            wp.launch(ssq, 3, inputs=[b], outputs=[l])
        t.backward(l)
        print(x.grad.numpy())
    """,
    "data made before the tape": """
        b, l = zer(), zer(1)
        wp.launch(nl, 3, inputs=[x], outputs=[b])
        with wp.Tape() as t:
            wp.launch(ssq, 3, inputs=[b], outputs=[l])
        t.backward(l)
        print(b.grad.numpy())
    """,
    "targets from the host before the tape": """
        b, y, l = zer(), zer(), zer(1)
        c = arr([1.0, 1.0, 1.0])
        wp.launch(nl, 3, inputs=[x], outputs=[y])
        target = wp.array(y.numpy() + 1.0, dtype=float)
        with wp.Tape() as t:
            wp.launch(bil, 3, inputs=[c, target], outputs=[b])
            wp.launch(ssq, 3, inputs=[b], outputs=[l])
        t.backward(l)
        print(c.grad.numpy())
    """,
    "a training loop with one tape": """
        t, b, l, best = wp.Tape(), zer(), zer(1), zer(rg=False)
        for _ in range(3):
            l.zero_()
            with t:
                wp.launch(nl, 3, inputs=[x], outputs=[b])
                wp.launch(ssq, 3, inputs=[b], outputs=[l])
            wp.copy(best, b)
            t.backward(l)
            print(l.numpy()[0])
            x.assign(x.numpy() - 0.1 * x.grad.numpy())
            t.reset()
    """,
    "an optimiser on a copy": """
        from warp.optim import SGD
        flat = wp.array(x, dtype=float, requires_grad=True)  # expect: NVW115
        sgd = SGD([flat], lr=0.1)
        for _ in range(3):
            l = zer(1)
            with wp.Tape() as t:
                wp.launch(ssq, 3, inputs=[x], outputs=[l])
            t.backward(l)
            sgd.step([flat.grad])
            t.zero()
    """,
    "an optimiser on a view": """
        from warp.optim import SGD
        flat = x.flatten()
        sgd = SGD([flat], lr=0.1)
        for _ in range(3):
            l = zer(1)
            with wp.Tape() as t:
                wp.launch(ssq, 3, inputs=[x], outputs=[l])
            t.backward(l)
            sgd.step([flat.grad])
            t.zero()
    """,
    "no seed": """
        l = zer(1)
        with wp.Tape() as t:
            wp.launch(ssq, 3, inputs=[x], outputs=[l])
        t.backward()  # expect: NVW116
        print(x.grad.numpy())
    """,
    "tapes run backwards in reverse order": """
        b, l = zer(), zer(1)
        with wp.Tape() as first:
            wp.launch(nl, 3, inputs=[x], outputs=[b])
        with wp.Tape() as second:
            wp.launch(ssq, 3, inputs=[b], outputs=[l])
        second.backward(l)
        first.backward()
        print(x.grad.numpy())
    """,
    "a seed by hand": """
        l = zer(1)
        with wp.Tape() as t:
            wp.launch(ssq, 3, inputs=[x], outputs=[l])
        l.grad.fill_(1.0)
        t.backward()
        print(x.grad.numpy())
    """,
    "kept over a second store": """
        l, z = zer(1), zer()
        y = wp.zeros(3, dtype=float, requires_grad=True, retain_grad=True)
        with wp.Tape() as t:
            wp.launch(lin, 3, inputs=[x], outputs=[y])
            wp.launch(lin, 3, inputs=[y], outputs=[z])
            wp.launch(lin, 3, inputs=[z], outputs=[y])  # expect: NVW123
            wp.launch(ssq, 3, inputs=[y], outputs=[l])
        t.backward(l)
        print(x.grad.numpy())
    """,
    "kept, stored once": """
        l = zer(1)
        y = wp.zeros(3, dtype=float, requires_grad=True, retain_grad=True)
        with wp.Tape() as t:
            wp.launch(lin, 3, inputs=[x], outputs=[y])
            wp.launch(ssq, 3, inputs=[y], outputs=[l])
        t.backward(l)
        print(x.grad.numpy(), y.grad.numpy())
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, tmp_path: Path) -> None:
    check(tmp_path, PRELUDE + "\nx = arr([0.7, 1.3, -0.4])\n" + textwrap.dedent(PROGRAMS[name]))

"""The rules about what gradients hold when they are used, on the measured variants (facts on tapes and seeds)."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from programs import PRELUDE, check, taped

SQUARES = "wp.launch(ssq, 3, inputs=[x], outputs=[l])"
CHAIN = """
wp.launch(nl, 3, inputs=[x], outputs=[b])
wp.launch(ssq, 3, inputs=[b], outputs=[l])
"""

READS = {
    "a view that is printed after it was cleared": (
        SQUARES,
        "g = x.grad.numpy()  # expect: NVW122\ntape.zero()\nprint(g)",
    ),
    "one element of such a view": (
        SQUARES,
        "g = x.grad.numpy()  # expect: NVW122\ntape.zero()\nprint(float(g[0]))",
    ),
    "a step by such a view": (
        SQUARES,
        "g = x.grad.numpy()  # expect: NVW122\ntape.zero()\nx.assign(x.numpy() - 0.1 * g)",
    ),
    "a copy": (SQUARES, "g = x.grad.numpy().copy()\ntape.zero()\nprint(g)"),
    "a number taken in time": (SQUARES, "g = float(x.grad.numpy()[0])\ntape.zero()\nprint(g)"),
    "read after zero": (SQUARES, "tape.zero()\nprint(x.grad.numpy())  # expect: NVW122"),
    "read after reset": (SQUARES, "tape.reset()\nprint(x.grad.numpy())  # expect: NVW122"),
    "read, cleared, and shown to be zero": (SQUARES, "print(x.grad.numpy())\ntape.zero()\nprint(x.grad.numpy())"),
    "asserted to be zero": (SQUARES, "tape.zero()\nassert x.grad.numpy()[0] == 0.0"),
    "of an intermediate": (CHAIN, "print(x.grad.numpy())\nprint(b.grad.numpy())  # expect: NVW122"),
    "of an intermediate that keeps it": (CHAIN, "b.retain_grad = True\nprint(b.grad.numpy())"),
    "of an accumulator": (
        "wp.launch(acc, 3, inputs=[x], outputs=[b])\nwp.launch(ssq, 3, inputs=[b], outputs=[l])",
        "print(x.grad.numpy(), b.grad.numpy())",
    ),
    "the same loss twice": (SQUARES, "tape.backward(l)  # expect: NVW121\nprint(x.grad.numpy())"),
    "twice, cleared in between": (SQUARES, "tape.zero()\ntape.backward(l)\nprint(x.grad.numpy())"),
    "twice, used once": (SQUARES, "print(x.grad.numpy())\ntape.backward(l)"),
}


@pytest.mark.parametrize("name", READS)
def test_reads_of_one_recording(name: str, tmp_path: Path) -> None:
    body, after = READS[name]
    check(tmp_path, taped(body, before="b = zer()", after=after))


LOOPS = {
    "never cleared": """
        for _ in range(3):
            l = zer(1)
            with wp.Tape() as t:
                wp.launch(ssq, 3, inputs=[x], outputs=[l])
            t.backward(l)  # expect: NVW121
            x.assign(x.numpy() - 0.1 * x.grad.numpy())
    """,
    "never cleared, stepped by an optimiser": """
        from warp.optim import Adam
        adam = Adam([x], lr=0.1)
        for _ in range(3):
            l = zer(1)
            with wp.Tape() as t:
                wp.launch(ssq, 3, inputs=[x], outputs=[l])
            t.backward(l)  # expect: NVW121
            adam.step([x.grad])
    """,
    "a new tape is cleared before it knows anything": """
        from warp.optim import Adam
        adam = Adam([x], lr=0.1)
        for _ in range(3):
            l = zer(1)
            t = wp.Tape()
            t.zero()
            with t:
                wp.launch(ssq, 3, inputs=[x], outputs=[l])
            t.backward(l)  # expect: NVW121
            adam.step([x.grad])
    """,
    "cleared before it is used": """
        from warp.optim import Adam
        adam = Adam([x], lr=0.1)
        t = wp.Tape()
        for _ in range(3):
            l = zer(1)
            with t:
                wp.launch(ssq, 3, inputs=[x], outputs=[l])
            t.backward(l)
            t.reset()
            adam.step([x.grad])  # expect: NVW122
    """,
    "one of two": """
        y = arr([0.1, 0.2, 0.3])
        for _ in range(3):
            l, b = zer(1), zer()
            with wp.Tape() as t:
                wp.launch(bil, 3, inputs=[x, y], outputs=[b])
                wp.launch(ssq, 3, inputs=[b], outputs=[l])
            t.backward(l)  # expect: NVW121
            for p in (x, y):
                p.assign(p.numpy() - 0.1 * p.grad.numpy())
            x.grad.zero_()
    """,
    "each cleared by hand": """
        y = arr([0.1, 0.2, 0.3])
        for _ in range(3):
            l, b = zer(1), zer()
            with wp.Tape() as t:
                wp.launch(bil, 3, inputs=[x, y], outputs=[b])
                wp.launch(ssq, 3, inputs=[b], outputs=[l])
            t.backward(l)
            for p in (x, y):
                p.assign(p.numpy() - 0.1 * p.grad.numpy())
                p.grad.zero_()
    """,
    "summed over a batch": """
        for _ in range(3):
            for _ in range(4):
                l = zer(1)
                with wp.Tape() as t:
                    wp.launch(ssq, 3, inputs=[x], outputs=[l])
                t.backward(l)
            x.assign(x.numpy() - 0.1 * x.grad.numpy())
            x.grad.zero_()
    """,
    "summed over a batch and logged": """
        for _ in range(3):
            for _ in range(4):
                l = zer(1)
                with wp.Tape() as t:
                    wp.launch(ssq, 3, inputs=[x], outputs=[l])
                t.backward(l)
                print(np.linalg.norm(x.grad.numpy()))
            x.assign(x.numpy() - 0.1 * x.grad.numpy())
            x.grad.zero_()
    """,
    "an accumulator outlives the round": """
        b = zer()
        for _ in range(3):
            l = zer(1)
            b.zero_()
            with wp.Tape() as t:
                wp.launch(acc, 3, inputs=[x], outputs=[b])
                wp.launch(ssq, 3, inputs=[b], outputs=[l])
            t.backward(l)  # expect: NVW121
            print(x.grad.numpy())
            x.grad.zero_()
    """,
    "an accumulator is cleared with the rest": """
        b = zer()
        for _ in range(3):
            l = zer(1)
            b.zero_()
            with wp.Tape() as t:
                wp.launch(acc, 3, inputs=[x], outputs=[b])
                wp.launch(ssq, 3, inputs=[b], outputs=[l])
            t.backward(l)
            print(x.grad.numpy())
            t.zero()
    """,
    "a buffer that is stored outlives the round": """
        b = zer()
        for _ in range(3):
            l = zer(1)
            with wp.Tape() as t:
                wp.launch(nl, 3, inputs=[x], outputs=[b])
                wp.launch(ssq, 3, inputs=[b], outputs=[l])
            t.backward(l)
            print(x.grad.numpy())
            x.grad.zero_()
    """,
    "two losses of one tape": """
        l, m, b = zer(1), zer(1), zer()
        with wp.Tape() as t:
            wp.launch(ssq, 3, inputs=[x], outputs=[l])
            wp.launch(nl, 3, inputs=[x], outputs=[b])
            wp.launch(ssq, 3, inputs=[b], outputs=[m])
        t.backward(l)
        t.backward(m)  # expect: NVW121
        print(x.grad.numpy())
    """,
    "read before the backward": """
        l = zer(1)
        with wp.Tape() as t:
            wp.launch(ssq, 3, inputs=[x], outputs=[l])
        g = x.grad.numpy().copy()  # expect: NVW122
        t.backward(l)
        print(g)
    """,
    "a view that the backward fills": """
        l = zer(1)
        with wp.Tape() as t:
            wp.launch(ssq, 3, inputs=[x], outputs=[l])
        g = x.grad.numpy()
        t.backward(l)
        print(g)
    """,
}


@pytest.mark.parametrize("name", LOOPS)
def test_rounds(name: str, tmp_path: Path) -> None:
    check(tmp_path, PRELUDE + "\nx = arr([0.7, 1.3, -0.4])\n" + textwrap.dedent(LOOPS[name]))


OBJECT = """
class Example:
    def __init__(self):
        self.x = arr([0.7, 1.3, -0.4])
        self.f = zer()
        self.l = zer(1)
        {made}

    def forward_backward(self):
        self.tape = wp.Tape()
        with self.tape:
            wp.launch(acc, 3, inputs=[self.x, self.f])
            wp.launch(ssq, 3, inputs=[self.f, self.l])
        self.tape.backward(self.l)

    def check(self):
        tape = wp.Tape()
        with tape:
            wp.launch(acc, 3, inputs=[self.x, self.f])
            wp.launch(ssq, 3, inputs=[self.f, self.l])
        tape.backward(self.l)
        print(self.x.grad.numpy() + 1.0)
"""


def test_between_a_constructor_and_a_method_anything_may_be_cleared(tmp_path: Path) -> None:
    check(tmp_path, PRELUDE + OBJECT.format(made="self.forward_backward()"))


def test_a_captured_backward_leaves_nothing(tmp_path: Path) -> None:
    program = OBJECT.format(made="with wp.ScopedCapture() as self.capture:\n            self.forward_backward()")
    check(tmp_path, PRELUDE + program + "\nexample = Example()\nexample.check()\n")


def test_a_method_that_is_called_has_what_the_constructor_left(tmp_path: Path) -> None:
    program = OBJECT.format(made="self.forward_backward()").replace(
        "        tape.backward(self.l)", "        tape.backward(self.l)  # expect: NVW121"
    )
    check(tmp_path, PRELUDE + program + "\nexample = Example()\nexample.check()\n")


CLEARED_TOGETHER = {
    "the values": "for g in tape.gradients.values():\n    g.zero_()",
    "the arrays": "for a in tape.gradients:\n    a.grad.zero_()",
}


@pytest.mark.parametrize("how", CLEARED_TOGETHER)
def test_what_is_done_with_all_gradients_of_a_tape_may_clear_them(tmp_path: Path, how: str) -> None:
    body = """
x, l = arr([0.7, 1.3, -0.4]), zer(1)
for _ in range(3):
    l.zero_()
    tape = wp.Tape()
    with tape:
        wp.launch(ssq, 3, inputs=[x], outputs=[l])
    tape.backward(l)
    print(x.grad.numpy() + 1.0)
"""
    check(tmp_path, PRELUDE + body + textwrap.indent(CLEARED_TOGETHER[how], "    "))
    check(tmp_path, PRELUDE + body.replace("tape.backward(l)", "tape.backward(l)  # expect: NVW121"))


LAST_KEPT = {
    "a bound": "if step < 11:\n    tape.zero()",
    "the last by its number": "last = step == 11\nif not last:\n    tape.zero()",
    "a way out": "if step + 1 == 12:\n    break\ntape.zero()",
}


@pytest.mark.parametrize("how", LAST_KEPT)
def test_what_the_last_of_many_rounds_leaves_is_not_known_where_it_asks_for_it(tmp_path: Path, how: str) -> None:
    body = """
x, l = arr([0.7, 1.3, -0.4]), zer(1)
for step in range(12):
    l.zero_()
    tape = wp.Tape()
    with tape:
        wp.launch(ssq, 3, inputs=[x], outputs=[l])
    tape.backward(l)
"""
    read = "\nprint(x.grad.numpy())"
    check(tmp_path, PRELUDE + body + textwrap.indent(LAST_KEPT[how], "    ") + read)
    check(tmp_path, PRELUDE + body + "    tape.zero()" + read + "  # expect: NVW122")

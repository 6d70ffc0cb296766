"""Captured graphs in the interpreted trace: each launch makes happen again what the device does, and nothing else."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from programs import PRELUDE, check

SETTING = PRELUDE + textwrap.dedent(
    """
    @wp.kernel
    def descend(w: A, g: A):
        i = wp.tid()
        w[i] = w[i] - 0.1 * g[i]

    x, y, l = arr([0.7, 1.3, -0.4]), zer(), zer(1)
    """
)

PROGRAMS = {
    "a whole step whose gradients pile up": """
        with wp.ScopedCapture(device="cpu") as capture:
            l.zero_()
            tape = wp.Tape()
            with tape:
                wp.launch(ssq, 3, inputs=[x], outputs=[l])
            tape.backward(l)  # expect: NVW121
            wp.launch(descend, 3, inputs=[x, x.grad])
        for _ in range(20):
            wp.capture_launch(capture.graph)
        """,
    "cleared at its end": """
        with wp.ScopedCapture(device="cpu") as capture:
            l.zero_()
            tape = wp.Tape()
            with tape:
                wp.launch(ssq, 3, inputs=[x], outputs=[l])
            tape.backward(l)
            wp.launch(descend, 3, inputs=[x, x.grad])
            tape.zero()
        for _ in range(20):
            wp.capture_launch(capture.graph)
        """,
    "cleared at its beginning, by a tape that knew no gradients when it was captured": """
        tape = wp.Tape()
        with wp.ScopedCapture(device="cpu") as capture:
            tape.zero()
            l.zero_()
            with tape:
                wp.launch(ssq, 3, inputs=[x], outputs=[l])
            tape.backward(l)  # expect: NVW121
            wp.launch(descend, 3, inputs=[x, x.grad])
        for _ in range(20):
            wp.capture_launch(capture.graph)
        """,
    "cleared outside, by a tape that was made inside": """
        with wp.ScopedCapture(device="cpu") as capture:
            l.zero_()
            tape = wp.Tape()
            with tape:
                wp.launch(ssq, 3, inputs=[x], outputs=[l])
            tape.backward(l)
        for _ in range(20):
            wp.capture_launch(capture.graph)
            wp.launch(descend, 3, inputs=[x, x.grad])
            tape.zero()
        """,
    "begun and ended by hand": """
        wp.capture_begin(device="cpu")
        l.zero_()
        tape = wp.Tape()
        with tape:
            wp.launch(ssq, 3, inputs=[x], outputs=[l])
        tape.backward(l)  # expect: NVW121
        graph = wp.capture_end(device="cpu")
        while float(l.numpy()[0]) > 0.1:
            wp.capture_launch(graph)
            wp.launch(descend, 3, inputs=[x, x.grad])
        """,
    "the forward pass alone, differentiated outside": """
        tape = wp.Tape()
        with wp.ScopedCapture(device="cpu") as capture:
            l.zero_()
            with tape:
                wp.launch(nl, 3, inputs=[x], outputs=[y])
                wp.launch(ssq, 3, inputs=[y], outputs=[l])
        for _ in range(20):
            wp.capture_launch(capture.graph)
            tape.backward(l)
            wp.launch(descend, 3, inputs=[x, x.grad])
            tape.zero()
        """,
    "buffers that take turns in it": """
        a, b = y, zer()
        with wp.ScopedCapture(device="cpu") as capture:
            l.zero_()
            tape = wp.Tape()
            with tape:
                wp.launch(nl, 3, inputs=[x], outputs=[a])
                for _ in range(4):
                    wp.launch(nl, 3, inputs=[a], outputs=[b])
                    a, b = b, a  # expect: NVW101
                wp.launch(ssq, 3, inputs=[a], outputs=[l])
            tape.backward(l)
            wp.launch(descend, 3, inputs=[x, x.grad])
            tape.zero()
        for _ in range(20):
            wp.capture_launch(capture.graph)
        """,
    "what Python does while it is captured happens once": """
        kept = []
        with wp.ScopedCapture(device="cpu") as capture:
            kept.append(zer())
            tape = wp.Tape()
            with tape:
                wp.launch(nl, 3, inputs=[x], outputs=[kept[-1]])
                wp.launch(ssq, 3, inputs=[kept[-1]], outputs=[l])
            tape.backward(l)
            wp.launch(descend, 3, inputs=[x, x.grad])
            tape.zero()
        for _ in range(3):
            wp.capture_launch(capture.graph)
        assert len(kept) == 1
        if len(kept) > 1:
            g = x.grad.numpy()
            tape.zero()
            print(g)
        """,
    "cleared at its beginning, by a tape that has run backward": """
        tape = wp.Tape()
        with tape:
            wp.launch(ssq, 3, inputs=[x], outputs=[l])
        tape.backward(l)
        with wp.ScopedCapture(device="cpu") as capture:
            tape.zero()
            l.zero_()
            tape.reset()
            with tape:
                wp.launch(ssq, 3, inputs=[x], outputs=[l])
            tape.backward(l)
            wp.launch(descend, 3, inputs=[x, x.grad])
        for _ in range(20):
            wp.capture_launch(capture.graph)
        """,
    "forward and backward captured apart, cleared between them": """
        tape = wp.Tape()
        with wp.ScopedCapture(device="cpu") as forward:
            l.zero_()
            with tape:
                wp.launch(ssq, 3, inputs=[x], outputs=[l])
        with wp.ScopedCapture(device="cpu") as backward:
            tape.backward(l)
        for _ in range(20):
            wp.capture_launch(forward.graph)
            tape.zero()
            wp.capture_launch(backward.graph)
            wp.launch(descend, 3, inputs=[x, x.grad])
        """,
    "captured inside the tape's block": """
        tape = wp.Tape()
        with tape:
            with wp.ScopedCapture(device="cpu") as forward:
                wp.launch(nl, 3, inputs=[x], outputs=[y])
                wp.launch(ssq, 3, inputs=[y], outputs=[l])
        for _ in range(20):
            l.zero_()
            wp.capture_launch(forward.graph)
            tape.backward(l)
            wp.launch(descend, 3, inputs=[x, x.grad])
            tape.zero()
        """,
    "the step of an optimiser captured": """
        optimiser = wp.optim.SGD([x], lr=0.1)
        with wp.ScopedCapture(device="cpu") as capture:
            l.zero_()
            tape = wp.Tape()
            with tape:
                wp.launch(ssq, 3, inputs=[x], outputs=[l])
            tape.backward(l)  # expect: NVW121
            optimiser.step([x.grad])
        for _ in range(20):
            wp.capture_launch(capture.graph)
        """,
    "a graph that comes from elsewhere": """
        import somewhere
        graph = somewhere.graph()
        tape = wp.Tape()
        with tape:
            wp.launch(ssq, 3, inputs=[x], outputs=[l])
        tape.backward(l)
        print(x.grad.numpy())
        wp.capture_launch(graph)
        tape.backward(l)
        print(x.grad.numpy())
        """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_launch_of_a_graph_happens(tmp_path: Path, name: str) -> None:
    check(tmp_path, SETTING + textwrap.dedent(PROGRAMS[name]))


def test_functions_that_are_started_one_after_the_other_capture_for_themselves(tmp_path: Path) -> None:
    body = """
        tape = wp.Tape()

        def trained():
            with wp.ScopedCapture(device="cpu") as capture:
                l.zero_()
                with tape:
                    wp.launch(ssq, 3, inputs=[x], outputs=[l])
                tape.backward(l)
                wp.launch(descend, 3, inputs=[x, x.grad])
                tape.zero()
            for _ in range(3):
                wp.capture_launch(capture.graph)

        def test_one():
            trained()

        def test_other():
            trained()
        """
    check(tmp_path, SETTING + textwrap.dedent(body))

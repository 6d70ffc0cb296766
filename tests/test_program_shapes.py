"""The same faults in programs of other shapes: two files, notebooks' cells, tapes and launches behind helpers."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from programs import PRELUDE, check

FAULTS = {
    "swapped buffers": """
        y = zer()
        for _ in range(3):
            advance(x, y)
            x, y = y, x  # expect: NVW101
        total(x, l)
        """,
    "a copy over the state": """
        q, z = wp.clone(x), zer()
        advance(q, z)
        wp.copy(q, z)  # expect: NVW102
        total(z, l)
        """,
    "cleared beside the tape": """
        y, z = zer(), zer()
        advance(x, y)
        advance(y, z)
        y.zero_()  # expect: NVW103
        total(z, l)
        """,
    "no gradient on the way": """
        y = wp.zeros(3, dtype=float)  # expect: NVW110
        advance(x, y)
        total(y, l)
        """,
    "through the host": """
        y = zer()
        advance(x, y)
        z = wp.array(y.numpy(), dtype=float, requires_grad=True)  # expect: NVW112
        total(z, l)
        """,
    "a slice overwritten": """
        y = zer()
        advance(x, y)
        x[0:2].fill_(0.5)  # expect: NVW103
        total(y, l)
        """,
    "none of it": """
        y, z = zer(), zer()
        advance(x, y)
        advance(y, z)
        total(z, l)
        """,
}
HELPERS = """
def advance(a, b):
    wp.launch(nl, 3, inputs=[a], outputs=[b])

def total(a, l):
    wp.launch(ssq, 3, inputs=[a], outputs=[l])
"""
START = "x, l = arr([0.7, 1.3, -0.4]), zer(1)\nleaf = x\n"
END = "print(leaf.grad.numpy())\n"

Files = tuple[str, dict[str, str]]


def _body(fault: str, levels: int) -> str:
    return textwrap.indent(textwrap.dedent(fault).strip("\n"), "    " * levels) + "\n"


def _two_files(fault: str) -> Files:
    program = "import warp as wp\nfrom parts import advance, arr, total, zer\n\n" + START
    program += "with wp.Tape() as tape:\n" + _body(fault, 1) + "tape.backward(l)\n" + END
    return program, {"parts.py": PRELUDE + HELPERS}


def _fault_in_the_other_file(fault: str) -> Files:
    program = "import warp as wp\nimport parts\n\nx, l = parts.arr([0.7, 1.3, -0.4]), parts.zer(1)\n"
    program += "with wp.Tape() as tape:\n    parts.forward(x, l)\ntape.backward(l)\nprint(x.grad.numpy())\n"
    return program, {"parts.py": PRELUDE + HELPERS + "\ndef forward(x, l):\n" + _body(fault, 1)}


def _cells(fault: str) -> Files:
    cells = ["get_ipython().run_line_magic('matplotlib', 'inline')" + PRELUDE, HELPERS, START + "tape = wp.Tape()"]
    cells += ["with tape:\n" + _body(fault, 1), "tape.backward(l)\nget_ipython().system('date')", END]
    return "# %%\n" + "\n# %% [markdown]\n# And on.\n# %%\n".join(cells), {}


def _tape_behind_a_helper(fault: str) -> Files:
    helper = """
def differentiate(forward, x):
    l = zer(1)
    with wp.Tape() as tape:
        forward(x, l)
    tape.backward(l)
    return x.grad.numpy().copy()

def forward(x, l):
"""
    return PRELUDE + HELPERS + helper + _body(fault, 1) + "print(differentiate(forward, arr([0.7, 1.3, -0.4])))\n", {}


def _context_manager(fault: str) -> Files:
    helper = """
from contextlib import contextmanager

@contextmanager
def recording(l):
    tape = wp.Tape()
    with tape:
        yield tape
    tape.backward(l)

"""
    return PRELUDE + HELPERS + helper + START + "with recording(l):\n" + _body(fault, 1) + END, {}


def _trainer(fault: str) -> Files:
    trainer = """
class Trainer:
    def __init__(self, x):
        self.x, self.loss, self.tape = x, zer(1), wp.Tape()

    def forward(self):
        x, l = self.x, self.loss
"""
    trainer += _body(fault, 2)
    trainer += """
    def gradient(self):
        with self.tape:
            self.forward()
        self.tape.backward(self.loss)
        return self.x.grad

print(Trainer(arr([0.7, 1.3, -0.4])).gradient().numpy())
"""
    return PRELUDE + HELPERS + trainer, {}


SHAPES: dict[str, Callable[[str], Files]] = {
    "two files": _two_files,
    "the fault in the other file": _fault_in_the_other_file,
    "cells of a notebook": _cells,
    "the tape behind a helper": _tape_behind_a_helper,
    "the tape in a context manager": _context_manager,
    "methods of an object": _trainer,
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_faults_are_found_at_their_line(tmp_path: Path, shape: str, fault: str) -> None:
    program, others = SHAPES[shape](FAULTS[fault])
    assert bool(re.search("expect", program + "".join(others.values()))) is (fault != "none of it")
    check(tmp_path, program, others=others)

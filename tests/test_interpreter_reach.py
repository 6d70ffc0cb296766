"""What the interpreter follows where the way to the tape is long, and what is found there: faults and right twins."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from interpreted import launches, run
from programs import PRELUDE, check

LIBRARY = (
    PRELUDE
    + """
SCENES = []

class Scene:
    def __init__(self, n):
        self.x, self.y, self.z = arr([0.5] * n), zer(n), zer(n)
        self.loss = zer(1)
        SCENES.append(self)
"""
)

ROOTS = """
import warp as wp
import library
from library import nl, lin, ssq

def test_first():
    scene = library.Scene(3)
    with wp.Tape() as tape:
        wp.launch(nl, dim=3, inputs=[scene.x, scene.y])
        wp.launch(ssq, dim=3, inputs=[scene.y, scene.loss])
    tape.backward(scene.loss)
    print(scene.x.grad)

def test_second():
    scene = library.Scene(3)
    with wp.Tape() as tape:
        wp.launch(nl, dim=3, inputs=[scene.x, scene.y])
        wp.launch({kernel}, dim=3, inputs=[scene.y, scene.z])
        wp.launch(lin, dim=3, inputs=[scene.x, scene.y]){comment}
        wp.launch(ssq, dim=3, inputs=[scene.z, scene.loss])
    tape.backward(scene.loss)
    print(scene.x.grad)
"""


@pytest.mark.parametrize(("kernel", "comment"), [("nl", "  # expect: NVW101"), ("lin", "")])
def test_each_function_starts_with_its_imports_whole(tmp_path: Path, kernel: str, comment: str) -> None:
    """A file that the first function was the first to need is there for the second one too, as its import left it."""
    check(tmp_path, ROOTS.format(kernel=kernel, comment=comment), others={"library.py": LIBRARY})


WORKED_OFF = """
    x = make()
    todo = [x]
    done = set()
    while todo:
        node = todo.pop()
        if node in seen or input():
            continue
        for _ in range(2):
            todo.append([make()])
    y, loss = make(), make(1)
    with wp.Tape() as tape:
        wp.launch(step, dim=3, inputs=[x, y])
        wp.launch(total, dim=3, inputs=[y, loss])
    tape.backward(loss)
"""


def test_a_list_that_grows_under_an_unknown_condition_is_worked_off_in_a_few_rounds() -> None:
    (found, *_) = run(WORKED_OFF)
    assert not found.trace.cut
    assert [launch.complete for launch in launches(found.trace)] == [True]
    assert found.statistics["steps"] < 100


ASSEMBLED = """
    import numpy as np

    ids = np.column_stack((np.arange(3, dtype=np.int32), np.arange(1, 4, dtype=np.int32)))
    chain = [make() for _ in range(4)]
    loss = make(1)
    with wp.Tape() as tape:
        for a, b in {order}:
            wp.launch(step, dim=3, inputs=[chain[a], chain[b]])
        wp.launch(total, dim=3, inputs=[chain[np.concatenate((ids[:, 1], [7]))[2]], loss])
    tape.backward(loss)
"""


@pytest.mark.parametrize("order", ["ids", "ids.tolist()", "np.vstack((ids[0], ids[1], ids[2]))", "np.stack(list(ids))"])
def test_arrays_of_indices_put_together_from_others(order: str) -> None:
    (found, *_) = run(ASSEMBLED.format(order=order))
    chain = [(b.array.memory for b in launch.bindings if b.array) for launch in launches(found.trace)]
    pairs = [tuple(row) for row in chain]
    assert len(pairs) == 3
    assert all(before[1] == after[0] for before, after in pairwise(pairs))
    assert all(launch.complete for launch in launches(found.trace, "total"))

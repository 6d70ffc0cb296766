"""What the interpreter follows where the way to the tape is long, and what is found there: faults and right twins."""

from __future__ import annotations

import ast
from itertools import pairwise
from pathlib import Path

import pytest
from interpreted import launches, memories, of_kind, run
from programs import PRELUDE, check

from warplint.trace import events
from warplint.trace.miniature import small_numbers

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


LONG = (
    PRELUDE
    + """
import argparse

FRAMES = 400

class Rollout:
    def __init__(self, frames, substeps=30):
        self.frames, self.substeps = frames, substeps
        self.states = [arr([0.5, 1.0, 1.5])]
        for _ in range(self.frames * self.substeps):
            self.states.append(zer())
        self.end, self.loss = zer(), zer(1)

    def forward(self):
        with wp.Tape() as tape:
            for frame in range(self.frames):
                for substep in range(self.substeps):
                    t = frame * self.substeps + substep
                    wp.launch(nl, dim=3, inputs=[self.states[t], self.states[t + 1]])
            wp.launch({kernel}, dim=3, inputs=[self.states[-1], self.end])
            wp.launch(lin, dim=3, inputs=[self.states[0], self.states[-1]]){comment}
            wp.launch(ssq, dim=3, inputs=[self.end, self.loss])
        tape.backward(self.loss)
        print(self.states[0].grad)

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-frames", type=int, default=FRAMES)
    Rollout(parser.parse_args().num_frames).forward()
"""
)


@pytest.mark.parametrize(("kernel", "comment"), [("nl", "  # expect: NVW101"), ("lin", "")])
def test_what_comes_behind_a_long_loop_is_found_in_the_same_program_with_fewer_rounds(
    tmp_path: Path, kernel: str, comment: str
) -> None:
    check(tmp_path, LONG.format(kernel=kernel, comment=comment))


def test_a_long_program_is_followed_to_its_end_in_small() -> None:
    cut, small = run(LONG.format(kernel="nl", comment=""), prelude="")
    assert (cut.trace.cut, small.trace.cut) == (True, False)
    assert small.statistics["complete_taped_launches"] == small.statistics["taped_launches"] > 12


def counted(text: str, *counts: str) -> dict[int, int]:
    """The large numbers behind some expressions, and the small ones in their place."""
    expressions = [ast.parse(count, mode="eval").body for count in counts]
    return {old.value: new for old, new in small_numbers([ast.parse(text)], expressions).items()}  # type: ignore[misc]


def test_small_numbers_keep_order_parity_and_what_kernels_read() -> None:
    text = """
@wp.kernel
def smooth(a: A, n: int):
    for i in range(WIDTH):
        a[i] = a[i] * cfg.gain

WIDTH = 64
cfg = Config(gain=70, frames=301)
HALF = WIDTH // 2
def roll(n, every=50, *, rest=7): pass
roll(120)
roll(n=121)
options = {"rounds": 90}
options["more"] = 31
seconds = 2.5
"""
    assert counted(text, "range(n + 1)") == {120: 4, 121: 5}
    assert counted(text, "range(cfg.frames * HALF)", "t < every") == {50: 4, 301: 9}
    assert counted(text, "range(rest)", "range(options['rounds'])", "range(options['more'])") == {7: 3, 31: 7, 90: 12}
    assert counted(text, "range(seconds * 60)", "range(len(cfg.frames))", "range(4)") == {60: 4}
    assert counted(text, "range(self.unheard_of)") == {}


def test_small_numbers_of_one_program_fit_each_other() -> None:
    text = """
FRAMES, SUBSTEPS = 20, 5
ring = [make() for _ in range(100)]
states = [make() for _ in range(102)]
last = states[101]

@wp.kernel
def shift(a: A):
    a[wp.tid()] = 100.0 + 20 * a[101]
"""
    counts = "range(FRAMES)", "range(SUBSTEPS)", "range(100)", "range(102)"
    assert counted(text, *counts) == {5: 3, 20: 8, 100: 24, 102: 26}
    expressions = [ast.parse(count, mode="eval").body for count in ("range(101)", "range(20)")]
    tree = ast.parse(text)
    replaced = sorted(literal.lineno for literal in small_numbers([tree], expressions) if literal.value == 101)
    assert replaced == [1, 5]


COUNTED_BY_THE_CALLER = """
    def rollout(frames):
        x, loss = make(), make(1)
        states = [x, *[make() for _ in range(4 * frames)]]
        with wp.Tape() as tape:
            for frame in range(frames):
                for substep in range(4):
                    t = frame * 4 + substep
                    wp.launch(step, dim=3, inputs=[states[t], states[t + 1]])
            wp.launch(total, dim=3, inputs=[states[frames * 4], loss])
        tape.backward(loss)
"""


def test_a_number_from_the_caller_is_the_same_in_each_product_of_it() -> None:
    *_, found = run(COUNTED_BY_THE_CALLER)
    steps = launches(found.trace)
    assert len(steps) == 12
    assert all(launch.complete for launch in (*steps, *launches(found.trace, "total")))
    (last,) = launches(found.trace, "total")
    assert memories(last)[0] == memories(steps[-1])[1]


FROM_THE_CALLER = (
    PRELUDE
    + """
import copy

@wp.struct
class Batch:
    x: wp.array(dtype=float)
    gain: float

@wp.kernel
def weighted(batch: Batch, w: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = batch.gain * batch.x[i] * w[i]

def update(policy, batch, other):
    w, y, loss = arr([0.1, 0.2, 0.3]), zer(), zer(1)
    values, _ = policy.act(batch)
    twin = copy.deepcopy(values)
    with wp.Tape() as tape:
        {read}
        {write}
        wp.launch(ssq, dim=3, inputs=[y, loss])
    tape.backward(loss)
    print({wanted}.grad)
"""
)

WEIGHTED_VALUES = "wp.launch(bil, dim=3, inputs=[values, w, y])"
PLAIN_VALUES = "wp.launch(nl, dim=3, inputs=[values, y])"
WEIGHTED_BATCH = "wp.launch(weighted, dim=3, inputs=[batch, w, y])"
OVER_VALUES = "wp.launch(lin, dim=3, inputs=[batch.start, values])"
OVER_TWIN = "wp.launch(lin, dim=3, inputs=[batch.start, twin])"
OVER_OTHER = "wp.launch(lin, dim=3, inputs=[values, other.act(batch)[0]])"


@pytest.mark.parametrize(
    ("read", "write", "wanted", "comment"),
    [
        pytest.param(WEIGHTED_VALUES, OVER_VALUES, "w", "  # expect: NVW101", id="the adjoint of w needs them"),
        pytest.param(WEIGHTED_VALUES, OVER_TWIN, "w", "", id="a copy is another array"),
        pytest.param(WEIGHTED_VALUES, OVER_OTHER, "w", "", id="perhaps another array"),
        pytest.param(PLAIN_VALUES, OVER_VALUES, "values", "", id="perhaps without a gradient"),
        pytest.param(WEIGHTED_BATCH, OVER_OTHER, "w", "", id="a field of a struct"),
    ],
)
def test_arrays_of_the_caller_are_what_they_are_and_no_more(
    tmp_path: Path, read: str, write: str, wanted: str, comment: str
) -> None:
    """The same value is the same array; what else holds of it nobody knows, and no warning rests on that."""
    check(tmp_path, FROM_THE_CALLER.format(read=read, write=write + comment, wanted=wanted))


def test_launches_on_arrays_of_the_caller_are_followed_but_never_called_complete() -> None:
    found = run(FROM_THE_CALLER.format(read=WEIGHTED_BATCH, write=OVER_VALUES, wanted="w"), prelude="")[-1].trace
    told = {event.kernel.name: event for event in of_kind(found, events.Launch) if event.kernel}
    assert {name: (event.complete, event.stood_in) for name, event in told.items()} == {
        "weighted": (False, True),
        "lin": (False, True),
        "ssq": (True, False),
    }
    assert [binding.path for binding in told["weighted"].bindings] == ["batch.x", "w", "y"]


SPECIALISED = """
    class Solver:
        made = {}

        def __new__(cls, kind, n):
            if kind not in cls.made:
                cls.made[kind] = cls.specialised(kind)
            return super().__new__(cls.made[kind])

        def __init__(self, kind, n):
            self.x, self.y, self.loss = make(n), make(n), make(1)

        @classmethod
        def specialised(cls, kind):
            @wp.kernel
            def inner(a: wp.array(dtype=float), b: wp.array(dtype=float)):
                b[wp.tid()] = wp.sin(a[wp.tid()])

            class Special(Solver):
                pass

            Special.kernel = staticmethod(inner)
            return Special

        def solve(self):
            with wp.Tape() as tape:
                wp.launch(self.kernel, dim=3, inputs=[self.x, self.y])
            tape.backward(grads={self.y: self.y})

    Solver("fast", 3).solve()
"""


def test_an_object_is_of_the_class_that_new_chose() -> None:
    assert [launch.complete for launch in launches(run(SPECIALISED)[0].trace, "inner")] == [True]


DEGENERATE = """
    faces = []

    def add_face(edges):
        if np.linalg.det(edges) <= 0.0:
            return 0.0
        else:
            faces.append(edges)
            return 1.0

    add_face(np.array([[1.0, 0.0], [0.0, 1.0]]))
    x, y = make(), make()
    with wp.Tape() as tape:
        if len(faces) == 0:
            pass
        else:
            wp.launch(step, dim=3, inputs=[x, y])
    tape.backward(grads={y: x})
"""


def test_the_first_path_does_not_take_the_arm_behind_a_negative_comparison_of_what_numpy_computed() -> None:
    first, second = run(DEGENERATE)
    assert [len(launches(found.trace)) for found in (first, second)] == [1, 0]

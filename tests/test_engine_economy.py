"""What the engine leaves out to be quick: the answers stay the same, and what it rests on holds."""

import ast
from types import SimpleNamespace

import numpy as np
import pytest
from engine_runs import judged, repairing

from warplint.runner.answers import read
from warplint.runner.protocol import Channel
from warplint.verify.engine.differences.measure import AGAIN, FULL, LEAST, LESS, Allowance
from warplint.verify.engine.execution.log import Digest, Log
from warplint.verify.engine.execution.memory import LARGE as LARGE_SIZE
from warplint.verify.engine.warp_bodies import own_stores, sums
from warplint.verify.records import GradientStatus, Note

LARGE = """\
a, b = (wp.zeros(12_000_000, dtype=float) for _ in range(2))
def pass_much():
    wp.copy(b, a)
"""
"""Nearly 100 MB that the program touches in each iteration: more than the engine copies without a thought."""


def stored(body: str) -> set[str]:
    """The arrays of which a kernel with this body stores each thread's own element."""
    return set(own_stores(kernel_with(body)))


def kernel_with(body: str) -> SimpleNamespace:
    """What is asked of a kernel with this body."""
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    return SimpleNamespace(adj=SimpleNamespace(tree=ast.parse(f"def kernel(x, y, s):\n{lines}")))


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("i = wp.tid()\nwp.atomic_add(y, 0, x[i])", {"y"}),
        ("i = wp.tid()\ns.q[0, 1] += x[i]\nwp.atomic_sub(y, 0, 1, x[i])", {"s.q", "y"}),
        ("i = wp.tid()\nif x[i] > 0.0:\n    wp.atomic_add(y, 0, x[i])", set()),
        ("i = wp.tid()\nif i >= 4:\n    return\nwp.atomic_add(y, 0, x[i])", set()),
        ("i = wp.tid()\nwp.atomic_add(y, i, x[i])", set()),
        ("i = wp.tid()\ny[0] *= x[i]", set()),
        ("i = wp.tid()\ny = s\ny[0] += x[i]", set()),
    ],
)
def test_only_what_every_thread_adds_to_one_element_is_a_sum_of_as_many_terms(body, found):
    assert set(sums(kernel_with(body))) == found


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("i = wp.tid()\ny[i] = 2.0 * x[i]", {"y"}),
        ("i, j = wp.tid()\ns.q[i, j] = x[i]\ny[j, i] = 0.0", {"s.q", "y"}),
        ("i = wp.tid()\nif x[i] > 0.0:\n    y[i] = 1.0", set()),
        ("i = wp.tid()\nfor k in range(3):\n    y[i] = 1.0", set()),
        ("i = wp.tid()\nif i >= 4:\n    return\ny[i] = 1.0", set()),
        ("i = wp.tid()\ny[i] += 1.0", set()),
        ("i = wp.tid()\ny[i + 1] = 1.0", set()),
        ("i = wp.tid()\ni = int(x[i])\ny[i] = 1.0", set()),
        ("i = int(x[0])\ny[i] = 1.0", set()),
        ("i = wp.tid()\ny = x\ny[i] = 1.0", set()),
        ("i = wp.tid()\nwp.atomic_add(y, i, 1.0)", set()),
        ("i = wp.tid()\ny[i, 0] = 1.0", set()),
    ],
)
def test_only_a_store_that_every_thread_makes_at_its_own_index_overwrites_an_array(body, found):
    assert stored(body) == found


def window(work: float, underrated: float = 1.0) -> SimpleNamespace:
    """What an allowance asks of a window."""
    return SimpleNamespace(work=work, underrated=underrated)


def test_the_effort_follows_the_work_of_an_evaluation_and_what_was_spent():
    allowance = Allowance(recorded=1.0)
    efforts = [allowance.effort(window(work), 1, used=True, again=False) for work in (1e-4, 1e-2, 1e-1, 10.0)]
    assert efforts == [FULL, LESS, LEAST, LEAST]
    assert allowance.effort(window(1e-1), 1, used=True, again=True) == AGAIN
    assert allowance.effort(window(1e-4), 1, used=True, again=True) == FULL
    assert allowance.harder(window(1e-4), LEAST) == FULL
    assert allowance.harder(window(10.0), LEAST) is None
    allowance.spent = 1.5
    assert allowance.effort(window(1e-4), 1, used=True, again=False) == LEAST


def test_a_long_recording_allows_more():
    assert Allowance(recorded=100.0).effort(window(1e-1), 1, used=True, again=False) == FULL
    assert Allowance(recorded=1.0).effort(window(1e-1, 100.0), 1, used=True, again=False) == FULL


@pytest.mark.warp
def test_a_large_program_is_judged_like_a_small_one(tmp_path):
    answer = judged(
        LARGE
        + """
x = ones([0.3, 0.8])
y, loss = wp.zeros_like(x), wp.zeros(1, dtype=float, requires_grad=True)
for epoch in range(3):
    pass_much()
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(square, dim=2, inputs=[x], outputs=[y])
        wp.launch(loss_of, dim=2, inputs=[y], outputs=[loss])
    tape.backward(loss)
    wp.launch(descend, dim=2, inputs=[x, x.grad])
""",
        tmp_path,
    )
    first, second = answer.of("x")
    assert first.status is GradientStatus.PASS
    assert (second.status, repairing(second.repaired_by)) == (GradientStatus.FAIL, "fresh")


@pytest.mark.warp
def test_a_gradient_that_a_large_program_leaves_unused_is_read_at_its_end(tmp_path):
    answer = judged(
        LARGE
        + """
x = ones([0.3, 0.8])
y, loss = wp.zeros_like(x), wp.zeros(1, dtype=float, requires_grad=True)
pass_much()
with wp.Tape() as tape:
    wp.launch(square, dim=2, inputs=[x], outputs=[y])
    wp.launch(loss_of, dim=2, inputs=[y], outputs=[loss])
tape.backward(loss)
wp.launch(in_place, dim=2, inputs=[y])
""",
        tmp_path,
    )
    (found,) = answer.of("x")
    assert found.status is GradientStatus.PASS
    assert found.ad != 0.0


@pytest.mark.warp
def test_a_large_gradient_that_is_only_cleared_is_made_again_when_it_is_asked_for(tmp_path):
    answer = judged(
        """\
        n = 5_000_000
        x = wp.full(n, 0.3, dtype=float, requires_grad=True)
        between = [wp.zeros_like(x, requires_grad=True) for _ in range(4)]
        loss = ones([0.0])
        with wp.Tape() as tape:
            for before, after in zip([x, *between], between):
                wp.launch(swing, dim=n, inputs=[before], outputs=[after])
            wp.launch(loss_of, dim=64, inputs=[between[-1]], outputs=[loss])
        tape.backward(loss)
        for array in (*between, x):
            array.grad.zero_()
        """,
        tmp_path,
    )
    assert answer.status("x") == [GradientStatus.PASS]
    assert answer.of("x")[0].ad != 0.0


@pytest.mark.slow
@pytest.mark.warp
@pytest.mark.parametrize(("last", "status"), [("scale", GradientStatus.PASS), ("in_place", GradientStatus.FAIL)])
def test_states_that_are_made_in_less_memory_are_judged_alike(last, status, tmp_path):
    answer = judged(
        f"""\
        n = 5_000_000
        x = wp.full(n, 0.3, dtype=float, requires_grad=True)
        between = [wp.zeros_like(x, requires_grad=True) for _ in range(7)]
        loss = ones([0.0])
        with wp.Tape() as tape:
            for before, after in zip([x, *between[:5]], between[:6]):
                wp.launch(swing, dim=n, inputs=[before], outputs=[after])
            wp.launch({last}, dim=n, inputs=[between[5], between[6]] if "{last}" == "scale" else [between[5]])
            wp.launch(loss_of, dim=64, inputs=[between[6 if "{last}" == "scale" else 5]], outputs=[loss])
        tape.backward(loss)
        print(x.grad.numpy()[:3])
        """,
        tmp_path,
    )
    assert answer.status("x") == [status]


def test_of_large_cleared_gradients_no_copies_are_kept():
    log = Log()
    arrays = [np.full(1 << 22, number, dtype=np.uint8) for number in range(64)]
    for array in arrays:
        memory = log.memories.add(array.ctypes.data, array.size)
        log.keep_cleared(memory)
    kept = [version for versions in log.gradient_values.values() for _, version in versions]
    copies = [version for version in kept if not isinstance(version, Digest)]
    assert len(kept) == len(arrays)
    assert sum(copy.size for copy in copies) == log.copied_bytes == LARGE_SIZE
    assert len({version for version in kept if isinstance(version, Digest)}) == len(arrays) - len(copies)


@pytest.mark.warp
def test_an_array_that_a_launch_overwrites_in_part_is_put_back(tmp_path):
    answer = judged(
        """\
        x = ones([0.3, 0.8])
        y, loss = ones([0.5, 0.5]), wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(square, dim=1, inputs=[x], outputs=[y])
            wp.launch(accumulate, dim=2, inputs=[x], outputs=[y])
            wp.launch(loss_of, dim=2, inputs=[y], outputs=[loss])
        tape.backward(loss)
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    assert answer.status("x") == [GradientStatus.PASS]


def test_what_is_sent_together_is_written_at_once_and_in_order(tmp_path):
    path = tmp_path / "records"
    channel = Channel(str(path))
    channel.send(Note("first", "alone"))
    with channel.together():
        channel.send(Note("second", "together"))
        channel.send(Note("third", "together"))
        assert [note.topic for note in read(path)] == ["first"]
    channel.send(Note("fourth", "alone"))
    assert [note.topic for note in read(path)] == ["first", "second", "third", "fourth"]

"""A sum in single precision that swallows the change of a leaf: judged by what each thread adds to it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from engine_runs import judged
from test_engine_replay import in_process

from warplint.proof import Repair
from warplint.verify.engine.differences.measure import resolution
from warplint.verify.engine.differences.precision import EPS32, EPS64
from warplint.verify.records import GradientStatus, KernelCheck, SignatureKind

pytestmark = pytest.mark.warp

BACKGROUND = """\
background = wp.full(100000, 40.0, dtype=float)
x = ones([0.3, 0.8, -0.4])
y, z = ones([0.0, 0.0, 0.0]), ones([0.0, 0.0, 0.0])
loss = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(loss_of, dim=100000, inputs=[background], outputs=[loss])
    wp.launch(swing, dim=3, inputs=[x], outputs=[y])
    wp.launch(swing, dim=3, inputs=[y], outputs=[{last}])
    wp.launch(loss_of, dim=3, inputs=[{last}], outputs=[loss])
tape.backward(loss)
print(x.grad.numpy(), loss.numpy())
"""


@pytest.mark.slow
def test_a_right_gradient_passes_though_the_loss_does_not_move(tmp_path):
    (gradient,) = judged(BACKGROUND.format(last="z"), tmp_path).of("x")
    assert gradient.status is GradientStatus.PASS
    assert "100003 contributions" in gradient.reason
    assert gradient.relative_error < 1e-3


def test_a_wrong_gradient_fails_and_is_explained_though_the_loss_does_not_move(tmp_path):
    (gradient,) = judged(BACKGROUND.format(last="x"), tmp_path).of("x")
    assert gradient.status is GradientStatus.FAIL
    assert gradient.repaired_by == (Repair.MEMORY,)


def test_what_is_no_plain_sum_is_said_with_the_figures(tmp_path):
    source = BACKGROUND.format(last="z").replace(
        "tape.backward(loss)", "    wp.launch(square, dim=1, inputs=[loss], outputs=[more])\ntape.backward(more)"
    )
    (gradient,) = judged("more = wp.zeros(1, dtype=float, requires_grad=True)\n" + source, tmp_path).of("x")
    assert gradient.status is GradientStatus.INCONCLUSIVE
    assert "has a last digit of" in gradient.reason


COMBINED = """\
background = wp.full(20000, 40.0, dtype=float)
x = ones([0.3, 0.8, -0.4])
y, z = ones([0.0, 0.0, 0.0]), ones([0.0, 0.0, 0.0])
small, large, loss = (wp.zeros(1, dtype=float, requires_grad=True) for _ in range(3))
with wp.Tape() as tape:
    wp.launch(loss_of, dim=20000, inputs=[background], outputs=[large])
    wp.launch(swing, dim=3, inputs=[x], outputs=[y])
    wp.launch(swing, dim=3, inputs=[y], outputs=[{last}])
    wp.launch(loss_of, dim=3, inputs=[{last}], outputs=[small])
    wp.launch(combined, dim=1, inputs=[small, large], outputs=[loss])
tape.backward(loss)
print(x.grad.numpy(), loss.numpy())
"""


@pytest.mark.parametrize(("last", "status"), [("z", GradientStatus.PASS), ("x", GradientStatus.FAIL)])
def test_a_loss_that_is_put_together_at_the_end_is_judged_by_its_parts(tmp_path, last, status):
    """The way of trainers: the large part has the change of the small one fall off the end of the loss."""
    (gradient,) = judged(COMBINED.format(last=last), tmp_path).of("x")
    assert gradient.status is status
    assert "by the 2 numbers that the loss is the sum of" in gradient.reason


def test_where_nothing_is_left_to_differentiate_the_launches_are_looked_at_in_double_precision(tmp_path):
    answer = judged(
        """\
        def right():
            sound = ones([0.3, 0.8])
            loss, between = ones([0.0]), ones([0.0, 0.0])
            with wp.Tape() as tape:
                wp.launch(buried, dim=2, inputs=[sound, 0.01], outputs=[between])
                wp.launch(loss_of, dim=2, inputs=[between], outputs=[loss])
            tape.backward(loss)
            print(sound.grad.numpy())

        def wrong():
            faulty = ones([0.3, 0.8])
            loss, between = ones([0.0]), ones([0.0, 0.0])
            with wp.Tape() as tape:
                wp.launch(buried_wrongly, dim=2, inputs=[faulty, 0.01], outputs=[between])
                wp.launch(loss_of, dim=2, inputs=[between], outputs=[loss])
            tape.backward(loss)
            print(faulty.grad.numpy())

        right()
        wrong()
        """,
        tmp_path,
    )
    (sound,), (faulty,) = answer.of("sound"), answer.of("faulty")
    # the gradient stays undecided: it is said what was swallowed, and that the kernels are right
    assert (sound.status, sound.signature) == (GradientStatus.INCONCLUSIVE, None)
    assert "absorbed" in sound.reason
    assert "in double precision the adjoint of" in sound.reason
    assert "`buried`" in sound.reason
    # or which of them is wrong
    assert faulty.status is GradientStatus.INCONCLUSIVE
    assert faulty.signature is not None
    assert (faulty.signature.kind, faulty.signature.operation) == (SignatureKind.WRONG_ADJOINT, "buried_wrongly")
    failed = [check for check in answer.result.of(KernelCheck) if check.status is GradientStatus.FAIL]
    assert {(check.kernel, check.argument) for check in failed} == {("buried_wrongly", "a")}
    assert all("in double precision" in check.reason for check in failed)


def test_what_rounding_leaves_of_a_zero_gradient_is_not_called_wrong(tmp_path):
    """A contribution moves by its last digit in one direction and not at all in another, as the tape's dust does."""
    answer = judged(
        """\
        first, last = (wp.array(0.4 * np.sin(np.arange(8) + at), dtype=float, requires_grad=True) for at in (0, 8))
        wave = wp.array(np.tile([1.0, 0.0], (8, 1)), dtype=wp.vec2)
        goal = wp.array(3.0 * np.eye(8)[2], dtype=float)
        between, behind = (wp.zeros(8, dtype=wp.vec2, requires_grad=True) for _ in range(2))
        loss = ones([0.0])
        with wp.Tape() as tape:
            wp.launch(plate, dim=8, inputs=[wave, first], outputs=[between])
            wp.launch(plate, dim=8, inputs=[between, last], outputs=[behind])
            wp.launch(brightness_misfit, dim=8, inputs=[behind, goal], outputs=[loss])
        tape.backward(loss)
        print(first.grad.numpy(), last.grad.numpy(), loss.numpy())
        """,
        tmp_path,
    )
    assert [each.status for each in answer.gradients].count(GradientStatus.PASS) == 1
    assert GradientStatus.FAIL not in [each.status for each in answer.gradients]


@pytest.mark.parametrize(
    ("leaf", "loss", "told"),
    [("f4", "f4", EPS32), ("f8", "f4", EPS32), ("f8", "f8", EPS64), ("f2", "f4", 2.0**-10), ("f4", "f2", 2.0**-10)],
)
def test_the_coarsest_of_a_leaf_and_its_losses_tells_how_finely_they_move(leaf, loss, told):
    def of(name):
        return SimpleNamespace(kind=np.dtype(name))

    group = SimpleNamespace(leaf=SimpleNamespace(view=of(leaf)), backwards=[SimpleNamespace(loss_kind=of(loss))])
    assert resolution(group) == told


def test_a_loss_of_numbers_in_half_precision_is_affine_to_within_their_rounding(tmp_path):
    output = in_process(
        """
from warplint.verify.engine.execution.accesses import view_of
from warplint.verify.engine.execution.operations import KernelCall
from warplint.verify.engine.judging.parts import Weighted
from warplint.verify.engine.kernels.rewriting import NotRewritable
a, loss = wp.array([0.5, 2.0, 3.0], dtype=wp.float16), wp.zeros(1, dtype=float)
for kernel in (loss_of_halves, bent_loss_of_halves):
    wp.launch(kernel, dim=1, inputs=[a], outputs=[loss])
hooks.observer = None
for call in [each for each in log.operations if isinstance(each, KernelCall)]:
    read, made = (view_of(call, slot) for slot in call.layout.slots)
    try:
        print(call.name, *(round(float(weight), 1) for weight in Weighted.measured(call, [read], made).weights))
    except NotRewritable as error:
        print(call.name, error)
""",
        tmp_path,
    )
    assert output.splitlines()[-2:] == [
        "loss_of_halves 300.0 0.4 1.0",
        "bent_loss_of_halves the launch that makes the loss is not affine",
    ]

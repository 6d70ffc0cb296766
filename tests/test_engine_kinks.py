"""Leaves whose numbers all start on kinks that bend both ways: no one-sided slope is the tape's."""

from pathlib import Path

import pytest
from engine_runs import judged

from warplint.verify.records import GradientStatus

pytestmark = pytest.mark.warp

FOLDED = """
x = ones(8 * [0.0])
y = ones(8 * [0.0])
{before}
loss = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(folded, dim=8, inputs=[x], outputs=[y])
    wp.launch(weighted_loss, dim=8, inputs=[y, 1.0], outputs=[loss])
tape.backward(loss)
print(x.grad.numpy())
"""


def test_beside_the_kinks_the_tape_is_compared_and_at_them_it_lies_between(tmp_path: Path) -> None:
    (gradient,) = judged(FOLDED.format(before=""), tmp_path).of("x")
    assert gradient.status is GradientStatus.PASS
    assert "at a kink; beside it" in gradient.reason
    assert {each.kind for each in gradient.directions if "beside" in each.kind} == {"random beside", "gradient beside"}


def test_a_wrong_gradient_is_not_excused_by_kinks(tmp_path: Path) -> None:
    """What an earlier backward left is on top of the right one at every point."""
    (gradient,) = judged(FOLDED.format(before="x.grad.fill_(3.0)"), tmp_path).of("x")
    assert gradient.status is not GradientStatus.PASS

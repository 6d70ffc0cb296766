"""Updates that are lost: made from a view that was cleared, or to a copy that nothing reads. A run alone shows them."""

from pathlib import Path

import pytest
from engine_runs import judged

from warplint import cli
from warplint.verify.engine.recording.horizon import FURTHER
from warplint.verify.records import SparedView, Unread

pytestmark = pytest.mark.warp

DESCENT = """
x = ones([0.3, 0.8])
steps = np.zeros(2, dtype=np.float32)
for epoch in range(4):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(loss_of, dim=2, inputs=[x], outputs=[loss])
    tape.backward(loss)
    slope = x.grad.numpy()
    {before}
    tape.zero()
    {after}
"""
ON_A_COPY = """
from warp.optim import SGD
x = ones([0.3, 0.8])
stepped = wp.array(x, dtype=float, requires_grad=True)
optimiser = SGD([stepped], lr=0.1)
for epoch in range({rounds}):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(loss_of, dim=2, inputs=[x], outputs=[loss])
    tape.backward(loss)
    optimiser.step([x.grad])
    tape.zero()
    {then}
"""


def test_a_view_that_is_used_when_it_is_empty_shows_in_the_leaf_where_the_clearing_is_undone(tmp_path: Path) -> None:
    """The leaf is written anew, so that it cannot be told by its standing still."""
    answer = judged(DESCENT.format(before="", after="x.assign(0.9 * x.numpy() - 0.1 * slope)"), tmp_path)
    (spared,) = answer.result.of(SparedView)
    assert answer.lines(spared.seen) == [9]
    assert answer.lines(spared.cleared) == [11]
    assert spared.moved == pytest.approx(0.1 * spared.largest, rel=1e-4)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("used = 0.1 * slope", "x.assign(0.9 * x.numpy() - used)"),  # held, and not looked at again
        ("steps = 0.5 * steps - 0.1 * slope", "x.assign(x.numpy() + steps)"),
        ("", "print(slope)"),  # seen, but it is no step
        ("x.assign(x.numpy() - 0.1 * slope)", ""),
    ],
)
def test_a_view_that_is_only_held_is_no_fault(tmp_path: Path, before: str, after: str) -> None:
    answer = judged(DESCENT.format(before=before, after=after), tmp_path)
    assert not answer.result.of(SparedView)


def test_a_copy_that_is_stepped_is_followed_until_it_is_sure_that_nothing_reads_it(tmp_path: Path) -> None:
    answer = judged(ON_A_COPY.format(rounds=40, then=""), tmp_path)
    (unread,) = answer.result.of(Unread)
    assert unread.times == 1 + FURTHER
    assert answer.program.seen == f"{2 + FURTHER} iterations"


def test_a_copy_that_is_read_back_now_and_then_is_not_lost(tmp_path: Path) -> None:
    answer = judged(ON_A_COPY.format(rounds=40, then="if epoch % 4 == 3: wp.copy(x, stepped)"), tmp_path)
    assert not answer.result.of(Unread)
    assert answer.program.seen == "4 iterations"


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("stale-grad", DESCENT.format(before="", after="x.assign(0.9 * x.numpy() - 0.1 * slope)")),
        ("severed-copy", ON_A_COPY.format(rounds=40, then="")),
    ],
)
def test_gradcheck_names_them_without_having_looked_at_the_source(
    tmp_path: Path, name: str, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    judged(source, tmp_path)  # writes the program
    status = cli.main(["gradcheck", "--device", "cpu", "--", "python", str(tmp_path / "program.py")])
    said = capsys.readouterr().out
    assert status == 1
    assert f"] {name}: " in said
    assert "seen only while the program ran" in said

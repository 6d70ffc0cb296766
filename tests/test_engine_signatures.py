"""The class of each wrong gradient, as far as its figures name one; nothing is said where they do not."""

from __future__ import annotations

import pytest
from engine_runs import Answer, judged

from warplint.verify.engine.differences.directions import combine
from warplint.verify.engine.differences.measure import Measurement
from warplint.verify.engine.judging.signatures import at_kinks
from warplint.verify.records import Direction, GradientStatus, Signature, SignatureKind

pytestmark = pytest.mark.warp

PASS, FAIL, FLAT = GradientStatus.PASS, GradientStatus.FAIL, GradientStatus.FLAT
INCONCLUSIVE = GradientStatus.INCONCLUSIVE


def signature(answer: Answer, leaf: str, group: int = 0) -> Signature:
    """What is said of one gradient of a leaf."""
    found = answer.of(leaf)[group].signature
    assert found is not None, answer.of(leaf)[group]
    return found


def test_zeros_overwrites_and_numbers_that_are_none(tmp_path):
    answer = judged(
        """\
        def severed():
            cut = ones([0.3, 0.8])
            loss, between = ones([0.0]), wp.zeros(2, dtype=float)
            with wp.Tape() as tape:
                wp.launch(square, dim=2, inputs=[cut], outputs=[between])
                wp.launch(loss_of, dim=2, inputs=[between], outputs=[loss])
            tape.backward(loss)
            print(cut.grad.numpy())

        def overwriting():
            lost = ones([0.3, 0.8])
            a, b = lost, ones([0.0, 0.0])
            loss = ones([0.0])
            with wp.Tape() as tape:
                for _ in range(3):
                    wp.launch(swing, dim=2, inputs=[a], outputs=[b])
                    a, b = b, a
                wp.launch(loss_of, dim=2, inputs=[a], outputs=[loss])
            tape.backward(loss)
            print(lost.grad.numpy())

        def piecewise():
            stepped = ones([0.3, 0.8])
            loss, between = ones([0.0]), ones([0.0, 0.0])
            with wp.Tape() as tape:
                wp.launch(stairs, dim=2, inputs=[stepped], outputs=[between])
                wp.launch(loss_of, dim=2, inputs=[between], outputs=[loss])
            tape.backward(loss)
            print(stepped.grad.numpy())

        def singular():
            negative = ones([-0.3, 0.8, 0.4])
            loss, between, rooted = ones([0.0]), ones([0.0] * 3), ones([0.0] * 3)
            with wp.Tape() as tape:
                wp.launch(swing, dim=3, inputs=[negative], outputs=[between])
                wp.launch(root, dim=3, inputs=[between], outputs=[rooted])
                wp.launch(loss_of, dim=3, inputs=[rooted], outputs=[loss])
            tape.backward(loss)
            print(negative.grad.numpy())

        def undefined():
            unbounded = ones([-0.3, 0.8, 0.4])
            loss, between = ones([0.0]), ones([0.0] * 3)
            with wp.Tape() as tape:
                wp.launch(scale, dim=3, inputs=[unbounded], outputs=[between])
                wp.launch(weighted_loss, dim=3, inputs=[between, float("inf")], outputs=[loss])
            tape.backward(loss)
            print(unbounded.grad.numpy())

        def folding():
            folded = ones([0.0, 0.8, 0.4])
            loss, between = ones([0.0]), ones([0.0] * 3)
            with wp.Tape() as tape:
                wp.launch(bent, dim=3, inputs=[folded], outputs=[between])
                wp.launch(loss_of, dim=3, inputs=[between], outputs=[loss])
            tape.backward(loss)
            print(folded.grad.numpy())

        def at_zero():
            edge = ones([0.0, 0.8, 0.4])
            loss, rooted = ones([0.0]), ones([0.0] * 3)
            with wp.Tape() as tape:
                wp.launch(root, dim=3, inputs=[edge], outputs=[rooted])
                wp.launch(loss_of, dim=3, inputs=[rooted], outputs=[loss])
            tape.backward(loss)
            print(edge.grad.numpy())

        for each in (severed, overwriting, piecewise, singular, undefined, folding, at_zero):
            each()
        """,
        tmp_path,
    )
    assert answer.status("cut") == [FAIL]
    assert signature(answer, "cut").kind is SignatureKind.ZERO
    assert answer.status("lost") == [FAIL]
    assert signature(answer, "lost").kind is SignatureKind.OVERWRITE
    assert answer.status("stepped") == [FLAT]
    assert signature(answer, "stepped").kind is SignatureKind.FLAT
    # a number that is none, and the operation whose adjoint made it
    assert answer.status("negative") == [FAIL]
    made = signature(answer, "negative")
    assert (made.kind, made.operation, answer.lines(made.at)[-1]) == (SignatureKind.NOT_FINITE, "root", 36)
    assert "1 of 3" in made.text
    # a loss that is none, and the launch that wrote it first
    assert answer.status("unbounded") == [INCONCLUSIVE]
    made = signature(answer, "unbounded")
    assert (made.kind, made.operation, answer.lines(made.at)[-1]) == (SignatureKind.NOT_FINITE, "weighted_loss", 46)
    # beside a kink the rest is right; at a pole nothing is
    assert answer.status("folded") == [PASS]
    assert signature(answer, "folded").kind is SignatureKind.KINKS
    assert answer.status("edge") == [INCONCLUSIVE]
    assert signature(answer, "edge").operation == "root"


def test_a_right_gradient_whose_steps_lead_nowhere_is_said_to_be_right(tmp_path):
    answer = judged(
        """\
        def uphill():
            climbing = ones([0.3, 0.8])
            for _ in range(2):
                loss = ones([0.0])
                with wp.Tape() as tape:
                    wp.launch(loss_of, dim=2, inputs=[climbing], outputs=[loss])
                tape.backward(loss)
                wp.launch(climb, dim=2, inputs=[climbing, climbing.grad, 0.3])
                tape.zero()

        def too_far():
            leaping = ones([0.3, 0.8])
            for _ in range(2):
                loss = ones([0.0])
                with wp.Tape() as tape:
                    wp.launch(loss_of, dim=2, inputs=[leaping], outputs=[loss])
                tape.backward(loss)
                wp.launch(climb, dim=2, inputs=[leaping, leaping.grad, -3.0])
                tape.zero()

        def downhill():
            learning = ones([0.3, 0.8])
            for _ in range(2):
                loss = ones([0.0])
                with wp.Tape() as tape:
                    wp.launch(loss_of, dim=2, inputs=[learning], outputs=[loss])
                tape.backward(loss)
                wp.launch(climb, dim=2, inputs=[learning, learning.grad, -0.1])
                tape.zero()

        for each in (uphill, too_far, downhill):
            each()
        """,
        tmp_path,
    )
    assert answer.status("climbing") == answer.status("leaping") == answer.status("learning") == [PASS, PASS]
    along = signature(answer, "climbing")
    assert along.kind is SignatureKind.OPTIMISATION
    assert "goes along it" in along.text
    beyond = signature(answer, "leaping")
    assert beyond.kind is SignatureKind.OPTIMISATION
    assert "too long" in beyond.text
    assert "`leaping`" in beyond.text
    assert [gradient.signature for gradient in answer.of("learning")] == [None, None]


def direction(kind: str, status: GradientStatus, reason: str = "") -> Direction:
    """One that was judged so."""
    return Direction(kind, 1.0, 2.0, 1e-4, 1e-2, status=status, reason=reason)


def found(*judged: Direction) -> Measurement:
    """What several directions say together."""
    answer = combine(judged)
    return Measurement((), judged, answer.status, answer.reason, answer.ad, answer.fd, answer.relative_error)


def test_a_mismatch_that_only_directions_across_kinks_show_is_sparse():
    kink = direction("largest", PASS, "a kink at the starting point, one-sided slopes 1 and 3: tape 1")
    across = found(direction("random", FAIL, "central"), kink, direction("coordinate", PASS, "central"))
    assert across.status is INCONCLUSIVE
    said = at_kinks(across)
    assert said is not None
    assert said.kind is SignatureKind.KINKS
    assert "1 of 3 directions" in said.text
    # a coordinate that fails by itself is no matter of kinks
    assert at_kinks(found(direction("random", FAIL, "central"), kink, direction("coordinate", FAIL, "central"))) is None

"""Leaves, groups, windows and consumed gradients, as the gradient's theory has them."""

import pytest
from engine_runs import judged, repairing

from warplint.verify.records import GradientStatus, SignatureKind, Unread

pytestmark = pytest.mark.warp

PASS, FAIL = GradientStatus.PASS, GradientStatus.FAIL


def test_backward_calls_whose_gradients_are_summed_are_one_group(tmp_path):
    answer = judged(
        """\
        x = ones([0.3, 0.8])
        for step in range(3):
            for batch in range(2):
                y, loss = wp.zeros_like(x), wp.zeros(1, dtype=float, requires_grad=True)
                with wp.Tape() as tape:
                    wp.launch(square, dim=2, inputs=[x], outputs=[y])
                    wp.launch(loss_of, dim=2, inputs=[y], outputs=[loss])
                tape.backward(loss)
            wp.launch(descend, dim=2, inputs=[x, x.grad])
            x.grad.zero_()
        """,
        tmp_path,
    )
    gradients = answer.of("x")
    assert [gradient.status for gradient in gradients] == [PASS, PASS]
    assert [len(gradient.backward) for gradient in gradients] == [2, 2]


def test_a_gradient_read_only_after_it_was_cleared(tmp_path):
    answer = judged(
        """\
        x = ones([0.3, 0.8])
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(loss_of, dim=2, inputs=[x], outputs=[loss])
        tape.backward(loss)
        tape.zero()
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    (gradient,) = answer.of("x")
    assert (gradient.status, gradient.ad, repairing(gradient.repaired_by)) == (FAIL, 0.0, "fresh")
    assert answer.lines(gradient.consumed_at) == [7]


def test_what_the_tape_writes_or_clears_is_no_leaf(tmp_path):
    answer = judged(
        """\
        x = ones([0.3, 0.8])
        y = wp.zeros_like(x)
        total, cleared = wp.zeros_like(x), wp.zeros_like(x)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            cleared.zero_()
            wp.launch(square, dim=2, inputs=[x], outputs=[y])
            wp.launch(accumulate, dim=2, inputs=[y], outputs=[total])
            wp.launch(loss_of_both, dim=2, inputs=[total, cleared], outputs=[loss])
        tape.backward(loss)
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    assert {gradient.leaf for gradient in answer.gradients} == {"x"}
    assert answer.status("x") == [PASS]


def test_seeds_are_a_weighted_sum_of_the_results(tmp_path):
    answer = judged(
        """\
        x = ones([0.3, 0.8])
        y = wp.zeros_like(x)
        with wp.Tape() as tape:
            wp.launch(square, dim=2, inputs=[x], outputs=[y])
        tape.backward(grads={y: wp.array([1.0, -2.0], dtype=float)})
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    (gradient,) = answer.of("x")
    assert gradient.status is PASS
    largest = [abs(direction.ad) for direction in gradient.directions if direction.kind == "largest"]
    assert largest == [pytest.approx(3.2)]


def test_rows_of_one_array_and_arrays_of_structs_are_right(tmp_path):
    answer = judged(
        """\
        rows = wp.zeros((4, 2), dtype=float, requires_grad=True)
        first = State()
        first.q, first.v = ones([0.3, 0.8]), ones([0.1, -0.2])
        second = State()
        second.q, second.v = wp.zeros_like(first.q), wp.zeros_like(first.v)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(drift, dim=2, inputs=[first, second])
            wp.copy(rows[0], second.q)
            for t in range(3):
                wp.launch(swing, dim=2, inputs=[rows[t]], outputs=[rows[t + 1]])
            wp.launch(loss_of, dim=2, inputs=[rows[3]], outputs=[loss])
        tape.backward(loss)
        print(first.q.grad.numpy(), first.v.grad.numpy())
        """,
        tmp_path,
    )
    statuses = {gradient.status for gradient in answer.gradients}
    assert statuses == {PASS}
    assert {gradient.leaf for gradient in answer.gradients} >= {"s.q", "s.v"}


def test_an_optimiser_on_a_copy_updates_what_nobody_reads(tmp_path):
    answer = judged(
        """\
        from warp.optim import SGD
        x = ones([0.3, 0.8])
        copy = wp.clone(x, requires_grad=True)
        optimiser = SGD([copy], lr=0.1)
        for epoch in range(3):
            loss = wp.zeros(1, dtype=float, requires_grad=True)
            with wp.Tape() as tape:
                wp.launch(loss_of, dim=2, inputs=[x], outputs=[loss])
            tape.backward(loss)
            optimiser.step([copy.grad])
            tape.zero()
        """,
        tmp_path,
    )
    assert set(answer.status("x")) == {PASS}
    (unread,) = answer.result.of(Unread)
    assert answer.lines(unread.allocated) == [3]
    assert answer.lines(unread.writer) == [10]


TAPES = """\
        gain = ones([0.3])
        states = [ones([0.3, 0.8])] + [wp.zeros(2, dtype=float, requires_grad=True) for _ in range(4)]
        losses = [wp.zeros(1, dtype=float, requires_grad=True) for _ in range(4)]
        tapes = []
        for q, after, loss in zip(states, states[1:], losses):
            with wp.Tape() as tape:
                wp.launch(driven, dim=2, inputs=[q, gain], outputs=[after])
                wp.launch(loss_of, dim=2, inputs=[after], outputs=[loss])
            tapes.append(tape)
"""


def test_tapes_run_backwards_through_time_hand_their_gradients_on(tmp_path):
    answer = judged(
        f"""\
{TAPES}
        for tape, loss in zip(reversed(tapes), reversed(losses)):
            tape.backward(loss)
        print(gain.grad.numpy(), states[0].grad.numpy())
        """,
        tmp_path,
    )
    assert answer.status("gain") == [PASS]
    assert {gradient.status for gradient in answer.gradients} == {PASS}


def test_tapes_that_only_carry_the_gradient_back_add_no_objective(tmp_path):
    answer = judged(
        f"""\
{TAPES}
        tapes[-1].backward(losses[-1])
        for tape in reversed(tapes[:-1]):
            tape.backward()
        print(gain.grad.numpy(), states[0].grad.numpy())
        """,
        tmp_path,
    )
    assert {gradient.status for gradient in answer.gradients} == {PASS}


@pytest.mark.parametrize("seed", ["{y: y.grad}", "{y: later.gradients[y]}", "{y: wp.clone(y.grad)}", "None"])
def test_a_gradient_that_one_tape_left_is_the_seed_of_another_once(seed, tmp_path):
    answer = judged(
        f"""\
        x = ones([0.3, 0.8])
        y, loss = wp.zeros_like(x), wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as earlier:
            wp.launch(square, dim=2, inputs=[x], outputs=[y])
        with wp.Tape() as later:
            wp.launch(loss_of, dim=2, inputs=[y], outputs=[loss])
        later.backward(loss)
        earlier.backward(grads={seed})
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    assert answer.status("x") == [PASS]


def test_tapes_run_in_the_order_of_recording_are_windows_of_their_own(tmp_path):
    answer = judged(
        f"""\
{TAPES}
        for tape, loss in zip(tapes, losses):
            tape.backward(loss)
        print(gain.grad.numpy())
        """,
        tmp_path,
    )
    (gradient,) = answer.of("gain")
    assert gradient.status is FAIL
    assert "chain" in repairing(gradient.repaired_by)


def test_several_windows_with_host_data_in_them_are_decided_by_the_program_itself(tmp_path):
    answer = judged(
        """\
        gain = ones([0.3])
        q = ones([0.3, 0.8])
        total = 0.0
        for k in range(3):
            after, loss = wp.zeros_like(q), wp.zeros(1, dtype=float, requires_grad=True)
            with wp.Tape() as tape:
                wp.launch(driven, dim=2, inputs=[q, gain], outputs=[after])
                wp.launch(weighted_loss, dim=2, inputs=[after, 0.5 + 0.25 * k], outputs=[loss])
            tape.backward(loss)
            total += float(loss.numpy()[0])
            q = after
        print(total, gain.grad.numpy())
        """,
        tmp_path,
    )
    (gradient,) = answer.of("gain")
    assert gradient.status is FAIL
    assert "chain" in repairing(gradient.repaired_by)


def test_a_parameter_that_no_tape_has_read_is_judged_where_its_gradient_is_used(tmp_path):
    answer = judged(
        """
        x = wp.array([0.3, 0.6], dtype=float, requires_grad=True)
        y = wp.zeros(2, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        wp.launch(square, dim=2, inputs=[x], outputs=[y])
        with wp.Tape() as tape:
            wp.launch(loss_of, dim=2, inputs=[y], outputs=[loss])
        tape.backward(loss)
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    (gradient,) = answer.of("x")
    assert (gradient.status, gradient.ad, repairing(gradient.repaired_by)) == (FAIL, 0.0, "taped")


def test_a_parameter_that_only_the_host_has_read_is_judged(tmp_path):
    answer = judged(
        """
        x = wp.array([0.3, 0.6], dtype=float, requires_grad=True)
        y = wp.zeros(2, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(square, dim=2, inputs=[wp.array(x.numpy(), dtype=float, requires_grad=True)], outputs=[y])
            wp.launch(loss_of, dim=2, inputs=[y], outputs=[loss])
        tape.backward(loss)
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    (gradient,) = answer.of("x")
    assert (gradient.status, gradient.ad) == (FAIL, 0.0)


def test_a_parameter_of_tapes_that_are_not_differentiated_is_judged(tmp_path):
    answer = judged(
        """
        x = wp.array([0.3, 0.6], dtype=float, requires_grad=True)
        y = wp.zeros(2, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(square, dim=2, inputs=[x], outputs=[y])
        with wp.Tape() as tape:
            wp.launch(loss_of, dim=2, inputs=[y], outputs=[loss])
        tape.backward(loss)
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    (gradient,) = answer.of("x")
    assert (gradient.status, gradient.ad, repairing(gradient.repaired_by)) == (FAIL, 0.0, "chain")


def test_what_a_tape_holds_of_an_earlier_round_has_no_gradient_of_the_next_loss(tmp_path):
    answer = judged(
        """
        p = wp.array([0.3, 0.6], dtype=float, requires_grad=True)
        tape = wp.Tape()
        for _ in range(2):
            begin = wp.array([0.5, 1.0], dtype=float, requires_grad=True)
            y = wp.zeros(2, dtype=float, requires_grad=True)
            loss = wp.zeros(1, dtype=float, requires_grad=True)
            with tape:
                wp.launch(driven, dim=2, inputs=[begin, p], outputs=[y])
                wp.launch(loss_of, dim=2, inputs=[y], outputs=[loss])
            tape.backward(loss)
            p.assign(p.numpy() - 0.1 * p.grad.numpy())
            tape.zero()
        """,
        tmp_path,
    )
    assert [gradient.status for gradient in answer.of("begin")] == [PASS, PASS]
    assert [gradient.status for gradient in answer.of("p")] == [PASS, PASS]


def test_tapes_that_add_to_one_loss_differentiate_what_each_has_added(tmp_path):
    answer = judged(
        """
        x = wp.array([0.3, 0.6], dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        for weight in (1.0, 2.0, 3.0):
            y = wp.zeros(2, dtype=float, requires_grad=True)
            with wp.Tape() as tape:
                wp.launch(square, dim=2, inputs=[x], outputs=[y])
                wp.launch(weighted_loss, dim=2, inputs=[y, weight], outputs=[loss])
            tape.backward(loss)
        print(loss.numpy(), x.grad.numpy())
        """,
        tmp_path,
    )
    assert [gradient.status for gradient in answer.of("x")] == [PASS]


def test_what_no_tape_records_counts_where_it_adds_to_the_loss(tmp_path):
    answer = judged(
        """
        x = wp.array([0.3, 0.6], dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(loss_of, dim=2, inputs=[x], outputs=[loss])
            wp.launch(weighted_loss, dim=2, inputs=[x, 3.0], outputs=[loss], record_tape=False)
        tape.backward(loss)
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    assert [(gradient.status, repairing(gradient.repaired_by)) for gradient in answer.of("x")] == [(FAIL, "taped")]


def test_a_branch_that_no_tape_records_is_told_beside_the_one_that_is(tmp_path):
    answer = judged(
        """
        x = wp.array([0.3, 0.6], dtype=float, requires_grad=True)
        y = wp.zeros(2, dtype=float, requires_grad=True)
        z = wp.zeros(2, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(swing, dim=2, inputs=[x], outputs=[y])
            wp.launch(square, dim=2, inputs=[x], outputs=[z], record_tape=False)
            wp.launch(loss_of_both, dim=2, inputs=[y, z], outputs=[loss])
        tape.backward(loss)
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    (gradient,) = answer.of("x")
    assert gradient.signature is not None
    assert (gradient.status, gradient.signature.kind) == (GradientStatus.INCONCLUSIVE, SignatureKind.HELD_CONSTANT)
    assert [answer.lines(culprit.writer) for culprit in gradient.culprits] == [[8]]


def test_what_a_recorded_function_makes_for_itself_is_no_leaf(tmp_path):
    answer = judged(
        """
        start = ones([0.3, 0.8])
        end = ones([0.0, 0.0])
        kept = ones([0.0, 0.0])

        def forward():
            a, b = wp.clone(start, requires_grad=False), wp.zeros(2, dtype=float)
            for _ in range(3):
                wp.launch(swing, dim=2, inputs=[a], outputs=[b], record_tape=False)
                a, b = b, a
            wp.copy(end, a)

        def backward():
            wp.copy(kept, start)
            states = [kept] + [wp.zeros(2, dtype=float, requires_grad=True) for _ in range(3)]
            with wp.Tape() as again:
                for before, after in zip(states, states[1:]):
                    wp.launch(swing, dim=2, inputs=[before], outputs=[after])
            again.backward(grads={states[-1]: end.grad})
            wp.copy(start.grad, kept.grad)

        forward()
        loss = ones([0.0])
        with wp.Tape() as tape:
            tape.record_func(backward, [end])
            wp.launch(loss_of, dim=2, inputs=[end], outputs=[loss])
        tape.backward(loss)
        print(start.grad.numpy())
        """,
        tmp_path,
    )
    assert {(gradient.leaf, gradient.status) for gradient in answer.gradients} == {("start", PASS), ("end", PASS)}


ADDING = """
        x = ones([0.3, 0.6])
        total = ones([0.0])
        tapes = []
        for weight in (1.0, 2.0, 3.0):
            y = ones([0.0, 0.0])
            with wp.Tape() as tape:
                wp.launch(square, dim=2, inputs=[x], outputs=[y])
                wp.launch(weighted_loss, dim=2, inputs=[y, weight], outputs=[total])
            tapes.append(tape)
"""


@pytest.mark.parametrize("order", ["tapes", "reversed(tapes)"])
def test_tapes_that_add_to_one_array_seeded_by_hand_have_it_as_their_objective(order, tmp_path):
    answer = judged(
        f"""{ADDING}
        total.grad.fill_(1.0)
        for tape in {order}:
            tape.backward()
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    assert answer.status("x") == [PASS]


def test_tapes_that_add_to_one_array_under_several_seeds_are_not_told(tmp_path):
    answer = judged(
        f"""{ADDING}
        for seed, tape in zip((1.0, 2.0, 3.0), tapes):
            total.grad.fill_(seed)
            tape.backward()
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    (gradient,) = answer.of("x")
    assert gradient.status is GradientStatus.INCONCLUSIVE
    assert "seeded by hand" in gradient.reason


BATCHES = """
        x = ones([0.3, 0.6])
        for batch in range(11):
            loss = ones([0.0])
            with wp.Tape() as tape:
                wp.launch(weighted_loss, dim=2, inputs=[x, 1.0 + batch], outputs=[loss])
            tape.backward(loss)
        print(x.grad.numpy())
"""


def test_an_iteration_of_many_backward_calls_is_seen_whole_with_a_longer_horizon(tmp_path):
    cut = judged(BATCHES, tmp_path)
    assert (cut.program.seen, cut.program.more) == ("8 backward calls whose gradients nothing used", "--horizon")
    whole = judged(BATCHES, tmp_path, horizon=20)
    (gradient,) = whole.of("x")
    assert (gradient.status, len(gradient.backward), whole.program.stopped) == (PASS, 11, "end")


def test_rows_of_a_jacobian_are_asked_for_one_by_one(tmp_path):
    """The same output differentiated again after the gradient was used: what is left of the row before is no part."""
    program = """\
        x = ones([0.3, 0.8])
        y = wp.zeros_like(x)
        with wp.Tape() as tape:
            wp.launch(square, dim=2, inputs=[x], outputs=[y])
        rows = []
        for row in ([1.0, 0.0], [0.0, 1.0]):
            tape.backward(grads={{y: wp.array(row, dtype=float)}})
            rows.append(x.grad.numpy().copy())
            {after}
        """
    kept = judged(program.format(after="pass"), tmp_path)
    assert [gradient.status for gradient in kept.of("x")] == [PASS, FAIL]
    assert repairing(kept.of("x")[1].repaired_by) == "fresh"
    cleared = judged(program.format(after="tape.zero()"), tmp_path)
    assert [gradient.status for gradient in cleared.of("x")] == [PASS, PASS]


def test_a_look_between_two_objectives_leaves_them_summed(tmp_path):
    answer = judged(
        """\
        x = ones([0.3, 0.8])
        losses = [wp.zeros(1, dtype=float, requires_grad=True) for _ in range(2)]
        with wp.Tape() as tape:
            for loss in losses:
                wp.launch(loss_of, dim=2, inputs=[x], outputs=[loss])
        for seeded in losses:
            tape.backward(grads={seeded: wp.ones(1, dtype=float)})
            print(x.grad.numpy())
            seeded.grad.zero_()
        """,
        tmp_path,
    )
    (gradient,) = answer.of("x")
    assert (gradient.status, len(gradient.backward)) == (PASS, 2)


def test_a_use_of_a_gradient_that_is_no_number_is_a_use(tmp_path):
    """Whatever is read from NaN makes no difference, yet the step that takes it belongs to its iteration."""
    answer = judged(
        """\
        x = ones([0.0, 0.8])
        for step in range(2):
            y, z = wp.zeros_like(x), wp.zeros_like(x)
            loss = wp.zeros(1, dtype=float, requires_grad=True)
            with wp.Tape() as tape:
                wp.launch(square, dim=2, inputs=[x], outputs=[y])
                wp.launch(root, dim=2, inputs=[y], outputs=[z])
                wp.launch(loss_of, dim=2, inputs=[z], outputs=[loss])
            tape.backward(loss)
            wp.launch(descend, dim=2, inputs=[x, x.grad])
            x.grad.zero_()
        """,
        tmp_path,
    )
    gradients = answer.of("x")
    assert [answer.lines(gradient.consumed_at) for gradient in gradients] == [[10], [10]]
    assert gradients[0].status is FAIL


def test_a_leaf_is_written_by_a_launch_that_stores_what_it_has_read_unless_that_is_to_be_mended(tmp_path):
    answer = judged(
        """\
        x = ones([0.0, 0.0, 1.0])
        loss = ones([0.0])
        wp.launch(evened, dim=3, inputs=[x])
        with wp.Tape() as tape:
            wp.launch(loss_of, dim=1, inputs=[x], outputs=[loss])
            wp.launch(weighted_loss, dim=2, inputs=[x, 3.0], outputs=[loss])
            wp.launch(weighted_loss, dim=1, inputs=[x, -2.0], outputs=[loss])
        tape.backward(loss)
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    (found,) = answer.of("x")
    assert found.status is GradientStatus.PASS, found.reason

"""Each kind of taping fault in a small program: measured wrong, and repaired by what the fault lacks."""

import pytest
from engine_runs import judged, repairing

from warplint.proof import Repair
from warplint.verify.records import GradientStatus, SignatureKind

pytestmark = pytest.mark.warp

PASS, FAIL = GradientStatus.PASS, GradientStatus.FAIL


def test_a_swapped_buffer_is_repaired_by_memory_and_named(tmp_path):
    answer = judged(
        """\
        x = ones([0.3, 0.8])
        a, b = x, wp.zeros_like(x)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            for _ in range(3):
                wp.launch(swing, dim=2, inputs=[a], outputs=[b])
                a, b = b, a
            wp.launch(loss_of, dim=2, inputs=[a], outputs=[loss])
        tape.backward(loss)
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    (gradient,) = answer.of("x")
    assert gradient.status is FAIL
    assert repairing(gradient.repaired_by) == "memory"
    assert {line for culprit in gradient.culprits for line in answer.lines(culprit.allocated)} == {1, 2}
    culprit = gradient.culprits[0]
    assert answer.lines(culprit.reader) == answer.lines(culprit.writer) == [6]
    assert culprit.alone
    assert (culprit.effect or 0.0) > 0.1


def test_the_same_swap_of_a_linear_step_is_right(tmp_path):
    answer = judged(
        """\
        x = ones([0.3, 0.8])
        a, b = x, wp.zeros_like(x)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            for _ in range(3):
                wp.launch(scale, dim=2, inputs=[a], outputs=[b])
                a, b = b, a
            wp.launch(loss_of, dim=2, inputs=[a], outputs=[loss])
        tape.backward(loss)
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    assert answer.status("x") == [PASS]


def test_an_array_without_a_gradient_is_named_by_its_allocation(tmp_path):
    answer = judged(
        """\
        x = ones([0.3, 0.8])
        y = wp.zeros(2, dtype=float)
        z = wp.zeros(2, dtype=float)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(square, dim=2, inputs=[x], outputs=[y])
            wp.copy(z, y)
            wp.launch(loss_of, dim=2, inputs=[z], outputs=[loss])
        tape.backward(loss)
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    (gradient,) = answer.of("x")
    assert (gradient.status, repairing(gradient.repaired_by), gradient.ad) == (FAIL, "gradient", 0.0)
    assert {line for culprit in gradient.culprits for line in answer.lines(culprit.allocated)} == {2, 3}


def test_retained_gradients_of_a_buffer_that_is_written_twice(tmp_path):
    answer = judged(
        """\
        x = ones([0.3, 0.8])
        y = wp.zeros(2, dtype=float, requires_grad=True, retain_grad=True)
        z = wp.zeros(2, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(scale, dim=2, inputs=[x], outputs=[y])
            wp.launch(scale, dim=2, inputs=[y], outputs=[z])
            wp.launch(scale, dim=2, inputs=[z], outputs=[y])
            wp.launch(loss_of, dim=2, inputs=[y], outputs=[loss])
        tape.backward(loss)
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    (gradient,) = answer.of("x")
    assert (gradient.status, repairing(gradient.repaired_by)) == (FAIL, "retain")
    assert answer.lines(gradient.culprits[0].allocated) == [2]


def test_a_tape_in_every_step_is_repaired_by_chaining_them(tmp_path):
    answer = judged(
        """\
        x = ones([0.3, 0.8])
        state = x
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        for step in range(3):
            after = wp.zeros_like(state)
            tape = wp.Tape()
            with tape:
                wp.launch(swing, dim=2, inputs=[state], outputs=[after])
                wp.launch(loss_of, dim=2, inputs=[after], outputs=[loss])
            state = after
        tape.backward(loss)
        print(x.grad.numpy(), tape.gradients[after].numpy())
        """,
        tmp_path,
    )
    failed = [gradient for gradient in answer.gradients if gradient.status is FAIL]
    assert {repairing(gradient.repaired_by) for gradient in failed} == {"chain"}
    assert {gradient.signature.kind for gradient in failed if gradient.signature} == {SignatureKind.TRUNCATED}
    culprits = [culprit for gradient in failed for culprit in gradient.culprits]
    assert {6, 7} <= {line for culprit in culprits for stack in culprit.tapes for line in answer.lines(stack)}


def test_a_reentered_tape_counts_its_old_launches_again(tmp_path):
    answer = judged(
        """\
        x = ones([0.3, 0.8])
        y = wp.zeros_like(x)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        for epoch in range(3):
            loss.zero_()
            with tape:
                wp.launch(square, dim=2, inputs=[x], outputs=[y])
                wp.launch(loss_of, dim=2, inputs=[y], outputs=[loss])
            tape.backward(loss)
            wp.launch(descend, dim=2, inputs=[x, x.grad])
            tape.zero()
        """,
        tmp_path,
    )
    first, second = answer.of("x")
    assert first.status is PASS
    assert (second.status, repairing(second.repaired_by)) == (FAIL, "once")
    assert second.signature is not None
    assert (second.signature.kind, second.signature.factor) == (SignatureKind.FACTOR, 2.0)


def test_a_gradient_that_is_not_cleared_is_stale(tmp_path):
    answer = judged(
        """\
        x = ones([0.3, 0.8])
        for epoch in range(3):
            y, loss = wp.zeros_like(x), wp.zeros(1, dtype=float, requires_grad=True)
            with wp.Tape() as tape:
                wp.launch(square, dim=2, inputs=[x], outputs=[y])
                wp.launch(loss_of, dim=2, inputs=[y], outputs=[loss])
            tape.backward(loss)
            x.assign(x.numpy() - 0.1 * x.grad.numpy())
        """,
        tmp_path,
    )
    assert answer.status("x") == [PASS, FAIL]
    second = answer.of("x")[1]
    assert repairing(second.repaired_by) == "fresh"
    assert second.signature is not None
    assert second.signature.kind is SignatureKind.GROWING


def test_an_unrecorded_clearing_lets_the_gradient_through(tmp_path):
    answer = judged(
        """\
        x = ones([0.3, 0.8])
        y, z = wp.zeros_like(x), wp.zeros_like(x)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(scale, dim=2, inputs=[x], outputs=[y])
            y.fill_(0.7)
            wp.launch(loss_of_both, dim=2, inputs=[y, x], outputs=[loss])
        tape.backward(loss)
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    (gradient,) = answer.of("x")
    assert (gradient.status, repairing(gradient.repaired_by)) == (FAIL, "cut")
    assert answer.lines(gradient.culprits[0].writer) == [6]


def test_a_launch_outside_the_tape(tmp_path):
    answer = judged(
        """\
        x = ones([0.3, 0.8])
        y, loss = wp.zeros_like(x), wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(square, dim=2, inputs=[x], outputs=[y])
        wp.launch(loss_of, dim=2, inputs=[y], outputs=[loss])
        tape.backward(loss)
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    (gradient,) = answer.of("x")
    assert (gradient.status, repairing(gradient.repaired_by)) == (FAIL, "taped")
    assert answer.lines(gradient.culprits[0].writer) == [5]


def test_a_fault_that_hides_behind_another_is_found_with_it(tmp_path):
    answer = judged(
        """\
        x = ones([0.3, 0.8])
        y = wp.zeros(2, dtype=float)
        total = wp.zeros(2, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(square, dim=2, inputs=[x], outputs=[y])
            wp.launch(accumulate, dim=2, inputs=[x], outputs=[total])
            total.zero_()
            wp.launch(accumulate, dim=2, inputs=[x], outputs=[total])
            wp.launch(loss_of_both, dim=2, inputs=[y, total], outputs=[loss])
        tape.backward(loss)
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    (gradient,) = answer.of("x")
    assert gradient.status is FAIL
    assert repairing(gradient.repaired_by) == "once+gradient"
    assert repairing(gradient.also_repaired_by[0]) == "gradient+cut"
    by_repair = {culprit.repair: culprit for culprit in gradient.culprits}
    assert answer.lines(by_repair[Repair.GRADIENT].allocated) == [2]
    assert answer.lines(by_repair[Repair.ONCE].reader) == [7]
    assert answer.lines(by_repair[Repair.ONCE].writer) == [9]


def test_a_wrong_adjoint_is_repaired_by_nothing_and_shown_alone(tmp_path):
    from warplint.verify.records import KernelCheck

    answer = judged(
        """\
        x = ones([0.3, 0.8, -0.4, 0.0])
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(carry, dim=1, inputs=[x, 3], outputs=[loss])
        tape.backward(loss)
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    (gradient,) = answer.of("x")
    assert (gradient.status, gradient.repaired_by) == (FAIL, (Repair.KERNEL,))
    assert gradient.signature is not None
    assert (gradient.signature.kind, gradient.signature.operation) == (SignatureKind.WRONG_ADJOINT, "carry")
    (check,) = [check for check in answer.result.of(KernelCheck) if check.status is FAIL]
    assert (check.kernel, check.argument) == ("carry", "a")


def test_a_wrong_kernel_does_not_hide_what_was_overwritten(tmp_path):
    answer = judged(
        """\
        x = ones([0.3, 0.8, -0.4, 0.5])
        y = ones([0.0, 0.0, 0.0, 0.0])
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(swing, dim=4, inputs=[x], outputs=[y])
            wp.launch(swing, dim=4, inputs=[y], outputs=[x])
            wp.launch(carry, dim=1, inputs=[x, 3], outputs=[loss])
        tape.backward(loss)
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    (gradient,) = answer.of("x")
    assert (gradient.status, set(gradient.repaired_by)) == (FAIL, {Repair.MEMORY, Repair.KERNEL})
    overwritten = [each for each in gradient.culprits if each.repair is Repair.MEMORY]
    assert {tuple(answer.lines(each.writer)) for each in overwritten} == {(6,)}
    (wrong,) = [each for each in gradient.culprits if each.repair is Repair.KERNEL]
    assert (wrong.reader_kernel, answer.lines(wrong.reader)) == ("carry", [7])


def test_a_kernel_is_checked_through_the_arrays_that_have_a_gradient(tmp_path):
    from warplint.verify.records import KernelCheck

    answer = judged(
        """\
        x, gain = ones([0.3, 0.3, 0.3]), ones([1.3])
        y, most = ones([0.0, 0.0, 0.0]), wp.zeros(1, dtype=float)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(measured, dim=3, inputs=[x, gain], outputs=[y, most])
            wp.launch(loss_of, dim=3, inputs=[y], outputs=[loss])
        tape.backward(loss)
        print(most.numpy(), gain.grad.numpy())
        """,
        tmp_path,
    )
    checks = answer.result.of(KernelCheck)
    assert {check.kernel for check in checks} == {"measured", "loss_of"}
    assert {check.status for check in checks} == {PASS}
    assert [gradient.status for gradient in answer.of("gain")] == [PASS]

"""Host data in the loop, and programs that leave in every way there is."""

import pytest
from engine_runs import judged

from warplint.proof import Repair
from warplint.verify.records import GradientStatus

pytestmark = pytest.mark.warp

PASS, FAIL = GradientStatus.PASS, GradientStatus.FAIL

LOOP = """
def train(epochs=4, each=lambda: None):
    x = ones([0.3, 0.8])
    for epoch in range(epochs):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(loss_of, dim=2, inputs=[x], outputs=[loss])
        tape.backward(loss)
        wp.launch(descend, dim=2, inputs=[x, x.grad])
        tape.zero()
        each()
"""


def test_a_store_through_a_numpy_view_is_an_overwrite(tmp_path):
    answer = judged(
        """\
        x = ones([0.3, 0.8])
        y, loss = wp.zeros_like(x), wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(square, dim=2, inputs=[x], outputs=[y])
            wp.launch(loss_of, dim=2, inputs=[y], outputs=[loss])
            view = y.numpy()
            view[:] = 3.0
            wp.launch(weighted_loss, dim=2, inputs=[y, 0.0], outputs=[loss])
        tape.backward(loss)
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    (gradient,) = answer.of("x")
    assert gradient.status is FAIL
    assert "memory" in "".join(repair.value for repair in gradient.repaired_by)


def test_a_round_trip_through_the_host_is_decided_by_the_program_itself(tmp_path):
    answer = judged(
        """\
        x = ones([0.3, 0.8])
        y, loss = wp.zeros_like(x), wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(square, dim=2, inputs=[x], outputs=[y])
            fresh = wp.array(np.array(y.numpy()) + 1.0, dtype=float, requires_grad=True)
            wp.launch(loss_of, dim=2, inputs=[fresh], outputs=[loss])
        tape.backward(loss)
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    (gradient,) = answer.of("x")
    assert (gradient.status, gradient.method, gradient.ad) == (FAIL, "fork", 0.0)
    assert gradient.fd != 0.0


def test_a_value_from_the_host_in_an_argument_is_one_too(tmp_path):
    answer = judged(
        """\
        x = ones([0.3, 0.8])
        y, loss = wp.zeros_like(x), wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(square, dim=2, inputs=[x], outputs=[y])
            wp.launch(weighted_loss, dim=2, inputs=[y, float(y.numpy()[0])], outputs=[loss])
        tape.backward(loss)
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    (gradient,) = answer.of("x")
    assert (gradient.status, gradient.method) == (FAIL, "fork")


def test_looking_at_values_changes_nothing(tmp_path):
    answer = judged(
        """\
        x = ones([0.3, 0.8])
        y, loss = wp.zeros_like(x), wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(square, dim=2, inputs=[x], outputs=[y])
            print(y.numpy().mean())
            wp.launch(weighted_loss, dim=2, inputs=[y, 0.25], outputs=[loss])
        tape.backward(loss)
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    assert answer.status("x") == [PASS]


def test_what_the_host_writes_where_the_tape_passes_over_is_to_blame(tmp_path):
    answer = judged(
        """\
        x = ones([0.3, 0.8])
        y, loss = wp.zeros_like(x), wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(square, dim=2, inputs=[x], outputs=[y])
            y.assign(np.minimum(y.numpy(), 0.4))
            wp.launch(loss_of, dim=2, inputs=[y], outputs=[loss])
        tape.backward(loss)
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    (gradient,) = answer.of("x")
    assert (gradient.status, gradient.method, gradient.repaired_by) == (FAIL, "fork", (Repair.HOST,))
    (culprit,) = gradient.culprits
    assert answer.lines(culprit.writer)[-1] == answer.lines(gradient.backward[0])[-1] - 2


def test_stores_through_a_view_are_told_number_by_number_where_the_view_was_taken(tmp_path):
    answer = judged(
        """\
        def limit(y):
            view = y.numpy()
            view[1] = np.uint32(0x3F10D70A).view(np.float32)  # bytes in common with 0.64
            view[3] = 0.4

        def main():
            x = ones([0.3, 0.8, 0.4, 0.9])
            y, loss = wp.zeros_like(x), wp.zeros(1, dtype=float, requires_grad=True)
            with wp.Tape() as tape:
                wp.launch(square, dim=4, inputs=[x], outputs=[y])
                limit(y)
                wp.launch(loss_of, dim=4, inputs=[y], outputs=[loss])
            tape.backward(loss)
            print(x.grad.numpy())

        main()
        """,
        tmp_path,
    )
    (gradient,) = answer.of("x")
    assert (gradient.status, gradient.repaired_by) == (FAIL, (Repair.CUT,))
    numpy = [culprit for culprit in gradient.culprits if culprit.writer_kernel == "numpy"]
    assert {culprit.writer[-1][2] for culprit in numpy} == {"limit"}


def test_a_number_that_an_earlier_step_was_given_is_no_data_from_the_host(tmp_path):
    answer = judged(
        """\
        x, h = ones([0.3, 0.8]), ones([1.0, 0.5])
        for step in range(4):
            y, loss = wp.zeros_like(h), wp.zeros(1, dtype=float, requires_grad=True)
            with wp.Tape() as tape:
                wp.launch(driven, dim=2, inputs=[h, x], outputs=[y])
                wp.launch(weighted_loss, dim=2, inputs=[y, 0.7], outputs=[loss])
            tape.backward(loss)
            float(loss.numpy()[0])
            h = y
        print(x.grad.numpy())
        """,
        tmp_path,
    )
    assert len(answer.of("q")) > 1
    assert {(gradient.status, gradient.method) for gradient in answer.of("q")} == {(PASS, "replay")}


def test_the_run_stops_after_two_groups_whatever_the_program_catches(tmp_path):
    answer = judged(
        LOOP
        + """
import atexit
atexit.register(lambda: print("unwound"))
while True:
    try:
        train(100)
    except BaseException:
        pass
""",
        tmp_path,
    )
    assert answer.program.stopped == "horizon"
    assert answer.program.backward_calls == 2
    assert answer.status("x") == [PASS, PASS]
    assert "unwound" not in answer.result.output_tail


@pytest.mark.parametrize(
    ("leave", "stopped"),
    [
        ("sys.exit(3)", "exit 3"),
        ("import os; os._exit(4)", "exit 4"),
        ("raise ValueError('no')", "raised"),
        ("", "end"),
    ],
)
def test_what_was_recorded_is_judged_however_the_program_leaves(leave, stopped, tmp_path):
    answer = judged(f"{LOOP}\ntrain(1)\n{leave}\n", tmp_path)
    assert answer.program.stopped == stopped
    assert answer.status("x") == [PASS]


def test_processes_and_threads_of_the_program_are_left_alone(tmp_path):
    answer = judged(
        LOOP
        + """
import os, threading
wp.init()
def forks():
    process = os.fork()
    if process == 0:
        train(5)
        os._exit(0)
    os.waitpid(process, 0)
worker = threading.Thread(target=lambda: wp.zeros(3), daemon=True)
worker.start()
train(1, forks)
worker.join()
""",
        tmp_path,
    )
    assert answer.program.stopped == "end"
    assert answer.status("x") == [PASS]


def test_a_captured_graph_is_followed_launch_by_launch(tmp_path):
    answer = judged(
        """\
        x = ones([0.3, 0.8])
        y, loss = wp.zeros_like(x), wp.zeros(1, dtype=float, requires_grad=True)
        with wp.ScopedCapture(device="cpu") as capture:
            loss.zero_()
            tape = wp.Tape()
            with tape:
                wp.launch(swing, dim=2, inputs=[x], outputs=[y])
                wp.launch(loss_of, dim=2, inputs=[y], outputs=[loss])
            tape.backward(loss)
        for epoch in range(4):
            wp.capture_launch(capture.graph)
            wp.launch(descend, dim=2, inputs=[x, x.grad])
            tape.zero()
        """,
        tmp_path,
    )
    assert answer.status("x") == [PASS, PASS]
    assert answer.program.backward_calls == 2


def test_a_program_without_backward_is_not_silently_empty(tmp_path):
    answer = judged("x = ones([1.0])\n", tmp_path)
    assert answer.gradients == ()
    assert answer.program.reason == "no backward call was recorded"

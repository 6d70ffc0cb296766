"""Programs of Warp's against a limit on memory: what ends them is told, and what came before is judged."""

import sys

import pytest
from engine_runs import judged

from warplint.verify.records import GradientStatus, Note

pytestmark = [
    pytest.mark.warp,
    pytest.mark.skipif(sys.platform != "linux", reason="the system's bound on a process's own memory is Linux's"),
]

HALF = 1 << 29


def test_an_ordinary_program_and_its_judging_fit_into_little_memory(tmp_path):
    answer = judged(
        """\
        x = ones([0.3, 0.8])
        loss = ones([0.0])
        with wp.Tape() as tape:
            wp.launch(loss_of, dim=2, inputs=[x], outputs=[loss])
        tape.backward(loss)
        print(x.grad.numpy())
        """,
        tmp_path,
        memory=HALF // 2,
    )
    assert (answer.result.problem, answer.status("x")) == (None, [GradientStatus.PASS])


def test_what_was_computed_before_the_memory_ran_out_is_judged(tmp_path):
    answer = judged(
        """\
        x = ones([0.3, 0.8])
        loss = ones([0.0])
        with wp.Tape() as tape:
            wp.launch(loss_of, dim=2, inputs=[x], outputs=[loss])
        tape.backward(loss)
        print(x.grad.numpy())
        hold = []
        while True:
            hold.append(np.ones(1 << 22))
        """,
        tmp_path,
        memory=HALF,
    )
    problem = answer.result.problem or ""
    assert problem.startswith("ran into its memory limit of 0.5 GB: ")
    assert "Unable to allocate" in problem
    assert answer.status("x") == [GradientStatus.PASS]


def test_arrays_that_do_not_fit_are_no_growth_of_the_record(tmp_path):
    answer = judged(
        """\
        x = ones([0.3, 0.8])
        loss = ones([0.0])
        with wp.Tape() as tape:
            wp.launch(loss_of, dim=2, inputs=[x], outputs=[loss])
        tape.backward(loss)
        print(x.grad.numpy())
        hold = [wp.zeros(1 << 24, dtype=float) for _ in range(40)]
        """,
        tmp_path,
        memory=HALF,
    )
    assert (answer.result.problem or "").startswith("ran into its memory limit of 0.5 GB: RuntimeError: Failed")
    assert answer.status("x") == [GradientStatus.PASS]


def test_a_long_run_is_judged_part_by_part_within_little_memory(tmp_path):
    answer = judged(
        """\
        n = 1 << 18
        x = wp.full(n, 0.3, dtype=float, requires_grad=True)
        for _ in range(12):
            between = wp.zeros(n, dtype=float, requires_grad=True)
            after = wp.zeros(n, dtype=float, requires_grad=True)
            loss = ones([0.0])
            with wp.Tape() as tape:
                wp.launch(swing, dim=n, inputs=[x], outputs=[between])
                wp.launch(scale, dim=n, inputs=[between], outputs=[after])
                wp.launch(loss_of, dim=64, inputs=[after], outputs=[loss])
            tape.backward(loss)
            wp.launch(descend, dim=n, inputs=[x, x.grad])
            tape.zero()
        """,
        tmp_path,
        memory=HALF // 2,
        iterations=12,
    )
    assert answer.result.problem is None
    judgements = sorted((each.window, each.group, each.status) for each in answer.of("x"))
    assert [status for _, _, status in judgements] == [GradientStatus.PASS] * 12
    assert len({window for window, _, _ in judgements}) > 1
    (told,) = [note.text for note in answer.result.of(Note) if "let go" in note.text and "judged" in note.text]
    assert told.startswith("to keep the record within 64 MB it was judged and let go")

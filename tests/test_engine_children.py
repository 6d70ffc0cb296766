"""Processes that a program starts: those that compute gradients are programs of their own."""

from __future__ import annotations

import os

import pytest
from engine_runs import Answer, judged

from warplint.runner.result import RunResult
from warplint.verify.child_processes import judged_children, unjudged_children
from warplint.verify.records import ChildSeen, Gradient, GradientStatus

pytestmark = [pytest.mark.warp, pytest.mark.skipif(not hasattr(os, "fork"), reason="it needs fork")]

PASS, FAIL = GradientStatus.PASS, GradientStatus.FAIL

WORK = """\
import multiprocessing, os, subprocess, time

def work(scale):
    x = ones([0.3, scale])
    y = wp.zeros(2, dtype=float, requires_grad=scale != 0.5)
    loss = ones([0.0])
    with wp.Tape() as tape:
        wp.launch(square, dim=2, inputs=[x], outputs=[y])
        wp.launch(loss_of, dim=2, inputs=[y], outputs=[loss])
    tape.backward(loss)
    return float(x.grad.numpy().sum())

if __name__ == "__main__" and sys.argv[1:] != ["alone"]:
"""


def statuses(child: RunResult) -> list[GradientStatus]:
    """The judgements of one process."""
    return [gradient.status for gradient in child.of(Gradient)]


def children(answer: Answer) -> list[RunResult]:
    """The processes that were judged, in no order."""
    return list(judged_children(answer.result))


def test_forked_processes_are_judged_each_by_itself(tmp_path):
    answer = judged(
        WORK
        + """\
    for scale in (0.5, 0.8):
        process = os.fork()
        if process == 0:
            work(scale)
            sys.exit(0)
        os.waitpid(process, 0)
    work(0.9)
""",
        tmp_path,
    )
    assert answer.result.problem is None
    assert answer.program.backward_calls == 1
    assert answer.status("x") == [PASS]
    assert sorted(map(statuses, children(answer))) == [[FAIL], [PASS]]
    assert {line for child in children(answer) for seen in child.of(ChildSeen) for line in answer.lines(seen.at)} == {
        15
    }
    assert all("(forked at " in child.command for child in children(answer))


def test_workers_of_a_pool_are_judged_and_the_pool_gets_its_results(tmp_path):
    answer = judged(
        WORK
        + """\
    with multiprocessing.get_context("fork").Pool(1) as pool:
        print(len(pool.map(work, [0.5, 0.7, 0.8, 0.9])), "results")
""",
        tmp_path,
    )
    assert answer.result.output_tail.endswith("4 results\n")
    (worker,) = children(answer)
    # two iterations are enough; then it works on unwatched
    assert statuses(worker) == [FAIL, PASS]


def test_python_that_the_program_starts_is_judged(tmp_path):
    answer = judged(
        WORK
        + """\
    subprocess.run([sys.executable, __file__, "alone"], check=True)
elif __name__ == "__main__":
    work(0.5)
""",
        tmp_path,
    )
    assert answer.program.backward_calls == 0
    (started,) = children(answer)
    assert statuses(started) == [FAIL]


def test_a_process_that_is_killed_is_counted(tmp_path):
    answer = judged(
        WORK
        + """\
    process = os.fork()
    if process == 0:
        work(0.8)
        os.write(1, b"computed")
        os.kill(os.getpid(), 9)
    os.waitpid(process, 0)
    if os.fork() == 0:
        os._exit(0)
    os.wait()
""",
        tmp_path,
    )
    assert children(answer) == []
    assert unjudged_children(answer.result) == [
        "1 process that it started computed gradients that were not judged: ended before"
    ]

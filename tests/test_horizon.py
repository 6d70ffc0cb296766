"""How far a program is run: so many iterations as are asked for, and what is said of the rest."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from warplint import cli
from warplint.config import VerifySettings
from warplint.runner.protocol import ITERATIONS
from warplint.verify.engine.execution.log import Log
from warplint.verify.engine.execution.memory import Checkpoints, MemoryTable
from warplint.verify.engine.recording.horizon import Budget, Horizon

FIVE = """\
import warp as wp
import numpy as np

@wp.kernel
def square(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    wp.atomic_add(loss, 0, x[wp.tid()] * x[wp.tid()])

x = wp.array([0.5, 1.5], dtype=float, requires_grad=True)
y = wp.zeros(2, dtype=float, requires_grad=True)
total = np.zeros(2)
for step in range(5):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.copy(y, x)
        wp.launch(square, dim=2, inputs=[y, loss])
    tape.backward(loss)
    total += x.grad.numpy()
    tape.zero()
"""


def rounds_until_stopped(iterations: int, used: bool) -> tuple[int, str]:
    """How many backward calls of one ``with tape`` there are before the horizon stops, and what it says."""
    stopped: list[str] = []
    horizon = Horizon(Budget(), stopped.append, iterations)
    log = Log()
    for done in range(100):
        horizon.entering(log, "site")
        if stopped:
            return done, horizon.seen
        horizon.backward_done()
        if used:
            horizon.gradient_used()
    raise AssertionError("it never stopped")


def test_it_stops_after_the_iterations_that_are_asked_for():
    assert rounds_until_stopped(1, used=True) == (1, "1 iteration")
    assert rounds_until_stopped(2, used=True) == (2, "2 iterations")
    assert rounds_until_stopped(5, used=True) == (5, "5 iterations")


def test_backward_calls_that_nobody_uses_are_no_iterations():
    assert rounds_until_stopped(2, used=False) == (8, "8 backward calls whose gradients nothing used")
    assert rounds_until_stopped(3, used=False)[0] == 12


def test_an_iteration_may_have_as_many_backward_calls_as_the_horizon_says():
    stopped: list[str] = []
    horizon = Horizon(Budget(), stopped.append, 2, unfinished=20)
    log = Log()
    for _ in range(20):
        horizon.entering(log, "site")
        horizon.backward_done()
    assert not stopped
    horizon.entering(log, "site")
    assert (stopped, horizon.more) == (["horizon"], "--horizon")


def test_thinned_checkpoints_keep_the_earlier_contents_of_each_memory():
    table, checkpoints = MemoryTable(), Checkpoints()
    buffers = [np.zeros(4, dtype=np.uint8) for _ in range(2)]
    one, other = (table.add(int(buffer.ctypes.data), 4) for buffer in buffers)
    for epoch in range(4):
        if epoch:
            checkpoints.begin(10 * epoch)
        for memory in (one, other) if epoch % 2 else (one,):
            checkpoints.save(memory)
            memory.write(np.full(4, 10 * epoch + 1, dtype=np.uint8))
    assert checkpoints.thin(table.all)
    assert (checkpoints.starts, checkpoints.size) == ([0, 20], 16)
    assert one.epoch == other.epoch == checkpoints.current == 1
    checkpoints.restore(checkpoints.at(35))
    assert [buffer[0] for buffer in buffers] == [11, 11]
    checkpoints.restore(checkpoints.at(15))
    assert [buffer[0] for buffer in buffers] == [0, 0]
    assert not checkpoints.thin(table.all)


def test_the_setting_has_the_default_of_the_request():
    assert VerifySettings().iterations == ITERATIONS


@pytest.mark.warp
def test_a_longer_program_says_where_it_was_stopped(tmp_path: Path, monkeypatch, capsys):
    pytest.importorskip("warp")
    monkeypatch.chdir(tmp_path)
    Path("five.py").write_text(FIVE)
    words = ["--verify", "--device", "cpu", "--python", sys.executable, "five.py"]

    def program(*more: str) -> dict[str, object]:
        cli.main([*words, "--format", "json", *more])
        (ran,) = json.loads(capsys.readouterr().out)["programs"]
        return {key: ran[key] for key in ("backward_calls", "launches", "stopped", "problem")}

    def expected(calls: int, stopped: str) -> dict[str, object]:
        return {"backward_calls": calls, "launches": calls, "stopped": stopped, "problem": ""}  # a copy is no launch

    assert program() == expected(2, "after 2 iterations")
    assert program("--iterations", "4") == expected(4, "after 4 iterations")
    assert program("--iterations", "9") == expected(5, "")
    cli.main(words)
    assert "  stopped after 2 iterations; --iterations N looks at more\n" in capsys.readouterr().out

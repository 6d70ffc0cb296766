"""The engine answers for itself: what it records, run again, comes out bit for bit."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from engine_runs import PRELUDE

pytestmark = pytest.mark.warp

ROOT = Path(__file__).resolve().parent.parent

HARNESS = f"""\
import sys
sys.path[:0] = [{str(ROOT)!r}]
from warplint.verify.engine.recording.horizon import Budget, Horizon
from warplint.verify.engine.execution.log import Log
from warplint.verify.engine.recording.recorder import Recorder
from warplint.verify.engine.replaying.replay import Machine
from warplint.verify.engine.replaying.survey import Survey
from warplint.verify.engine.warp_hooks import Hooks
hooks = Hooks()
log = Log()
recorder = Recorder(log, Horizon(Budget(), lambda reason: None))
hooks.observer = recorder
hooks.on_import()
"""


def in_process(source: str, folder: Path) -> str:
    """The output of a program that runs parts of the engine itself."""
    path = folder / "harness.py"
    path.write_text(HARNESS + PRELUDE + textwrap.dedent(source))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_self_test_passes_here_and_notices_a_replay_that_differs(tmp_path):
    output = in_process(
        """\
        from warplint.verify.engine import self_test, warp_values
        self_test.run(hooks)
        print("passed")
        warp_values.Packed.__call__ = lambda self: None
        try:
            self_test.run(hooks)
        except warp_values.Unsupported as error:
            print("refused:", error)
        """,
        tmp_path,
    )
    assert "passed" in output
    assert "refused: running recorded operations again does not give the same bytes" in output


def test_every_kind_of_operation_is_run_again_bit_for_bit(tmp_path):
    output = in_process(
        """\
        from warplint.verify.engine.execution.operations import HostWrite, KernelCall, NativeCall
        x = ones(np.linspace(-1.0, 1.0, 8))
        y = wp.zeros_like(x)
        strided = wp.zeros((8, 2), dtype=float)
        wp.copy(strided[:, 1], x)
        strided[:, 0].fill_(0.25)
        keys, values = wp.array([3, 1, 2, 0], dtype=int), wp.array([0, 1, 2, 3], dtype=int)
        padded = wp.zeros(8, dtype=int), wp.zeros(8, dtype=int)
        wp.copy(padded[0], keys, count=4)
        wp.copy(padded[1], values, count=4)
        wp.utils.radix_sort_pairs(padded[0], padded[1], 4)
        sums = wp.zeros(8, dtype=float)
        wp.utils.array_scan(x, sums)
        total = wp.utils.array_sum(x)
        view = y.numpy()
        view[2:4] = 7.0
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(swing, dim=8, inputs=[x], outputs=[y])
            wp.launch(loss_of, dim=8, inputs=[y], outputs=[loss])
        tape.backward(loss)
        command = wp.launch(square, dim=8, inputs=[x], outputs=[y], record_cmd=True)
        command.launch()
        temporary = wp.clone(y)
        del temporary, command
        hooks.observer = None
        survey = Survey(Machine(log))
        survey.run()
        kinds = {type(operation).__name__ for operation in log.operations}
        names = {operation.name for operation in log.operations if isinstance(operation, NativeCall)}
        print(recorder.error, survey.exact, survey.inexact)
        print(sorted(names))
        print({"KernelCall", "NativeCall", "HostWrite", "HostRead"} <= kinds)
        """,
        tmp_path,
    )
    lines = output.strip().splitlines()
    assert "None True set()" in lines
    assert "True" in lines
    named = next(line for line in lines if line.startswith("["))
    for native in ("wp_array_copy_host", "wp_array_fill_host", "wp_array_scan_float_host", "wp_memset_host"):
        assert native in named


def test_what_kernels_do_with_their_arrays_is_found_by_running_them(tmp_path):
    output = in_process(
        """\
        x = ones([0.3, 0.8])
        y, z, loss = wp.zeros_like(x), wp.zeros_like(x), wp.zeros(1, dtype=float)
        wp.launch(square, dim=2, inputs=[x], outputs=[y])
        wp.launch(accumulate, dim=2, inputs=[x], outputs=[z])
        wp.launch(in_place, dim=2, inputs=[y])
        wp.launch(descend, dim=2, inputs=[x, z])
        hooks.observer = None
        survey = Survey(Machine(log))
        survey.run()
        for call in [o for o in log.operations if hasattr(o, "kernel")]:
            for slot in call.layout.slots:
                access = survey.accesses.of(call, slot)
                print(call.name, slot.path, *(w for w in ("reads", "writes", "adds") if getattr(access, w)))
        """,
        tmp_path,
    )
    found = {tuple(line.split()[:2]): line.split()[2:] for line in output.splitlines() if len(line.split()) > 1}
    assert found["square", "a"] == ["reads"]
    assert found["square", "b"] == ["writes"]
    assert found["accumulate", "total"] == ["writes", "adds"]
    assert found["in_place", "a"] == ["reads", "writes"]
    assert found["descend", "gradient"] == ["reads"]

"""``--keep``: scripts that measure the gradients of a run again, without warplint."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from warplint import cli

pytestmark = pytest.mark.warp

PROGRAM = """\
import sys

import numpy as np
import warp as wp
from mutation_kernels import conduct, descend, misfit


def made(values):
    return wp.array(values, dtype=float, requires_grad=True)


other = made(np.ones(8))
p = made(np.linspace(0.5, 1.5, 8))
first = made(np.sin(np.arange(8)) + 1.0)
target = wp.array(np.linspace(0.2, 0.9, 8), dtype=float)
for _ in range(int(sys.argv[1])):
    a, b = first, wp.zeros(8, dtype=float, requires_grad=True)
    third = wp.zeros(8, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(conduct, dim=8, inputs=[a, p, 0.2], outputs=[b])
        wp.launch(conduct, dim=8, inputs=[b, p, 0.2], outputs=[third if len(sys.argv) > 2 else a])
        wp.launch(misfit, dim=8, inputs=[third if len(sys.argv) > 2 else a, target], outputs=[loss])
    tape.backward(loss)
    print(p.grad.numpy())
    wp.launch(descend, dim=8, inputs=[p, p.grad, 0.05])
    tape.zero()
"""

SLOPES = re.compile(r"the tape's slope (\S+), by differences (\S+)")


@pytest.fixture
def kept(tmp_path, monkeypatch, capsys):
    """Verifies the program with these words, and returns what each script that it kept prints, by name."""
    kernels = Path(__file__).parent / "mutation" / "programs" / "mutation_kernels.py"
    (tmp_path / "mutation_kernels.py").write_text(kernels.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "rod.py").write_text(PROGRAM, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> dict[str, tuple[float, float]]:
        cli.main(["gradcheck", "--keep", "kept", "--", sys.executable, "rod.py", *words])
        assert "for measuring again written to kept" in capsys.readouterr().out
        told = {}
        for script in sorted(Path("kept").glob("*.py")):
            assert "warplint." not in script.read_text(encoding="utf-8").replace("without warplint", "")
            done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
            match = SLOPES.search(done.stdout)
            assert match is not None, done.stdout
            told[script.stem] = (float(match[1]), float(match[2]))
        return told

    return run


def test_a_wrong_gradient_is_measured_again_as_wrong(kept) -> None:
    told = kept("1")
    assert "01_p_fail" in told
    tape, difference = told["01_p_fail"]
    assert abs(tape - difference) > 0.05 * abs(difference)


def test_right_gradients_of_two_iterations_are_measured_again_as_right(kept) -> None:
    told = kept("2", "right")
    assert [name.partition("_")[2] for name in told].count("p_pass") == 2
    for tape, difference in told.values():
        assert tape == pytest.approx(difference, rel=0.02)
    of_p = [slopes for name, slopes in told.items() if "_p_" in name]
    assert of_p[0] != of_p[1]

"""What nobody reads is not looked for, and that changes nothing of what is read."""

from __future__ import annotations

from pathlib import Path

from warplint.config import Settings
from warplint.finding import Severity
from warplint.lint import lint

PROGRAM = """import warp as wp


@wp.kernel
def scale(y: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    y[i] *= z[i]{comment}


a = wp.zeros(3, dtype=float)
b = wp.ones(3, dtype=float)
wp.launch(scale, dim=3, inputs=[a, b])
wp.config.fast_math = True
"""


def told(folder: Path, lowest: Severity, comment: str = "") -> set[tuple[str, Severity]]:
    file = folder / "program.py"
    file.write_text(PROGRAM.format(comment=comment))
    return {(each.code, each.severity) for each in lint([str(file)], Settings(folder), lowest=lowest).findings}


def test_information_about_kernels_is_looked_for_where_it_is_read(tmp_path: Path) -> None:
    everything, warnings = told(tmp_path, Severity.INFO), told(tmp_path, Severity.WARNING)
    assert ("NVW201", Severity.INFO) in everything
    assert ("NVW201", Severity.INFO) not in warnings
    assert {each for each in everything if each[1] is Severity.WARNING} == {
        each for each in warnings if each[1] is Severity.WARNING
    }


def test_a_comment_that_silences_information_is_in_use(tmp_path: Path) -> None:
    for comment in ("  # noqa: NVW201", "  # warplint: ignore[NVW201] z is constant"):
        assert "NVW901" not in {code for code, _ in told(tmp_path, Severity.WARNING, comment)}

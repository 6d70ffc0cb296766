"""What a start may import: to import all that there is takes longer than many runs, and no run needs all of it.

No time is measured here; a module that a start has no use for is what makes it longer unseen.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.installed import ROOT, environment

TRAINING = ROOT / "tests" / "bench" / "training_program.py"
SHORT = ("--iterations", "1", "--steps", "3", "--size", "10")

SLOW = ("asyncio", "concurrent", "difflib", "http", "libcst", "pathspec", "pygments", "unittest", "uuid", "xml")
"""What is imported where it is needed, outside this project."""
RUNNING = ("warplint.builds", "warplint.fix", "warplint.report", "warplint.runner", "warplint.verify")
INTERPRETING = ("warplint.trace.interpreter", "warplint.trace.host.machine", "warplint.trace.host.warp_api")
RULES = ("warplint_rules", "warplint.lint", "warplint.trace.dataflow", "warplint.trace.flow")
ANALYSIS = ("warplint.kernels.analysis", "warplint.kernels.statements", "warplint.kernels.execution")

WATCHING = frozenset(
    {
        *("warplint", "warplint.dataclass", "warplint.garbage", "warplint.proof"),
        *(f"warplint.runner{part}" for part in ("", ".entry", ".memory_limit", ".overlay", ".protocol")),
        *(f"warplint.verify{part}" for part in ("", ".build_records", ".records", ".signatures")),
    }
)
"""What the process of the user's program imports of ours, besides the engine."""
SELDOM_ASKED = tuple(
    f"warplint.verify.engine.{name}"
    for name in ("judging.adjoint_check", "judging.in_double", "kernels.function_check", "kernels.in_double")
)

BUILDS_ALONE = 'import warp as wp\n\nwp.config.mode = "debug"\n'
NOTHING_TO_RUN = "import warp as wp\n\n\ndef size(a: wp.array) -> int:\n    return a.shape[0]\n"


def imported(code: str, variables: Mapping[str, str], folder: Path, words: Sequence[str] = ()) -> set[str]:
    """The modules that a process holds at its end."""
    seen = folder / "modules.txt"
    told = f"import atexit, sys\natexit.register(lambda: open({str(seen)!r}, 'w').write('\\n'.join(sys.modules)))\n"
    command = [sys.executable, "-c", told + code, *words]
    subprocess.run(command, env=dict(variables), cwd=folder, capture_output=True, text=True, check=True)
    return set(seen.read_text().split())


def among(names: set[str], rooms: Sequence[str]) -> list[str]:
    """Those of the modules that lie in one of the rooms."""
    return sorted(name for name in names if any(name == room or name.startswith(f"{room}.") for room in rooms))


@pytest.fixture
def flake8(tmp_path: Path):
    """flake8 on a file with a text, in one process; gives the modules of that process."""
    variables = {**environment(tmp_path / "metadata"), "WARPLINT_CACHE_DIR": str(tmp_path / "cache")}

    def run(text: str) -> set[str]:
        (tmp_path / "a.py").write_text(text, encoding="utf-8")
        words = ["--isolated", "--exit-zero", "--jobs", "1", "--select", "NVW", "a.py"]
        return imported("from flake8.main.cli import main\nmain(sys.argv[1:])\n", variables, tmp_path, words)

    return run


def test_flake8_on_a_file_that_runs_nothing_imports_no_rule(flake8) -> None:
    assert among(flake8(NOTHING_TO_RUN), (*SLOW, *RUNNING, *INTERPRETING, *RULES, *ANALYSIS)) == []


def test_flake8_on_a_file_without_kernels_imports_no_analysis_of_kernels(flake8) -> None:
    names = flake8(BUILDS_ALONE)
    assert among(names, INTERPRETING[:1]) == ["warplint.trace.interpreter"]
    assert among(names, (*SLOW, *RUNNING, *ANALYSIS)) == []


def test_flake8_with_an_answer_at_hand_imports_no_rule(flake8) -> None:
    flake8(BUILDS_ALONE)
    assert among(flake8(BUILDS_ALONE), (*RUNNING, *INTERPRETING, *RULES, *ANALYSIS)) == []


def test_a_check_without_a_run_imports_nothing_that_runs_programs(tmp_path) -> None:
    (tmp_path / "a.py").write_text(BUILDS_ALONE, encoding="utf-8")
    code = "from warplint.cli import main\nmain(sys.argv[1:])\n"
    names = imported(code, environment(tmp_path / "metadata"), tmp_path, ["--no-cache", "--exit-zero", "a.py"])
    rooms = (*SLOW, "numpy", "warp", "warplint.builds", "warplint.runner", "warplint.verify", *ANALYSIS)
    assert among(names, rooms) == []


@pytest.mark.warp
def test_gradcheck_imports_neither_the_interpreter_nor_what_counts_builds(tmp_path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import atexit, runpy, sys\n"
        f"atexit.register(lambda: open({str(tmp_path / 'program.txt')!r}, 'w').write('\\n'.join(sys.modules)))\n"
        f"sys.argv = [{str(TRAINING)!r}, *{SHORT!r}]\n"
        f"runpy.run_path({str(TRAINING)!r}, run_name='__main__')\n",
        encoding="utf-8",
    )
    code = "from warplint.cli import main\nmain(sys.argv[1:])\n"
    words = ["gradcheck", "--format", "json", "--", sys.executable, str(program)]
    names = imported(code, {**environment(tmp_path / "metadata"), "OMP_NUM_THREADS": "1"}, tmp_path, words)
    assert among(names, (*SLOW, "numpy", "warp", "warplint.builds", "warplint.fix", *INTERPRETING)) == []
    assert among(names, ("warplint.trace.dataflow", "warplint.kernels.analysis")) != []

    in_the_program = set((tmp_path / "program.txt").read_text().split())
    assert "warplint.verify.engine.child" in in_the_program
    assert among(in_the_program, SELDOM_ASKED) == []
    engine = among(in_the_program, ("warplint.verify.engine",))
    assert set(among(in_the_program, ("warplint", "warplint_rules"))) - set(engine) == WATCHING

"""The fixtures about kernels as modules whose program is never run: the kernels alone prove the findings."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "fixtures"
ABOUT_KERNELS = (
    "inplace-mul",
    "component-reassign",
    "dynamic-loop",
    "where-nan",
    "func-grad-assign",
    "native-without-adjoint",
    "replay-side-effect",
    "shared-write",
    "nondifferentiable-op",
)
EXPECT = re.compile(r"#\s*expect:\s*(NVW2\d\d) confirmed")
DECLARATIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)


def lone(source: str) -> str:
    """The module with all that it does moved into a function that nothing calls."""
    lines, kept, moved = source.splitlines(), [], []
    for statement in ast.parse(source).body:
        (kept if _declares(statement) else moved).append(statement)

    def text(statement: ast.stmt, indent: str = "") -> str:
        first = min([statement.lineno, *(mark.lineno for mark in getattr(statement, "decorator_list", []))])
        return "\n".join(indent + line for line in lines[first - 1 : statement.end_lineno])

    body = [text(statement, "    ") for statement in moved]
    return "\n\n\n".join([*map(text, kept), "\n".join(["def program():", *body, ""])])


def _declares(statement: ast.stmt) -> bool:
    """Imports, definitions, constants and options, which the kernels need."""
    if isinstance(statement, DECLARATIONS):
        return True
    calls = [ast.unparse(node.func) for node in ast.walk(statement) if isinstance(node, ast.Call)]
    if calls == ["wp.set_module_options"]:
        return True
    constant = isinstance(statement, ast.Assign) and set(calls) <= {"wp.constant"}
    return constant or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))


PROGRAMS = [path for rule in ABOUT_KERNELS for path in sorted((FIXTURES / rule).glob("bad_*.py"))]


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int, str], dict]:
    """All of them in one run of the real command: the findings by file, line and code."""
    folder = tmp_path_factory.mktemp("alone")
    for path in PROGRAMS:
        (folder / f"{path.parent.name.replace('-', '_')}_{path.name}").write_text(lone(path.read_text()))
    settings = folder / "pyproject.toml"
    settings.write_text("[tool.warplint.verify]\ntime-limit = 1500\n")
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(ROOT), str(ROOT / "rules")]), OMP_NUM_THREADS="1")
    done = subprocess.run(
        [sys.executable, "-m", "warplint", "check", "--format", "json", "--verify", "."],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
    )
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)["findings"]
    return {(finding["path"], finding["line"], finding["code"]): finding for finding in found}


@pytest.mark.warp
@pytest.mark.slow
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_kernel_that_no_program_runs_proves_the_finding(
    path: Path, verified: dict[tuple[str, int, str], dict]
) -> None:
    name = f"{path.parent.name.replace('-', '_')}_{path.name}"
    expected = [
        (name, number, match[1])
        for number, line in enumerate(lone(path.read_text()).splitlines(), 1)
        if (match := EXPECT.search(line))
    ]
    assert expected
    for place in expected:
        verdict = verified[place]["verdict"]
        assert verdict["status"] == "confirmed", verdict
        assert verdict["reason"].startswith("no run reached it; alone")
        assert verdict["figures"]["argument"]

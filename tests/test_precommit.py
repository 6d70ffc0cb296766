"""The hooks in a real pre-commit on a real repository: installed from this project, run on staged files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from installed import copy_of_the_project, environment

pytest.importorskip("pre_commit")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("git") is None, reason="needs git")]

INPLACE = (Path(__file__).parent.parent / "fixtures" / "inplace-mul" / "bad_softmax_normaliser.py").read_text()


class Repository:
    """A git repository whose pre-commit takes the hooks from a copy of this project."""

    def __init__(self, folder: Path, project: Path, cache: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "PRE_COMMIT_HOME": str(cache),
            "GIT_CONFIG_GLOBAL": os.devnull,
            **{
                f"GIT_{who}_{what}": "tests@example.org"
                for who in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")
            },
        }
        for name in ("PYTHONPATH", "GIT_DIR", "GIT_INDEX_FILE"):
            self.environment.pop(name, None)
        self.git("init", "--quiet", ".")
        revision = self._commit_project(project)
        (folder / ".pre-commit-config.yaml").write_text(
            f"repos:\n  - repo: {project}\n    rev: {revision}\n    hooks:\n"
            "      - id: warplint\n      - id: warplint-verify\n"
        )
        self.git("add", ".")

    def _commit_project(self, project: Path) -> str:
        self.git("init", "--quiet", ".", cwd=project)
        self.git("add", "--all", cwd=project)
        self.git("commit", "--quiet", "--message", "state", cwd=project)
        return self.git("rev-parse", "HEAD", cwd=project).strip()

    def git(self, *words: str, cwd: Path | None = None) -> str:
        command = ["git", *words]
        return subprocess.run(
            command, cwd=cwd or self.folder, env=self.environment, capture_output=True, text=True, check=True
        ).stdout

    def write(self, name: str, text: str) -> None:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text)
        self.git("add", name)

    def run(self, *words: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "pre_commit", "run", "--color", "never", *words]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        return done.returncode, done.stdout


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> Repository:
    folder = tmp_path_factory.mktemp("repository")
    project = copy_of_the_project(tmp_path_factory.mktemp("project"))
    return Repository(folder, project, tmp_path_factory.mktemp("cache"))


def test_a_staged_fault_fails_the_commit_and_its_repair_passes(repository: Repository) -> None:
    repository.write("clean.py", "x = 1\n")
    status, output = repository.run("warplint")
    assert status == 0, output
    repository.write("train.py", INPLACE)
    status, output = repository.run("warplint")
    assert status == 1, output
    assert "warning[NVW201] inplace-mul" in output
    repository.write("pyproject.toml", '[tool.warplint]\nextend-exclude = ["train.py"]\n')
    status, output = repository.run("warplint", "--all-files")
    assert status == 0, output


@pytest.mark.warp
def test_the_verifying_hook_runs_the_program_of_the_users_interpreter(repository: Repository) -> None:
    pytest.importorskip("warp")
    python = Path(sys.executable).as_posix()
    repository.write("pyproject.toml", f'[tool.warplint.verify]\npython = "{python}"\ndevice = "cpu"\n')
    repository.write("train.py", INPLACE)
    status, output = repository.run("--hook-stage", "manual", "warplint-verify", "--files", "train.py")
    assert status == 1, output
    assert "confirmed by" in output


README = Path(__file__).parent.parent / "README.md"


def test_the_configuration_in_the_readme_works_as_it_stands(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "warplint"
    script.write_text(f"#!{sys.executable}\nimport sys\nfrom warplint.cli import main\nsys.exit(main())\n")
    script.chmod(0o755)
    (tmp_path / "work").mkdir()
    repository = Repository(tmp_path / "work", copy_of_the_project(tmp_path / "project"), tmp_path / "cache")
    repository.environment |= environment(tmp_path / "installed")
    repository.environment["PATH"] = os.pathsep.join((str(script.parent), os.environ["PATH"]))
    (snippet,) = re.findall(r"```yaml\n(repos:\n.*?)```", README.read_text(), re.DOTALL)
    repository.write(".pre-commit-config.yaml", snippet)
    repository.write("train.py", INPLACE)
    status, output = repository.run("warplint")
    assert status == 1, output
    assert "warning[NVW201] inplace-mul" in output
    status, output = repository.run("--hook-stage", "manual", "warplint-verify", "--files", "train.py")
    assert status == 1, output
    assert "confirmed by" in output

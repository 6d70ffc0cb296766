"""What a kept result rests on beyond the imports: it is forgotten when a question that was asked has another answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from warplint.cache import Cache
from warplint.config import Settings
from warplint.flake8_file import found
from warplint.lint import LintResult, lint
from warplint.source import SourceFile

KERNEL = """\
import warp as wp


@wp.kernel
def shade(img: wp.array(dtype=float)):
    i = wp.tid()
    img[i] = float(i)


"""
SCRIPT = KERNEL + "wp.launch(shade, dim=8, inputs=[wp.zeros(8, dtype=float)])\n"
TRIED_OUT = KERNEL + 'if __name__ == "__main__":\n    wp.launch(shade, dim=8, inputs=[wp.zeros(8, dtype=float)])\n'


@pytest.fixture
def linted(tmp_path, monkeypatch):
    """Lints one file of the working directory with the rules that are installed, and a cache."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)

    def run(path: str) -> LintResult:
        return lint([path], Settings(work), cache=Cache(tmp_path / "cache", "same"))

    return run


def codes(result: LintResult) -> list[str]:
    return [finding.code for finding in result.findings]


def test_an_importer_that_comes_and_goes_beside_an_unchanged_file(linted) -> None:
    Path("shade.py").write_text(TRIED_OUT)
    assert [codes(linted("shade.py")), codes(linted("shade.py"))] == [["NVW307"], ["NVW307"]]
    Path("train.py").write_text("import shade\n")
    assert [codes(linted("shade.py")), codes(linted("shade.py"))] == [[], []]
    Path("train.py").write_text("# shade\n")
    assert codes(linted("shade.py")) == ["NVW307"]


def test_a_submodule_that_is_reached_as_an_attribute_alone(linted) -> None:
    Path("solver").mkdir()
    Path("solver/__init__.py").write_text("def __getattr__(name): ...\n")
    switch = "import warp as wp\n\n\ndef prepare():\n    wp.config.{option} = False\n"
    Path("run.py").write_text(SCRIPT.replace("wp.launch", "import solver\n\nsolver.options.prepare()\nwp.launch"))
    assert codes(linted("run.py")) == ["NVW307"]
    Path("solver/options.py").write_text(switch.format(option="enable_backward"))
    assert [codes(linted("run.py")), codes(linted("run.py"))] == [["NVW301"], ["NVW301"]]
    Path("solver/options.py").write_text(switch.format(option="verify_cuda"))
    assert codes(linted("run.py")) == ["NVW307"]


def test_flake8_takes_a_file_that_asks_how_it_was_started_for_one_that_others_may_import(linted) -> None:
    def told(text: str) -> list[str]:
        source = SourceFile.of_text("shade.py", text)
        return [message.split()[0] for _, _, message in found("shade.py", text, source.tree)]

    assert told(SCRIPT) == ["NVW307"]
    assert told(TRIED_OUT) == []

"""Known findings: what a baseline holds back, what it does not, and comments that are written for what is found."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from installed import environment

from warplint import baseline, cli
from warplint.finding import Finding, Severity, Span
from warplint.fix.ignores import with_ignores
from warplint.source import SourceFile
from warplint.suppression import suppressions

PROGRAM = """\
import warp as wp


@wp.kernel
def step(q: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = q[i] + 0.1 * wp.sin(q[i])


@wp.kernel
def total(q: wp.array(dtype=float), loss: wp.array(dtype=float)):
    wp.atomic_add(loss, 0, q[wp.tid()])


a = wp.full(8, 0.5, dtype=float, requires_grad=True)
b = wp.zeros(8, dtype=float, requires_grad=True)
hidden = wp.zeros(8, dtype=float)
loss = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    for _ in range(4):
        wp.launch(step, dim=8, inputs=[a], outputs=[b])
        a, b = b, a
    wp.launch(total, dim=8, inputs=[a], outputs=[loss])
tape.backward(loss)
"""

SECOND = """
c = wp.zeros(8, dtype=float, requires_grad=True)
with wp.Tape() as other:
    wp.launch(step, dim=8, inputs=[a], outputs=[c])
    a.zero_()
    wp.launch(total, dim=8, inputs=[c], outputs=[loss])
other.backward(loss)
"""


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("rod.py").write_text(PROGRAM)
    return tmp_path


def found(capsys: pytest.CaptureFixture[str], *words: str) -> list[tuple[str, int]]:
    cli.main([*words, "--format", "json"])
    return [(each["code"], each["line"]) for each in json.loads(capsys.readouterr().out)["findings"]]


def test_what_is_known_is_not_reported_and_what_is_new_is(here, capsys) -> None:
    assert found(capsys, ".") == [("NVW101", 22)]
    assert cli.main([".", "--write-baseline"]) == cli.OK
    assert cli.main([".", "--baseline", "warplint-baseline.json"]) == cli.OK
    Path("rod.py").write_text("# a line more\n" + PROGRAM + SECOND)
    assert cli.main([".", "--baseline", "warplint-baseline.json"]) == cli.FINDINGS
    capsys.readouterr()
    assert found(capsys, ".", "--baseline", "warplint-baseline.json") == [("NVW103", 30)]


def test_a_line_that_changed_is_looked_at_anew(here, capsys) -> None:
    cli.main([".", "--write-baseline"])
    Path("rod.py").write_text(PROGRAM.replace("a, b = b, a", "a, b = (b, a)"))
    capsys.readouterr()
    assert cli.main([".", "--baseline", "warplint-baseline.json"]) == cli.FINDINGS
    assert "1 of the baseline no longer found" in capsys.readouterr().out


def test_the_settings_name_it_from_their_own_folder_and_flake8_hears_of_it(here, capsys, monkeypatch) -> None:
    Path("pyproject.toml").write_text('[tool.warplint]\nbaseline = "known.json"\n')
    cli.main([".", "--write-baseline"])
    assert Path("known.json").is_file()
    (here / "inner").mkdir()
    monkeypatch.chdir(here / "inner")
    assert cli.main([".."]) == cli.OK
    assert told_by_flake8(here) == ""
    (here / "known.json").write_text('{"baseline": 1, "findings": []}')
    assert "NVW101" in told_by_flake8(here)


def told_by_flake8(folder: Path) -> str:
    words = [sys.executable, "-m", "flake8", "--isolated", "--select=NVW", "rod.py"]
    variables = environment(folder / "metadata")
    return subprocess.run(words, cwd=folder, env=variables, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "--write-baseline makes it"),
        ("{", "is no JSON"),
        ("[]", "is no baseline of version 1"),
        ('{"baseline": 1, "findings": [{"path": "a.py"}]}', "an entry needs path, code and text"),
        ('{"baseline": 1, "findings": 3}', "an entry needs path, code and text"),
    ],
)
def test_a_baseline_that_cannot_be_used_is_said(here, capsys, text: str | None, problem: str) -> None:
    if text is not None:
        Path("known.json").write_text(text)
    assert cli.main([".", "--baseline", "known.json"]) == cli.FAILED
    assert problem in capsys.readouterr().err


names = st.sampled_from(["a.py", "b/c.py"])
known_lines = st.integers(1, 4)
codes = st.sampled_from(["NVW101", "NVW110"])
findings = st.lists(
    st.builds(lambda p, n, c: Finding(c, "name", Severity.WARNING, Span(p, n), "m"), names, known_lines, codes)
)


@given(findings, findings)
def test_new_and_known_are_all_there_is(tmp_path_factory, old: list[Finding], now: list[Finding]) -> None:
    folder = Path.cwd()
    lines = {"a.py": ("x", "y", "x", "z"), "b/c.py": ("x", "x", "", "y")}
    made = baseline.of(old, folder, lines.__getitem__)
    file = tmp_path_factory.mktemp("known") / "known.json"
    baseline.write(made, file)
    kept = baseline.read(file)
    assert dict(kept.known) == dict(made.known)
    compared = baseline.compare(now, baseline.Baseline(folder, kept.known), ["a.py", "b/c.py"], lines.__getitem__)
    assert len(compared.new) + compared.known == len(now)
    assert compared.known + compared.gone == len(old)
    assert baseline.compare(old, made, [], lines.__getitem__).new == ()


def test_comments_silence_what_was_found(here, capsys) -> None:
    Path("rod.py").write_text(PROGRAM.replace("a, b = b, a", "a, b = \\\n            b, a  # noqa: E501") + SECOND)
    assert [code for code, _ in found(capsys, ".")] == ["NVW101", "NVW103"]
    assert cli.main([".", "--add-ignore"]) == cli.OK
    text = Path("rod.py").read_text()
    assert "b, a  # noqa: E501  # warplint: ignore[NVW101]\n" in text
    capsys.readouterr()
    assert found(capsys, ".", "--severity", "info") == []
    assert cli.main([".", "--add-ignore"]) == cli.OK
    assert Path("rod.py").read_text() == text


@pytest.mark.parametrize(
    "line",
    [
        "x = f(a)",
        "x = f(a)  # why",
        'x = f("""\n""", a)',
        "x = f(a)  # warplint: ignore[NVW110] so",
        "x = f(a)  # noqa",
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_a_comment_counts_wherever_it_has_to_stand(line: str, end: str) -> None:
    source = SourceFile("f.py", f"f = a = len\r\n{line}{end}".encode())
    finding = Finding("NVW101", "ping-pong", Severity.WARNING, Span("f.py", 2, 5), "message")
    (rewrite,) = with_ignores([finding], lambda path: source)
    changed = SourceFile("f.py", rewrite.text.encode())
    assert suppressions(changed).of(finding)
    assert rewrite.text.endswith(end)


@pytest.mark.parametrize("other", ["--fix", "--diff", "--write-baseline"])
def test_writing_comments_goes_with_nothing_that_writes(here, capsys, other: str) -> None:
    assert cli.main([".", "--add-ignore", other]) == cli.FAILED
    assert Path("rod.py").read_text() == PROGRAM

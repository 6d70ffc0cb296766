"""Fixes: what they change in a text, what they leave, how the command line applies them, and that they repair."""

from __future__ import annotations

import ast
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from warplint import cli
from warplint.builds.count import count
from warplint.finding import Applicability, Edit, Finding, Fix, KeywordChange, Severity, Span
from warplint.fix.edits import with_edits
from warplint.fix.plan import plan
from warplint.runner.command import for_script
from warplint.runner.process import Limits
from warplint.runner.run import RunOptions
from warplint.source import SourceFile, Unreadable

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "fixtures"
BOTH = frozenset({Applicability.SAFE, Applicability.UNSAFE})

UNIQUE = """\
import warp as wp


@wp.kernel(module="unique")  # first
def one(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


@wp.kernel(module='unique')
def two(x: wp.array(dtype=float)):
    x[wp.tid()] = 2.0


x = wp.zeros(2, dtype=float, device="cpu")
wp.launch(one, dim=2, inputs=[x], device="cpu")
wp.launch(two, dim=2, inputs=[x], device="cpu")
wp.launch(two, dim=2, inputs=[x], device="cpu", adjoint=True, adj_inputs=[x])
"""
SHARED = UNIQUE.replace('@wp.kernel(module="unique")', "@wp.kernel").replace(
    "@wp.kernel(module='unique')", "@wp.kernel"
)


def place(text: str, node: ast.expr) -> Span:
    lines = text.encode().split(b"\n")
    column = len(lines[node.lineno - 1][: node.col_offset].decode()) + 1
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    end_column = len(lines[node.end_lineno - 1][: node.end_col_offset].decode()) + 1
    return Span("f.py", node.lineno, column, node.end_lineno, end_column)


def finding(*changes: KeywordChange, edits: tuple[Edit, ...] = (), kind: Applicability = Applicability.SAFE) -> Finding:
    return Finding("X", "x", Severity.WARNING, Span("f.py", 1), "m", fix=Fix(kind, "t", edits, changes))


def changed(text: str, keyword: str, value: str | None, position: int | None = None) -> str | None:
    """``text`` with the outermost call of its first statement (or decorator) changed; None: no fix is offered."""
    data = text.encode()
    first = ast.parse(text).body[0]
    node = first.decorator_list[0] if isinstance(first, ast.FunctionDef) else first.value  # type: ignore[attr-defined]
    source = SourceFile("f.py", data)
    (made,) = with_edits([finding(KeywordChange(place(text, node), keyword, value, position))], lambda path: source)
    if made.fix is None:
        return None
    (rewrite,) = plan([made], BOTH, lambda path: source).rewrites
    return rewrite.text


FLAG = "requires_grad=True"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y = f(n)", f"y = f(n, {FLAG})"),
        ("y = f()", f"y = f({FLAG})"),
        ("y = f(n, )", f"y = f(n, {FLAG}, )"),
        ("y = f( n )  # why", f"y = f( n, {FLAG} )  # why"),
        ("y = f('größe', r'\\d', b'x' )", f"y = f('größe', r'\\d', b'x', {FLAG} )"),
        ("y = f(n, requires_grad = False, p=0x10)", "y = f(n, requires_grad = True, p=0x10)"),
        ("y = f(\n    n,\n    dtype=float,\n)", f"y = f(\n    n,\n    dtype=float,\n    {FLAG},\n)"),
        ("y = f(\n    n,\n    dtype=float\n)", f"y = f(\n    n,\n    dtype=float,\n    {FLAG}\n)"),
        ("y = f(\n    n, dtype=float\n)", f"y = f(\n    n, dtype=float, {FLAG}\n)"),
        ("y = f(\n    n,\n    d=1,  # size\n)", f"y = f(\n    n,\n    d=1,  # size\n    {FLAG},\n)"),
        ("y = f(\n    n,\n    d=1  # size\n)", f"y = f(\n    n,\n    d=1,  # size\n    {FLAG}\n)"),
        ("y = f(n,\n      dtype=float)", f"y = f(n,\n      dtype=float, {FLAG})"),
        ("y = f(\n    n,\n    # all of it\n    d=1,\n)", f"y = f(\n    n,\n    # all of it\n    d=1,\n    {FLAG},\n)"),
        ("y = (f)(g(1), h[2])", f"y = (f)(g(1), h[2], {FLAG})"),
    ],
)
def test_a_keyword_is_added_and_nothing_else_changes(before: str, after: str):
    assert changed(before + "\nz = 1\n", "requires_grad", "True", 3) == after + "\nz = 1\n"


@pytest.mark.parametrize(
    "text",
    [
        "y = f(n, d, None, False)",
        "y = f(*shape)",
        "y = f(n, **options)",
        "y = f(n, requires_grad=flag)",
        "y = f(n, requires_grad=True)",
        "y = f(n for n in m)",
        "y = n.m",
    ],
)
def test_a_call_that_does_not_allow_it_is_left_alone(text: str):
    assert changed(text, "requires_grad", "True", 3) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('@k(module="unique")', "@k"),
        ('@k( module="unique", )', "@k"),
        ('@k(module="unique", b=1)', "@k(b=1)"),
        ('@k(b=1, module="unique")', "@k(b=1)"),
        ('@k(b=1, module="unique", c=2,)', "@k(b=1, c=2,)"),
        ('@k(\n    b=1,\n    module="unique",\n)', "@k(\n    b=1,\n)"),
        ('@k(\n    b=1, module="unique"\n)', "@k(\n    b=1\n)"),
        ('@k(\n    module="unique",  # why\n    b=1,\n)', "@k(\n    # why\n    b=1,\n)"),
        ('@k(\n    b=1,  # one\n    module="unique",\n)', "@k(\n    b=1,  # one\n)"),
        ('@k(\n    b=1,\n    module="unique",  # why\n)', "@k(\n    b=1,\n    # why\n)"),
        ('@k(\n    module="unique",  # why\n)', "@k(\n    # why\n)"),
    ],
)
def test_a_keyword_is_removed_and_comments_stay(before: str, after: str):
    assert changed(f"{before}\ndef f(): ...\n", "module", None) == f"{after}\ndef f(): ...\n"


def test_a_decorator_with_a_name_changes_where_it_is_made_and_is_not_safe():
    text = 'alone = k(module="unique")\n@alone\ndef f(): ...\n@alone\ndef g(): ...\n'
    source = SourceFile("f.py", text.encode())
    found = [finding(KeywordChange(Span("f.py", line, 2, line, 7), "module", None)) for line in (2, 4)]
    made = with_edits(found, lambda path: source)
    assert {each.fix.applicability for each in made if each.fix} == {Applicability.UNSAFE}
    result = plan(made, BOTH, lambda path: source)
    assert [each.text for each in result.rewrites] == [text.replace('(module="unique")', "")]
    assert len(result.fixed) == 2, "one change, asked for twice"
    twice = SourceFile("f.py", f"{text}alone = other\n".encode())
    assert [each.fix for each in with_edits(found, lambda path: twice)] == [None, None]


def test_overlapping_fixes_wait_and_all_edits_of_a_fix_go_together():
    source = SourceFile("f.py", b"one = two + three\n")
    first = finding(edits=(Edit(Span("f.py", 1, 7, 1, 10), "2"),))
    both = finding(edits=(Edit(Span("f.py", 1, 1, 1, 4), "1"), Edit(Span("f.py", 1, 8, 1, 12), "x")))
    apart = finding(edits=(Edit(Span("f.py", 1, 13, 1, 18), "3"),))
    shown = finding(edits=(Edit(Span("f.py", 1, 1, 1, 4), "no"),), kind=Applicability.DISPLAY)
    result = plan([shown, first, both, apart], BOTH, lambda path: source)
    assert [each.text for each in result.rewrites] == ["one = 2 + 3\n"]
    assert (result.fixed, result.overlapping) == ((first, apart), (both,))


def test_a_fix_that_breaks_the_file_is_refused():
    source = SourceFile("f.py", b"one = two\n")
    with pytest.raises(Unreadable):
        plan([finding(edits=(Edit(Span("f.py", 1, 7, 1, 10), "("),))], BOTH, lambda path: source)


# -- the command line -------------------------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    return tmp_path


def run(*words: str) -> int:
    return cli.main([*words, "--no-cache", "--jobs", "1"])


def test_safe_fixes_are_written_and_what_remains_decides(here: Path, capsys: pytest.CaptureFixture[str]):
    (here / "prog.py").write_text(UNIQUE)
    assert run("prog.py") == cli.FINDINGS
    told = capsys.readouterr().out
    assert "[*] unique-stable-kernel" in told
    assert told.endswith("[*] 2 fixable with --fix.\n")
    assert run("--fix", "prog.py") == cli.OK
    assert (here / "prog.py").read_text() == SHARED
    assert capsys.readouterr().out == "No findings in 1 file; 2 fixed.\n"
    assert os.listdir(here) == ["prog.py"]


def test_unsafe_fixes_are_asked_for(here: Path, capsys: pytest.CaptureFixture[str]):
    text = (FIXTURES / "missing-requires-grad" / "bad_hidden_layer.py").read_text()
    (here / "net.py").write_text(text)
    assert run("--fix", "net.py") == cli.FINDINGS
    assert (here / "net.py").read_text() == text
    assert capsys.readouterr().out.endswith("\n1 fixable with --fix --unsafe-fixes.\n")
    assert run("--fix", "--unsafe-fixes", "net.py") == cli.OK
    assert (here / "net.py").read_text() == text.replace(
        "dtype=float)  # exp", "dtype=float, requires_grad=True)  # exp"
    )


def test_a_suppressed_finding_is_not_fixed(here: Path):
    text = UNIQUE.replace("# first", "# noqa: NVW303")
    (here / "prog.py").write_text(text)
    assert run("--fix", "prog.py") == cli.OK
    assert (here / "prog.py").read_text() == text.replace("@wp.kernel(module='unique')", "@wp.kernel")


def test_a_kernel_with_options_of_its_own_stays_unique(here: Path):
    text = re.sub("module=(.unique.)", r"module=\1, module_options={'fast_math': True}", UNIQUE)
    assert text.count("fast_math") == 2
    (here / "prog.py").write_text(text)
    assert run("--fix", "--unsafe-fixes", "prog.py") == cli.FINDINGS
    assert (here / "prog.py").read_text() == text


def test_encoding_line_ends_links_and_permissions_stay(here: Path):
    text = "# -*- coding: latin-1 -*-\n# größe\n" + UNIQUE.rstrip("\n")
    data = text.replace("\n", "\r\n").encode("latin-1")
    (here / "real.py").write_bytes(data)
    (here / "real.py").chmod(0o750)
    (here / "prog.py").symlink_to("real.py")
    assert run("--fix", "prog.py") == cli.OK
    expected = ("# -*- coding: latin-1 -*-\n# größe\n" + SHARED.rstrip("\n")).replace("\n", "\r\n").encode("latin-1")
    assert (here / "real.py").read_bytes() == expected
    assert (here / "prog.py").is_symlink()
    assert (here / "real.py").stat().st_mode & 0o777 == 0o750
    (here / "marked.py").write_bytes(b"\xef\xbb\xbf" + UNIQUE.encode())
    assert run("--fix", "marked.py") == cli.OK
    assert (here / "marked.py").read_bytes() == b"\xef\xbb\xbf" + SHARED.encode()


def test_diff_shows_what_patch_can_apply_and_writes_nothing(here: Path, capsys: pytest.CaptureFixture[str]):
    (here / "prog.py").write_text(UNIQUE)
    assert run("--diff", "prog.py") == cli.FINDINGS
    shown = capsys.readouterr()
    assert (here / "prog.py").read_text() == UNIQUE
    assert shown.err == "warplint: 2 findings would be fixed\n"
    if shutil.which("patch"):
        subprocess.run(["patch", "-s", "-p0"], input=shown.out, text=True, check=True)
    else:
        assert '-@wp.kernel(module="unique")  # first\n+@wp.kernel  # first\n' in shown.out
        (here / "prog.py").write_text(SHARED)
    assert (here / "prog.py").read_text() == SHARED
    assert run("--diff", "prog.py") == cli.OK
    assert capsys.readouterr().out == ""


def test_standard_input_comes_out_fixed(
    here: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
):
    given = io.TextIOWrapper(io.BytesIO(UNIQUE.encode()))
    monkeypatch.setattr(sys, "stdin", given)
    assert run("--fix", "--stdin-filename", "prog.py", "-") == cli.OK
    told = capsysbinary.readouterr()
    assert told.out == SHARED.encode()
    assert told.err == b"No findings in 1 file; 2 fixed.\n"


def test_json_and_sarif_carry_the_edits(here: Path, capsys: pytest.CaptureFixture[str]):
    (here / "prog.py").write_text(UNIQUE)
    run("--format", "json", "prog.py")
    fixes = [each["fix"] for each in json.loads(capsys.readouterr().out)["findings"]]
    place = {"path": "prog.py", "line": 4, "column": 11, "end_line": 4, "end_column": 28}
    assert fixes[0] == {
        "applicability": "safe",
        "title": 'remove `module="unique"`',
        "edits": [{**place, "content": ""}],
    }
    run("--format", "sarif", "prog.py")
    result = json.loads(capsys.readouterr().out)["runs"][0]["results"][0]
    (replacement,) = result["fixes"][0]["artifactChanges"][0]["replacements"]
    region = {"startLine": 4, "startColumn": 11, "endLine": 4, "endColumn": 28}
    assert replacement == {"deletedRegion": region, "insertedContent": {"text": ""}}


@pytest.mark.parametrize(("text", "imported"), [(SHARED, False), (UNIQUE, True)])
def test_libcst_is_imported_for_a_fix_alone(here: Path, text: str, imported: bool):
    (here / "prog.py").write_text(text)
    program = "import sys; from warplint.cli import main; main(['--fix', 'prog.py']); print('libcst' in sys.modules)"
    paths = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "rules")]), "WARPLINT_CACHE_DIR": str(here / "cache")}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **paths})
    assert done.stdout.splitlines()[-1] == str(imported)


# -- proven by running ------------------------------------------------------------------------------------------------


@pytest.mark.warp
def test_the_flag_makes_the_gradient_right(here: Path, capsys: pytest.CaptureFixture[str]):
    shutil.copy(FIXTURES / "missing-requires-grad" / "bad_hidden_layer.py", here)
    words = ("--verify", "--device", "cpu", "--python", sys.executable, "--format", "json", "bad_hidden_layer.py")
    assert run(*words) == cli.FINDINGS
    before = json.loads(capsys.readouterr().out)
    assert [each["verdict"]["status"] for each in before["findings"]] == ["confirmed"]
    assert run("--fix", "--unsafe-fixes", *words) == cli.OK
    after = json.loads(capsys.readouterr().out)
    assert after["findings"] == []
    status = {each["leaf"]: each["status"] for each in after["gradients"]}
    assert (status["w"], status["v"]) == ("pass", "pass")


@pytest.mark.slow
@pytest.mark.warp
def test_sharing_a_module_spares_a_build(here: Path):
    (here / "prog.py").write_text(UNIQUE)
    options = RunOptions(python=sys.executable, limits=Limits(300.0))
    before = count(for_script("prog.py"), options)
    assert run("--fix", "prog.py") == cli.OK
    after = count(for_script("prog.py"), options)
    assert (before.problem, after.problem) == (None, None)
    assert (before.built_cold, after.built_cold) == (2, 1)

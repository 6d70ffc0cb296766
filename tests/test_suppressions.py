"""Comments that silence findings: whose line they count for (flake8's own answer is the reference), and unused ones."""

from __future__ import annotations

import re

import pytest

from warplint.finding import Finding, Severity, Span
from warplint.source import SourceFile
from warplint.suppression import Form, suppressions

flake8_processor = pytest.importorskip("flake8.processor")
flake8_defaults = pytest.importorskip("flake8.defaults")


def finding(line: int, code: str = "NVW101", name: str = "ping-pong") -> Finding:
    return Finding(code, name, Severity.WARNING, Span("f.py", line, 5), "message")


def silenced(text: str, line: int, code: str = "NVW101", name: str = "ping-pong") -> bool:
    return bool(suppressions(SourceFile("f.py", text.encode())).of(finding(line, code, name)))


TEXTS = [
    "a = 1  # noqa\nb = 2\n",
    "a = 1  # noqa: NVW101\nb = 2  # noqa:NVW101\nc = 3  # NoQA: nvw101\n",
    "a = 1  # noqa: E501,NVW101\nb = 2  # noqa: E501 NVW1\nc = 3  # noqa: E501\n",
    "a = 1  # noqa NVW110\nb = 2 # noqa : NVW110\nc = 3  #noqa\n",
    's = """\nx\ny\n"""  # noqa: NVW101\nb = 2\n',
    "f(\n    1,  # noqa: NVW101\n    2,\n)  # noqa\n",
    "f(1, \\\n  2)  # noqa\nb = 1\n",
    'f("""\n# noqa: NVW1\n""", 2)\ng = 3\n',
    "def f():\n    # noqa\n    return 1  # noqa: NVW101, E3\n\n\n# noqa: NVW2\nx = 1\n",
    "a = 1  # noqa: NVW110 # noqa: NVW101\n",
    "x = '# noqa'\n\ty = 2\n",
    "if x:\n\n    y = f'''\n{x}\n# noqa\n'''\n",
]


@pytest.mark.parametrize("text", TEXTS)
def test_lines_and_codes_are_flake8s_own(text: str, tmp_path) -> None:
    path = tmp_path / "f.py"
    path.write_text(text)
    processor = flake8_processor.FileProcessor(str(path), _Options())
    for line in range(1, text.count("\n") + 1):
        physical = processor.noqa_line_for(line)
        if physical is None:  # the file has no tokens: no finding either
            continue
        match = flake8_defaults.NOQA_INLINE_REGEXP.search(physical)
        codes = re.split(r"[,\s]+", (match["codes"] or "").upper().strip(", \n")) if match else []
        expected = match is not None and (codes == [""] or any("NVW101".startswith(code) for code in codes if code))
        assert silenced(text, line) is expected, (line, physical)


class _Options:
    hang_closing = False
    indent_size = 4
    max_line_length = 79
    max_doc_length = None
    verbose = 0
    stdin_display_name = "stdin"
    disable_noqa = False


def test_file_level_noqa() -> None:
    assert silenced("# flake8: noqa\nx = 1\n", 2)
    assert silenced("x = 1\n    # flake8: noqa\n", 1)
    assert silenced("# flake8: noqa: NVW1\nx = 1\n", 2)
    assert not silenced("# flake8: noqa: NVW2\nx = 1\n", 2)
    assert not silenced("x = 1  # flake8: nope\n", 1)


def test_ignore_by_code_and_by_name_on_the_line() -> None:
    assert silenced("x = 1  # warplint: ignore[NVW101] checked by hand\n", 1)
    assert silenced("x = 1  # warplint: ignore[NVW110, ping-pong]\n", 1)
    assert silenced("x = 1  # warplint: ignore\n", 1)
    assert not silenced("x = 1  # warplint: ignore[NVW110] reason\n", 1)
    assert not silenced("x = 1  # warplint: ignore[NVW101]\ny = 2\n", 2)


def test_ignore_alone_on_a_line_speaks_for_the_next_statement() -> None:
    text = "x = 1\n# warplint: ignore[NVW101] reason\n# that goes on\ny = 2\nz = 3\n"
    assert [silenced(text, line) for line in range(1, 6)] == [False, False, False, True, False]


def test_where_a_comment_stands() -> None:
    (entry,) = suppressions(SourceFile("f.py", b"x = 1  # noqa: NVW101, NVW110 why\n")).entries
    assert (entry.line, entry.column, entry.end_column) == (1, 8, 30)
    assert entry.codes == ("NVW101", "NVW110")
    assert entry.form is Form.NOQA
    assert not entry.quoted


def test_a_comment_inside_a_string_is_known_as_such() -> None:
    (entry,) = suppressions(SourceFile("f.py", b'x = """\n# noqa: NVW101\n"""\n')).entries
    assert entry.quoted


def test_a_file_that_cannot_be_read_has_none() -> None:
    assert suppressions(SourceFile("f.py", b"x = 1  # noqa \xff\n")).entries == ()


@pytest.mark.parametrize("line", [2, 3, 4])
def test_a_comment_above_decorators_speaks_for_the_function_too(line: int) -> None:
    text = "# warplint: ignore[NVW101]\n@one\n@two(\n    1)\ndef f():\n    pass\n"
    assert silenced(text, line)
    assert silenced(text, 5)
    assert not silenced(text, 6)

"""Reading files: every way to be unreadable ends in one exception that names the place."""

from __future__ import annotations

import codecs

import pytest

from warplint import source
from warplint.source import SourceFile, Unreadable


def unreadable(data: bytes) -> Unreadable:
    with pytest.raises(Unreadable) as caught:
        _ = SourceFile("f.py", data).tree
    return caught.value


def test_byte_order_mark_and_cookies() -> None:
    assert SourceFile("f.py", codecs.BOM_UTF8 + b"x = 1\n").text == "x = 1\n"
    assert SourceFile("f.py", "# coding: latin-1\nx = 'é'\n".encode("latin-1")).lines[1] == "x = 'é'"
    assert (
        SourceFile("f.py", "#!/bin/sh\n# -*- coding: shift_jis -*-\nx = '猫'\n".encode("shift_jis")).lines[2]
        == "x = '猫'"
    )


def test_empty_file_has_a_tree_and_no_lines() -> None:
    empty = SourceFile("f.py", b"")
    assert empty.tree.body == []
    assert empty.lines == ()


def test_lines_are_those_of_the_parser() -> None:
    text = SourceFile("f.py", b"a = 1\r\nb = '\x0c'\rc = 3\n")
    assert text.lines == ("a = 1", "b = '\x0c'", "c = 3")
    assert [node.lineno for node in text.tree.body] == [1, 2, 3]


def test_undecodable_byte_is_placed() -> None:
    error = unreadable(b"x = 1\ny = 'caf\xe9'\n")
    assert (error.line, error.column) == (2, 9)
    assert "0xe9" in error.message


def test_undecodable_byte_behind_the_second_line() -> None:
    error = unreadable(b"a = 1\nb = 2\nc = 3\n    # \xff\n")
    assert (error.line, error.column) == (4, 7)


def test_unknown_cookie_is_placed_on_its_line() -> None:
    error = unreadable(b"#!/usr/bin/env python\n# coding: klingon\n")
    assert error.line == 2
    assert "klingon" in error.message


def test_wide_encodings_are_named() -> None:
    assert "UTF-16" in unreadable("x = 1\n".encode("utf-16")).message
    assert "UTF-32" in unreadable("x = 1\n".encode("utf-32")).message


def test_syntax_error_is_placed() -> None:
    error = unreadable(b"x = 1\ndef f(:\n    pass\n")
    assert error.line == 2
    assert error.message.startswith("syntax error: ")


def test_null_byte_is_placed() -> None:
    error = unreadable(b"x = 1\ny = 2\0\n")
    assert (error.line, error.column) == (2, 6)


def test_deep_nesting_is_no_crash() -> None:
    assert unreadable(b"x = " + b"(" * 5000 + b")" * 5000).line >= 1


def test_too_large_and_missing_files(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(source, "LARGEST", 10)
    big = tmp_path / "big.py"
    big.write_text("x = 1  # more than ten bytes\n")
    with pytest.raises(Unreadable, match="too large"):
        _ = source.read(big).tree
    with pytest.raises(Unreadable, match="cannot be read"):
        source.read(tmp_path / "missing.py")


def test_screen_for_warp() -> None:
    assert SourceFile("f.py", b"import warp as wp\n").mentions_warp
    assert not SourceFile("f.py", b"import numpy as np\n").mentions_warp


def test_columns_count_characters() -> None:
    line = "größe = f(x)"
    assert source.character_column(line, len("größe = ".encode())) == 9
    assert source.character_column("plain = 1", 4) == 5

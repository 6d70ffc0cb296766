"""One source file: its bytes, the screen for files without Warp, its text and syntax tree, and why it cannot be read.

Every way a file can be unreadable ends in one exception, :class:`Unreadable`, which names the place; ``lint`` makes it
the finding NVW900. Nothing here knows of rules.
"""

from __future__ import annotations

import ast
import codecs
import hashlib
import io
import re
import tokenize
import warnings
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from warplint.dataclass import dataclass
from warplint.finding import Span
from warplint.notebook import SUFFIX as NOTEBOOK
from warplint.notebook import Cells, NotANotebook, python_of

LARGEST = 8 * 2**20
"""Bytes. The syntax tree of a larger file takes gigabytes; only generated files are that large."""

WARP = b"warp"
"""No program uses Warp without naming it; bytes, so that most files are never decoded."""

SUPPRESSION_MARKS = (b"noqa", b"warplint:")
"""One of these stands in every comment that silences findings."""

_OUR_NOQA = re.compile(rb"noqa[^\n]*nvw")
_LINE_END = re.compile(r"\r\n|\r|\n")
_WIDE_ENCODINGS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


class Unreadable(Exception):
    """A file that cannot be decoded or parsed. ``line`` and ``column`` are 1-based, columns count characters."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.line = max(line, 1)
        self.column = max(column, 1)


@dataclass(frozen=True)
class SourceFile:
    """A file's name, as it is shown, and its bytes. Text and tree are made when first asked for.

    ``text``, ``lines`` and ``tree`` raise :class:`Unreadable`.
    """

    path: str
    data: bytes
    cells: Cells | None = None
    """Of a notebook: which lines come from which of its cells."""

    @staticmethod
    def of_text(path: str, text: str, tree: ast.Module | None = None) -> SourceFile:
        """A file that somebody else has decoded, and perhaps parsed, already."""
        source = SourceFile(path, text.encode("utf-8", "surrogateescape"))
        source.__dict__["text"] = text
        if tree is not None:
            source.__dict__["tree"] = tree
        return source

    @cached_property
    def mentions_warp(self) -> bool:
        """Whether the file can have anything to do with Warp at all."""
        return WARP in self.data

    @property
    def is_too_large(self) -> bool:
        """Whether the file is beyond what can be parsed."""
        return len(self.data) > LARGEST

    @cached_property
    def has_suppressions(self) -> bool:
        """Whether a comment may silence findings here."""
        lowered = self.data.lower()
        return any(mark in lowered for mark in SUPPRESSION_MARKS)

    @cached_property
    def may_name_our_codes(self) -> bool:
        """Whether a comment may name one of our codes or rules: most files have a ``noqa`` for other linters alone."""
        lowered = self.data.lower()
        return b"warplint:" in lowered or (b"nvw" in lowered and _OUR_NOQA.search(lowered) is not None)

    @cached_property
    def digest(self) -> bytes:
        """What tells this content from any other."""
        return hashlib.blake2b(self.data, digest_size=20).digest()

    @cached_property
    def text(self) -> str:
        """The decoded text, without a byte order mark, line ends as they are."""
        return decode(self.data)

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines as Python's parser counts them, without their ends. ``lines[0]`` is line 1."""
        return split_lines(self.text)

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        if self.is_too_large:
            size, limit = len(self.data) / 2**20, LARGEST / 2**20
            raise Unreadable(f"the file is too large to be checked ({size:.0f} MiB, limit {limit:.0f} MiB)")
        return parse(self.text, self.path)


def read(path: str | Path, shown: str | None = None) -> SourceFile:
    """The file at ``path``; raises :class:`Unreadable` where the system refuses it."""
    try:
        return of_bytes(shown or str(path), Path(path).read_bytes())
    except OSError as error:
        raise Unreadable(f"the file cannot be read: {error.strerror or error}") from error


def of_bytes(path: str, data: bytes) -> SourceFile:
    """The file of that name and content: of a notebook, the module that its code cells make."""
    if not path.endswith(NOTEBOOK):
        return SourceFile(path, data)
    try:
        text, cells = python_of(data)
    except NotANotebook as error:
        raise Unreadable(str(error)) from error
    return SourceFile(path, text.encode("utf-8", "surrogateescape"), cells)


def split_lines(text: str) -> tuple[str, ...]:
    r"""Split at ``\n``, ``\r\n`` and ``\r`` alone: ``str.splitlines`` also splits at form feeds, Python does not."""
    lines = _LINE_END.split(text)
    if lines and not lines[-1]:
        lines.pop()
    return tuple(lines)


def decode(data: bytes) -> str:
    """Text by the byte order mark or the coding cookie, else UTF-8 (PEP 263)."""
    for mark, name in _WIDE_ENCODINGS:
        if data.startswith(mark):
            raise Unreadable(f"the file is encoded in {name}, which Python does not accept for source files")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        raise _undecodable(data, str(error.msg)) from error
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line, column = _position(data, error.start)
        byte = data[error.start]
        message = f"the file cannot be decoded as {encoding}: {error.reason} (byte 0x{byte:02x})"
        raise Unreadable(message, line, column) from error


def parse(text: str, path: str) -> ast.Module:
    """The syntax tree of ``text``; raises :class:`Unreadable` at the place of the error."""
    null = text.find("\0")
    if null >= 0:
        line = len(_LINE_END.findall(text, 0, null)) + 1
        raise Unreadable("the file contains a null byte", line, null - _line_start(text, null) + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text, path)
    except SyntaxError as error:
        raise Unreadable(f"syntax error: {error.msg}", error.lineno or 1, error.offset or 1) from error
    except (RecursionError, MemoryError) as error:
        raise Unreadable("the file is nested too deeply to be parsed") from error
    except ValueError as error:
        raise Unreadable(f"the file cannot be parsed: {error}") from error


def character_column(line: str, byte_offset: int) -> int:
    """The 1-based character column of ``ast``'s 0-based UTF-8 byte offset in ``line``."""
    if line.isascii():
        return byte_offset + 1
    return len(line.encode("utf-8")[:byte_offset].decode("utf-8", "replace")) + 1


def _undecodable(data: bytes, reason: str) -> Unreadable:
    """What ``detect_encoding`` refused: an unknown cookie, or bytes of the first two lines that are no UTF-8."""
    try:
        b"".join(data.splitlines(keepends=True)[:2]).decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = _position(data, error.start)
        byte = data[error.start]
        return Unreadable(f"the file cannot be decoded as utf-8: {error.reason} (byte 0x{byte:02x})", line, column)
    return Unreadable(f"the file cannot be decoded: {reason}", 2 if b"coding" not in data.split(b"\n", 1)[0] else 1)


def _position(data: bytes, offset: int) -> tuple[int, int]:
    """Line and column of a byte; the line's earlier bytes count as characters where they can be decoded."""
    before = data[:offset]
    start = max(before.rfind(b"\n"), before.rfind(b"\r")) + 1
    line = before.count(b"\n") + before.count(b"\r") - before.count(b"\r\n") + 1
    return line, len(before[start:].decode("utf-8", "replace")) + 1


def _line_start(text: str, offset: int) -> int:
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


def span_of(node: ast.AST, path: str, lines: Sequence[str] | None = None) -> Span:
    """The node's place, with 1-based columns and an exclusive end; in characters where ``lines`` are given.

    ``ast`` counts UTF-8 bytes; editors, JSON and SARIF count characters.
    """
    line: int = node.lineno  # type: ignore[attr-defined]
    column: int = node.col_offset + 1  # type: ignore[attr-defined]
    end_line: int = getattr(node, "end_lineno", None) or line
    end_column: int = (getattr(node, "end_col_offset", None) or column - 1) + 1
    if lines is not None and end_line <= len(lines):
        column = character_column(lines[line - 1], column - 1)
        end_column = character_column(lines[end_line - 1], end_column - 1)
    return Span(path, line, column, end_line, end_column)

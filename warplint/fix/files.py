"""Changed files: as a unified diff, or written in their own encoding, whole or not at all."""

from __future__ import annotations

import contextlib
import difflib
import io
import os
import shutil
import tempfile
import tokenize
from collections.abc import Iterator

from warplint.fix.plan import Rewrite
from warplint.fix.text import line_ranges


def diff(rewrite: Rewrite) -> str:
    """The unified diff, as ``patch`` reads it."""
    path = rewrite.path
    lines = difflib.unified_diff(list(_lines(rewrite.source.text)), list(_lines(rewrite.text)), path, path)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> Iterator[str]:
    starts = [start for start, _ in line_ranges(text)]
    for start, stop in zip(starts, [*starts[1:], len(text)], strict=True):
        if start < stop:
            yield text[start:stop]


def encoded(rewrite: Rewrite) -> bytes:
    """The new text in the file's encoding, with its byte order mark where it has one."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(rewrite.source.data).readline)
    return rewrite.text.encode(encoding)


def write(rewrite: Rewrite) -> None:
    """Put the new text in the file's place in one step; links and permissions stay. Raises :class:`OSError`."""
    data, real = encoded(rewrite), os.path.realpath(rewrite.path)
    handle, name = tempfile.mkstemp(dir=os.path.dirname(real), prefix=".warplint-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        shutil.copymode(real, name)
        os.replace(name, real)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise

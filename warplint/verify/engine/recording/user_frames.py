"""Where the user's code is: its frames among those of Warp's library and of ours."""

from __future__ import annotations

import functools
import os
from types import FrameType
from typing import Any


@functools.lru_cache(maxsize=4096)
def is_user_file(filename: str) -> bool:
    """Whether a file is the user's: not of Warp's library (its examples and tests are user code), not of ours."""
    path = filename.replace("\\", "/")
    if path.startswith("<frozen"):
        return False
    if "/warplint/verify/" in path or "/warplint/runner/" in path or "/warplint/builds/" in path:
        return False
    where = path.rfind("/warp/")
    if where < 0:
        return True
    if not os.path.exists(path[:where] + "/warp/_src/context.py"):
        return True
    inside = path[where + len("/warp/") :]
    return inside.startswith(("examples/", "tests/"))


def user_stack(frame: FrameType | None, limit: int = 24) -> tuple[tuple[Any, int], ...]:
    """``(code, line)`` of the user's frames, innermost first; the cheap form, turned into places when needed."""
    found: list[tuple[Any, int]] = []
    while frame is not None and len(found) < limit:
        code = frame.f_code
        if is_user_file(code.co_filename):
            found.append((code, frame.f_lineno))
        frame = frame.f_back
    return tuple(found)


def called_by_user(frame: FrameType | None) -> bool:
    """Whether the first frame that is not ours is the user's own: not Warp calling itself on the user's behalf."""
    while frame is not None:
        path = frame.f_code.co_filename.replace("\\", "/")
        if "/warplint/verify/" not in path:
            return is_user_file(path)
        frame = frame.f_back
    return False


def importing_library(frame: FrameType | None) -> bool:
    """Whether a module of Warp's library is being imported: what it declares is not the user's."""
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        if frame.f_code.co_name == "<module>":
            return True
        frame = frame.f_back
    return False


def library_call(frame: FrameType | None) -> str:
    """The name of the Warp function that the user's code called: the outermost library frame below the user's."""
    name = ""
    while frame is not None:
        filename = frame.f_code.co_filename
        if is_user_file(filename):
            return name
        if "/warp/" in filename.replace("\\", "/"):
            name = frame.f_code.co_name
            if name == "__init__" and "self" in frame.f_locals:
                name = type(frame.f_locals["self"]).__name__
        frame = frame.f_back
    return name

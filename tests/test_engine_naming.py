"""What an array is called: the name that the caller gives it, not the one inside a helper or a kernel."""

from __future__ import annotations

import sys
from pathlib import Path
from types import CodeType, FrameType

import pytest

from warplint.verify.engine.judging.naming import assigned_name

PROGRAM = """\
def made():
    return [1.0]

def held():
    local = made()
    return local

def pair():
    first, second = made(), 3
    return first, second

def two():
    return (
        7,
        made(),
    )

class Model:
    def __init__(self):
        self.weights = held()

class Kept:
    def __init__(self):
        local = made()
        self.of = {"a": local}

{statement}
"""


def name_of(statement: str, folder: Path) -> str:
    """The name of the list that the innermost call of ``made`` returns, as the frames tell it."""
    path = folder / "program.py"
    path.write_text(PROGRAM.replace("{statement}", statement))
    seen: list[tuple[CodeType, int]] = []

    def look(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_name == "made":
            seen.clear()
            at: FrameType | None = frame
            while at is not None and at.f_code.co_filename == str(path):
                seen.append((at.f_code, 2 if at is frame else at.f_lineno))
                at = at.f_back

    sys.setprofile(look)
    try:
        exec(compile(path.read_text(), str(path), "exec"), {})
    finally:
        sys.setprofile(None)
    return assigned_name(tuple(seen))


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("x = made()", "x"),
        ("params = held()", "params"),
        ("rate, other = pair()", "rate"),
        ("both = pair()", "both[0]"),
        ("n, state = two()", "state"),
        ("a, b = 1, held()", "b"),
        ("model = Model()", "self.weights"),
        ("kept = Kept()", "local"),
        ("states = [held() for _ in range(3)]", "states"),
        ("table = {}\ntable['k'] = held()", "table['k']"),
        ("many = []\nmany.append(held())", "many"),
        ("def outer():\n    inner = held()\n    return inner\n\nlast = outer()", "last"),
        ("x: list = (\n    made()\n)", "x"),
        ("print(held())", "local"),
        ("print(made())", ""),
    ],
)
def test_an_array_is_called_what_its_caller_calls_it(statement, name, tmp_path):
    assert name_of(statement, tmp_path) == name

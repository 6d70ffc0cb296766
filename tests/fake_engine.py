"""A package folder with the real runner and a small engine in it: what a child does is then up to the test."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

STARTS_ONLY = """
from warplint.runner.entry import start
from warplint.verify.records import Note, Program

def main(request, channel):
    channel.send(Note("began", request.purpose.value))
    ending = start(request.entry)
    if channel.mine():
        channel.send(Program("", 0.0, 0, 0, 0, "", ending.stopped, ending.text))
    return 0
"""

ANSWERS = """
import os

def main(request, channel):
    with open(os.environ["ANSWERS"]) as answers, open(request.records, "w") as file:
        file.write(answers.read())
    return 0
"""


def engine(folder: Path, child: str) -> Path:
    """Make the package below ``folder``; ``child`` is the text of ``warplint/verify/engine/child.py``."""
    package = folder / "package" / "warplint"
    source = Path(sys.modules["warplint"].__file__ or "").parent
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("engine", "__pycache__"))
    (package / "verify" / "engine").mkdir()
    (package / "verify" / "engine" / "__init__.py").touch()
    (package / "verify" / "engine" / "child.py").write_text(child)
    return package

"""Small programs whose lines say what must be found there: ``# expect: NVW101``, ``# expect-info: NVW120``."""

from __future__ import annotations

import dataclasses
import re
import textwrap
from pathlib import Path

from warplint.config import Settings
from warplint.finding import Finding, Severity
from warplint.lint import lint

EXPECTED = re.compile(r"#\s*expect(?P<info>-info)?:\s*(?P<codes>NVW[0-9]{3}(?:,\s*NVW[0-9]{3})*)")

PRELUDE = """
import numpy as np
import warp as wp

A = wp.array(dtype=float)

@wp.kernel
def nl(a: A, b: A):
    i = wp.tid()
    b[i] = 0.3 * a[i] + wp.sin(a[i])

@wp.kernel
def lin(a: A, b: A):
    i = wp.tid()
    b[i] = 0.9 * a[i] + 0.1

@wp.kernel
def bil(a: A, c: A, b: A):
    i = wp.tid()
    b[i] = c[i] * a[i]

@wp.kernel
def acc(a: A, b: A):
    i = wp.tid()
    wp.atomic_add(b, i, a[i] * a[i])

@wp.kernel
def ssq(b: A, l: A):
    i = wp.tid()
    wp.atomic_add(l, 0, b[i] * b[i])

def arr(v, rg=True):
    return wp.array(v, dtype=float, requires_grad=rg)

def zer(n=3, rg=True):
    return wp.zeros(n, dtype=float, requires_grad=rg)
"""

Place = tuple[str, int, str]
"""File name, line, code."""


def expected(files: dict[str, str]) -> tuple[set[Place], set[Place]]:
    """The warnings and the information that the comments announce."""
    warnings: set[Place] = set()
    information: set[Place] = set()
    for name, text in files.items():
        for number, line in enumerate(text.splitlines(), 1):
            match = EXPECTED.search(line)
            if match is not None:
                into = information if match["info"] else warnings
                into |= {(name, number, code.strip()) for code in match["codes"].split(",")}
    return warnings, information


def findings(folder: Path, files: dict[str, str], entry: str = "program.py", **settings: object) -> tuple[Finding, ...]:
    """What warplint finds in a program of some files, started at ``entry``."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    result = lint([str(folder / entry)], dataclasses.replace(Settings(folder), **settings))  # type: ignore[arg-type]
    return result.findings


def places(found: tuple[Finding, ...], severity: Severity) -> set[Place]:
    return {(Path(f.span.path).name, f.span.line, f.code) for f in found if f.severity is severity}


def check(
    folder: Path, source: str, *, others: dict[str, str] | None = None, **settings: object
) -> tuple[Finding, ...]:
    """Assert that warplint finds what the comments of the program say, and no other warning."""
    files = {"program.py": textwrap.dedent(source), **{n: textwrap.dedent(t) for n, t in (others or {}).items()}}
    found = findings(folder, files, **settings)
    warnings, information = expected(files)
    described = "\n".join(f"{f.span.path}:{f.span.line} {f.code} {f.severity.value}: {f.message}" for f in found)
    assert places(found, Severity.WARNING) == warnings, described or "nothing was found"
    assert information <= places(found, Severity.INFO), described or "nothing was found"
    return found


def taped(body: str, *, loss: str = "l", before: str = "", after: str = "print(x.grad.numpy())") -> str:
    """A program with the kernels of :data:`PRELUDE`: ``body`` on a tape, its loss differentiated."""
    lines = [
        PRELUDE,
        "x = arr([0.7, 1.3, -0.4])",
        "l = zer(1)",
        textwrap.dedent(before),
        "tape = wp.Tape()",
        "with tape:",
        textwrap.indent(textwrap.dedent(body), "    "),
        f"tape.backward({loss})",
        textwrap.dedent(after),
    ]
    return "\n".join(lines)

"""Files of tests: what tells them, and how they are run. As scripts they would do nothing."""

from __future__ import annotations

import ast
import fnmatch
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec

from warplint.runner.command import Command, CommandError, find_interpreter
from warplint.runner.protocol import Entry, EntryKind

NAMES = ("test_*.py", "*_test.py")
PATIENCE = 20.0
"""Seconds that an interpreter may take to say whether it has a module."""

_HAS_PYTEST = "import importlib.util, sys; sys.exit(importlib.util.find_spec('pytest') is None)"

Function = (ast.FunctionDef, ast.AsyncFunctionDef)


def has_tests(tree: ast.Module) -> bool:
    """Whether a test runner finds something in the file: functions or methods by the name of tests."""
    return any(True for _ in _tests(tree))


def is_named_as_tests(path: str) -> bool:
    """Whether pytest collects a file of this name by itself."""
    return any(fnmatch.fnmatchcase(os.path.basename(path), pattern) for pattern in NAMES)


def run_tests(path: str, tree: ast.Module, python: str | None) -> Command:
    """``python -m pytest -q FILE``; ``python -m unittest FILE`` where there is no pytest and unittest can run it.

    Raises:
        CommandError: the interpreter ``python`` is not there, or can run these tests with nothing that it has.
    """
    interpreter = find_interpreter(python)
    if _has_pytest(interpreter):
        return _module("pytest", "-q", path)
    if not _has_test_cases(tree):
        raise CommandError(f"{path} holds tests for pytest, which {interpreter} does not have")
    if os.path.relpath(path).startswith(os.pardir):
        return _module("unittest", "discover", "-s", os.path.dirname(path), "-p", os.path.basename(path))
    return _module("unittest", os.path.relpath(path))


def _module(name: str, *arguments: str) -> Command:
    return Command(shlex.join(["python", "-m", name, *arguments]), Entry(EntryKind.MODULE, name, arguments))


def _has_pytest(interpreter: str) -> bool:
    if interpreter == sys.executable:
        return find_spec("pytest") is not None
    try:
        done = subprocess.run([interpreter, "-c", _HAS_PYTEST], capture_output=True, timeout=PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _tests(tree: ast.Module) -> Iterator[ast.AST]:
    for node in tree.body:
        if isinstance(node, Function) and node.name.startswith("test"):
            yield node
        if isinstance(node, ast.ClassDef) and (node.name.startswith("Test") or _is_test_case(node)):
            yield from (each for each in node.body if isinstance(each, Function) and each.name.startswith("test"))


def _has_test_cases(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.ClassDef) and _is_test_case(node) for node in tree.body)


def _is_test_case(node: ast.ClassDef) -> bool:
    """Whether the class derives from ``unittest.TestCase``, or from something that is called so."""
    return any(ast.unparse(base).rpartition(".")[2].endswith("TestCase") for base in node.bases)

"""Kernels whose text is changed and built again, beside the program's own."""

from __future__ import annotations

import ast
import inspect
import os
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import warp

wp: Any = warp


class NotRewritable(Exception):
    """The kernel does what the change has no place for, or its text is not to be had; the text says which."""


def source_of(kernel: Any) -> tuple[ast.Module, ast.FunctionDef]:
    """A kernel's text as a tree of its own, and the function in it.

    Raises:
        NotRewritable: it cannot be read.
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kernel.func)))
    except (OSError, TypeError, SyntaxError) as error:
        raise NotRewritable(str(error)) from error
    function = tree.body[0]
    if not isinstance(function, ast.FunctionDef):
        raise NotRewritable("it is no function")
    return tree, function


def names_of(function: Any) -> Mapping[str, Any]:
    """What the function's text can refer to: globals and what it has captured."""
    function = inspect.unwrap(function)
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
    return {**function.__globals__, **dict(_filled(cells)), "_wp": wp}


def _filled(cells: Any) -> Iterator[tuple[str, Any]]:
    for name, cell in cells:
        try:
            yield name, cell.cell_contents
        except ValueError:
            continue


def module_like(kernel: Any, purpose: str) -> Any:
    """A module of its own, built with the options of the kernel's."""
    module = wp.get_module(f"warplint_{purpose}_{id(kernel):x}")
    module.options.update(kernel.module.options)
    return module


def defined(text: str, name: str, names: Mapping[str, Any]) -> Any:
    """The function that the text defines, in a file, since Warp reads the source of what it compiles."""
    handle, path = tempfile.mkstemp(suffix=".py", prefix=f"{name}_", text=True)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    module = ModuleType(name)
    vars(module).update(names)
    vars(module)["__name__"] = name
    exec(compile(text, path, "exec"), vars(module))
    return vars(module)[name]

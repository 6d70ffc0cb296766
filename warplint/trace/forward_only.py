"""Whether a whole program is in sight that never runs an adjoint: a question to the text of all its files.

What a run along one path does not do, another one may; so the names in the files decide, not the events.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

from warplint.finding import Span
from warplint.imports import closure_of
from warplint.lookups import files, is_imported_beside
from warplint.project import Module, Project

_DIFFERENTIATES = re.compile(
    r"Tape|backward|\w*adjoint\w*|requires_grad|retain_grad|enable_backward|grads?|func_(?:grad|replay)|autograd"
    r"|(?:from|to)_(?:torch|jax|paddle|dlpack)|fem|optim|jax_kernel|jax_callable"
    r"|exec|eval|__import__|import_module|runpy|importlib|unittest|pytest"
)
"""Names by which an adjoint is run, asked for or switched off, or by which code comes in that is not in sight."""

_KNOWS_NO_WARP = frozenset(
    {"numpy", "warp", "scipy", "matplotlib", "tqdm", "PIL", "imageio", "trimesh", "meshio", "pxr", "pyglet", "yaml"}
)


def is_forward_only(project: Project, entry: Module) -> bool:
    """Whether nothing in the files of a program could run an adjoint, and all of them are in sight."""
    key = ("forward-only", entry.path)
    known = project.memo.get(key)
    if not isinstance(known, bool):
        program = files(project, closure_of(project), entry)
        own = {module.name.partition(".")[0] for module in program}
        alone = all(_is_harmless(module.tree, own) for module in program) and not _is_for_others(project, entry)
        known = project.memo[key] = alone
    return known


def _is_for_others(project: Project, entry: Module) -> bool:
    """Whether other programs import the file: run by itself it is only tried out.

    A switch in it would hold for the programs that import it, and those may well differentiate. Where other files are
    not to be looked at, a file that tells how it was started may be one.
    """
    if project.follow_imports:
        return is_imported_beside(project, entry)
    return any("__name__" in _names(node) for node in ast.walk(entry.tree))


def import_of_warp(entry: Module) -> Span | None:
    """The first statement at the top level that imports Warp."""
    for statement in entry.tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)) and "warp" in _imported(statement):
            return entry.span(statement)
    return None


def _is_harmless(tree: ast.Module, own: set[str]) -> bool:
    for node in ast.walk(tree):
        if any(_DIFFERENTIATES.fullmatch(name) for name in _names(node)):
            return False
        if isinstance(node, (ast.Import, ast.ImportFrom)) and not _imported(node) <= own | _KNOWS_NO_WARP | _STANDARD:
            return False
    return True


_STANDARD = frozenset(sys.stdlib_module_names)


def _imported(node: ast.Import | ast.ImportFrom) -> set[str]:
    """The packages that a statement imports; a relative import is the project's own."""
    if isinstance(node, ast.ImportFrom):
        return set() if node.level else {(node.module or "").partition(".")[0]}
    return {alias.name.partition(".")[0] for alias in node.names}


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, (ast.keyword, ast.arg)):
        yield node.arg or ""
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.alias):
        yield from node.name.split(".")
    elif isinstance(node, ast.ImportFrom):
        yield from (node.module or "").split(".")

"""What ``--verify`` runs: the commands that the user gave, else the programs among the files that are checked."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from warplint.dataclass import dataclass
from warplint.discovery import Discovered
from warplint.finding import Finding
from warplint.imports import ImportClosure, imported_names
from warplint.names import absolute_module
from warplint.notebook import SUFFIX as NOTEBOOK
from warplint.project import Module, Project
from warplint.runner.command import Command, CommandError, for_notebook, for_script, parse
from warplint.runner.protocol import Entry, EntryKind, KernelTarget
from warplint.source import Unreadable
from warplint.verify.declared import draws_of
from warplint.verify.test_files import has_tests, is_named_as_tests, run_tests

NEVER_RUN = frozenset({"setup.py", "conftest.py", "noxfile.py", "__init__.py"})
"""Files that act on an environment or belong to a tool: running them is not what a check of gradients may do."""

_STARTS = frozenset({"Tape", "launch", "launch_tiled", "capture_launch"})
"""What a program does at its top level, and a library does not, under whatever name."""
_COMPUTES = frozenset({"warp.map", "warp.copy"})
"""The same of functions whose bare names may be anybody's."""


@dataclass(frozen=True)
class Plan:
    """The programs to run, in order; ``errors`` say which of the user's commands cannot be run, and why.

    ``instead``: the files that were named and would be run, did the user's commands not take their place.
    """

    commands: tuple[Command, ...]
    errors: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()


def plan(
    found: Discovered, findings: Iterable[Finding], run: Sequence[str], project: Project, python: str | None = None
) -> Plan:
    """Choose the programs; ``python`` is the interpreter that will run them (None: the active environment's).

    With commands in ``run`` these are all. Otherwise a file that was named itself runs as it stands if it is a program
    or opens a tape, and it, or what it imports in the project, uses Warp; of the files found in a folder those
    programs run that open a tape or have a finding in themselves or in what they import. Files of tests are programs
    that a test runner runs.
    """
    if run:
        given = _commands(run)
        named = [path for path in found.files if path in found.named and not _is_among(given.commands, path, project)]
        return replace(given, instead=tuple(named))
    closure = ImportClosure(project)
    flagged = frozenset(os.path.realpath(finding.span.path) for finding in findings)
    chosen, errors = [], []
    for path in found.files:
        module = _parsed(path, project)
        if module is None or os.path.basename(path) in NEVER_RUN:
            continue
        reach = closure.of(module)
        if not any("warp" in imported_names(each) for each in reach):
            continue
        tests = _is_test_file(path, module.tree)
        taped, program = _opens_tape(module.tree), tests or is_program(module, project)
        if path in found.named:
            runs = program or taped
        else:
            runs = program and (taped or not flagged.isdisjoint(_files(reach)))
        if runs:
            try:
                chosen.append(run_tests(path, module.tree, python) if tests else _script(path, module))
            except CommandError as error:
                errors.append(str(error))
    return Plan(tuple(chosen), tuple(errors))


def _is_test_file(path: str, tree: ast.Module) -> bool:
    """Whether a test runner is meant to run the file."""
    return has_tests(tree) and (is_named_as_tests(path) or not _has_main_guard(tree))


def _commands(run: Sequence[str]) -> Plan:
    commands, errors = [], []
    for text in run:
        try:
            commands.append(parse(text))
        except CommandError as error:
            errors.append(str(error))
    return Plan(tuple(commands), tuple(errors))


def _is_among(commands: Iterable[Command], path: str, project: Project) -> bool:
    """Whether one of the commands runs the file: as a script, as a module, or as an argument of a test runner."""
    module = _parsed(path, project)
    real = os.path.realpath(path)
    return any(
        real in [os.path.realpath(word.partition("::")[0]) for word in (command.entry.target, *command.entry.arguments)]
        or (module is not None and command.entry.kind is EntryKind.MODULE and command.entry.target == module.name)
        for command in commands
    )


def reaches(command: Command, path: str, project: Project) -> bool:
    """Whether the program may come to the file: it is the program, or something that it imports in the project.

    True for programs that are not a file of the project (``-m``, ``pytest``): nothing is known of what they import.
    """
    if command.entry.kind is not EntryKind.SCRIPT:
        return True
    module = _parsed(command.entry.target, project)
    return module is None or os.path.realpath(path) in _files(ImportClosure(project).of(module))


def kernel_targets(findings: Iterable[Finding], project: Project) -> tuple[KernelTarget, ...]:
    """The kernels that these findings stand in, as a child can import them; each once."""
    targets: dict[tuple[str, int], KernelTarget] = {}
    for finding in findings:
        span = finding.anchor.kernel
        module = _parsed(span.path, project) if span is not None else None
        if span is None or module is None or module.file is None:
            continue
        node = _function_at(module.tree, span.line)
        if node is not None and _importable(module, project):
            root, wanted = _import_root(module), draws_of(finding)
            known = targets.get((span.path, node.lineno))
            if known is not None:
                wanted = tuple(dict.fromkeys((*known.draws, *wanted)))
            targets[span.path, node.lineno] = KernelTarget(
                str(module.file), node.lineno, node.name, module.name, str(root), wanted
            )
    return tuple(targets.values())


def is_program(module: Module, project: Project) -> bool:
    """Whether running the file does something: a main guard; or at its top level a tape, a launch, a call of ours.

    "Of ours": of a function or class of this file, or of a file of the project that it imports.
    """
    tree = module.tree
    ours = _own_names(module, project)
    return _has_main_guard(tree) or any(
        isinstance(node, ast.Call)
        and (
            _called(node) in _STARTS
            or _root_name(node.func) in ours
            or module.imports.meaning_of(node.func) in _COMPUTES
        )
        for node in _top_level(tree)
    )


def _own_names(module: Module, project: Project) -> frozenset[str]:
    """The names of the project's functions, classes and modules at the file's top level."""
    names = set()
    for node in module.tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if project.exists(alias.name, module):
                    names.add(alias.asname or alias.name.partition(".")[0])
        elif isinstance(node, ast.ImportFrom):
            base = absolute_module(node.module, node.level, module.name, module.is_package)
            if base and project.exists(base, module):
                names.update(alias.asname or alias.name for alias in node.names)
    return frozenset(names)


def _root_name(function: ast.expr) -> str:
    while isinstance(function, ast.Attribute):
        function = function.value
    return function.id if isinstance(function, ast.Name) else ""


def _has_main_guard(tree: ast.Module) -> bool:
    return any(_is_main_guard(statement) for statement in tree.body)


def _opens_tape(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.Call) and _called(node) == "Tape" for node in ast.walk(tree))


def _is_main_guard(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.If):
        return False
    names = {node.id for node in ast.walk(statement.test) if isinstance(node, ast.Name)}
    values = {node.value for node in ast.walk(statement.test) if isinstance(node, ast.Constant)}
    return "__name__" in names and "__main__" in values


def _top_level(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes that run when the file runs: those outside functions and classes."""
    todo: list[ast.AST] = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        yield node
        todo.extend(ast.iter_child_nodes(node))


def _called(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _function_at(tree: ast.Module, line: int) -> ast.FunctionDef | None:
    """The function whose ``def`` or decorators stand on the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first <= line <= node.lineno:
                return node
    return None


def _importable(module: Module, project: Project) -> bool:
    """Whether the file can be imported for a kernel of its without running a program; a notebook cannot be at all."""
    return not module.path.endswith(NOTEBOOK) and (_has_main_guard(module.tree) or not is_program(module, project))


def _parsed(path: str, project: Project) -> Module | None:
    try:
        module = project.module(path)
        _ = module.tree
    except Unreadable:
        return None
    return module


def _files(modules: Iterable[Module]) -> frozenset[str]:
    return frozenset(os.path.realpath(module.file) for module in modules if module.file is not None)


def _import_root(module: Module) -> Path:
    """The folder that must be on ``sys.path`` for the module's dotted name to mean the file."""
    assert module.file is not None
    depth = len(module.name.split(".")) - (0 if module.is_package else 1)
    return module.file.parents[depth]


def _script(path: str, module: Module) -> Command:
    """``python FILE``, or ``python -m`` for a file of a package that imports relatively; a notebook as it stands."""
    if path.endswith(NOTEBOOK):
        return for_notebook(path)
    relative = any(isinstance(node, ast.ImportFrom) and node.level for node in _top_level(module.tree))
    if not relative or "." not in module.name:
        return for_script(path)
    search = os.pathsep.join(part for part in (str(_import_root(module)), os.environ.get("PYTHONPATH", "")) if part)
    command = parse(["python", "-m", module.name])
    return replace(command, entry=Entry(EntryKind.MODULE, module.name), environment={"PYTHONPATH": search})

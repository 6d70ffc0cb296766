"""Faults planted into right programs: each function lists the places where its fault fits, as changed trees.

A mutant need not be wrong (a launch that stores may be doubled without harm): ``oracle.py`` tells which are.
"""

from __future__ import annotations

import ast
import copy
import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Change = Callable[[ast.Module], None]


@dataclass(frozen=True)
class Mutant:
    """A changed program. ``lines`` are those of its text that differ, or stand beside what was taken away."""

    base: str
    kind: str
    text: str
    lines: frozenset[int]


def mutants(base: str, source: str) -> tuple[Mutant, ...]:
    """All mutants of a program, without doubles."""
    tree = ast.parse(source)
    original = ast.unparse(tree)
    found = {}
    for kind, planted in KINDS.items():
        for changed in planted(tree):
            ast.fix_missing_locations(changed)
            text = ast.unparse(changed)
            if text != original:
                found.setdefault(text, Mutant(base, kind, text, _changed_lines(original, text)))
    return tuple(found.values())


def _changed_lines(before: str, after: str) -> frozenset[int]:
    lines: set[int] = set()
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    for tag, _, _, start, stop in matcher.get_opcodes():
        if tag == "delete":
            lines |= {start, start + 1}
        elif tag != "equal":
            lines |= set(range(start + 1, stop + 1))
    return frozenset(lines)


# places -------------------------------------------------------------------------------------------------------------


def _is_call(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == name


def _is_method(node: ast.AST, *names: str) -> bool:
    called = node.value if isinstance(node, ast.Expr) else node
    return isinstance(called, ast.Call) and isinstance(called.func, ast.Attribute) and called.func.attr in names


def _is_launch(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and _is_call(statement.value, "wp.launch")


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for field in ("body", "orelse"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                yield block


def _copies(tree: ast.Module, wanted: Callable[[ast.AST], bool]) -> Iterator[tuple[ast.Module, ast.AST]]:
    """A copy of the tree for each node that is wanted, with that node of the copy."""
    for place, node in enumerate(ast.walk(tree)):
        if wanted(node):
            changed = copy.deepcopy(tree)
            yield changed, next(each for number, each in enumerate(ast.walk(changed)) if number == place)


def _statements(
    tree: ast.Module, wanted: Callable[[ast.stmt], bool]
) -> Iterator[tuple[ast.Module, list[ast.stmt], int]]:
    """A copy of the tree for each statement that is wanted, with its block and its place there."""
    for number, block in enumerate(_blocks(tree)):
        for place, statement in enumerate(block):
            if wanted(statement):
                yield _copied(tree, number, place)


def _launches_by_input(
    tree: ast.Module,
) -> Iterator[tuple[ast.Module, list[ast.stmt], int, ast.Call, int, ast.expr]]:
    """A copy of the tree for each array that a launch reads: block and place, the launch, the input and its place."""
    for number, block in enumerate(_blocks(tree)):
        for place, statement in enumerate(block):
            if _is_launch(statement):
                for at, given in enumerate(_listed(statement.value, "inputs")):  # type: ignore[attr-defined]
                    if _is_array(given):
                        changed, twin, _ = _copied(tree, number, place)
                        launch: ast.Call = twin[place].value  # type: ignore[attr-defined]
                        yield changed, twin, place, launch, at, given


def _copied(tree: ast.Module, number: int, place: int) -> tuple[ast.Module, list[ast.stmt], int]:
    changed = copy.deepcopy(tree)
    return changed, next(each for at, each in enumerate(_blocks(changed)) if at == number), place


def _listed(launch: ast.Call, which: str) -> list[ast.expr]:
    given = next((k.value for k in launch.keywords if k.arg == which), None)
    return given.elts if isinstance(given, ast.List) else []


def _is_array(given: ast.expr) -> bool:
    """Whether what is passed to a launch is an array, as far as the base programs go."""
    numbers = isinstance(given, ast.Name) and (given.id.isupper() or given.id in ("t", "spring"))
    return isinstance(given, (ast.Name, ast.Attribute, ast.Subscript)) and not numbers


def _arrays(launch: ast.Call, which: str) -> list[ast.expr]:
    """The arrays that are passed in ``inputs`` or ``outputs``."""
    return [given for given in _listed(launch, which) if _is_array(given)]


def _statement(text: str) -> ast.stmt:
    return ast.parse(text).body[0]


def _taped_arrays(tree: ast.Module) -> list[str]:
    """What module level calls the arrays that are passed to launches."""
    names: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.With):
            for launch in (each for each in ast.walk(node) if isinstance(each, ast.Call)):
                for array in (*_arrays(launch, "inputs"), *_arrays(launch, "outputs")):
                    names[ast.unparse(array).replace("[i]", "[1]").replace("[i + 1]", "[2]")] = None
    return list(names)


# faults -------------------------------------------------------------------------------------------------------------


def drop_requires_grad(tree: ast.Module) -> Iterator[ast.Module]:
    """An allocation without its gradient."""
    for changed, call in _copies(tree, lambda node: isinstance(node, ast.Call) and _asks_for_gradient(node)):
        call.keywords = [k for k in call.keywords if k.arg != "requires_grad"]  # type: ignore[attr-defined]
        yield changed


def retain_grad(tree: ast.Module) -> Iterator[ast.Module]:
    """An allocation that keeps its gradient."""
    for changed, call in _copies(tree, lambda node: isinstance(node, ast.Call) and _asks_for_gradient(node)):
        call.keywords.append(ast.keyword("retain_grad", ast.Constant(True)))  # type: ignore[attr-defined]
        yield changed


def _asks_for_gradient(call: ast.Call) -> bool:
    return any(k.arg == "requires_grad" for k in call.keywords)


def double_launch(tree: ast.Module) -> Iterator[ast.Module]:
    """The same launch twice."""
    for changed, block, place in _statements(tree, _is_launch):
        block.insert(place, copy.deepcopy(block[place]))
        yield changed


def drop_zero(tree: ast.Module) -> Iterator[ast.Module]:
    """Nothing is cleared between two iterations."""
    for changed, block, place in _statements(tree, lambda statement: _is_method(statement, "zero", "zero_")):
        block[place] = ast.Pass()
        yield changed


def unrecorded_launch(tree: ast.Module) -> Iterator[ast.Module]:
    """A launch that the tape does not record."""
    for changed, block, place in _statements(tree, _is_launch):
        block[place].value.keywords.append(ast.keyword("record_tape", ast.Constant(False)))  # type: ignore[attr-defined]
        yield changed


def launch_outside(tree: ast.Module) -> Iterator[ast.Module]:
    """The first statement of a tape's block before it, or its last one after it."""
    for end, shift in ((0, 0), (-1, 1)):
        for changed, block, place in _statements(tree, lambda s: isinstance(s, ast.With) and len(s.body) > 1):
            moved = block[place].body.pop(end)  # type: ignore[attr-defined]
            block.insert(place + shift, moved)
            yield changed


def fill_after_read(tree: ast.Module) -> Iterator[ast.Module]:
    """What a launch read is cleared after it."""
    yield from _after_launch(tree, lambda array, launch: f"{array}.zero_()")


def overwrite_after_read(tree: ast.Module) -> Iterator[ast.Module]:
    """What a launch read is overwritten by a kernel."""
    yield from _after_launch(
        tree, lambda array, launch: f"wp.launch(overwritten, dim={array}.size, inputs=[{array}], outputs=[{array}])"
    )


def copy_over_read(tree: ast.Module) -> Iterator[ast.Module]:
    """What a launch wrote is copied onto what it read."""
    yield from _after_launch(
        tree,
        lambda array, launch: "; ".join(f"wp.copy({array}, {ast.unparse(o)})" for o in _arrays(launch, "outputs")[:1]),
    )


def _after_launch(tree: ast.Module, text: Callable[[str, ast.Call], str]) -> Iterator[ast.Module]:
    for changed, block, place, launch, _, array in _launches_by_input(tree):
        added = text(ast.unparse(array), launch)
        if added:
            block.insert(place + 1, _statement(added))
            yield _importing(changed, "overwritten")


def _importing(tree: ast.Module, kernel: str) -> ast.Module:
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "mutation_kernels":
            names = {each.name for each in node.names}
            if kernel not in names:
                node.names.append(ast.alias(kernel))
    return tree


def reuse_buffers(tree: ast.Module) -> Iterator[ast.Module]:
    """A list of states as a ring of two or three."""
    names = {ast.unparse(n.value) for n in ast.walk(tree) if isinstance(n, ast.Subscript) and _is_state(n)}
    for name in sorted(names):
        for length in (2, 3):
            changed = copy.deepcopy(tree)
            for node in ast.walk(changed):
                if isinstance(node, ast.Subscript) and ast.unparse(node.value) == name and _is_state(node):
                    node.slice = ast.BinOp(node.slice, ast.Mod(), ast.Constant(length))
            yield changed


def _is_state(node: ast.Subscript) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in ("states", "path")


def in_place(tree: ast.Module) -> Iterator[ast.Module]:
    """The output of a launch is one of its inputs."""
    for changed, _, _, launch, _, array in _launches_by_input(tree):
        listed = _listed(launch, "outputs")
        if listed:
            listed[0] = copy.deepcopy(array)
            yield changed


def host_round_trip(tree: ast.Module) -> Iterator[ast.Module]:
    """An input goes through the host."""
    for changed, _, _, launch, at, array in _launches_by_input(tree):
        name = ast.unparse(array)
        text = f"wp.array({name}.numpy(), dtype={name}.dtype, requires_grad=True)"
        _listed(launch, "inputs")[at] = ast.parse(text, mode="eval").body
        yield changed


def write_before_backward(tree: ast.Module) -> Iterator[ast.Module]:
    """An array of the tape is cleared before the backward pass."""
    elsewhere = ("self", "last", "y", "loss")  # local names of functions, and what only the report reads
    names = [name for name in _taped_arrays(tree) if name.split(".")[0].split("[")[0] not in elsewhere]
    for name in names:
        for changed, block, place in _statements(tree, lambda statement: _is_method(statement, "backward")):
            block.insert(place, _statement(f"{name}.zero_()"))
            yield changed


def backward_twice(tree: ast.Module) -> Iterator[ast.Module]:
    """Two backward passes over one recording."""
    for changed, block, place in _statements(tree, lambda statement: _is_method(statement, "backward")):
        block.insert(place, copy.deepcopy(block[place]))
        yield changed


def read_after_zero(tree: ast.Module) -> Iterator[ast.Module]:
    """The gradient is read when it was cleared already."""
    for changed, block, place in _statements(tree, lambda statement: _is_method(statement, "zero")):
        statement = block.pop(place)
        at = next((i for i, s in enumerate(block) if _is_method(s, "backward")), None)
        if at is not None:
            block.insert(at + 1, statement)
            yield changed


def tape_per_step(tree: ast.Module) -> Iterator[ast.Module]:
    """A tape for each step, and the last one's backward alone."""
    for changed, block, place in _statements(
        tree, lambda s: isinstance(s, ast.With) and isinstance(s.body[0], ast.For)
    ):
        whole: ast.With = block[place]  # type: ignore[assignment]
        loop, rest = whole.body[0], whole.body[1:]
        assert isinstance(loop, ast.For)
        opened = "with wp.Tape() as tape:\n    pass"
        step, end = _statement(opened), _statement(opened)
        step.body, loop.body, end.body = loop.body, [step], rest  # type: ignore[attr-defined]
        block[place : place + 1] = [loop, end]
        yield changed


def tape_kept(tree: ast.Module) -> Iterator[ast.Module]:
    """One tape for all iterations, entered again and again."""
    for changed, block, place in _statements(tree, lambda s: isinstance(s, ast.For) and "wp.Tape()" in ast.unparse(s)):
        loop: ast.For = block[place]  # type: ignore[assignment]
        made = next((s for s in loop.body if isinstance(s, ast.Assign) and ast.unparse(s) == "tape = wp.Tape()"), None)
        if made is not None:
            loop.body.remove(made)
            block.insert(place, made)
            yield changed


def wrong_adjoint(tree: ast.Module) -> Iterator[ast.Module]:
    """A kernel whose custom adjoint is wrong, or that multiplies in place."""
    for right, wrong in (("steer", "steer_wrongly"), ("scaled", "scaled_in_place")):
        for changed, name in _copies(tree, lambda node, right=right: isinstance(node, ast.Name) and node.id == right):  # type: ignore[misc]
            name.id = wrong  # type: ignore[attr-defined]
            yield _importing(changed, wrong)


KINDS: dict[str, Callable[[ast.Module], Iterator[ast.Module]]] = {
    planted.__name__: planted
    for planted in (
        drop_requires_grad, retain_grad, double_launch, drop_zero, unrecorded_launch, launch_outside, fill_after_read,
        overwrite_after_read, copy_over_read, reuse_buffers, in_place, host_round_trip, write_before_backward,
        backward_twice, read_after_zero, tape_per_step, tape_kept, wrong_adjoint,
    )
}  # fmt: skip

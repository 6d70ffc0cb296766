"""Makes disagreeing cases small: parts of them are left out as long as the disagreement holds.

One round tries the reductions of all cases at once, since what costs is the module.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.differential.answers import answers
from tests.differential.cases import OWN, Case
from tests.differential.comparing import Compared
from tests.differential.measuring import measured

MOST_CANDIDATES = 120
"""Kernels a round."""
MOST_ROUNDS = 14
_KEPT = ("annotation", "decorator_list", "func", "target", "targets", "test")
"""Parts that are not replaced: a condition that is always true shows nothing."""


def shrunk(results: Sequence[Compared], folder: Path, cache: str | None = None) -> list[Compared]:
    """The smallest cases found that disagree as ``results`` do."""
    best = list(results)
    growing = set(range(len(best)))
    for round_number in range(MOST_ROUNDS):
        if not growing:
            break
        tried = _promising(best, sorted(growing), folder / f"round_{round_number}")
        found = measured([result.case for _, result in tried], folder / f"round_{round_number}", cache)
        better: dict[int, Compared] = {}
        for (number, result), what in zip(tried, found, strict=True):
            smaller = number not in better or size(result.case) < size(better[number].case)
            if what.outcome == best[number].measured.outcome and smaller:
                better[number] = dataclasses.replace(result, measured=what)
        for number, result in better.items():
            best[number] = result
        growing = set(better)
    return best


def size(case: Case) -> int:
    return len(case.body) + len(case.functions)


def _promising(best: Sequence[Compared], numbers: Sequence[int], folder: Path) -> list[tuple[int, Compared]]:
    """The reductions of which warplint says what it says of the whole, an equal number of each case."""
    share = max(4, MOST_CANDIDATES // len(numbers))
    candidates: list[tuple[int, Case]] = []
    for number in numbers:
        made = sorted(set(reductions(best[number].case)), key=lambda case: (size(case), case.body))
        candidates += [(number, case) for case in made[: 4 * share]]
    said = answers([case for _, case in candidates], folder / "programs")
    kept: list[tuple[int, Compared]] = []
    count = dict.fromkeys(numbers, 0)
    for (number, case), answer in zip(candidates, said, strict=True):
        if answer.verdict is best[number].answer.verdict and count[number] < share:
            count[number] += 1
            kept.append((number, dataclasses.replace(best[number], case=case, answer=answer)))
    return kept


def reductions(case: Case) -> Iterator[Case]:
    """Smaller cases: statements left out, blocks opened, expressions replaced by parts of them or by numbers."""
    if case.aliases:
        yield dataclasses.replace(case, aliases=())
    whole = ast.parse(f"{case.functions}\n\ndef kernel():\n" + "\n".join(f"    {x}" for x in case.body.splitlines()))
    for tree in _trees(whole):
        yield _case(case, tree)


def _case(case: Case, tree: ast.Module) -> Case:
    *functions, kernel = tree.body
    assert isinstance(kernel, ast.FunctionDef)
    body = "\n".join(ast.unparse(statement) for statement in kernel.body)
    used = [ast.unparse(function) for function in functions]
    kept = [
        text for text in used if _name(text) in body or any(_name(text) in other for other in used if other != text)
    ]
    names = [name for pair in case.aliases for name in pair]
    aliases = case.aliases if all(f"{name}[" in body for name in names) else ()
    return dataclasses.replace(case, functions="\n\n".join(kept), body=body, aliases=aliases)


def _name(function: str) -> str:
    return OWN + function.partition(OWN)[2].partition("(")[0]


def _trees(whole: ast.Module) -> Iterator[ast.Module]:
    """Copies of the module, each with one change."""
    for number, node in enumerate(ast.walk(whole)):
        for field in ("body", "orelse"):
            statements = getattr(node, field, None)
            if isinstance(statements, list) and not isinstance(node, ast.Module):
                yield from _blocks(whole, number, field, statements)
        for field, value in ast.iter_fields(node):
            for position, part in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(part, ast.expr) and field not in _KEPT:
                    for smaller in _parts(part):
                        yield _changed(whole, number, field, position if isinstance(value, list) else None, smaller)


def _blocks(whole: ast.Module, number: int, field: str, statements: list[ast.stmt]) -> Iterator[ast.Module]:
    """Without a run of statements; with a compound statement opened."""
    count = len(statements)
    for length in {1, count // 2, count // 4} - {0, *([count] if field == "body" else [])}:
        for start in range(count - length + 1):
            yield _changed(whole, number, field, None, statements[:start] + statements[start + length :])
    if field == "orelse" and count:
        yield _changed(whole, number, field, None, [])
    for position, statement in enumerate(statements):
        inside = getattr(statement, "body", None)
        if isinstance(inside, list):
            opened = statements[:position] + inside + statements[position + 1 :]
            yield _changed(whole, number, field, None, opened)


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    """Expressions that may stand in place of one."""
    if isinstance(node, (ast.Constant, ast.Name)):
        return
    text = ast.unparse(node)
    if not text.startswith("real("):
        yield ast.parse("real(0.7)", mode="eval").body
    if isinstance(node, ast.Subscript):
        return
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.expr) and not (isinstance(node, ast.Call) and part is node.func):
            yield part


def _changed(whole: ast.Module, number: int, field: str, position: int | None, value: object) -> ast.Module:
    """A copy with one field of one node replaced."""
    tree = copy.deepcopy(whole)
    node = next(each for count, each in enumerate(ast.walk(tree)) if count == number)
    if position is None:
        setattr(node, field, value)
    else:
        getattr(node, field)[position] = value
    return tree

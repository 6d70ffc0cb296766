"""The programs' variants, each cut out as a program of its own: what the analysis is asked about.

Everything else is blanked, so that lines and columns stay those of the program that was measured.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .measure import OVERWRITES, PROGRAMS

_COMPARING = ("check", "probe")
_SWITCH = 'os.environ.get("OVW") == "1"'
"""The condition on which p08_components sets ``enable_vector_component_overwrites``."""


@dataclass(frozen=True)
class Variant:
    """One comparison of a program, and the text that makes only it."""

    program: str
    case: str
    text: str

    @property
    def path(self) -> str:
        """The file that the text stands for."""
        return str(PROGRAMS / f"{self.program}.py")


@dataclass(frozen=True)
class _Comparison:
    """A call of ``check`` or ``probe``. ``kept``: the element of the loop around it that makes this case."""

    case: str
    statement: ast.Expr
    loop: ast.For | None = None
    kept: ast.expr | ast.keyword | None = None


def variants(program: str) -> Iterator[Variant]:
    """All comparisons of one program. p10_singular makes its kernels itself: each is written out in their place."""
    text = (PROGRAMS / f"{program}.py").read_text()
    if program == "p10_singular":
        yield from _of_expressions(program, text)
        return
    tree = ast.parse(text)
    comparisons = list(_comparisons(tree.body, None))
    for one in comparisons:
        if isinstance(one.case, str):
            yield Variant(program, one.case, _alone(text, tree, one, comparisons))
            if _SWITCH in text:
                switched = _alone(text, tree, one, comparisons, switch="True")
                yield Variant(program, f"{one.case} {OVERWRITES}", switched)


def _comparisons(body: list[ast.stmt], loop: ast.For | None) -> Iterator[_Comparison]:
    for statement in body:
        if isinstance(statement, ast.For):
            yield from _comparisons(statement.body, statement)
        elif isinstance(statement, ast.Try):
            yield from _comparisons(statement.body, loop)
        elif _compares(statement) and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            name = compile(ast.Expression(statement.value.args[0]), "<case>", "eval")
            for bound, kept in _elements(loop) if loop is not None else [({}, None)]:
                yield _Comparison(eval(name, {"T": "", **bound}), statement, loop, kept)


def _compares(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and isinstance(statement.value.func, ast.Name)
        and statement.value.func.id in _COMPARING
    )


def _elements(loop: ast.For) -> Iterator[tuple[Mapping[str, object], ast.expr | ast.keyword]]:
    """The elements of ``for n, k in dict(a=..., b=...).items()`` or ``for n in ("a", "b")``, and what they bind."""
    if isinstance(loop.iter, ast.Tuple) and isinstance(loop.target, ast.Name):
        for element in loop.iter.elts:
            assert isinstance(element, ast.Constant)
            yield {loop.target.id: element.value}, element
        return
    assert isinstance(loop.iter, ast.Call)
    assert isinstance(loop.iter.func, ast.Attribute)
    assert isinstance(loop.iter.func.value, ast.Call)
    assert isinstance(loop.target, ast.Tuple)
    name = loop.target.elts[0]
    assert isinstance(name, ast.Name)
    for keyword in loop.iter.func.value.keywords:
        yield {name.id: keyword.arg}, keyword


class _Page:
    """A text in which places are blanked."""

    def __init__(self, text: str) -> None:
        self.lines = [list(line) for line in text.splitlines()]

    def blank(self, node: ast.AST, leaving: str = "", *, whole_lines: bool = False) -> None:
        """Put spaces over a node. ``whole_lines``: over everything on its lines."""
        first, last = node.lineno - 1, node.end_lineno - 1  # type: ignore[attr-defined]
        for number in range(first, last + 1):
            line = self.lines[number]
            start = 0 if whole_lines or number > first else node.col_offset  # type: ignore[attr-defined]
            end = len(line) if whole_lines or number < last else node.end_col_offset  # type: ignore[attr-defined]
            line[start:end] = " " * (end - start)
        start = node.col_offset  # type: ignore[attr-defined]
        self.lines[first][start : start + len(leaving)] = leaving

    def put(self, line: int, column: int, text: str) -> None:
        """Write over what stands there."""
        self.lines[line - 1][column : column + len(text)] = text

    @property
    def text(self) -> str:
        return "\n".join(map("".join, self.lines)) + "\n"


def _alone(
    text: str, tree: ast.Module, wanted: _Comparison, all_of_them: list[_Comparison], switch: str = "False"
) -> str:
    page = _Page(text.replace(_SWITCH, switch.ljust(len(_SWITCH))))
    for statement in {one.statement for one in all_of_them} - {wanted.statement}:
        page.blank(statement, "pass")
    if wanted.loop is not None:
        _keep_element(page, wanted)
    needed = _needed(tree, wanted)
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node not in needed:
            for decorator in node.decorator_list:
                page.blank(decorator, whole_lines=True)
            page.blank(node, whole_lines=True)
    return page.text


def _keep_element(page: _Page, wanted: _Comparison) -> None:
    assert wanted.loop is not None
    for _, element in _elements(wanted.loop):
        if element is not wanted.kept:
            page.blank(element)
            line = page.lines[element.end_lineno - 1]  # type: ignore[operator]
            rest = "".join(line[element.end_col_offset :])
            if rest.lstrip().startswith(","):
                line[element.end_col_offset + rest.index(",")] = " "
    if isinstance(wanted.loop.iter, ast.Tuple):  # "(x)" is no tuple
        page.put(wanted.loop.iter.lineno, wanted.loop.iter.col_offset, "[")
        page.put(wanted.loop.iter.end_lineno or 0, (wanted.loop.iter.end_col_offset or 0) - 1, "]")


def _needed(tree: ast.Module, wanted: _Comparison) -> set[ast.stmt]:
    """The definitions that a comparison stands on."""
    definitions = [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    others = [node for node in tree.body if node not in definitions and not isinstance(node, (ast.For, ast.Try))]
    roots: list[ast.AST] = [wanted.statement]
    if wanted.loop is not None and isinstance(wanted.kept, ast.keyword):
        roots.append(wanted.kept.value)
    roots += [node for node in tree.body if isinstance(node, ast.Try)]
    roots += [node for node in others if not _compares(node)]
    names = {name for root in roots for name in _names(root)}
    needed: set[ast.stmt] = set()
    while True:
        found = [node for node in definitions if node not in needed and (node.name in names or _serves(node, names))]
        if not found:
            return needed
        needed.update(found)
        names.update(name for node in found for name in _names(node))


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}


def _serves(node: ast.FunctionDef | ast.ClassDef, names: set[str]) -> bool:
    """Whether it is the custom adjoint or the replay of a function that is needed."""
    return any(
        isinstance(decorator, ast.Call)
        and isinstance(decorator.func, ast.Attribute)
        and decorator.func.attr in ("func_grad", "func_replay")
        and not names.isdisjoint(_names(decorator))
        for decorator in node.decorator_list
    )


# -- p10_singular: one expression each --------------------------------------------------------------------------------

_SCALAR = """import warp as wp
f32 = wp.float32
@wp.kernel
def k(x: wp.array(dtype=f32), y: wp.array(dtype=f32)):
    i = wp.tid()
    a = x[i]
    y[i] = {expression}
x = wp.array({at}, dtype=f32, requires_grad=True)
y = wp.zeros({count}, dtype=f32, requires_grad=True)
with wp.Tape() as t:
    wp.launch(k, {count}, inputs=[x, y])
t.backward(grads={{y: wp.ones_like(y)}})
print(x.grad.numpy())
"""


def _of_expressions(program: str, text: str) -> Iterator[Variant]:
    tables = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in ("SC", "VE")
    }
    for case, (expression, at) in tables["SC"].items():
        yield Variant(program, case, _SCALAR.format(expression=expression, at=at, count=len(at)))
    for case, expression in tables["VE"].items():
        text = _SCALAR.format(expression=expression, at=[[0.0, 0.0, 0.0]], count=1)
        text = text.replace("x: wp.array(dtype=f32)", "x: wp.array(dtype=wp.vec3)").replace(
            "    a = x[i]", "    v = x[i]"
        )
        text = text.replace(
            "x = wp.array([[0.0, 0.0, 0.0]], dtype=f32", "x = wp.array([[0.0, 0.0, 0.0]], dtype=wp.vec3"
        )
        yield Variant(program, f"{case} at 0", text)

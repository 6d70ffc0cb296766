"""The quick walk over syntax trees finds what Python's own finds, in its order."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import warplint
from warplint.syntax import walk

LEFT_OUT = (ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop, ast.alias)
EVERY_KIND = """
from a import b as c
async def f(x, /, y: int = 1, *z, k=2, **w) -> str:
    global g
    async with x as (m, n), y: await k
    async for i in x: yield i
    while not x or y is None and -z < 1 <= 2: break
    else: continue
    try: raise E from x
    except (A, B) as error: del x.y, z[1:2, ...]
    finally: assert x, f"{y!r:>{k}}"
    match x:
        case {"a": 1, **rest} | [1, *others] | C(2, d=None) as whole if whole: pass
        case _: x += [i async for i in y if i]
    return (lambda a, *, b=1: (yield from a)), {**k, 1: 2}, {*z}, (p := 3), x if y else z
class D(A, metaclass=M):
    v: int
    @decorated
    def h(self): nonlocal_ = 1
"""


@pytest.mark.parametrize("text", [EVERY_KIND, Path(warplint.__file__).with_name("lint.py").read_text()])
def test_walks_as_python_does(text: str) -> None:
    tree = ast.parse(text)
    assert list(walk(tree)) == [each for each in ast.walk(tree) if not isinstance(each, LEFT_OUT)]

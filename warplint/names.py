"""What a name means in one file, as far as its import statements say: aliases, from-imports, star imports.

An import table maps local names to absolute dotted paths (``wp`` to ``warp``, ``launch`` to ``warp.launch``,
``ok`` to ``pkg.orbit_kernels``). It reads the syntax tree alone; whether a path leads to a file of the project is
:mod:`warplint.project`'s business. Warp may bear any alias, and its private homes (``warp._src.types.array``) are the
public names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from warplint.dataclass import dataclass

WARP = "warp"

_PRIVATE_HOMES = ("warp._src.", "warp.context.", "warp.types.", "warp.builtins.")


def public_name(path: str) -> str:
    """The public spelling of a dotted path of Warp's: ``warp._src.context.launch`` is ``warp.launch``."""
    if not path.startswith("warp."):
        return path
    if path.startswith("warp._src."):
        head, _, rest = path.removeprefix("warp._src.").partition(".")
        if head in ("optim", "fem", "sparse", "utils", "render", "autograd"):
            return f"warp.{head}.{rest}" if rest else f"warp.{head}"
        return f"warp.{rest}" if rest else path
    for home in _PRIVATE_HOMES[1:]:
        if path.startswith(home) and path not in ("warp.types.vector", "warp.types.matrix"):
            return f"warp.{path.removeprefix(home)}"
    return path


def dotted(node: ast.expr) -> str | None:
    """``"a.b.c"`` for a chain of attributes on a name, else None."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    parts.append(node.id)
    return ".".join(reversed(parts))


def absolute_module(name: str | None, level: int, module: str, is_package: bool) -> str:
    """The module that a (relative) from-import of ``module`` means; ``""`` where it climbs out of the package."""
    if not level:
        return name or ""
    parts = module.split(".")
    climbed = level - 1 if is_package else level
    if climbed > len(parts):
        return ""
    base = parts[: len(parts) - climbed]
    return ".".join([*base, name] if name else base)


@dataclass(frozen=True)
class ImportTable:
    """Local names bound by imports, to absolute dotted paths; ``stars`` are the modules of star imports, in order."""

    names: Mapping[str, str]
    stars: tuple[str, ...] = ()

    @staticmethod
    def of(statements: Iterable[ast.stmt], module: str = "__main__", is_package: bool = False) -> ImportTable:
        """The table of a body, including imports under ``if``, ``try`` and ``with``, not those inside functions."""
        names: dict[str, str] = {}
        stars: list[str] = []
        for node in _imports(statements):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    head = alias.name.partition(".")[0]
                    names[alias.asname or head] = alias.name if alias.asname else head
                continue
            source = absolute_module(node.module, node.level, module, is_package)
            for alias in node.names:
                if alias.name == "*":
                    stars.append(source)
                elif source:
                    names[alias.asname or alias.name] = f"{source}.{alias.name}"
        return ImportTable(names, tuple(stars))

    def meaning(self, path: str) -> str | None:
        """The absolute path of a dotted name whose first part is imported, in Warp's public spelling; else None."""
        head, dot, rest = path.partition(".")
        origin = self.names.get(head)
        return None if origin is None else public_name(origin + dot + rest)

    def meaning_of(self, node: ast.expr) -> str | None:
        """As :meth:`meaning`, for an expression."""
        path = dotted(node)
        return None if path is None else self.meaning(path)


def import_lines(data: bytes) -> Iterator[int]:
    """Where the lines begin that hold the word ``import``: the search for a word is far faster than one by lines."""
    at = data.find(b"import")
    while at >= 0:
        yield data.rfind(b"\n", 0, at) + 1
        end = data.find(b"\n", at)
        at = data.find(b"import", end) if end >= 0 else -1


def _imports(statements: Iterable[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    for statement in statements:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield statement
        elif isinstance(statement, (ast.If, ast.Try, ast.With, ast.For, ast.While)):
            for block in (statement.body, getattr(statement, "orelse", ()), getattr(statement, "finalbody", ())):
                yield from _imports(block)
            for handler in getattr(statement, "handlers", ()):
                yield from _imports(handler.body)

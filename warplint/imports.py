"""Which files a file's result rests on: itself and all that it imports, directly or not, inside the project.

Found by a scan of the bytes and the project's own look-up, without parsing: a cached result must cost far less than
the tree it saves, and a file that appears later and changes what an import means must change the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplint.names import absolute_module

if TYPE_CHECKING:
    from warplint.project import Module, Project

_FROM = re.compile(rb"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]*(\([^)]*\)|[^\n#;]*)", re.MULTILINE)
_IMPORT = re.compile(rb"^[ \t]*import[ \t]+([^\n#;]+)", re.MULTILINE)
_COMMENT = re.compile(rb"#[^\n]*")
_NAME = re.compile(rb"([\w.]+)(?:\s+as\s+\w+)?")


class ImportClosure:
    """Answers :meth:`of` for the files of one project, each file scanned once."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._direct: dict[Module, tuple[Module, ...]] = {}

    def of(self, module: Module) -> tuple[Module, ...]:
        """The module and all that it imports, directly or not, in an order that depends on the files alone."""
        found = {module: None}
        todo = [module]
        while todo:
            for imported in self._imported(todo.pop()):
                if imported not in found:
                    found[imported] = None
                    todo.append(imported)
        return tuple(found)

    def _imported(self, module: Module) -> tuple[Module, ...]:
        direct = self._direct.get(module)
        if direct is None:
            found = dict.fromkeys(self._project.find(name, module) for name in imported_names(module))
            direct = self._direct[module] = tuple(each for each in found if each is not None)
        return direct


def imported_names(module: Module) -> Iterator[str]:
    """The dotted names that may be modules: of ``from a.b import c`` these are ``a``, ``a.b`` and ``a.b.c``."""
    seen: set[str] = set()
    for name in _names(module):
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            prefix = ".".join(parts[:end])
            if prefix and prefix not in seen:
                seen.add(prefix)
                yield prefix


def _names(module: Module) -> Iterator[str]:
    data = module.source.data
    for match in _FROM.finditer(data):
        name = match[2].decode(errors="ignore")
        base = absolute_module(name or None, len(match[1]), module.name, module.is_package)
        if base:
            yield base
            for item in _NAME.finditer(_COMMENT.sub(b"", match[3])):
                yield f"{base}.{item[1].decode(errors='ignore')}"
    for match in _IMPORT.finditer(data):
        for item in _NAME.finditer(match[1]):
            yield item[1].decode(errors="ignore")

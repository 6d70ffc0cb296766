"""Which files a file's result rests on: itself and all that it imports, directly or not, inside the project.

Found by a scan of the bytes and the project's own look-up, without parsing: a cached result must cost far less than
the tree it saves, and a file that appears later and changes what an import means must change the answer.
"""

from __future__ import annotations

import hashlib
import re
from bisect import insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from warplint.names import absolute_module, import_lines
from warplint.rings import rings

if TYPE_CHECKING:
    from warplint.project import Module, Project

_FROM = re.compile(rb"[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]*(\([^)]*\)|[^\n#;]*)")
_IMPORT = re.compile(rb"[ \t]*import[ \t]+([^\n#;]+)")
_COMMENT = re.compile(rb"#[^\n]*")
_NAME = re.compile(rb"([\w.]+)(?:\s+as\s+\w+)?")


class ImportClosure:
    """What the files of one project import, directly or not; each file is scanned once."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._direct: dict[Module, tuple[Module, ...]] = {}
        self._digests: dict[Module, bytes] = {}
        self._names: dict[Module, frozenset[str]] = {}
        self._all: dict[Module, tuple[Module, ...]] = {}
        self._unnamed: dict[Module, list[str]] = {}
        self._seen = 0

    def of(self, module: Module) -> tuple[Module, ...]:
        """The module and all that it imports, directly or not, in an order that depends on the files alone."""
        known = self._all.get(module)
        if known is not None:
            return known
        found = {module: None}
        todo = [module]
        while todo:
            current = todo.pop()
            for imported in self._direct.get(current) or self._imported(current):
                if imported not in found:
                    found[imported] = None
                    todo.append(imported)
        self._all[module] = result = tuple(found)
        return result

    def digest(self, module: Module) -> bytes:
        """What tells this content of :meth:`of`, and the names it is imported by, from any other.

        Modules that import each other in a ring share the digest of the ring, and a ring's holds the digests of what
        it imports (a Merkle tree over the strongly connected components), so that all files together cost one walk.
        """
        if module not in self._digests:
            for ring in rings(module, self._imported, self._digests):
                self._digests.update(dict.fromkeys(ring, self._ring_digest(ring)))
        return self._digests[module]

    def _ring_digest(self, ring: tuple[Module, ...]) -> bytes:
        own = sorted(f"{m.path}\0{m.name}".encode(errors="surrogateescape") + m.source.digest for m in ring)
        outside = {each for member in ring for each in self._imported(member)}.difference(ring)
        below = sorted(self._digests[each] for each in outside)
        return hashlib.blake2b(b"\0".join([*own, b"imports", *below]), digest_size=20).digest()

    def names(self, module: Module) -> frozenset[str]:
        """The names that the file's own import statements look up."""
        names = self._names.get(module)
        if names is None:
            names = self._names[module] = frozenset(imported_names(module))
        return names

    def unnamed(self) -> Mapping[Module, Sequence[str]]:
        """The names that were looked up for files until now, and that none of their import statements has."""
        asked = self._project.looked_up  # it only grows
        for module, name in asked[self._seen :]:
            if name not in self.names(module):
                insort(self._unnamed.setdefault(module, []), name)
        self._seen = len(asked)
        return self._unnamed

    def _imported(self, module: Module) -> tuple[Module, ...]:
        direct = self._direct.get(module)
        if direct is None:
            found = dict.fromkeys(self._project.find(name, module) for name in imported_names(module))
            direct = self._direct[module] = tuple(each for each in found if each is not None)
        return direct


def closure_of(project: Project) -> ImportClosure:
    """The one closure of a project's files."""
    known = project.memo.get(("imports", "closure"))
    if not isinstance(known, ImportClosure):
        known = project.memo["imports", "closure"] = ImportClosure(project)
    return known


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
    for start in import_lines(data):
        match = _FROM.match(data, start)
        if match:
            yield from _from_names(match, module)
            continue
        match = _IMPORT.match(data, start)
        for item in _NAME.finditer(match[1]) if match else ():
            yield item[1].decode(errors="ignore")


def _from_names(match: re.Match[bytes], module: Module) -> Iterable[str]:
    name = match[2].decode(errors="ignore")
    base = absolute_module(name or None, len(match[1]), module.name, module.is_package)
    if base:
        yield base
        for item in _NAME.finditer(_COMMENT.sub(b"", match[3])):
            yield f"{base}.{item[1].decode(errors='ignore')}"

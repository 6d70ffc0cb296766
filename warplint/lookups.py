"""What a result rests on beyond the imports that a file's text names: what was asked on the way, and the answers.

The key of a kept result is the content of a file and of all that it imports, which is known before anything is looked
at. A run may ask for more: a submodule that is reached as an attribute, or whether a file beside it imports this one.
Such questions are known only afterwards. They are kept with the result, and asked again before it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from warplint.dataclass import dataclass
from warplint.source import Unreadable

if TYPE_CHECKING:
    from warplint.imports import ImportClosure
    from warplint.project import Module, Project


@dataclass(frozen=True)
class Lookup:
    """A module that was looked up for a file which does not import it by that name.

    ``found`` is the digest of what it meant, with all that this imports; ``""``: nothing of the project.
    """

    importer: str
    name: str
    found: str


@dataclass(frozen=True)
class Beyond:
    """The questions that one file's result rests on. ``imported_beside``: None where nobody asked."""

    lookups: tuple[Lookup, ...] = ()
    imported_beside: bool | None = None


def files(project: Project, closure: ImportClosure, entry: Module) -> tuple[Module, ...]:
    """The files that a result rests on: the entry, what it imports, and what was looked up beyond that until now."""
    reached = dict.fromkeys(closure.of(entry))
    unnamed = closure.unnamed()
    todo = list(reached)
    for module in todo:  # grows while it is walked
        for name in unnamed.get(module, ()):
            found = project.find(name, module)
            new = [each for each in closure.of(found) if each not in reached] if found is not None else []
            reached.update(dict.fromkeys(new))
            todo += new
    return tuple(todo)


def beyond(project: Project, closure: ImportClosure, entry: Module) -> Beyond:
    """What was asked for ``entry`` and for the files that its result rests on, until now."""
    unnamed = closure.unnamed()
    lookups = (
        Lookup(module.path, name, _digest(project.find(name, module), closure))
        for module in files(project, closure, entry)
        for name in unnamed.get(module, ())
    )
    asked = project.memo.get(_key(entry))
    return Beyond(tuple(lookups), asked if isinstance(asked, bool) else None)


def holds(told: Beyond, project: Project, closure: ImportClosure, entry: Module) -> bool:
    """Whether the same questions have the same answers now."""
    if told.imported_beside is not None and told.imported_beside != is_imported_beside(project, entry):
        return False
    try:
        return all(
            _digest(project.find(each.name, project.module(each.importer)), closure) == each.found
            for each in told.lookups
        )
    except Unreadable:
        return False


def is_imported_beside(project: Project, entry: Module) -> bool:
    """Whether a file beside ``entry``, or in the folder around, imports it."""
    key = _key(entry)
    known = project.memo.get(key)
    if not isinstance(known, bool):
        known = project.memo[key] = any(_imports(project, file, entry) for file in _naming(project, entry))
    return known


def _key(entry: Module) -> tuple[str, object]:
    return "imported beside", entry.path


def _naming(project: Project, entry: Module) -> Iterator[Path]:
    """The files beside an entry, and in the folder around, whose text names it."""
    path = Path(entry.path)
    stem = path.stem.encode()
    for folder in (path.parent, path.parent.parent):
        for file, text in _texts(project, folder).items():
            if file.name != path.name and stem in text:
                yield file


def _texts(project: Project, folder: Path) -> Mapping[Path, bytes]:
    """The files of a folder, read once for all the entries that lie in it."""
    key = "texts of", folder
    known = project.memo.get(key)
    if not isinstance(known, dict):
        known = project.memo[key] = {file: file.read_bytes() for file in folder.glob("*.py")}
    return known


def _imports(project: Project, file: Path, entry: Module) -> bool:
    try:
        return any(module.path == entry.path for module in project.imported_by(project.module(file)))
    except Unreadable:
        return False


def _digest(found: Module | None, closure: ImportClosure) -> str:
    return closure.digest(found).hex() if found is not None else ""

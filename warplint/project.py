"""The files that belong together: parses each once, and finds the file an import means, inside the project only.

A name is looked up beside the importing file, at the root of the package it lies in (walking up while there is an
``__init__.py``), in the folders given, and in their ``src``. What is installed elsewhere is outside, and so is Warp's
own library, even where its files are among those given: its meaning is fixed (:data:`WARP_LIBRARY`).
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable
from dataclasses import field
from functools import cached_property
from pathlib import Path

from warplint.dataclass import dataclass
from warplint.finding import Span
from warplint.names import ImportTable, absolute_module, import_lines
from warplint.rings import rings
from warplint.source import SourceFile, Unreadable, read, span_of

INSTALLED = ("site-packages", "dist-packages")
"""Folders of installed distributions: of these a project has only the package that the file itself lies in."""

WARP_LIBRARY = re.compile(r"warp(?:\.(?!tests\b|examples\b).*)?$")
"""Module names that are Warp itself, never a file of the project."""

_PLAIN_LEVELS = 2
"""How many folders without ``__init__.py`` may lie between a file, or a package, and the package around it."""

_PROJECT_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")

_IMPORT = re.compile(rb"[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import|import[ \t]+([\w.]+))")


@dataclass(frozen=True)
class Probe:
    """A question about a file's text: a pattern, and words of which one occurs wherever the pattern does."""

    words: tuple[bytes, ...]
    pattern: re.Pattern[bytes]

    def found_in(self, data: bytes) -> bool:
        """Whether the pattern occurs."""
        return any(word in data for word in self.words) and self.pattern.search(data) is not None


_EFFECT = Probe(
    (
        b"config.",
        b"clear_kernel_cache(",
        b"\nwp.launch(",
        b"\nwarp.launch(",
        b"Tape(",
        b"kernel(",
        b"module_options(",
        b"get_module(",
    ),
    re.compile(
        rb"^[\w.]*\bconfig\.\w+\s*=[^=]|^(?:\w+\.)?(?:clear_kernel_cache|launch|get_module)\(|^with .*Tape\("
        rb"|^@[\w.]*kernel\([^)]*\bmodule\s*=\s*[\"'](?!unique[\"'])"
        rb"|^(?:\w+\.)?set_module_options\((?:[^)\n]*\bmodule\s*=|[^)]*\}\s*,\s*\w)",
        re.MULTILINE,
    ),
)


@dataclass(frozen=True, eq=False)
class Module:
    """A file of the project under the name it is imported by. ``tree`` raises :class:`Unreadable`."""

    name: str
    source: SourceFile
    file: Path | None = None
    is_package: bool = False
    _spans: dict[ast.AST, Span] = field(default_factory=dict, repr=False)
    _texts: dict[ast.AST, str] = field(default_factory=dict, repr=False)

    @property
    def path(self) -> str:
        """The file's name as it is shown, with ``/``."""
        return self.source.path

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree, parsed once."""
        return self.source.tree

    @cached_property
    def lines(self) -> tuple[str, ...] | None:
        """The text by line where columns need it, None for a file in ASCII."""
        return None if self.source.data.isascii() else self.source.lines

    @cached_property
    def imports(self) -> ImportTable:
        """What the file's top-level imports bind."""
        return ImportTable.of(self.tree.body, self.name, self.is_package)

    @property
    def package(self) -> str:
        """The package that relative imports start from."""
        return self.name if self.is_package else self.name.rpartition(".")[0]

    def span(self, node: ast.AST) -> Span:
        """The place of a node of this file."""
        span = self._spans.get(node)
        if span is None:
            span = self._spans[node] = span_of(node, self.path, self.lines)
        return span

    def text(self, node: ast.AST) -> str:
        """The source text of a node, ``""`` where it has no place."""
        known = self._texts.get(node)
        if known is None:
            known = self._texts[node] = self._text(node)
        return known

    def _text(self, node: ast.AST) -> str:
        line, end = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
        if line is None or end is None:
            return ""
        start_offset: int = node.col_offset  # type: ignore[attr-defined]
        end_offset: int = node.end_col_offset  # type: ignore[attr-defined]
        lines = [text.encode() for text in self.source.lines[line - 1 : end]]
        lines[-1] = lines[-1][:end_offset]
        lines[0] = lines[0][start_offset:]
        return b"\n".join(lines).decode(errors="replace")


@dataclass(eq=False)
class Project:
    """The files given and what they import from the same tree. Caches live as long as the project does."""

    folders: tuple[Path, ...] = ()
    follow_imports: bool = True
    _by_file: dict[Path, Module | None] = field(default_factory=dict, repr=False)
    _by_path: dict[str, Module] = field(default_factory=dict, repr=False)
    _found: dict[tuple[Path, str], Path | None] = field(default_factory=dict, repr=False)
    _resolved: dict[tuple[Path | None, str], Module | None] = field(default_factory=dict, repr=False)
    memo: dict[tuple[str, object], object] = field(default_factory=dict, repr=False)
    """What other rooms keep for as long as the project lives, by room and key."""
    _roots: dict[Path, tuple[Path, ...]] = field(default_factory=dict, repr=False)
    _around: dict[Path, tuple[Path, ...]] = field(default_factory=dict, repr=False)
    _listed: dict[Path, frozenset[str]] = field(default_factory=dict, repr=False)
    _reached: dict[Probe, dict[Module, bool]] = field(default_factory=dict, repr=False)
    _finds: dict[Probe, dict[Module, bool]] = field(default_factory=dict, repr=False)
    _asked: set[tuple[Module, str]] = field(default_factory=set, repr=False)
    looked_up: list[tuple[Module, str]] = field(default_factory=list, repr=False)
    """The files for which names were looked up until now, found or not, and the names, each once."""

    @staticmethod
    def for_paths(paths: Iterable[str | Path], follow_imports: bool = True) -> Project:
        """The project of the files and folders named on a command line; ``follow_imports`` false: each file alone."""
        folders = dict.fromkeys(
            Path(path).absolute() if Path(path).is_dir() else Path(path).absolute().parent for path in paths
        )
        return Project(tuple(folders), follow_imports)

    def add(self, source: SourceFile) -> Module:
        """Take a file that is already read (an editor's buffer, standard input) under the name it is shown by."""
        file = Path(source.path).absolute()
        module = Module(_module_name(file), source, file, file.name == "__init__.py")
        self._by_file[file] = self._by_path[source.path] = module
        return module

    def module(self, path: str | Path) -> Module:
        """The file at ``path``; raises :class:`Unreadable` where it cannot be read."""
        known = self._by_path.get(str(path))
        if known is not None:
            return known
        file = Path(path).absolute()
        module = self._by_file.get(file)
        if module is None:
            source = read(file, str(path).replace("\\", "/"))
            module = Module(_module_name(file), source, file, file.name == "__init__.py")
            self._by_file[file] = module
        self._by_path[str(path)] = module
        return module

    def find(self, name: str, importer: Module | None = None) -> Module | None:
        """The project's module called ``name`` (absolute, dotted), as seen from ``importer``; None: outside."""
        if not self.follow_imports or not name or WARP_LIBRARY.match(name):
            return None
        folder = importer.file.parent if importer is not None and importer.file is not None else None
        if importer is not None and (importer, name) not in self._asked:
            self._asked.add((importer, name))
            self.looked_up.append((importer, name))
        key = (folder, name)
        if key not in self._resolved:
            self._resolved[key] = self._search(name, folder, importer)
        return self._resolved[key]

    def exists(self, name: str, importer: Module | None = None) -> bool:
        """Whether ``name`` is a module or a namespace folder of the project."""
        return self.find(name, importer) is not None

    def has_import_effects(self, module: Module) -> bool:
        """Whether importing the file may change more than its own names: options, caches, launches at top level, or
        what another module holds and how that is compiled.

        Such a file must run when it is imported; any other may wait until a name of it is needed.
        """
        return self.reaches(module, _EFFECT)

    def reaches(self, module: Module, probe: Probe) -> bool:
        """Whether the text of the file, or of anything that it leads to by imports, matches; users of Warp only."""
        known = self._reached.setdefault(probe, {})
        for ring in rings(module, self.imported_by, known):
            below = (target for member in ring for target in self.imported_by(member))
            found = any(self._matches(member, probe) for member in ring) or any(known.get(target) for target in below)
            known.update(dict.fromkeys(ring, found))
        return known[module]

    def leads_to(self, module: Module, probe: Probe, files: int = 24) -> bool:
        """The same for the nearest ``files`` files, breadth first: small projects whole, large ones in part."""
        key = (f"leads to {files}", (module, probe))
        known = self.memo.get(key)
        if known is None:
            near = [module]
            for current in near:  # grows while it is walked, up to its bound
                found = [target for target in self.imported_by(current) if target not in near]
                near += found[: max(files - len(near), 0)]
            known = self.memo[key] = any(self._matches(current, probe) for current in near)
        return bool(known)

    def finds(self, module: Module, probe: Probe) -> bool:
        """Whether the file's own text matches; searched once."""
        known = self._finds.setdefault(probe, {})
        found = known.get(module)
        if found is None:
            found = known[module] = probe.found_in(module.source.data)
        return found

    def _matches(self, module: Module, probe: Probe) -> bool:
        return module.source.mentions_warp and self.finds(module, probe)

    def imported_by(self, module: Module) -> tuple[Module, ...]:
        """The files that a file's import statements name, wherever in it they stand; told from its text alone."""
        known = self.memo.get(("imports", module))
        if isinstance(known, tuple):
            return known
        found: dict[Module, None] = {}
        data = module.source.data
        for start in import_lines(data):
            match = _IMPORT.match(data, start)
            if match is None:
                continue
            name = (match.group(1) or match.group(2)).decode(errors="ignore")
            level = len(name) - len(name.lstrip("."))
            target = self.find(absolute_module(name.lstrip(".") or None, level, module.name, module.is_package), module)
            if target is not None:
                found[target] = None
        self.memo["imports", module] = result = tuple(found)
        return result

    def _search(self, name: str, folder: Path | None, importer: Module | None) -> Module | None:
        for root in self._search_roots(folder, importer, name):
            file = self._locate(root, name)
            if file is None:
                continue
            if file.is_dir():
                return self._namespace(file, name)
            return self._load(file, name)
        return None

    def _search_roots(self, folder: Path | None, importer: Module | None, name: str) -> Iterable[Path]:
        """Where to look, in order: beside the importer, at the root of its package, in the folders given."""
        found: list[Path] = []
        if folder is not None:
            *found, root = self._roots_around(folder)
            if root.name in INSTALLED:
                own = importer is not None and importer.name.partition(".")[0] == name.partition(".")[0]
                return [*found, root] if own else found
            found.append(root)
        for given in self.folders:
            found += [root for root in self._given_roots(given) if root.name not in INSTALLED]
        return dict.fromkeys(found)

    def _roots_around(self, folder: Path) -> tuple[Path, ...]:
        """The folder itself where it is no package, and the root of its packages."""
        known = self._around.get(folder)
        if known is None:
            beside = () if (folder / "__init__.py").exists() else (folder,)
            known = self._around[folder] = (*beside, _package_root(folder))
        return known

    def _given_roots(self, given: Path) -> tuple[Path, ...]:
        roots = self._roots.get(given)
        if roots is None:
            found = [given, given / "src", _package_root(given)]
            for parent in (given, *list(given.parents)[:4]):
                if any((parent / mark).exists() for mark in _PROJECT_MARKS):
                    found += [parent, parent / "src"]
                    break
            roots = self._roots[given] = tuple(dict.fromkeys(root for root in found if root.is_dir()))
        return roots

    def _locate(self, root: Path, name: str) -> Path | None:
        key = (root, name)
        if key in self._found:
            return self._found[key]
        base = root.joinpath(*name.split("."))
        found: Path | None = None
        if not self._is_listed(root, name.partition(".")[0]):
            pass  # most names mean something installed elsewhere: one listing tells for all of them
        elif (base / "__init__.py").is_file():
            found = base / "__init__.py"
        elif (file := base.with_name(base.name + ".py")).is_file():
            found = file
        elif base.is_dir() and any(base.glob("*.py")):
            found = base
        self._found[key] = found
        return found

    def _is_listed(self, root: Path, top: str) -> bool:
        listed = self._listed.get(root)
        if listed is None:
            try:
                listed = frozenset(name.removesuffix(".py") for name in os.listdir(root))
            except OSError:
                listed = frozenset()
            self._listed[root] = listed
        return top in listed

    def _namespace(self, folder: Path, name: str) -> Module:
        module = self._by_file.get(folder)
        if module is None:
            module = Module(name, SourceFile(_shown(folder), b""), folder / "__init__.py", True)
            self._by_file[folder] = module
        return module

    def _load(self, file: Path, name: str) -> Module | None:
        if file not in self._by_file:
            try:
                source = read(file, _shown(file))
                self._by_file[file] = Module(name, source, file, file.name == "__init__.py")
            except Unreadable:
                self._by_file[file] = None
        return self._by_file[file]


def _shown(file: Path) -> str:
    """Relative to the working directory where it lies below it, with ``/``."""
    try:
        return file.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return file.as_posix()


def _package_root(folder: Path) -> Path:
    """The folder above the outermost package that ``folder`` lies in; folders without a file of it may lie between."""
    top, plain = None, 0
    for parent in (folder, *folder.parents):
        if (parent / "__init__.py").exists():
            top, plain = parent, 0
        elif plain == _PLAIN_LEVELS or parent.name in INSTALLED:
            break
        else:
            plain += 1
    return folder if top is None else top.parent


def _module_name(file: Path) -> str:
    """The dotted name by the packages the file lies in."""
    relative = file.relative_to(_package_root(file.parent)).with_suffix("")
    parts = relative.parts[:-1] if file.name == "__init__.py" else relative.parts
    return ".".join(parts) or file.stem

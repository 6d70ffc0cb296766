"""Start the user's program as ``python`` would: a file, ``-m``, ``-c``, or an installed console script.

Runs inside the child, so it needs the standard library alone. The program gets a ``__main__`` of its own, the
``sys.argv`` and ``sys.path[0]`` of its command, and cannot see who started it.
"""

from __future__ import annotations

import ast
import enum
import importlib.metadata
import importlib.util
import inspect
import io
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Mapping
from dataclasses import field
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

from warplint.dataclass import dataclass
from warplint.runner import overlay
from warplint.runner.protocol import Entry, EntryKind
from warplint.verify.records import Place


class EndingKind(str, enum.Enum):
    """How the program came to its end."""

    RETURNED = "returned"
    EXITED = "exited"
    RAISED = "raised"


@dataclass(frozen=True)
class Ending:
    """What became of the program: its exit status, and for an exception its last line and the user's place."""

    kind: EndingKind
    status: int
    text: str = ""
    place: Place | None = None

    @property
    def told(self) -> str:
        """The text, with the place of an exception behind it."""
        return f"{self.text} ({self.place[0]}:{self.place[1]})" if self.place is not None else self.text

    @property
    def stopped(self) -> str:
        """The word for it in a ``Program`` record."""
        if self.kind is EndingKind.RAISED:
            return "raised"
        return "end" if self.status == 0 else f"exit {self.status}"


class NotStartable(Exception):
    """There is no such program: no file, no module, no console script of that name."""


@dataclass(frozen=True)
class _Main:
    """What becomes ``__main__``: its code, where it came from, and the arguments it sees."""

    code: CodeType
    file: str | None
    spec: ModuleSpec | None
    package: str | None
    argv0: str
    given: Mapping[str, object] = field(default_factory=dict)
    """Names that it finds defined."""


def prepare_path(entry: Entry) -> None:
    """Put in front of ``sys.path`` what the interpreter would have put there for this command."""
    if getattr(sys.flags, "safe_path", False):
        return
    if entry.kind is EntryKind.SCRIPT:
        path = os.path.realpath(entry.target)
        sys.path.insert(0, path if os.path.isdir(path) else os.path.dirname(path))
    elif entry.kind is EntryKind.MODULE:
        sys.path.insert(0, os.getcwd())
    elif entry.kind is EntryKind.CODE:
        sys.path.insert(0, "")


def start(entry: Entry) -> Ending:
    """Run the program to its end and say how it ended; its exception is printed as Python prints it."""
    try:
        main = _resolve(entry)
    except NotStartable as error:
        return Ending(EndingKind.EXITED, 2, str(error))
    except SyntaxError as error:
        traceback.print_exception(error, limit=0)
        return Ending(EndingKind.RAISED, 1, f"SyntaxError: {error}", (error.filename or "", error.lineno or 0, ""))
    sys.argv[:] = [main.argv0, *entry.arguments]
    module = ModuleType("__main__")
    module.__dict__.update(__builtins__=__builtins__, __spec__=main.spec, __package__=main.package)
    module.__dict__.update(main.given)
    if main.file is not None:
        module.__dict__.update(__file__=main.file, __loader__=SourceFileLoader("__main__", main.file))
    sys.modules["__main__"] = module
    try:
        _execute(main.code, module.__dict__)
    except SystemExit as stop:
        return _exited(stop)
    except BaseException as error:
        return _raised(error)
    return Ending(EndingKind.RETURNED, 0)


def _execute(code: CodeType, names: dict[str, Any]) -> None:
    """Run the code; that of a notebook may await at its top level."""
    if not code.co_flags & inspect.CO_COROUTINE:
        exec(code, names)
        return
    import asyncio  # few notebooks await

    asyncio.run(eval(code, names))


def _resolve(entry: Entry) -> _Main:
    if entry.kind is EntryKind.SCRIPT:
        return _script(entry.target)
    if entry.kind is EntryKind.MODULE:
        return _module(entry.target)
    if entry.kind is EntryKind.CODE:
        return _Main(compile(entry.target, "<string>", "exec", dont_inherit=True), None, None, None, "-c")
    return _console_script(entry.target)


def _script(target: str) -> _Main:
    path = os.path.abspath(target)
    if os.path.isdir(path):
        path = os.path.join(path, "__main__.py")
    try:
        replaced = overlay.text_of(path)
        if replaced is None:
            with io.open_code(path) as file:
                source = file.read()
        else:
            source = replaced.encode()
    except OSError as error:
        raise NotStartable(f"cannot read {target}: {error.strerror}") from error
    if replaced is None or not _is_notebook(path):
        return _Main(compile(source, path, "exec", dont_inherit=True), path, None, None, target)
    code = compile(source, path, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    return _Main(code, path, None, None, target, {"display": _display, "get_ipython": _Shell})


def _is_notebook(path: str) -> bool:
    from warplint.notebook import SUFFIX  # no program but one with a replaced text needs it

    return path.endswith(SUFFIX)


class _Shell:
    """What ``get_ipython()`` gives a notebook here: magics that do nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *given, **named: None


def _display(*objects: object, **how: object) -> None:
    """Shows as text what IPython would show as a picture."""
    for each in objects:
        print(each)


def _module(name: str) -> _Main:
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(name + ".__main__")
    except (ImportError, ValueError) as error:
        raise NotStartable(f"cannot import {name}: {error}") from error
    if spec is None or spec.origin is None or spec.loader is None:
        raise NotStartable(f"there is no module {name} to run")
    code = spec.loader.get_code(spec.name)  # type: ignore[attr-defined]
    if not isinstance(code, CodeType):
        raise NotStartable(f"the module {name} has no code to run")
    return _Main(code, spec.origin, spec, spec.parent, spec.origin)


def _console_script(name: str) -> _Main:
    points = [point for point in importlib.metadata.entry_points(group="console_scripts") if point.name == name]
    if not points:
        raise NotStartable(f"there is no console script {name} in the environment of {sys.executable}")
    module, _, attribute = points[0].value.partition(":")
    source = f"import sys\nfrom {module} import {attribute.split('.')[0]}\nsys.exit({attribute}())\n"
    path = os.path.join(sysconfig.get_path("scripts"), name)
    return _Main(compile(source, path, "exec", dont_inherit=True), path, None, None, path)


_LIBRARIES = ("site-packages", "dist-packages", f"lib{os.sep}python", "<frozen")
"""Parts of the names of files that are not the user's."""


def _exited(stop: SystemExit) -> Ending:
    if stop.code is None or isinstance(stop.code, int):
        return Ending(EndingKind.EXITED, (stop.code or 0) & 0xFF)
    print(stop.code, file=sys.stderr)
    return Ending(EndingKind.EXITED, 1, str(stop.code))


def _raised(error: BaseException) -> Ending:
    shown = error.__traceback__.tb_next if error.__traceback__ is not None else None  # without the frame of `start`
    traceback.print_exception(type(error), error, shown)
    frames = traceback.extract_tb(shown)
    own = [frame for frame in frames if not any(part in frame.filename for part in _LIBRARIES)] or frames
    place = (own[-1].filename, own[-1].lineno or 0, own[-1].name) if own else None
    text = "".join(traceback.format_exception_only(type(error), error)).strip().splitlines()
    return Ending(EndingKind.RAISED, 1, text[-1] if text else type(error).__name__, place)

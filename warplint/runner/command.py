"""Take apart the command that starts a user's program: ``python -m pkg.train --steps 3``, ``pytest tests``, a script.

The child has to run *inside* that Python process, so the command is understood here instead of being given to a shell.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from warplint.dataclass import dataclass
from warplint.notebook import SUFFIX as NOTEBOOK
from warplint.runner.protocol import Entry, EntryKind


class CommandError(ValueError):
    """The command cannot be run under observation; the message says what can."""


@dataclass(frozen=True)
class Command:
    """A user's command, taken apart. ``interpreter_options`` are those before the program (``-u``, ``-W error`` …).

    ``interpreter`` is None where the command names none of its own (``python``, a console script). ``folder``: where
    it runs, if not where warplint was started. ``texts``: what is run in the place of files (absolute paths).
    """

    shown: str
    entry: Entry
    interpreter: str | None = None
    interpreter_options: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None
    folder: str | None = None
    texts: Mapping[str, str] = field(default_factory=dict)


_SHELL = frozenset({"&&", "||", ";", "|", "&", ">", ">>", "<", "2>&1"})
_OPTIONS_WITH_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs"})


def parse(command: str | Sequence[str]) -> Command:
    """Understand a command line (a string is split as a POSIX shell would, without expanding anything).

    Raises:
        CommandError: it is empty, needs a shell, or starts something that is not a Python program.
    """
    words = shlex.split(command) if isinstance(command, str) else list(command)
    shown = command if isinstance(command, str) else shlex.join(words)
    environment: dict[str, str] = {}
    while words and is_assignment(words[0]):
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    if not words:
        raise CommandError("the command is empty")
    if operators := _SHELL.intersection(words):
        raise CommandError(f"`{shown}` needs a shell (`{min(operators)}`): name one Python program and its arguments")
    head, rest = words[0], words[1:]
    if is_python(head):
        options, entry = _after_python(rest, shown)
        return Command(shown, entry, head if os.path.dirname(head) else None, options, environment)
    if head.endswith(NOTEBOOK):
        return replace(for_notebook(head), shown=shown)
    return Command(shown, _program(head, rest), None, (), environment)


def for_script(path: str) -> Command:
    """The command that runs one file as it stands, without arguments."""
    return Command(shlex.join(["python", path]), Entry(EntryKind.SCRIPT, path))


def for_notebook(path: str) -> Command:
    """The command that runs a notebook's code cells from the first to the last, as ``jupyter`` does: in its folder.

    Raises:
        CommandError: the file cannot be read, or is no notebook.
    """
    from warplint.source import Unreadable, read  # most commands name no notebook

    try:
        text = read(path).text
    except Unreadable as error:
        raise CommandError(f"{path}: {error.message}") from error
    file = os.path.abspath(path)
    environment = {"MPLBACKEND": os.environ.get("MPLBACKEND", "agg")}  # no window of a plot waits to be closed
    return Command(path, Entry(EntryKind.SCRIPT, file), None, (), environment, os.path.dirname(file), {file: text})


def find_interpreter(wanted: str | None, environment: Mapping[str, str] = os.environ) -> str:
    """The user's Python: ``wanted`` (a path or a name on PATH), else the active environment's, else this one.

    Raises:
        CommandError: ``wanted`` is not there.
    """
    if wanted is not None:
        found = shutil.which(os.path.expanduser(wanted))
        if found is None:
            raise CommandError(f"there is no Python interpreter {wanted}")
        return os.path.abspath(found)
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if prefix := environment.get(variable):
            for candidate in (Path(prefix, "bin", "python"), Path(prefix, "Scripts", "python.exe")):
                if os.path.exists(candidate):  # false, too, where its folder may not be read
                    return str(candidate)
    return sys.executable


def is_assignment(word: str) -> bool:
    """Whether the word sets an environment variable in front of a command: ``DEVICE=cpu``."""
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isidentifier()


def is_python(word: str) -> bool:
    """Whether the word starts a Python interpreter, by its name."""
    name = os.path.basename(word).removesuffix(".exe")
    return re.fullmatch(r"(python|pypy)[0-9.]*", name) is not None


def _after_python(words: list[str], shown: str) -> tuple[tuple[str, ...], Entry]:
    options: list[str] = []
    while words:
        word = words.pop(0)
        if word in ("-m", "-c"):
            if not words:
                raise CommandError(f"`{shown}`: something must follow {word}")
            kind = EntryKind.MODULE if word == "-m" else EntryKind.CODE
            return tuple(options), Entry(kind, words[0], tuple(words[1:]))
        if word in _OPTIONS_WITH_VALUE and words:
            options += [word, words.pop(0)]
        elif word.startswith("-") and word != "-":
            options.append(word)
        elif word == "-":
            break
        else:
            return tuple(options), Entry(EntryKind.SCRIPT, word, tuple(words))
    raise CommandError(f"`{shown}` starts no program: a file, -m MODULE or -c CODE is needed")


def _program(head: str, arguments: list[str]) -> Entry:
    """A script file, or the name of a console script such as ``pytest``."""
    path = Path(head)
    if path.suffix == ".py" or (path.is_dir() and (path / "__main__.py").exists()):
        return Entry(EntryKind.SCRIPT, head, tuple(arguments))
    if os.path.dirname(head):
        if not path.is_file():
            raise CommandError(f"there is no program {head}")
        with path.open("rb") as file:
            first = file.readline(256)
        if not (first.startswith(b"#!") and b"python" in first):
            raise CommandError(f"{head} is not a Python program")
        return Entry(EntryKind.SCRIPT, head, tuple(arguments))
    return Entry(EntryKind.CONSOLE, head, tuple(arguments))

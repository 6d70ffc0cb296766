"""Run a command as it is, with the watcher in each of its Python processes, and read what they told."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from warplint.dataclass import dataclass
from warplint.runner import answers
from warplint.runner.command import CommandError, find_interpreter, is_assignment, is_python
from warplint.runner.process import Exit, Limits, accompany
from warplint.runner.protocol import RUN_VARIABLE
from warplint.verify.records import ModuleLoad, Note, ProcessStarted, Workload

PACKAGE = Path(__file__).resolve().parent.parent
FOLDER_VARIABLE = "WARPLINT_BUILDS"
PACKAGE_VARIABLE = "WARPLINT_PACKAGE"


@dataclass(frozen=True)
class Invocation:
    """A command ready to be started: its words, the first of them a program that exists, and its own environment."""

    shown: str
    words: tuple[str, ...]
    environment: Mapping[str, str]


@dataclass(frozen=True)
class ProcessSeen:
    """One process that imported Warp. ``records`` are what it told, in order; times as in :class:`ProcessStarted`."""

    started: ProcessStarted
    records: tuple[object, ...] = ()

    @property
    def loads(self) -> tuple[ModuleLoad, ...]:
        """The modules that it loaded, Warp's own included, in order."""
        return tuple(record for record in self.records if isinstance(record, ModuleLoad))

    @property
    def workload(self) -> Workload | None:
        """Its launches; None where it was ended before it could tell."""
        return next((record for record in reversed(self.records) if isinstance(record, Workload)), None)


@dataclass(frozen=True)
class RunSeen:
    """One run of the command. ``began`` is on the same clock as the processes' times; ``ended`` has the seconds."""

    began: float
    ended: Exit
    processes: tuple[ProcessSeen, ...] = ()
    cache: str = ""

    @property
    def loads(self) -> tuple[ModuleLoad, ...]:
        """The loads of all processes, in order of time."""
        return tuple(sorted((load for each in self.processes for load in each.loads), key=lambda load: load.started))

    @property
    def built(self) -> tuple[ModuleLoad, ...]:
        """The loads for which the compiler ran."""
        return tuple(load for load in self.loads if load.compiled)


def invocation(words: Sequence[str], python: str | None = None) -> Invocation:
    """Find the program that a command starts. ``python``, a script and a console script mean the user's interpreter.

    Raises:
        CommandError: it is empty, or there is no such program.
    """
    rest = list(words)
    environment: dict[str, str] = {}
    while rest and is_assignment(rest[0]):
        name, _, value = rest.pop(0).partition("=")
        environment[name] = value
    if not rest:
        raise CommandError("the command is empty")
    shown = shlex.join(words)
    head = rest[0]
    if os.path.dirname(head) == "" and is_python(head):
        return Invocation(shown, (find_interpreter(python), *rest[1:]), environment)
    if head.endswith(".py") and os.path.isfile(head):
        return Invocation(shown, (find_interpreter(python), *rest), environment)
    # A console script (`pytest`) is first of all that of the interpreter, as it is where programs are verified.
    found = shutil.which(head, path=os.path.dirname(find_interpreter(python))) or shutil.which(head)
    if found is None:
        raise CommandError(_no_program(head))
    return Invocation(shown, (found, *rest[1:]), environment)


def _no_program(head: str) -> str:
    """Why a command's first word starts nothing."""
    if os.path.isdir(head):
        return f"{head} is a folder, not a program (`python {head}` runs the `__main__.py` of one)"
    if not os.path.isfile(head):
        return f"there is no program {head or 'without a name'}"
    if os.access(head, os.X_OK):
        return f"there is no program {head} on PATH; the file here is ./{head}"
    return f"{head} is a file that cannot be executed: name the program that runs it, too"


def observe(command: Invocation, cache: str, limits: Limits) -> RunSeen:
    """Run the command once with its kernel caches in the folder ``cache``; its output goes where ours goes.

    Raises:
        CommandError: the system cannot start it.
    """
    with tempfile.TemporaryDirectory(prefix="warplint-builds-", ignore_cleanup_errors=True) as folder:
        startup, told = Path(folder, "startup"), Path(folder, "told")
        startup.mkdir()
        told.mkdir()
        shutil.copy(PACKAGE / "builds" / "startup.py", startup / "sitecustomize.py")
        environment = _environment(command, cache, startup, told)
        began = time.monotonic()
        try:
            ended = accompany(command.words, environment, limits)
        except OSError as error:
            raise CommandError(f"{command.words[0]} cannot be started: {_reason(error, command.words[0])}") from error
        processes = [_process(answers.read(file)) for file in sorted(told.iterdir())]
    return RunSeen(began, ended, tuple(each for each in processes if each is not None), cache)


def _reason(error: OSError, program: str) -> str:
    if isinstance(error, FileNotFoundError) and os.path.isfile(program):
        return "the interpreter that its first line names is not there"
    return error.strerror or str(error)


def _environment(command: Invocation, cache: str, startup: Path, told: Path) -> Mapping[str, str]:
    environment = {**os.environ, **command.environment}
    behind = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join((str(startup), behind)) if behind else str(startup)
    environment["WARP_CACHE_PATH"] = os.path.join(cache, "warp")
    environment["CUDA_CACHE_PATH"] = os.path.join(cache, "cuda")
    environment[FOLDER_VARIABLE] = str(told)
    environment[PACKAGE_VARIABLE] = str(PACKAGE)
    environment[RUN_VARIABLE] = os.urandom(16).hex()
    return environment


def _process(records: Sequence[object]) -> ProcessSeen | None:
    started = next((record for record in records if isinstance(record, ProcessStarted)), None)
    return ProcessSeen(started, tuple(records)) if started is not None else None


def problems(run: RunSeen) -> tuple[str, ...]:
    """Why the processes could not be watched."""
    return tuple(record.text for each in run.processes for record in each.records if isinstance(record, Note))

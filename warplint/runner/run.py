"""Run the user's program under observation: a private folder, a request, a child, its answer."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from warplint.dataclass import dataclass
from warplint.runner import answers
from warplint.runner.command import Command, find_interpreter
from warplint.runner.process import Exit, Limits, Tick, supervise
from warplint.runner.protocol import (
    CHILD_RECORDS,
    ITERATIONS,
    RUN_VARIABLE,
    STARTUP,
    KernelTarget,
    Purpose,
    Request,
    write_request,
)
from warplint.runner.result import RunResult, last_place
from warplint.verify.records import Program

PACKAGE = Path(__file__).resolve().parent.parent
"""The folder of the package ``warplint``: all that the child sees of the linter's environment."""
RECORDING_SHARE = 0.5
"""The share of the time limit after which recording stops, so that the questions find time."""


DEFAULT_LIMITS = Limits(120.0)


def _silent(seconds: float) -> None:
    """Show no progress."""


@dataclass(frozen=True)
class RunOptions:
    """How children are run.

    ``python``: the user's interpreter (None: the active environment's). ``device``: redirect every device request
    there. ``limits``: per child. ``folder``: its working directory (default: the command's). ``cache``:
    an isolated kernel cache; None uses the user's own, which is then never cleared. ``texts``: files that are to have
    another text in this run; ``config``: options of ``wp.config`` that are assigned before the program begins (where
    builds are counted). ``iterations``: complete iterations after which a run is stopped, ``horizon``: backward calls
    that one may have. ``tick``: called while the child runs.
    """

    python: str | None = None
    device: str | None = None
    limits: Limits = DEFAULT_LIMITS
    folder: str | None = None
    cache: str | None = None
    seed: int = 0
    iterations: int = ITERATIONS
    horizon: int | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, object] = field(default_factory=dict)
    tick: Tick = _silent


def run(command: Command, options: RunOptions, purpose: Purpose = Purpose.GRADIENTS) -> RunResult:
    """Run a command and return what its child recorded.

    Raises:
        CommandError: the interpreter that is asked for does not exist. Everything that happens after the start of the
            child (a crash, a hang, no Warp in that interpreter) is told by the result instead.
    """
    return _run(command, (), options, purpose)


def check_kernels(kernels: Sequence[KernelTarget], options: RunOptions) -> RunResult:
    """Check kernels alone, without a program, in one child.

    Raises:
        CommandError: as :func:`run`.
    """
    return _run(None, tuple(kernels), options, Purpose.KERNELS)


def _run(
    command: Command | None, kernels: tuple[KernelTarget, ...], options: RunOptions, purpose: Purpose
) -> RunResult:
    named = command.interpreter if command is not None and options.python is None else None
    interpreter = find_interpreter(named or options.python)
    flags = command.interpreter_options if command is not None else ()
    with _private_folder() as folder:
        request = _request(command, kernels, options, purpose, folder)
        asked = folder / "request.json"
        (folder / STARTUP).mkdir()
        shutil.copy(PACKAGE / "builds" / "startup.py", folder / STARTUP / "sitecustomize.py")
        write_request(request, str(asked))
        arguments = [interpreter, *flags, str(PACKAGE / "runner" / "bootstrap.py"), str(asked)]
        environment = _environment(command, options, folder)
        ended, tail = supervise(arguments, environment, _folder(command, options), options.limits, options.tick)
        records = answers.read(Path(request.records))
        children = tuple(answers.read(path) for path in sorted(folder.glob(CHILD_RECORDS.format("*"))))
        crash = Path(request.crash)
        report = crash.read_text(errors="replace") if crash.exists() else ""
    shown = command.shown if command is not None else f"{len(kernels)} kernels alone"
    program = next((record for record in reversed(records) if isinstance(record, Program)), None)
    place = last_place(report, str(PACKAGE)) or last_place(tail, str(PACKAGE)) if _broke(ended) else None
    memory = options.limits.memory
    result = RunResult(shown, purpose, interpreter, records, program, ended, tail, place, memory)
    return replace(result, children=tuple(_of_child(result, each) for each in children))


def _of_child(result: RunResult, records: tuple[object, ...]) -> RunResult:
    """The answer of a process that the program started; how it ended, nobody knows but itself."""
    program = next((record for record in reversed(records) if isinstance(record, Program)), None)
    seconds = program.seconds if program is not None else 0.0
    ended = Exit(0, seconds=seconds)
    return replace(result, records=records, program=program, exit=ended, output_tail="", last_place=None)


def _broke(ended: Exit) -> bool:
    return ended.signal is not None or ended.limit is not None


def _request(
    command: Command | None, kernels: tuple[KernelTarget, ...], options: RunOptions, purpose: Purpose, folder: Path
) -> Request:
    texts = command.texts if command is not None else {}
    return Request(
        purpose=purpose,
        records=str(folder / "records.jsonl"),
        crash=str(folder / "crash.txt"),
        folder=str(folder),
        limit=options.limits.seconds,
        began=time.monotonic(),
        memory=options.limits.memory,
        stop_recording_after=options.limits.seconds * RECORDING_SHARE,
        entry=command.entry if command is not None else None,
        kernels=kernels,
        device=options.device,
        isolated_cache=options.cache is not None,
        seed=options.seed,
        iterations=options.iterations,
        horizon=options.horizon,
        texts={os.path.realpath(path): text for path, text in {**texts, **options.texts}.items()},
        config=dict(options.config),
    )


def _folder(command: Command | None, options: RunOptions) -> str:
    return options.folder or (command.folder if command is not None else None) or os.getcwd()


def _environment(command: Command | None, options: RunOptions, folder: Path) -> Mapping[str, str]:
    environment = dict(os.environ)
    environment.update((command.environment if command is not None else None) or {})
    temporary = folder / "tmp"
    temporary.mkdir()
    environment.update(dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(temporary)))
    environment[RUN_VARIABLE] = os.urandom(16).hex()
    if options.cache is not None:
        environment["WARP_CACHE_PATH"] = options.cache
        environment["CUDA_CACHE_PATH"] = os.path.join(options.cache, "cuda")
    return environment


@contextlib.contextmanager
def _private_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="warplint-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)

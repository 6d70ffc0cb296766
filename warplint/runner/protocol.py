"""What parent and child agree on: how a child is started, what it is asked, how it answers.

The parent writes one :class:`Request` as JSON into the run's private folder and starts, in the *user's* interpreter::

    <python> [interpreter options] <warplint>/runner/bootstrap.py <private folder>/request.json

``bootstrap.py`` makes the package ``warplint`` importable from its folder alone (nothing else of the environment that
the linter is installed in), puts ``sys.path[0]`` where the user's command would have it, enables ``faulthandler`` into
``request.crash`` (its stack is the "last known place" of a crash or a hang) and calls, for ``request.purpose``::

    warplint.verify.engine.child.main(request, channel)            Purpose.GRADIENTS
    warplint.verify.engine.kernel_child.main(request, channel)     Purpose.KERNELS
    warplint.builds.child.main(request, channel)            Purpose.BUILDS

The child starts the user's program with ``warplint.runner.entry.start(request.entry)``, which returns an ``Ending``
whatever the program does (return, raise, ``sys.exit``), and answers with records (``warplint/verify/records.py``)
through ``channel.send(record)``: one JSON object a line, one ``write`` a line on a descriptor opened for appending, so
that lines of forked processes do not mix and what was sent before a crash is kept. The last record is ``Program``. A
child that leaves without one is described by the parent from its exit status and the crash file.

What the child must keep to:

- ``request.stop_recording_after`` seconds after its start it stops recording and asks its questions; the whole
  process group is killed ``request.limit`` seconds after the start;
- it clears no kernel cache unless ``request.isolated_cache`` (it sends a ``Note`` instead and goes on);
- with ``request.device`` every device request is redirected there (and a ``Note`` says so);
- processes that the *user's program* forks send nothing here (``channel.mine()`` is false there); one that computes
  gradients answers in a file of its own (:func:`records_of_child`).

The child's standard input is empty; its output is the program's and is kept by the parent only in its tail. ``TMPDIR``
lies in the private folder, which is removed afterwards. At a limit the parent first sends ``SIGUSR2``, on which
``faulthandler`` writes the stack to the crash file, and then ``SIGKILL`` to the group.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from warplint.dataclass import dataclass
from warplint.proof import Draw
from warplint.verify.records import to_json

RUN_VARIABLE = "WARPLINT_RUN"
"""Environment variable with a token of the run: what the program started and left behind is found by it."""

ITERATIONS = 2
"""Complete iterations after which a run is stopped: stale accumulation and carried state show in the second only."""


class Purpose(str, enum.Enum):
    """What a child is for; each has its own module on the child's side."""

    GRADIENTS = "gradients"
    KERNELS = "kernels"
    BUILDS = "builds"


CHILD_MODULES = {
    Purpose.GRADIENTS: "warplint.verify.engine.child",
    Purpose.KERNELS: "warplint.verify.engine.kernel_child",
    Purpose.BUILDS: "warplint.builds.child",
}


class EntryKind(str, enum.Enum):
    """How a program is started: ``python FILE``, ``python -m MODULE``, ``python -c CODE``, an installed script."""

    SCRIPT = "script"
    MODULE = "module"
    CODE = "code"
    CONSOLE = "console"


@dataclass(frozen=True)
class Entry:
    """The user's program. ``target`` is the file, the module's name, the code, or the console script's name."""

    kind: EntryKind
    target: str
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class KernelTarget:
    """A kernel to check alone: the file and line of its ``def``, its name, and how to import its module.

    ``root`` is the folder to have on ``sys.path`` so that ``module`` (dotted) can be imported. ``draws`` are inputs
    that the claims about it ask for, besides the ordinary ones.
    """

    path: str
    line: int
    name: str
    module: str
    root: str
    draws: tuple[Draw, ...] = ()


@dataclass(frozen=True)
class Request:
    """What one child is asked to do. Times are seconds from the child's start, paths are absolute."""

    purpose: Purpose
    records: str
    crash: str
    folder: str
    limit: float
    stop_recording_after: float
    entry: Entry | None = None
    kernels: tuple[KernelTarget, ...] = ()
    device: str | None = None
    isolated_cache: bool = False
    seed: int = 0
    began: float | None = None
    """When the run was started (``time.monotonic``, which all processes of a system share)."""
    memory: int | None = None
    """Bytes that the program may take; None: any."""
    iterations: int = ITERATIONS
    """Complete iterations (backward calls whose gradient was used or cleared) after which the run is stopped."""
    horizon: int | None = None
    """Backward calls that one iteration may have; None: a few for each iteration."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Files (absolute real paths) that are to have another text in this run: a fix that is tried out."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Options of ``wp.config`` that are assigned before the program begins: a fix that is tried out, too."""


def write_request(request: Request, path: str) -> None:
    """Write ``request`` where the bootstrap will read it."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump(dataclasses.asdict(request), file)


def read_request(path: str) -> Request:
    """Read what the parent asked for."""
    with open(path, encoding="utf-8") as file:
        fields: dict[str, Any] = json.load(file)
    entry = fields.pop("entry")
    kernels = fields.pop("kernels")
    fields["purpose"] = Purpose(fields["purpose"])
    return Request(
        entry=None if entry is None else Entry(EntryKind(entry["kind"]), entry["target"], tuple(entry["arguments"])),
        kernels=tuple(_target(**target) for target in kernels),
        **fields,
    )


def _target(draws: Iterable[str], **fields: Any) -> KernelTarget:
    return KernelTarget(draws=tuple(Draw(draw) for draw in draws), **fields)


STARTUP = "startup"
"""The folder beside the request that processes which the program starts have in front of their ``PYTHONPATH``."""
CHILD_RECORDS = "records-{}.jsonl"
"""The answer of a process that the program started, beside that of the program itself."""


def records_of_child(records: str, process: int) -> str:
    """Where a process that the program started answers."""
    return os.path.join(os.path.dirname(records), CHILD_RECORDS.format(process))


class Channel:
    """The child's way to answer: appends records to the file, whatever process of the run it is called in."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._owner = os.getpid()
        self._gathered: list[bytes] | None = None

    def send(self, record: Any) -> None:
        """Append one record as one line, in one write (retried until all of it is out)."""
        line = (to_json(record) + "\n").encode()
        if self._gathered is not None:
            self._gathered.append(line)
        else:
            self._write(line)

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """What is sent meanwhile is written at its end: thousands of writes take longer than all else about events."""
        self._gathered = []
        try:
            yield
        finally:
            lines, self._gathered = self._gathered, None
            self._write(b"".join(lines))

    def _write(self, text: bytes) -> None:
        while text:
            text = text[os.write(self._descriptor, text) :]

    def mine(self) -> bool:
        """Whether this is the process that the parent started, not one that was forked from it."""
        return os.getpid() == self._owner

"""In each process of a measured command: tells its loads, its launches, and what may cause a module to be built again.

It changes nothing that the program computes or builds. Each process writes a file of its own (JSON lines), a forked one
from its first record on.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
import time
from typing import Any, NoReturn

from warplint.builds.circumstances import Circumstances
from warplint.verify.build_records import (
    ModuleLoad,
    Note,
    ProcessStarted,
    to_json,
)
from warplint.verify.engine import warp_modules
from warplint.verify.engine.warp_workload import Launches, watch_launches


def begin(folder: str, started: float, importing: float) -> None:
    """Watch this process, which has just imported Warp, and those that are forked from it."""
    watcher = _Watcher(folder, started, importing)
    problem = warp_modules.watch_loads(watcher.loaded)
    if problem is not None:
        watcher.send(Note("no-builds", problem))
        return
    watcher.circumstances.watch()
    watch_launches(watcher.launches)
    atexit.register(watcher.end)
    _end_before_leaving(watcher)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=watcher.forked)


def _end_before_leaving(watcher: _Watcher) -> None:
    """``os._exit`` passes ``atexit`` by; the children of ``multiprocessing`` leave so."""
    leave = os._exit

    @functools.wraps(leave)
    def leaving(status: int) -> NoReturn:
        watcher.end()
        leave(status)

    setattr(os, "_exit", leaving)  # noqa: B010 - what the program gets from now on


class _Watcher:
    def __init__(self, folder: str, started: float, importing: float) -> None:
        self.launches = Launches()
        self._folder, self._started, self._importing = folder, started, importing
        self.circumstances = Circumstances(self.send)
        self._file: int | None = None
        self._open()

    def _open(self) -> int:
        import warp

        process, version = os.getpid(), str(warp.config.version)
        path = os.path.join(self._folder, f"{self._started:017.6f}-{process}.jsonl")
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        arguments = tuple(sys.orig_argv)
        self.send(ProcessStarted(process, os.getppid(), arguments, self._started, self._importing, version))
        return self._file

    def send(self, record: Any) -> None:
        """Append a record to this process's file."""
        file = self._file if self._file is not None else self._open()
        line = (to_json(record) + "\n").encode()
        while line:
            line = line[os.write(file, line) :]

    def loaded(self, load: ModuleLoad, block_dim: int | None) -> None:
        """A module was built or taken from the cache; the launches so far are told with it."""
        self.send(load)

    def end(self) -> None:
        """The process is about to leave; one that was forked and did nothing with Warp is not told."""
        if self._file is not None or self.launches.numbers:
            self.send(self.launches.told(complete=True))

    def forked(self) -> None:
        """This is a process forked from the one that was watched so far."""
        self._file, self._started, self._importing = None, time.monotonic(), 0.0
        self.circumstances.forget()
        self.launches.forget()

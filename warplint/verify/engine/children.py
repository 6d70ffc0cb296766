"""Processes that the user's program starts: each that computes gradients is a program of its own.

A forked process has the hooks already: it forgets what was recorded before it, answers in a file of its own, is judged
where it has seen enough, and then goes on unwatched, since the program waits for what it has to do.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import sysconfig
from collections.abc import Callable
from types import FrameType
from typing import Any

from warplint.verify.engine.execution.memory import CodeStack
from warplint.verify.engine.recording.user_frames import user_stack

OWN = "warplint."


def on_fork(forked: Callable[[CodeStack], None]) -> None:
    """Call ``forked`` in each process that the user's program forks (not in those that we fork), with its place."""
    original = getattr(os, "fork", None)
    if original is None:
        return

    def fork() -> int:
        process = int(original())
        caller = sys._getframe(1)
        if process == 0 and not str(caller.f_globals.get("__name__", "")).startswith(OWN):
            forked(_outside_libraries(user_stack(caller)))
        return process

    os.fork = fork


def _outside_libraries(stack: CodeStack) -> CodeStack:
    """The frames that are none of Python's own library's, which forks for ``multiprocessing``."""
    library = sysconfig.get_paths()["stdlib"] + os.sep
    packages = os.path.join(library, "site-packages")
    own = [f for f in stack if f[0].co_filename.startswith(library) and not f[0].co_filename.startswith(packages)]
    return tuple(frame for frame in stack if frame not in own)


def on_termination(ending: Callable[[], None]) -> None:
    """Call ``ending`` when this process is asked to terminate, as pools do with their workers; then it does."""
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return

    def terminated(number: int, frame: FrameType | None) -> Any:
        with contextlib.suppress(Exception):
            ending()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    with contextlib.suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGTERM, terminated)

"""Work in a forked process: what ends it is an answer, and not the end of what asked."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable


def in_a_fork(work: Callable[[], None], seconds: float, failing: Callable[[str], None]) -> None:
    """Do the work in a forked process, and tell ``failing`` why where it does not come to its end."""
    if seconds <= 0:
        failing("the time limit came before it")
        return
    if not hasattr(os, "fork"):
        work()
        return
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process == 0:
        _work_and_leave(work, failing)
    status = _wait(process, seconds)
    if status is None:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        failing(f"the check took longer than {seconds:.0f} s")
    elif os.WIFSIGNALED(status):
        ended = signal.Signals(os.WTERMSIG(status))
        why = "it divides an integer by zero" if ended is signal.SIGFPE else "it reaches beyond its arrays"
        failing(f"the process died of {ended.name}: {why}, on the inputs made for it")
    elif os.WEXITSTATUS(status):
        failing(f"the process left with status {os.WEXITSTATUS(status)}")


def _work_and_leave(work: Callable[[], None], failing: Callable[[str], None]) -> None:
    try:
        work()
    except BaseException as error:
        failing(f"{type(error).__name__}: {error}")
    finally:
        sys.stdout.flush()
        os._exit(0)


def _wait(process: int, seconds: float) -> int | None:
    """The status that the process leaves with; None if it is still there then."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return status
        time.sleep(0.01)
    return None

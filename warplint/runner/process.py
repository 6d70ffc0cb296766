"""One child process with limits: its time, its memory, its output, and everything that it left running.

Nothing here knows of Warp or Python programs; :func:`supervise` runs an argument list and says how it ended.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import IO

from warplint.dataclass import dataclass
from warplint.runner import memory_limit
from warplint.runner.protocol import RUN_VARIABLE

TAIL_BYTES = 64 * 1024
"""How much of the output's end is kept."""
MEMORY = "memory limit"
"""What an :class:`Exit` calls the limit on memory."""
_CHUNK = 1 << 16
_POLL = 0.2
_MEMORY_POLL = 0.5

Tick = Callable[[float], None]
"""Called now and then with the seconds since the start, in the thread that waits."""


@dataclass(frozen=True)
class Limits:
    """``seconds`` of wall time for the whole process group; ``memory`` bytes that the program may take (None: any)."""

    seconds: float
    memory: int | None = None


@dataclass(frozen=True)
class Exit:
    """How a process ended: exit status, or the signal that ended it; ``limit`` is what it ran into, if anything."""

    status: int | None
    signal: int | None = None
    limit: str | None = None
    seconds: float = 0.0

    @property
    def text(self) -> str:
        """In words: ``exit 3``, ``segmentation fault``, ``time limit`` …"""
        if self.limit is not None:
            return self.limit
        if self.signal is not None:
            return _SIGNALS.get(self.signal, f"killed by signal {self.signal}")
        return f"exit {self.status}"


_SIGNALS = {
    int(number): text
    for name, text in (
        ("SIGSEGV", "segmentation fault"),
        ("SIGBUS", "bus error"),
        ("SIGABRT", "aborted"),
        ("SIGILL", "illegal instruction"),
        ("SIGFPE", "arithmetic fault"),
        ("SIGKILL", "killed"),
    )
    if (number := getattr(signal, name, None)) is not None
}


class _Tail:
    """Reads a stream to its end in a thread of its own and keeps the last bytes of it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._chunks: deque[bytes] = deque()
        self._kept = 0
        self._thread = threading.Thread(target=self._read, name="warplint-output", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while chunk := os.read(self._stream.fileno(), _CHUNK):
                self._chunks.append(chunk)
                self._kept += len(chunk)
                while self._kept - len(self._chunks[0]) >= TAIL_BYTES:
                    self._kept -= len(self._chunks.popleft())

    def finish(self) -> str:
        """The end of the output. A pipe that somebody still holds open is not waited for."""
        self._thread.join(timeout=2.0)
        text = b"".join(tuple(self._chunks))[-TAIL_BYTES:]
        if not self._thread.is_alive():
            self._stream.close()
        return text.decode("utf-8", errors="replace")


def supervise(
    arguments: Sequence[str], environment: Mapping[str, str], folder: str, limits: Limits, tick: Tick
) -> tuple[Exit, str]:
    """Run a program in a session of its own until it ends or meets a limit; return how, and the end of its output.

    ``environment`` must hold :data:`RUN_VARIABLE`: processes that left the session are found by it. Whatever the
    program started is ended with it, also when the wait is interrupted.
    """
    started = time.monotonic()
    process = subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=dict(environment),
        start_new_session=True,
        bufsize=0,
    )
    assert process.stdout is not None
    tail = _Tail(process.stdout)
    ended = _attend(process, environment[RUN_VARIABLE], limits, started, tick, _ask_where)
    return ended, tail.finish()


def accompany(arguments: Sequence[str], environment: Mapping[str, str], limits: Limits) -> Exit:
    """As :func:`supervise`, but the program's output is its own: it goes where ours goes.

    Its standard input is empty, and it is not asked anything at a limit: it need not be a Python program.
    """
    started = time.monotonic()
    process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, env=dict(environment), start_new_session=True)
    return _attend(process, environment[RUN_VARIABLE], limits, started, lambda _: None, lambda _: None)


def _attend(
    process: subprocess.Popen[bytes],
    token: str,
    limits: Limits,
    started: float,
    tick: Tick,
    at_limit: Callable[[subprocess.Popen[bytes]], None],
) -> Exit:
    """Wait for the end of a process, and end what it leaves behind."""
    with _interrupted_once(), _ended_with_us():
        try:
            limit = _wait(process, limits, started, tick)
            seconds = time.monotonic() - started
            if limit is not None:
                at_limit(process)
        finally:
            _end_group(process, token)
    code = process.returncode
    return Exit(code if code >= 0 else None, -code if code < 0 else None, limit, seconds)


@contextlib.contextmanager
def _interrupted_once() -> Iterator[None]:
    """A user who interrupts again must not keep us from ending what runs; it takes a moment."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return

    def once(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        before(number, frame)

    signal.signal(signal.SIGINT, once)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _ended_with_us() -> Iterator[None]:
    """Whoever ends us (``timeout``, a job of CI) must not leave running what we have started."""
    asked = [number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None]
    ours = [number for number in asked if signal.getsignal(number) is signal.SIG_DFL]
    if threading.current_thread() is not threading.main_thread():
        ours = []

    def ended(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)
        raise SystemExit(128 + number)

    for number in ours:
        signal.signal(number, ended)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _wait(process: subprocess.Popen[bytes], limits: Limits, started: float, tick: Tick) -> str | None:
    """Wait for the end; the name of the limit that was met, None for an end of its own."""
    waiting = threading.Thread(target=process.wait, name="warplint-wait", daemon=True)
    waiting.start()  # blocked in the system, so that the end is seen when it comes
    next_look = started
    while True:
        waiting.join(_POLL)
        if not waiting.is_alive():
            return None
        now = time.monotonic()
        tick(now - started)
        if now - started > limits.seconds:
            return "time limit"
        if limits.memory is not None and now >= next_look:
            next_look = now + _MEMORY_POLL
            most = memory_limit.with_judging(limits.memory)
            if _mapped(process.pid) > most and _resident(process.pid) > most:
                return MEMORY


def _ask_where(process: subprocess.Popen[bytes]) -> None:
    """Have the child leave its stack (``bootstrap.py`` registered that for this signal), and give it time to."""
    if hasattr(signal, "SIGUSR2"):
        process.send_signal(signal.SIGUSR2)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.3)


def _end_group(process: subprocess.Popen[bytes], token: str) -> None:
    """End the process, its group, and what escaped from the group but still carries the run's token."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:  # pragma: no cover - Windows has no groups
            process.kill()
    process.wait()
    for _ in range(3):  # a process that is just being forked appears in the next look
        if not (strays := _carrying(token)):
            break
        for pid in strays:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:  # no /proc: the group is all that can be reached
        return []


def _carrying(token: str) -> list[int]:
    """The living processes of this user that inherited the run's token, this one excepted."""
    wanted = f"{RUN_VARIABLE}={token}".encode()
    found = []
    for pid in _processes():
        if pid == os.getpid():
            continue
        with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
            if wanted in file.read().split(b"\0"):
                found.append(pid)
    return found


def _resident(group: int) -> int:
    """Bytes that the session ``group`` holds in memory, pages that forks share counted once; 0 if unknown."""
    members = [pid for pid in _processes() if _session_of(pid) == group]
    return sum(_proportional(pid) for pid in members)


def _mapped(group: int) -> int:
    """The same with shared pages counted in each process: never less, and told at once however large they are."""
    return sum(_own(pid) for pid in _processes() if _session_of(pid) == group)


def _session_of(pid: int) -> int | None:
    with contextlib.suppress(OSError):
        return os.getsid(pid)
    return None


def _own(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _proportional(pid: int) -> int:
    """Adding up shared pages walks all of them, and the process waits meanwhile."""
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/smaps_rollup") as file:
        for line in file:
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0

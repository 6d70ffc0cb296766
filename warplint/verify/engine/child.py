"""The child that judges gradients: runs the user's program under the recorder, then asks its questions and leaves.

The questions are asked inside the hook that decides that enough was seen, with the user's frames alive, in a forked
process: nothing that the log points to is freed meanwhile, and a replay that crashes takes nobody with it.
"""

from __future__ import annotations

import atexit
import contextlib
import mmap
import os
import select
import signal
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import NoReturn

from warplint.dataclass import dataclass
from warplint.runner import memory_limit
from warplint.runner.entry import start
from warplint.runner.protocol import Channel, EntryKind, Request, records_of_child
from warplint.verify.engine import self_test
from warplint.verify.engine.children import on_fork, on_termination
from warplint.verify.engine.differences.measure import Clock
from warplint.verify.engine.execution.log import Log
from warplint.verify.engine.execution.memory import CodeStack
from warplint.verify.engine.judging.arbiter import WATCH, Reserve
from warplint.verify.engine.judging.culprits import places
from warplint.verify.engine.judging.judge import Judge
from warplint.verify.engine.recording.horizon import Budget, Horizon, affordable_memory
from warplint.verify.engine.recording.recorder import Recorder
from warplint.verify.engine.replaying.replay import Machine
from warplint.verify.engine.telling import Teller
from warplint.verify.engine.warp_hooks import Hooks, redirect_devices
from warplint.verify.engine.warp_modules import protect_caches, watch_loads
from warplint.verify.engine.warp_values import Unsupported
from warplint.verify.records import CacheClearedSeen, ChildSeen, ModuleLoad, ModuleLoadedSeen, Note, Program

PATIENCE = 3.0
"""Seconds after the end of recording in which the program may come to a launch, where stopping is cleanest."""
TEST_RUNNERS = frozenset({"pytest", "unittest", "py"})
WINDOWS_AT_A_SITE = 2
"""Windows of a test run that are judged for one backward call in the source."""
CRASHES = 8
"""Groups whose replay may crash before the rest is given up."""
LEAST_AIM = 1.5
"""Seconds that the judging may take however short the program was."""
RESERVE = 2.0
"""Seconds kept back for the last records, at least."""
SHARE_KEPT_BACK = 0.03
"""The share of the time limit that is kept back for them: a long limit is for a machine that is slow all round."""


@dataclass
class Progress:
    """Which group a forked judge is at, seen by the process that waits for it."""

    _shared: mmap.mmap

    @classmethod
    def fresh(cls) -> Progress:
        """Shared with processes that are forked from now on."""
        shared = mmap.mmap(-1, 16)
        shared[:16] = struct.pack("<qq", -1, 0)
        return cls(shared)

    def at(self, group: int) -> None:
        """This group is being judged."""
        self._shared[:8] = struct.pack("<q", group)

    def done(self) -> None:
        """All is judged."""
        self._shared[8:16] = struct.pack("<q", 1)

    @property
    def group(self) -> int:
        """The last group that was begun; -1 for none."""
        return int(struct.unpack("<q", self._shared[:8])[0])

    @property
    def finished(self) -> bool:
        """Whether the judge came to its end."""
        return bool(struct.unpack("<q", self._shared[8:16])[0])


class Session:
    """One run of a program: its log, and what is to happen when enough was seen."""

    def __init__(self, request: Request, channel: Channel) -> None:
        self.request = request
        self.channel = channel
        self.began = self._resumed = time.monotonic()
        self.log = Log()
        self.hooks = Hooks(self._warp_is_there, self._unsupported)
        started = request.began if request.began is not None else self.began
        deadline = started + request.stop_recording_after
        budget = Budget(affordable_memory(request.memory), deadline=deadline)
        memory_limit.relax(2 * budget.memory)
        self.log.found.limit = min(self.log.found.limit, budget.memory // 8)
        horizon = Horizon(budget, self.stop, request.iterations, request.horizon)
        self.recorder = Recorder(self.log, horizon)
        self.reserve = Reserve(self.log, self.recorder, lambda: self.channel.mine())
        self.recorder.horizon.keep = self.reserve.keep
        self._deadline = started + request.limit - max(RESERVE, SHARE_KEPT_BACK * request.limit)
        self.clock = Clock(self._deadline)
        self._exit = os._exit
        self._finished = False
        self._is_child = False
        """A process that the program has started: the program needs it, so that it goes on when it was judged."""
        self._teller = Teller(self.log, channel.send)
        self._devices: set[str] = set()
        self._windows = 0
        self._let_go = 0
        """Windows that were judged and let go so that the record stays within its budget."""
        self._sites: dict[object, int] = {}

    def _clock(self) -> Clock:
        """When all answers must be out, and how long the judging should take: about half of what the program took."""
        aim = max(LEAST_AIM, 0.5 * (time.monotonic() - self._resumed))
        self._resumed = time.monotonic()
        return Clock(self._deadline, aim)

    def _warp_is_there(self) -> None:
        """The program has imported Warp."""
        isolated = os.environ.get("WARP_CACHE_PATH") if self.request.isolated_cache else None
        protect_caches(isolated, self._cache_not_cleared)
        problem = watch_loads(self._loaded)
        if problem is not None:
            self.channel.send(Note("no-builds", problem))
        if self.request.device is not None:
            redirect_devices(self.request.device, self._redirected)

    def _cache_not_cleared(self, text: str) -> None:
        self.recorder.happened(CacheClearedSeen)
        self.channel.send(Note("cache", text))

    def _redirected(self, asked: str) -> None:
        if asked not in self._devices:
            self._devices.add(asked)
            self.channel.send(Note("device", f"requests for {asked} were answered with {self.request.device}"))

    def _loaded(self, load: ModuleLoad, block_dim: int | None) -> None:
        if not self.channel.mine() or self.hooks.observer is None:
            return
        self.channel.send(load)
        seen = {"module": load.module, "compiled": load.compiled, "milliseconds": load.milliseconds}
        self.recorder.happened(ModuleLoadedSeen, **seen, block_dim=block_dim)

    def run(self) -> int:
        """Run the program and judge what it did; returns the exit status of this process."""
        assert self.request.entry is not None
        self.hooks.observer = self.recorder
        self.hooks.on_import()
        self._catch_exit()
        self._watch_clock()
        on_fork(self._forked)
        ending = start(self.request.entry)
        if self.reserve.evaluating:
            self._exit(4)
        self.finish(ending.stopped, ending.told)
        return 0

    def accompany(self) -> None:
        """Watch this process, which the program has started, from now on until it ends."""
        self._begin_as_child("spawn", ())
        self.hooks.observer = self.recorder
        self.hooks.on_import()
        self._catch_exit()
        on_fork(self._forked)
        atexit.register(self._ended)

    def _ended(self) -> None:
        """The interpreter is about to end; an exception that nobody caught has been printed."""
        error = getattr(sys, "last_value", None)
        if error is None:
            self.finish("end")
        else:
            self.finish("raised", f"{type(error).__name__}: {error}")

    def _begin_as_child(self, how: str, at: CodeStack) -> None:
        process = os.getpid()
        self._is_child = True
        self.recorder.first_backward = lambda: self.channel.send(ChildSeen(process, how, places(at)))
        on_termination(lambda: self.finish("end"))

    def _forked(self, at: CodeStack) -> None:
        """This process was forked by the program: begin anew, with answers of its own."""
        if self.reserve.evaluating or self.hooks.observer is None:
            self.hooks.observer = None
            return
        self.channel = Channel(records_of_child(self.request.records, os.getpid()))
        self._finished = False
        self.began = self._resumed = time.monotonic()
        self.reserve.snapshots.clear()
        self.log.forget()
        self.log.launches = self.log.taped = self.log.backward_count = 0
        self.recorder.horizon.begin_anew()
        self.recorder.horizon.seen = ""
        self._teller = Teller(self.log, self.channel.send)
        self._begin_as_child("fork", at)

    def _catch_exit(self) -> None:
        """A program that leaves by ``os._exit`` is judged like any other."""

        def leaving(status: int) -> NoReturn:
            if self.channel.mine() and self.hooks.observer is not None:
                self.finish(f"exit {status}" if status else "end")
                _flush()
            self._exit(status)

        os._exit = leaving

    def _watch_clock(self) -> None:
        """A program that does without Warp for long is stopped all the same, so that its answers come in time."""

        def watch() -> None:
            time.sleep(max(self.request.stop_recording_after + PATIENCE, 0.0))
            if self.hooks.observer is not None and self.channel.mine() and not self.reserve.evaluating:
                self.finish("time limit")
                _flush()
                self._exit(0)

        threading.Thread(target=watch, name=WATCH, daemon=True).start()

    def stop(self, reason: str) -> None:
        """Enough was seen: judge, and leave without unwinding anything of the user's.

        A test run goes on, and so does a long one whose record is full (``window``).
        """
        if not self.channel.mine():
            self.hooks.observer = None
            return
        if reason == "window" or (reason in ("horizon", "memory budget") and self._is_test_run):
            self._judge_window(sampled=self._is_test_run)
            return
        self.finish(reason)
        if self._is_child:
            return
        _flush()
        self._exit(0)

    @property
    def _is_test_run(self) -> bool:
        """Tests are many small programs in one: each is judged, and the run goes on."""
        entry = self.request.entry
        return entry is not None and entry.target.split(".")[0] in TEST_RUNNERS and entry.kind is not EntryKind.SCRIPT

    def _judge_window(self, sampled: bool) -> None:
        """Judge what was recorded since the last window; then forget it.

        ``sampled``: unless the like of it was judged already.
        """
        observer, self.hooks.observer = self.hooks.observer, None
        sites = {places(begin.stack)[-1:] for begin in self.log.backwards}
        new = any(self._sites.get(site, 0) < WINDOWS_AT_A_SITE for site in sites)
        for site in sites:
            self._sites[site] = self._sites.get(site, 0) + 1
        if new or not sampled:
            self._judge()
        self._windows += 1
        self._let_go += not sampled
        self.reserve.dismiss()
        self.log.forget()
        self.hooks.observer = observer

    def finish(self, stopped: str, text: str = "") -> None:
        """Judge what was recorded and send the last record."""
        if not self.channel.mine() or self._finished:
            return
        self._finished = True
        self.hooks.observer = None
        memory_limit.relax()
        reason = self._judge()
        self.reserve.dismiss()
        self._teller.end(whole=stopped == "end" or stopped.startswith("exit"))
        self._tell_what_was_thinned()
        self.channel.send(self._program(stopped, text or reason))

    def _tell_what_was_thinned(self) -> None:
        within = f"to keep the record within {self.recorder.horizon.budget.memory >> 20} MB"
        if self._let_go:
            times = "once" if self._let_go == 1 else f"{self._let_go} times"
            text = f"{within} it was judged and let go {times} on the way: each part is judged with what it holds"
            self.channel.send(Note("memory", text))
        if self.recorder.horizon.thinned:
            text = (
                f"{within} checkpoints were let go: states between those kept are rebuilt by running operations again"
            )
            self.channel.send(Note("memory", text))

    def _judge(self) -> str:
        if self.recorder.error is not None:
            error = self.recorder.error
            reason = f"the recorder failed: {type(error).__name__}: {error}"
            self.channel.send(Note("unsupported", reason))
            return reason
        self._tell()
        if self.log.graphs_opaque and not self.log.backwards:
            return f"a captured graph could not be followed: {self.log.opaque_reason}"
        if not self.log.backwards:
            return "" if self.log.backward_count else "no backward call was recorded"
        self.clock = self._clock()
        return judged_in_fork(self._ask, self.clock, self._exit, self._failed)

    def _failed(self, error: BaseException) -> None:
        if memory_limit.is_shortage(f"{type(error).__name__}: {error}"):
            self.channel.send(Note("engine", f"the memory limit left no room for the judging: {error}"))
            return
        self.channel.send(Note("engine", f"the engine failed: {type(error).__name__}: {error}"))

    def _tell(self) -> None:
        """The events; the gradients are judged even where one of them cannot be told."""
        try:
            with self.channel.together():
                self._teller.tell()
        except Exception as error:
            self.channel.send(Note("events", f"the events are incomplete: {type(error).__name__}: {error}"))

    def _ask(self, progress: Progress, first: int, problem: str) -> None:
        memory_limit.relax()
        version = str(sys.modules["warp"].config.version)
        if self_test.is_needed(version):
            try:
                self_test.run(self.hooks)
            except Unsupported as error:
                self._unsupported(str(error))
                return
        machine = Machine(self.log)
        judge = Judge(
            machine, self.channel.send, self.clock, self.request.seed, progress.at, self.reserve, self._windows
        )
        if problem:
            self.channel.send(judge.unjudged(first - 1, problem))
        judge.run(first)

    def _program(self, stopped: str, reason: str) -> Program:
        warp = sys.modules.get("warp")
        horizon, planned = self.recorder.horizon, stopped in ("horizon", "memory budget")
        return Program(
            command="",
            seconds=time.monotonic() - self.began,
            backward_calls=self.log.backward_count,
            launches=self.log.launches,
            taped_launches=self.log.taped,
            warp=str(warp.config.version) if warp is not None else "",
            stopped=stopped,
            reason=reason,
            seen=horizon.seen if planned else "",
            more=horizon.more if planned else "",
        )

    def _unsupported(self, why: str) -> None:
        self.hooks.observer = None
        self.channel.send(Note("unsupported", f"this Warp is not supported by the engine: {why}"))


def judged_in_fork(
    ask: Callable[[Progress, int, str], None],
    clock: Clock,
    leave: Callable[[int], NoReturn],
    failed: Callable[[BaseException], None],
) -> str:
    """Ask in a forked process; where it crashes, go on after the group that it crashed at. Returns a problem or ""."""
    first, problem = 0, ""
    for _ in range(CRASHES):
        progress = Progress.fresh()
        _flush()
        process = os.fork()
        if process == 0:
            try:
                ask(progress, first, problem)
                progress.done()
                leave(0)
            except BaseException as error:
                failed(error)
                traceback.print_exc()
            _flush()
            leave(1)
        status = _wait(process, clock)
        if progress.finished:
            return ""
        if status is None:
            return "the time limit ended the judging"
        if progress.group < first:
            return f"the judging ended early ({_described(status)})"
        first, problem = progress.group + 1, f"running it again crashed ({_described(status)})"
    return "running it again crashed too often"


def _wait(process: int, clock: Clock) -> int | None:
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return status
        if clock.left < -RESERVE / 2:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return None
        _until_it_ends(process)


def _until_it_ends(process: int) -> None:
    """Wait for a while, but no longer than the process lives; without using the processor where the system can."""
    try:
        watched = os.pidfd_open(process)
    except (AttributeError, OSError):  # not Linux, or too old
        time.sleep(0.002)
        return
    try:
        waiting = select.poll()
        waiting.register(watched, select.POLLIN)
        waiting.poll(100)
    finally:
        os.close(watched)


def _described(status: int) -> str:
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"exit status {os.WEXITSTATUS(status)}"


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def main(request: Request, channel: Channel) -> int:
    """Run the request's program and answer."""
    return Session(request, channel).run()

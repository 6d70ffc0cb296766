"""The arbiter for host data in the loop: the user's own Python, run again from a forked snapshot with a leaf moved.

A replay repeats what came from the host; where that hangs on the leaf, only the program itself can answer. So a
snapshot of the process is forked before a tape records, and waits. Asked, it forks once more for each evaluation: that
process moves the leaf, returns into the user's program, and ends at the backward call that the question is about.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import struct
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO, Protocol

import numpy as np
import numpy.typing as npt

from warplint.dataclass import dataclass
from warplint.verify.engine.execution.log import Log
from warplint.verify.engine.execution.operations import BackwardBegin
from warplint.verify.engine.execution.views import FloatView
from warplint.verify.engine.recording.recorder import Recorder
from warplint.verify.engine.recording.recording import Evaluating
from warplint.verify.engine.warp_values import Scalars

WATCHED = "WARPLINT_BUILDS"
"""The environment variable by which processes that the program starts come to be watched."""
WATCH = "warplint-clock"
"""The name of the engine's own thread, which a forked snapshot does without."""
KEPT = 4
"""Snapshots that wait at one time: the beginnings of the last iterations."""
MUCH = 1 << 28
"""Bytes that a program may hold for a snapshot of each iteration; of a larger one the first is enough."""


class Unanswered(Exception):
    """The program, run again, did not come to the backward call: it raised, exited, or took too long."""


class Asked(Protocol):
    """What the program is to be asked, run again."""

    def begin(self, result: int, log: Log) -> Evaluating:
        """Be the process that answers, a number, through the descriptor ``result``."""


@dataclass(frozen=True)
class Question:
    """Where the leaf lies, how it is moved (an array to add) and when; the backward calls whose losses are summed."""

    memory: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    scalars: Scalars
    at: int
    added: npt.NDArray[np.float64]
    backwards: tuple[int, ...]

    def begin(self, result: int, log: Log) -> Evaluation:
        """Be the process that answers."""
        return Evaluation(self, result, log)


class Snapshot:
    """A forked process that waits; ``index`` is the number of the next operation when it was made."""

    def __init__(self, process: int, index: int, ask: BinaryIO, answer: BinaryIO) -> None:
        self.index = index
        self._process = process
        self._ask = ask
        self._answer = answer

    def evaluate(self, question: Asked, seconds: float) -> float:
        """What the program answers: the objective with a leaf moved, say. Raises :class:`Unanswered`."""
        data = pickle.dumps(question)
        try:
            self._ask.write(struct.pack("<qd", len(data), seconds) + data)
            self._ask.flush()
        except OSError as error:
            raise Unanswered("the snapshot of the process is gone") from error
        ready, _, _ = select.select([self._answer], [], [], seconds + 2.0)
        answer = self._answer.read(9) if ready else b""
        if len(answer) != 9 or answer[:1] != b"y":
            raise Unanswered("the program, run again, did not come to the same backward call")
        return float(struct.unpack("<d", answer[1:])[0])

    def dismiss(self) -> None:
        """End it."""
        with contextlib.suppress(OSError):
            os.kill(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)
        for stream in (self._ask, self._answer):
            with contextlib.suppress(OSError):
                stream.close()


class Reserve:
    """Makes snapshots of this process, and keeps the last ones. ``allowed`` says whether this process may."""

    def __init__(self, log: Log, recorder: Recorder, allowed: Callable[[], bool]) -> None:
        self.snapshots: list[Snapshot] = []
        self.evaluating = False
        self._log = log
        self._recorder = recorder
        self._allowed = allowed

    def keep(self) -> None:
        """Fork a snapshot. In a process that evaluates it returns as if nothing had happened."""
        others = [thread for thread in threading.enumerate() if thread.name != WATCH]
        if self.evaluating or not hasattr(os, "fork") or len(others) > 1 or not self._allowed():
            return
        if self.snapshots and sum(memory.size for memory in self._log.memories.all) > MUCH:
            return  # the program would copy each page that it writes: from the one before, it takes longer to come here
        ask_read, ask_write = os.pipe()
        answer_read, answer_write = os.pipe()
        _flush()
        index = self._log.next_index
        process = os.fork()
        if process:
            os.close(ask_read)
            os.close(answer_write)
            made = Snapshot(process, index, os.fdopen(ask_write, "wb"), os.fdopen(answer_read, "rb", buffering=0))
            self.snapshots.append(made)
            while len(self.snapshots) > KEPT:
                self.snapshots.pop(0).dismiss()
            return
        for snapshot in self.snapshots:
            with contextlib.suppress(OSError):
                snapshot._ask.close()
                snapshot._answer.close()
        os.close(ask_write)
        os.close(answer_read)
        self._wait(ask_read, answer_write)

    def dismiss(self) -> None:
        """End all snapshots."""
        for snapshot in self.snapshots:
            snapshot.dismiss()
        self.snapshots.clear()

    def before(self, index: int) -> Snapshot | None:
        """The last snapshot that was made before operation ``index``."""
        return next((snapshot for snapshot in reversed(self.snapshots) if snapshot.index <= index), None)

    # in the snapshot ------------------------------------------------------------------------------------------------

    def _wait(self, asked: int, answer: int) -> None:
        """Serve questions until the asking end is closed; returns only in a process that evaluates."""
        _die_with_parent()
        os.environ.pop(WATCHED, None)  # processes that are started again here are nobody's
        self.evaluating = True
        while True:
            head = _read(asked, 16)
            if head is None:
                os._exit(0)
            size, seconds = struct.unpack("<qd", head)
            data = _read(asked, size)
            if data is None:
                os._exit(0)
            result_read, result_write = os.pipe()
            process = os.fork()
            if process == 0:
                os.close(result_read)
                self._become(pickle.loads(data), result_write)
                return
            os.close(result_write)
            os.write(answer, _outcome(process, result_read, seconds))
            os.close(result_read)

    def _become(self, question: Asked, result: int) -> None:
        """Be the program again, quietly, up to the last backward call that is asked for."""
        _silence()
        self._recorder.horizon.mute()
        self._recorder.evaluation = question.begin(result, self._log)


class Evaluation:
    """Moves the leaf when its time comes, and ends the process at the last backward call."""

    def __init__(self, question: Question, result: int, log: Log) -> None:
        self._question = question
        self._result = result
        self._log = log
        self._moved = False
        self._objective = 0.0
        self.operation()

    def operation(self) -> None:
        """An operation is about to run."""
        if not self._moved and self._log.next_index >= self._question.at:
            self._moved = True
            asked = self._question
            memory = self._log.memories.all[asked.memory]
            view = FloatView(memory.address + asked.offset, asked.shape, asked.strides, asked.scalars)
            view.write((view.read().astype(np.float64) + asked.added).astype(view.kind))

    def ran(self) -> None:
        """It has run."""

    def backward(self, begin: BackwardBegin) -> None:
        """A backward call begins."""
        last = self._question.backwards[-1]
        if begin.number in self._question.backwards:
            if begin.loss is None or begin.loss_kind.kind is None:
                os._exit(3)
            self._objective += float(begin.loss.read().view(begin.loss_kind.kind)[0])
        if begin.number < last:
            return
        if begin.number > last:
            os._exit(3)
        os.write(self._result, struct.pack("<d", self._objective))
        os._exit(0)


def _outcome(process: int, result: int, seconds: float) -> bytes:
    """What a process that evaluates wrote; it is ended when it takes too long."""
    ready, _, _ = select.select([result], [], [], seconds)
    data = os.read(result, 8) if ready else b""
    with contextlib.suppress(OSError):
        os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return b"y" + data if len(data) == 8 else b"n" + bytes(8)


def _read(descriptor: int, size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        part = os.read(descriptor, size - len(data))
        if not part:
            return None
        data += part
    return data


def _silence() -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            os.dup2(null, descriptor)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def _die_with_parent() -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)

"""When enough was seen: after two complete groups (or as many as are asked for), at the limit of time or memory."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import field

from warplint.dataclass import dataclass
from warplint.runner.protocol import ITERATIONS
from warplint.verify.engine.execution.log import Log
from warplint.verify.engine.recording.waiting import awaits_a_reader

SITES = 6
"""Complete groups of different ``with tape`` statements that are enough in all, for each iteration asked for."""

UNFINISHED = 4
"""Backward calls whose gradients nobody ever uses or clears: stop after so many for each iteration asked for."""

FURTHER = 8
"""Iterations more that are looked at where enough have left something open (``waiting``)."""

THINNED = 0.125
"""Checkpoints that take less than this share of the budget are not worth thinning."""


@dataclass(frozen=True)
class Budget:
    """Bounds of one recording: bytes kept, operations kept, and the clock time to stop at (``time.monotonic``)."""

    memory: int = field(default_factory=lambda: affordable_memory())
    operations: int = 400_000
    deadline: float = float("inf")


def affordable_memory(limit: int | None = None) -> int:
    """An eighth of the machine's memory, but at least 256 MB and at most 2 GB, or a quarter of the program's limit."""
    return min(_of_machine(), limit // 4) if limit is not None else _of_machine()


def _of_machine() -> int:
    try:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 1 << 29
    return max(1 << 28, min(1 << 31, physical // 8))


class Horizon:
    """Counts complete groups: a backward call whose gradient was used or cleared, or whose leaf was written.

    They are counted by the ``with tape`` they belong to; ``iterations`` of one are enough. ``seen`` says how far it
    went, in words, once it has stopped.

    ``stop(reason)`` is called where the program is about to begin something new; it need not return. ``keep`` is called
    at the first array with a gradient and in front of the first ``with tape`` of an iteration: a snapshot's time.
    """

    def __init__(
        self,
        budget: Budget,
        stop: Callable[[str], None],
        iterations: int = ITERATIONS,
        unfinished: int | None = None,
    ) -> None:
        """``unfinished``: so many backward calls may one iteration have; by default a few for each iteration."""
        self.budget = budget
        self.iterations = iterations
        self.unfinished = unfinished if unfinished is not None else UNFINISHED * iterations
        self.seen = ""
        self.more = ""
        """The option that would have had it go on."""
        self.thinned = 0
        """How often each second checkpoint was let go."""
        self.stop = stop
        self.keep: Callable[[], None] = lambda: None
        self._complete = Counter[object]()
        self._site: object = None
        self._pending = 0
        self._finished = False
        self._ticks = 0
        self._open = False
        self._further = 0
        """Iterations that were looked at beyond those that are asked for."""
        self._muted = False
        self._is_short = False
        """The program was refused memory, for reasons of its own: what it lets go of now is no growth of the log."""

    def first_gradient(self) -> None:
        """The first array with a gradient was made."""
        if not self._muted:
            self.keep()

    def backward_done(self) -> None:
        """A backward call has ended."""
        self._pending += 1
        self._finished = False

    def gradient_used(self) -> None:
        """A gradient was read, handed on, or cleared."""
        self._finished = self._pending > 0

    def leaf_written(self) -> None:
        """Memory with a gradient was written outside every tape."""
        self._finished = self._pending > 0

    def entering(self, log: Log, site: object = None) -> None:
        """A tape is about to record, entered at ``site``; a training step may have several, each with its groups."""
        if self._muted:
            return
        fresh = not self._open
        if self._pending and self._finished:
            self._complete[self._site] += 1
            fresh = True
            self._pending = 0
            self._finished = False
            if self._complete[site] < self.iterations:
                log.checkpoints.begin(log.next_index)
        self._site = site
        enough = self._complete[site] >= self.iterations or self._complete.total() >= SITES * self.iterations
        waits = enough and fresh and self._further < FURTHER and awaits_a_reader(log)
        self._further += waits
        if (enough and not waits) or self._pending >= self.unfinished:
            self.seen = self._told(site, enough)
            self.more = "--iterations" if enough else "--horizon"
            self.begin_anew()
            self.stop("horizon")
        elif fresh and log.backwards and self.over_budget(log, 0.5) and not self._thinned(log, 0.5):
            self.stop("window")
        self._open = True
        if fresh:
            self.keep()

    def _told(self, site: object, enough: bool) -> str:
        """How much was seen, in words."""
        if not enough:
            return f"{self._pending} backward calls whose gradients nothing used"
        rounds = self._complete[site] if self._complete[site] >= self.iterations else self._complete.total()
        return f"{rounds} iteration{'' if rounds == 1 else 's'}"

    def begin_anew(self) -> None:
        """Count from zero again."""
        self._open = False
        self._further = 0
        self._complete.clear()
        self._pending = 0
        self._finished = False

    def tick(self, log: Log) -> None:
        """Look at the clock and the memory now and then."""
        if self._muted:
            return
        self._ticks += 1
        if self._ticks % 64 == 0 and time.monotonic() > self.budget.deadline:
            self.stop("time limit")
        if self._ticks % 64 == 0:
            self.relieve(log)

    def relieve(self, log: Log) -> None:
        """Keep the log within its budget: let go of a past that no tape holds, else stop and judge what there is.

        In the middle of an iteration it may keep twice as much: between two of them it is judged and let go.
        """
        if self._muted or self._is_short or not self.over_budget(log) or self._thinned(log):
            return
        if not any(record.tape.launches for record in log.tapes):
            if log.backwards:
                self.stop("window")
            else:
                log.forget()
        elif self.over_budget(log, 2.0):
            self.seen = f"as much as the record may keep ({self.budget.memory >> 20} MB)"
            self.more = "--memory-limit"
            self.stop("memory budget")

    def _thinned(self, log: Log, times: float = 1.0) -> bool:
        """Let go of checkpoints until the log is within its budget; whether it is."""
        while self.over_budget(log, times) and log.checkpoints.size > THINNED * self.budget.memory:
            if not log.checkpoints.thin(log.memories.all):
                break
            self.thinned += 1
        return not self.over_budget(log, times)

    def refused(self, log: Log, size: int) -> None:
        """The program was refused memory: judge what there is where we hold that much; else it is its own affair."""
        if self._muted:
            return
        if log.deferred_bytes >= size and log.backwards:
            self.stop("memory budget")
        self._is_short = True

    def mute(self) -> None:
        """Never stop and never fork again: this process only answers a question."""
        self._muted = True

    def over_budget(self, log: Log, times: float = 1.0) -> bool:
        """Whether the log keeps more than it may, so many times over."""
        kept = log.deferred_bytes + log.copied_bytes + log.checkpoints.size
        return kept > times * self.budget.memory or len(log.operations) > times * self.budget.operations

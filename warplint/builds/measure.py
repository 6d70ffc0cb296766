"""Measure what a command builds: cold runs in fresh kernel caches, each followed by a warm one on what it left."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable

from warplint.builds.observe import Invocation, RunSeen, observe, problems
from warplint.dataclass import dataclass
from warplint.report.words import counted
from warplint.runner.process import Exit, Limits


@dataclass(frozen=True)
class Sample:
    """A run with an empty kernel cache, and one on the cache that it left."""

    cold: RunSeen
    warm: RunSeen


@dataclass(frozen=True)
class Measurement:
    """All samples of one command. ``problem``: why there are not as many as asked for, in one line.

    ``status`` is the exit status of the command: that of its last run. ``partial`` is a cold run without its warm one:
    the one that ``problem`` is about, where it is the cold run.
    """

    command: str
    samples: tuple[Sample, ...] = ()
    problem: str | None = None
    status: int = 0
    partial: RunSeen | None = None
    notes: tuple[str, ...] = ()

    @property
    def warp(self) -> str:
        """The version of Warp that ran."""
        runs = [run for sample in self.samples for run in (sample.cold, sample.warm)]
        return next((each.started.warp for run in runs for each in run.processes), "")


def measure(command: Invocation, samples: int, limits: Limits, say: Callable[[str], None]) -> Measurement:
    """Run the command ``samples`` times cold and as often warm; stop at the first run that goes wrong."""
    done: list[Sample] = []
    for number in range(1, samples + 1):
        with tempfile.TemporaryDirectory(prefix="warplint-kernels-", ignore_cleanup_errors=True) as cache:
            say(f"[{number}/{samples}] cold run of {command.shown}")
            cold = observe(command, cache, limits)
            wrong = _trouble(cold)
            if wrong is not None:
                return Measurement(command.shown, tuple(done), f"{_which('cold', number)} {wrong}", _status(cold), cold)
            say(f"[{number}/{samples}] warm run of {command.shown}")
            warm = observe(command, cache, limits)
            wrong = _trouble(warm)
            if wrong is not None:
                text = f"{_which('warm', number)} {wrong}"
                return Measurement(command.shown, tuple(done), text, _status(warm), cold)
            done.append(Sample(cold, warm))
    return Measurement(command.shown, tuple(done), notes=tuple(_notes(done[0])))


def _which(kind: str, number: int) -> str:
    return f"the {kind} run" if number == 1 else f"{kind} run {number}"


def _trouble(run: RunSeen) -> str | None:
    """What makes a run useless, in words that follow "the cold run"; None for a run to measure by."""
    ended, unseen = run.ended, problems(run)
    if ended.limit is not None:
        return f"ran into the time limit after {ended.seconds:.1f} s{_last(run)} (--time-limit sets it)"
    if ended.signal is not None:
        return f"was ended by {_signal(ended)}{_last(run)}"
    if ended.status:
        return f"failed with exit status {ended.status}{_last(run)}"
    if unseen:
        return f"could not be watched: {unseen[0]}"
    if not run.processes:
        return "imported Warp in none of its processes: there is nothing to measure (python -I, -E and -S hide it)"
    if not run.loads:
        return "imported Warp, but loaded no module: there is nothing to measure"
    return None


def _signal(ended: Exit) -> str:
    """``SIGTERM``, ``SIGSEGV (segmentation fault)``."""
    assert ended.signal is not None
    try:
        name = signal.Signals(ended.signal).name
    except ValueError:
        name = f"signal {ended.signal}"
    return name if ended.text.startswith("killed") else f"{name} ({ended.text})"


def _last(run: RunSeen) -> str:
    if not run.processes:
        return ", before any of its processes had imported Warp"
    if not run.loads:
        return ", before a module was loaded"
    last = run.loads[-1]
    return f"; {counted(len(run.built), 'build')} until then, the last module is `{last.module}`"


def _status(run: RunSeen) -> int:
    """As a shell gives it; 0 where the command itself is not to blame."""
    if run.ended.signal is not None and run.ended.limit is None:
        return 128 + run.ended.signal
    return run.ended.status or 0


def _notes(sample: Sample) -> list[str]:
    """What makes the times say less than they seem to."""
    notes = []
    own = dict.fromkeys(load.cache for load in sample.cold.loads if not _inside(load.cache, sample.cold.cache))
    for folder in own:
        notes.append(f"the program keeps its kernels in a cache of its own ({folder}): its first run may not be cold")
    cut = [each for each in sample.cold.processes if each.workload is None or not each.workload.complete]
    if cut:
        some = counted(len(cut), "process")
        notes.append(f"{some} did not come to an end of its own: the last launches are not known")
    return notes


def _inside(folder: str, cache: str) -> bool:
    outer = os.path.realpath(cache)
    return os.path.commonpath([os.path.realpath(folder), outer]) == outer

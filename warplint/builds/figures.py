"""The figures of a measurement: medians with their spread, what compiling took, and what of a start-up is not that."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from warplint.builds.measure import Sample
from warplint.builds.observe import RunSeen
from warplint.dataclass import dataclass
from warplint.verify.records import ModuleLoad


@dataclass(frozen=True)
class Spread:
    """A median and the median absolute deviation from it, of as many values as there are samples."""

    median: float
    mad: float

    @staticmethod
    def of(values: Iterable[float]) -> Spread:
        """Of at least one value."""
        found = list(values)
        median = statistics.median(found)
        return Spread(median, statistics.median(abs(value - median) for value in found))


@dataclass(frozen=True)
class StartUp:
    """From the start of the command to the end of its last module load. Seconds.

    ``importing`` is what the import of Warp took in the first process, ``loading`` the time in which at least one
    module was being built or loaded.
    """

    seconds: float
    loading: float
    importing: float

    @property
    def other_share(self) -> float:
        """The share that no build has part in: 0 to 1."""
        return 1.0 - self.loading / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True)
class Figures:
    """Of a whole measurement. Times in seconds.

    ``compile_elapsed`` is cold wall minus warm wall, ``module_work`` the sum of all builds (from the start of the load
    to its end), ``native`` the part of it in the compiler. ``overlap`` is the work per second in which anything was
    built: 1 where modules are built one after another. ``builds_cold`` and ``builds_warm`` count the compiler's runs;
    with ``source_bytes`` and ``lto`` they are those of the first sample, since they do not depend on the machine.
    """

    cold_wall: Spread
    warm_wall: Spread
    compile_elapsed: Spread
    module_work: Spread
    native: Spread
    overlap: float
    cold_start: StartUp
    warm_start: StartUp
    builds_cold: int
    builds_warm: int
    modules: int
    source_bytes: int
    lto: int
    lto_seconds: float
    processes: int


def figures(samples: Sequence[Sample]) -> Figures:
    """Of at least one sample."""
    first, colds = samples[0], [sample.cold for sample in samples]
    built = first.cold.built
    return Figures(
        cold_wall=Spread.of(run.ended.seconds for run in colds),
        warm_wall=Spread.of(sample.warm.ended.seconds for sample in samples),
        compile_elapsed=Spread.of(sample.cold.ended.seconds - sample.warm.ended.seconds for sample in samples),
        module_work=Spread.of(work(run.built) for run in colds),
        native=Spread.of(sum(load.native_ms for load in run.built) / 1000 for run in colds),
        overlap=work(built) / covered(built) if covered(built) else 0.0,
        cold_start=start_up(first.cold),
        warm_start=start_up(first.warm),
        builds_cold=len(built),
        builds_warm=len(first.warm.built),
        modules=len({(load.module, load.device) for load in first.cold.loads}),
        source_bytes=sum(load.source_bytes for load in built),
        lto=sum(load.lto for load in built),
        lto_seconds=sum(load.lto_ms for load in built) / 1000,
        processes=len(first.cold.processes),
    )


def work(loads: Iterable[ModuleLoad]) -> float:
    """Seconds that the loads took, one by one."""
    return sum(load.milliseconds for load in loads) / 1000


def covered(loads: Iterable[ModuleLoad]) -> float:
    """Seconds in which at least one of the loads was under way."""
    total, end = 0.0, float("-inf")
    for start, stop in sorted((load.started, load.started + load.milliseconds / 1000) for load in loads):
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return total


def start_up(run: RunSeen) -> StartUp:
    """Of a run that loaded at least one module."""
    end = max(load.started + load.milliseconds / 1000 for load in run.loads)
    return StartUp(end - run.began, covered(run.loads), run.processes[0].started.importing)

"""Runs of a command as the watcher tells them, made by hand: what is judged is then in plain sight."""

from __future__ import annotations

from dataclasses import replace

from warplint.builds.measure import Measurement, Sample
from warplint.builds.observe import ProcessSeen, RunSeen
from warplint.runner.process import Exit
from warplint.verify.records import (
    KernelContent,
    LaunchKind,
    ModuleLoad,
    ProcessStarted,
    Workload,
)

OPTIONS = {"enable_backward": True, "max_unroll": 16, "block_dim": 1}


def content(name: str = "k", line: int = 4, digest: str = "k1", **fields: object) -> KernelContent:
    return KernelContent(name, ("prog.py", line, name), digest, **fields)  # type: ignore[arg-type]


def load(*contents: KernelContent, compiled: bool = True, at: float = 1.0, **fields: object) -> ModuleLoad:
    """A load of one second that begins ``at`` seconds after the start, called for in line 40."""
    found = contents or (content(),)
    made = ModuleLoad(
        module="m",
        hash="-".join(each.hash for each in found),
        device="cpu",
        compiled=compiled,
        milliseconds=1000.0,
        kernels=tuple(each.defined for each in found),
        options=OPTIONS,
        cache="/cache/1.19",
        at=(("prog.py", 40, "main"), ("/usr/lib/python3.11/functools.py", 9, "wrapper")),
        block_dim=1,
        contents=found,
        started=at,
        native_ms=900.0,
        source_bytes=5000,
    )
    return replace(made, **fields)  # type: ignore[arg-type]


WORK = Workload((LaunchKind("k", (8,), ("float32[1]",), "cpu", 1),), (1,), "d1", (0,), True)


def process(*records: object, number: int = 7, workload: Workload | None = WORK) -> ProcessSeen:
    started = ProcessStarted(number, 1, ("python", "prog.py"), 0.0, 0.3, "1.19.0")
    told = (started, *records, *((workload,) if workload is not None else ()))
    return ProcessSeen(started, told)


def run(*processes: ProcessSeen, seconds: float = 5.0) -> RunSeen:
    return RunSeen(0.0, Exit(0, seconds=seconds), processes, "/cache")


def measurement(*walls: tuple[float, float], records: tuple[object, ...] = (), **fields: object) -> Measurement:
    """Samples of (cold wall, warm wall) seconds, all with the same records; the warm runs take all from the cache."""
    cold = records or (load(),)
    warm = tuple(replace(each, compiled=False) if isinstance(each, ModuleLoad) else each for each in cold)
    workload = fields.pop("workload", WORK)
    assert isinstance(workload, Workload)
    samples = tuple(
        Sample(
            run(process(*cold, workload=workload), seconds=first),
            run(process(*warm, workload=workload), seconds=second),
        )
        for first, second in walls
    )
    return Measurement("python prog.py", samples, **fields)  # type: ignore[arg-type]

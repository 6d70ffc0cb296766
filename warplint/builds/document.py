"""A measurement as JSON, and what a comparison reads back of it. ``docs/json.md`` describes the format."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from warplint import __version__
from warplint.builds.ceiling import ceiling
from warplint.builds.figures import Figures, figures
from warplint.builds.measure import Measurement, Sample
from warplint.builds.observe import ProcessSeen, RunSeen
from warplint.builds.why import Cause, Explained, defeated, of_run
from warplint.dataclass import dataclass

SCHEMA = 1
KIND = "builds"


class Unusable(ValueError):
    """A file that holds no measurement of this format; the message says what is wrong."""


def as_json(measured: Measurement) -> dict[str, Any]:
    """The whole measurement; ``summary`` is null where there is no sample."""
    return {
        "schema": SCHEMA,
        "kind": KIND,
        "warplint": __version__,
        "warp": measured.warp,
        "command": measured.command,
        "problem": measured.problem,
        "exit_status": measured.status,
        "notes": list(measured.notes),
        "summary": _summary(measured.samples) if measured.samples else None,
        "samples": [_sample(sample) for sample in measured.samples],
    }


def _summary(samples: Sequence[Sample]) -> dict[str, Any]:
    first, found = samples[0], figures(samples)
    top = ceiling(first.cold)
    return {
        **dataclasses.asdict(found),
        "cold_start": _start(found, "cold_start"),
        "warm_start": _start(found, "warm_start"),
        "cache_reused": not first.warm.built,
        "defeated_by": [_explained(each, first.warm) for each in defeated(first.cold, first.warm)],
        "ceiling": {
            "builds": top.builds,
            "remaining": top.remaining,
            "seconds": top.seconds,
            "needless_seconds": top.needless_seconds,
        },
    }


def _start(found: Figures, name: str) -> dict[str, float]:
    start = getattr(found, name)
    return {**dataclasses.asdict(start), "other_share": start.other_share}


def _sample(sample: Sample) -> dict[str, Any]:
    return {"cold": _run(sample.cold), "warm": _run(sample.warm)}


def _run(run: RunSeen) -> dict[str, Any]:
    processes = [_process(process, loads, run) for process, loads in of_run(run)]
    return {"wall": run.ended.seconds, "processes": processes}


def _process(process: ProcessSeen, loads: Sequence[Explained], run: RunSeen) -> dict[str, Any]:
    started, work = process.started, process.workload
    return {
        "process": started.process,
        "parent": started.parent,
        "arguments": list(started.arguments),
        "started": started.started - run.began,
        "importing": started.importing,
        "loads": [_explained(each, run) for each in loads],
        "launches": None if work is None else dataclasses.asdict(work),
    }


def _explained(each: Explained, run: RunSeen) -> dict[str, Any]:
    load = each.load
    return {
        "module": load.module,
        "hash": load.hash,
        "device": load.device,
        "block_dim": load.block_dim,
        "compiled": load.compiled,
        "internal": load.internal,
        "unique": load.unique,
        "started": load.started - run.began,
        "seconds": load.milliseconds / 1000,
        "native_seconds": load.native_ms / 1000,
        "source_bytes": load.source_bytes,
        "lto": load.lto,
        "lto_seconds": load.lto_ms / 1000,
        "kernels": len(load.contents) or len(load.kernels),
        "why": [_cause(cause) for cause in each.causes],
    }


def _cause(cause: Cause) -> dict[str, Any]:
    path, line = (cause.at[0], cause.at[1]) if cause.at is not None else ("", 0)
    return {"kind": cause.kind.value, "text": cause.text, "path": path, "line": line}


# ------------------------------------------------------------------------------------------------------------------
# Reading


@dataclass(frozen=True)
class Recorded:
    """What a comparison reads of a measurement. Times in seconds, one for each sample; ``work`` is the launches of each
    run, cold and warm, by process.
    """

    command: str
    warp: str
    cold: tuple[float, ...]
    warm: tuple[float, ...]
    builds_cold: int
    builds_warm: int
    modules: int
    source_bytes: int
    lto: int
    work: tuple[tuple[Mapping[str, Any], ...], ...]
    """For each run, the launches of each process that has any."""
    complete: bool
    """Whether every process told all its launches."""


def read(path: str) -> Recorded:
    """Read a file that ``builds measure --json`` wrote.

    Raises:
        Unusable: it cannot be read, is of another format, or holds no sample.
    """
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except OSError as error:
        raise Unusable(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise Unusable(f"{path}: is no JSON: {error}") from error
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise Unusable(f"{path}: is no measurement of `warplint builds measure --json`")
    if document.get("schema") != SCHEMA:
        raise Unusable(f"{path}: has schema {document.get('schema')}, and this warplint reads {SCHEMA}")
    if not document.get("samples"):
        raise Unusable(f"{path}: has no complete sample: {document.get('problem') or 'nothing was measured'}")
    try:
        return _recorded(document)
    except (KeyError, TypeError, ValueError) as error:
        raise Unusable(f"{path}: is incomplete ({type(error).__name__}: {error})") from error


def _recorded(document: Mapping[str, Any]) -> Recorded:
    samples, summary = document["samples"], document["summary"]
    runs = [sample[kind] for sample in samples for kind in ("cold", "warm")]
    processes = [process for run in runs for process in run["processes"]]
    return Recorded(
        command=document["command"],
        warp=document["warp"],
        cold=tuple(sample["cold"]["wall"] for sample in samples),
        warm=tuple(sample["warm"]["wall"] for sample in samples),
        builds_cold=summary["builds_cold"],
        builds_warm=summary["builds_warm"],
        modules=summary["modules"],
        source_bytes=summary["source_bytes"],
        lto=summary["lto"],
        work=tuple(
            tuple(
                process["launches"]
                for process in run["processes"]
                if process["launches"] and process["launches"]["kinds"]
            )
            for run in runs
        ),
        complete=all(process["launches"] and process["launches"]["complete"] for process in processes),
    )

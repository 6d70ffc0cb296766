"""The report of a measurement and of a comparison, for people."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from warplint.builds.ceiling import Ceiling, ceiling
from warplint.builds.compared import Compared
from warplint.builds.figures import Figures, Spread, StartUp, figures
from warplint.builds.measure import Measurement
from warplint.builds.observe import RunSeen
from warplint.builds.why import Cause, Explained, defeated, of_run
from warplint.report.words import counted, percent
from warplint.verify.records import Place


def measurement(measured: Measurement) -> str:
    """The whole report; without a sample, the line that says why, and what was seen until then."""
    return "\n".join(_measurement(measured)) + "\n"


def _measurement(measured: Measurement) -> Iterator[str]:
    if measured.problem is not None:
        yield f"warplint: {measured.problem}"
    if not measured.samples:
        if measured.partial is not None and measured.partial.loads:
            yield from _table(measured.partial, None)
        return
    first, found = measured.samples[0], figures(measured.samples)
    samples = counted(len(measured.samples), "sample")
    yield f"builds of `{measured.command}` (Warp {measured.warp}, {samples}, cold and warm)"
    yield ""
    yield from _table(first.cold, first.warm)
    yield ""
    yield from _times(found, len(measured.samples))
    yield from _structure(found, first.cold)
    unneeded = adjoints(first.cold)
    if unneeded:
        yield f"adjoints         {unneeded}"
    yield from _unused(defeated(first.cold, first.warm), found)
    yield from (f"note             {text}" for text in measured.notes)
    yield ceiling_line(ceiling(first.cold), found.builds_warm)


def _table(cold: RunSeen, warm: RunSeen | None) -> Iterator[str]:
    """A row for each load of the cold run, what became of it in the warm one, and why it was needed."""
    rows: list[tuple[str, ...]] = [("module", "hash", "device", "block", "cold", "warm", "source", "why")]
    rows += [_row(process.started.process, each, cold, warm) for process, loads in of_run(cold) for each in loads]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield "  ".join([*cells, row[-1]]).rstrip()


def _row(process: int, each: Explained, cold: RunSeen, warm: RunSeen | None) -> tuple[str, ...]:
    load = each.load
    again = (
        []
        if warm is None
        else [other for other in warm.loads if (other.module, other.hash) == (load.module, load.hash)]
    )
    state = (
        "" if warm is None else "-" if not again else "built" if any(other.compiled for other in again) else "cached"
    )
    why = _why(each)
    if len(cold.processes) > 1:
        why = f"{why} [process {process}]"
    return (
        load.module,
        load.hash[:7],
        load.device,
        str(load.block_dim or ""),
        f"{seconds(load.milliseconds / 1000)}{'' if load.compiled else ' cached'}",
        state,
        size(load.source_bytes) if load.source_bytes else "",
        why,
    )


MOST_CAUSES = 3
"""Causes of one load that are told; the JSON has them all."""


def _why(each: Explained) -> str:
    told = list(dict.fromkeys(cause_words(cause) for cause in each.causes))
    more = f"; and {len(told) - MOST_CAUSES} more" if len(told) > MOST_CAUSES else ""
    return "; ".join(told[:MOST_CAUSES]) + more


def cause_words(cause: Cause) -> str:
    """A cause with its line."""
    return cause.text + (f" ({where(cause.at)})" if cause.at is not None else "")


def where(at: Place) -> str:
    """``train.py:12``: the path as it is read best from the working directory."""
    relative = os.path.relpath(at[0]) if os.path.isabs(at[0]) else at[0]
    return f"{at[0] if relative.startswith('..') else relative}:{at[1]}"


def _times(found: Figures, samples: int) -> Iterator[str]:
    yield f"cold wall        {_spread(found.cold_wall, samples)}"
    yield f"warm wall        {_spread(found.warm_wall, samples)}"
    yield f"compile elapsed  {_spread(found.compile_elapsed, samples)}: cold wall - warm wall"
    native = _spread(found.native, samples)
    yield f"module work      {_spread(found.module_work, samples)}, of which the native compiler {native}"


def _spread(value: Spread, samples: int) -> str:
    """A median, with its deviation where there are samples enough to have one."""
    return f"{value.median:.2f} s" + (f" ± {value.mad:.2f}" if samples > 1 else "")


def _structure(found: Figures, cold: RunSeen) -> Iterator[str]:
    yield (
        f"builds           {found.builds_cold} cold, {found.builds_warm} warm; {counted(found.modules, 'module')}, "
        f"{size(found.source_bytes)} of generated source"
    )
    links = f", {counted(found.lto, 'LTO artifact')} ({found.lto_seconds:.2f} s)" if found.lto else ", no LTO artifacts"
    yield f"overlap          {found.overlap:.2f} builds at a time{links}"
    yield f"start-up         cold {_start(found.cold_start)}"
    yield f"                 warm {_start(found.warm_start)}"
    if found.processes > 1:
        each = ", ".join(
            f"{process.started.process}: {sum(x.compiled for x in process.loads)}" for process in cold.processes
        )
        yield f"processes        {found.processes} imported Warp; builds by process: {each}"


def _start(start: StartUp) -> str:
    return (
        f"{start.seconds:.2f} s to the last module, {percent(start.other_share)} of it without building or loading any "
        f"(import of warp {start.importing:.2f} s)"
    )


def _unused(built_warm: Sequence[Explained], found: Figures) -> Iterator[str]:
    if not built_warm:
        return
    again = len({(each.load.module, each.load.device) for each in built_warm})
    yield f"the cache is not reused: the warm run built {again} of {counted(found.modules, 'module')} again"
    reasons: dict[str, list[str]] = {}
    for each in built_warm:
        for cause in each.causes:
            reasons.setdefault(cause_words(cause), []).append(each.load.module)
    for reason, modules in reasons.items():
        names = ", ".join(dict.fromkeys(modules)) if len(set(modules)) < 4 else f"{len(set(modules))} modules"
        yield f"  {names}: {reason}"


def ceiling_line(found: Ceiling, built_warm: int = 0) -> str:
    """What would remain; an honest line where nothing is needless. ``built_warm``: the builds of the second run."""
    every = "the one build is needed" if found.builds == 1 else f"all {found.builds} builds are needed"
    if found.needless:
        told = (
            f"{found.remaining} of {found.builds} builds would remain if each module were built once "
            f"({found.needless_seconds:.2f} of {found.seconds:.2f} s saved)"
        )
    else:
        told = f"{every} in a fresh cache" if built_warm else f"nothing is built redundantly here: {every}"
    warm = f"; in the second run none of {built_warm} would remain if the cache were reused" if built_warm else ""
    return f"ceiling          {told}{warm}"


def adjoints(run: RunSeen) -> str:
    """What is said of modules whose adjoints nobody ran; empty where one was run, or none was generated."""
    workloads = [each.workload for each in run.processes]
    if any(each is None or not each.complete or any(kind.adjoint for kind in each.kinds) for each in workloads):
        return ""
    with_them = [load for load in run.built if load.has_adjoints and load.contents]
    if not with_them:
        return ""
    total = sum(load.source_bytes for load in with_them)
    return (
        f"generated in {counted(len(with_them), 'build')} ({size(total)} of source with them), and none was launched: "
        "see `warplint rule NVW307`"
    )


def seconds(value: float) -> str:
    """``12.3 s``, ``45 ms``."""
    return f"{value:.2f} s" if value >= 0.1 else f"{value * 1000:.0f} ms"


def size(count: int) -> str:
    """``1.2 MB``, ``9.7 kB``, ``31 B``."""
    for factor, unit in ((1_000_000, "MB"), (1_000, "kB")):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} B"


def comparison(compared: Compared) -> str:
    """The verdict, and the lines that it rests on."""
    return "\n".join([f"{compared.verdict.value}: {compared.reason}", *_indented(compared.lines)]) + "\n"


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)

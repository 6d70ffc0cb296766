"""Module builds, counted: a program in a fresh kernel cache, once more on the same cache, and with a fix applied.

Counts, not times: how long a compiler takes depends on the machine, how often it runs does not. Modules of Warp's own
(``map_add`` and the like) are left out.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from warplint.finding import Experiment, Finding, Status, Verdict
from warplint.fix import Overlap, applied, edits_by_path
from warplint.project import Project
from warplint.runner import RunOptions, RunResult, run
from warplint.runner.command import Command
from warplint.runner.protocol import Purpose
from warplint.source import Unreadable
from warplint.verify.evidence import Spot, spot, spot_of
from warplint.verify.records import ModuleLoad


@dataclass(frozen=True)
class Builds:
    """What one program loaded, in order: with an empty cache, and again with the cache that it left.

    ``problem``: why the counts mean nothing (the program did not run through, or keeps a cache of its own).
    """

    command: str
    cold: tuple[ModuleLoad, ...] = ()
    warm: tuple[ModuleLoad, ...] = ()
    problem: str | None = None

    @property
    def built_cold(self) -> int:
        """Modules that the compiler built, the cache being empty."""
        return sum(load.compiled for load in self.cold)

    @property
    def built_warm(self) -> int:
        """Modules that the compiler built although the same program had just run."""
        return sum(load.compiled for load in self.warm)

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules by name."""
        return tuple(dict.fromkeys(load.module for load in self.cold))


@dataclass(frozen=True)
class Comparison:
    """A program as it is, and with the fixes of ``fixed`` findings applied (None: there was nothing to apply)."""

    before: Builds
    after: Builds | None = None


def count(command: Command, options: RunOptions, texts: Mapping[str, str] | None = None) -> Builds:
    """Count the builds of a program; ``texts``: files that are to have another text while it runs."""
    with tempfile.TemporaryDirectory(prefix="warplint-kernels-", ignore_cleanup_errors=True) as cache:
        isolated = replace(options, cache=cache, texts=texts or {})
        cold = run(command, isolated, Purpose.BUILDS)
        problem = _problem(cold, cache)
        if problem is not None:
            return Builds(command.shown, _loads(cold), (), problem)
        warm = run(command, isolated, Purpose.BUILDS)
        return Builds(command.shown, _loads(cold), _loads(warm), _problem(warm, cache))


def compare(command: Command, options: RunOptions, findings: Sequence[Finding], project: Project) -> Comparison:
    """Count the builds of a program as it is, and with the fixes of the findings applied to copies of its files."""
    before = count(command, options)
    if before.problem is not None:
        return Comparison(before)
    try:
        texts = {
            path: applied(project.module(path).source.lines, edits) for path, edits in edits_by_path(findings).items()
        }
    except (Overlap, Unreadable):
        texts = {}
    return Comparison(before, count(command, options, texts) if texts else None)


def verdict_of(finding: Finding, comparisons: Sequence[Comparison]) -> Verdict | None:
    """What the counts say of a finding about builds; None: no program loaded the kernel's module."""
    verdicts = [verdict for each in comparisons if (verdict := _verdict(finding, each)) is not None]
    order = (Status.CONFIRMED, Status.INCONCLUSIVE, Status.REFUTED)
    return min(verdicts, key=lambda verdict: order.index(verdict.status), default=None)


def _verdict(finding: Finding, compared: Comparison) -> Verdict | None:
    before, after = compared.before, compared.after
    experiment = Experiment.BUILD_COUNT
    own = [load for load in before.cold if _kernel_spots(load) & _spots_of(finding)]
    if not own:
        return None
    figures: dict[str, object] = {
        "builds_cold": before.built_cold,
        "builds_second_run": before.built_warm,
        "modules": len(before.modules),
        "compile_ms": round(sum(load.milliseconds for load in before.cold if load.compiled)),
    }
    if before.problem is not None:
        return Verdict(Status.INCONCLUSIVE, f"builds could not be counted: {before.problem}", experiment, figures)
    if after is None or finding.fix is None:
        reason = f"{before.built_cold} builds; no mechanical fix to compare with"
        return Verdict(Status.INCONCLUSIVE, reason, experiment, figures)
    figures |= {"fixed_builds_cold": after.built_cold, "fixed_modules": len(after.modules)}
    if after.problem is not None:
        return Verdict(Status.INCONCLUSIVE, f"with the fix: {after.problem}", experiment, figures)
    shared = [load for load in after.cold if _kernel_spots(load) & _spots_of(finding) and len(load.kernels) > 1]
    harm = after.built_cold < before.built_cold and bool(shared)
    reason = f"{before.built_cold} builds in a fresh cache, {after.built_cold} with the fix"
    return Verdict(Status.CONFIRMED if harm else Status.REFUTED, reason, experiment, figures)


def _kernel_spots(load: ModuleLoad) -> frozenset[Spot]:
    return frozenset(spot_of(place) for place in load.kernels)


def _spots_of(finding: Finding) -> frozenset[Spot]:
    return frozenset(spot(span) for span in (finding.anchor.kernel, finding.span) if span is not None)


def _loads(result: RunResult) -> tuple[ModuleLoad, ...]:
    return tuple(load for load in result.of(ModuleLoad) if not load.internal)


def _problem(result: RunResult, cache: str) -> str | None:
    if result.problem is not None:
        return result.problem
    elsewhere = next((load.cache for load in result.of(ModuleLoad) if not load.cache.startswith(cache)), None)
    return f"the program keeps its kernels in a cache of its own ({elsewhere})" if elsewhere is not None else None

"""What counted builds say of a finding: the same program with and without what the finding asks for."""

from __future__ import annotations

from collections.abc import Sequence

from warplint.builds.count import Comparison
from warplint.finding import Experiment, Finding, Status, Verdict
from warplint.verify.evidence import Spot, spot_of, spots
from warplint.verify.records import ModuleLoad


def by_build_count(finding: Finding, comparisons: Sequence[Comparison]) -> Verdict | None:
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
    if after is None:
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
    return spots((finding.anchor.kernel, finding.span))

"""What counted builds say of a finding: how often its modules were built, again on the same cache, and with its fix.

Where no fix is mechanical, the loads themselves show the harm: one module built more than once in one run, builds in
the second run on a cache that the first one filled, adjoints in modules of a program that runs none.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from warplint.builds.count import Builds, Comparison
from warplint.builds.remedy import harm_of
from warplint.finding import Finding, Role, Span, Status, Verdict
from warplint.proof import BuildHarm, Experiment
from warplint.report import words
from warplint.verify.build_harms import JUDGED, Counted
from warplint.verify.evidence import Evidence, Spot, spot_of, spots
from warplint.verify.records import ModuleLoad, Place

_EXPERIMENT = Experiment.BUILD_COUNT


def by_build_count(
    finding: Finding, comparisons: Sequence[Comparison], runs: Sequence[Evidence] = ()
) -> Verdict | None:
    """What the counts say of a finding about builds; None: no program loaded the kernel's module."""
    verdicts = [verdict for each in comparisons if (verdict := _verdict(finding, each, runs)) is not None]
    if not verdicts and len(comparisons) == 1 and comparisons[0].before.problem is not None:
        reason = f"builds could not be counted: {comparisons[0].before.problem}"
        return Verdict(Status.INCONCLUSIVE, reason, _EXPERIMENT)
    order = (Status.CONFIRMED, Status.INCONCLUSIVE, Status.REFUTED)
    return min(verdicts, key=lambda verdict: order.index(verdict.status), default=None)


def _verdict(finding: Finding, compared: Comparison, runs: Sequence[Evidence]) -> Verdict | None:
    before = compared.before
    harm = harm_of(finding)
    judged = JUDGED.get(harm) if harm is not None else None
    figures: dict[str, object] = {
        "builds_cold": before.built_cold,
        "builds_second_run": before.built_warm,
        "modules": len(before.modules),
        "compile_ms": round(before.milliseconds),
        "source_bytes": before.source_bytes,
    }
    own = _own(finding, before)
    if not own:
        return _mapped(finding, before, figures)
    if before.problem is not None and (harm is not BuildHarm.SECOND_RUN or before.own_cache is None):
        return Verdict(Status.INCONCLUSIVE, f"builds could not be counted: {before.problem}", _EXPERIMENT, figures)
    if judged is None:
        return _with_fix(finding, compared, figures)
    status, reason = judged(Counted(finding, own, before, runs))
    is_harmful = status is Status.CONFIRMED
    if is_harmful and harm is BuildHarm.NEEDLESS_ADJOINT and compared.without_adjoints is not None:
        return _without_adjoints(reason, before, compared.without_adjoints, figures)
    told, more = _after_fix(compared, finding)
    reason = f"{reason}; {told}" if is_harmful and told else reason
    return Verdict(status, reason, _EXPERIMENT, {**figures, **more})


def _after_fix(compared: Comparison, finding: Finding) -> tuple[str, Mapping[str, object]]:
    """What the builds come to with what was tried for all findings; nothing where nothing could be tried."""
    before, after = compared.before, compared.after
    if after is None or after.problem is not None:
        return "", {}
    figures = {
        "fixed_builds_cold": after.built_cold,
        "fixed_builds_second_run": after.built_warm,
        "fixed_modules": len(after.modules),
    }
    if harm_of(finding) is BuildHarm.SECOND_RUN:
        told = f"without it {after.built_warm}" if after.built_warm < before.built_warm else ""
    else:
        fewer = after.built_cold < before.built_cold
        told = f"{before.built_cold} builds in a fresh cache, {after.built_cold} when it is repaired" if fewer else ""
    return told, figures


def _without_adjoints(reason: str, before: Builds, off: Builds, figures: dict[str, object]) -> Verdict:
    """Adjoints that nobody runs, against the same builds without them."""
    if off.problem is not None:
        text = f"{reason}; with `enable_backward` off it could not be run: {off.problem}"
        return Verdict(Status.INCONCLUSIVE, text, _EXPERIMENT, figures)
    figures |= {"fixed_source_bytes": off.source_bytes, "fixed_compile_ms": round(off.milliseconds)}
    text = (
        f"{reason}; with `enable_backward` off {before.source_bytes:,} bytes of generated source become "
        f"{off.source_bytes:,} (builds of {before.milliseconds / 1000:.1f} s, then {off.milliseconds / 1000:.1f} s)"
    )
    is_less = off.source_bytes < before.source_bytes
    return Verdict(Status.CONFIRMED if is_less else Status.REFUTED, text, _EXPERIMENT, figures)


def _mapped(finding: Finding, before: Builds, figures: dict[str, object]) -> Verdict | None:
    """What a call of ``wp.map`` built, whose kernel Warp writes itself; None: no such module was loaded from there."""
    here = spots((finding.span, finding.anchor.write, finding.anchor.kernel))
    built = [load for load in before.library if load.compiled and any(spot_of(place) in here for place in load.at)]
    if not built:
        return None
    count = len({(load.module, load.hash, load.device) for load in built})
    figures |= {"builds_here": count, "compile_ms": round(sum(load.milliseconds for load in built))}
    if before.problem is not None:
        return Verdict(Status.INCONCLUSIVE, f"builds could not be counted: {before.problem}", _EXPERIMENT, figures)
    reason = (
        f"the kernel that Warp writes for this call was built {count} times in one run"
        if count > 1
        else ("the kernel that Warp writes for this call was built once")
    )
    return Verdict(Status.CONFIRMED if count > 1 else Status.REFUTED, reason, _EXPERIMENT, figures)


def _own(finding: Finding, builds: Builds) -> list[ModuleLoad]:
    """The loads that the finding speaks of: of its kernel's modules, else of the module it names, else all.

    A module's earlier loads belong to it, whose kernel may have come in later.
    """
    if finding.anchor.kernel is not None:
        modules = {load.module for load in builds.cold if _kernel_spots(load) & _spots_of(finding)}
        return [load for load in builds.cold if load.module in modules]
    if finding.anchor.module is not None:
        return [load for load in builds.cold if load.module == finding.anchor.module]
    return list(builds.cold)


def _with_fix(finding: Finding, compared: Comparison, figures: dict[str, object]) -> Verdict:
    before, after = compared.before, compared.after
    if finding.fix is None:
        return _side_by_side(finding, before, figures)
    if after is None:
        reason = f"{before.built_cold} builds; no mechanical fix to compare with"
        return Verdict(Status.INCONCLUSIVE, reason, _EXPERIMENT, figures)
    figures |= {"fixed_builds_cold": after.built_cold, "fixed_modules": len(after.modules)}
    if after.problem is not None:
        return Verdict(Status.INCONCLUSIVE, f"with the fix: {after.problem}", _EXPERIMENT, figures)
    mine = {_name(place) for load in before.cold for place in load.kernels if spot_of(place) in _spots_of(finding)}
    shared = [load for load in after.cold if len(load.kernels) > 1 and mine & set(map(_name, load.kernels))]
    harm = after.built_cold < before.built_cold and bool(shared)
    reason = f"{before.built_cold} builds in a fresh cache, {after.built_cold} with the fix"
    return Verdict(Status.CONFIRMED if harm else Status.REFUTED, reason, _EXPERIMENT, figures)


def _side_by_side(finding: Finding, before: Builds, figures: dict[str, object]) -> Verdict:
    """Modules of the finding's kernels that could be one: built with equal options, for one device and block size."""
    decorators = (label.span for label in finding.labels if label.role is Role.KERNEL)
    here = _spots_of(finding) | spots(_line_below(span) for span in decorators)
    alike: dict[str, set[str]] = {}
    for load in before.cold:
        if load.compiled and _kernel_spots(load) & here:
            alike.setdefault(repr((load.device, load.block_dim, sorted(load.options.items()))), set()).add(load.module)
    count = max(map(len, alike.values()), default=0)
    reason = f"{words.counted(count, 'module')} of these kernels built with equal options, where one could hold them"
    return Verdict(Status.CONFIRMED if count > 1 else Status.REFUTED, reason, _EXPERIMENT, figures)


def _line_below(decorator: Span) -> Span:
    """Where the ``def`` stands."""
    return Span(decorator.path, (decorator.end_line or decorator.line) + 1)


def _name(place: Place) -> tuple[str, str]:
    """A kernel by its file and its name, which stay when a fix moves it to another line."""
    path, _, name = place
    return os.path.realpath(path), name


def _kernel_spots(load: ModuleLoad) -> frozenset[Spot]:
    return frozenset(spot_of(place) for place in load.kernels)


def _spots_of(finding: Finding) -> frozenset[Spot]:
    return spots((finding.anchor.kernel, finding.span))

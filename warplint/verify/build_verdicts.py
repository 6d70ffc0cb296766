"""What counted builds say of a finding: how often its modules were built, again on the same cache, and with its fix.

Where no fix is mechanical, the loads themselves show the harm: one module built more than once in one run, builds in
the second run on a cache that the first one filled, adjoints in modules of a program that runs none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from warplint import registry
from warplint.builds.count import Builds, Comparison
from warplint.finding import BuildHarm, Experiment, Finding, Status, Verdict
from warplint.verify.evidence import Evidence, Spot, spot, spot_of, spots
from warplint.verify.records import ModuleLoad, ModuleOptionsSeen

_EXPERIMENT = Experiment.BUILD_COUNT


def by_build_count(
    finding: Finding, comparisons: Sequence[Comparison], runs: Sequence[Evidence] = ()
) -> Verdict | None:
    """What the counts say of a finding about builds; None: no program loaded the kernel's module."""
    verdicts = [verdict for each in comparisons if (verdict := _verdict(finding, each, runs)) is not None]
    order = (Status.CONFIRMED, Status.INCONCLUSIVE, Status.REFUTED)
    return min(verdicts, key=lambda verdict: order.index(verdict.status), default=None)


def _verdict(finding: Finding, compared: Comparison, runs: Sequence[Evidence]) -> Verdict | None:
    before = compared.before
    own = _own(finding, before)
    if not own:
        return None
    figures: dict[str, object] = {
        "builds_cold": before.built_cold,
        "builds_second_run": before.built_warm,
        "modules": len(before.modules),
        "compile_ms": round(sum(load.milliseconds for load in before.cold if load.compiled)),
    }
    rule = registry.rule_of(finding.code)
    judged = _JUDGED.get(rule.harm) if rule is not None else None
    if before.problem is not None and (judged is not _second_run or before.own_cache is None):
        return Verdict(Status.INCONCLUSIVE, f"builds could not be counted: {before.problem}", _EXPERIMENT, figures)
    if judged is not None:
        harm, reason = judged(finding, own, before, runs)
        return Verdict(Status.CONFIRMED if harm else Status.REFUTED, reason, _EXPERIMENT, figures)
    return _with_fix(finding, compared, figures)


def _own(finding: Finding, builds: Builds) -> list[ModuleLoad]:
    """The loads that the finding speaks of: of its kernel's module, else of the module it names, else all."""
    if finding.anchor.kernel is not None:
        return [load for load in builds.cold if _kernel_spots(load) & _spots_of(finding)]
    if finding.anchor.module is not None:
        return [load for load in builds.cold if load.module == finding.anchor.module]
    return list(builds.cold)


def _with_fix(finding: Finding, compared: Comparison, figures: dict[str, object]) -> Verdict:
    before, after = compared.before, compared.after
    if after is None:
        reason = f"{before.built_cold} builds; no mechanical fix to compare with"
        return Verdict(Status.INCONCLUSIVE, reason, _EXPERIMENT, figures)
    figures |= {"fixed_builds_cold": after.built_cold, "fixed_modules": len(after.modules)}
    if after.problem is not None:
        return Verdict(Status.INCONCLUSIVE, f"with the fix: {after.problem}", _EXPERIMENT, figures)
    shared = [load for load in after.cold if _kernel_spots(load) & _spots_of(finding) and len(load.kernels) > 1]
    harm = after.built_cold < before.built_cold and bool(shared)
    reason = f"{before.built_cold} builds in a fresh cache, {after.built_cold} with the fix"
    return Verdict(Status.CONFIRMED if harm else Status.REFUTED, reason, _EXPERIMENT, figures)


Judged = tuple[bool, str]
"""Whether the harm is there, and what was seen."""


def _built_again(finding: Finding, own: Sequence[ModuleLoad], before: Builds, runs: Sequence[Evidence]) -> Judged:
    """One module, several contents, one run."""
    hashes = {(load.module, load.device, load.hash) for load in own if load.compiled}
    built = Counter((module, device) for module, device, _ in hashes)
    (module, _), times = max(built.items(), key=lambda item: item[1], default=(("", ""), 0))
    if times > 1:
        return True, f"module `{module}` was built {times} times in one run, where one build holds everything"
    return False, "the module was built once"


def _options_set(finding: Finding, own: Sequence[ModuleLoad], before: Builds, runs: Sequence[Evidence]) -> Judged:
    """One more build for the options, or a kernel built with other values than those that were asked for."""
    if finding.anchor.kernel is not None or not _built_again(finding, own, before, runs)[0]:
        for name, asked in _asked(finding, runs).items():
            load = next((load for load in own if name in load.options and load.options[name] != asked), None)
            if load is not None:
                value = load.options[name]
                return True, f"`{name}` was set to {asked!r}, but module `{load.module}` was built with {value!r}"
    return _built_again(finding, own, before, runs)


def _asked(finding: Finding, runs: Sequence[Evidence]) -> Mapping[str, object]:
    """The options of the call that the finding is about."""
    for run in runs:
        for seen in run.result.of(ModuleOptionsSeen):
            where = (run.places.statement(seen.stack[-1]), run.places.span(seen.stack[-1])) if seen.stack else ()
            if spot(finding.span) in spots(where):
                return seen.options
    return {}


def _second_run(finding: Finding, own: Sequence[ModuleLoad], before: Builds, runs: Sequence[Evidence]) -> Judged:
    """Builds, although the same program had just run."""
    if before.built_warm:
        where = "its own cache" if before.own_cache is not None else "the cache that the first one filled"
        return True, f"{before.built_warm} builds in a second run on {where}"
    return False, "a second run built nothing"


def _needless_adjoint(finding: Finding, own: Sequence[ModuleLoad], before: Builds, runs: Sequence[Evidence]) -> Judged:
    """Built with adjoints, and none was run."""
    ran = sum(run.result.program.backward_calls for run in runs if run.result.program is not None)
    with_adjoint = [load for load in own if load.compiled and load.options.get("enable_backward") is not False]
    if ran:
        return False, f"{ran} backward passes were run"
    count = len({load.module for load in with_adjoint})
    return bool(count), f"{count} module{'s' * (count != 1)} built with adjoints, and no backward pass was run"


def _small_modules(finding: Finding, own: Sequence[ModuleLoad], before: Builds, runs: Sequence[Evidence]) -> Judged:
    """Several modules of one kernel each, built with equal options."""
    mine = own[0]
    alike = {
        load.module
        for load in before.cold
        if load.compiled and len(load.kernels) == 1 and load.options == mine.options and load.device == mine.device
    }
    reason = f"{len(alike)} modules of one kernel each were built with equal options, where one build holds everything"
    return len(alike) > 2, reason


_JUDGED: Mapping[BuildHarm, Callable[[Finding, Sequence[ModuleLoad], Builds, Sequence[Evidence]], Judged]] = {
    BuildHarm.OPTION_UNHEARD: _options_set,
    BuildHarm.BUILT_AGAIN: _built_again,
    BuildHarm.SECOND_RUN: _second_run,
    BuildHarm.NEEDLESS_ADJOINT: _needless_adjoint,
    BuildHarm.SMALL_MODULES: _small_modules,
}


def _kernel_spots(load: ModuleLoad) -> frozenset[Spot]:
    return frozenset(spot_of(place) for place in load.kernels)


def _spots_of(finding: Finding) -> frozenset[Spot]:
    return spots((finding.anchor.kernel, finding.span))

"""The verdicts: each finding against what the runs measured. Nothing here is guessed; what is unknown is said.

A verdict per run comes first, then one over all runs: a single confirmed run confirms (the fault is real somewhere), a
run that could not tell outweighs one that saw no harm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING

from warplint.dataclass import dataclass
from warplint.finding import Finding, Severity, Source, Span, Status, Verdict
from warplint.proof import Experiment, TapeClaim
from warplint.verify.adjoint_verdicts import by_adjoint_check
from warplint.verify.declared import claim_of, draws_of, experiment_of
from warplint.verify.evidence import Evidence, checks_of, destruction, spot, spots
from warplint.verify.figures import REPAIRING, comparison, figures_of, leaf_name, number, one_sided, repairing
from warplint.verify.flat_verdicts import by_flat_gradient
from warplint.verify.point_verdicts import by_point
from warplint.verify.records import (
    ConfigSeen,
    Culprit,
    Gradient,
    GradientStatus,
    KernelCheck,
    ModuleCreatedSeen,
    ModuleLoad,
)
from warplint.verify.run_on_verdicts import by_running_on
from warplint.verify.tape_verdicts import by_rule

if TYPE_CHECKING:
    from warplint.builds.count import Comparison


@dataclass(frozen=True)
class Measurements:
    """All that was measured: a run each, the kernels that were checked alone, the builds that were counted."""

    runs: tuple[Evidence, ...] = ()
    alone: tuple[KernelCheck, ...] = ()
    alone_problem: str | None = None
    """Why kernels could not be checked alone, where that went wrong as a whole."""
    builds: tuple[Comparison, ...] = ()
    configured: bool = False
    """Whether the runs are commands that the user gave, whatever files were named."""


def judge(findings: Iterable[Finding], measured: Measurements) -> tuple[Finding, ...]:
    """Give every finding its verdict, and add those that only a run showed.

    A finding that only a run showed and that the
    same run refutes is no news and is left out. A confirmed finding becomes an error, whatever it was.
    """
    asked = tuple(findings)
    judged = [(finding, _verdict(finding, measured)) for finding in asked]
    for finding in _only_seen(asked, measured.runs):
        verdict = _verdict(finding, measured)
        if verdict is not None and verdict.status in (Status.CONFIRMED, Status.INCONCLUSIVE):
            judged.append((replace(finding, source=Source.RUNTIME), verdict))
    explained = {finding.anchor.kernel for finding, verdict in judged if _explains_adjoint(finding, verdict)}
    weighed = [_with_verdict(finding, _unless_explained(finding, verdict, explained)) for finding, verdict in judged]
    return tuple(sorted(weighed, key=lambda finding: finding.sort_key))


def _explains_adjoint(finding: Finding, verdict: Verdict | None) -> bool:
    """Whether a finding about a kernel, no guess, is confirmed: what is wrong with the kernel's adjoint is known."""
    confirmed = verdict is not None and verdict.status is Status.CONFIRMED
    return confirmed and finding.severity is not Severity.INFO and experiment_of(finding) is Experiment.KERNEL_CHECK


def _unless_explained(finding: Finding, verdict: Verdict | None, explained: Set[Span | None]) -> Verdict | None:
    """A guess about a launch is not borne out by a wrong adjoint that another finding explains."""
    if verdict is None or verdict.status is not Status.CONFIRMED or finding.severity is not Severity.INFO:
        return verdict
    by_adjoint = any(name.startswith(OF_KERNEL) for name in verdict.figures)
    if not by_adjoint or finding.anchor.kernel is None or finding.anchor.kernel not in explained:
        return verdict
    reason = f"{verdict.reason}; but another finding says what is wrong with that adjoint"
    return replace(verdict, status=Status.INCONCLUSIVE, reason=reason)


def _with_verdict(finding: Finding, verdict: Verdict | None) -> Finding:
    confirmed = verdict is not None and verdict.status is Status.CONFIRMED
    return replace(finding, verdict=verdict, severity=Severity.ERROR if confirmed else finding.severity)


def _only_seen(asked: Sequence[Finding], runs: Sequence[Evidence]) -> tuple[Finding, ...]:
    """Findings of recorded traces that no finding from source accounts for; each fault once.

    A run tells two names of one memory apart only where they are not the same part of it, so that another rule may
    speak of the fault there.
    """
    accounted = {id(run.counterpart(finding)) for run in runs for finding in asked}
    destroyed = {found for finding in asked if (found := destruction(finding)) is not None}
    seen: dict[tuple[object, ...], Finding] = {}
    for run in runs:
        for finding in run.findings:
            if id(finding) not in accounted and destruction(finding) not in destroyed:
                seen.setdefault((finding.code, *spot(finding.span)), finding)
    return tuple(seen.values())


def _verdict(finding: Finding, measured: Measurements) -> Verdict | None:
    experiment = experiment_of(finding)
    if experiment is Experiment.NONE:
        return None
    if experiment is Experiment.BUILD_COUNT:
        from warplint.verify.build_verdicts import by_build_count  # most findings are not about builds

        return by_build_count(finding, measured.builds, measured.runs) or _not_reached(measured, experiment)
    of_run = _BY_RUN[experiment]
    verdicts = [verdict for run in measured.runs if (verdict := of_run(finding, run)) is not None]
    if not verdicts and experiment is Experiment.KERNEL_CHECK:
        verdicts = [verdict for verdict in (_unrecorded(finding, measured),) if verdict is not None]
    return _gravest(verdicts) or _not_reached(measured, experiment)


OF_KERNEL = "kernel_"
"""Begins the names of figures that a check of a kernel alone gave, beside those of a gradient."""

ALL = 0.95
"""The share of an error that counts as the whole of it."""
_GRAVITY = (Status.CONFIRMED, Status.INCONCLUSIVE, Status.REFUTED, Status.NOT_REACHED)


def _gravest(verdicts: Sequence[Verdict]) -> Verdict | None:
    return min(verdicts, key=lambda verdict: _GRAVITY.index(verdict.status), default=None)


def _not_reached(measured: Measurements, experiment: Experiment) -> Verdict:
    runs = measured.runs
    problems = [run.result.problem for run in runs if run.result.problem is not None]
    if problems:
        return Verdict(Status.NOT_REACHED, f"the program did not come here: {problems[0]}", experiment)
    if not runs:
        return Verdict(Status.NOT_REACHED, "no program that comes here was run", experiment)
    cut = next((run.result.program for run in runs if run.result.program and run.result.program.seen), None)
    if cut is not None:
        more = cut.more or "--iterations"
        reason = f"not reached in the part that was run (stopped after {cut.seen}; {more} N looks at more)"
        return Verdict(Status.NOT_REACHED, reason, experiment)
    if measured.configured:
        return Verdict(Status.NOT_REACHED, "no configured command came here", experiment)
    which = "the program" if len(runs) == 1 else f"none of the {len(runs)} programs"
    return Verdict(Status.NOT_REACHED, f"{which} {'did not come' if len(runs) == 1 else 'came'} here", experiment)


# ------------------------------------------------------------------------------------------------------------------
# Finite differences


def _by_finite_difference(finding: Finding, run: Evidence) -> Verdict | None:
    """The verdict of one run on a finding about the tape; None: the run did not come to it."""
    convicted = [
        (gradient, culprit)
        for gradient in run.gradients
        if gradient.status is GradientStatus.FAIL
        for culprit in gradient.culprits
        if run.names(culprit, finding)
    ]
    if convicted:
        gradient, culprit = max(convicted, key=_tellingness)
        return _convicted(gradient, culprit, all(run.names(each, finding) for each in gradient.culprits))
    if run.counterpart(finding) is None and not run.came_to(finding):
        return None
    own = by_rule(finding, run)
    if own is not None:
        return own
    experiment = Experiment.FINITE_DIFFERENCE
    if claim_of(finding) is TapeClaim.WITHIN_LAUNCH:
        alone = _by_kernel_check(finding, run)
        if alone is not None and alone.status is Status.CONFIRMED:
            return replace(alone, experiment=experiment)
    about = run.gradients_about(finding)
    if not about:
        why = run.result.problem or "no gradient was computed from what was recorded here"
        return Verdict(Status.INCONCLUSIVE, f"reached, but not measured: {why}", experiment)
    return _acquitted(about, experiment)


def _tellingness(pair: tuple[Gradient, Culprit]) -> tuple[bool, float, float]:
    """A gradient that the program uses says more than one that it does not, a larger share more than a smaller."""
    gradient, culprit = pair
    return bool(gradient.consumed_at), culprit.effect or 0.0, gradient.relative_error or 0.0


def _convicted(gradient: Gradient, culprit: Culprit, alone: bool) -> Verdict:
    """``alone``: every place that a repair names is the finding's; else its share in the error is told."""
    repaired = culprit.repair in gradient.repaired_by
    told = repairing(gradient.repaired_by) if repaired else f"{REPAIRING[culprit.repair]} changes it"
    reason = f"{comparison(gradient)}; {told}{'' if alone else _share(culprit)}"
    figures = {
        **figures_of(gradient),
        "repaired": repaired,
        "repaired_by": [repair.value for repair in gradient.repaired_by],
    }
    if culprit.effect is not None:
        figures["effect"] = culprit.effect
    return Verdict(Status.CONFIRMED, reason, Experiment.FINITE_DIFFERENCE, figures)


def _share(culprit: Culprit) -> str:
    """What this place has done by itself, where others are to blame as well."""
    if culprit.effect is None or culprit.effect > ALL:
        return ""
    return f" (other places have part in it; this one alone makes {culprit.effect:.0%} of the error)"


def _acquitted(about: Sequence[Gradient], experiment: Experiment) -> Verdict:
    """No measurement names the finding: refuted where every gradient is right or explained by something else."""
    unexplained = [gradient for gradient in about if gradient.is_unexplained]
    undecided = [g for g in about if g.status is GradientStatus.INCONCLUSIVE]
    right = [g for g in about if g.status in (GradientStatus.PASS, GradientStatus.FLAT)]
    if unexplained:
        gradient = unexplained[0]
        reason = (
            f"the gradient of {leaf_name(gradient)} is wrong ({number(gradient.ad)}, finite differences "
            f"{number(gradient.fd)}), but no repair shows by what"
        )
        return Verdict(Status.INCONCLUSIVE, reason, experiment, figures_of(gradient))
    if undecided:
        gradient = undecided[0]
        reason = f"the gradient of {leaf_name(gradient)} cannot be judged: {gradient.reason}"
        return Verdict(Status.INCONCLUSIVE, reason, experiment, figures_of(gradient))
    if right:
        gradient = max(right, key=lambda each: each.relative_error or 0.0)
        reason = (
            f"the gradient of {leaf_name(gradient)} is right: {number(gradient.ad)}, finite differences "
            f"{number(gradient.fd)}{one_sided(gradient.reason)}" + (f" ({len(right)} leaves)" if len(right) > 1 else "")
        )
        return Verdict(Status.REFUTED, reason, experiment, figures_of(gradient))
    gradient = about[0]
    reason = f"the gradient of {leaf_name(gradient)} is wrong, but other faults explain all of it"
    return Verdict(Status.REFUTED, reason, experiment, figures_of(gradient))


# ------------------------------------------------------------------------------------------------------------------
# Kernels


def _by_kernel_check(finding: Finding, run: Evidence) -> Verdict | None:
    """The verdict of one run on a finding about a kernel; None: no launch of it was checked there."""
    checks = run.checks_of(finding)
    if not checks:
        return None
    verdict = _checked(checks)
    if verdict.status is not Status.CONFIRMED:
        return verdict
    about = run.gradients_about(finding)
    wrong = next((each for each in about if each.status is GradientStatus.FAIL), None)
    if wrong is None:
        right = bool(about) and all(each.status is not GradientStatus.INCONCLUSIVE for each in about)
        but = (
            "yet every gradient that this program computes is right" if right else "what it does to a leaf is not known"
        )
        return replace(verdict, status=Status.INCONCLUSIVE, reason=f"{verdict.reason}; {but}")
    figures = {**figures_of(wrong), **{f"{OF_KERNEL}{key}": value for key, value in verdict.figures.items()}}
    reason = (
        f"the gradient of {leaf_name(wrong)} is {number(wrong.ad)}, finite differences give {number(wrong.fd)}; "
        + verdict.reason
    )
    return replace(verdict, reason=reason, figures=figures)


def _unrecorded(finding: Finding, measured: Measurements) -> Verdict | None:
    """The verdict on a kernel that no run checked: by the check of it alone, on inputs made from its signature."""
    found = checks_of(finding, measured.alone)
    launched = [run for run in measured.runs if run.launched(finding)]
    if found:
        verdict = _checked(found)
        how = "no gradient passed through it" if launched else "no run reached it"
        verdict = replace(verdict, reason=f"{how}; alone, on inputs made for it: {verdict.reason}")
        draws = draws_of(finding)
        if verdict.status is Status.REFUTED and draws:
            words = ", ".join(draw.value for draw in draws)
            reason = f"{verdict.reason}; {words} were tried, but the points of a program may be others"
            return replace(verdict, status=Status.INCONCLUSIVE, reason=reason)
        if verdict.status is Status.CONFIRMED and finding.severity is Severity.INFO:
            reason = f"{verdict.reason}; whether any program differentiates it so is not known"
            return replace(verdict, status=Status.INCONCLUSIVE, reason=reason)
        return verdict
    if not launched:
        if measured.alone_problem is None:
            return None
        why = f"no run reached it, and it could not be checked alone: {measured.alone_problem}"
        return Verdict(Status.NOT_REACHED, why, Experiment.KERNEL_CHECK)
    why = launched[0].result.problem or "no gradient passed through it"
    return Verdict(Status.INCONCLUSIVE, f"the kernel ran, but was not checked: {why}", Experiment.KERNEL_CHECK)


def _checked(checks: Sequence[KernelCheck]) -> Verdict:
    check = min(checks, key=lambda each: (_DECIDING.index(each.status), -_weight(each)))
    status = {GradientStatus.FAIL: Status.CONFIRMED, GradientStatus.INCONCLUSIVE: Status.INCONCLUSIVE}.get(
        check.status, Status.REFUTED
    )
    at = f" for `{check.argument}`" if check.argument else ""
    at += f", on {check.draw.value}" if check.draw is not None else ""
    if status is Status.INCONCLUSIVE:
        reason = f"the adjoint of `{check.kernel}` cannot be judged: {check.reason}"
    else:
        word = "wrong" if status is Status.CONFIRMED else "right"
        reason = (
            f"the adjoint of `{check.kernel}` alone is {word}{at}: {number(check.ad)}, "
            f"finite differences {number(check.fd)}{one_sided(check.reason)}"
        )
    off = None if status is Status.REFUTED and one_sided(check.reason) else _relative(check.ad, check.fd)
    figures = {"ad": check.ad, "fd": check.fd, "relative_error": off, "kernel": check.kernel}
    if check.argument:
        figures["argument"] = check.argument
    if check.draw is not None:
        figures["inputs"] = check.draw.value
    return Verdict(status, reason, Experiment.KERNEL_CHECK, figures)


_DECIDING = (GradientStatus.FAIL, GradientStatus.INCONCLUSIVE, GradientStatus.PASS, GradientStatus.FLAT)


def _weight(check: KernelCheck) -> float:
    """Of checks that say the same, the one that says most: the worst failure, else the largest derivative."""
    if check.status is GradientStatus.FAIL:
        off = _relative(check.ad, check.fd)
        return math.inf if off is None else off
    size = max(abs(check.ad), abs(check.fd))
    return size if math.isfinite(size) else 0.0


def _relative(ad: float, fd: float) -> float | None:
    scale = max(abs(ad), abs(fd))
    return abs(ad - fd) / scale if math.isfinite(scale) and scale > 0 else None


# ------------------------------------------------------------------------------------------------------------------
# Options


def _by_option_value(finding: Finding, run: Evidence) -> Verdict | None:
    """Whether the option that was asked for is in effect in the modules that the assignment came too late for."""
    option = finding.anchor.option
    asked = _assignment(finding, run)
    if option is None or asked is None:
        return None
    experiment = Experiment.OPTION_VALUE
    loads = _loads_of(finding, asked, run)
    if not loads:
        return Verdict(Status.INCONCLUSIVE, "the option was set, but no module was loaded by then", experiment)
    differing = {name: load for name, load in loads.items() if load.options.get(option) != asked.value}
    missing = [name for name, load in loads.items() if option not in load.options]
    if missing:
        return Verdict(Status.INCONCLUSIVE, f"the value of `{option}` cannot be read back in this Warp", experiment)
    name, load = next(iter((differing or loads).items()))
    figures = {"option": option, "asked": asked.value, "effective": load.options[option], "module": name}
    if differing:
        reason = f"`{option}` was set to {asked.value!r}, but module `{name}` was built with {load.options[option]!r}"
        return Verdict(Status.CONFIRMED, reason, experiment, figures)
    rebuilt = _rebuilt(name, run)
    if rebuilt > 1:
        reason = f"`{option}` took effect by building module `{name}` again ({rebuilt} builds)"
        return Verdict(Status.CONFIRMED, reason, experiment, {**figures, "builds": rebuilt})
    reason = f"`{option}` is {asked.value!r} in module `{name}`, as asked"
    return Verdict(Status.REFUTED, reason, experiment, figures)


def _assignment(finding: Finding, run: Evidence) -> ConfigSeen | None:
    for seen in run.result.of(ConfigSeen):
        if seen.option == finding.anchor.option and seen.stack:
            where = spots((run.places.statement(seen.stack[-1]), run.places.span(seen.stack[-1])))
            if spot(finding.span) in where:
                return seen
    return None


def _loads_of(finding: Finding, asked: ConfigSeen, run: Evidence) -> dict[str, ModuleLoad]:
    """The last load of each module of the user's that existed when the option was set; the finding's own if known."""
    before = {seen.module for seen in run.result.of(ModuleCreatedSeen) if seen.seq < asked.seq}
    loads = {
        load.module: load
        for load in run.result.of(ModuleLoad)
        if not load.internal and (load.module in before or not before)
    }
    own = loads.get(finding.anchor.module or "")
    return {own.module: own} if own is not None else loads


def _rebuilt(module: str, run: Evidence) -> int:
    return len({load.hash for load in run.result.of(ModuleLoad) if load.module == module})


_BY_RUN: Mapping[Experiment, Callable[[Finding, Evidence], Verdict | None]] = {
    Experiment.FINITE_DIFFERENCE: _by_finite_difference,
    Experiment.KERNEL_CHECK: _by_kernel_check,
    Experiment.FLAT_GRADIENT: by_flat_gradient,
    Experiment.NONSMOOTH_POINT: by_point,
    Experiment.ADJOINT_CHECK: by_adjoint_check,
    Experiment.RUN_ON: by_running_on,
    Experiment.OPTION_VALUE: _by_option_value,
}

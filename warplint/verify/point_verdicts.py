"""The verdict on the claim that the data stand at a point without a derivative.

A gradient that is not finite, made by the adjoint of that kernel alone, proves a singular point. A kink is proven by
the slopes of its two sides: the adjoint takes one of them, which no two-sided difference gives.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from warplint.finding import Finding, Severity, Status, Verdict
from warplint.proof import Experiment
from warplint.verify.evidence import Evidence
from warplint.verify.figures import comparison, figures_of, leaf_name, number, one_sided
from warplint.verify.records import Gradient, GradientStatus, KernelCheck, SignatureKind

EXPERIMENT = Experiment.NONSMOOTH_POINT


def by_point(finding: Finding, run: Evidence) -> Verdict | None:
    """The verdict of one run; None: no launch of the kernel was checked there."""
    checks = run.checks_of(finding)
    if not checks:
        return None
    about = run.gradients_about(finding)
    singular = next((check for check in checks if _is_infinite(check)), None)
    if singular is not None:
        return _singular(singular, about)
    bent = next((check for check in checks if _is_bent(check)), None)
    if bent is not None and finding.severity is not Severity.INFO:
        return _bent(bent, about)
    undecided = next((check for check in checks if check.status is GradientStatus.INCONCLUSIVE), None)
    if undecided is not None:
        reason = f"the adjoint of `{undecided.kernel}` cannot be judged: {undecided.reason}"
        return Verdict(Status.INCONCLUSIVE, reason, EXPERIMENT)
    reason = f"the adjoint of `{checks[0].kernel}` is finite for all that this run gives it"
    return Verdict(Status.REFUTED, reason, EXPERIMENT, _figures(checks[0]))


def _is_infinite(check: KernelCheck) -> bool:
    """Wrong, or without anything to be compared with: the slope may be infinite as well."""
    return check.status in (GradientStatus.FAIL, GradientStatus.INCONCLUSIVE) and not math.isfinite(check.ad)


def _endless(gradient: Gradient) -> str:
    """What a gradient is where some of its numbers are none and differences have no limit either; else ``""``."""
    signature = gradient.signature
    if gradient.status is not GradientStatus.INCONCLUSIVE or signature is None:
        return ""
    is_endless = signature.kind is SignatureKind.NOT_FINITE
    return f"the gradient of {leaf_name(gradient)} is {signature.text}" if is_endless else ""


def _is_bent(check: KernelCheck) -> bool:
    return check.status is GradientStatus.PASS and bool(one_sided(check.reason))


def _singular(check: KernelCheck, about: Iterable[Gradient]) -> Verdict:
    at = f" for `{check.argument}`" if check.argument else ""
    told = f"the adjoint of `{check.kernel}` alone is {number(check.ad)}{at}"
    wrong = next((g for g in about if g.status is GradientStatus.FAIL and not math.isfinite(g.ad)), None)
    endless = next((words for g in about if (words := _endless(g))), None)
    if wrong is None and endless is not None:
        figures = {"ad": check.ad, "fd": None, "kernel": check.kernel}
        return Verdict(Status.CONFIRMED, f"{endless}; {told}", EXPERIMENT, figures)
    if wrong is None:
        reason = f"{told}, yet no gradient that this program computes is"
        return Verdict(Status.INCONCLUSIVE, reason, EXPERIMENT, _figures(check))
    reason = f"{comparison(wrong)}; {told}"
    return Verdict(Status.CONFIRMED, reason, EXPERIMENT, {**figures_of(wrong), "kernel": check.kernel})


def _bent(check: KernelCheck, about: Iterable[Gradient]) -> Verdict:
    told = next((g for g in about if g.status is GradientStatus.PASS and one_sided(g.reason)), None)
    if told is None:
        reason = f"`{check.kernel}` stands at a kink ({check.reason}), but no gradient of this program shows it"
        return Verdict(Status.INCONCLUSIVE, reason, EXPERIMENT, _figures(check))
    reason = f"the gradient of {leaf_name(told)} is {number(told.ad)}, the slope of one side: {told.reason}"
    return Verdict(Status.CONFIRMED, reason, EXPERIMENT, {**figures_of(told), "kernel": check.kernel})


def _figures(check: KernelCheck) -> dict[str, object]:
    return {"ad": check.ad, "fd": check.fd, "kernel": check.kernel}

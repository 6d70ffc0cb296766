"""The verdict on the claim that a custom adjoint is wrong: its own check, beside a wrong gradient that passes it."""

from __future__ import annotations

from warplint.finding import Finding, Status, Verdict
from warplint.proof import Experiment
from warplint.verify.evidence import Evidence, spot, spot_of
from warplint.verify.figures import comparison, figures_of, leaf_name, number
from warplint.verify.records import AdjointCheck, GradientStatus

EXPERIMENT = Experiment.ADJOINT_CHECK


def by_adjoint_check(finding: Finding, run: Evidence) -> Verdict | None:
    """The verdict of one run; None: this adjoint was not checked there."""
    check = _check_of(finding, run)
    if check is None:
        return None
    figures: dict[str, object] = {
        "ad": check.ad,
        "fd": check.fd,
        "relative_error": abs(check.ad - check.fd) / max(abs(check.ad), abs(check.fd)),
        "function": check.function,
        "argument": check.argument,
    }
    told = (
        f"the adjoint of `{check.function}` alone is wrong for `{check.argument}`: {number(check.ad)}, finite "
        f"differences {number(check.fd)}"
    )
    about = run.gradients_about(finding)
    wrong = next((each for each in about if each.status is GradientStatus.FAIL), None)
    if wrong is not None:
        figures = {**figures_of(wrong), **{f"adjoint_{name}": value for name, value in figures.items()}}
        return Verdict(Status.CONFIRMED, f"{comparison(wrong)}; {told}", EXPERIMENT, figures)
    undecided = next((each for each in about if each.status is GradientStatus.INCONCLUSIVE), None)
    if undecided is not None or not about:
        of = f"the gradient of {leaf_name(undecided)} cannot be judged" if undecided else "no gradient was judged"
        return Verdict(Status.INCONCLUSIVE, f"{told}; {of}", EXPERIMENT, figures)
    return Verdict(
        Status.REFUTED, f"{told}; yet every gradient that this program computes is right", EXPERIMENT, figures
    )


def _check_of(finding: Finding, run: Evidence) -> AdjointCheck | None:
    return next(
        (
            check
            for check in run.result.of(AdjointCheck)
            if check.status is GradientStatus.FAIL
            and spot_of(check.defined) == spot(finding.span)
            and check.argument in finding.anchor.arguments
        ),
        None,
    )

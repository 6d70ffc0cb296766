"""The verdict on the claim that a leaf's gradient is zero: that zero is right, so that it is the confirmation."""

from __future__ import annotations

from warplint.finding import Finding, Status, Verdict
from warplint.proof import Experiment
from warplint.verify.evidence import Evidence
from warplint.verify.figures import figures_of, leaf_name, number
from warplint.verify.records import GradientStatus


def by_flat_gradient(finding: Finding, run: Evidence) -> Verdict | None:
    """The verdict of one run; None: the run did not come to it."""
    if run.counterpart(finding) is None and not run.came_to(finding):
        return None
    experiment = Experiment.FLAT_GRADIENT
    about = run.gradients_of(finding)
    if not about:
        why = run.result.problem or "no gradient of this leaf was computed"
        return Verdict(Status.INCONCLUSIVE, f"reached, but not measured: {why}", experiment)
    flat = [gradient for gradient in about if gradient.status is GradientStatus.FLAT]
    undecided = [gradient for gradient in about if gradient.status is GradientStatus.INCONCLUSIVE]
    if flat:
        reason = f"the gradient of {leaf_name(flat[0])} is zero, and so are finite differences"
        return Verdict(Status.CONFIRMED, reason, experiment, figures_of(flat[0]))
    gradient = (undecided or about)[0]
    if undecided:
        reason = f"the gradient of {leaf_name(gradient)} cannot be judged: {gradient.reason}"
        return Verdict(Status.INCONCLUSIVE, reason, experiment, figures_of(gradient))
    reason = (
        f"the gradient of {leaf_name(gradient)} is not flat: {number(gradient.ad)}, finite differences "
        f"{number(gradient.fd)}"
    )
    return Verdict(Status.REFUTED, reason, experiment, figures_of(gradient))

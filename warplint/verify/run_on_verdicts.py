"""The verdict on the claim that a loop stopped before its answer: it was run on, and both answer and gradient moved."""

from __future__ import annotations

from warplint.finding import Finding, Status, Verdict
from warplint.proof import Experiment
from warplint.verify.evidence import Evidence, spot, spots
from warplint.verify.figures import number
from warplint.verify.records import UnconvergedLoop


def by_running_on(finding: Finding, run: Evidence) -> Verdict | None:
    """The verdict of one run; None: no such loop was run on there."""
    loops = [loop for loop in run.result.of(UnconvergedLoop) if spot(finding.span) in run.spots_of(loop.launched)]
    made = spots((finding.anchor.allocation,))
    loop = next((loop for loop in loops if made <= run.spots_of(loop.allocated)), None)
    if loop is None:
        return None
    reason = (
        f"after {loop.further} more rounds the answer has moved by {loop.moved:.0%}; the derivative for `{loop.leaf}` "
        f"is {number(loop.ad)} as it stands (finite differences agree), and {number(loop.fd)} of the answer"
    )
    figures = {
        "ad": loop.ad,
        "fd": loop.fd,
        "relative_error": abs(loop.ad - loop.fd) / max(abs(loop.ad), abs(loop.fd)),
        "leaf": loop.leaf,
        "rounds": loop.rounds,
        "further_rounds": loop.further,
        "moved": loop.moved,
    }
    return Verdict(Status.CONFIRMED, reason, Experiment.RUN_ON, figures)

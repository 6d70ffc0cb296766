"""Verdicts on rules about tapes whose proof is no what-if repair: what a run shows of broken chains and of uses.

Each judge is asked after the repairs convicted nobody, for a finding that the run came to. None: the ordinary verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from warplint.finding import Finding, Role, Status, Verdict
from warplint.proof import Experiment, TapeClaim
from warplint.verify.declared import claim_of
from warplint.verify.evidence import Evidence, spots
from warplint.verify.figures import comparison, figures_of, leaf_name, number
from warplint.verify.records import (
    AdjointCheck,
    BackwardSeen,
    ConsumedReading,
    EmptiedView,
    Gradient,
    GradientStatus,
    SignatureKind,
    SparedView,
    Stagnant,
    Unread,
)

FINITE_DIFFERENCE = Experiment.FINITE_DIFFERENCE


def by_rule(finding: Finding, run: Evidence) -> Verdict | None:
    """The verdict of the rule's own judge."""
    claim = claim_of(finding)
    judge = _JUDGES.get(claim) if claim is not None else None
    return judge(finding, run) if judge is not None else None


def _broken(finding: Finding, run: Evidence) -> Verdict | None:
    """A chain that is cut where the finding stands: finite differences see an influence that the tape does not.

    No repair of the replay can put in what no tape holds (host data) or what has no adjoint; where one can, and the
    gradient is wrong still, something else is to blame.
    """
    leaves = spots(label.span for label in finding.labels if label.role is Role.ALLOCATION)
    about = [gradient for gradient in run.gradients_about(finding) if leaves & run.spots_of(gradient.allocated)]
    if not about:
        why = "reached, but no gradient of the leaf was measured: the tape that is differentiated never saw it"
        return Verdict(Status.INCONCLUSIVE, why, FINITE_DIFFERENCE)
    stopped = [g for g in about if g.status is GradientStatus.INCONCLUSIVE and _stops_here(g, finding, run)]
    if stopped:
        reason = f"{comparison(stopped[0])}; with what happens here held constant they agree: here the gradient stops"
        return Verdict(Status.CONFIRMED, reason, FINITE_DIFFERENCE, figures_of(stopped[0]))
    wrong = [gradient for gradient in about if gradient.is_unexplained]
    if not wrong:
        return None
    function = _recorded_function(run)
    if function is not None:
        why = f"`{function.function}`, which the tape recorded, carries the gradient past here; it is wrong itself"
        return Verdict(Status.REFUTED, why, FINITE_DIFFERENCE, figures_of(wrong[0]))
    gradient = max(wrong, key=lambda each: (bool(each.consumed_at), each.relative_error or 0.0))
    reason = f"{comparison(gradient)}: what passes here has no adjoint, and no repair of what is there makes them agree"
    return Verdict(Status.CONFIRMED, reason, FINITE_DIFFERENCE, figures_of(gradient))


def _stops_here(gradient: Gradient, finding: Finding, run: Evidence) -> bool:
    """Whether the gradient is right for all but what the finding speaks of, and nothing else was held constant."""
    launched = [label.span for label in finding.labels if label.role in (Role.WRITE, Role.LAUNCH)]
    here = spots((finding.span, finding.anchor.write, *launched))
    return bool(gradient.culprits) and all(run.spots_of(culprit.writer) & here for culprit in gradient.culprits)


def _parted(finding: Finding, run: Evidence) -> Verdict | None:
    """An alias with a gradient of its own cuts the chain; a value destroyed under another name, memory would repair."""
    return None if finding.anchor.read is not None else _broken(finding, run)


def _by_host(finding: Finding, run: Evidence) -> Verdict | None:
    """State that goes from tape to tape by way of the host: no adjoint can be chained through it.

    The gradient was compared with the program run again, since running the recorded operations again cannot follow.
    """
    leaves = spots(label.span for label in finding.labels if label.role is Role.ALLOCATION)
    for gradient in run.gradients_about(finding):
        is_loop = gradient.signature is not None and gradient.signature.kind is SignatureKind.HOST_LOOP
        if is_loop and gradient.is_unexplained and leaves & run.spots_of(gradient.allocated):
            reason = f"{comparison(gradient)}: what goes on by way of the host has no adjoint"
            return Verdict(Status.CONFIRMED, reason, FINITE_DIFFERENCE, figures_of(gradient))
    return None


def _recorded_function(run: Evidence) -> AdjointCheck | None:
    """A function that a tape recorded (``record_func``) and that is to blame for a wrong gradient."""
    checks = run.result.of(AdjointCheck)
    return next((check for check in checks if check.forward is None and check.status is GradientStatus.FAIL), None)


def _left_over(finding: Finding, run: Evidence) -> Verdict | None:
    """One loss differentiated several times on one recording: the gradient is right for its multiple only."""
    if run.counterpart(finding) is None:
        return None
    seen = run.result.of(BackwardSeen)
    for gradient in run.gradients_about(finding):
        walks = [each for each in seen if each.stack in gradient.backward and each.loss is not None]
        times = min(_times(walks), len(gradient.backward))  # the same lines may run in each iteration
        if times > 1 and gradient.status is GradientStatus.PASS and len(gradient.backward) > 1:
            once = number(gradient.fd / times)
            reason = (
                f"the gradient of {leaf_name(gradient)} is {number(gradient.ad)}: that of the loss counted {times} "
                f"times, whose own is {once} by finite differences"
            )
            figures = {**figures_of(gradient), "fd": gradient.fd / times, "times": times}
            return Verdict(Status.CONFIRMED, reason, FINITE_DIFFERENCE, figures)
    return None


def _times(walks: Sequence[BackwardSeen]) -> int:
    """How often one recording was walked from one loss: the same tape, the same loss, as many operations."""
    return max(Counter((each.tape, each.loss, each.entries) for each in walks).values(), default=0)


def _stale(finding: Finding, run: Evidence) -> Verdict | None:
    """A reading that the run did not see as stale, or a gradient that was not measured: nothing is known."""
    allocation = spots((finding.anchor.allocation,))
    about = [g for g in run.gradients_about(finding) if allocation & run.spots_of(g.allocated)]
    lost = _stagnant(finding, run) or _spared(finding, run) or _consumed(finding, run)
    if lost is not None:
        return lost
    emptied = _emptied(finding, run)
    if emptied is not None:
        return _kept_too_long(emptied, about)
    if about and run.counterpart(finding) is not None:
        return None
    if not about:
        why = "reached, but the gradient of an intermediate array has nothing to be compared with"
    else:
        why = "the gradient is right when it is read; what is made of it afterwards is not seen"
    return Verdict(Status.INCONCLUSIVE, why, FINITE_DIFFERENCE, figures_of(about[0]) if about else {})


def _stagnant(finding: Finding, run: Evidence) -> Verdict | None:
    """The leaf was updated from the view that was cleared: it is, to the bit, what it was."""
    seen = _view_used(Stagnant, finding, run)
    if seen is None:
        return None
    line = seen.written[-1][1] if seen.written else 0
    reason = (
        f"the gradient held values up to {number(seen.largest)} when it was read here, and was cleared; the "
        f"update of the leaf after that (line {line}) wrote back, to the bit, what was there"
    )
    return Verdict(Status.CONFIRMED, reason, FINITE_DIFFERENCE, {"largest": seen.largest, "moved": 0.0})


def _spared(finding: Finding, run: Evidence) -> Verdict | None:
    """The leaf is another where the clearing is undone: the view is used for what it no longer shows."""
    seen = _view_used(SparedView, finding, run)
    if seen is None:
        return None
    reason = (
        f"the gradient held values up to {number(seen.largest)} when the view was taken here, and was cleared; "
        f"run again with the clearing undone, the leaf differs by {number(seen.moved)} at the next backward"
    )
    return Verdict(Status.CONFIRMED, reason, FINITE_DIFFERENCE, {"largest": seen.largest, "moved": seen.moved})


def _consumed(finding: Finding, run: Evidence) -> Verdict | None:
    """The gradient of an intermediate array was something on the way, and nothing when the program read it."""
    here = spots((finding.span,))
    seen = next((each for each in run.result.of(ConsumedReading) if here & run.spots_of(each.seen)), None)
    if seen is None:
        return None
    by = f" of the launch in line {seen.consumed_by[-1][1]}" if seen.consumed_by else ""
    reason = (
        f"the gradient held values up to {number(seen.largest)} in the backward pass until the adjoint{by} took it; "
        "when it is read here, all of it is zero"
    )
    figures = {"largest": seen.largest, "read": 0.0}
    return Verdict(Status.CONFIRMED, reason, FINITE_DIFFERENCE, figures)


V = TypeVar("V", Stagnant, SparedView)


def _view_used(kind: type[V], finding: Finding, run: Evidence) -> V | None:
    """What the run told of a view that was taken where the finding reads, and cleared where the finding says."""
    here = spots((finding.span,))
    cleared = spots(label.span for label in finding.labels if label.role is Role.WRITE)
    for each in run.result.of(kind):
        if here & run.spots_of(each.seen) and cleared & run.spots_of(each.cleared):
            return each
    return None


def _emptied(finding: Finding, run: Evidence) -> EmptiedView | None:
    """A view taken where the finding reads, which the program still held when it was cleared where the finding says."""
    clearing = spots(label.span for label in finding.labels if label.role is Role.WRITE)
    for each in run.result.of(EmptiedView):
        if spots((finding.span,)) & run.spots_of(each.read) and clearing & run.spots_of(each.stack):
            return each
    return None


def _kept_too_long(emptied: EmptiedView, about: Sequence[Gradient]) -> Verdict:
    """What is left in the view is no gradient, whatever was right when the view was taken."""
    reason = (
        f"when the view was taken its largest number was {number(emptied.largest)}; it was cleared while it was still "
        "held, and shows nothing but zeros since"
    )
    figures: dict[str, object] = {"largest": emptied.largest, "shows": 0.0}
    right = next((gradient for gradient in about if gradient.status is GradientStatus.PASS and gradient.fd), None)
    if right is not None:
        figures |= {**figures_of(right), "ad": 0.0, "relative_error": 1.0}
    return Verdict(Status.CONFIRMED, reason, FINITE_DIFFERENCE, figures)


def _severed(finding: Finding, run: Evidence) -> Verdict | None:
    """Updates that nothing reads: the copy's memory is written and never looked at."""
    allocation = spots((finding.anchor.allocation, finding.span))
    for unread in run.result.of(Unread):
        if allocation & run.spots_of(unread.allocated):
            return Verdict(
                Status.CONFIRMED,
                f"the array that is updated is read by nothing: {unread.reason}",
                FINITE_DIFFERENCE,
                {"unread": True, "writer": unread.writer_kernel},
            )
    return None


def _unseeded(finding: Finding, run: Evidence) -> Verdict | None:
    """Without a seed there is no objective to take differences of; but that there was none is seen."""
    if run.counterpart(finding) is None:
        return None
    here = [each for each in run.result.of(BackwardSeen) if spots((finding.span,)) & run.spots_of(each.stack)]
    bare = [each for each in here if not each.seeded]
    if bare:
        why = "when it began, no gradient of the tape's arrays held anything, and it was given no seed: all stay zero"
        return Verdict(Status.CONFIRMED, why, FINITE_DIFFERENCE, {"seeded": False, "backward_calls": len(bare)})
    why = "the backward ran without a loss, and some gradient of its arrays held something before"
    return Verdict(Status.INCONCLUSIVE, why, FINITE_DIFFERENCE)


def _mismatched(finding: Finding, run: Evidence) -> Verdict | None:
    """The gradient is right for what was seeded, and so a multiple of that of what is reported."""
    factor = finding.anchor.factor
    right = [g for g in run.gradients_about(finding) if g.status is GradientStatus.PASS and g.fd != 0.0]
    if not right or not factor:
        return None
    gradient = max(right, key=lambda each: bool(each.consumed_at))
    reported = gradient.fd / factor
    reason = (
        f"the gradient of {leaf_name(gradient)} is {number(gradient.ad)}, that of what was seeded; that of the "
        f"reported loss is {number(reported)} by finite differences"
    )
    off = abs(gradient.ad - reported) / max(abs(gradient.ad), abs(reported))
    figures = {**figures_of(gradient), "fd": reported, "relative_error": off, "factor": factor}
    return Verdict(Status.CONFIRMED, reason, FINITE_DIFFERENCE, figures)


_JUDGES: Mapping[TapeClaim, Callable[[Finding, Evidence], Verdict | None]] = {
    TapeClaim.BROKEN_CHAIN: _broken,
    TapeClaim.PARTED_ALIAS: _parted,
    TapeClaim.SEVERED_COPY: _severed,
    TapeClaim.UNSEEDED: _unseeded,
    TapeClaim.LEFT_OVER: _left_over,
    TapeClaim.STALE_READING: _stale,
    TapeClaim.OTHER_SEED: _mismatched,
    TapeClaim.BY_HOST: _by_host,
}

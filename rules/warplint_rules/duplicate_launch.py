"""# duplicate-launch (NVW120)

## What it does

Finds work that a tape holds twice. Either the same launch was recorded again: same kernel, same arguments, and nothing
that it reads was written in between, perhaps inside a helper that was called twice. Or a tape was entered again after
its `backward()` without `reset()`, so that the old launches run backwards once more.

## Why is this bad

Where an accumulator was cleared in between (`loss.zero_()` is on no tape), the program computes the sum once and its
gradient twice. `retain_grad=True` has the same effect for plain stores, and before Warp 1.13 every repeated store had.
In a training loop with a tape that is never reset, the old epochs' gradients are mixed into the new ones, and each
epoch takes longer than the one before.

## Example

```python
tape = wp.Tape()
for epoch in range(epochs):
    loss.zero_()
    with tape:                                              # NVW120
        wp.launch(predict, dim=n, inputs=[w], outputs=[y])
        wp.launch(error, dim=n, inputs=[y], outputs=[loss])
    tape.backward(loss)
    tape.zero()                                             # clears gradients, keeps the launches
```

## Use instead

`tape.reset()` instead of `tape.zero()`, or a new `wp.Tape()` in each round; and each launch recorded once.

## How it is verified

The program runs; its gradient is compared with finite differences; the backward pass is then repeated with the adjoint
of each repeated operation run once. If that makes the gradient right, the repetition is named.

## Limits

A repeated plain store is inert from Warp 1.13 on, since the second store consumes the gradient: the work is wasted, the
gradient right, so it is information only. Accumulating twice without clearing in between is what the program computes,
and its gradient agrees. Launches with arguments that could not be resolved are never called the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Role, Severity
from warplint.proof import Experiment, Repair
from warplint.rule import Context, Group, Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.flow.repeats import Harm, Reentry, Repeat
from warplint_rules import wording


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each repeating statement and for each re-entered tape."""
    flow = context.dataflow
    repeats = [_repeated(repeat, flow) for repeat in flow.repeats]
    reentries = [_reentered(reentry, flow) for reentry in flow.reentries]
    return wording.strongest([*reentries, *repeats])


def _repeated(repeat: Repeat, flow: Dataflow) -> Finding:
    frame = wording.parting(repeat.first.stack, repeat.second.stack)
    kernel = wording.operation_name(repeat.second)
    array = wording.array_name(repeat.harmed, flow) if repeat.harmed is not None else "its result"
    clearing = repeat.clearing.event if repeat.clearing is not None else None
    consequence = {
        Harm.CLEARED: f"{array} is cleared in between, on no tape, so its gradient is counted twice",
        Harm.RETAINED: f"{array} keeps its gradient (`retain_grad`), so it is counted twice",
        Harm.NOT_CONSUMED: f"before Warp 1.13 the second store leaves the gradient of {array}, which is counted twice",
    }.get(repeat.harm, "the second one computes what is there already; the gradient is right, the work is wasted")
    return wording.finding(
        RULE,
        Severity.INFO if repeat.harm is Harm.NONE else Severity.WARNING,
        frame.span,
        f"{kernel} is recorded twice with the same arguments: {consequence}",
        [
            *wording.label(
                wording.parting(repeat.second.stack, repeat.first.stack).span, Role.NOTE, "recorded here before"
            ),
            *wording.label(repeat.second.span, Role.LAUNCH, "the launch"),
            *wording.label(clearing.span if clearing is not None else None, Role.WRITE, "cleared here"),
            *wording.tape_labels(repeat.recording),
        ],
        flow.trace.source,
        wording.anchor(
            flow,
            memory=repeat.harmed.memory if repeat.harmed is not None else None,
            write=repeat.second,
            read=repeat.first,
        ),
    )


def _reentered(reentry: Reentry, flow: Dataflow) -> Finding:
    recording = reentry.recording
    assert recording.previous is not None
    place = reentry.entry or reentry.new
    array = wording.array_name(reentry.old.dest, flow)
    old = wording.operation_name(reentry.old.event)
    consequence = {
        Harm.CLEARED: f"{array} was cleared since, but what {old} once added to it is differentiated once more",
        Harm.REWRITTEN: f"what {old} read was written since, and its adjoint is added once more",
        Harm.SEED_LEFT: "the old loss still has its gradient, so that its gradients are added once more",
    }.get(reentry.harm, "they add nothing here, but the tape and the time grow with each round")
    return wording.finding(
        RULE,
        Severity.INFO if reentry.harm is Harm.NONE else Severity.WARNING,
        place.span,
        f"the tape goes on after its backward without `reset()`, so its old launches are differentiated again: "
        f"{consequence}",
        [
            *wording.label(recording.previous.span, Role.BACKWARD, "its backward before"),
            *wording.label(reentry.old.event.span, Role.LAUNCH, f"{old} is still on the tape"),
            *wording.label(reentry.clearing.event.span if reentry.clearing else None, Role.WRITE, "written here since"),
            *wording.tape_labels(recording),
        ],
        flow.trace.source,
        wording.anchor(flow, memory=reentry.old.dest.memory, write=reentry.new, read=reentry.old.event),
    )


RULE = Rule(
    code="NVW120",
    name="duplicate-launch",
    summary="the same launch recorded twice, or a tape entered again without `reset()`",
    group=Group.TAPE,
    severity=Severity.WARNING,
    experiment=Experiment.FINITE_DIFFERENCE,
    since="0.1.0",
    detect=detect,
    repairs=frozenset({Repair.ONCE, Repair.FRESH, Repair.RETAIN}),
)

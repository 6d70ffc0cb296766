"""# overwrite-copy (NVW102)

## What it does

Finds `wp.copy` and `array.assign(other)` onto an array that an earlier launch on the tape read, where the adjoint of
that launch needs the old value: the scratch result that is copied back over the state, a clamp written back in place.

## Why is this bad

The tape keeps references, no values. When `backward()` runs, the adjoint of the earlier launch finds the copied values
in place of those that it was computed from. The loss is right, the gradient is not.

## Example

```python
with wp.Tape() as tape:
    for _ in range(steps):
        wp.launch(pendulum, dim=n, inputs=[angle], outputs=[scratch])   # the adjoint needs sin(angle)'s old angle
        wp.copy(angle, scratch)                                         # NVW102
```

## Use instead

A new array for each step, or a list of them; where only the name has to change, `angle = scratch` with a scratch array
allocated anew.

## How it is verified

The program runs; its gradient is compared with finite differences; the backward pass is then repeated with each
operation's inputs put back to what they were. If that makes the gradient right, the array and the copy are named.

## Limits

Copies onto arrays that were read linearly with constant coefficients are right from Warp 1.17 on and stay silent; with
`warp-version` below that they are warned of too, since the adjoint of a copy then leaves its destination's gradient as
it is, and *assigns* its source's, so that what later readers of the source put there is lost: that is told at the copy
too. A copy of what the array holds already is seen only where it came from there unchanged; whether a clamp
changed anything cannot be seen.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Role, Severity, Span
from warplint.proof import Experiment
from warplint.rule import Context, Group, Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.flow.assigned_gradients import AssignedGradient
from warplint.trace.flow.overwrites import Overwrite
from warplint_rules import destroyed, wording
from warplint_rules.destroyed import Fault, Told

TOLD = Told("is overwritten on the tape", "are overwritten on the tape", "copy into another array, or rebind the name")


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each overwriting statement, and for each copy whose adjoint overwrites a gradient."""
    flow = context.dataflow
    told = destroyed.findings(RULE, Fault.COPY, flow, TOLD, _place)
    places = {finding.span for finding in told}
    assigned = [_assigned(lost, flow) for lost in flow.assigned_gradients if lost.copy.event.span not in places]
    return (*told, *wording.strongest(assigned))


def _assigned(lost: AssignedGradient, flow: Dataflow) -> Finding:
    source, reader = wording.array_name(lost.source, flow), wording.operation_name(lost.reader.event)
    copy = wording.operation_name(lost.copy.event)
    return wording.finding(
        RULE,
        Severity.WARNING,
        lost.copy.event.span,
        f"before Warp 1.17 the adjoint of {copy} assigns the gradient of {source}, and what {reader} put there, which "
        f"reads {source} later, is lost; copy after the last reader, or by a kernel",
        [
            *wording.label(lost.reader.event.span, Role.READ, f"{source} read here by {reader}: its part is lost"),
            *wording.allocation_label(lost.source.memory, flow),
            *wording.tape_labels(lost.recording),
        ],
        flow.trace.source,
        wording.anchor(flow, memory=lost.source.memory, write=lost.copy.event, read=lost.reader.event),
    )


def _place(overwrite: Overwrite) -> Span:
    return overwrite.write.event.span


RULE = Rule(
    code="NVW102",
    name="overwrite-copy",
    summary="a copy onto an array whose old value an adjoint needs",
    group=Group.TAPE,
    severity=Severity.WARNING,
    experiment=Experiment.FINITE_DIFFERENCE,
    since="0.1.0",
    detect=detect,
)

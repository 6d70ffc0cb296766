"""# severed-copy (NVW115)

## What it does

Finds an optimiser that was handed a *copy* of the parameters while the tape goes on reading the original.

## Why is this bad

`wp.array(other, dtype=...)` copies: it is no view. The optimiser steps memory that nothing reads, the loss never moves.

## Example

```python
flat = wp.array(p, dtype=float, requires_grad=True)              # NVW115: a copy
opt = warp.optim.SGD([flat], lr=0.1)
for _ in range(epochs):
    with wp.Tape() as tape:
        wp.launch(error, dim=n, inputs=[p], outputs=[loss])
    tape.backward(loss)
    opt.step([flat.grad])
```

## Use instead

`p.view(...)`, `p.flatten()` or `p.reshape(...)`, which share the memory and the gradient, or the array itself.

## How it is verified

The program runs: what the optimiser updates is followed, and confirmed where nothing reads it before the next backward.

## Limits

Silent where the copy is read by anything (a launch, a copy back, the host), and where the trace is not complete: a run
is followed through eight iterations more, and what nothing has read by then is taken to be read by nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Role, Severity
from warplint.proof import Experiment, TapeClaim
from warplint.rule import Context, Group, Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.flow.lost_updates import LostUpdate
from warplint_rules import wording


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each copying statement."""
    flow = context.dataflow
    return wording.strongest([_finding(lost, flow) for lost in flow.lost_updates if lost.copy.allocated])


def _finding(lost: LostUpdate, flow: Dataflow) -> Finding:
    copy, original = wording.memory_name(lost.copy.id, flow), wording.memory_name(lost.original.id, flow)
    span = lost.copy.allocated[-1].span
    return wording.finding(
        RULE,
        Severity.WARNING,
        span,
        f"{copy} is a copy of {original}, not a view: the optimiser updates the copy, the tape reads {original}, and "
        "nothing moves",
        [
            *wording.label(lost.update.span, Role.WRITE, "the copy is updated here, and read by nothing"),
            *wording.allocation_label(lost.original.id, flow, "the tape reads this one"),
            *wording.tape_labels(lost.recording),
        ],
        flow.trace.source,
        wording.anchor(flow, memory=lost.copy.id, write=lost.update),
    )


RULE = Rule(
    code="NVW115",
    name="severed-copy",
    summary="an optimiser updates a copy of the parameters, and the tape reads the original",
    group=Group.TAPE,
    severity=Severity.WARNING,
    experiment=Experiment.FINITE_DIFFERENCE,
    since="0.1.0",
    detect=detect,
    claim=TapeClaim.SEVERED_COPY,
)

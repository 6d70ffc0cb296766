"""# overwrite-fill (NVW103)

## What it does

Finds `zero_()`, `fill_()` and `assign(numpy_array)` inside the recorded region, where the array was read or computed on
the tape before.

## Why is this bad

These are recorded on no tape. If an adjoint needs the old value, it is gone when `backward()` runs. And if the array
was computed on the tape, cleared, and computed again, the gradient that arrives goes on to what was computed *before*
the clearing, although that has no influence any more: a force buffer that is cleared by `zero_()` in every step sums
the gradients of all steps, even where every reader is linear.

## Example

```python
with wp.Tape() as tape:
    for k in range(steps):
        force.zero_()                                                   # NVW103 from the second round on
        wp.launch(springs, dim=n, inputs=[x[k]], outputs=[force])       # atomic_add onto force
        wp.launch(move, dim=n, inputs=[x[k], force], outputs=[x[k + 1]])
```

## Use instead

A new array for each step (`wp.zeros_like(x[k])`), or a kernel on the tape that stores the zeros: its adjoint consumes
the gradient.

## How it is verified

The program runs; its gradient is compared with finite differences; the backward pass is then repeated with each
operation's inputs put back to what they were, and with the stale gradient cleared where the fill stands. What the host
computed (`y.assign(np.clip(y.numpy(), ...))`) the program itself is asked for, run again; if differences of its loss
agree with the tape as soon as that write is left out, the write is to blame.

## Limits

The first clearing of an array on the tape, and `loss.zero_()` at its beginning, are fine. A clearing between two equal
launches is told as NVW120.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Severity, Span
from warplint.proof import Experiment
from warplint.rule import Context, Group, Rule
from warplint.trace.flow.overwrites import Overwrite
from warplint.trace.flow.repeats import Harm
from warplint_rules import destroyed, wording
from warplint_rules.destroyed import Fault, Told

TOLD = Told("is overwritten beside the tape", "are overwritten beside the tape", "use another array")


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each filling statement."""
    flow = context.dataflow
    told_as_repetition = {r.clearing.seq for r in flow.repeats if r.harm is Harm.CLEARED and r.clearing is not None}
    lost = destroyed.findings(RULE, Fault.FILL, flow, TOLD, _place)
    stale = [
        destroyed.stale(RULE, fill, flow)
        for fill in flow.stale_fills
        if fill.fill.seq not in told_as_repetition and not fill.is_through_view
    ]
    return wording.strongest([*lost, *stale])


def _place(overwrite: Overwrite) -> Span:
    return overwrite.write.event.span


RULE = Rule(
    code="NVW103",
    name="overwrite-fill",
    summary="`zero_()`, `fill_()` or `assign(numpy)` on an array of the tape: recorded nowhere",
    group=Group.TAPE,
    severity=Severity.WARNING,
    experiment=Experiment.FINITE_DIFFERENCE,
    since="0.1.0",
    detect=detect,
)

"""# seed-mismatch (NVW131)

## What it does

Finds a seed that is written by hand (`y.grad.fill_(1.0)`, `tape.backward(grads={y: ones})`) and is not the derivative
of the loss that the program reports from the same array: the mean is printed, the gradient is that of the sum.

## Why is this bad

The seed decides what is differentiated. With ones on an array of n elements the gradient is n times that of the mean:
the learning rate means something else than it says, and a comparison with finite differences fails.

## Example

```python
with wp.Tape() as tape:
    wp.launch(residuals, dim=n, inputs=[x], outputs=[y])
loss = y.numpy().mean()
y.grad.fill_(1.0)                     # NVW131: the gradient of the sum
tape.backward()
```

## Use instead

`y.grad.fill_(1.0 / n)`, or a kernel on the tape that computes the mean into a loss of one element, and
`tape.backward(loss)`.

## How it is verified

The program runs; the gradient that the tape computes is compared with finite differences of what was seeded. If they
agree, the gradient is confirmed to be the reported loss's gradient times the factor that the message names.

## Limits

Both must be in sight: one number as the seed of a whole array, and `mean()` or `sum()` of that array's contents in a
line that calls it a loss, cost, objective, energy or error. That a gradient is divided by n afterwards is not seen.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Role, Severity
from warplint.proof import Experiment, TapeClaim
from warplint.rule import Context, Group, Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.flow.seed_mismatches import SeedMismatch
from warplint_rules import wording


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each statement that seeds."""
    flow = context.dataflow
    return wording.strongest([_finding(found, flow) for found in flow.seed_mismatches])


def _finding(found: SeedMismatch, flow: Dataflow) -> Finding:
    name = wording.array_name(found.array, flow)
    leaves = wording.listing(wording.memory_name(leaf, flow) for leaf in sorted(found.recording.wanted))
    right = found.value / found.factor
    return wording.finding(
        RULE,
        Severity.WARNING,
        found.seed.span,
        f"{name} is seeded with {found.value:g}, but its {found.reported.how} is reported as the loss: the gradient of "
        f"{leaves} is {found.factor:g} times that of the loss; seed with {right:g}",
        [
            *wording.label(found.reported.span, Role.READ, f"the {found.reported.how} of {name} is reported here"),
            *wording.allocation_label(found.array.memory, flow),
            *wording.tape_labels(found.recording),
        ],
        flow.trace.source,
        wording.anchor(flow, memory=found.array.memory, write=found.seed, factor=found.factor),
    )


RULE = Rule(
    code="NVW131",
    name="seed-mismatch",
    summary="a seed written by hand is not the derivative of the loss that is reported",
    group=Group.TAPE,
    severity=Severity.WARNING,
    experiment=Experiment.FINITE_DIFFERENCE,
    since="0.1.0",
    detect=detect,
    claim=TapeClaim.OTHER_SEED,
)

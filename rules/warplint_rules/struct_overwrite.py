"""# struct-overwrite (NVW105)

## What it does

Finds the same as NVW104 for arrays that are held in fields of a `@wp.struct`: one packed struct is both the input and
the output of a step, and the adjoint of the step needs the old values.

## Why is this bad

As for plain arrays, the backward pass reads what the last step left. Here Warp's own access tracker
(`wp.config.verify_autograd_array_access`) is blind: it does not look into structs.

## Example

```python
@wp.kernel
def step(p: Particles, h: float):
    i = wp.tid()
    x = p.x[i]
    p.v[i] = p.v[i] - h * wp.sin(x)
    p.x[i] = x + h * p.v[i]                    # NVW105: the adjoint of the sine needs the old x
```

## Use instead

Two structs with arrays of their own, one for the input and one for the output, and a new one for each step of a loop.

## How it is verified

The program runs; its gradient is compared with finite differences; the backward pass is then repeated with each
operation's inputs put back to what they were. If that makes the gradient right, the array and the launch are named.

## Limits

As for NVW104. Fields that are bound to other arrays after the launch are another fault (the tape keeps the struct by
reference).
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Severity, Span
from warplint.proof import Experiment, TapeClaim
from warplint.rule import Context, Group, Rule
from warplint.trace.flow.overwrites import Overwrite
from warplint_rules import destroyed, neighbours
from warplint_rules.destroyed import Fault, Told

TOLD = Told(
    "is overwritten in place, through a struct",
    "are overwritten in place, through a struct",
    "use one struct for the input and one for the output",
)


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each storing statement."""
    flow = context.dataflow
    overwritten = destroyed.findings(RULE, Fault.STRUCT, flow, TOLD, _place)
    return neighbours.merged((*overwritten, *neighbours.findings(RULE, context, TOLD.instead, neighbours.is_field)))


def _place(overwrite: Overwrite) -> Span:
    """The store in the kernel."""
    store = overwrite.write.store
    return store.span if store is not None else overwrite.write.event.span


RULE = Rule(
    code="NVW105",
    name="struct-overwrite",
    summary="a kernel overwrites an array in a struct whose old value an adjoint needs",
    group=Group.TAPE,
    severity=Severity.WARNING,
    experiment=Experiment.FINITE_DIFFERENCE,
    since="0.1.0",
    detect=detect,
    claim=TapeClaim.WITHIN_LAUNCH,
)

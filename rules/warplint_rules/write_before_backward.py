"""# write-before-backward (NVW108)

## What it does

Finds writes between the end of the `with` block and `backward()` to an array whose value an adjoint on the tape needs:
a reset for the next episode, an optimiser's step, an assignment from the host.

## Why is this bad

What the tape recorded is differentiated when `backward()` runs, with what the arrays hold *then*.

## Example

```python
with wp.Tape() as tape:
    wp.launch(error, dim=n, inputs=[state], outputs=[loss])
state.zero_()                                                     # NVW108
tape.backward(loss)
```

## Use instead

Call `backward()` first, or reset another array.

## How it is verified

The program runs; its gradient is compared with finite differences; the backward pass is then repeated with each
operation's inputs put back to what they were. If that makes the gradient right, the array and the write are named.

## Limits

`loss.zero_()` and writes to arrays that no adjoint reads are fine and stay silent.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Severity, Span
from warplint.proof import Experiment
from warplint.rule import Context, Group, Rule
from warplint.trace.flow.overwrites import Overwrite
from warplint_rules import destroyed
from warplint_rules.destroyed import Fault, Told

TOLD = Told("is written before the backward", "are written before the backward", "write after `backward()`")


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each overwriting statement."""
    return destroyed.findings(RULE, Fault.AFTER, context.dataflow, TOLD, _place)


def _place(overwrite: Overwrite) -> Span:
    return overwrite.write.event.span


RULE = Rule(
    code="NVW108",
    name="write-before-backward",
    summary="an array of the tape is written after the `with` block and before `backward()`",
    group=Group.TAPE,
    severity=Severity.WARNING,
    experiment=Experiment.FINITE_DIFFERENCE,
    since="0.1.0",
    detect=detect,
)

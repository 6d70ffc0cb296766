"""# tape-scope (NVW113)

## What it does

Finds launches and copies on the way from a leaf to the loss that happen while no tape is open: the loss computed one
indentation too far left, or a transform of the parameter done before the `with`.

## Why is this bad

The tape holds a part of the chain only: the loss has no recorded connection to the leaf, and the gradient is zero.

## Example

```python
with wp.Tape() as tape:
    wp.launch(advance, dim=n, inputs=[x], outputs=[y])
wp.launch(error, dim=n, inputs=[y], outputs=[loss])              # NVW113
tape.backward(loss)
```

## Use instead

Put everything between the leaf and the loss into the `with` block.

## How it is verified

The program runs; its gradient is compared with finite differences; the backward pass is then repeated with the adjoints
of the launches that no tape holds. If that makes the gradient right, they are named.

## Limits

Diagnostics beside the path to the loss are left alone, and so is what happens before the tape's first operation, unless
it adds a term to the loss that the tape goes on adding to, or the gradient of something that no tape ever saw is used
afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Severity, Span
from warplint.proof import Experiment, Repair, TapeClaim
from warplint.rule import Context, Group, Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.flow.breaks import Break, BrokenLink
from warplint_rules import broken_chain, wording


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each statement outside."""
    return broken_chain.findings(RULE, Break.OUTSIDE, context.dataflow, _message, _place)


def _place(link: BrokenLink, flow: Dataflow) -> Span:
    """The launch, or the call in the function that opens the tape."""
    entries = link.recording.period.entries
    return wording.parting(entries[0].stack, link.event.stack).span if entries else link.event.span


def _message(link: BrokenLink, flow: Dataflow) -> str:
    return (
        f"{wording.operation_name(link.event)} makes {wording.array_name(link.dest, flow)} from "
        f"{broken_chain.sources_of(link, flow)} on the way to the loss while no tape is open: the gradient of "
        f"{broken_chain.leaves_of(link, flow)} stops here; put it into the `with` block"
    )


RULE = Rule(
    code="NVW113",
    name="tape-scope",
    summary="a step from a leaf to the loss that happens while no tape is open",
    group=Group.TAPE,
    severity=Severity.WARNING,
    experiment=Experiment.FINITE_DIFFERENCE,
    since="0.1.0",
    detect=detect,
    claim=TapeClaim.BROKEN_CHAIN,
    repairs=frozenset({Repair.TAPED}),
)

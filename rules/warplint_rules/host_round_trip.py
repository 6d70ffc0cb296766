"""# host-round-trip (NVW112)

## What it does

Finds values that carry gradient and take the way through the host: `.numpy()`, `.list()` or `float(x.numpy()[0])`, fed
back as the contents of an array or as a scalar argument of a recorded launch, on the way to the loss.

## Why is this bad

What the host does is on no tape. The value that comes back is a constant for the backward pass: the gradient of what it
was computed from is zero, or lacks this branch.

## Example

```python
with wp.Tape() as tape:
    wp.launch(advance, dim=n, inputs=[x], outputs=[y])
    z = wp.array(y.numpy(), dtype=float, requires_grad=True)     # NVW112
    wp.launch(error, dim=n, inputs=[z], outputs=[loss])
```

## Use instead

Hand on the array itself, or compute on the device; pass a scalar as an array of one element.

## How it is verified

The program runs, and again with its leaf changed, so that the host's part follows. Where finite differences see an
influence that the gradient lacks, and nothing else explains it, the finding is confirmed.

## Limits

Reading for a log, for the control of a loop, or before the tape's first operation (target data) is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Severity, Span
from warplint.proof import Experiment, Repair, TapeClaim
from warplint.rule import Context, Group, Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.events import Launch
from warplint.trace.flow.breaks import Break, BrokenLink
from warplint_rules import broken_chain, wording


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each place where the value comes back."""
    return broken_chain.findings(RULE, Break.HOST, context.dataflow, _message, _place)


def _place(link: BrokenLink, flow: Dataflow) -> Span:
    return link.event.span


def _message(link: BrokenLink, flow: Dataflow) -> str:
    sources, leaves = broken_chain.sources_of(link, flow), broken_chain.leaves_of(link, flow)
    how = (
        f"a scalar argument of {wording.operation_name(link.event)} was"
        if isinstance(link.event, Launch)
        else f"the contents of {wording.array_name(link.dest, flow)} were"
    )
    return (
        f"{how} computed on the host from {sources}, which no tape records: the gradient of {leaves} stops here, "
        "although the value goes on towards the loss"
    )


RULE = Rule(
    code="NVW112",
    name="host-round-trip",
    summary="a value that carries gradient goes through the host and comes back as a constant",
    group=Group.TAPE,
    severity=Severity.WARNING,
    experiment=Experiment.FINITE_DIFFERENCE,
    since="0.1.0",
    detect=detect,
    claim=TapeClaim.BROKEN_CHAIN,
    repairs=frozenset({Repair.TAPED, Repair.HOST}),
)

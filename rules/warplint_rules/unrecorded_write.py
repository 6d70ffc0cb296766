"""# unrecorded-write (NVW111)

## What it does

Finds a step of the differentiated chain that happens while the tape is open, and that the tape does not hold: a launch
with `record_tape=False`, a recorded command (`record_cmd=True`, then `.launch()`), `wp.copy`, `clone` or `assign` where
one side has no gradient, `wp.array(other)`, and `wp.utils.array_sum`, `array_inner` or `array_scan`.

## Why is this bad

The value goes on towards the loss, the gradient does not come back: what lies before this step has the gradient zero,
or lacks this branch.

## Example

```python
with wp.Tape() as tape:
    wp.launch(advance, dim=n, inputs=[x], outputs=[y])
    wp.utils.array_sum(y, out=loss)                              # NVW111: on no tape
tape.backward(loss)
```

## Use instead

A kernel that adds up (`wp.atomic_add(loss, 0, y[i])`); a copy between two arrays with `requires_grad=True`.

## How it is verified

The program runs; its gradient is compared with finite differences; the backward pass is then repeated with the adjoints
of what no tape holds. If that makes the gradient right, the step is named; a step without an adjoint is confirmed where
the gradient is wrong and nothing else explains it.

## Limits

Bookkeeping beside the path to the loss is left alone. A launch off the tape in another file than the tape's is
information: a library keeps off every tape what it means to be constant (contacts that are frozen for a step). Silent
where the tape was given a backward of the user's own (`record_func`) and where a kernel could not be read.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Severity, Span
from warplint.proof import Experiment, Repair, TapeClaim
from warplint.rule import Context, Group, Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.events import Copy, Launch
from warplint.trace.flow.breaks import Break, BrokenLink
from warplint_rules import broken_chain, wording


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each unrecorded step."""
    return broken_chain.findings(RULE, Break.UNRECORDED, context.dataflow, _message, _place, _severity)


def _severity(link: BrokenLink) -> Severity:
    """A launch that a library keeps off every tape is kept off on purpose: information.

    A library is a file that neither opens the tape nor is the program that runs.
    """
    opened = link.recording.period.opened
    if not isinstance(link.event, Launch) or opened is None:
        return Severity.WARNING
    own = {opened.span.path, link.event.stack[0].span.path}
    return Severity.WARNING if link.event.span.path in own else Severity.INFO


def _place(link: BrokenLink, flow: Dataflow) -> Span:
    return link.event.span


def _message(link: BrokenLink, flow: Dataflow) -> str:
    event = link.event
    target, leaves = wording.array_name(link.dest, flow), broken_chain.leaves_of(link, flow)
    why = "the tape does not record it"
    if isinstance(event, Copy) and event.how in ("copy", "clone", "assign"):
        why = f"a copy is recorded only where both sides have a gradient, and {target} has none"
    return (
        f"{wording.operation_name(event)} makes {target} from {broken_chain.sources_of(link, flow)} on the way to the "
        f"loss, but {why}: the gradient of {leaves} stops here"
    )


RULE = Rule(
    code="NVW111",
    name="unrecorded-write",
    summary="a step towards the loss that the open tape does not record",
    group=Group.TAPE,
    severity=Severity.WARNING,
    experiment=Experiment.FINITE_DIFFERENCE,
    since="0.1.0",
    detect=detect,
    claim=TapeClaim.BROKEN_CHAIN,
    repairs=frozenset({Repair.TAPED, Repair.GRADIENT}),
)

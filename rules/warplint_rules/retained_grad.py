"""# retained-grad (NVW123)

## What it does

Finds arrays with `retain_grad=True` that are stored more than once on one tape.

## Why is this bad

The adjoint of a store consumes the gradient of its destination. `retain_grad` keeps it, so the store before it takes
the same gradient once more: everything behind it is counted twice, and with each further store again.

## Example

```python
y = wp.zeros(n, dtype=float, requires_grad=True, retain_grad=True)
with wp.Tape() as tape:
    for _ in range(steps):
        wp.launch(advance, dim=n, inputs=[x], outputs=[y])       # NVW123
        wp.launch(spread, dim=n, inputs=[y], outputs=[x])
```

## Use instead

One array for each store, or no `retain_grad` on arrays that are used again.

## How it is verified

The program runs; its gradient is compared with finite differences; the backward pass is then repeated without
`retain_grad`. If that makes the gradient right, the array and its second store are named.

## Limits

Written once, `retain_grad` is right. Adding to an array consumes nothing, with or without it. The same launch recorded
twice is NVW120.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Role, Severity
from warplint.proof import Experiment, Repair
from warplint.rule import Context, Group, Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.flow.retained import Retained
from warplint_rules import wording


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each second storing statement."""
    flow = context.dataflow
    return wording.strongest([_finding(retained, flow) for retained in flow.retained_stores])


def _finding(retained: Retained, flow: Dataflow) -> Finding:
    name = wording.memory_name(retained.memory.id, flow)
    later = wording.round_of(retained.second.event, retained.recording, flow)
    earlier = wording.round_of(retained.first.event, retained.recording, flow)
    when = wording.later_pass(retained.second.event, retained.first.event, flow)
    leaves = wording.listing(wording.memory_name(leaf, flow) for leaf in sorted(retained.leaves))
    return wording.finding(
        RULE,
        Severity.WARNING,
        retained.second.event.span,
        f"{name} keeps its gradient (`retain_grad`) and is stored twice on one tape: the adjoint of {later} leaves the "
        f"gradient standing, and that of {earlier} passes it on to {leaves} once more; use one array per store",
        [
            *wording.label(retained.first.event.span, Role.WRITE, f"stored here by {earlier}"),
            *wording.label(retained.second.event.span, Role.WRITE, f"stored here again by {later}{when}"),
            *wording.allocation_label(retained.memory.id, flow),
            *wording.tape_labels(retained.recording),
        ],
        flow.trace.source,
        wording.anchor(flow, memory=retained.memory.id, write=retained.second.event),
    )


RULE = Rule(
    code="NVW123",
    name="retained-grad",
    summary="an array with `retain_grad` is stored more than once on one tape",
    group=Group.TAPE,
    severity=Severity.WARNING,
    experiment=Experiment.FINITE_DIFFERENCE,
    since="0.1.0",
    detect=detect,
    repairs=frozenset({Repair.RETAIN}),
)

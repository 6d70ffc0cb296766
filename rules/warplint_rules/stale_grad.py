"""# stale-grad (NVW122)

## What it does

Finds gradients that are used where they hold nothing: after `tape.zero()`, `tape.reset()` or `grad.zero_()` cleared
them unused, before the `backward()` that fills them, through a numpy view (`g = x.grad.numpy()` on the CPU) that a
clearing empties under it, or of an intermediate array, whose gradient the backward pass consumes.

## Why is this bad

The numbers are zeros that look like a gradient: a parameter that does not move, a sensitivity that is "zero".

## Example

```python
tape.backward(loss)
g = x.grad.numpy()                    # NVW122: on the CPU a view of the memory
tape.zero()
x.assign(x.numpy() - rate * g)        # g is zero
```

## Use instead

```python
g = x.grad.numpy().copy()
tape.zero()
```

For an intermediate array, `requires_grad=True, retain_grad=True` keeps its gradient (where it is written once).

## How it is verified

The program runs; what it read is compared with finite differences, and with the gradient just after the backward. If
that one is right, the reading is to blame. A view is followed: it is confirmed where the program still held it when the
gradient under it was cleared, and it showed something before. An intermediate array's gradient is confirmed where it
was something before the last adjoint that took it, and nothing when it is read.

## Limits

Silent where the gradient had been used before it was cleared, in what asserts that it is zero, and where it was handed
to code outside the project. In a run, a view's use is seen where the leaf is updated from it: run again with the
clearing undone, the program comes to another leaf.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Anchor, Finding, Role, Severity
from warplint.proof import Experiment, Repair, TapeClaim
from warplint.rule import Context, Group, Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.events import EmptiedReading
from warplint.trace.flow.residues import Staleness, StaleRead
from warplint_rules import wording


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each reading statement; what a backward without a seed was to fill anew is that one's fault."""
    flow = context.dataflow
    unseeded = [recording.backward.seq for recording in flow.unseeded]
    stale = [
        _finding(stale, flow)
        for stale in flow.stale_reads
        if not (stale.why is Staleness.CLEARED and any(stale.cause.seq < seq < stale.read.seq for seq in unseeded))
    ]
    return wording.strongest([*stale, *(_measured(emptied, flow) for emptied in flow.trace.emptied)])


def _finding(stale: StaleRead, flow: Dataflow) -> Finding:
    store = stale.store.event if stale.store is not None else None
    return wording.finding(
        RULE,
        Severity.WARNING,
        stale.read.span,
        _message(stale, flow),
        [
            *wording.label(stale.cause.span, *_CAUSES[stale.why]),
            *wording.label(store.span if store is not None else None, Role.WRITE, "stored here, which consumes it"),
            *wording.label(stale.used_at.span if stale.used_at else None, Role.READ, "used here"),
            *wording.allocation_label(stale.read.array.memory, flow),
            *wording.tape_labels(stale.recording),
        ],
        flow.trace.source,
        wording.anchor(flow, memory=stale.read.array.memory, read=stale.read),
    )


def _measured(emptied: EmptiedReading, flow: Dataflow) -> Finding:
    """A view that the run itself has shown to be used after its clearing; its use is no event of a recorded trace."""
    memory = flow.trace.memories.get(emptied.memory)
    return wording.finding(
        RULE,
        Severity.WARNING,
        emptied.read[-1].span,
        _of_view(wording.memory_name(emptied.memory, flow)),
        [
            *wording.label(emptied.cleared[-1].span, *_CAUSES[Staleness.CLEARED_UNDER_VIEW]),
            *wording.allocation_label(emptied.memory, flow),
        ],
        flow.trace.source,
        Anchor(allocation=memory.span if memory is not None else None, read=emptied.read[-1].span),
    )


_CAUSES = {
    Staleness.CLEARED: (Role.WRITE, "cleared here"),
    Staleness.CLEARED_UNDER_VIEW: (Role.WRITE, "cleared here"),
    Staleness.CONSUMED: (Role.BACKWARD, "consumed by this backward"),
    Staleness.NOT_YET: (Role.BACKWARD, "filled here only"),
}


def _message(stale: StaleRead, flow: Dataflow) -> str:
    name = wording.memory_name(stale.read.array.memory, flow)
    return {
        Staleness.CLEARED: f"the gradient of {name} is read after it was cleared: it is zero, and what the backward "
        "computed was never used; read it before clearing",
        Staleness.CLEARED_UNDER_VIEW: _of_view(name),
        Staleness.CONSUMED: f"{name} is an intermediate array: its gradient is consumed by the backward pass and zero "
        "afterwards; make it with `retain_grad=True` to read it",
        Staleness.NOT_YET: f"the gradient of {name} is read before the backward that fills it, and not after it",
    }[stale.why]


def _of_view(name: str) -> str:
    return (
        f"on the CPU this is a view of the gradient of {name}, not a copy: it is cleared before the view is used, "
        "which then shows zeros; take a `.copy()`"
    )


RULE = Rule(
    code="NVW122",
    name="stale-grad",
    summary="a gradient is read after it was cleared, before it is computed, or where the backward consumed it",
    group=Group.TAPE,
    severity=Severity.WARNING,
    experiment=Experiment.FINITE_DIFFERENCE,
    since="0.1.0",
    detect=detect,
    claim=TapeClaim.STALE_READING,
    repairs=frozenset({Repair.FRESH}),
)

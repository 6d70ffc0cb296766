"""# tape-per-step (NVW130)

## What it does

Finds state that is carried from one tape into the next while the gradient covers one window only: a tape for every time
step whose backwards run one after the other and are summed, or only the last of which runs at all.

## Why is this bad

A backward reaches back to the beginning of its own tape. What the parameter did to the state in the windows before is
lost, so that the gradient is that of a truncated horizon, often by an order of magnitude, and nothing warns.

## Example

```python
for _ in range(steps):
    tape = wp.Tape()                                              # NVW130
    with tape:
        wp.launch(dynamics, dim=n, inputs=[state, action], outputs=[after])
        wp.launch(reward, dim=n, inputs=[after], outputs=[total])
    state = after
tape.backward(total)
```

## Use instead

One tape around the whole loop. Or keep the tapes and run their backwards in reverse order, so that the gradient that
one leaves at the carried state is the next one's seed:

```python
for tape in reversed(tapes):
    tape.backward()
```

## How it is verified

The program runs; the gradient that it uses is compared with finite differences over all windows; the adjoints of the
tapes are then chained backwards through time. If that makes the gradient right, the tapes are named. State that goes
by way of the host cannot be chained: there the program itself is run again with the leaf moved, all windows together.

## Limits

A tape for every epoch or every independent item is right and stays silent: nothing is carried. So does truncation by
intention, where the parameter is updated between the windows, and a gradient that is only printed before it is cleared.
State that goes by way of the host is information only. Nothing is said where a trace was cut short, or where something
that cannot be followed lies between the windows: the missing backward may be there.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Role, Severity
from warplint.proof import Experiment, Repair, TapeClaim
from warplint.rule import Context, Group, Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.flow.windows import CarriedState
from warplint_rules import wording


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each statement that makes such a tape."""
    flow = context.dataflow
    return wording.strongest([_finding(state, flow) for state in flow.carried_states])


def _finding(state: CarriedState, flow: Dataflow) -> Finding:
    opened = state.recording.period.opened or state.recording.backward
    array = wording.array_name(state.array, flow)
    leaves = wording.listing(wording.memory_name(leaf, flow) for leaf in sorted(state.leaves))
    writer, reader = wording.operation_name(state.writer.event), wording.operation_name(state.reader.event)
    fate = "is differentiated before this one" if state.earlier.backwards else "is never differentiated"
    return wording.finding(
        RULE,
        Severity.INFO if state.by_hand else Severity.WARNING,
        opened.span,
        f"each tape covers one window, but {array} is carried from one into the next: the tape on which {writer} "
        f"made it {fate}, so what {leaves} did to it there is missing from the gradient; use one tape, or run the "
        "backwards in reverse order",
        [
            *wording.label(state.writer.event.span, Role.WRITE, f"{array} made here by {writer} on an earlier tape"),
            *wording.label(state.reader.event.span, Role.READ, f"{reader} goes on from it on the next tape"),
            *wording.label(
                state.recording.backward.span, Role.BACKWARD, "this backward stops at the beginning of its tape"
            ),
            *(
                label
                for leaf in sorted(state.leaves)
                for label in wording.allocation_label(leaf, flow, "gradient wanted here")
            ),
        ],
        flow.trace.source,
        wording.anchor(flow, memory=state.array.memory, write=state.writer.event, read=state.reader.event),
    )


RULE = Rule(
    code="NVW130",
    name="tape-per-step",
    summary="state carried from one tape into the next while the gradient covers one window only",
    group=Group.TAPE,
    severity=Severity.WARNING,
    experiment=Experiment.FINITE_DIFFERENCE,
    since="0.1.0",
    detect=detect,
    claim=TapeClaim.BY_HOST,
    repairs=frozenset({Repair.CHAIN}),
)

"""# missing-tape-zero (NVW121)

## What it does

Finds backwards whose gradients are added to what an earlier backward left: no `tape.zero()` and no `x.grad.zero_()`
between two iterations, one of two parameters forgotten, `backward()` twice on one recording, and accumulators
(`atomic_add`, `+=`) that outlive an iteration while only the parameters' gradients are cleared.

## Why is this bad

A backward *adds*. What a parameter is stepped with in the third iteration is then the sum of three gradients. What an
accumulator still holds runs backwards once more and arrives in the parameters.

## Example

```python
for epoch in range(epochs):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(error, dim=n, inputs=[w, b], outputs=[loss])
    tape.backward(loss)                                               # NVW121: w.grad is never cleared
    w.assign(w.numpy() - rate * w.grad.numpy())
    b.assign(b.numpy() - rate * b.grad.numpy())
    b.grad.zero_()
```

## Use instead

`tape.zero()` after each step, which clears every gradient that the tape knows, or `grad.zero_()` for each array. A new
tape knows nothing of what the old one filled: `zero()` on it before its own backward clears nothing.

A captured graph (`wp.ScopedCapture`) makes its backward happen at each `wp.capture_launch`: what clears must be
captured as well, or be called between the launches.

## How it is verified

The program runs; the gradient that it uses is compared with finite differences, and once more with all gradients
cleared before the backward. If that makes it right, what was left is to blame.

## Limits

Adding up the gradients of a batch is no fault: silent where a gradient is not used between two backwards, or is used
without a step of the parameter in a program that clears it elsewhere. Silent also where the gradients went to code
outside the project, and where the trace is not complete. A tape that goes on after its backward is NVW120.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Role, Severity
from warplint.proof import Experiment, Repair, TapeClaim
from warplint.rule import Context, Group, Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.flow.residues import LeftOver
from warplint_rules import wording


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each backward statement."""
    flow = context.dataflow
    carried = {(state.recording.backward.seq, state.array.memory) for state in flow.carried_states}
    return wording.strongest([_finding(over, flow) for over in flow.left_overs if not _is_carried(over, carried)])


def _is_carried(over: LeftOver, carried: set[tuple[int, int]]) -> bool:
    """What is left in a state that one tape hands to the next is the cut between the tapes, and NVW130."""
    return not over.leaves and all((over.recording.backward.seq, memory) in carried for memory in over.accumulators)


def _finding(over: LeftOver, flow: Dataflow) -> Finding:
    backward = over.recording.backward
    use = next((event for event in flow.trace.events if event.seq == over.use), None)
    held = over.leaves or over.accumulators
    return wording.finding(
        RULE,
        Severity.WARNING,
        backward.span,
        _message(over, flow),
        [
            *wording.label(over.previous.span, Role.WRITE, "left by this backward"),
            *wording.label(use.span if use is not None else None, Role.READ, "used here, and not cleared"),
            *(label for memory in sorted(held) for label in wording.allocation_label(memory, flow)),
            *wording.tape_labels(over.recording),
        ],
        flow.trace.source,
        wording.anchor(flow, memory=min(held), write=backward),
    )


def _message(over: LeftOver, flow: Dataflow) -> str:
    leaves = wording.listing(wording.memory_name(memory, flow) for memory in sorted(over.leaves))
    if over.is_twice and over.leaves:
        return (
            f"the same recording is differentiated twice, so the gradient of {leaves} comes out double; call "
            "`backward` once, or clear the gradients in between"
        )
    if over.leaves:
        return (
            f"the gradient of {leaves} still holds what an earlier backward left: this one adds to it, and the sum is "
            "used as if it were new; clear it after each use (`tape.zero()`)"
        )
    accumulators = wording.listing(wording.memory_name(memory, flow) for memory in sorted(over.accumulators))
    reached = wording.listing(wording.memory_name(memory, flow) for memory in sorted(over.reached))
    return (
        f"{accumulators} is added to and never stored, so its gradient outlives the backward: what an earlier one left "
        f"there flows into {reached} once more; clear it too (`tape.zero()`)"
    )


RULE = Rule(
    code="NVW121",
    name="missing-tape-zero",
    summary="a gradient that holds what an earlier backward left is used as if it were new",
    group=Group.TAPE,
    severity=Severity.WARNING,
    experiment=Experiment.FINITE_DIFFERENCE,
    since="0.1.0",
    detect=detect,
    claim=TapeClaim.LEFT_OVER,
    repairs=frozenset({Repair.FRESH, Repair.ONCE}),
)

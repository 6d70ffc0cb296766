"""# unseeded-backward (NVW116)

## What it does

Finds `tape.backward()` without a loss, without `grads=`, and without a gradient that was set before.

## Why is this bad

The backward pass starts from the gradients that the outputs hold. If they hold nothing, every gradient is zero, and
nothing says so.

## Example

```python
with wp.Tape() as tape:
    wp.launch(error, dim=n, inputs=[x], outputs=[loss])
tape.backward()                                                  # NVW116
x.assign(x.numpy() - rate * x.grad.numpy())                      # x never moves
```

## Use instead

`tape.backward(loss)`, or `loss.grad.fill_(1.0)` before it.

## How it is verified

The program runs: confirmed where the backward was given nothing and found no gradient of the tape's arrays that is not
zero. (There is no objective then that finite differences could be taken of.)

## Limits

A warning only where a gradient of the tape is used afterwards. Silent where a gradient was set anywhere before (but for
a tape that was walked, then zeroed, then walked again), where one went to code outside the project, and for tapes that
hold arrays from outside.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Role, Severity
from warplint.proof import Experiment, TapeClaim
from warplint.rule import Context, Group, Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.flow.recordings import Recording
from warplint_rules import wording


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each such statement."""
    flow = context.dataflow
    return wording.strongest([_finding(recording, flow) for recording in flow.unseeded])


def _finding(recording: Recording, flow: Dataflow) -> Finding:
    wanted = [leaf for leaf in sorted(recording.wanted) if flow.gradient_life.used_after(leaf, recording.backward.seq)]
    leaves = wording.listing(wording.memory_name(leaf, flow) for leaf in wanted)
    before = "before" if recording.previous is None else "since the tape was zeroed"
    return wording.finding(
        RULE,
        Severity.WARNING,
        recording.backward.span,
        f"nothing seeds this backward: no loss, no `grads`, no gradient set {before}, so that of {leaves} is zero; "
        "pass the loss",
        [
            *(label for leaf in wanted for label in wording.allocation_label(leaf, flow, "gradient used, and zero")),
            *wording.label(recording.period.opened.span if recording.period.opened else None, Role.TAPE, "the tape"),
        ],
        flow.trace.source,
        wording.anchor(flow, memory=wanted[0] if wanted else None, write=recording.backward),
    )


RULE = Rule(
    code="NVW116",
    name="unseeded-backward",
    summary="`backward()` without a loss, without `grads` and without a gradient set before",
    group=Group.TAPE,
    severity=Severity.WARNING,
    experiment=Experiment.FINITE_DIFFERENCE,
    since="0.1.0",
    detect=detect,
    claim=TapeClaim.UNSEEDED,
)

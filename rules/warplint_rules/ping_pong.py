"""# ping-pong (NVW101)

## What it does

Finds buffers that take turns within one tape: `a, b = b, a`, `s[k % 2]` and `s[(k + 1) % 2]`, a rotated list or deque,
exchanged state objects, `states[0] = states[-1]` before the next frame, one scratch array for every step. A launch then
overwrites an array whose old value the backward pass still has to read.

## Why is this bad

Warp's tape stores *references* to arrays, no values. The adjoint of `b[i] = sin(a[i])` reads `a[i]` when `backward()`
runs, and finds what the last step left there. Nothing warns: the loss is right, the gradient is not.

## Example

```python
with wp.Tape() as tape:
    for _ in range(steps):
        wp.launch(advance, dim=n, inputs=[a], outputs=[b])   # b[i] = a[i] + dt * sin(a[i])
        a, b = b, a                                          # NVW101
```

## Use instead

One array for each step, allocated once, so that nothing is reused on the tape:

```python
states = [wp.zeros(n, dtype=float, requires_grad=True) for _ in range(steps + 1)]
with wp.Tape() as tape:
    for k in range(steps):
        wp.launch(advance, dim=n, inputs=[states[k]], outputs=[states[k + 1]])
```

Where the memory does not suffice, checkpoint: keep every m-th state and record m steps at a time.

## How it is verified

The program runs; its gradient is compared with finite differences; the backward pass is then repeated with each
operation's inputs put back to what they were. If that makes the gradient right, the overwritten array and the launch
that overwrote it are named.

## Limits

It is a warning only where the adjoint needs the old value *and* gradient is known to flow. A step that is linear in its
state with constant coefficients needs nothing and is right (from Warp 1.13 on; before, the adjoint of a store did not
consume the gradient, and every reuse is wrong). Elements are told apart by index text alone. Copies, fills, in-place
kernels and writes after the `with` block have rules of their own.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Severity, Span
from warplint.proof import Experiment, Repair
from warplint.rule import Context, Group, Rule
from warplint.trace.flow.overwrites import Overwrite
from warplint_rules import destroyed, wording
from warplint_rules.destroyed import Fault, Told

TOLD = Told("is reused on one tape", "are each reused on one tape", "keep one array per step")


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each way of taking turns, whatever the number of arrays and rounds."""
    return destroyed.findings(RULE, Fault.TURNS, context.dataflow, TOLD, _place)


def _place(overwrite: Overwrite) -> Span:
    """The exchange; without one, the launch in the frame that could give it another buffer."""
    if overwrite.moved is not None:
        return overwrite.moved.stack[-1].span
    return wording.parting(overwrite.reader.event.stack, overwrite.write.event.stack).span


RULE = Rule(
    code="NVW101",
    name="ping-pong",
    summary="buffers reused in turn within one tape, although an adjoint needs their old values",
    group=Group.TAPE,
    severity=Severity.WARNING,
    experiment=Experiment.FINITE_DIFFERENCE,
    since="0.1.0",
    detect=detect,
    repairs=frozenset({Repair.MEMORY}),
)

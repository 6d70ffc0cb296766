"""# piecewise-constant (NVW206)

## What it does

Finds a leaf whose gradient is wanted, where each way from it to the loss passes an operation that is constant almost
everywhere: `floor`, `ceil`, `round`, `rint`, `trunc`, `sign`, `step`, a cast to an integer, a comparison.

## Why is this bad

Nothing is computed wrongly: the derivative of a staircase is zero. But a parameter whose gradient is zero cannot be
learned, and the optimiser does not say so.

## Example

```python
@wp.kernel
def motor(u: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    ticks = float(int(u[i] * 20.0)) / 20.0   # NVW206
    wp.atomic_add(loss, 0, (ticks - 1.0) * (ticks - 1.0))
```

## Use instead

A smooth stand-in, or a custom adjoint that passes gradient straight through:

```python
@wp.func
def encode(u: float):
    return float(int(u * 20.0)) / 20.0

@wp.func_grad(encode)
def adj_encode(u: float, adj_ret: float):
    wp.adjoint[u] += adj_ret
```

## How it is verified

The program runs; that the gradient of the leaf is zero, and finite differences agree, is the confirmation.

## Limits

A warning only where every launch on the tape is known, so that no other way can exist; otherwise information. Indices
and weights beside a differentiable way are silent.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Anchor, Finding, Role, Severity
from warplint.proof import Experiment
from warplint.rule import Context, Group, Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.flow.gradients import FlatLeaf
from warplint_rules import wording


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each operation that all of a leaf's ways pass."""
    flow = context.dataflow
    return wording.strongest([_finding(found, flow) for found in flow.flat_leaves])


def _finding(found: FlatLeaf, flow: Dataflow) -> Finding:
    leaf, kernel = wording.memory_name(found.leaf, flow), found.launch.kernel
    span = kernel.span if kernel is not None else None
    memory = flow.trace.memories.get(found.leaf)
    return wording.finding(
        RULE,
        Severity.WARNING if found.established else Severity.INFO,
        found.fault.span,
        f"`{found.fault.operation}` is constant almost everywhere, and every way from {leaf} to the loss passes such "
        f"an operation: the gradient of {leaf} is zero, so that it cannot be learned; use a smooth stand-in",
        [
            *wording.label(span, Role.KERNEL, f"in {wording.operation_name(found.launch)}"),
            *wording.label(found.launch.span, Role.LAUNCH, "launched here"),
            *wording.allocation_label(found.leaf, flow),
            *wording.tape_labels(found.recording),
        ],
        flow.trace.source,
        Anchor(allocation=memory.span if memory is not None else None, write=found.launch.span, kernel=span),
    )


RULE = Rule(
    code="NVW206",
    name="piecewise-constant",
    summary="every way from a leaf to the loss passes an operation that is constant almost everywhere",
    group=Group.KERNEL,
    severity=Severity.WARNING,
    experiment=Experiment.FLAT_GRADIENT,
    since="0.1.0",
    detect=detect,
)

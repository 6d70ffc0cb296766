"""# replay-side-effect (NVW209)

## What it does

Finds atomics whose returned value an adjoint needs: a counter whose old value is the slot to read from or to write to.

## Why is this bad

The backward pass computes locals again. An atomic in the kernel itself is not run again, and its result is lost; one in
a `@wp.func` is run again, and counts on. Either way the adjoint takes another slot than the forward pass did, possibly
one out of bounds.

## Example

```python
@wp.kernel
def compact(count: wp.array(dtype=int), x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    slot = wp.atomic_add(count, 0, 1)        # NVW209
    y[slot] = x[i] * x[i]
```

## Use instead

Put the counter into a `@wp.func`, store the slot to an array, and read it back in a `@wp.func_replay`:

```python
@wp.func
def next_slot(count: wp.array(dtype=int), slots: wp.array(dtype=int), i: int):
    slots[i] = wp.atomic_add(count, 0, 1)
    return slots[i]

@wp.func_replay(next_slot)
def kept_slot(count: wp.array(dtype=int), slots: wp.array(dtype=int), i: int):
    return slots[i]
```

## How it is verified

The program runs; its gradient is compared with finite differences, and the adjoint of the kernel alone against finite
differences of that one launch.

## Limits

A warning only where the kernel is launched on a tape, gradient flows through the operand and the result matters to the
loss; otherwise information. A counter whose result is not used, or
not needed by any adjoint, is silent; one that only decides a branch is information.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Experiment, Finding, Severity
from warplint.kernels.summary import KernelFault, KernelFaultKind
from warplint.rule import Context, Group, Rule
from warplint_rules import kernel_faults


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each atomic."""
    return kernel_faults.findings(RULE, TOLD, context.dataflow)


def _what(fault: KernelFault) -> str:
    return (
        f"the adjoint needs what `{fault.operation}` returned, and the backward pass cannot have it again: it uses "
        "another value, so gradients go astray"
    )


def _instead(fault: KernelFault) -> str:
    return "keep the value in an array and read it back in a `@wp.func_replay`"


TOLD = kernel_faults.Told(frozenset((KernelFaultKind.ATOMIC_REPLAYED,)), _what, _instead)

RULE = Rule(
    code="NVW209",
    name="replay-side-effect",
    summary="the value that an atomic returned is needed by an adjoint, and the backward pass gets another one",
    group=Group.KERNEL,
    severity=Severity.WARNING,
    experiment=Experiment.KERNEL_CHECK,
    since="0.1.0",
    detect=detect,
)

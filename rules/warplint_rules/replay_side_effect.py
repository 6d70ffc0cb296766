"""# replay-side-effect (NVW209)

## What it does

Finds atomics whose returned value an adjoint needs: a counter whose old value is the slot to read from or to write to.
Finds stores in a `@wp.func` that build on what is there (`c[i] = c[i] + x`, `c[i] += x`, `wp.atomic_add`), where an
adjoint of the same kernel needs the element afterwards.

## Why is this bad

The backward pass computes locals again. An atomic in the kernel itself is not run again, and its result is lost; one in
a `@wp.func` is run again, and counts on. Either way the adjoint takes another slot than the forward pass did, possibly
one out of bounds.

Functions are called again in the backward pass, before anything is differentiated, with all that they store. What adds
to an element then adds twice, and the adjoint reads the element after that. The array also keeps the second sum: a loss
that a function adds to is doubled by `backward()`.

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

Stores that build on the old value belong into the kernel, which is not run again, or behind a `@wp.func_replay` that
leaves them out.

## How it is verified

The program runs; its gradient is compared with finite differences, and the adjoint of the kernel alone against finite
differences of that one launch.

## Limits

A warning only where the kernel is launched on a tape, gradient flows through the operand and the result matters to the
loss; otherwise information. A counter whose result is not used, or not needed by any adjoint, is silent; one that only
decides a branch is information. So are stores that are run again where no adjoint of the kernel reads the element
afterwards: the gradient is right, the array is not.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Severity
from warplint.kernels.summary import KernelFault, KernelFaultKind
from warplint.proof import Experiment
from warplint.rule import Context, Group, Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.events import Kernel, Launch
from warplint_rules import kernel_faults, wording


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each atomic, and for each store that is run again."""
    return wording.strongest([each for told in (TOLD, STORED) for each in kernel_faults.findings(RULE, told, context)])


def _what(fault: KernelFault) -> str:
    return (
        f"the adjoint needs what `{fault.operation}` returned, and the backward pass cannot have it again: it uses "
        "another value, so gradients go astray"
    )


def _instead(fault: KernelFault) -> str:
    return "keep the value in an array and read it back in a `@wp.func_replay`"


def _stored(fault: KernelFault) -> str:
    again = f"`{fault.operation}` stands in a function, which the backward pass runs again"
    if not fault.certain:
        arrays = wording.listing(f"`{path}`" for path in sorted(fault.into))
        return f"{again}: no adjoint of the kernel reads {arrays} after that, but `backward()` changes the values"
    return f"{again}: the adjoint of `{fault.detail}` finds another value there than was used, so the gradient is wrong"


def _keep_out(fault: KernelFault) -> str:
    return "move the store to the kernel, or leave it out of a `@wp.func_replay`"


def _is_not_run_again(fault: KernelFault, kernel: Kernel | None, launch: Launch | None, flow: Dataflow) -> bool:
    """Without a launch there is no backward pass that changes anything."""
    return launch is None and not fault.certain


TOLD = kernel_faults.Told(frozenset((KernelFaultKind.ATOMIC_REPLAYED,)), _what, _instead)
STORED = kernel_faults.Told(
    frozenset((KernelFaultKind.STORE_REPLAYED,)), _stored, _keep_out, condition="", moot=_is_not_run_again
)

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

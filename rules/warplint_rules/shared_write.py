"""# shared-write (NVW211)

## What it does

Finds plain stores by which all threads of a launch assign values of their own to one element.

## Why is this bad

The last thread wins (on a GPU, any of them), so that nothing is summed up. Backward, the first thread to come takes the
whole gradient and clears it, and that need not be the one whose value was kept.

## Example

```python
@wp.kernel
def total(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    loss[0] = x[i] * x[i]                    # NVW211
```

## Use instead

Add, or let one thread store:

```python
    wp.atomic_add(loss, 0, x[i] * x[i])
```

## How it is verified

The program runs; its gradient is compared with finite differences, and the adjoint of the kernel alone against finite
differences of that one launch.

## Limits

A warning only where the kernel is launched on a tape, gradient flows through the operand and the result matters to the
loss; otherwise information. The launch must be known to have more than one thread. `loss[0] = loss[0] + x[i]` is
information: right on a CPU, which runs threads in turn, and a race on a GPU. A store under a condition that is the same
for all threads is no different; where each thread's data decide it is information, since one thread may pass alone, and
a condition on the thread's index, or any that asks for equality, is silent.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Severity
from warplint.kernels.summary import KernelFault, KernelFaultKind
from warplint.proof import Experiment
from warplint.rule import Context, Group, Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.events import Kernel, Launch
from warplint.trace.flow.gradients import LaunchedFault
from warplint_rules import kernel_faults


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each store."""
    return kernel_faults.findings(RULE, TOLD, context)


def _what(fault: KernelFault) -> str:
    return (
        f"`{fault.operation}` is done by all threads, each with a value of its own: the last one wins, and the "
        "gradient goes to another one"
    )


def _instead(fault: KernelFault) -> str:
    return "add with `wp.atomic_add`, or let one thread store"


def _established(found: LaunchedFault, flow: Dataflow) -> bool:
    dim = found.launch.dim
    many = dim is not None and any(size is not None and size > 1 for size in dim)
    return found.established and found.fault.certain and many


def _moot(fault: KernelFault, kernel: Kernel | None, launch: Launch | None, flow: Dataflow) -> bool:
    """A single thread shares with nobody."""
    return launch is not None and launch.dim is not None and all(size == 1 for size in launch.dim)


TOLD = kernel_faults.Told(
    frozenset((KernelFaultKind.SHARED_STORE,)), _what, _instead, established=_established, moot=_moot
)

RULE = Rule(
    code="NVW211",
    name="shared-write",
    summary="all threads of a launch assign values of their own to one element",
    group=Group.KERNEL,
    severity=Severity.WARNING,
    experiment=Experiment.KERNEL_CHECK,
    since="0.1.0",
    detect=detect,
)

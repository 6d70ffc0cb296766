"""# func-grad-assign (NVW207)

## What it does

Finds `wp.adjoint[x] = ...` in a `@wp.func_grad` where the variable that the caller passes for `x` has other uses:
later ones, a second call, a loop around the call, or one array element for all threads.

## Why is this bad

An adjoint is a sum over all uses of a variable. Backward, later uses come first; the assignment then wipes out what
they have contributed.

## Example

```python
@wp.func_grad(soft_root)
def adj_soft_root(x: float, adj_ret: float):
    wp.adjoint[x] = adj_ret * 0.5 / wp.sqrt(x)       # NVW207 where v is used again:

@wp.kernel
def blend(a: wp.array(dtype=float), out: wp.array(dtype=float)):
    v = a[wp.tid()]
    wp.atomic_add(out, 0, soft_root(v) + v * v)
```

## Use instead

Add:

```python
    wp.adjoint[x] += adj_ret * 0.5 / wp.sqrt(x)
```

## How it is verified

The program runs; its gradient is compared with finite differences, and the adjoint of the kernel alone against finite
differences of that one launch.

## Limits

A warning only where the kernel is launched on a tape, gradient flows through the operand and the result matters to the
loss; otherwise information. `+=`, a variable whose other uses all come before the call, and arguments used once are
right and stay silent.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Severity
from warplint.kernels.summary import KernelFault, KernelFaultKind
from warplint.proof import Experiment
from warplint.rule import Context, Group, Rule
from warplint_rules import kernel_faults


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each assignment."""
    return kernel_faults.findings(RULE, TOLD, context)


def _what(fault: KernelFault) -> str:
    return (
        f"`{fault.operation}` assigns the adjoint of `{fault.detail}`: what other uses of the caller's variable "
        "contribute to it is wiped out, so its gradient is incomplete"
    )


def _instead(fault: KernelFault) -> str:
    return "add with `+=`"


TOLD = kernel_faults.Told(frozenset((KernelFaultKind.ADJOINT_ASSIGNED,)), _what, _instead)

RULE = Rule(
    code="NVW207",
    name="func-grad-assign",
    summary="a custom adjoint assigns with `=` what other uses of the variable contribute to",
    group=Group.KERNEL,
    severity=Severity.WARNING,
    experiment=Experiment.KERNEL_CHECK,
    since="0.1.0",
    detect=detect,
)

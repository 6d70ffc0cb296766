"""# where-nan (NVW204)

## What it does

Finds `wp.where` with an operand that is singular just where the condition does not select it: a division, `sqrt`, `log`
or a power by a value that the condition guards, or an `exp` that overflows there.

## Why is this bad

`wp.where` evaluates both operands. The adjoint of the one that is not selected is multiplied by zero, but its
derivative is infinite there, and zero times infinity is NaN: one empty cell makes the whole gradient NaN.

## Example

```python
@wp.kernel
def to_velocity(m: wp.array(dtype=float), p: wp.array(dtype=float), v: wp.array(dtype=float)):
    i = wp.tid()
    v[i] = wp.where(m[i] > 0.0, p[i] / m[i], 0.0)            # NVW204
```

## Use instead

A branch, of which only the taken arm is differentiated:

```python
    if m[i] > 0.0:
        v[i] = p[i] / m[i]
```

(`a if c else b` is a branch, too), or guard the operand itself: `p[i] / wp.max(m[i], 1.0e-9)`.

## How it is verified

The program runs; its gradient is compared with finite differences, and the adjoint of the kernel alone against finite
differences of that one launch. A kernel that no run reaches is checked on inputs made for it, zeros and large values
among them.

## Limits

A warning only where the kernel is launched on a tape, gradient flows through the operand and the result matters to the
loss; otherwise information. Whether the data come to the singular point is not asked. Operands that are guarded (`+
eps`, `wp.max`, a second `where`) or stand in a branch of their own are silent, and so are conditions that compare with
some other number than zero.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Severity
from warplint.kernels.summary import KernelFault, KernelFaultKind
from warplint.proof import Draw, Experiment
from warplint.rule import Context, Group, Rule
from warplint_rules import kernel_faults


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each singular operation."""
    return kernel_faults.findings(RULE, TOLD, context)


def _what(fault: KernelFault) -> str:
    return (
        f"`{fault.operation}` is singular just where `wp.where` does not select it: its adjoint is zero times infinity "
        "there, which is NaN"
    )


def _instead(fault: KernelFault) -> str:
    return "use a branch, or guard the operand"


TOLD = kernel_faults.Told(frozenset((KernelFaultKind.UNSELECTED_SINGULAR,)), _what, _instead)

RULE = Rule(
    code="NVW204",
    name="where-nan",
    summary="an operand of `wp.where` that is singular where it is not selected: NaN in the adjoint",
    group=Group.KERNEL,
    severity=Severity.WARNING,
    experiment=Experiment.KERNEL_CHECK,
    since="0.1.0",
    detect=detect,
    draws=(Draw.ZEROS, Draw.LARGE),
)

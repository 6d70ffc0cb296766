"""# nondifferentiable-op (NVW212)

## What it does

Finds builtins that Warp does not differentiate although their derivative is not zero, on the way from a leaf to the
loss: `wp.frac`, `wp.tile_max`, `wp.tile_min`, `wp.tile_reduce`, `wp.tile_scan_inclusive`, `wp.grad(f)(x)` and others.
Also what `wp.atomic_add` returns, where it is used, and what `wp.atomic_max` finds in the array and replaces.

## Why is this bad

No adjoint code is generated for them, and Warp says nothing: the gradient that should come through is missing from the
result, which is smaller than the true one, or zero.

## Example

```python
@wp.kernel
def wrap(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.frac(x[i])                     # NVW212
```

## Use instead

Write it with operations that have an adjoint (`x - wp.floor(x)` has the right gradient), or wrap it in a `@wp.func`
with a `@wp.func_grad`.

## How it is verified

The program runs; its gradient is compared with finite differences, and the adjoint of the kernel alone against finite
differences of that one launch.

## Limits

A warning only where the kernel is launched on a tape, gradient flows through the operand and the result matters to the
loss; otherwise information. Uses as index, seed or query are silent, and
so are operations whose derivative is zero almost everywhere (NVW206 speaks of those). The list is that of Warp 1.19.
`wp.atomic_min` and `wp.atomic_max` over values with gradient are information: whether the old value loses is up to the
data, and where it stays the gradient is right.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Severity
from warplint.kernels.summary import KernelFault, KernelFaultKind
from warplint.proof import Experiment
from warplint.rule import Context, Group, Rule
from warplint_rules import kernel_faults, wording


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each operation."""
    return kernel_faults.findings(RULE, TOLD, context)


def _what(fault: KernelFault) -> str:
    paths = wording.listing(f"`{path}`" for path in sorted(fault.given))
    if fault.kind is KernelFaultKind.EXTREME_KEPT:
        return (
            f"`{fault.operation}` is not differentiated with respect to what `{fault.detail}` held: where another "
            "value wins, the old one keeps a gradient that it should lose"
        )
    return (
        f"`{fault.operation}` has no adjoint in Warp although its derivative is not zero: what the gradient of "
        f"{paths or 'its argument'} should get through it is missing"
    )


def _instead(fault: KernelFault) -> str:
    return "use operations that have an adjoint, or give it one with `@wp.func_grad`"


TOLD = kernel_faults.Told(
    frozenset((KernelFaultKind.NONDIFFERENTIABLE, KernelFaultKind.EXTREME_KEPT)),
    _what,
    _instead,
    met=frozenset((KernelFaultKind.EXTREME_KEPT,)),
)

RULE = Rule(
    code="NVW212",
    name="nondifferentiable-op",
    summary="a builtin without an adjoint, whose derivative is not zero, on the way from a leaf to the loss",
    group=Group.KERNEL,
    severity=Severity.WARNING,
    experiment=Experiment.KERNEL_CHECK,
    since="0.1.0",
    detect=detect,
)

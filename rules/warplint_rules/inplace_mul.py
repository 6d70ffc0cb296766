"""# inplace-mul (NVW201)

## What it does

Finds `*=` and `/=` on an array element, where the factor carries gradient, and on a component of a local vector or
matrix.

## Why is this bad

Warp does not differentiate these statements with the value that stood there before: when the adjoint runs, the array
holds the product already. The gradient of the factor is then wrong (that of the array is right). For a component it is
the other way round: the factor's gradient is right, but the old component's is not scaled, it gets too much.

## Example

```python
@wp.kernel
def normalise(w: wp.array(dtype=float), s: wp.array(dtype=float)):
    i = wp.tid()
    w[i] /= s[0]                  # NVW201: s is differentiated
```

## Use instead

Write the result to another array, or keep the product in a local:

```python
    w_out[i] = w[i] / s[0]
```

## How it is verified

The program runs; its gradient is compared with finite differences, and the adjoint of the blamed launch alone, with its
memory restored, against finite differences of that one launch.

## Limits

A warning only where the kernel is launched on a tape, gradient flows through the factor and the result matters to the
loss; otherwise information. Local scalars and whole local vectors are fine outside dynamic loops, and so are factors
that are literals or plain scalar arguments. `v[i].y *= s` is silently not differentiated by Warp 1.13, crashes with
1.16 and 1.17, and does not build with 1.19 where backward is on.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Severity
from warplint.kernels.summary import KernelFault, KernelFaultKind
from warplint.proof import Experiment
from warplint.rule import Context, Group, Rule
from warplint_rules import kernel_faults, wording


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each statement."""
    return kernel_faults.findings(RULE, TOLD, context)


def _what(fault: KernelFault) -> str:
    if fault.kind is KernelFaultKind.COMPONENT_MULTIPLY:
        return (
            f"`{fault.operation}` scales a component in place: Warp does not clear that component's adjoint, so the "
            "gradient of what it was made from is wrong"
        )
    if fault.detail:
        return (
            f"`{fault.operation}` scales a component of an array element in place: Warp 1.19 refuses to build it with "
            "backward on, and older versions let no gradient through, or crash"
        )
    factors = wording.listing(f"`{path}`" for path in sorted(fault.given))
    return (
        f"`{fault.operation}` scales an array element in place: Warp's adjoint reads the result where it needs the "
        f"value from before, so the gradient of {factors or 'the factor'} is wrong"
    )


def _instead(fault: KernelFault) -> str:
    return "make a new vector" if fault.kind is KernelFaultKind.COMPONENT_MULTIPLY else "write to another array"


TOLD = kernel_faults.Told(
    frozenset((KernelFaultKind.INPLACE_MULTIPLY, KernelFaultKind.COMPONENT_MULTIPLY)), _what, _instead
)

RULE = Rule(
    code="NVW201",
    name="inplace-mul",
    summary="`*=` or `/=` on an array element by something that carries gradient, or on a vector's component",
    group=Group.KERNEL,
    severity=Severity.WARNING,
    experiment=Experiment.KERNEL_CHECK,
    since="0.1.0",
    detect=detect,
)

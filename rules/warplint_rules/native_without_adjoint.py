"""# native-without-adjoint (NVW208)

## What it does

Finds functions made by `@wp.func_native` without an `adj_snippet` through which gradient should flow from a leaf to
the loss.

## Why is this bad

Warp cannot differentiate C++ code. Without an adjoint snippet the function passes no gradient on, silently.

## Example

```python
@wp.func_native("return x * x * x;")         # no adj_snippet
def cube(x: float) -> float: ...             # NVW208
```

## Use instead

Give it one:

```python
@wp.func_native("return x * x * x;", adj_snippet="adj_x += 3.0f * x * x * adj_ret;")
def cube(x: float) -> float: ...
```

or write the function in Python, if it can be.

## How it is verified

The program runs; its gradient is compared with finite differences, and the adjoint of the kernel alone against finite
differences of that one launch.

## Limits

A warning only where the kernel is launched on a tape, gradient flows through the operand and the result matters to the
loss; otherwise information. Of a snippet that gets arrays it is assumed that it reads and writes all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Severity
from warplint.kernels.summary import KernelFault, KernelFaultKind
from warplint.proof import Experiment
from warplint.rule import Context, Group, Rule
from warplint_rules import kernel_faults


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each function."""
    return kernel_faults.findings(RULE, TOLD, context)


def _what(fault: KernelFault) -> str:
    return (
        f"`{fault.detail}` is native code without an adjoint: no gradient flows back through it, so the gradient of "
        "what it is computed from is incomplete"
    )


def _instead(fault: KernelFault) -> str:
    return "give it an `adj_snippet`"


TOLD = kernel_faults.Told(frozenset((KernelFaultKind.NATIVE,)), _what, _instead)

RULE = Rule(
    code="NVW208",
    name="native-without-adjoint",
    summary="a native function without `adj_snippet` on the way from a leaf to the loss",
    group=Group.KERNEL,
    severity=Severity.WARNING,
    experiment=Experiment.KERNEL_CHECK,
    since="0.1.0",
    detect=detect,
)

"""# func-grad-incomplete (NVW213)

## What it does

Finds a `@wp.func_grad` that gives no adjoint to an argument through which gradient should flow.

## Why is this bad

A custom adjoint replaces the generated one as a whole: an argument that it does not mention gets no gradient, silently.

## Example

```python
@wp.func
def spring(x: float, k: float):
    return k * x * x

@wp.func_grad(spring)                        # k is differentiated, too
def adj_spring(x: float, k: float, adj_ret: float):      # NVW213
    wp.adjoint[x] += 2.0 * k * x * adj_ret
```

## Use instead

Give it its share:

```python
    wp.adjoint[k] += x * x * adj_ret
```

## How it is verified

The program runs; its gradient is compared with finite differences, and the adjoint of the kernel alone against finite
differences of that one launch.

## Limits

A warning only where the kernel is launched on a tape, gradient flows through the operand and the result matters to the
loss; otherwise information. Arguments that never carry gradient need no adjoint. What the function gives to an argument
is checked by a run only.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Severity
from warplint.kernels.summary import KernelFault, KernelFaultKind
from warplint.proof import Experiment
from warplint.rule import Context, Group, Rule
from warplint_rules import kernel_faults


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each custom adjoint."""
    return kernel_faults.findings(RULE, TOLD, context)


def _what(fault: KernelFault) -> str:
    return (
        f"this custom adjoint gives nothing to `{fault.detail}`, although the function depends on it: the gradient of "
        "what is passed there is incomplete"
    )


def _instead(fault: KernelFault) -> str:
    return "add its share to `wp.adjoint`"


TOLD = kernel_faults.Told(frozenset((KernelFaultKind.ADJOINT_OMITTED,)), _what, _instead)

RULE = Rule(
    code="NVW213",
    name="func-grad-incomplete",
    summary="a custom adjoint that leaves out an argument which carries gradient",
    group=Group.KERNEL,
    severity=Severity.WARNING,
    experiment=Experiment.KERNEL_CHECK,
    since="0.1.0",
    detect=detect,
)

"""# inplace-mul (NVW201)

## What it does

Finds `*=` and `/=` on an array element, where the factor carries gradient, and on a component of a local vector or
matrix.

## Why is this bad

Warp does not differentiate these statements with the value that stood there before: when the adjoint runs, the array
holds the product already. The gradient of the factor is then wrong (that of the array is right); for a component both
are.

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
that are literals or plain scalar arguments. From Warp 1.19 on, `v[i].y *= s` with backward on does not build at all.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Anchor, Experiment, Finding, Role, Severity
from warplint.kernels.summary import KernelFault, KernelFaultKind
from warplint.rule import Context, Group, Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.events import Kernel
from warplint.trace.gradients import LaunchedFault
from warplint_rules import wording

KINDS = (KernelFaultKind.INPLACE_MULTIPLY, KernelFaultKind.COMPONENT_MULTIPLY)


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each statement: the launches that are differentiated decide, others only inform."""
    flow = context.dataflow
    launched = [_launched(found, flow) for found in flow.launched_faults if found.fault.kind in KINDS]
    declared = [_declared(kernel, fault, flow) for kernel, fault in flow.kernel_faults if fault.kind in KINDS]
    return wording.strongest([*launched, *declared])


def _launched(found: LaunchedFault, flow: Dataflow) -> Finding:
    kernel = found.launch.kernel
    name = wording.operation_name(found.launch)
    instead = (
        "make a new vector" if found.fault.kind is KernelFaultKind.COMPONENT_MULTIPLY else "write to another array"
    )
    matters = f"; {name} is launched on a tape and this reaches the loss: {instead}"
    return wording.finding(
        RULE,
        Severity.WARNING if found.established else Severity.INFO,
        found.fault.span,
        f"{_what(found.fault)}{matters if found.established else _SHOULD_IT}",
        [
            *wording.label(kernel.span if kernel is not None else None, Role.KERNEL, f"in {name}"),
            *wording.label(found.launch.span, Role.LAUNCH, "launched here"),
            *wording.tape_labels(found.recording),
        ],
        flow.trace.source,
        Anchor(write=found.launch.span, kernel=kernel.span if kernel is not None else None),
    )


def _declared(kernel: Kernel, fault: KernelFault, flow: Dataflow) -> Finding:
    return wording.finding(
        RULE,
        Severity.INFO,
        fault.span,
        f"{_what(fault)}{_SHOULD_IT}",
        wording.label(kernel.span, Role.KERNEL, f"in `{kernel.name}`"),
        flow.trace.source,
        Anchor(kernel=kernel.span),
    )


_SHOULD_IT = ", should it be differentiated with respect to that"


def _what(fault: KernelFault) -> str:
    if fault.kind is KernelFaultKind.COMPONENT_MULTIPLY:
        return (
            f"`{fault.operation}` scales a component in place: Warp's adjoint reads the result where it needs the "
            "value from before, so both gradients are wrong"
        )
    factors = wording.listing(f"`{path}`" for path in sorted(fault.given))
    return (
        f"`{fault.operation}` scales an array element in place: Warp's adjoint reads the result where it needs the "
        f"value from before, so the gradient of {factors or 'the factor'} is wrong"
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

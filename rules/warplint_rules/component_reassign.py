"""# component-reassign (NVW202)

## What it does

Finds assignments to a component of a local vector, matrix or quaternion that had a value with gradient before: from a
constructor, from an earlier assignment, or because an adjoint has taken the whole vector already. Also a vector that a
dynamic loop fills component by component.

## Why is this bad

There is one copy of the local and of its adjoint. Warp's adjoint of `v[0] = e` hands the component's adjoint to `e` but
does not clear it, so that the value that stood there before gets it too, although it is no longer part of the result.

## Example

```python
@wp.kernel
def clamp(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    v = wp.vec2(x[i], 2.0 * x[i])
    v[0] = wp.min(v[0], 1.0)                 # NVW202
    wp.atomic_add(loss, 0, wp.dot(v, v))
```

## Use instead

Make a new vector:

```python
    w = wp.vec2(wp.min(v[0], 1.0), v[1])
```

or set `wp.config.enable_vector_component_overwrites = True` before the module is first loaded (in dynamic loops it does
not help).

## How it is verified

The program runs; its gradient is compared with finite differences, and the adjoint of the kernel alone against finite
differences of that one launch.

## Limits

A warning only where the kernel is launched on a tape, gradient flows through the old component and the result matters
to the loss; otherwise information. The first assignment after `wp.vec3()`, `v[0] += e` (not `v.x += e`, which stores
the sum), one assignment in each arm of a branch, and components of array elements (`a[i].x = e`) are right and stay
silent. The latter passed no gradient on before Warp 1.15, and a sum onto one (`a[i].x += e`) none before 1.18: with
`warp-version` below that, they are reported here.
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
    """One finding for each statement."""
    return kernel_faults.findings(RULE, TOLD, context)


def _established(found: LaunchedFault, flow: Dataflow) -> bool:
    if found.fault.kind is KernelFaultKind.ELEMENT_COMPONENT:
        return found.established
    kernel = found.launch.kernel
    known = found.fault.loop is not None or (kernel is not None and flow.component_overwrites(kernel) is False)
    return found.established and known


def _moot(fault: KernelFault, kernel: Kernel | None, launch: Launch | None, flow: Dataflow) -> bool:
    """Built with component overwrites, a vector keeps its old values, but not those of a loop's earlier rounds."""
    if fault.kind is KernelFaultKind.ELEMENT_COMPONENT:
        return False
    return fault.loop is None and kernel is not None and flow.component_overwrites(kernel) is True


def _what(fault: KernelFault) -> str:
    if fault.kind is KernelFaultKind.ELEMENT_COMPONENT:
        return (
            f"`{fault.operation}` writes to a component of an array element, which Warp differentiates from "
            f"{fault.detail} on only: no gradient reaches what is written"
        )
    if fault.loop is not None:
        return (
            f"`{fault.operation}` fills a vector in a loop that stays a loop at run time: Warp keeps one copy of it, "
            "so the gradients of its components are lost"
        )
    return (
        f"`{fault.operation}` replaces a component that carries gradient: Warp does not clear its adjoint, so the "
        "gradient of the value from before is wrong"
    )


def _instead(fault: KernelFault) -> str:
    if fault.kind is KernelFaultKind.ELEMENT_COMPONENT:
        return "store the whole element"
    return "make a new vector" if fault.loop is None else "unroll the loop or store the components to an array"


TOLD = kernel_faults.Told(
    frozenset((KernelFaultKind.COMPONENT_REASSIGN, KernelFaultKind.ELEMENT_COMPONENT)),
    _what,
    _instead,
    established=_established,
    moot=_moot,
)

RULE = Rule(
    code="NVW202",
    name="component-reassign",
    summary="a component of a local vector or matrix is assigned over a value that carries gradient",
    group=Group.KERNEL,
    severity=Severity.WARNING,
    experiment=Experiment.KERNEL_CHECK,
    since="0.1.0",
    detect=detect,
)

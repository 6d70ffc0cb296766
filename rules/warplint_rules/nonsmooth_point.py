"""# nonsmooth-point (NVW205)

## What it does

Finds operations that have no finite derivative at a point to which the data come: `sqrt`, `cbrt`, `log`, a division or
a power below one at zero, also as `sqrt(dot(v, v))` and `v / length(v)`; and `abs`, `min`, `max` just at their kink.

## Why is this bad

The derivative of `sqrt` at zero is infinite. What came before multiplies it with zero as a rule, which makes NaN, and
one NaN makes the whole gradient NaN. At a kink the adjoint takes the slope of one side: that of `abs` at zero is 1,
although the function does not rise.

## Example

```python
@wp.kernel
def stretch(a: wp.array(dtype=wp.vec3), b: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = a[i] - b[i]
    wp.atomic_add(loss, 0, wp.sqrt(wp.dot(d, d)))            # NVW205 where the two ends meet
```

## Use instead

What Warp guards: `wp.length` and `wp.normalize` have the gradient zero at zero. Or guard the operand yourself,
`wp.sqrt(wp.dot(d, d) + 1.0e-12)`, or leave the point out by a branch:

```python
    if wp.dot(d, d) > 0.0:
        wp.atomic_add(loss, 0, wp.sqrt(wp.dot(d, d)))
```

## How it is verified

The program runs. A gradient that is not finite, as the adjoint of this launch alone is not, is the confirmation; for a
kink it is that the loss has two slopes there, of which the gradient is one.

## Limits

A warning only where the contents in sight come to the point: literals, `zeros`, `full`, small numpy arrays, fills, what
earlier launches make of them, and arrays that hold the same numbers, in the first threads of a launch on a tape. An
operation without a guard on the way from a leaf to the loss is information otherwise; a kink is reported only where
it is hit, and where it shows in the loss. What `wp.where` does not select is NVW204.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from warplint.finding import Anchor, Finding, Role, Severity
from warplint.kernels.summary import KernelFaultKind, NonsmoothPoint, PointKind
from warplint.proof import Experiment
from warplint.rule import Context, Group, Rule
from warplint.trace.dataflow import Dataflow
from warplint_rules import wording

if TYPE_CHECKING:
    from warplint.trace.flow.points import LaunchedPoint


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each operation: the launch that comes to its point, else the first one.

    Of an operand that a loop has lost the adjoint reads another value than the operation did; that is one fault, and
    another rule's (``log`` of a sum: the adjoint divides by the zero that the sum began with).
    """
    flow = context.dataflow
    lost = {each.fault.span for each in flow.launched_faults if each.fault.kind is KernelFaultKind.DYNAMIC_LOOP}
    told = [
        each
        for each in flow.launched_points
        if (each.thread is not None or not each.point.guarded) and each.point.span not in lost
    ]
    return wording.strongest([_finding(found, flow) for found in told])


def _finding(found: LaunchedPoint, flow: Dataflow) -> Finding:
    launch, kernel = found.launch, found.launch.kernel
    span = kernel.span if kernel is not None else None
    name = wording.operation_name(launch)
    return wording.finding(
        RULE,
        Severity.WARNING if found.thread is not None else Severity.INFO,
        found.point.span,
        _met(found.point, name, found.thread) if found.thread is not None else _possible(found.point, name),
        [
            *wording.label(span, Role.KERNEL, f"in {name}"),
            *wording.label(launch.span, Role.LAUNCH, "launched here"),
            *wording.tape_labels(found.recording),
        ],
        flow.trace.source,
        Anchor(write=launch.span, kernel=span),
    )


def _met(point: NonsmoothPoint, kernel: str, thread: tuple[int, ...]) -> str:
    index = str(thread[0]) if len(thread) == 1 else str(thread)
    if point.kind is PointKind.KINK:
        return (
            f"`{point.operation}` stands just at its kink in thread {index} of {kernel}: the adjoint takes one side's "
            "slope; start beside the kink, or use a smooth stand-in"
        )
    return (
        f"`{point.operation}` meets zero in thread {index} of {kernel}, where its derivative is infinite: the gradient "
        "becomes NaN or infinite; guard the operand, or branch around it"
    )


def _possible(point: NonsmoothPoint, kernel: str) -> str:
    return (
        f"`{point.operation}` has no finite derivative at zero, and nothing in {kernel} keeps its operand from there; "
        "a gradient of NaN is what it makes, should the data come there"
    )


RULE = Rule(
    code="NVW205",
    name="nonsmooth-point",
    summary="an operation without a finite derivative at a point to which the data come: `sqrt` of zero, a kink",
    group=Group.KERNEL,
    severity=Severity.WARNING,
    experiment=Experiment.NONSMOOTH_POINT,
    since="0.1.0",
    detect=detect,
)

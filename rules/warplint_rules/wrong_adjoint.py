"""# wrong-adjoint (NVW210)

## What it does

Finds an adjoint of the user's own that finite differences refute: `@wp.func_grad`, the `adj_snippet` of a native
function, or a function that `tape.record_func` recorded. Only a run shows it; there is no such finding in source.

## Why is this bad

A custom adjoint replaces the generated one, and nothing compares it with the function. A factor or a sign that is lost
in it makes every gradient that passes there wrong, by little enough to go unnoticed.

## Example

```python
@wp.func
def soft(x: float, k: float):
    return k * x * x * x

@wp.func_grad(soft)
def adj_soft(x: float, k: float, adj_ret: float):        # NVW210: 3 k x^2 is meant
    wp.adjoint[x] += 2.0 * k * x * x * adj_ret
    wp.adjoint[k] += x * x * x * adj_ret
```

## Use instead

The derivative of what the function computes, and `wp.autograd.gradcheck` in a test of it.

## How it is verified

The program runs. Where a gradient of it is wrong, and so is the adjoint of a kernel alone, each custom adjoint that the
kernel comes to is checked by itself: called on inputs made for it, its adjoint against finite differences, argument by
argument. A recorded function is checked on the program's own data: the gradient that it finds agrees with finite
differences from there on, the one that it leaves does not.

## Limits

Checked are functions that a wrong gradient passes. Where the adjoint is right for some inputs and wrong for others, it
is told only if nothing else in the kernel can be at fault. An adjoint that is meant to be another function's (a
straight-through estimator, a clipped gradient) is refuted just the same: say so with a comment that suppresses the
finding. An argument that the adjoint leaves out is NVW213.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from warplint.finding import Anchor, Finding, Label, Role, Severity, Source
from warplint.kernels.summary import KernelFaultKind
from warplint.proof import Experiment
from warplint.rule import Context, Group, Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.events import Launch, RefutedAdjoint
from warplint_rules import wording


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each adjoint, told by the argument that is off most."""
    flow = context.dataflow
    worst: dict[object, RefutedAdjoint] = {}
    for adjoint in flow.trace.refuted:
        known = worst.get(adjoint.span)
        if _stands_alone(adjoint, flow) and (known is None or _off(adjoint) > _off(known)):
            worst[adjoint.span] = adjoint
    return [_finding(adjoint, flow) for adjoint in worst.values()]


def _off(adjoint: RefutedAdjoint) -> float:
    return abs(adjoint.ad - adjoint.fd) / max(abs(adjoint.ad), abs(adjoint.fd))


_IN_TEXT = frozenset((KernelFaultKind.ADJOINT_ASSIGNED, KernelFaultKind.ADJOINT_OMITTED))
"""What a custom adjoint's text shows to be wrong with it: rules of their own tell that."""


def _stands_alone(adjoint: RefutedAdjoint, flow: Dataflow) -> bool:
    """Whether nothing else tells what is wrong: the adjoint's own text, or something in the kernels around it."""
    kernels = {event.kernel for event in flow.trace.events if isinstance(event, Launch) and event.kernel is not None}
    summaries = [flow.summary_of(kernel) for kernel in kernels if kernel.span in adjoint.kernels]
    faults = [fault for summary in summaries if summary is not None for fault in summary.faults]
    if any(fault.kind in _IN_TEXT and fault.detail == adjoint.argument for fault in faults):
        return False
    sound = None not in summaries and all(fault.kind is KernelFaultKind.FLAT for fault in faults)
    return adjoint.everywhere or sound


def _finding(adjoint: RefutedAdjoint, flow: Dataflow) -> Finding:
    which = f"for `{adjoint.argument}`" if adjoint.forward is not None else f"in `{adjoint.argument}`"
    of = f"of `{adjoint.function}` " if adjoint.forward is not None else ""
    message = (
        f"the custom adjoint {of}is refuted by finite differences {which}: it gives {adjoint.ad:.6g}, the difference "
        f"is {adjoint.fd:.6g}"
    )
    ties = Anchor(
        write=adjoint.span,
        kernel=adjoint.kernels[0] if adjoint.kernels else None,
        arguments=(adjoint.argument,),
    )
    return wording.finding(
        RULE, Severity.WARNING, adjoint.span, message, list(_labels(adjoint)), flow.trace.source, ties
    )


def _labels(adjoint: RefutedAdjoint) -> Iterator[Label]:
    if adjoint.forward not in (None, adjoint.span):
        yield from wording.label(adjoint.forward, Role.NOTE, "the function")
    for kernel in adjoint.kernels:
        yield from wording.label(kernel, Role.KERNEL, "a kernel that comes to it")


RULE = Rule(
    code="NVW210",
    name="wrong-adjoint",
    summary="a custom adjoint that finite differences refute (seen in a run only)",
    group=Group.KERNEL,
    severity=Severity.WARNING,
    experiment=Experiment.ADJOINT_CHECK,
    since="0.1.0",
    detect=detect,
    source=Source.RUNTIME,
)

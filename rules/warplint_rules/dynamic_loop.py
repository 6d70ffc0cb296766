"""# dynamic-loop (NVW203)

## What it does

Finds loops that stay loops at run time (a bound that is not constant, more than `max_unroll` iterations, `while`,
`break`; a `continue` before Warp 1.19) and overwrite a local whose value an adjoint needs: products, non-linear
recurrences, running minima and maxima, a condition on the accumulator, an index kept by hand, a non-linear use or a
branch behind the loop.

## Why is this bad

Warp keeps one copy of each local. The backward pass runs the body again from the last iteration to the first, without
the values that the local had: products are differentiated with values of other iterations. With an index kept by hand
the gradients land one element late, the last one out of bounds. After a `break` or `return` the backward pass still
starts at the last iteration that the bound allows: iterations that never ran are differentiated, and where it meets the
`break`, those that did run are left out. An iteration that a `continue` ends is differentiated only from there on:
what it did before the `continue` is left out (also what comes before a `break` whose condition never changes).

The same copy serves what stood before the loop: `b[i] = t * t` is differentiated with the `t` that a later loop leaves.
And the adjoint of a `while` loop goes from its first iteration to the last, so that only sums come out right.

A function is given variables by value, but their adjoints by reference. Where its loop assigns a parameter, whatever
the caller makes of the variable afterwards goes through the adjoint of that loop as well, used or not.

## Example

```python
@wp.kernel
def compound(rate: wp.array(dtype=float), n: int, out: wp.array(dtype=float)):
    p = float(1.0)
    for j in range(n):
        p = p * (1.0 + rate[j])              # NVW203
    out[0] = p
```

## Use instead

Store the intermediate values to an array, or unroll the loop: a constant bound of at most `max_unroll` iterations
without `break`.

```python
    part[0] = 1.0
    for j in range(n):
        part[j + 1] = part[j] * (1.0 + rate[j])
    out[0] = part[n]
```

In place of `break`, let a `@wp.func` find the number of iterations (`return i` from a loop of its own) and loop up to
that; put what must always happen behind the `continue`. Copy a parameter before the loop (`y = x`). A sum that is used
non-linearly behind its loop is right if the loop stands in a `@wp.func` that returns the sum.

## How it is verified

The program runs; its gradient is compared with finite differences, and the adjoint of the kernel alone against finite
differences of that one launch.

## Limits

A warning only where the kernel is launched on a tape, gradient flows through the operation and the result matters to
the loss; otherwise information. Sums that are used linearly, locals that live in one iteration, linear recurrences with
constant coefficients stay silent. What a loop adds up before a `break` or `return` leaves it is wrong as soon as that
is reached (measured; a `return` in the last iteration is harmless); a loop that runs to its bound on data that the text
of the program shows is silent, and so is a `continue` that is never reached on such data.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from warplint.finding import Finding, Severity, Span
from warplint.kernels.summary import BY_REFERENCE, LEFT_BEHIND, OUT_OF_ORDER, SKIPPED, KernelFault, KernelFaultKind
from warplint.proof import Experiment
from warplint.rule import Context, Group, Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.events import Kernel, Launch
from warplint_rules import kernel_faults


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each loop, at the first operation that goes wrong."""
    return kernel_faults.findings(RULE, TOLD, context)


def _what(fault: KernelFault) -> str:
    if fault.steers == LEFT_BEHIND:
        return (
            f"`{fault.operation}` leaves the loop that makes `{fault.detail}`: the adjoint starts at the last "
            "iteration that the bound allows, whatever the loop did; the gradient is wrong as soon as this is reached"
        )
    if fault.steers == OUT_OF_ORDER:
        return (
            f"the adjoint of a `while` loop goes from its first iteration to the last, as the loop did: what later "
            f"iterations make of `{fault.detail}` comes too late for earlier ones, so the gradient is wrong"
        )
    if fault.steers == SKIPPED:
        return (
            f"`{fault.operation}` ends an iteration of a loop that stays one at run time: what the iteration made of "
            f"`{fault.detail}` before is not differentiated; the gradient is wrong as soon as this is reached"
        )
    if fault.steers == BY_REFERENCE:
        return (
            f"`{fault.operation}` passes a variable to a function whose loop assigns it (as `{fault.detail}`): what "
            "else the variable is used for afterwards is differentiated through that loop as well, so the gradient is "
            "wrong"
        )
    how = f"{fault.steers} `{fault.operation}` needs" if fault.steers else f"the adjoint of `{fault.operation}` needs"
    harm = "the gradients land at other elements, and may be written out of bounds"
    return (
        f"{how} `{fault.detail}`, which a loop overwrites: it stays a loop at run time and keeps one value only, "
        f"so {harm if fault.steers == INDEX else 'the gradient is wrong'}"
    )


INDEX = "the index in"


def _instead(fault: KernelFault) -> str:
    if fault.steers == SKIPPED:
        return f"do that behind the `{fault.operation}`, or put the rest of the iteration under a condition"
    if fault.steers == BY_REFERENCE:
        return f"copy the parameter before the loop (`y = {fault.detail}`)"
    return "store the intermediate values to an array, or unroll the loop"


def _loop(fault: KernelFault) -> Hashable:
    return fault.loop


def _moot(fault: KernelFault, kernel: Kernel | None, launch: Launch | None, flow: Dataflow) -> bool:
    """A loop that runs to its bound on the data in sight leaves nothing behind, and skips nothing."""
    places = {LEFT_BEHIND: fault.loop, SKIPPED: fault.span}
    return launch is not None and fault.steers in places and flow.left_loops.never(launch, places[fault.steers])


def _place(fault: KernelFault, flow: Dataflow) -> Span:
    """The operation; the loop, where the operation lies in a function that the loop calls, which is right by itself."""
    enclosing, loop = flow.trace.enclosing, fault.loop
    if enclosing is None or loop is None or fault.steers == BY_REFERENCE:
        return fault.span
    return fault.span if enclosing.are_in_one_function(loop, fault.span) else loop


TOLD = kernel_faults.Told(
    frozenset((KernelFaultKind.DYNAMIC_LOOP,)),
    _what,
    _instead,
    condition=", should it be differentiated",
    together=_loop,
    moot=_moot,
    place=_place,
)

RULE = Rule(
    code="NVW203",
    name="dynamic-loop",
    summary="a loop that stays a loop at run time overwrites a local whose value an adjoint needs",
    group=Group.KERNEL,
    severity=Severity.WARNING,
    experiment=Experiment.KERNEL_CHECK,
    since="0.1.0",
    detect=detect,
)

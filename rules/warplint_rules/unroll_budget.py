"""# unroll-budget (NVW310)

## What it does

Finds loops that Warp unrolls into so much code that the compiler spends seconds on it: loops of constant range, each
under the unroll limit, that stand in one another, loops under a raised `max_unroll`, and loops that `wp.static` forces
to be unrolled.

## Why is this bad

Nested constant ranges multiply: three of 16 rounds are 4,096 copies of the body, 1 MB of generated source and 12 s of
compiling; `range(256)` under `max_unroll = 256` came to 344 kB and 8 s, as a loop to 8 kB and 1 s (Warp 1.19).

## Example

```python
for a in range(10):                                  # NVW310: 1,000 copies of the body
    for b in range(10):
        for c in range(10):
            total += weight[a, b, c] * x[i]
```

## Use instead

A lower limit for the module, so that the outer loops stay loops:

```python
wp.set_module_options({"max_unroll": 8})
```

or a bound that is no constant (an argument of the kernel). On a tape, mind NVW203: a loop that stays a loop loses the
values of its locals.

## How it is verified

The program runs in an empty kernel cache: the size of the module's generated source is measured.

## Limits

The size is estimated from the operations in the body (300 bytes each with an adjoint, 100 without) and reported from
250 kB on, as information from 100 kB on. Silent: loops whose bounds are not known, loops with a `break` (these stay
loops), code of kernels that are never launched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from warplint.finding import Anchor, Finding, Role, Severity
from warplint.kernels.unrolling import UnrolledLoop, unrolled_loops
from warplint.proof import BuildHarm, Experiment
from warplint.rule import Context, Group, Rule
from warplint.trace.events import Kernel, Launch
from warplint_rules import wording

REPORTED = 250_000
"""Bytes of generated source: about 5 s of compiling where measured."""
MENTIONED = 100_000


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each outermost loop."""
    return wording.strongest(list(_findings(context)))


def _findings(context: Context) -> Iterator[Finding]:
    launched = dict.fromkeys(
        event.kernel for event in context.trace.events if isinstance(event, Launch) and event.kernel is not None
    )
    for kernel in launched:
        source = context.source_of(kernel)
        for loop in unrolled_loops(source) if source is not None else ():
            if loop.source_bytes >= MENTIONED:
                yield _finding(loop, kernel, context)


def _finding(loop: UnrolledLoop, kernel: Kernel, context: Context) -> Finding:
    size = f"{loop.source_bytes / 1e6:.1f} MB" if loop.source_bytes >= 1e6 else f"{loop.source_bytes // 1000} kB"
    return wording.finding(
        RULE,
        Severity.WARNING if loop.source_bytes >= REPORTED else Severity.INFO,
        loop.span,
        f"Warp writes this loop out: {loop.copies:,} copies of its innermost body, about {size} of source to compile; "
        "lower `max_unroll` for the module, or take a bound that is no constant",
        wording.label(kernel.decorator, Role.KERNEL, f"`{kernel.name}`"),
        context.trace.source,
        Anchor(kernel=kernel.span, module=kernel.module, option="max_unroll"),
    )


RULE = Rule(
    code="NVW310",
    name="unroll-budget",
    summary="constant loops, nested ones above all, that are unrolled into more code than a compiler takes quickly",
    group=Group.BUILD,
    severity=Severity.WARNING,
    experiment=Experiment.BUILD_COUNT,
    since="0.1.0",
    detect=detect,
    harm=BuildHarm.LARGE_SOURCE,
)

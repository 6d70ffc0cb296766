"""# backward-unneeded (NVW307)

## What it does

Finds programs whose kernels are built with adjoints although nothing in the program could ever run one.

## Why is this bad

Warp generates the adjoint of each kernel unless it is told not to, and the compiler has it all to translate: twenty
kernels came to 176 kB of source with adjoints and 65 kB without, 4.0 s against 2.5 s (Warp 1.19).

## Example

```python
import warp as wp                                    # NVW307: no tape, no adjoint, no bridge in the whole program

@wp.kernel
def shade(img: wp.array2d(dtype=float)): ...
```

## Use instead

```python
import warp as wp

wp.config.enable_backward = False                    # before the first kernel
```

## How it is verified

The program runs: its modules were built with adjoints, and no backward pass was run.

## Limits

Speaks of whole programs only, at the entry file. Silent: files that launch nothing when they are run, modules that try
themselves out when they are run (a file beside them imports them), programs that import packages which may
differentiate or are not in sight, test files, and programs that name a tape, an adjoint, a gradient, or
`enable_backward` anywhere (NVW301 and NVW302 say why a switch failed).
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Anchor, Finding, Role, Severity
from warplint.proof import BuildHarm, Experiment
from warplint.rule import Context, Group, Rule
from warplint.trace.events import Launch
from warplint_rules import wording


def detect(context: Context) -> Iterable[Finding]:
    """At most one finding, for the program."""
    trace = context.trace
    if not trace.forward_only or trace.warp_import is None:
        return
    launches = [event for event in trace.events if isinstance(event, Launch)]
    kernels = [event.kernel for event in launches if event.kernel is not None and event.kernel.enable_backward]
    if not kernels or any(event.adjoint for event in launches):
        return
    distinct = dict.fromkeys(kernel.name for kernel in kernels)
    names = wording.listing(f"`{name}`" for name in distinct) + (" is" if len(distinct) == 1 else " are")
    yield wording.finding(
        RULE,
        Severity.WARNING,
        trace.warp_import,
        f"nothing in this program runs an adjoint, yet {names} built with one; set "
        "`wp.config.enable_backward = False` before the first kernel",
        wording.label(kernels[0].span, Role.KERNEL, "built with its adjoint"),
        trace.source,
        Anchor(kernel=kernels[0].span, module=kernels[0].module, option="enable_backward"),
    )


RULE = Rule(
    code="NVW307",
    name="backward-unneeded",
    summary="kernels built with adjoints in a program that cannot run one",
    group=Group.BUILD,
    severity=Severity.WARNING,
    experiment=Experiment.BUILD_COUNT,
    since="0.1.0",
    detect=detect,
    harm=BuildHarm.NEEDLESS_ADJOINT,
)

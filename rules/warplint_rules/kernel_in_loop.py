"""# kernel-in-loop (NVW304)

## What it does

Finds kernels that come into a module after it was loaded, so that the module is built again: kernels defined in a loop
or in a function that is called again, whose content changes from call to call (captured values, `wp.static`), kernels
defined below the first launch, and `wp.map` of a function that captures a changing value.

## Why is this bad

A new kernel changes the module, and all of it is generated and compiled once more at the next launch: a build for each
round instead of one.

## Example

```python
for level in range(1, 4):
    @wp.kernel                                       # NVW304: other content in each round
    def repeat(x: wp.array(dtype=float)):
        for _ in range(wp.static(level)):
            ...
    wp.launch(repeat, dim=n, inputs=[x])
```

## Use instead

Pass the value as an argument. Where it must be a constant, make all kernels before the first launch, or give each a
module of its own from a cached factory, so that it does not rebuild the others:

```python
@functools.lru_cache
def make_repeat(level):
    @wp.kernel(module="unique")
    def repeat(x: wp.array(dtype=float)): ...
    return repeat
```

## How it is verified

The program runs in an empty kernel cache, and the builds of the module are counted: more than one, in one run.

## Limits

Silent: kernels defined again with the same content (one build), kernels all made before the first launch, unique
modules, and captured values that are not known. A cached factory that puts its kernels into one named module is found
where the package that holds it lies in the project of the program that calls it. What an installed package makes is
that package's to repair: source alone is silent about it, and a run tells its modules' builds with the lines in the
package that cause them, as `warplint builds measure` does.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Anchor, Finding, Role, Severity
from warplint.proof import BuildHarm, Experiment
from warplint.rule import Context, Group, Rule
from warplint.trace.events import Kernel, KernelDeclared, Trace
from warplint.trace.flow.module_lives import Rebuild, rebuilds
from warplint_rules import wording


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each kernel that makes its module be built again."""
    declared = {event.kernel.key: event.kernel for event in context.trace.events if isinstance(event, KernelDeclared)}
    found = []
    for rebuild in rebuilds(context.trace):
        launched = rebuild.launch.kernel if rebuild.launch is not None else None
        known = declared if launched is None else {launched.key: launched, **declared}
        found += [_finding(known[key], rebuild, context.trace) for key in rebuild.load.added if key in known]
    return wording.strongest(found)


def _finding(kernel: Kernel, rebuild: Rebuild, trace: Trace) -> Finding:
    changing = kernel.captures or kernel.stable is not True
    why = (
        "is made with other content after its module was loaded: each time all of the module is built again; pass what "
        "changes as an argument, or make the kernels before the first launch"
        if changing
        else "is defined after its module was loaded: all of it is built again; define it before the first launch"
    )
    return wording.finding(
        RULE,
        Severity.WARNING,
        kernel.decorator,
        f"`{kernel.name}` {why}",
        [
            *wording.label(rebuild.before.span, Role.LAUNCH, "the module is loaded here"),
            *wording.label(rebuild.load.span, Role.LAUNCH, "and built again here"),
        ],
        trace.source,
        Anchor(kernel=kernel.span, write=rebuild.load.span, module=kernel.module),
    )


RULE = Rule(
    code="NVW304",
    name="kernel-in-loop",
    summary="kernels that come into a module after it was loaded: the module is built again for each",
    group=Group.BUILD,
    severity=Severity.WARNING,
    experiment=Experiment.BUILD_COUNT,
    since="0.1.0",
    detect=detect,
    harm=BuildHarm.BUILT_AGAIN,
)

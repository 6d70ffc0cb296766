"""# generic-after-load (NVW305)

## What it does

Finds launches that give a generic kernel argument types which it was not yet instantiated for, after its module was
loaded.

## Why is this bad

A generic kernel is compiled for the types that it was launched with so far. Each new combination changes the module,
and all of it is generated and compiled once more: three types met one after another cost three builds instead of one,
each larger than the one before.

## Example

```python
@wp.kernel
def axpy(x: wp.array(dtype=Any), y: wp.array(dtype=Any)): ...

wp.launch(axpy, dim=n, inputs=[f32, f32])
wp.launch(axpy, dim=n, inputs=[f64, f64])            # NVW305: the module is built again
```

## Use instead

Say the types before the first launch; the module is then built once:

```python
for dtype in (wp.float32, wp.float64):
    wp.overload(axpy, [wp.array(dtype=dtype), wp.array(dtype=dtype)])
```

## How it is verified

The program runs in an empty kernel cache, and the builds of the kernel's module are counted: more than one, in one run.

## Limits

Silent where an argument's type is not known. Scalars are taken for one type. Information only: kernels with
`module="unique"`, where the build that is repeated is that kernel's alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Anchor, Finding, Role, Severity
from warplint.proof import BuildHarm, Experiment
from warplint.rule import Context, Group, Rule
from warplint.trace.events import Trace
from warplint.trace.flow.module_lives import Rebuild, rebuilds
from warplint_rules import wording


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each launch that makes a module be built again for a new instance of its kernel."""
    found = []
    for rebuild in rebuilds(context.trace):
        kernel = rebuild.launch.kernel if rebuild.launch is not None else None
        if kernel is not None and any(key.startswith(f"{kernel.key}<") for key in rebuild.load.added):
            found.append(_finding(rebuild, context.trace))
    return wording.strongest(found)


def _finding(rebuild: Rebuild, trace: Trace) -> Finding:
    launch, module = rebuild.launch, rebuild.load.module
    assert launch is not None
    assert launch.kernel is not None
    kernel = launch.kernel
    return wording.finding(
        RULE,
        Severity.INFO if kernel.unique else Severity.WARNING,
        launch.span,
        f"`{kernel.name}` meets new argument types after its module was loaded: all of the module is built again; "
        "declare the types with `wp.overload` before the first launch",
        [
            *wording.label(kernel.span, Role.KERNEL, "the generic kernel"),
            *wording.label(rebuild.before.span, Role.LAUNCH, "the module is loaded here"),
        ],
        trace.source,
        Anchor(kernel=kernel.span, write=launch.span, module=module),
    )


RULE = Rule(
    code="NVW305",
    name="generic-after-load",
    summary="a generic kernel launched with new types after its module was loaded: the module is built again",
    group=Group.BUILD,
    severity=Severity.WARNING,
    experiment=Experiment.BUILD_COUNT,
    since="0.1.0",
    detect=detect,
    harm=BuildHarm.BUILT_AGAIN,
)

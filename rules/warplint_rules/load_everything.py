"""# load-everything (NVW313)

## What it does

Finds `wp.force_load()` without modules in programs that launch kernels of few modules.

## Why is this bad

It builds every module that was imported, Warp's own among them: 4 builds instead of 1 in a program of a single kernel,
20 with `import warp.sparse`, more than 50 once `warp.fem` is imported too (Warp 1.19).

## Example

```python
import warp.sparse

wp.force_load("cpu")                                 # NVW313: 20 modules, of which one is launched
wp.launch(step, dim=n, inputs=[x])
```

## Use instead

Name the modules that are needed at once:

```python
wp.load_module(device="cpu")                         # the calling file's own
wp.force_load("cpu", modules=[step.module])
```

## How it is verified

The program runs in an empty kernel cache: modules are built of which it launches no kernel.

## Limits

Silent: programs that launch kernels of more than three modules and of at least half of their own, programs of which a
launch could not be resolved, and runs that are not seen to their end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from warplint.finding import Anchor, Finding, Role, Severity
from warplint.proof import BuildHarm, Experiment
from warplint.rule import Context, Group, Rule
from warplint.trace.events import Launch, LoadsAsked, Trace
from warplint_rules import wording

FEW = 3


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each call."""
    return wording.strongest(list(_findings(context.trace)))


def _findings(trace: Trace) -> Iterator[Finding]:
    launches = [event for event in trace.events if isinstance(event, Launch)]
    if not trace.is_program or trace.cut or not launches or any(launch.kernel is None for launch in launches):
        return
    used = dict.fromkeys(launch.kernel.module for launch in launches if launch.kernel is not None)
    for event in trace.events:
        if isinstance(event, LoadsAsked) and event.everything:
            own = event.modules or ()
            if len(used) <= FEW or 2 * len(used) < len(own):
                yield _finding(event, list(used), launches[0], trace)


def _finding(event: LoadsAsked, used: list[str], first: Launch, trace: Trace) -> Finding:
    names = wording.listing(f"`{name}`" for name in used)
    count = "one module" if len(used) == 1 else f"{len(used)} modules"
    return wording.finding(
        RULE,
        Severity.WARNING,
        event.span,
        f"this builds every module that was imported, Warp's own among them, and the program launches kernels of "
        f"{count}: {names}; name the modules",
        wording.label(first.span, Role.LAUNCH, f"{wording.operation_name(first)} is launched here"),
        trace.source,
        Anchor(write=event.span),
    )


RULE = Rule(
    code="NVW313",
    name="load-everything",
    summary="`wp.force_load()` of all modules in a program that launches kernels of few",
    group=Group.BUILD,
    severity=Severity.WARNING,
    experiment=Experiment.BUILD_COUNT,
    since="0.1.0",
    detect=detect,
    harm=BuildHarm.UNUSED_MODULES,
)

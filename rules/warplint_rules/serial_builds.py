"""# serial-builds (NVW315)

## What it does

Tells, of a run on CUDA, that several modules were built one after another, and how much sooner they could have been
there. It speaks from a run alone.

## Why is this bad

Modules are built when a kernel of theirs is first launched, one at a time, while the other processor cores wait.
Compilers for CUDA run side by side: at best, the builds take as long as the longest of them.

## Example

```python
wp.launch(collide, dim=n, inputs=[x])                # each launch builds a module
wp.launch(integrate, dim=n, inputs=[x])
wp.launch(render, dim=n, inputs=[x])
```

## Use instead

```python
wp.force_load("cuda:0", modules=[k.module for k in (collide, integrate, render)], max_workers=4)
```

## How it is verified

By the run that it speaks of: how long each build took, and that no two overlapped.

## Limits

Only modules that were built in the run, on a CUDA device (on the CPU threads gain nothing: NVW312). Silent: two
modules, and builds of which one takes most of the time.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from warplint.finding import Anchor, Finding, Role, Severity, Source
from warplint.proof import BuildHarm, Experiment
from warplint.rule import Context, Group, Rule
from warplint.trace.events import ModuleLoaded, Trace
from warplint_rules import wording

FEWEST = 3
GAIN = 1.5
"""Sum of the builds by the longest one: what less would gain is not worth the threads."""


def detect(context: Context) -> Iterable[Finding]:
    """At most one finding for a run, at its first build."""
    loads = [
        event
        for event in context.trace.events
        if isinstance(event, ModuleLoaded) and event.compiled and (event.device or "").startswith("cuda")
    ]
    if len({event.module for event in loads}) >= FEWEST and not _overlap(loads):
        times = [event.milliseconds or 0.0 for event in loads]
        if sum(times) > GAIN * max(times):
            yield _finding(loads, times, context.trace)


def _overlap(loads: list[ModuleLoaded]) -> bool:
    """Whether one build began before the one before it ended."""
    began = sorted((event.started, event.milliseconds or 0.0) for event in loads if event.started is not None)
    return any(start < before + lasted / 1000.0 for (before, lasted), (start, _) in pairwise(began))


def _finding(loads: list[ModuleLoaded], times: list[float], trace: Trace) -> Finding:
    whole, longest = sum(times) / 1000.0, max(times) / 1000.0
    return wording.finding(
        RULE,
        Severity.WARNING,
        loads[0].span,
        f"{len(loads)} builds one after another took {whole:.1f} s, the longest of them {longest:.1f} s: side by side "
        f"they would be at most {whole / longest:.1f} times as fast; load the modules first, with `max_workers`",
        [
            label
            for load in loads
            for label in wording.label(load.span, Role.LAUNCH, f"module `{load.module}` is built here")
        ],
        trace.source,
        Anchor(module=loads[0].module, write=loads[0].span),
    )


RULE = Rule(
    code="NVW315",
    name="serial-builds",
    summary="(of a run on CUDA) several modules built one after another, which could be built side by side",
    group=Group.BUILD,
    severity=Severity.WARNING,
    experiment=Experiment.BUILD_COUNT,
    since="0.1.0",
    detect=detect,
    source=Source.RUNTIME,
    harm=BuildHarm.ONE_BY_ONE,
)

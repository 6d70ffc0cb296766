"""# parallel-cpu-load (NVW312)

## What it does

Finds loads of several modules by several threads (`max_workers`, `wp.config.load_module_max_workers`) that can target
the CPU.

## Why is this bad

On the CPU each thread makes a precompiled header of its own, which is most of what a small module costs: five modules
took 3.6 s one after another, 5.7 s with two threads and 8 to 14 s with four (Warp 1.19, two cores). Without a device
named, the CPU is among the devices, also on a machine with a GPU. Older versions of Warp do not guard the CPU compiler
against several threads at all.

## Example

```python
wp.force_load(modules=[a, b, c], max_workers=4)      # NVW312: all devices, the CPU among them
```

## Use instead

Threads for CUDA devices, where compilers run side by side; none for the CPU:

```python
wp.force_load("cuda", modules=[a, b, c], max_workers=4)
```

## How it is verified

The program runs in an empty kernel cache: modules are built for the CPU by several threads at the same time.

## Limits

Information only where the device is not known. Silent: CUDA devices alone, and calls that load a single module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from warplint.finding import Anchor, Finding, Role, Severity
from warplint.proof import BuildHarm, Experiment
from warplint.rule import Context, Group, Rule
from warplint.trace.events import LoadsAsked, ModuleLoaded, Trace
from warplint_rules import wording


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each call."""
    return wording.strongest(list(_findings(context.trace)))


def _findings(trace: Trace) -> Iterator[Finding]:
    for event in trace.events:
        if not isinstance(event, LoadsAsked) or event.on_cpu is False:
            continue
        several = event.everything or (event.modules is not None and len(event.modules) > 1)
        if several and event.workers is not None and event.workers > 1:
            yield _finding(event, event.workers, trace)


def _finding(event: LoadsAsked, workers: int, trace: Trace) -> Finding:
    loads = [
        each
        for each in trace.events
        if isinstance(each, ModuleLoaded) and each.seq > event.seq and each.stack == event.stack
    ]
    names = wording.listing(f"`{name}`" for name in event.modules or ())
    return wording.finding(
        RULE,
        Severity.WARNING if event.on_cpu else Severity.INFO,
        event.span,
        f"{workers} threads load {names or 'all modules'} for the CPU, where each thread makes a precompiled header of "
        "its own; name the CUDA device, or load one after another",
        wording.label(loads[0].span if loads else None, Role.LAUNCH, "the first of them is loaded here"),
        trace.source,
        Anchor(module=(event.modules or (None,))[0]),
    )


RULE = Rule(
    code="NVW312",
    name="parallel-cpu-load",
    summary="modules loaded for the CPU by several threads, each of which makes a precompiled header of its own",
    group=Group.BUILD,
    severity=Severity.WARNING,
    experiment=Experiment.BUILD_COUNT,
    since="0.1.0",
    detect=detect,
    harm=BuildHarm.THREADS_ON_CPU,
)

"""# header-disabled (NVW311)

## What it does

Finds `wp.config.use_precompiled_headers = False` in programs that load several modules afterwards.

## Why is this bad

Warp's own header is large. Precompiled, the first module of a process pays for it; without, each module does: six small
modules took 53 s where they took 23 s (Warp 1.19, two CPU cores: 14 s for the first, then 1 s each, against 6 to 11 s
each).

## Example

```python
wp.config.use_precompiled_headers = False            # NVW311: each module translates Warp's header again
```

## Use instead

Leave it on. A program with a single small module is a little faster without (10 s against 12 s).

## How it is verified

The program runs in an empty kernel cache: two or more modules are built with the option off.

## Limits

Information only where the program names a CUDA device: with CUDA 13 and newer the option costs nothing there. Silent:
one module, and programs that turn the option on again before the second one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from warplint.finding import Anchor, Finding, Role, Severity
from warplint.proof import BuildHarm, Experiment
from warplint.rule import Context, Group, Rule
from warplint.trace.events import ConfigSet, ModuleLoaded, Trace
from warplint.trace.flow.module_lives import assigned_next
from warplint_rules import wording

OPTION = "use_precompiled_headers"
FEWEST = 2
"""One module translates the header once, precompiled or not."""


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each assignment."""
    return wording.strongest(list(_findings(context.trace)))


def _findings(trace: Trace) -> Iterator[Finding]:
    for event in trace.events:
        if isinstance(event, ConfigSet) and event.option == OPTION and event.value is False:
            loads = _first_loads(trace, event)
            if len(loads) >= FEWEST:
                yield _finding(event, loads, trace)


def _first_loads(trace: Trace, assignment: ConfigSet) -> list[ModuleLoaded]:
    """The builds while the option is off: each module's first, and those of changed content."""
    until = assigned_next(trace, assignment)
    return [
        event
        for event in trace.events
        if isinstance(event, ModuleLoaded)
        and event.seq > assignment.seq
        and (until is None or event.seq < until.seq)
        and event.compiled is not False
    ]


def _finding(event: ConfigSet, loads: list[ModuleLoaded], trace: Trace) -> Finding:
    return wording.finding(
        RULE,
        Severity.INFO if trace.names_cuda else Severity.WARNING,
        event.span,
        f"without precompiled headers each of the {len(loads)} modules built from here on translates Warp's own header "
        "again; leave the option on",
        [
            label
            for load in loads
            for label in wording.label(load.span, Role.LAUNCH, f"module `{load.module}` is built here")
        ],
        trace.source,
        Anchor(option=OPTION),
    )


RULE = Rule(
    code="NVW311",
    name="header-disabled",
    summary="precompiled headers switched off in a program of several modules: each translates Warp's header again",
    group=Group.BUILD,
    severity=Severity.WARNING,
    experiment=Experiment.BUILD_COUNT,
    since="0.1.0",
    detect=detect,
    harm=BuildHarm.HEADER_AGAIN,
)

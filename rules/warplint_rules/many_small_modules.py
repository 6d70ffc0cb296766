"""# many-small-modules (NVW308)

## What it does

Finds three or more modules of one kernel each with equal options that one run loads: modules that a file names
(`wp.Module`, `module="name"`), or files of one kernel each that lie in one folder.

## Why is this bad

Each module is generated, compiled, loaded and cached on its own; what a build costs beyond its kernels is paid for each
of them. Six small modules took 23 s where one took 15 s (Warp 1.19, two CPU cores).

## Example

```python
def declare(name, factor):
    @wp.kernel(module=wp.Module(f"part_{name}"))     # NVW308
    def scale(a: wp.array(dtype=float)):
        a[wp.tid()] *= factor
    return scale
```

## Use instead

One module for kernels that are built and used together: plain `@wp.kernel` in one file, one `wp.Module` for all of
them, or one name for the kernels of several files: `@wp.kernel(module="parts")`.

## How it is verified

The program runs in an empty kernel cache: three or more of these modules, of one kernel each, are built in one run.

## Limits

Silent: a kernel that is made after another one's module was loaded (in a shared module it would be one more build),
generic kernels, modules that are loaded again, modules whose name is not known, the program's own file, and files of
one kernel that lie in different folders. Unique modules have a rule of their own (NVW303).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from warplint.finding import Anchor, Finding, Role, Severity
from warplint.proof import BuildHarm, Experiment
from warplint.rule import Context, Group, Rule
from warplint.trace.events import Kernel, Launch, ModuleCreated, ModuleLoaded, Trace
from warplint.trace.flow.module_lives import ModuleLife, module_lives
from warplint_rules import wording

FEWEST = 3
"""Two modules are a decision, three of one kernel each are a habit."""


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each group, at the first of its modules."""
    groups: dict[tuple[str, str], list[ModuleLife]] = {}
    for life in _small_modules(context.trace):
        groups.setdefault((_home(life.kernels[0]), repr(_options(life.kernels[0]))), []).append(life)
    found = []
    for lives in groups.values():
        first_load = min(life.loads[0].seq for life in lives)
        together = [life for life in lives if life.declared[0].seq < first_load]
        if len(together) >= FEWEST:
            found.append(_finding(together, context.trace))
    return wording.strongest(found)


def _small_modules(trace: Trace) -> Iterator[ModuleLife]:
    """Modules that the program made for one kernel, and loads once."""
    rebuilt = {event.module for event in trace.events if isinstance(event, ModuleLoaded) and event.again is not False}
    homes = {
        event.kernel.module
        for event in trace.events
        if isinstance(event, Launch) and event.kernel and event.kernel.unique
    }
    for life in module_lives(trace):
        named = isinstance(life.created, ModuleCreated) and life.name not in homes | rebuilt
        one = len({kernel.key for kernel in life.kernels}) == 1 and not life.kernels[0].generic
        apart = life.name != "__main__" and not life.name.startswith("<unknown>")
        if named and one and apart and any(isinstance(load, Launch) for load in life.loads):
            yield life


def _home(kernel: Kernel) -> str:
    """What belongs together: the modules that a file names, and the files of a folder.

    Files of one program may be spelled from the working directory and from the root.
    """
    path = os.path.abspath(kernel.span.path).replace("\\", "/")
    stem = path.removesuffix(".py").removesuffix("/__init__")
    return stem.rpartition("/")[0] + "/" if stem.endswith(kernel.module.replace(".", "/")) else path


def _options(kernel: Kernel) -> Mapping[str, object]:
    return {**dict(sorted((kernel.module_options or {}).items())), "enable_backward": kernel.enable_backward}


def _finding(lives: list[ModuleLife], trace: Trace) -> Finding:
    first = lives[0]
    names = wording.listing(f"`{life.name}`" for life in lives)
    return wording.finding(
        RULE,
        Severity.WARNING,
        first.created.span,
        f"{len(lives)} modules of one kernel each, with equal options: {names}; a build for each, where one would do",
        [
            label
            for life in lives
            for label in wording.label(life.kernels[0].decorator, Role.KERNEL, f"the only kernel of `{life.name}`")
        ],
        trace.source,
        Anchor(kernel=first.kernels[0].span, module=first.name),
    )


RULE = Rule(
    code="NVW308",
    name="many-small-modules",
    summary="three or more modules of one kernel each with equal options: a build for each",
    group=Group.BUILD,
    severity=Severity.WARNING,
    experiment=Experiment.BUILD_COUNT,
    since="0.1.0",
    detect=detect,
    harm=BuildHarm.SMALL_MODULES,
)

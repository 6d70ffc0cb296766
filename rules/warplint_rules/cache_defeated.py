"""# cache-defeated (NVW306)

## What it does

Finds what keeps a program from finding its modules in the kernel cache when it starts again: `wp.clear_kernel_cache()`
at each start, `wp.config.cache_kernels = False`, a cache folder that is new in each process or is removed, the
array-access tracker left on, and values in a kernel that differ from process to process (a clock, a process number,
Python's salted `hash`, an unseeded random number, a place in the order of a set of strings), also in `wp.static`. A
number outside is in a kernel when the kernel reads it, and also when it only has the name of a parameter or of a loop's
variable: Warp's hash does not tell them apart (1.19).

## Why is this bad

Every start compiles everything again: seconds to minutes, each time, for each user.

## Example

```python
wp.init()
wp.clear_kernel_cache()                              # NVW306: at each start

STEEL = wp.constant(hash("steel") % 97)              # NVW306: another value, another module in each process

seed = int(time.time())                              # NVW306: in the hash of all kernels with a parameter `seed`
```

## Use instead

Leave the cache alone: Warp finds out by itself what has changed. Take `zlib.crc32` where a hash must stay the same, and
give a kernel what changes as an argument. To clear the cache now and then, make it a switch:

```python
if args.rebuild:
    wp.clear_kernel_cache()
```

## How it is verified

The program runs twice on one kernel cache of its own, and the builds of the second run are counted.

## Limits

Silent: whatever stands under a condition (a switch), cache folders that are fixed, the tracker where it is switched off
again, random numbers in a program that seeds a generator. Two runs in a row may agree by chance: a clock that a kernel
holds as a 32-bit float changes every two minutes, and a set of two strings has only two orders.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from warplint.finding import Anchor, Finding, Severity, Span
from warplint.proof import BuildHarm, Experiment
from warplint.rule import Context, Group, Rule
from warplint.trace.events import CacheCleared, ConfigSet, Kernel, KernelDeclared, Launch, ModuleLoaded, Trace
from warplint_rules import wording


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each call, assignment or value."""
    return wording.strongest(list(_findings(context.trace)))


def _findings(trace: Trace) -> Iterator[Finding]:
    last_load = max((event.seq for event in trace.events if isinstance(event, ModuleLoaded)), default=-1)
    used = {
        event.kernel.key: event.kernel
        for event in trace.events
        if isinstance(event, Launch) and event.kernel is not None
    }
    for event in trace.events:
        if isinstance(event, CacheCleared) and event.guarded is False:
            what = "the kernel cache is cleared at each start: every module is built again"
            yield _finding(event.span, f"{what}; leave it, or make it a switch", None, trace)
        elif isinstance(event, ConfigSet) and event.guarded is False and not _is_put_back(event, trace):
            if event.seq < last_load and (message := _told(event)) is not None:
                yield _finding(event.span, message, event.option, trace)
        elif isinstance(event, KernelDeclared) and event.kernel.key in used:
            yield from (_in_hash(event.kernel, made, "", trace) for made in event.varying)
        elif isinstance(event, ModuleLoaded):
            here = (each for each in event.varying if each.kernel in used)
            yield from (_in_hash(used[each.kernel], each.made, each.named_as, trace) for each in here)


def _in_hash(kernel: Kernel, made: Span, named_as: str, trace: Trace) -> Finding:
    if named_as:
        what = f"`{named_as}` goes into the hash of `{kernel.name}`, which has a variable of that name"
        cure = "; call it something else"
    else:
        what, cure = f"this value goes into the hash of `{kernel.name}`", ""
    message = f"{what}, and is another one in each process: the module is built at each start{cure}"
    return _finding(made, message, None, trace, kernel.span)


def _told(event: ConfigSet) -> str | None:
    if event.option == "cache_kernels" and event.value is False:
        return "`cache_kernels = False`: every module is built at each start"
    if event.option == "kernel_cache_dir" and event.varying:
        return "the cache folder is a new one in each process: every module is built at each start; take a fixed one"
    if event.option == "verify_autograd_array_access" and event.value is True:
        return (
            "the array-access tracker is left on: with it, modules are built at each start and not taken from the cache"
        )
    return None


def _is_put_back(event: ConfigSet, trace: Trace) -> bool:
    later = (each for each in trace.events if isinstance(each, ConfigSet) and each.option == event.option)
    return any(each.seq > event.seq and each.value != event.value for each in later)


def _finding(span: Span, message: str, option: str | None, trace: Trace, kernel: Span | None = None) -> Finding:
    return wording.finding(
        RULE, Severity.WARNING, span, message, (), trace.source, Anchor(kernel=kernel, option=option)
    )


RULE = Rule(
    code="NVW306",
    name="cache-defeated",
    summary="what keeps a program from finding its modules in the kernel cache when it starts again",
    group=Group.BUILD,
    severity=Severity.WARNING,
    experiment=Experiment.BUILD_COUNT,
    since="0.1.0",
    detect=detect,
    harm=BuildHarm.SECOND_RUN,
)

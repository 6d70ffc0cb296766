"""# backward-disabled (NVW114)

## What it does

Finds recorded launches on the way from a leaf to the loss whose kernel was compiled without backward code:
`@wp.kernel(enable_backward=False)`, `wp.set_module_options({"enable_backward": False})`, or
`wp.config.enable_backward = False` when the kernel's module was created.

## Why is this bad

The backward pass skips the launch: the gradient of everything before it is zero, or lacks this branch. Warp prints a
warning at run time for any such launch on a tape, also where it does no harm.

## Example

```python
@wp.kernel(enable_backward=False)                                # NVW114
def error(y: wp.array(dtype=float), loss: wp.array(dtype=float)):
    wp.atomic_add(loss, 0, y[wp.tid()] * y[wp.tid()])
```

## Use instead

Leave backward code on for kernels between a leaf and the loss.

## How it is verified

The program runs; where finite differences see an influence that the gradient lacks, and nothing else explains it, the
finding is confirmed.

## Limits

Kernels off the path (diagnostics, data generation) are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Severity, Span
from warplint.proof import Experiment, TapeClaim
from warplint.rule import Context, Group, Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.events import ConfigSet, Event, Kernel, KernelDeclared, Launch, ModuleOptionsSet
from warplint.trace.flow.breaks import Break, BrokenLink
from warplint_rules import broken_chain, wording

OPTION = "enable_backward"


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each decorator or option."""
    return broken_chain.findings(RULE, Break.NO_BACKWARD, context.dataflow, _message, _place)


def _place(link: BrokenLink, flow: Dataflow) -> Span:
    kernel = _kernel(link)
    switch = _switch(kernel, link.event, flow)
    return switch.span if switch is not None else kernel.decorator


def _kernel(link: BrokenLink) -> Kernel:
    assert isinstance(link.event, Launch)
    assert link.event.kernel is not None
    return link.event.kernel


def _switch(kernel: Kernel, launch: Event, flow: Dataflow) -> Event | None:
    """The option that switches it off, where one of the kernel's module or of the program does."""
    found: Event | None = None
    for event in flow.trace.events:
        if event.seq > launch.seq:
            break
        if isinstance(event, ModuleOptionsSet) and event.module == kernel.module and OPTION in event.options:
            found = event if event.options[OPTION] is False else None
        elif isinstance(event, ConfigSet) and event.option == OPTION and not _is_declared(kernel, event, flow):
            found = event if event.value is False else None
    return found


def _is_declared(kernel: Kernel, before: Event, flow: Dataflow) -> bool:
    return any(
        isinstance(event, KernelDeclared) and event.kernel.module == kernel.module and event.seq < before.seq
        for event in flow.trace.events
    )


def _message(link: BrokenLink, flow: Dataflow) -> str:
    return (
        f"`{_kernel(link).name}` has no backward code, but it makes {wording.array_name(link.dest, flow)} from "
        f"{broken_chain.sources_of(link, flow)} on the way to the loss: the gradient of "
        f"{broken_chain.leaves_of(link, flow)} stops here"
    )


RULE = Rule(
    code="NVW114",
    name="backward-disabled",
    summary="a kernel between a leaf and the loss is compiled without backward code",
    group=Group.TAPE,
    severity=Severity.WARNING,
    experiment=Experiment.FINITE_DIFFERENCE,
    since="0.1.0",
    detect=detect,
    claim=TapeClaim.BROKEN_CHAIN,
    repairs=frozenset(),
)

"""# late-module-options (NVW302)

## What it does

Finds options of a module that are set where they cost a build or reach nothing:

- after the module was loaded: it is generated and compiled a second time;
- in a file that has neither kernels nor functions: the options go to that file's own, empty module;
- for kernels with `module="unique"`: these are modules of their own, which `wp.set_module_options` does not reach;
- by a write to `wp.get_module(name).options` after the module was loaded: nothing is built again, nothing changes.

## Why is this bad

Warp says nothing. Either the program compiles everything twice, or it runs without the option that was asked for.

## Example

```python
wp.launch(step, dim=n, inputs=[x])
wp.set_module_options({"fast_math": True})           # NVW302: the module is built a second time
wp.launch(step, dim=n, inputs=[x])
```

## Use instead

Set the options before the first launch, in the file of the kernels or with `module=`; give them to a unique kernel in
its decorator:

```python
@wp.kernel(module="unique", enable_backward=False, module_options={"fast_math": True})
def step(x: wp.array(dtype=float)): ...
```

## How it is verified

The program runs in an empty kernel cache: the module is built more than once in one run, or it is built with another
value than the one that was asked for.

## Limits

Silent: options that keep their value, `block_dim` (no build on the CPU), values that are not known, modules that are
not used afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from warplint.finding import Anchor, Finding, Label, Role, Severity
from warplint.proof import BuildHarm, Experiment
from warplint.rule import Context, Group, Rule
from warplint.trace.events import Kernel, KernelDeclared, Launch, ModuleOptionsSet, Trace
from warplint.trace.flow.module_lives import module_lives, rebuilds
from warplint_rules import wording


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each call or write."""
    trace = context.trace
    found: list[Finding] = []
    for event in trace.events:
        if isinstance(event, ModuleOptionsSet) and event.changes:
            found += _first(
                _rebuilding(event, trace), _ignored(event, trace), _homeless(event, trace), _missing(event, trace)
            )
    return wording.strongest(found)


def _first(*candidates: Iterator[Finding]) -> list[Finding]:
    return next(([finding] for each in candidates for finding in each), [])


def _rebuilding(event: ModuleOptionsSet, trace: Trace) -> Iterator[Finding]:
    """The module was loaded before, and the next load builds it again for these options."""
    for rebuild in rebuilds(trace):
        between = rebuild.before.seq < event.seq < rebuild.load.seq
        causes = rebuild.load.changed_options & (event.changes or frozenset())
        if rebuild.load.module == event.module and between and causes and not event.direct:
            labels = [
                *wording.label(rebuild.before.span, Role.LAUNCH, "the module is built here"),
                *wording.label(rebuild.load.span, Role.LAUNCH, "and again here"),
            ]
            what = "this changes the options of a module that is loaded: the next launch builds all of it again"
            yield _finding(event, sorted(causes), f"{what}; set them before the first launch", labels, trace)


def _ignored(event: ModuleOptionsSet, trace: Trace) -> Iterator[Finding]:
    """A write into the options of a loaded module changes nothing until something else does."""
    life = next((life for life in module_lives(trace) if life.name == event.module), None)
    load = life.first_load if life is not None and event.direct else None
    if life is None or load is None or load.seq > event.seq:
        return
    if life.is_used_after(event.seq) and not life.is_changed_after(event.seq):
        labels = wording.label(load.span, Role.LAUNCH, "the module is loaded here")
        what = "a write into the options of a module that is loaded changes nothing; set them before the first launch"
        yield _finding(event, sorted(event.changes or ()), what, labels, trace)


def _homeless(event: ModuleOptionsSet, trace: Trace) -> Iterator[Finding]:
    """The file of the call has nothing that its options could apply to."""
    elsewhere = [
        each.kernel
        for each in trace.events
        if isinstance(each, Launch) and each.kernel and each.kernel.module != event.module
    ]
    if event.own_file and event.holds_kernels is False and elsewhere:
        labels = wording.label(elsewhere[0].span, Role.KERNEL, "this kernel does not get them")
        what = "this file has no kernels, so that its module's options reach nothing"
        yield _finding(
            event, sorted(event.changes or ()), f"{what}; name the module: `module=`", labels, trace, elsewhere[0]
        )


def _missing(event: ModuleOptionsSet, trace: Trace) -> Iterator[Finding]:
    """Kernels of the same file with modules of their own, which run without what was asked for."""
    if not event.own_file:
        return
    unreached = list(dict.fromkeys(kernel for kernel in _unique_kernels(event, trace) if _lacks(kernel, event)))
    if unreached:
        names = wording.listing(f"`{kernel.name}`" for kernel in unreached)
        labels = [
            label for kernel in unreached for label in wording.label(kernel.decorator, Role.KERNEL, "not reached")
        ]
        what = f'these options do not reach {names}: `module="unique"` is a module of its own'
        yield _finding(
            event, sorted(event.changes or ()), f"{what}; set them in the decorator", labels, trace, unreached[0]
        )


def _unique_kernels(event: ModuleOptionsSet, trace: Trace) -> Iterator[Kernel]:
    launched = {each.kernel.span for each in trace.events if isinstance(each, Launch) and each.kernel is not None}
    declared = (each.kernel for each in trace.events if isinstance(each, KernelDeclared))
    for kernel in declared:
        if kernel.unique and kernel.span.path == event.span.path and kernel.span in launched:
            yield kernel


def _lacks(kernel: Kernel, event: ModuleOptionsSet) -> bool:
    """Whether an option that the call changes has another value in the kernel's own module."""
    own = {**(kernel.module_options or {}), "enable_backward": kernel.enable_backward}
    asked = {name: event.options[name] for name in event.changes or ()}
    return any((own.get(name) or False) != value for name, value in asked.items() if value is not None)


def _finding(
    event: ModuleOptionsSet,
    options: Sequence[str],
    message: str,
    labels: Sequence[Label],
    trace: Trace,
    kernel: Kernel | None = None,
) -> Finding:
    return wording.finding(
        RULE,
        Severity.WARNING,
        event.span,
        message,
        labels,
        trace.source,
        Anchor(
            kernel=kernel.span if kernel is not None else None,
            module=event.module if kernel is None else kernel.module,
            option=options[0] if options else None,
        ),
    )


RULE = Rule(
    code="NVW302",
    name="late-module-options",
    summary="options of a module set after it was loaded, or where they reach no kernel",
    group=Group.BUILD,
    severity=Severity.WARNING,
    experiment=Experiment.BUILD_COUNT,
    since="0.1.0",
    detect=detect,
    harm=BuildHarm.OPTION_UNHEARD,
)

"""# unique-stable-kernel (NVW303)

## What it does

Finds `module="unique"` on kernels that are declared once and never change, where at least one other such kernel of the
same file could share their module.

## Why is this bad

Each unique module is generated, compiled, loaded and cached on its own: n kernels cost n builds instead of one, and
`wp.set_module_options` does not reach any of them.

## Example

```python
@wp.kernel(module="unique")                   # NVW303
def splat(x: wp.array(dtype=float)): ...

@wp.kernel(module="unique")                   # NVW303
def gather(x: wp.array(dtype=float)): ...
```

## Use instead

Plain `@wp.kernel`. Keep `module="unique"` for kernels that differ from call to call, so that a new one does not make
the stable ones build again:

```python
@functools.lru_cache
def make_power(n):
    @wp.kernel(module="unique")
    def power(a: wp.array(dtype=float)): ...
    return power
```

## How it is verified

The program runs twice in isolated kernel caches, once as it is and once with the unique kernels in their file's module;
the builds are counted.

## Fix

`--fix` removes `module="unique"`: what a kernel computes and the options it is built with stay the same. Where the
decorator has a name (`alone = wp.kernel(module="unique")`), other functions under it change as well, so that this takes
`--unsafe-fixes`.

## Limits

Silent: generic kernels, kernels that capture values of a function around them, kernels from factories, and kernels
whose options differ from each other. Whether two kernels are *meant* to be built apart (one slow and stable, one edited
all day) cannot be seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from warplint.finding import Anchor, Applicability, Experiment, Finding, Fix, KeywordChange, Role, Severity
from warplint.rule import Context, Group, Rule
from warplint.trace.events import Kernel, KernelDeclared, Trace
from warplint.trace.module_lives import module_lives, options_of
from warplint_rules import wording


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each unique kernel of the file that has company; what it imports speaks for itself."""
    stable = list(_stable_kernels(context.trace))
    modules = {life.name: options_of(life) for life in module_lives(context.trace)}
    found = []
    for kernel in stable:
        company = [other for other in stable if other is not kernel and _could_share(kernel, other, modules)]
        if kernel.unique and company and kernel.span.path == context.trace.path:
            found.append(_finding(kernel, company, context.trace))
    return wording.strongest(found)


def _stable_kernels(trace: Trace) -> Iterator[Kernel]:
    seen = set()
    for event in trace.events:
        if isinstance(event, KernelDeclared) and event.kernel.span not in seen:
            seen.add(event.kernel.span)
            if event.kernel.stable is True and not event.kernel.generic and not event.kernel.captures:
                yield event.kernel


def _could_share(kernel: Kernel, other: Kernel, modules: Mapping[str, Mapping[str, object]]) -> bool:
    """Same file, and what decides about the generated code is equal."""
    if kernel.span.path != other.span.path:
        return False
    return _options(kernel, modules) == _options(other, modules)


def _options(kernel: Kernel, modules: Mapping[str, Mapping[str, object]]) -> Mapping[str, object]:
    """What the kernel's module is built with; `wp.set_module_options` reaches only the file's own module."""
    set_later = {} if kernel.unique else modules.get(kernel.module, {})
    own = {"enable_backward": kernel.enable_backward, "max_unroll": kernel.max_unroll}
    return {**(kernel.module_options or {}), **set_later, **own}


def _finding(kernel: Kernel, company: list[Kernel], trace: Trace) -> Finding:
    names = wording.listing(f"`{other.name}`" for other in company[:3])
    more = f" and {len(company) - 3} more" if len(company) > 3 else ""
    found = wording.finding(
        RULE,
        Severity.WARNING,
        kernel.decorator,
        f'`{kernel.name}` never changes, yet `module="unique"` gives it a module and a build of its own; it could '
        f"share one with {names}{more}",
        [label for other in company for label in wording.label(other.decorator, Role.KERNEL, f"`{other.name}`")],
        trace.source,
        Anchor(kernel=kernel.span, module=kernel.module),
    )
    change = KeywordChange(kernel.decorator, "module", None)
    return replace(found, fix=Fix(Applicability.SAFE, 'remove `module="unique"`', changes=(change,)))


RULE = Rule(
    code="NVW303",
    name="unique-stable-kernel",
    summary='`module="unique"` on kernels that never change: a build for each',
    group=Group.BUILD,
    severity=Severity.WARNING,
    experiment=Experiment.BUILD_COUNT,
    since="0.1.0",
    detect=detect,
)

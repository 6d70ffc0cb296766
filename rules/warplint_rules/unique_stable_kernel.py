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
the builds are counted. Where there is no fix, modules of these kernels are counted that were built with equal options
for the same device and block size.

## Fix

`--fix` removes `module="unique"`: what a kernel computes and the options it is built with stay the same. It takes
`--unsafe-fixes` where the file sets options for its own module, which would then hold for the kernel too, and where the
decorator has a name (`alone = wp.kernel(module="unique")`), under which other functions change as well. There is no fix
where the kernel cannot go into its file's module, because it has `module_options` of its own, or because that module is
built for another block size: such kernels share a module under a name that they are given, `module="grid"`.

## Limits

Silent: generic kernels, kernels that capture values of a function around them, kernels from functions that are called
more than once or whose results are cached, kernels made after the other one was loaded, kernels whose options or block
sizes differ from each other, and files that lie neither beside the entry file nor below it. Information only: where no
run of the file launches both kernels, since one that is seldom launched is better off alone. Whether two kernels are
*meant* to be built apart (one slow and stable, one edited all day) cannot be seen.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace

from warplint.finding import Anchor, Applicability, Finding, Fix, KeywordChange, Role, Severity, Span
from warplint.proof import Experiment
from warplint.rule import Context, Group, Rule
from warplint.trace.events import Kernel, KernelDeclared, Launch, ModuleOptionsSet, Trace
from warplint.trace.flow.module_lives import ModuleLife, module_lives, options_of, stable_kernels
from warplint_rules import wording


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each unique kernel that has company; the packages that a program uses speak for themselves."""
    trace = context.trace
    stable = [event for event in stable_kernels(trace) if not event.kernel.generic]
    lives = {life.name: life for life in module_lives(trace)}
    modules = {name: options_of(life) for name, life in lives.items()}
    blocks = _block_sizes(trace)
    found = []
    for event in stable:
        if event.kernel.unique and _is_near(event.kernel.span.path, trace.path):
            company = [
                other.kernel
                for other in stable
                if other is not event
                and _could_share(event.kernel, other.kernel, modules)
                and _in_time(event, other, lives)
                and _fit(blocks.get(event.kernel.span), blocks.get(other.kernel.span))
            ]
            used = [kernel for kernel in company if kernel.span in blocks]
            if company:
                built = event.kernel.span in blocks and bool(used)
                home = _home(event.kernel, blocks, trace)
                found.append(_finding(event.kernel, used if built else company, built, home, trace))
    return wording.strongest(found)


def _block_sizes(trace: Trace) -> Mapping[Span, set[int]]:
    """The known block sizes of the kernels that are launched."""
    sizes: dict[Span, set[int]] = {}
    for event in trace.events:
        if isinstance(event, Launch) and event.kernel is not None:
            known = sizes.setdefault(event.kernel.span, set())
            known.update([] if event.block_dim is None else [event.block_dim])
    return sizes


def _fit(one: set[int] | None, other: set[int] | None) -> bool:
    """Whether kernels of these block sizes can share a module: on CUDA that is built once for each size."""
    return not one or not other or one == other


def _is_near(path: str, entry: str) -> bool:
    """Whether a file lies beside the entry file, or in a folder there."""
    folder = os.path.dirname(os.path.abspath(entry))
    return os.path.abspath(path).startswith(os.path.join(folder, ""))


def _in_time(one: KernelDeclared, other: KernelDeclared, lives: Mapping[str, ModuleLife]) -> bool:
    """Whether both are declared before either is loaded: else the module that they share is built twice as well."""
    loads = [lives[event.kernel.module].first_load for event in (one, other) if event.kernel.module in lives]
    return all(load is None or max(one.seq, other.seq) < load.seq for load in loads)


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


def _home(kernel: Kernel, blocks: Mapping[Span, set[int]], trace: Trace) -> Applicability | None:
    """How safely the kernel can go into its file's own module; None where only a named module of their own will do.

    The decorator takes ``module_options`` with ``module="unique"`` alone. A file's module that is not built for the
    kernel's block size yet would be built once more for it, with all that it holds. Options that the file sets for its
    module would then hold for the kernel too.
    """
    path = kernel.span.path
    declared = {event.kernel.span for event in trace.events if isinstance(event, KernelDeclared) and _is_plain(event)}
    own = [blocks.get(span) or _USUAL_BLOCKS for span in declared if span.path == path]
    if kernel.has_own_options or (own and not blocks.get(kernel.span, set()) <= set().union(*own)):
        return None
    sets_options = any(
        isinstance(event, ModuleOptionsSet) and event.own_file and event.span.path == path for event in trace.events
    )
    return Applicability.UNSAFE if sets_options else Applicability.SAFE


_USUAL_BLOCKS = frozenset({1, 256})
"""The threads of a block where nobody says: on the CPU, on CUDA."""


def _is_plain(event: KernelDeclared) -> bool:
    return not event.kernel.unique


def _finding(
    kernel: Kernel, company: list[Kernel], is_built: bool, home: Applicability | None, trace: Trace
) -> Finding:
    names = wording.listing(f"`{other.name}`" for other in company[:3])
    more = f" and {len(company) - 3} more" if len(company) > 3 else ""
    found = wording.finding(
        RULE,
        Severity.WARNING if is_built else Severity.INFO,
        kernel.decorator,
        f'`{kernel.name}` never changes, yet `module="unique"` gives it a module and a build of its own; it could '
        f"share one with {names}{more}{'' if home is not None else _BY_NAME}",
        [label for other in company for label in wording.label(other.decorator, Role.KERNEL, f"`{other.name}`")],
        trace.source,
        Anchor(kernel=kernel.span, module=kernel.module),
    )
    change = KeywordChange(kernel.decorator, "module", None)
    if home is None:
        return found
    return replace(found, fix=Fix(home, 'remove `module="unique"`', changes=(change,)))


_BY_NAME = ', under a name that both are given (`module="…"`)'


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

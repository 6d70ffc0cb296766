"""# block-dim-variants (NVW309)

## What it does

Finds modules whose kernels are launched at several block sizes.

## Why is this bad

The block size is compiled in: on CUDA a module is generated and compiled once more, with all of its kernels, for each
`block_dim` that any of them is launched with. (Two builds for two sizes: compiled ahead of time for `sm_90`, Warp 1.19,
without a GPU.) On the CPU there is one build, unless `wp.config.enable_cpu_blocks` is on.

## Example

```python
wp.launch(step, dim=n, inputs=[x])                    # 256 threads
wp.launch_tiled(reduce, dim=[m], inputs=[x], block_dim=64)   # NVW309: all of the module once more, for 64
```

## Use instead

One block size for the kernels of a module, or a module of its own for the kernels that need another one:

```python
@wp.kernel(module="tiles")
def reduce(x: wp.array(dtype=float)): ...
```

## How it is verified

The program runs in an empty kernel cache, and the builds of the module are counted: one for each block size. On the
CPU that shows with `enable_cpu_blocks` alone; otherwise it takes a GPU.

## Limits

Information only, unless the program names a CUDA device or turns `enable_cpu_blocks` on. Silent: launches that name the
CPU, block sizes that are not known.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Anchor, Finding, Role, Severity
from warplint.proof import BuildHarm, Experiment
from warplint.rule import Context, Group, Rule
from warplint.trace.events import ConfigSet, Launch, Trace
from warplint_rules import wording


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each module and block size after the first one, at the first launch with it."""
    trace = context.trace
    first: dict[str, dict[int, Launch]] = {}
    found = []
    on_blocks = False
    for event in trace.events:
        if isinstance(event, ConfigSet) and event.option == "enable_cpu_blocks":
            on_blocks = event.value is True
        elif isinstance(event, Launch) and event.kernel is not None and event.block_dim is not None:
            if event.device == "cpu" and not on_blocks:
                continue
            known = first.setdefault(event.kernel.module, {})
            if known and event.block_dim not in known:
                harmful = trace.names_cuda or on_blocks
                found.append(_finding(event, known, Severity.WARNING if harmful else Severity.INFO, trace))
            known.setdefault(event.block_dim, event)
    return wording.strongest(found)


def _finding(launch: Launch, before: dict[int, Launch], severity: Severity, trace: Trace) -> Finding:
    assert launch.kernel is not None
    sizes = wording.listing(str(size) for size in before)
    name = wording.operation_name(launch)
    return wording.finding(
        RULE,
        severity,
        launch.span,
        f"{name} is launched with blocks of {launch.block_dim} threads, other kernels of its module with {sizes}: on "
        "CUDA all of the module is built again for each block size (not to be seen on a CPU)",
        [
            *(
                label
                for size, other in before.items()
                for label in wording.label(other.span, Role.LAUNCH, f"{wording.operation_name(other)}: {size} threads")
            ),
            *wording.label(launch.kernel.decorator, Role.KERNEL, name),
        ],
        trace.source,
        Anchor(kernel=launch.kernel.span, write=launch.span, module=launch.kernel.module),
    )


RULE = Rule(
    code="NVW309",
    name="block-dim-variants",
    summary="one module launched at several block sizes: on CUDA a build for each",
    group=Group.BUILD,
    severity=Severity.WARNING,
    experiment=Experiment.BUILD_COUNT,
    since="0.1.0",
    detect=detect,
    harm=BuildHarm.BLOCK_SIZES,
)

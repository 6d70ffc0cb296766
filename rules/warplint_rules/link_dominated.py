"""# link-dominated (NVW314)

## What it does

Tells, of a run on CUDA, where most of a module's build is the linking of tile operations (`wp.tile_matmul`,
`wp.tile_fft`, `wp.tile_cholesky` …) and not the compiler. It speaks from a run alone.

## Why is this bad

For each tile operation, shape, type and block size MathDx makes a link-time artifact, one more for each adjoint. A
kernel with one `tile_matmul` of 16 x 16 took 80 s for `sm_90`, a plain kernel 2.4 s (compiled ahead of time, Warp 1.19,
without a GPU).

## Example

```python
@wp.kernel
def gemm(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), c: wp.array2d(dtype=float)):
    ...
    wp.tile_matmul(x, y, total)                      # three artifacts: the product and its two adjoints
```

## Use instead

Fewer shapes and block sizes; `enable_backward=False` where no adjoint is run; for small tiles, no library at all:

```python
wp.set_module_options({"enable_mathdx_gemm": False})
```

## How it is verified

By the run that it speaks of: the time that artifacts took, against that of the whole build.

## Limits

Only modules that were built in the run, on a CUDA device; a warm kernel cache shows nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Anchor, Finding, Severity, Source
from warplint.proof import BuildHarm, Experiment
from warplint.rule import Context, Group, Rule
from warplint.trace.events import ModuleLoaded, Trace
from warplint_rules import wording

SHARE = 0.5
"""Of the build's time."""


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each module whose links outweigh its compiler."""
    loads = (event for event in context.trace.events if isinstance(event, ModuleLoaded))
    return wording.strongest([_finding(event, context.trace) for event in loads if _is_dominated(event)])


def _is_dominated(event: ModuleLoaded) -> bool:
    if not event.compiled or not (event.device or "").startswith("cuda"):
        return False
    links, whole = event.link_milliseconds or 0.0, event.milliseconds or 0.0
    return links > SHARE * whole > 0.0


def _finding(event: ModuleLoaded, trace: Trace) -> Finding:
    links, whole = (event.link_milliseconds or 0.0) / 1000.0, (event.milliseconds or 0.0) / 1000.0
    return wording.finding(
        RULE,
        Severity.WARNING,
        event.span,
        f"linking tile operations took {links:.1f} s of the {whole:.1f} s that building module `{event.module}` took; "
        "fewer tile shapes and block sizes, no adjoint where none is run, or `enable_mathdx_gemm` off for small tiles",
        (),
        trace.source,
        Anchor(module=event.module, write=event.span),
    )


RULE = Rule(
    code="NVW314",
    name="link-dominated",
    summary="(of a run on CUDA) linking tile operations takes longer than compiling the module",
    group=Group.BUILD,
    severity=Severity.WARNING,
    experiment=Experiment.BUILD_COUNT,
    since="0.1.0",
    detect=detect,
    source=Source.RUNTIME,
    harm=BuildHarm.LINKS,
)

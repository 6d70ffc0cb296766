"""# alias-overwrite (NVW106)

## What it does

Finds writes that reach a needed value under another name: a launch that writes a slice, a `reshape()` or `flatten()` of
an array that was read on the tape, an array made with `wp.array(ptr=...)`, and host code that writes into a numpy array
that shares its memory (`copy=False`, `.numpy()` on the CPU). Finds as well what is computed under one name and read on
towards the loss under a pointer alias, which shares the data and not the gradient.

## Why is this bad

The backward pass reads the memory, whatever it is called. Nothing on the tape says that the two names mean the same,
and a store to a numpy view involves no call of Warp at all. An alias made from a pointer has a gradient buffer of its
own, or none: what arrives there never gets to the array that the data were computed in.

## Example

```python
data = wp.array(store, dtype=float, copy=False)
with wp.Tape() as tape:
    wp.launch(weighted, dim=n, inputs=[w, data], outputs=[loss])
    store[:] = following                                          # NVW106: `data` changes
    wp.launch(weighted, dim=n, inputs=[w, data], outputs=[loss])
```

## Use instead

A copy for each use (`wp.array(store, dtype=float)`), or one row of a larger array for each. An alias that is to pass
gradient on: a view of the array, or `wp.array(ptr=x.ptr, grad=x.grad, ...)`.

## How it is verified

The program runs; its gradient is compared with finite differences; the backward pass is then repeated with each
operation's inputs put back to what they were. If that makes the gradient right, the memory and the writer are named. A
chain that an alias cuts is confirmed where the gradient is wrong and no repair of the backward pass explains it.

## Limits

A warning only where the two ranges are known to overlap: rows of a trajectory that are written one after the other are
right. Aliases made by code outside the project are not seen.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Severity, Span
from warplint.proof import Experiment, TapeClaim
from warplint.rule import Context, Group, Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.flow.breaks import Break, BrokenLink
from warplint.trace.flow.overwrites import Overwrite
from warplint_rules import broken_chain, destroyed, wording
from warplint_rules.destroyed import Fault, Told

TOLD = Told(
    "is overwritten under another name", "are overwritten under other names", "give the two names memory of their own"
)


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each overwriting statement, and for each launch that reads on under an alias."""
    flow = context.dataflow
    return (
        *destroyed.findings(RULE, Fault.ALIAS, flow, TOLD, _place),
        *broken_chain.findings(RULE, Break.ALIAS, flow, _cut, _reading),
        *(destroyed.stale(RULE, fill, flow) for fill in flow.stale_fills if fill.is_through_view),
    )


def _reading(link: BrokenLink, flow: Dataflow) -> Span:
    return link.event.span


def _cut(link: BrokenLink, flow: Dataflow) -> str:
    names = broken_chain.sources_of(link, flow)
    return (
        f"{wording.operation_name(link.event)} reads {names} under another name, by pointer, which shares the data and "
        f"not the gradient: that of {broken_chain.leaves_of(link, flow)} stops here; use a view, or give the alias "
        "`grad=`"
    )


def _place(overwrite: Overwrite) -> Span:
    return overwrite.write.event.span


RULE = Rule(
    code="NVW106",
    name="alias-overwrite",
    summary="a write through a slice, a pointer or a numpy view destroys what an adjoint needs",
    group=Group.TAPE,
    severity=Severity.WARNING,
    experiment=Experiment.FINITE_DIFFERENCE,
    since="0.1.0",
    detect=detect,
    claim=TapeClaim.PARTED_ALIAS,
)

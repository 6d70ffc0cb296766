"""# alias-overwrite (NVW106)

## What it does

Finds writes that reach a needed value under another name: a launch that writes a slice, a `reshape()` or `flatten()` of
an array that was read on the tape, an array made with `wp.array(ptr=...)`, and host code that writes into a numpy array
that shares its memory (`copy=False`, `.numpy()` on the CPU).

## Why is this bad

The backward pass reads the memory, whatever it is called. Nothing on the tape says that the two names mean the same,
and a store to a numpy view involves no call of Warp at all.

## Example

```python
data = wp.array(store, dtype=float, copy=False)
with wp.Tape() as tape:
    wp.launch(weighted, dim=n, inputs=[w, data], outputs=[loss])
    store[:] = following                                          # NVW106: `data` changes
    wp.launch(weighted, dim=n, inputs=[w, data], outputs=[loss])
```

## Use instead

A copy for each use (`wp.array(store, dtype=float)`), or one row of a larger array for each.

## How it is verified

The program runs; its gradient is compared with finite differences; the backward pass is then repeated with each
operation's inputs put back to what they were. If that makes the gradient right, the memory and the writer are named.

## Limits

A warning only where the two ranges are known to overlap: rows of a trajectory that are written one after the other are
right. Aliases made by code outside the project are not seen.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Experiment, Finding, Severity, Span
from warplint.rule import Context, Group, Rule
from warplint.trace.overwrites import Overwrite
from warplint_rules import destroyed
from warplint_rules.destroyed import Fault, Told

TOLD = Told(
    "is overwritten under another name", "are overwritten under other names", "give the two names memory of their own"
)


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each overwriting statement."""
    return destroyed.findings(RULE, Fault.ALIAS, context.dataflow, TOLD, _place)


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
)

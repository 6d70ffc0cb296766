"""# overwrite-inplace (NVW104)

## What it does

Finds kernels that store to an array element whose old value an adjoint needs: `y[i] = sin(y[i])`, an array that is both
input and output of one launch, an element that is read and then overwritten in the same kernel, and a later launch that
adds (`+=`, `atomic_add`) onto an array that was read non-linearly before. Also kernels whose threads read the elements
of their neighbours and overwrite their own (Gauss-Seidel: `y[i] = 0.5 * y[i] + 0.25 * y[i + 1]`).

## Why is this bad

The adjoint of `y[i] = sin(y[i])` multiplies by `cos(y[i])`, and reads `y[i]` from memory when `backward()` runs: it
finds the sine in place of the angle. In a loop of launches each step is differentiated at a state that is not its own.

Where neighbours are read, a thread gets the old or the new value, as the order of the threads will have it. The adjoint
runs the threads in that order once more, not backwards, so that gradient goes astray even if everything is linear.

## Example

```python
@wp.kernel
def glide(v: wp.array(dtype=float), c: wp.array(dtype=float)):
    i = wp.tid()
    v[i] = v[i] / (1.0 + c[0] * v[i])          # NVW104
```

## Use instead

Read from one array, write to another:

```python
    v_out[i] = v[i] / (1.0 + c[0] * v[i])
```

## How it is verified

The program runs; its gradient is compared with finite differences; the backward pass is then repeated with each
operation's inputs put back to what they were. If that makes the gradient right, the array and the launch are named.
Where neighbours are read, that does not help: there the adjoint of the launch alone is compared with finite
differences of that one launch.

## Limits

A warning only where gradient is known to flow and the adjoint needs the value: `y[i] = y[i] + c`, `y[i] += z[i] * z[i]`
and scaling by constants are right and stay silent. Elements are told apart by index text. A neighbour is an index that
is the thread's own one moved by at most four places (`y[i - 1]`, `y[(i + 1) % n]`, `y[wp.max(i - 1, 0)]`); what threads
do to `y[j]` for other `j` is information only, and so are stores under a condition that may keep readers and writers
apart (`if i % 2 == 0`). `y[i] *= z[i]` is NVW201.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Severity, Span
from warplint.proof import Experiment, TapeClaim
from warplint.rule import Context, Group, Rule
from warplint.trace.flow.overwrites import Overwrite
from warplint_rules import destroyed, neighbours
from warplint_rules.destroyed import Fault, Told

TOLD = Told("is overwritten in place", "are overwritten in place", "write the result to another array")


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each storing statement."""
    flow = context.dataflow
    overwritten = destroyed.findings(RULE, Fault.IN_PLACE, flow, TOLD, _place)
    return neighbours.merged((*overwritten, *neighbours.findings(RULE, context, TOLD.instead, neighbours.is_parameter)))


def _place(overwrite: Overwrite) -> Span:
    """The store in the kernel."""
    store = overwrite.write.store
    return store.span if store is not None else overwrite.write.event.span


RULE = Rule(
    code="NVW104",
    name="overwrite-inplace",
    summary="a kernel overwrites an array element whose old value an adjoint needs",
    group=Group.TAPE,
    severity=Severity.WARNING,
    experiment=Experiment.FINITE_DIFFERENCE,
    since="0.1.0",
    detect=detect,
    claim=TapeClaim.WITHIN_LAUNCH,
)

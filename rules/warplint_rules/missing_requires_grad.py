"""# missing-requires-grad (NVW110)

## What it does

Finds arrays without a gradient in the middle of a differentiated chain: a recorded launch writes data into them that
carries gradient, and something reads them on towards the loss, but they were made without `requires_grad=True`
(`wp.zeros`, `empty`, `full`, `ones`, `array`, `from_numpy`, or `zeros_like` and `clone` of an array without one).

## Why is this bad

An array without `requires_grad` has no `.grad`, so the adjoint has nowhere to put what arrives for it: the gradient of
everything before it is silently zero, or lacks that branch.

## Example

```python
x = wp.array(data, dtype=float, requires_grad=True)
y = wp.zeros(n, dtype=float)                              # NVW110
loss = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(layer, dim=n, inputs=[x], outputs=[y])
    wp.launch(error, dim=n, inputs=[y], outputs=[loss])
tape.backward(loss)                                       # x.grad is zero
```

## Use instead

```python
y = wp.zeros(n, dtype=float, requires_grad=True)          # or wp.zeros_like(x)
```

Setting `y.requires_grad = True` later is as good, as long as it happens before `backward()`.

## How it is verified

The program runs; its gradient is compared with finite differences; the backward pass is then repeated with a gradient
given to the arrays that lack one. If that makes the gradient right, the array is named.

## Fix

`--fix --unsafe-fixes` adds `requires_grad=True` to the allocation, or changes `requires_grad=False`. Unsafe, because it
changes what the program computes, as it should: gradients become other ones, and training goes another way; the array
takes twice the memory; its copies are recorded, too. Not where a helper makes arrays with and without gradient, nor
where the flag is given by position, through `*` or `**`, or by a name.

## Limits

Arrays that are only read (targets, masks, indices, constants), and results that nothing reads on towards the loss, are
left alone. Where the flag cannot be known (`requires_grad=flag`), nothing is said. Arrays from foreign code are left
alone too, and so is a loss without a gradient: Warp itself refuses that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from warplint.finding import Applicability, Finding, Fix, KeywordChange, Role, Severity
from warplint.proof import Experiment, Repair
from warplint.rule import Context, Group, Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.events import Frame, Memory
from warplint.trace.flow.gradients import FlagGap
from warplint_rules import wording

FLAG_POSITIONS = {
    "zeros": 3,
    "empty": 3,
    "ones": 3,
    "full": 4,
    "array": 12,
    "from_numpy": 4,
    "zeros_like": 2,
    "empty_like": 2,
    "ones_like": 2,
    "full_like": 3,
    "clone": 2,
}
"""Where each allocating call takes ``requires_grad`` by position (Warp 1.19)."""


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each allocating statement."""
    flow = context.dataflow
    gaps = [
        gap
        for gap in flow.flag_gaps
        if not gap.memory.outside and gap.memory.made_by != "numpy" and gap.memory.allocated
    ]
    return wording.strongest([_finding(gap, flow) for gap in gaps])


def _finding(gap: FlagGap, flow: Dataflow) -> Finding:
    name = wording.memory_name(gap.memory.id, flow)
    leaves = wording.listing(wording.memory_name(leaf, flow) for leaf in sorted(gap.leaves))
    writer = wording.operation_name(gap.writer.event)
    onward = f"{wording.operation_name(gap.reader.event)} reads it on" if gap.reader is not None else "it is read on"
    found = wording.finding(
        RULE,
        Severity.WARNING,
        _place(gap.memory, flow).span,
        f"{name} has no gradient ({_cause(gap.memory)}), but {writer} writes it from {leaves} "
        f"and {onward} towards the loss: the gradient of {leaves} stops here",
        [
            *wording.label(gap.writer.event.span, Role.WRITE, f"written here by {writer}"),
            *wording.label(gap.reader.event.span if gap.reader else None, Role.READ, f"here {onward} towards the loss"),
            *(
                label
                for leaf in sorted(gap.leaves)
                for label in wording.allocation_label(leaf, flow, "gradient wanted here")
            ),
            *wording.tape_labels(gap.recording),
        ],
        flow.trace.source,
        wording.anchor(
            flow, memory=gap.memory.id, write=gap.writer.event, read=gap.reader.event if gap.reader else None
        ),
    )
    return replace(found, fix=_fix(gap.memory, flow))


def _cause(memory: Memory) -> str:
    if memory.made_by == "map":
        return "`wp.map` gives none to the result of a `wp.func` that declares `-> float`; `-> wp.float32` keeps it"
    return f"`{memory.made_by}` without `requires_grad=True`"


def _fix(memory: Memory, flow: Dataflow) -> Fix | None:
    """The flag at the allocation, where that is also the place to repair."""
    call = memory.allocated[-1].span
    if memory.made_by not in FLAG_POSITIONS or _place(memory, flow).span != call:
        return None
    change = KeywordChange(call, "requires_grad", "True", FLAG_POSITIONS[memory.made_by])
    return Fix(Applicability.UNSAFE, "set `requires_grad=True`", changes=(change,))


def _place(memory: Memory, flow: Dataflow) -> Frame:
    """The allocating call, or the call of a helper that makes arrays with and without gradient."""
    for other in flow.trace.memories.values():
        if other.requires_grad and other.allocated and other.span == memory.span:
            return wording.parting(other.allocated, memory.allocated)
    return memory.allocated[-1]


RULE = Rule(
    code="NVW110",
    name="missing-requires-grad",
    summary="an array on the way from a leaf to the loss was made without `requires_grad=True`",
    group=Group.TAPE,
    severity=Severity.WARNING,
    experiment=Experiment.FINITE_DIFFERENCE,
    since="0.1.0",
    detect=detect,
    repairs=frozenset({Repair.GRADIENT}),
)

"""# ping-pong (NVW101)

## What it does

Finds buffers that take turns within one tape: `a, b = b, a`, `s[k % 2]` and `s[(k + 1) % 2]`, a rotated list or deque,
exchanged state objects, `states[0] = states[-1]` before the next frame, one scratch array for every step. A launch then
overwrites an array whose old value the backward pass still has to read.

## Why is this bad

Warp's tape stores *references* to arrays, no values. The adjoint of `b[i] = sin(a[i])` reads `a[i]` when `backward()`
runs, and finds what the last step left there. Nothing warns: the loss is right, the gradient is not.

## Example

```python
with wp.Tape() as tape:
    for _ in range(steps):
        wp.launch(advance, dim=n, inputs=[a], outputs=[b])   # b[i] = a[i] + dt * sin(a[i])
        a, b = b, a                                          # NVW101
```

## Use instead

One array for each step, allocated once, so that nothing is reused on the tape:

```python
states = [wp.zeros(n, dtype=float, requires_grad=True) for _ in range(steps + 1)]
with wp.Tape() as tape:
    for k in range(steps):
        wp.launch(advance, dim=n, inputs=[states[k]], outputs=[states[k + 1]])
```

Where the memory does not suffice, checkpoint: keep every m-th state and record m steps at a time.

## How it is verified

The program runs; its gradient is compared with finite differences; the backward pass is then repeated with each
operation's inputs put back to what they were. If that makes the gradient right, the overwritten array and the launch
that overwrote it are named.

## Limits

It is a warning only where the adjoint needs the old value *and* gradient is known to flow. A step that is linear in its
state with constant coefficients needs nothing and is right (from Warp 1.13 on; before, the adjoint of a store did not
consume the gradient, and every reuse is wrong). Elements are told apart by index text alone. Copies, fills, in-place
kernels and writes after the `with` block have rules of their own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from warplint.finding import Experiment, Finding, Role, Severity
from warplint.rule import Context, Group, Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.events import Frame
from warplint.trace.overwrites import Overwrite, Writer
from warplint_rules import wording

Overwrites = list[Overwrite]


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each way of taking turns, whatever the number of arrays and rounds."""
    flow = context.dataflow
    overwrites = [overwrite for overwrite in flow.overwrites if _takes_turns(overwrite)]
    return wording.strongest([_finding(group, flow) for group in _groups(overwrites)])


def _takes_turns(overwrite: Overwrite) -> bool:
    """A later launch replaces what was read, under the same name or the one that an exchange gave it.

    After an exchange it may read the array as well (a rotation of three levels).
    """
    if overwrite.moved is not None:
        return overwrite.writer in (Writer.LAUNCH, Writer.INPLACE_LAUNCH)
    return overwrite.writer is Writer.LAUNCH and not overwrite.through_alias


def _groups(overwrites: Overwrites) -> Iterator[Overwrites]:
    """Overwrites that share the launching statement or the exchange belong together."""
    groups: dict[Hashable, Overwrites] = {}
    for overwrite in overwrites:
        keys = _keys(overwrite)
        joined = [overwrite]
        for known in {id(groups[key]): groups[key] for key in keys if key in groups}.values():
            joined = known + joined
        for key in {key for member in joined for key in _keys(member)}:
            groups[key] = joined
    yield from {id(group): group for group in groups.values()}.values()


def _keys(overwrite: Overwrite) -> tuple[Hashable, ...]:
    moved = overwrite.moved
    statement = ("launch", overwrite.write.event.span)
    return (statement, ("moved", moved.stack[-1].span)) if moved is not None else (statement,)


def _finding(group: Overwrites, flow: Dataflow) -> Finding:
    established = [overwrite for overwrite in group if overwrite.established]
    shown = established or group
    first = min(shown, key=lambda overwrite: (overwrite.moved is None, overwrite.write.seq))
    return wording.finding(
        RULE,
        Severity.WARNING if established else Severity.INFO,
        _place(first).span,
        _message(first, shown, flow),
        [
            *wording.label(first.reader.event.span, Role.READ, _read_text(first, flow)),
            *wording.label(
                first.write.event.span,
                Role.WRITE,
                f"overwritten here by {wording.round_of(first.write.event, first.recording, flow)}",
            ),
            *(label for member in shown for label in wording.allocation_label(member.array.memory, flow)),
            *wording.tape_labels(first.recording),
        ],
        flow.trace.source,
        wording.anchor(flow, memory=first.array.memory, write=first.write.event, read=first.reader.event),
    )


def _place(overwrite: Overwrite) -> Frame:
    """The exchange; without one, the launch in the frame that could give it another buffer."""
    moved = overwrite.moved
    return (
        moved.stack[-1]
        if moved is not None
        else wording.parting(overwrite.reader.event.stack, overwrite.write.event.stack)
    )


def _message(first: Overwrite, shown: Overwrites, flow: Dataflow) -> str:
    arrays = wording.listing(wording.array_name(overwrite.array, flow) for overwrite in shown)
    reader = wording.operation_name(first.reader.event)
    if first.read is None:
        why = "before Warp 1.13 the second store's adjoint leaves the array's gradient, which is counted twice"
    else:
        why = f"the adjoint of {reader} needs it ({_need_text(first)})"
    reuse = "take turns" if " and " in arrays else "is reused"
    events = wording.sequence(first.write.event, first.reader.event, first.recording, flow)
    return f"{arrays} {reuse} on one tape: {events}, and {why}; keep one array per step"


def _need_text(overwrite: Overwrite) -> str:
    assert overwrite.read is not None
    need = overwrite.read.need
    return f"`{need.read.path}` in `{need.operation}`"


def _read_text(overwrite: Overwrite, flow: Dataflow) -> str:
    reader = wording.operation_name(overwrite.reader.event)
    name = wording.array_name(overwrite.array, flow)
    if overwrite.read is None:
        return f"{name} read here by {reader}"
    return f"{name} read here by {reader}, because its adjoint needs {_need_text(overwrite)}"


RULE = Rule(
    code="NVW101",
    name="ping-pong",
    summary="buffers reused in turn within one tape, although an adjoint needs their old values",
    group=Group.TAPE,
    severity=Severity.WARNING,
    experiment=Experiment.FINITE_DIFFERENCE,
    since="0.1.0",
    detect=detect,
)

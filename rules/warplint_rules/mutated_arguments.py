"""# mutated-arguments (NVW109)

## What it does

Finds lists of arguments and structs that a recorded launch was given and that the program changes before `backward()`:
`args[0] = other` after `wp.launch(…, inputs=args)`, `params.dt = …` or `state.q = …` on a struct that an earlier launch
of the tape took.

## Why is this bad

A tape copies nothing: it keeps the very list that was passed as `inputs` or `outputs`, and the structs in it, and takes
the arrays and numbers out of them again when the backward pass comes to the launch. The adjoint then runs on what
stands there now. Gradient goes to an array that has no part in the loss, or is taken from one; an adjoint multiplies by
a step size of another step. The loss is right, nothing warns.

## Example

```python
p = Params()
with wp.Tape() as tape:
    for k in range(steps):
        p.dt = step_sizes[k]                                           # NVW109
        wp.launch(advance, dim=n, inputs=[p, states[k]], outputs=[states[k + 1]])
tape.backward(loss)                                                    # each adjoint uses the last dt
```

## Use instead

A struct and a list of its own for each launch (`inputs=[a, b]` written out in the call is one):

```python
for k in range(steps):
    p = Params()
    p.dt = step_sizes[k]
    wp.launch(advance, dim=n, inputs=[p, states[k]], outputs=[states[k + 1]])
```

## How it is verified

The program runs, and its gradient is compared with finite differences; the backward pass is then repeated with each
adjoint given the arguments that its launch was given. If that makes the gradient right, the launch is named.

## Limits

Silent where the adjoint does not go through the argument: a number that it does not read (`x + dt`), an array off the
path to the loss. A list whose *length* changed makes the backward raise, and is not reported. Changes to dicts whose
`values()` were passed, and to the components of a vector in a struct, are not seen. Where elements of the list take
turns, this is the finding, and not the overwriting that follows from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from warplint.finding import Finding, Role, Severity
from warplint.proof import Experiment, Repair
from warplint.rule import Context, Group, Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.events import Binding
from warplint.trace.flow.changed_arguments import ChangedArgument
from warplint_rules import wording


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each list or struct and each tape."""
    flow = context.dataflow
    groups: dict[tuple[int, int], list[ChangedArgument]] = {}
    for changed in flow.changed_arguments:
        key = (changed.recording.backward.seq, changed.change.slot.holder)
        groups.setdefault(key, []).append(changed)
    return wording.strongest([_finding(group, flow) for group in groups.values()])


def _finding(group: Sequence[ChangedArgument], flow: Dataflow) -> Finding:
    established = [changed for changed in group if changed.established]
    first = min(established or group, key=lambda changed: (changed.change.seq, changed.launch.seq))
    change, launch = first.change, first.launch
    more = len({changed.launch.seq for changed in established or group}) - 1
    others = f" (and {more} more like it)" if more else ""
    return wording.finding(
        RULE,
        Severity.WARNING if established else Severity.INFO,
        change.span,
        f"`{change.slot.name}` is changed {_when(first, flow)}: the tape holds {_place(first)} by reference, and the "
        f"adjoint of {wording.round_of(launch, first.recording, flow)}{others} finds {_found(first, flow)}; give each "
        f"launch a {_kind(first)} of its own",
        [
            *wording.label(launch.span, Role.READ, f"recorded here with `{change.slot.name}`"),
            *wording.label(change.span, Role.WRITE, f"changed here{wording.later_pass(change, launch, flow)}"),
            *wording.tape_labels(first.recording),
        ],
        flow.trace.source,
        wording.anchor(
            flow,
            memory=first.before.array.memory if first.before.array is not None else None,
            write=change,
            read=launch,
        ),
    )


def _when(changed: ChangedArgument, flow: Dataflow) -> str:
    return f"after {wording.operation_name(changed.launch)} was recorded with it"


def _kind(changed: ChangedArgument) -> str:
    return "list" if isinstance(changed.change.slot.key, int) else "struct"


def _place(changed: ChangedArgument) -> str:
    key = changed.change.slot.key
    return f"item {key} of the list" if isinstance(key, int) else f"the struct with its `{key}`"


def _found(changed: ChangedArgument, flow: Dataflow) -> str:
    if changed.after is None:
        return "another value there"
    return f"{_named(changed.after, flow)} there in place of {_named(changed.before, flow)}"


def _named(binding: Binding, flow: Dataflow) -> str:
    return wording.array_name(binding.array, flow) if binding.array is not None else f"`{binding.value}`"


RULE = Rule(
    code="NVW109",
    name="mutated-arguments",
    summary="a list or struct that a recorded launch was given is changed before the backward reads it again",
    group=Group.TAPE,
    severity=Severity.WARNING,
    experiment=Experiment.FINITE_DIFFERENCE,
    since="0.1.0",
    detect=detect,
    repairs=frozenset({Repair.ARGUMENTS}),
)

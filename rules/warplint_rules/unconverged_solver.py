"""# unconverged-solver (NVW132)

## What it does

Finds a loop on the tape that solves something by repetition and stops before its answer. Only a run shows it; there is
no such finding in source.

## Why is this bad

The gradient is right, but for what the rounds that were made compute: a truncated sum of the solver's own series. The
derivative of the answer may be another by far, and no check of the gradient shows that.

## Example

```python
with wp.Tape() as tape:
    for j in range(8):
        wp.launch(sweep, dim=n, inputs=[source, k, u[j]], outputs=[u[j + 1]])      # NVW132
    wp.launch(misfit, dim=n, inputs=[u[8]], outputs=[loss])
tape.backward(loss)
```

## Use instead

More rounds, until the residual is small; or the adjoint of the answer itself: solve on no tape, and record a function
that solves the transposed system for the gradient (`tape.record_func`).

## How it is verified

The program runs. A loop whose rounds are the same calls, each on what the one before it has made, is run on until
nothing moves; the answer and its derivative by finite differences are compared with the program's.

## Limits

A claim is made where the loop starts from one value all over (a guess that says nothing), each round moves the answer
less than the one before it, fast enough that it comes to rest, the answer alone is used afterwards, and its derivative
moves by more than 5 %. A simulation repeats its calls as well: where a time step is among the parameters or constants
of a kernel, or the way to the answer counts, the rule is silent. A loop that is truncated on purpose is reported just
the same: say so with a comment that suppresses the finding.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Anchor, Finding, Role, Severity, Source
from warplint.proof import Experiment
from warplint.rule import Context, Group, Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.events import UnconvergedSolver
from warplint_rules import wording


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each loop, told by the leaf whose derivative moves most."""
    flow = context.dataflow
    worst: dict[object, UnconvergedSolver] = {}
    for solver in flow.trace.unconverged:
        known = worst.get(solver.launch)
        if solver.launch and (known is None or _parting(solver) > _parting(known)):
            worst[solver.launch] = solver
    return wording.strongest([_finding(solver, flow) for solver in worst.values()])


def _parting(solver: UnconvergedSolver) -> float:
    return abs(solver.ad - solver.settled) / max(abs(solver.ad), abs(solver.settled))


def _finding(solver: UnconvergedSolver, flow: Dataflow) -> Finding:
    span = solver.launch[-1].span
    made = solver.allocation[-1].span if solver.allocation else None
    message = (
        f"{solver.rounds} rounds of `{solver.kernel}` stop before its answer, which moves by {solver.moved:.0%} when "
        f"they go on: the gradient of `{solver.leaf}` is right for what is computed, and not for the answer"
    )
    labels = wording.label(made, Role.ALLOCATION, "its gradient")
    ties = Anchor(write=span, allocation=made)
    return wording.finding(RULE, Severity.WARNING, span, message, labels, flow.trace.source, ties)


RULE = Rule(
    code="NVW132",
    name="unconverged-solver",
    summary="a solver's loop on the tape that stops before its answer (seen in a run only)",
    group=Group.TAPE,
    severity=Severity.WARNING,
    experiment=Experiment.RUN_ON,
    since="0.1.0",
    detect=detect,
    source=Source.RUNTIME,
)

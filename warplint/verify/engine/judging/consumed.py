"""Readings of a gradient that the backward pass has consumed: what was there before the last adjoint that touched it.

The adjoint of a store takes the gradient of what is stored and leaves nothing (Warp 1.13 and later), so that an
intermediate array's gradient is zero once the pass is through, whatever it was on the way.
"""

from __future__ import annotations

from collections.abc import Iterator

from warplint.verify.engine.execution.memory import Memory
from warplint.verify.engine.execution.operations import HostRead, KernelCall, Operation
from warplint.verify.engine.judging.culprits import places
from warplint.verify.engine.judging.updates import largest_magnitude
from warplint.verify.engine.replaying.analysis import Analysis
from warplint.verify.engine.replaying.replay import Machine
from warplint.verify.records import ConsumedReading


def consumed_readings(machine: Machine, analysis: Analysis) -> Iterator[ConsumedReading]:
    """The readings of gradients that an adjoint has emptied, each place once."""
    told: set[object] = set()
    for seen in analysis.log.operations:
        for gradient in _gradients_read(seen, analysis):
            consuming, place = _last_before(seen, gradient, analysis), places(seen.stack)
            owner = gradient.gradient_of
            if consuming is None or consuming.inside is None or owner is None or place in told:
                continue
            if largest_magnitude(analysis.survey.gradients.at(gradient, seen.index), owner, analysis) != 0.0:
                continue
            machine.rewind(consuming.index)
            largest = largest_magnitude(gradient.read(), owner, analysis)
            consuming.run()
            if largest and not gradient.read().any():
                told.add(place)
                step = consuming.step
                forward = step.forward.stack if step is not None and step.forward is not None else ()
                yield ConsumedReading(
                    owner.number,
                    allocated=places(owner.stack),
                    seen=place,
                    consumed_by=places(forward),
                    largest=largest,
                )


def _gradients_read(operation: Operation, analysis: Analysis) -> Iterator[Memory]:
    """The gradients that the program looks at here, outside of any backward pass."""
    if operation.inside is None and isinstance(operation, HostRead | KernelCall):
        for where in analysis.reads(operation):
            if where.memory in analysis.log.gradients:
                yield where.memory


def _last_before(operation: Operation, memory: Memory, analysis: Analysis) -> Operation | None:
    """What has touched the memory last, readings of the host apart."""
    earlier = [each for each in analysis.of(memory) if each.index < operation.index and not isinstance(each, HostRead)]
    return earlier[-1] if earlier else None

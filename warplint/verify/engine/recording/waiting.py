"""What enough iterations have left open: an optimiser that steps memory which nothing has read so far.

A copy of the parameters that is stepped and never looked at learns nothing; one that is copied back now and then does.
To tell them apart takes more iterations than to judge a gradient.
"""

from __future__ import annotations

from collections import Counter

from warplint.verify.engine.execution.log import Log
from warplint.verify.engine.execution.memory import Memory, Range
from warplint.verify.engine.execution.operations import Happening, HostRead, Operation
from warplint.verify.records import OptimiserSeen


def awaits_a_reader(log: Log) -> bool:
    """Whether an optimiser has stepped memory twice that no operation but its own has touched since the first time."""
    steps = Counter[Memory]()
    read: set[Memory] = set()
    for operation in log.operations:
        if isinstance(operation, Happening) and operation.make is OptimiserSeen:
            params = (where for where in operation.fields["params"] if isinstance(where, Range))
            steps.update({where.memory: 1 for where in params})
        elif steps:
            read.update(memory for memory in _looked_at(operation, log) if memory in steps)
    return any(count > 1 and memory not in read for memory, count in steps.items())


def _looked_at(operation: Operation, log: Log) -> tuple[Memory, ...]:
    """The memories that an operation may read; none of one that takes a gradient outside backward: a step."""
    if operation.inside is not None:
        return ()
    if isinstance(operation, HostRead):
        return (operation.source.memory,)
    touched = operation.touched
    return () if any(memory in log.gradients for memory in touched) else tuple(touched)

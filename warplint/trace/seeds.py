"""Backwards that start from nothing: no loss, no ``grads=``, no gradient that the program set before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warplint.trace.events import Backward, GradRead, Launch, Opaque, Trace
from warplint.trace.recordings import GradientLife, Recording


def unseeded(trace: Trace, recordings: Sequence[Recording], life: GradientLife) -> Iterator[Recording]:
    """The recordings whose backward nothing seeds, where a gradient of theirs is used afterwards."""
    if trace.cut or life.filled:
        return
    for recording in recordings:
        backward = recording.backward
        given = backward.loss is not None or backward.seeds or not backward.complete or recording.seeds
        if given or recording.previous is not None or _may_be_set_unseen(trace, recording):
            continue
        if any(life.used_after(leaf, backward.seq) for leaf in recording.wanted):
            yield recording


def _may_be_set_unseen(trace: Trace, recording: Recording) -> bool:
    """Whether something before it may have set a gradient without an event that says so, an earlier backward too."""
    for event in trace.events:
        if event.seq >= recording.backward.seq:
            break
        if isinstance(event, (Opaque, GradRead, Backward)) or (isinstance(event, Launch) and event.adjoint):
            return True
    touched = {array.memory for step in recording.window.steps for array in (step.dest, *step.active)}
    return any(memory is None or memory.outside for memory in map(trace.memories.get, touched))

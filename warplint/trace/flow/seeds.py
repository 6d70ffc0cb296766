"""Where a backward without loss and ``grads=`` starts: from gradients that an earlier backward left, or from nothing.

``tape.backward()`` walks from whatever the gradients of its arrays hold. Tapes in a row are differentiated so: the last
one from the loss, each earlier one from the gradient that the next one's walk left on the state between the two.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

from warplint.kernels.summary import StoreKind
from warplint.trace.events import (
    Backward,
    Copy,
    Event,
    GradRead,
    GradWrite,
    Interlude,
    Launch,
    Opaque,
    TapeZeroed,
    Trace,
)
from warplint.trace.flow.recordings import GradientLife, Recording


def seeded_by_others(
    recordings: Sequence[Recording], left_by: Callable[[Recording], frozenset[int]], life: GradientLife
) -> tuple[Recording, ...]:
    """The recordings, the bare ones seeded by what other tapes' backwards left on the arrays that they store to.

    ``recordings`` in time order; ``left_by``: the memories that hold a gradient when a recording has been walked.
    """
    if not any(_is_bare(recording.backward) for recording in recordings):
        return tuple(recordings)
    holders: dict[int, Backward] = {}
    seeded = []
    for given in recordings:
        backward = given.backward
        stores = {step.dest.memory: step.kind for _, step in given.window.on_tape()}
        waiting = {
            memory
            for memory, holder in holders.items()
            if memory in stores
            and holder.tape != backward.tape
            and not life.cleared_between(memory, holder.seq, backward.seq)
        }
        bare = waiting and _is_bare(backward)
        recording = dataclasses.replace(given, seeds=given.seeds | waiting) if bare else given
        seeded.append(recording)
        for memory, kind in stores.items():
            if kind is StoreKind.STORE:
                holders.pop(memory, None)
        holders.update(dict.fromkeys(left_by(recording), backward))
    return tuple(seeded)


def _is_bare(backward: Backward) -> bool:
    """Nothing is passed to it that could seed it."""
    return backward.loss is None and not backward.seeds and backward.complete


def unseeded(trace: Trace, recordings: Sequence[Recording], life: GradientLife) -> Iterator[Recording]:
    """The recordings whose backward nothing seeds, where a gradient of theirs is used afterwards."""
    if trace.cut:
        return
    for recording in recordings:
        backward = recording.backward
        if not _is_bare(backward) or not (_is_emptied(trace, recording) or _is_never_set(trace, recording, life)):
            continue
        if any(life.used_after(leaf, backward.seq) for leaf in recording.wanted):
            yield recording


def _is_never_set(trace: Trace, recording: Recording, life: GradientLife) -> bool:
    """Nothing in the whole program gives a seed."""
    unset = not life.filled and not recording.seeds and recording.previous is None
    return unset and not _may_be_set_unseen(trace, recording)


def _is_emptied(trace: Trace, recording: Recording) -> bool:
    """The tape was walked before and then zeroed, which clears the seeds' gradients too, and nothing was set since."""
    if recording.previous is None or recording.is_reentered:
        return False
    since = [event for event in trace.events if recording.previous.seq < event.seq < recording.backward.seq]
    zeroed = [
        n for n, event in enumerate(since) if isinstance(event, TapeZeroed) and event.tape == recording.period.tape
    ]
    return bool(zeroed) and not any(_may_set(event) for event in since[zeroed[-1] :])


def _may_set(event: Event) -> bool:
    """Whether it may give a gradient to some array."""
    if isinstance(event, GradRead):
        return event.how not in _HARMLESS_READINGS
    if isinstance(event, Launch):
        return event.adjoint or any(b.array is not None and b.array.gradient for b in event.bindings)
    if isinstance(event, GradWrite):
        return not event.clears
    return isinstance(event, (Opaque, Interlude, Backward, Copy))


_HARMLESS_READINGS = frozenset({"print", "assert", "copy"})


def _may_be_set_unseen(trace: Trace, recording: Recording) -> bool:
    """Whether something before it may have set a gradient without an event that says so, an earlier backward too."""
    for event in trace.events:
        if event.seq >= recording.backward.seq:
            break
        if isinstance(event, (Opaque, GradRead, Backward)) or (isinstance(event, Launch) and event.adjoint):
            return True
    touched = {array.memory for step in recording.window.steps for array in (step.dest, *step.active)}
    return any(memory is None or memory.outside for memory in map(trace.memories.get, touched))

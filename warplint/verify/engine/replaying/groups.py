"""Leaves and groups, as the gradient's theory has them, out of a log.

A *leaf* is memory with a gradient that a tape reads before anything recorded has written it. A *group* is the backward
calls whose gradients are summed before the leaf is written or its gradient is cleared, and before the same output is
differentiated again after the gradient was used (the rows of a Jacobian). The *window* opens at the last
write to the leaf before the group reads it, so it spans earlier and untaped operations. The *consumed gradient* is the
gradient's value at its first use after the group's last backward, else at the end.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from warplint.dataclass import dataclass
from warplint.verify.engine.execution.memory import Memory, Range
from warplint.verify.engine.execution.operations import (
    BackwardBegin,
    KernelCall,
    Operation,
)
from warplint.verify.engine.replaying.analysis import Analysis
from warplint.verify.engine.replaying.leaves import Leaf, clears, leaves_of, unseen_leaves, uses
from warplint.verify.engine.replaying.replay import NotExact


@dataclass(frozen=True)
class Group:
    """The backward calls of one leaf that belong together; ``start`` is the first operation of the window.

    ``rewrites`` are later operations that overwrite the leaf from outside every tape: the leaf is moved there again.
    ``used`` is the operation that uses the gradient, None where nothing does; ``previous`` the end of the group before.
    """

    leaf: Leaf
    number: int
    backwards: tuple[BackwardBegin, ...]
    start: int
    rewrites: tuple[int, ...]
    consumed: npt.NDArray[np.float64]
    used: Operation | None
    previous: int
    read_at: int = -1
    """The operation before which the consumed gradient is read; the log's end where nothing uses or clears it."""
    overwritten: bool = False
    """Written from outside the tape after the tape has read it: what its gradient means then, only a user can say."""
    unknown: str = ""
    """Why the consumed gradient is not known."""

    @property
    def stop(self) -> int:
        """The number of the last backward call's beginning."""
        return self.backwards[-1].index


def groups_of(analysis: Analysis) -> list[Group]:
    """All groups of all leaves, in the order of their last backward call."""
    backwards: dict[tuple[Memory, int], list[tuple[BackwardBegin, Leaf]]] = {}
    for begin in analysis.log.backwards:
        for leaf in leaves_of(begin, analysis):
            backwards.setdefault((leaf.memory, leaf.range.start), []).append((begin, leaf))
    for begin, leaf in unseen_leaves({memory for memory, _ in backwards}, analysis):
        backwards.setdefault((leaf.memory, leaf.range.start), []).append((begin, leaf))
    found: list[Group] = []
    for calls in backwards.values():
        found.extend(_groups(calls, analysis))
    asked = [group for group in found if group.used is not None or not _is_idle(group, analysis)]
    return sorted(_with_consumed(asked, analysis), key=lambda group: group.stop)


def _with_consumed(groups: list[Group], analysis: Analysis) -> Iterator[Group]:
    """The groups with their consumed gradients, which are asked for in the order of the log."""
    past = analysis.survey.gradients
    for group in sorted(groups, key=lambda each: past.run_for(each.leaf.gradient_memory, each.read_at)):
        try:
            contents = past.at(group.leaf.gradient_memory, group.read_at)
        except NotExact as error:
            yield replace(group, unknown=str(error))
        else:
            yield replace(group, consumed=group.leaf.gradient_in(contents))


def _is_idle(group: Group, analysis: Analysis) -> bool:
    """Whether a gradient that nothing uses says nothing either: the leaf was overwritten, a link, of a past round."""
    return group.overwritten or _is_link(group, analysis) or _is_past(group, analysis)


def _is_past(group: Group, analysis: Analysis) -> bool:
    """Whether the tape was entered again, and of the leaf holds only what an earlier backward has differentiated.

    What the leaf still does to the loss goes through the updates that followed that backward.
    """
    if group.previous < analysis.log.base:
        return False
    taped = {id(entry) for begin in group.backwards for entry in begin.entries if entry is not None}
    return not any(
        group.previous < operation.index < group.stop and id(getattr(operation, "entry", None)) in taped
        for operation in analysis.of(group.leaf.memory)
    )


def _is_link(group: Group, analysis: Analysis) -> bool:
    """Whether a later backward takes the gradient as its seed: a link of a chain of tapes, not its end."""
    for operation in analysis.of(group.leaf.gradient_memory):
        if operation.index > group.stop and operation.inside is not None and operation.step is not None:
            made = operation.step.forward
            own = any(begin.number == operation.inside for begin in group.backwards)
            if made is not None and not own and any(w.overlaps(group.leaf.range) for w, _ in analysis.writes(made)):
                return True
    return False


def handed_on_by(gradient: Memory, begin: BackwardBegin, analysis: Analysis) -> BackwardBegin | None:
    """The backward call that left in a gradient what ``begin`` finds there; None where it came from elsewhere."""
    last = [operation for operation in analysis.of(gradient) if operation.index < begin.index][-1:]
    inside = last[0].inside if last else None
    return next((other for other in analysis.log.backwards if other.number == inside), None)


def goes_on_from(later: BackwardBegin, call: KernelCall, made: Range, analysis: Analysis) -> bool:
    """Whether the tape of ``later`` reads what ``call`` has stored in ``made``, before anything else writes it."""
    taped = {entry.forward.index for entry in later.entries if entry is not None and entry.forward is not None}
    for operation in analysis.of(made.memory):
        if operation.index > call.index and operation.inside is None:
            if operation.index in taped and any(where.overlaps(made) for where in analysis.reads(operation)):
                return True
            if any(where.overlaps(made) for where, _ in analysis.writes(operation)):
                return False
    return False


def _groups(calls: list[tuple[BackwardBegin, Leaf]], analysis: Analysis) -> Iterator[Group]:
    leaf = max((leaf for _, leaf in calls), key=lambda leaf: leaf.view.count)
    runs: list[list[BackwardBegin]] = [[calls[0][0]]]
    for (earlier, _), (later, _) in itertools.pairwise(calls):
        if _parted(earlier, later, leaf, analysis):
            runs.append([later])
        else:
            runs[-1].append(later)
    previous = analysis.log.base - 1
    for number, run in enumerate(runs):
        following = runs[number + 1][0].index if number + 1 < len(runs) else analysis.log.next_index
        yield _group(leaf, number, tuple(run), previous, following, analysis)
        previous = run[-1].index


def _parted(earlier: BackwardBegin, later: BackwardBegin, leaf: Leaf, analysis: Analysis) -> bool:
    """Whether the leaf is written from outside the tape, or its gradient cleared, between two backward calls."""
    taped = {id(entry) for entry in later.entries if entry is not None}
    for operation in analysis.of(leaf.memory):
        if earlier.index < operation.index < later.index and operation.inside is None:
            entry = getattr(operation, "entry", None)
            if id(entry) not in taped and any(w.overlaps(leaf.range) for w, _ in analysis.writes(operation)):
                return True
    between = [each for each in analysis.of(leaf.gradient_memory) if earlier.index < each.index < later.index]
    if any(clears(operation, leaf, analysis) for operation in between):
        return True
    return _asks_again(earlier, later, analysis) and any(uses(operation, leaf, analysis) for operation in between)


def _asks_again(earlier: BackwardBegin, later: BackwardBegin, analysis: Analysis) -> bool:
    """Whether two backward calls differentiate the same output on the same recording."""
    recorded = [{id(entry) for entry in begin.entries if entry is not None} for begin in (earlier, later)]
    if not recorded[0] & recorded[1]:
        return False
    return not _outputs(earlier, analysis).isdisjoint(_outputs(later, analysis))


def _outputs(begin: BackwardBegin, analysis: Analysis) -> set[tuple[Memory, int]]:
    """Where the outputs begin that a backward call was given."""
    given = [analysis.log.range(int(array.data), 1) for array, _, _ in begin.seeds if array.data]
    return {(where.memory, where.start) for where in (begin.loss, *given) if where is not None}


def _group(
    leaf: Leaf, number: int, run: tuple[BackwardBegin, ...], previous: int, following: int, analysis: Analysis
) -> Group:
    read = _first_read(leaf, run, previous, analysis)
    taped = {id(entry) for begin in run for entry in begin.entries if entry is not None}
    start = max(leaf.memory.born, analysis.log.base)
    rewrites: list[int] = []
    overwritten = False
    for operation in analysis.of(leaf.memory):
        if operation.inside is not None or operation.index >= run[-1].index:
            continue
        for where, access in analysis.writes(operation):
            if not where.overlaps(leaf.range):
                continue
            own = id(getattr(operation, "entry", None)) in taped and operation.index > previous
            if operation.index < read and not own:
                start = operation.index + 1
            elif operation.index > read and not own:
                overwritten = True
                if not access.reads and not access.adds:
                    rewrites.append(operation.index)
    after = run[-1].end.index if run[-1].end is not None else run[-1].index
    read_at, used = _read_at(leaf, after, following, analysis)
    return Group(leaf, number, run, start, tuple(rewrites), _NOT_ASKED, used, previous, read_at, overwritten)


def _first_read(leaf: Leaf, run: tuple[BackwardBegin, ...], previous: int, analysis: Analysis) -> int:
    """The first operation on the group's tapes that touches the leaf, of those recorded since the group before."""
    taped = {id(entry) for begin in run for entry in begin.entries if entry is not None}
    touching = [
        operation.index
        for operation in analysis.of(leaf.memory)
        if id(getattr(operation, "entry", None)) in taped and operation.index < run[-1].index
    ]
    recent = [index for index in touching if index > previous]
    return min(recent or touching, default=run[0].index)


def _read_at(leaf: Leaf, after: int, following: int, analysis: Analysis) -> tuple[int, Operation | None]:
    """Before which operation the consumed gradient is read, and the operation that uses it."""
    cleared: Operation | None = None
    for operation in analysis.of(leaf.gradient_memory):
        if not after < operation.index < following:
            continue
        if uses(operation, leaf, analysis):
            return operation.index, operation
        if cleared is None and clears(operation, leaf, analysis):
            cleared = operation
    return (cleared.index if cleared is not None else analysis.log.next_index), None


_NOT_ASKED = np.empty(0)
"""In the place of a consumed gradient that is asked for later."""

"""Which steps carry gradient from the wanted leaves, and which destinations matter to the loss.

One pass forward and one backward over a recording's window, each a set of memories that changes step by step. How much
is believed is the :class:`Regard`: rules compare what Warp will do (flags and recording respected) with what it would
do if a flag were there, or with what is true of the program whatever any tape holds.

A full plain store makes its destination independent of what it was, and in the backward pass *consumes* the
destination's gradient (from Warp 1.13 on, and unless ``retain_grad`` keeps it: measured).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

from warplint.dataclass import dataclass
from warplint.kernels.summary import Cut, StoreKind
from warplint.trace.events import Array, Copy, Memory
from warplint.trace.flow.operations import Step, active_tape, differentiated, has_gradient
from warplint.trace.flow.recordings import Window

CONSUMING_STORES = (1, 13)
"""The first Warp whose adjoint of a store clears the destination's gradient (measured: 1.12.1 adds it once more)."""


class Regard(enum.Enum):
    """How much of what is not known is believed, and what is looked away from."""

    ESTABLISHED = "established"
    """Gradient flows where it is known to: recorded, backward code generated, both gradients there."""
    BEYOND_DOUBT = "beyond doubt"
    """As established, and every plain store consumes, however little of the array it is known to replace."""
    POSSIBLE = "possible"
    """Gradient flows where nothing is known to stop it."""
    FLAGS_IGNORED = "flags ignored"
    """As established, but as if every array had a gradient."""
    CUTS_IGNORED = "cuts ignored"
    """As established, but as if every operation whose derivative is not zero had an adjoint."""
    FLAT_IGNORED = "flat operations ignored"
    """As if every array had a gradient, and rounding and comparing passed it on."""
    DEPENDENCE = "dependence"
    """Values, not gradients: recorded or not, differentiable or not."""


_IGNORED: Mapping[Regard, tuple[Cut, ...]] = {
    Regard.CUTS_IGNORED: (Cut.NONDIFFERENTIABLE, Cut.NATIVE),
    Regard.FLAT_IGNORED: (Cut.FLAT,),
}
_FLAGS_IGNORED = (Regard.FLAGS_IGNORED, Regard.FLAT_IGNORED, Regard.DEPENDENCE)


def same_view(regard: Regard, window: Window) -> Regard:
    """The plainest regard that sees the same in a window: most kernels have no operation that lacks its adjoint."""
    if regard is Regard.CUTS_IGNORED and window.severs.isdisjoint(_IGNORED[regard]):
        return Regard.ESTABLISHED
    return regard


def same_edges(regard: Regard) -> Regard:
    """The plainest regard under which gradient flows along the same edges, whatever stores consume."""
    return Regard.ESTABLISHED if regard is Regard.BEYOND_DOUBT else regard


@dataclass(frozen=True)
class Reach:
    """The answer for each step of a window, by position.

    ``carried[k]``: the memories among step k's sources that gradient (or dependence) reaches it from.
    ``was_varied[k]``: its destination depended on a wanted leaf already before. ``matters[k]``: after step k its
    destination still influences the loss. ``is_live[k]``: the same of steps that are no part of the graph themselves.
    ``left``: the memories that hold a gradient when the walk is over: leaves, and accumulators that no store consumed.
    """

    carried: tuple[frozenset[int], ...]
    was_varied: tuple[bool, ...]
    matters: tuple[bool, ...]
    is_live: tuple[bool, ...]
    left: frozenset[int] = frozenset()

    def flows(self, position: int) -> bool:
        """Gradient comes back to this step and goes on to a wanted leaf."""
        return self.matters[position] and bool(self.carried[position])

    def is_active(self, position: int) -> bool:
        """As :meth:`flows`, or the step stands between the loss and a value that was varied before it."""
        return self.matters[position] and (bool(self.carried[position]) or self.was_varied[position])


@dataclass(frozen=True)
class Rules:
    """Which edges count under one regard, seen from one tape."""

    regard: Regard
    window: Window
    memories: Mapping[int, Memory]
    warp: tuple[int, int]

    def counts(self, step: Step) -> bool:
        """Whether the step is part of the graph at all."""
        if self.regard is Regard.DEPENDENCE:
            return True
        on_tape = step.seq in self.window.recorded or self._would_be_recorded(step)
        adjoint = differentiated(step.event)
        return on_tape and (adjoint is True or (self.regard is Regard.POSSIBLE and adjoint is not False))

    def _would_be_recorded(self, step: Step) -> bool:
        """Copies go on the tape only where both sides have a gradient: with the flags there, this one would."""
        return (
            self.regard is Regard.FLAGS_IGNORED
            and isinstance(step.event, Copy)
            and active_tape(step.event) == self.window.tape
        )

    def sources(self, step: Step) -> frozenset[int]:
        """The memories from which the step passes gradient (or dependence) on, if they have any."""
        arrays = step.depends if self.regard is Regard.DEPENDENCE else step.active
        ignored = _IGNORED.get(self.regard, ())
        if ignored and step.severed:
            arrays = (*arrays, *(array for array, why in step.severed if why in ignored))
        if self.regard in _FLAGS_IGNORED:
            return frozenset([array.memory for array in arrays])
        return frozenset([array.memory for array in arrays if self.holds_gradient(array)])

    def holds_gradient(self, array: Array) -> bool:
        """Whether the array's flag lets gradient through."""
        if self.regard in _FLAGS_IGNORED:
            return True
        flag = has_gradient(array, self.memories)
        return flag is True or (self.regard is Regard.POSSIBLE and flag is None)

    def consumes(self, step: Step) -> bool:
        """Whether the step's adjoint leaves nothing of the destination's gradient."""
        if step.kind is not StoreKind.STORE or not (step.covers or self.regard is Regard.BEYOND_DOUBT):
            return False
        if self.regard is Regard.DEPENDENCE:
            return True
        memory = self.memories.get(step.dest.memory)
        return self.warp >= CONSUMING_STORES and not (memory is not None and memory.retain_grad)


@dataclass(frozen=True)
class Edges:
    """What each step of a window does to gradients under one regard, by position.

    ``counted``: it is part of the graph. ``sources``: the memories that it passes gradient on from. ``into``: its
    destination lets gradient through.
    """

    counted: Sequence[bool]
    sources: Sequence[frozenset[int]]
    into: Sequence[bool]


def edges_of(rules: Rules) -> Edges:
    """The edges of a window; the steps of one operation count or do not count together."""
    counted, sources, into = [], [], []
    seq, counts = -1, False
    for step in rules.window.steps:
        if step.seq != seq:
            seq, counts = step.seq, rules.counts(step)
        counted.append(counts)
        sources.append(rules.sources(step) if counts else _NOTHING)
        into.append(counts and rules.holds_gradient(step.dest))
    return Edges(counted, sources, into)


def reach(rules: Rules, leaves: frozenset[int], roots: frozenset[int], edges: Edges | None = None) -> Reach:
    """Walk a window forward from its leaves and backward from its roots; ``edges`` where they are known already."""
    edges = edges_of(rules) if edges is None else edges
    carried, was_varied = _forward(rules, edges, leaves)
    matters, is_live, left = _backward(rules, edges, roots)
    return Reach(carried, was_varied, matters, is_live, left)


_NOTHING: frozenset[int] = frozenset()


def _forward(rules: Rules, edges: Edges, leaves: frozenset[int]) -> tuple[tuple[frozenset[int], ...], tuple[bool, ...]]:
    varied = {leaf for leaf in leaves if rules.holds_gradient(Array(leaf))}
    carried, was_varied = [], []
    launch, replaced = -1, set[int]()
    for step, counts, given, receives in zip(rules.window.steps, edges.counted, edges.sources, edges.into, strict=True):
        if step.seq != launch:
            launch, replaced = step.seq, set()
        arriving = given & (varied | replaced) if receives else _NOTHING
        carried.append(arriving)
        was_varied.append(step.dest.memory in varied)
        if arriving:
            varied.add(step.dest.memory)
        elif counts and step.covers and step.kind is StoreKind.STORE:
            if step.read_before and step.dest.memory in varied:
                replaced.add(step.dest.memory)
            varied.discard(step.dest.memory)
    return tuple(carried), tuple(was_varied)


def _backward(
    rules: Rules, edges: Edges, roots: frozenset[int]
) -> tuple[tuple[bool, ...], tuple[bool, ...], frozenset[int]]:
    live = set(roots)
    sources, into = edges.sources, edges.into
    matters, is_live = [False] * len(into), [False] * len(into)
    launch, wanted, behind = -1, set[int](), frozenset[int]()
    for position in range(len(into) - 1, -1, -1):
        step = rules.window.steps[position]
        if step.seq != launch:
            launch, wanted, behind = step.seq, set(), frozenset(live)
        # a launch's own later stores do not count: the kernel's analysis knows its loops, and has buried what is dead
        is_live[position] = step.dest.memory in live or step.dest.memory in behind
        if not (into[position] and is_live[position]):
            continue
        matters[position] = True
        if rules.consumes(step) and not (step.read_before and step.dest.memory in wanted):
            live.discard(step.dest.memory)
        live |= sources[position]
        wanted |= sources[position]
    return tuple(matters), tuple(is_live), frozenset(live)


CONSUMING_COPIES = (1, 17)
"""From this version on a copy's adjoint consumes its destination's gradient, and adds to its source's (measured)."""

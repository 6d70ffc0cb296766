"""Measures one gradient by finite differences over a window, with the effort that time allows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import field, replace

import numpy as np

from warplint.dataclass import dataclass
from warplint.verify.engine.differences.finite_difference import (
    DirectionVector,
    OutOfBudget,
    both,
    combine,
    directions,
    is_hidden,
    judge_direction,
    one_sided,
    wants_one_sided,
)
from warplint.verify.engine.differences.precision import epsilon_of
from warplint.verify.engine.execution.memory import CodeStack, Range
from warplint.verify.engine.execution.operations import Operation
from warplint.verify.engine.replaying.analysis import Analysis
from warplint.verify.engine.replaying.groups import Group
from warplint.verify.engine.replaying.leaves import Leaf
from warplint.verify.engine.replaying.objective import terms_added
from warplint.verify.engine.replaying.windows import Window, rewritten
from warplint.verify.records import Direction, GradientStatus

CHECKED = 1e-2
"""The relative step along the first direction at which it is seen whether a shortened window is as good."""


@dataclass(frozen=True)
class Clock:
    """When the answers must be there (``time.monotonic``), and how many seconds the judging should take.

    ``aim`` is what the user would like to wait: gradients that somebody uses are judged beyond it, with less effort.
    """

    deadline: float
    aim: float = 10.0
    began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Seconds until the answers must be there."""
        return self.deadline - time.monotonic()

    @property
    def aim_left(self) -> float:
        """Seconds of the time that the judging should take; negative when it takes longer."""
        return self.aim - (time.monotonic() - self.began)

    def require(self, seconds: float = 0.0) -> None:
        """Raise :class:`OutOfBudget` where less than that is left."""
        if self.left < seconds:
            raise OutOfBudget


@dataclass(frozen=True)
class Effort:
    """How many directions a leaf is moved in, and how many evaluations each may take."""

    directions: int
    evaluations: int


FULL = Effort(5, 48)
LESS = Effort(3, 24)
LEAST = Effort(2, 14)
"""A clear pass takes three evaluations or five, a clear failure eleven."""
AT_SIGHT = 5
"""Evaluations, the one with nothing moved among them, that the clearest pass takes at most."""
AGAIN = Effort(1, 14)
"""Of a leaf whose gradient was found right in an earlier iteration, in several directions."""


@dataclass
class Allowance:
    """How much the evaluations of one judging may take: seconds as :func:`seconds_of` tells them, not the clock's.

    ``recorded`` is what the program did meanwhile: half of that, but at least ``LEAST_ALLOWED``.
    """

    recorded: float
    spent: float = 0.0

    def left(self, window: Window) -> float:
        """What is left for windows such as this one; negative when more was spent."""
        return self._total(window.underrated) - self.spent

    def efforts(self, window: Window, groups: int) -> float:
        """How many evaluations of a window its share, one of so many, would pay."""
        return max(self.left(window), 0.0) / max(groups, 1) / window.work

    def effort(self, window: Window, groups: int, *, used: bool, again: bool) -> Effort:
        """What a window's share pays; ``again``: the same leaf was found right before, and less is to be learned."""
        share = self.efforts(window, groups) / (4.0 if again else 1.0)
        if share > FULL.directions * FULL.evaluations:
            return FULL
        if share > LESS.directions * LESS.evaluations and used:
            return LESS
        return AGAIN if again and share < LEAST.directions * LEAST.evaluations else LEAST

    def harder(self, window: Window, tried: Effort) -> Effort | None:
        """More than was tried, where nothing came of it: up to three times what is allowed in all."""
        affordable = (self.left(window) + 2.0 * self._total(window.underrated)) / window.work
        for effort in (FULL, LESS):
            if effort.directions > tried.directions and effort.directions * effort.evaluations <= 2.0 * affordable:
                return effort
        return None

    def _total(self, underrated: float) -> float:
        return max(LEAST_ALLOWED, 0.5 * self.recorded * underrated)


LEAST_ALLOWED = 1.5
"""Seconds that the evaluations may take however short the program was."""


@dataclass(frozen=True)
class Measurement:
    """What finite differences say of one group."""

    vectors: tuple[DirectionVector, ...]
    judged: tuple[Direction, ...]
    status: GradientStatus
    reason: str
    ad: float
    fd: float
    relative_error: float | None
    method: str = "replay"


@dataclass(frozen=True)
class Measurer:
    """Moves the leaf of a group in some directions, and compares."""

    analysis: Analysis
    clock: Clock
    seed: int

    def measure(self, group: Group, window: Window, effort: Effort) -> Measurement:
        """Judge the gradient in as many directions as the effort says.

        Where rounding is bound to hide one of two, both are tried as one first: that moves as much for half the price.
        """
        leaf = group.leaf
        values = window.values_of(leaf)
        rng = np.random.default_rng([self.seed, leaf.memory.number, group.number])
        axes = 1 if leaf.view.components > 1 else 0
        scaled = directions(values, group.consumed, rng, component_axes=axes)
        vectors = tuple(_in_units(vector) for vector in _chosen(scaled, effort))
        asked = self._comparison(group, window, effort)
        at_once = asked.at_once(vectors)
        judged = [asked.judged(*at_once, check=True)] if at_once is not None else []
        if at_once is not None and _is_plain(judged[0].status, judged):
            vectors = (at_once,)
        else:
            judged = [asked.judged(*vector, check=number == 0) for number, vector in enumerate(vectors)]
        if wants_one_sided(judged):
            upwards = _in_units(one_sided(values, group.consumed, rng, component_axes=axes))
            vectors = (*vectors, upwards)
            judged.append(asked.judged(*upwards))
        answer = combine(judged)
        if not _is_plain(answer.status, judged) and not window.confirm():
            return self.measure(group, window, effort)
        moved = tuple(vector for vector, _ in vectors)
        reason = answer.reason
        if len(vectors) < len(scaled):
            reason += f"; {len(vectors)} of {len(scaled)} directions tried: {window.described}"
        found = Measurement(moved, tuple(judged), answer.status, reason, answer.ad, answer.fd, answer.relative_error)
        return found if np.isfinite(group.consumed).all() else _never_right(found, group)

    def _comparison(self, group: Group, window: Window, effort: Effort) -> _Comparison:
        leaf = group.leaf
        rewrites = rewritten(group.rewrites, leaf, self.analysis)
        return _Comparison(
            leaf, window, rewrites, resolution(group), terms_added(group.backwards), effort.evaluations, self.clock
        )


@dataclass(frozen=True)
class _Comparison:
    """A window's objective against what a gradient claims, one direction after the other."""

    leaf: Leaf
    window: Window
    rewrites: dict[int, Range]
    epsilon: float
    terms: int
    budget: int
    clock: Clock

    def judged(self, vector: DirectionVector, scale: float, check: bool = False) -> Direction:
        """One direction; ``check``: see along it whether a shortened window is as good."""
        known: dict[float, float] = {}
        if check:
            step = CHECKED * scale
            known[step] = self.window.check(self.rewrites, lambda old: vector.moved(old, step), self.leaf)

        def objective(step: float) -> float:
            if step == 0.0:
                return self.window.unmoved
            if step in known:
                return known[step]
            self.clock.require()
            return self.window.objective(self.rewrites, lambda old: vector.moved(old, step), self.leaf)

        self.clock.require()
        return judge_direction(
            objective,
            vector.ad,
            scale=scale,
            dtype_eps=self.epsilon,
            kind=vector.kind,
            budget=self.budget,
            terms=self.terms,
        )

    def at_once(self, vectors: Sequence[tuple[DirectionVector, float]]) -> tuple[DirectionVector, float] | None:
        """Two directions in one, where rounding is bound to hide the first of them, and not the other."""
        if len(vectors) != 2 or any(scale != 1.0 for _, scale in vectors):
            return None
        (first, _), (second, _) = vectors
        if not self._is_hidden(first) or self._is_hidden(second):
            return None
        return both(second, first), 1.0

    def _is_hidden(self, vector: DirectionVector) -> bool:
        unmoved = self.window.unmoved
        return is_hidden(unmoved, vector.ad, dtype_eps=self.epsilon, budget=self.budget, terms=self.terms)


def _is_plain(status: GradientStatus, judged: Sequence[Direction]) -> bool:
    """Whether the gradient is right by directions that agreed at first sight: then the window is exact as well."""
    passed = [direction for direction in judged if direction.status is GradientStatus.PASS]
    return status is GradientStatus.PASS and all(direction.evaluations <= AT_SIGHT for direction in passed)


def _chosen(vectors: Sequence[DirectionVector], effort: Effort) -> Sequence[DirectionVector]:
    """The first ones; if it is to be one alone, the one along the gradient, which stands out most from rounding."""
    if effort.directions > 1:
        return vectors[: effort.directions]
    return [next((vector for vector in vectors if vector.kind == "gradient"), vectors[0])] if vectors else []


def _never_right(found: Measurement, group: Group) -> Measurement:
    """A gradient with numbers that are none is not right because others are: at singular points nobody can tell."""
    if found.status is not GradientStatus.PASS:
        return found
    singular = [d for d in found.judged if d.status is GradientStatus.INCONCLUSIVE and not np.isfinite(d.ad)]
    told = f": {singular[0].reason}" if singular else ""
    off = int((~np.isfinite(group.consumed)).sum())
    return otherwise(found, GradientStatus.INCONCLUSIVE, f"{off} of {group.consumed.size} are no numbers{told}")


def resolution(group: Group) -> float:
    """The machine epsilon of the coarsest of a leaf and its losses: an objective in single precision has its noise."""
    losses = [begin.loss_kind.kind for begin in group.backwards if begin.loss_kind is not None]
    return epsilon_of([group.leaf.view.kind, *(kind for kind in losses if kind is not None)])


def inconclusive(reason: str, found: Measurement | None = None) -> Measurement:
    """No answer, for this reason; with the figures found, if any."""
    nan = float("nan")
    if found is None:
        return Measurement((), (), GradientStatus.INCONCLUSIVE, reason, nan, nan, None)
    return otherwise(found, GradientStatus.INCONCLUSIVE, reason)


def otherwise(found: Measurement, status: GradientStatus, reason: str) -> Measurement:
    """The same figures under another judgement."""
    return replace(found, status=status, reason=reason)


def _in_units(vector: DirectionVector) -> tuple[DirectionVector, float]:
    """A direction along one coordinate as the plain partial derivative, and the scale of its steps."""
    moving = np.flatnonzero(vector.vector) if vector.element is None else np.array([vector.element])
    if moving.size != 1:
        return vector, 1.0
    scale = float(abs(vector.vector.flat[moving[0]]))
    return replace(vector, vector=vector.vector / scale, ad=vector.ad / scale), scale


def shown(operation: Operation) -> str:
    """Where the program did this."""
    return place(operation.stack)


def place(stack: CodeStack) -> str:
    """The innermost line of the user's."""
    if not stack:
        return "inside Warp"
    code, line = stack[0]
    return f"{code.co_filename}:{line}"

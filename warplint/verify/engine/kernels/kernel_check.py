"""The local check of one operation: its adjoint, under a random cotangent, against finite differences of it alone.

An operation maps the memory that it touches to that memory afterwards; its adjoint maps the cotangent of the memory
afterwards to that before. So an array that is written in place is simply both input and output, and a starting
gradient that is not zero shows an adjoint that clobbers what others have accumulated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from warplint.dataclass import dataclass
from warplint.proof import Draw
from warplint.verify.engine.differences.directions import (
    DirectionVector,
    coordinate,
    directions,
    one_sided,
    relative_error,
    scales_of,
    wants_one_sided,
)
from warplint.verify.engine.differences.finite_difference import EPS32, OutOfBudget, judge_direction
from warplint.verify.records import Direction, GradientStatus

State = Mapping[str, npt.NDArray[Any]]
"""Arrays by name (the parameter, ``state.q`` for a field of a struct parameter), components as trailing axes."""

Floats = npt.NDArray[np.float64]

SCREENED = 64
"""Arrays of up to so many elements are compared element by element, larger ones at so many elements."""
MANY = 1 << 16
"""In an array of more elements fewer are compared: it takes long, and most threads of so many do the same."""
SCREENED_OF_MANY = 16
SCREENING_STEP = 1e-2
SUSPICIOUS = 0.02
JUDGED = 4
"""So many of the elements that part most are judged with all steps."""
DUST = 8.0
"""Units of rounding by which a gradient may be off where contributions are added to what was there."""


@dataclass(frozen=True)
class ArgumentCheck:
    """The judgement of one input's adjoint; ``element`` is where it parts most, for a failure of single elements."""

    name: str
    status: GradientStatus
    reason: str
    ad: float
    fd: float
    element: tuple[int, ...] = ()
    draw: Draw | None = None
    """The kind of inputs that were asked for, where they are not ordinary ones."""

    @property
    def place(self) -> str:
        """``z`` or ``z[2, 0]``."""
        return f"{self.name}[{', '.join(map(str, self.element))}]" if self.element else self.name

    @property
    def rank(self) -> int:
        """What outweighs what: a failure everything, agreement on nothing but zeros nothing."""
        if self.status is GradientStatus.PASS:
            return 1 if self.ad != 0.0 or self.fd != 0.0 else 4
        return {GradientStatus.FAIL: 0, GradientStatus.FLAT: 2}.get(self.status, 3)

    @property
    def weight(self) -> float:
        """The relative error of a failure, else the size of the derivative."""
        if self.status is GradientStatus.FAIL:
            return relative_error(self.ad, self.fd)
        size = max(abs(self.ad), abs(self.fd))
        return size if math.isfinite(size) else 0.0


@dataclass(frozen=True)
class OperationCheck:
    """The judgement of one operation, told by its weightiest argument: the one that parts most, where one does."""

    status: GradientStatus
    reason: str
    ad: float
    fd: float
    argument: str = ""
    """The argument whose adjoint is wrong; empty where none is."""
    element: tuple[int, ...] = ()
    failed: tuple[str, ...] = ()
    """Every argument whose adjoint is wrong, the worst first."""
    arguments: tuple[ArgumentCheck, ...] = ()


def check_operation(
    forward: Callable[[State], State],
    adjoint: Callable[[State], State],
    inputs: State,
    outputs: Collection[str],
    rng: np.random.Generator,
    *,
    dtype_eps: float = EPS32,
    budget: int = 2000,
) -> OperationCheck:
    """Check the adjoint of one operation element by element, and name the argument where it parts from FD.

    ``inputs`` are the floating arrays that the operation reads or passes on, with their values before it;
    ``outputs`` the names of those that it may write. An array written in place (or only in part) stands in both.

    ``forward(values)`` restores the memory, writes ``values`` (some, all or none of ``inputs``) into it, runs the
    operation and returns fresh copies of the arrays in ``outputs``. ``adjoint(cotangents)`` restores the memory as
    the backward pass of the question finds it, sets the gradients of all of ``inputs`` and ``outputs`` to
    ``cotangents``, runs the adjoint once and returns fresh copies of the gradients of ``inputs``. ``budget`` bounds
    the calls of ``forward``. Values of an output that are no numbers at the start are left out of the question.
    """
    operation = _Operation.begin(forward, adjoint, inputs, outputs, rng, dtype_eps, budget)
    judged = [_judge_argument(operation, name, rng) for name in inputs if inputs[name].size]
    return _conclude(judged)


@dataclass
class _Operation:
    """One operation under one random cotangent: what its adjoint claims, and its objective along any direction."""

    forward: Callable[[State], State]
    inputs: State
    base: State
    cotangents: dict[str, npt.NDArray[Any]]
    claimed: dict[str, Floats]
    dust: dict[str, Floats]
    eps: float
    budget: int
    noise: float = 0.0
    calls: int = field(default=2)

    @classmethod
    def begin(
        cls,
        forward: Callable[[State], State],
        adjoint: Callable[[State], State],
        inputs: State,
        outputs: Collection[str],
        rng: np.random.Generator,
        eps: float,
        budget: int,
    ) -> _Operation:
        """Run the operation twice as it stands, and its adjoint once."""
        base, again = forward({}), forward({})
        cotangents = {
            name: rng.standard_normal(array.shape).astype(array.dtype)
            for name, array in {**inputs, **{name: base[name] for name in outputs}}.items()
        }
        for name in outputs:
            cotangents[name] = np.where(np.isfinite(base[name]), cotangents[name], 0).astype(base[name].dtype)
        gradients = adjoint(cotangents)
        claimed, dust = {}, {}
        for name in inputs:
            after, before = gradients[name].astype(np.float64), cotangents[name].astype(np.float64)
            claimed[name] = after if name in outputs else after - before
            dust[name] = DUST * np.finfo(gradients[name].dtype).eps * (np.abs(after) + np.abs(before))
        operation = cls(forward, inputs, base, cotangents, claimed, dust, eps, budget)
        operation.noise = 2.0 * abs(operation.objective(again))
        for name in inputs:
            if name in outputs:
                claimed[name][operation._left_over(name, gradients[name])] = 0.0
        return operation

    def _left_over(self, name: str, gradient: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Where a value was overwritten, and the adjoint left the gradient of the new value as it was.

        That gradient belongs to nobody: it is wrong for the value from before, but whoever made that value for this
        operation does not ask (measured: ``wp.atomic_max`` leaves it where the old value loses).
        """
        before = self.inputs[name]
        candidates: npt.NDArray[np.bool_] = (gradient == self.cotangents[name]) & (self.base[name] != before)
        if not candidates.any():
            return candidates
        moved = before + SCREENING_STEP * np.where(candidates, np.maximum(np.abs(before), 1e-3), 0)
        unmoved: npt.NDArray[np.bool_] = self.run({name: moved.astype(before.dtype)})[name] == self.base[name]
        return np.logical_and(candidates, unmoved)

    def run(self, values: State) -> State:
        """The outputs for other inputs; paid from the budget."""
        if self.calls >= self.budget:
            raise OutOfBudget
        self.calls += 1
        return self.forward(values)

    def objective(self, after: State) -> float:
        """The change of the outputs, weighted by the cotangents and summed in float64."""
        total = 0.0
        for name, base in self.base.items():
            weight = self.cotangents[name]
            change = after[name].astype(np.float64) - base.astype(np.float64)
            total += float(np.sum(weight.astype(np.float64) * change, where=weight != 0))
        return total

    def judge(self, name: str, direction: DirectionVector) -> Direction:
        """Judge one directional derivative of one argument."""
        values = self.inputs[name]

        def moved(step: float) -> float:
            return self.objective(self.run({name: direction.moved(values, step)})) if step else 0.0

        dust = float(np.sum(self.dust[name] * np.abs(direction.vector)))
        ad = 0.0 if abs(direction.ad) <= dust else direction.ad
        try:
            noise = self.noise + self.rounding(self.run({name: direction.moved(values, SCREENING_STEP)}))
        except OutOfBudget:
            noise = self.noise
        return judge_direction(
            moved, ad, dtype_eps=self.eps, kind=direction.kind, noise=noise, budget=min(48, self.budget)
        )

    def rounding(self, after: State) -> float:
        """What rounding of the values that move amounts to in the objective: independent errors, one for each."""
        squares = 0.0
        for name, base in self.base.items():
            moving = (after[name] != base) & np.isfinite(base) & np.isfinite(after[name])
            weighted = self.cotangents[name].astype(np.float64) * np.abs(after[name].astype(np.float64))
            squares += float(np.sum(weighted**2, where=moving))
        return self.eps * math.sqrt(squares)


def _judge_argument(operation: _Operation, name: str, rng: np.random.Generator) -> ArgumentCheck:
    """Whole directions first, then the elements that part most, so that one wrong element is found and named.

    Where every element was compared and none is wrong, a whole direction that fails only cancels what is left of them;
    where elements stand on kinks, it mixes one-sided slopes.
    """
    values, claimed = operation.inputs[name], operation.claimed[name]
    whole = [operation.judge(name, d) for d in directions(values, claimed, rng) if d.kind in ("random", "gradient")]
    suspects = _suspects(operation, name, rng)
    single = [(index, operation.judge(name, direction)) for index, direction in suspects]
    wrong = [_told(name, direction, index) for index, direction in single if direction.status is GradientStatus.FAIL]
    if wrong:
        return weightiest(wrong)
    judged = [*whole, *(direction for _, direction in single)]
    if wants_one_sided(judged):
        judged.append(operation.judge(name, one_sided(values, claimed, rng)))
        judged = [direction for direction in judged if direction.status is not GradientStatus.FAIL]
    if values.size <= SCREENED and single:
        judged = [direction for direction in judged if direction.status is not GradientStatus.FAIL]
    return _never_right(weightiest([_told(name, direction) for direction in judged]), judged, claimed)


def _never_right(found: ArgumentCheck, judged: Sequence[Direction], claimed: Floats) -> ArgumentCheck:
    """An adjoint with numbers that are none is not right because others are, even where the slope itself is none."""
    off = ~np.isfinite(claimed)
    if found.status is not GradientStatus.PASS or not off.any():
        return found
    told = "".join(f": {each.reason}" for each in judged if not math.isfinite(each.ad))
    reason = f"{int(off.sum())} of {claimed.size} are no numbers{told}"
    return replace(
        found, status=GradientStatus.INCONCLUSIVE, reason=reason, ad=float(claimed[off].flat[0]), fd=math.nan
    )


def _told(name: str, direction: Direction, element: tuple[int, ...] = ()) -> ArgumentCheck:
    return ArgumentCheck(name, direction.status, direction.reason, direction.ad, direction.fd, element)


def weightiest(checks: Sequence[ArgumentCheck]) -> ArgumentCheck:
    """The check that decides; the first of equals."""
    return min(checks, key=lambda check: (check.rank, -check.weight))


def _suspects(
    operation: _Operation, name: str, rng: np.random.Generator
) -> list[tuple[tuple[int, ...], DirectionVector]]:
    """The elements at which one central difference parts most from the claim; without any, the largest claim."""
    values, claimed = operation.inputs[name], operation.claimed[name]
    indices, scales = _screened(claimed, rng), scales_of(values)
    found: list[tuple[float, tuple[int, ...], DirectionVector]] = []
    for index in indices:
        direction = coordinate(scales, claimed, index)
        try:
            plus, minus = (
                operation.objective(operation.run({name: direction.moved(values, sign * SCREENING_STEP)}))
                for sign in (1.0, -1.0)
            )
        except OutOfBudget:
            break
        fd = (plus - minus) / (2.0 * SCREENING_STEP)
        allowed = operation.noise / SCREENING_STEP + float(operation.dust[name][index] * abs(direction.vector[index]))
        gap = abs(direction.ad - fd)
        if not gap <= SUSPICIOUS * max(abs(direction.ad), abs(fd)) + allowed:
            found.append((gap if math.isfinite(gap) else math.inf, index, direction))
    found.sort(key=lambda item: -item[0])
    if not found and indices:
        top = indices[0]
        return [(top, coordinate(scales, claimed, top))]
    return [(index, direction) for _, index, direction in found[:JUDGED]]


def _screened(claimed: Floats, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """All elements of a small array; of a large one those with the largest claims and as many others by chance."""
    size = np.where(np.isfinite(claimed), np.abs(claimed), np.inf).ravel()
    if size.size > MANY:
        half = SCREENED_OF_MANY // 2
        top = np.argpartition(size, -half)[-half:]
        others = rng.choice(size.size, half, replace=False)
        order = np.concatenate([top[np.argsort(-size[top])], others[~np.isin(others, top)]])
    else:
        order = np.argsort(-size)
    if order.size > SCREENED:
        order = np.concatenate(
            [order[: SCREENED // 2], rng.choice(order[SCREENED // 2 :], SCREENED // 2, replace=False)]
        )
    return [tuple(int(k) for k in np.unravel_index(flat, claimed.shape)) for flat in order]


def _conclude(judged: Sequence[ArgumentCheck]) -> OperationCheck:
    if not judged:
        return OperationCheck(GradientStatus.INCONCLUSIVE, "it has no input to differentiate", math.nan, math.nan)
    first = weightiest(judged)
    reason = f"`{first.place}`: {first.reason}"
    failed = sorted((c for c in judged if c.status is GradientStatus.FAIL), key=lambda check: -check.weight)
    where = (first.name, first.element) if failed else ("", ())
    names = tuple(check.name for check in failed)
    return OperationCheck(first.status, reason, first.ad, first.fd, *where, names, tuple(judged))

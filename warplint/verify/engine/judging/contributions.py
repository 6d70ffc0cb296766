"""Where a sum swallows the change of the leaf: the objective as the sum, in double precision, of what is added to it.

The launches that add to the loss run in a changed form that stores what each thread adds. Differences are taken term by
term, so that what is large beside the change drops out before anything is rounded.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from warplint.dataclass import dataclass
from warplint.verify.engine.differences.directions import DirectionVector, combine
from warplint.verify.engine.differences.finite_difference import OutOfBudget, judge_direction
from warplint.verify.engine.differences.measure import Clock, Measurement
from warplint.verify.engine.differences.precision import EPS32, epsilon_of
from warplint.verify.engine.execution.accesses import view_of
from warplint.verify.engine.execution.memory import Range
from warplint.verify.engine.execution.operations import KernelCall
from warplint.verify.engine.judging.parts import Parts
from warplint.verify.engine.kernels.contributing import Contributing, contributing
from warplint.verify.engine.kernels.rewriting import NotRewritable
from warplint.verify.engine.replaying.analysis import Analysis
from warplint.verify.engine.replaying.groups import Group
from warplint.verify.engine.replaying.windows import Window, rewritten
from warplint.verify.engine.warp_functions import hooks_of
from warplint.verify.engine.warp_values import Packed, copied, dimensions
from warplint.verify.records import Direction, GradientStatus

SWALLOWED = ("absorbed", "noise of", "nothing moves", "the steps do not settle")
"""How the reasons begin that a sum in single precision may be behind."""
MOST = 1 << 23
"""Contributions that are kept at one time."""
EVALUATIONS = 48


def may_be_swallowed(found: Measurement) -> bool:
    """Whether no answer was found for a reason that a large sum explains."""
    return found.status is GradientStatus.INCONCLUSIVE and any(
        direction.reason.startswith(SWALLOWED) for direction in found.judged
    )


@dataclass(frozen=True)
class Summed:
    """Measures a group again by what each thread adds to its loss."""

    analysis: Analysis
    clock: Clock

    def measure(self, group: Group, window: Window, found: Measurement) -> Measurement:
        """The judgement by what the loss is a sum of; ``found`` where it is no plain sum, or its terms tell no more."""
        for find in (Parts.of, _Sum.of):
            with suppress(NotRewritable, OutOfBudget):
                told = self._told(group, window, find(self.analysis, window), found)
                if told is not None:
                    return told
        return found

    def _told(self, group: Group, window: Window, sum_of: Parts | _Sum, found: Measurement) -> Measurement | None:
        with window.replaced(sum_of.launches):
            judged = [self._judged(group, window, sum_of, vector) for vector in found.vectors]
        judged = [direction for direction in judged if direction.fd or direction.status is not GradientStatus.FAIL]
        if not any(direction.fd for direction in judged):
            return None  # where no term moves either, the change is swallowed before it comes to the sum
        answer = combine(judged)
        if answer.status not in (GradientStatus.PASS, GradientStatus.FAIL):
            return None
        reason = f"{answer.reason}; by {sum_of.described}, since its sum swallows the change"
        return replace(
            found,
            judged=tuple(judged),
            status=answer.status,
            reason=reason,
            ad=answer.ad,
            fd=answer.fd,
            relative_error=answer.relative_error,
        )

    def _judged(self, group: Group, window: Window, sum_of: Parts | _Sum, vector: DirectionVector) -> Direction:
        rewrites = rewritten(group.rewrites, group.leaf, self.analysis)

        def terms(step: float) -> npt.NDArray[np.float64]:
            self.clock.require()
            window.evaluate(rewrites, lambda old: vector.moved(old, step), group.leaf)
            return sum_of.terms()

        base = terms(0.0)
        moved = terms(1e-2)
        noise = max(EPS32, sum_of.epsilon) * float(np.sqrt(np.sum(moved[moved != base] ** 2)))

        def objective(step: float) -> float:
            return float(np.sum(terms(step) - base)) if step else 0.0

        return judge_direction(objective, vector.ad, kind=vector.kind, budget=EVALUATIONS, noise=noise)


class _Apart:
    """One launch in its changed form; its contributions are fresh each time."""

    def __init__(self, call: KernelCall, changed: Contributing) -> None:
        import warp

        shape = dimensions(call.params[0])
        if len(shape) != changed.axes or int(np.prod(shape)) > MOST:
            raise NotRewritable("its contributions have another shape")
        kind = changed.kernel.adj.args[-1].type.dtype
        self.added: Any = warp.zeros(shape, dtype=kind, device="cpu")
        params = [*copied(call.params), self.added.__ctype__()]  # type: ignore[no-untyped-call]
        self._packed = Packed(changed.kernel, hooks_of(changed.kernel), params, adjoint=False)

    def run(self) -> None:
        """Store what each thread adds."""
        self.added.numpy()[...] = 0
        self._packed()


@dataclass(frozen=True)
class _Sum:
    """The launches that make the loss, in their changed form, by their numbers."""

    launches: Mapping[int, _Apart]

    @classmethod
    def of(cls, analysis: Analysis, window: Window) -> _Sum:
        """Raises :class:`NotRewritable` where the loss is anything else than a sum of what launches add to it."""
        changed: dict[tuple[int, str], Contributing] = {}
        launches: dict[int, _Apart] = {}
        with cache_apart():
            for call, parameter in _additions(analysis, window):
                key = (id(call.kernel), parameter)
                if key not in changed:
                    changed[key] = contributing(call.kernel, parameter)
                launches[call.index] = _Apart(call, changed[key])
        if not launches:
            raise NotRewritable("nothing adds to the loss")
        return cls(launches)

    @property
    def epsilon(self) -> float:
        """How finely the contributions are told."""
        return epsilon_of(apart.added.numpy().dtype for apart in self.launches.values())

    @property
    def described(self) -> str:
        """What is told apart, in words."""
        return f"the {sum(int(apart.added.size) for apart in self.launches.values())} contributions to the loss"

    def terms(self) -> npt.NDArray[np.float64]:
        """All contributions of the last evaluation."""
        kept = [apart.added.numpy().astype(np.float64).ravel() for apart in self.launches.values()]
        return np.concatenate(kept)


def _additions(analysis: Analysis, window: Window) -> Iterator[tuple[KernelCall, str]]:
    """The launches of the window that add to its losses, and the parameter that each adds to."""
    losses = [begin.loss for begin in window.backwards]
    for operation in window.operations:
        touching = [
            where for where in (*analysis.reads(operation), *_written(analysis, operation)) if _hits(where, losses)
        ]
        if not touching:
            continue
        if not isinstance(operation, KernelCall):
            if any(_hits(where, losses) for where in analysis.reads(operation)):
                raise NotRewritable("something else reads the loss")
            continue
        yield operation, _added_to(operation, analysis, losses)


def _written(analysis: Analysis, operation: object) -> Iterator[Range]:
    yield from (where for where, _ in analysis.writes(operation))  # type: ignore[arg-type]


def _hits(where: Range, losses: list[Range | None]) -> bool:
    return any(loss is not None and where.overlaps(loss) for loss in losses)


def _added_to(call: KernelCall, analysis: Analysis, losses: list[Range | None]) -> str:
    names = []
    for slot in call.layout.slots:
        view = view_of(call, slot)
        where = analysis.log.range(view.address, 1) if view is not None else None
        if where is not None and _hits(where, losses):
            if call.blocks or "." in slot.path:
                raise NotRewritable("the loss lies in a struct, or the kernel runs in blocks")
            names.append(slot.path)
    if len(names) != 1:
        raise NotRewritable("the loss is bound twice")
    return names[0]


@contextmanager
def cache_apart() -> Iterator[None]:
    """What is built here leaves the user's kernel cache as it is."""
    import warp

    kept = warp.config.kernel_cache_dir
    warp.config.kernel_cache_dir = tempfile.mkdtemp()
    try:
        yield
    finally:
        warp.config.kernel_cache_dir = kept

"""A loss that one launch makes of a few numbers, with constant weights: its terms, before they are added and rounded.

So trainers add up what they minimise (a policy's loss, a value's, a regulariser): beside the largest of them a change
of the others is lost in single precision. That the launch is affine is measured, by running it alone on other numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt

from warplint.dataclass import dataclass
from warplint.verify.engine.differences.precision import epsilon_of
from warplint.verify.engine.execution.accesses import view_of
from warplint.verify.engine.execution.memory import Contents, Range
from warplint.verify.engine.execution.operations import KernelCall
from warplint.verify.engine.execution.views import FloatView
from warplint.verify.engine.kernels.rewriting import NotRewritable
from warplint.verify.engine.replaying.analysis import Analysis, extent
from warplint.verify.engine.replaying.windows import Window

FEW = 64
"""Numbers that such a launch may read."""
PROBES = (1.0, 1.0, 30.0, 1e-3)
"""Sizes of the random numbers on which a launch is run to see whether it is affine."""
ROUNDED = 32.0
"""Units of rounding by which it may miss what its weights tell."""

Numbers = npt.NDArray[np.float64]


@dataclass(eq=False)
class Weighted:
    """One launch and the weights of the numbers that it reads; stands in its place, and keeps them each time."""

    call: KernelCall
    inputs: tuple[FloatView, ...]
    loss: FloatView
    constant: float = 0.0
    weights: Numbers = field(default_factory=lambda: np.zeros(0))
    read: Numbers = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def measured(cls, call: KernelCall, inputs: Sequence[FloatView], loss: FloatView) -> Weighted:
        """Run it on other numbers; raises :class:`NotRewritable` where it is not affine. Memory is as before."""
        made = cls(call, tuple(inputs), loss)
        kept = Contents(call.touched)
        try:
            count = sum(view.count for view in made.inputs)
            made.constant = made._on(np.zeros(count))
            made.weights = np.array([made._on(row) - made.constant for row in np.eye(count)])
            rng = np.random.default_rng(count)
            for size in PROBES:
                numbers = size * rng.normal(size=count)
                made._require(numbers, made._on(numbers))
        finally:
            kept.restore()
        if not made.weights.any():
            raise NotRewritable("the loss hangs on none of them")
        return made

    @property
    def terms(self) -> Numbers:
        """What each number adds to the loss, of the last run."""
        return np.asarray(self.weights * self.read)

    def run(self) -> None:
        """Run the launch, and keep what it reads."""
        self.read = np.concatenate([view.read().astype(np.float64).ravel() for view in self.inputs])
        self.call.run()
        self._require(self.read, float(self.loss.read().flat[0]))

    def _on(self, numbers: Numbers) -> float:
        done = 0
        for view in self.inputs:
            own = numbers[done : done + view.count]
            view.write(own.reshape(view.read().shape).astype(view.kind))
            done += view.count
        self.call.run()
        return float(self.loss.read().flat[0])

    def _require(self, numbers: Numbers, found: float) -> None:
        """That the weights tell what the launch has made of these numbers, to within rounding."""
        terms = self.weights * numbers
        epsilon = epsilon_of([self.loss.kind, *(view.kind for view in self.inputs)])
        size = abs(self.constant) + float(np.sum(np.abs(terms)))
        if not abs(found - self.constant - float(np.sum(terms))) <= ROUNDED * epsilon * size:
            raise NotRewritable("the launch that makes the loss is not affine")


@dataclass(frozen=True)
class Parts:
    """The launches that make the losses of a window, by their numbers."""

    launches: Mapping[int, Weighted]

    @classmethod
    def of(cls, analysis: Analysis, window: Window) -> Parts:
        """Raises :class:`NotRewritable` where a loss is not made so."""
        found: dict[int, Weighted] = {}
        for begin in window.backwards:
            kind = begin.loss_kind.kind if begin.loss is not None else None
            if begin.loss is None or kind is None or begin.seeds:
                raise NotRewritable("there is no loss")
            makers = [
                operation
                for operation in window.operations
                if operation.index < begin.index
                and any(where.overlaps(begin.loss) for where, _ in analysis.writes(operation))
            ]
            if not makers or not isinstance(makers[-1], KernelCall):
                raise NotRewritable("no launch makes the loss")
            loss = FloatView.flat(begin.loss.address, kind.itemsize, kind)
            found[makers[-1].index] = Weighted.measured(makers[-1], list(_read(makers[-1], analysis)), loss)
        return cls(found)

    @property
    def epsilon(self) -> float:
        """How finely the terms are told."""
        return epsilon_of(view.kind for each in self.launches.values() for view in each.inputs)

    @property
    def described(self) -> str:
        """What is told apart, in words."""
        count = sum(int(np.count_nonzero(each.weights)) for each in self.launches.values())
        return f"the {count} numbers that the loss is the sum of"

    def terms(self) -> Numbers:
        """All terms of the last evaluation."""
        return np.concatenate([each.terms for each in self.launches.values()])


def _read(call: KernelCall, analysis: Analysis) -> Iterator[FloatView]:
    """The few numbers that a launch reads, each once; what it adds to is among them."""
    seen: list[Range] = []
    read = list(analysis.reads(call))
    added = [where for where, access in analysis.writes(call) if access.adds]
    for slot in call.layout.slots:
        view = view_of(call, slot)
        where = _range(view, call) if view is not None else None
        if view is None or where is None or not any(where.overlaps(other) for other in (*read, *added)):
            continue
        if view.count > FEW or any(where.overlaps(other) for other in seen):
            raise NotRewritable("the loss is made of many numbers")
        seen.append(where)
        yield view
    if not all(any(where.overlaps(other) for other in seen) for where in read):
        raise NotRewritable("the loss is made of what is no plain array of floats")


def _range(view: FloatView, call: KernelCall) -> Range | None:
    memory = next((each for each in call.memories if each.address <= view.address < each.stop), None)
    return extent(memory, view) if memory is not None else None

"""Names the class of a wrong gradient from what was measured: figures, repairs, the first operation gone astray."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from warplint.dataclass import dataclass
from warplint.proof import Repair
from warplint.verify.engine.differences.directions import is_kinked, wants_one_sided
from warplint.verify.engine.differences.measure import Measurement, place
from warplint.verify.engine.execution.memory import Memory
from warplint.verify.engine.execution.operations import BackwardBegin, HostWrite, KernelCall, NativeCall, Operation
from warplint.verify.engine.judging.culprits import places
from warplint.verify.engine.judging.repairs import measured
from warplint.verify.engine.replaying.adjoint import float_kind_of
from warplint.verify.engine.replaying.analysis import Analysis
from warplint.verify.engine.replaying.groups import Group
from warplint.verify.engine.replaying.replay import Machine
from warplint.verify.engine.replaying.windows import Window, rewritten
from warplint.verify.engine.warp_values import descriptor
from warplint.verify.records import AdjointCheck, Direction, GradientStatus, Signature, SignatureKind

Floats = npt.NDArray[np.float64]

STEADY = 0.005
"""By how much of itself a ratio may differ between directions, and from a whole number, and still be that number."""
SURE = 0.01
"""The error of the differences, relative to themselves, below which a ratio is told at all."""
LARGEST_FACTOR = 1e6
RISE = 1e-4
"""By what share of itself the loss must rise before a step is said to have raised it."""


@dataclass(frozen=True)
class Signatures:
    """Asks a log for what the figures of one gradient alone do not tell. Leaves memory anywhere."""

    machine: Machine
    analysis: Analysis
    groups: Sequence[Group]

    def of(
        self,
        group: Group,
        found: Measurement,
        repairs: Sequence[Repair] = (),
        wrong: Sequence[KernelCall] = (),
        refuted: Sequence[AdjointCheck] = (),
    ) -> Signature | None:
        """The class of a gradient that differences refute; ``repairs`` make it right.

        ``wrong`` are launches of kernels that have part in it and whose own adjoint is wrong, ``refuted`` are functions
        of its tapes that were found wrong by themselves.
        """
        if not np.isfinite(group.consumed).all():
            return self._not_finite(group)
        if Repair.CHAIN in repairs:
            return Signature(SignatureKind.TRUNCATED, "right for each tape's window, wrong for the whole horizon")
        if not group.consumed.any():
            return Signature(SignatureKind.ZERO, f"exactly zero, while finite differences give {found.fd:.4g}")
        growing = self._growing(group, found)
        if growing is not None:
            return growing
        return (
            _of_kernels(repairs, wrong)
            or _of_functions(refuted)
            or _of_repairs(repairs)
            or _factor(found)
            or at_kinks(found)
        )

    def of_undecided(self, group: Group, found: Measurement) -> Signature | None:
        """The class of a gradient that is right to be zero, or where the figures decide nothing else."""
        if found.status is GradientStatus.FLAT:
            return Signature(SignatureKind.FLAT, "zero, and rightly: small changes of it do not change the loss")
        if any(begin.loss is not None and not _finite_loss(begin) for begin in group.backwards):
            return self._lost_loss(group)
        if found.judged and not np.isfinite(group.consumed).all():
            return self._not_finite(group)
        return at_kinks(found)

    # not finite -----------------------------------------------------------------------------------------------------

    def _not_finite(self, group: Group) -> Signature:
        """The first adjoint whose gradients are not finite, of those that the group's backward calls ran."""
        start = group.backwards[0].index
        ends = [begin.end.index if begin.end is not None else begin.index for begin in group.backwards]
        span = self.machine.log.between(start, ends[-1] + 1)
        gradients = {memory for op in span for memory in op.touched} & self.machine.log.gradients
        self.machine.rewind(start)
        bad = {memory for memory in gradients if not self._is_finite(memory)}
        if bad:
            text = f"gradients are {_shown(group.consumed)}, and some were before the backward call began"
            return Signature(SignatureKind.NOT_FINITE, text)
        for operation in span:
            operation.run()
            made = [memory for memory in operation.touched if memory in gradients and not self._is_finite(memory)]
            if made and operation.inside is not None:
                return self._made_by(operation, made[0], group)
        return Signature(SignatureKind.NOT_FINITE, f"{_shown(group.consumed)}, which came after the backward call")

    def _made_by(self, operation: Operation, gradient: Memory, group: Group) -> Signature:
        forward = operation.step.forward if operation.step is not None else None
        if not isinstance(forward, KernelCall):
            of = f"at {place(operation.stack)}" if operation.stack else "inside Warp"
            return Signature(
                SignatureKind.NOT_FINITE, f"{_shown(group.consumed)}, first made {of}", at=places(operation.stack)
            )
        argument = next(
            (
                slot.path
                for slot in forward.layout.slots
                if self.machine.log.memories.find(
                    int(descriptor(forward.params[slot.parameter], slot.offset).grad or 0)
                )
                is gradient
            ),
            "",
        )
        into = f" in the gradient of `{argument}`" if argument else ""
        text = f"{_shown(group.consumed)}, first made by the adjoint of `{forward.name}` ({place(forward.stack)}){into}"
        return Signature(SignatureKind.NOT_FINITE, text, operation=forward.name, at=places(forward.stack))

    def _lost_loss(self, group: Group) -> Signature | None:
        """The loss itself is no number: the first operation of the window that wrote something that is none."""
        window = [op for op in self.machine.log.between(group.start, group.stop) if op.inside is None]
        self.machine.rewind(group.start)
        bad = {memory for op in window for memory in op.touched if not self._is_finite(memory)}
        for operation in window:
            operation.run()
            for where, _ in self.analysis.writes(operation):
                memory = where.memory
                if memory in self.machine.log.gradients:
                    continue
                if self._is_finite(memory):
                    bad.discard(memory)
                elif memory not in bad:
                    return _lost_by(operation)
        return None

    def _is_finite(self, memory: Memory) -> bool:
        owner = memory.gradient_of if memory.gradient_of is not None else memory
        kind = float_kind_of(owner, self.analysis)
        if kind is None:
            return True
        whole = memory.size - memory.size % kind.itemsize
        return bool(np.isfinite(memory.live()[:whole].view(kind)).all())

    # growing --------------------------------------------------------------------------------------------------------

    def _growing(self, group: Group, found: Measurement) -> Signature | None:
        """Whether the gradient began with what the backward before left, and is right without it."""
        before = next(
            (each for each in self.groups if each.leaf.memory is group.leaf.memory and each.number == group.number - 1),
            None,
        )
        if before is None or not before.consumed.any():
            return None
        self.machine.rewind(group.backwards[0].index)
        left = group.leaf.gradient.read().astype(np.float64)
        if not np.array_equal(left, before.consumed):
            return None
        telling = measured(found.vectors, found.judged)
        own = group.consumed - left
        if not telling or not all(each.agrees(own) for each in telling):
            return None
        text = (
            f"it still holds what iteration {before.number + 1} left, and grows with each; without that it is right "
            f"({telling[0].claim(own):.4g} against {telling[0].direction.fd:.4g})"
        )
        return Signature(SignatureKind.GROWING, text)

    # right, and of no use --------------------------------------------------------------------------------------------

    def of_right(self, group: Group, window: Window, found: Measurement) -> Signature | None:
        """Where the step after a right gradient raises the loss that it belongs to, and the program's loss rose too."""
        step = self._step_after(group)
        if step is None:
            return at_kinks(found)
        moved, slope, later = step
        rewrites = rewritten(group.rewrites, group.leaf, self.analysis)
        after = window.evaluate(rewrites, lambda old: moved.astype(old.dtype), group.leaf)
        before = window.unmoved
        if np.isfinite(after) and not after - before > RISE * abs(before):
            return at_kinks(found)
        if slope > 0.0:
            text = (
                f"the gradient is right, and the step after it goes along it, not against it: `{{leaf}}` alone takes "
                f"the loss from {before:.4g} to {after:.4g} (the next iteration has {later:.4g}); if it is to fall, "
                "that is not a gradient fault"
            )
        else:
            text = (
                f"the gradient is right, and the step after it is too long: it promises {slope:.3g}, and `{{leaf}}` "
                f"alone takes the loss from {before:.4g} to {after:.4g} (the next iteration has {later:.4g}); not a "
                "gradient fault"
            )
        return Signature(SignatureKind.OPTIMISATION, text)

    def _step_after(self, group: Group) -> tuple[npt.NDArray[np.generic], float, float] | None:
        """Where the leaf is in the next iteration, the slope that the gradient promises for that, the loss there.

        None where there is no such iteration, where the leaf has not moved, or where the loss did not rise.
        """
        leaf = group.leaf
        later = next((g for g in self.groups if g.leaf.memory is leaf.memory and g.number == group.number + 1), None)
        if later is None or len(group.backwards) > 1 or len(later.backwards) > 1 or group.used is None:
            return None
        losses = [_loss(each.backwards[0]) for each in (group, later)]
        if losses[0] is None or losses[1] is None or losses[1] <= losses[0] + RISE * abs(losses[0]):
            return None
        self.machine.rewind(later.start)
        moved = leaf.view.read()
        self.machine.rewind(group.start)
        change = moved.astype(np.float64) - leaf.view.read()
        if not change.any() or not np.isfinite(change).all():
            return None
        return moved, float(np.sum(change * group.consumed.reshape(change.shape))), losses[1]


def named(signature: Signature | None, leaf: str) -> Signature | None:
    """The signature with the leaf's name in its text."""
    return replace(signature, text=signature.text.replace("{leaf}", leaf)) if signature is not None else None


def _of_kernels(repairs: Sequence[Repair], wrong: Sequence[KernelCall]) -> Signature | None:
    if Repair.KERNEL not in repairs or not wrong:
        return None
    names = ", ".join(dict.fromkeys(f"`{call.name}`" for call in wrong))
    text = f"the adjoint of {names} is wrong by itself, whatever the tape does"
    return Signature(SignatureKind.WRONG_ADJOINT, text, operation=wrong[0].name, at=places(wrong[0].stack))


def _of_functions(refuted: Sequence[AdjointCheck]) -> Signature | None:
    if not refuted:
        return None
    names = ", ".join(dict.fromkeys(f"`{check.function}`" for check in refuted))
    text = f"what {names} makes of the gradients is wrong by itself"
    return Signature(SignatureKind.WRONG_ADJOINT, text, operation=refuted[0].function, at=(refuted[0].defined,))


def _of_repairs(repairs: Sequence[Repair]) -> Signature | None:
    if Repair.MEMORY in repairs:
        text = "right once each adjoint finds the values of its own launch, which were overwritten"
        return Signature(SignatureKind.OVERWRITE, text)
    return None


def _factor(found: Measurement) -> Signature | None:
    """One ratio of gradient and difference in all directions that tell: a whole number, its inverse, or -1."""
    telling = [d for d in found.judged if d.status is GradientStatus.FAIL]
    if any(d.status is GradientStatus.PASS and d.ad != 0.0 for d in found.judged) or not all(map(_is_sure, telling)):
        return None
    ratios = [d.ad / d.fd for d in telling]
    if not ratios or (len(ratios) == 1 and found.vectors[0].vector.size > 1):
        return None
    ratio = float(np.median(ratios))
    if max(ratios) - min(ratios) > 2.0 * STEADY * abs(ratio):
        return None
    for candidate, shown in ((ratio, "{}"), (1.0 / ratio, "1/{}")):
        whole = round(candidate)
        if (
            (abs(whole) > 1 or whole == -1)
            and abs(whole) < LARGEST_FACTOR
            and abs(candidate - whole) <= STEADY * abs(whole)
        ):
            text = f"{shown.format(whole)} times the difference in {_counted(len(ratios))}"
            return Signature(SignatureKind.FACTOR, text, factor=float(whole) if shown == "{}" else 1.0 / whole)
    return None


def _is_sure(direction: Direction) -> bool:
    figures = np.isfinite([direction.ad, direction.fd, direction.error]).all()
    return bool(figures) and direction.ad != 0.0 and direction.error <= SURE * abs(direction.fd) != 0.0


def at_kinks(found: Measurement) -> Signature | None:
    """Whether it parts from the central difference on kinks alone."""
    kinked = [d for d in found.judged if is_kinked(d)]
    failed = [d for d in found.judged if d.status is GradientStatus.FAIL]
    agreeing = [d for d in found.judged if d.status is GradientStatus.PASS]
    if wants_one_sided(found.judged) and found.status is not GradientStatus.PASS:
        text = f"it parts in {len(failed)} of {len(found.judged)} directions, all of which mix coordinates on kinks"
        return Signature(SignatureKind.KINKS, f"{text} with others; it agrees in {len(agreeing)}")
    if not kinked or not agreeing or not all(is_kinked(direction) for direction in failed):
        return None
    smooth = len(agreeing) - sum(is_kinked(direction) for direction in agreeing)
    text = f"kinks in {len(kinked)} of {len(found.judged)} directions, where each one-sided slope is a derivative"
    return Signature(SignatureKind.KINKS, f"{text}; it agrees in {smooth} smooth ones")


def _lost_by(operation: Operation) -> Signature:
    if isinstance(operation, KernelCall):
        where = f"`{operation.name}` ({place(operation.stack)})"
        text = f"the loss is no number: the first that is none was written by {where}"
        return Signature(SignatureKind.NOT_FINITE, text, operation=operation.name, at=places(operation.stack))
    how = operation.how if isinstance(operation, HostWrite | NativeCall) else ""
    text = f"the loss is no number: the first that is none came at {place(operation.stack)}" + (
        f" ({how})" if how else ""
    )
    return Signature(SignatureKind.NOT_FINITE, text, at=places(operation.stack))


def _loss(begin: BackwardBegin) -> float | None:
    kind = getattr(begin.loss_kind, "kind", None)
    if begin.loss_bytes is None or kind is None:
        return None
    return float(begin.loss_bytes.view(kind)[0])


def _finite_loss(begin: BackwardBegin) -> bool:
    loss = _loss(begin)
    return loss is None or bool(np.isfinite(loss))


def _shown(values: Floats) -> str:
    """``nan in 3 of 8``."""
    off = ~np.isfinite(values)
    what = "nan" if np.isnan(values[off]).any() else "inf"
    return f"{what} in {int(off.sum())} of {values.size}"


def _counted(directions: int) -> str:
    return "one direction" if directions == 1 else f"{directions} directions"

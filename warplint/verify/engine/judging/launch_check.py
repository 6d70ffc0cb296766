"""The adjoint of every distinct kernel alone: one recorded launch of it, on the memory that it found."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from warplint.verify.engine.differences.finite_difference import OutOfBudget
from warplint.verify.engine.differences.precision import epsilon_of
from warplint.verify.engine.execution.accesses import Access, view_of
from warplint.verify.engine.execution.memory import Contents
from warplint.verify.engine.execution.operations import KernelCall
from warplint.verify.engine.execution.views import FloatView
from warplint.verify.engine.judging.culprits import places
from warplint.verify.engine.kernels.kernel_check import ArgumentCheck, State, check_operation
from warplint.verify.engine.replaying.analysis import Analysis
from warplint.verify.engine.replaying.replay import Machine
from warplint.verify.engine.warp_modules import definition
from warplint.verify.engine.warp_values import ArraySlot, Packed, adjoint_parameters, copied, descriptor
from warplint.verify.records import GradientStatus, KernelCheck

STEPS = (0.03, 30.0, 3e4)
"""Relative steps: the first is the largest that finite differences take, the others show what rounding swallowed."""
LEAST, MOST = 60, 400
"""Forward runs that the check of one launch may take."""
LARGEST = 1 << 26
"""Bytes touched by a launch that is checked at most."""


def first_launches(analysis: Analysis) -> list[KernelCall]:
    """One taped launch of each kernel whose adjoint some backward call ran, in order."""
    found: dict[int, KernelCall] = {}
    for begin in analysis.log.backwards:
        for entry in begin.entries:
            call = entry.forward if entry is not None else None
            if isinstance(call, KernelCall) and entry is not None and entry.enabled and call.hooks.backward is not None:
                found.setdefault(id(call.kernel), call)
    return sorted(found.values(), key=lambda call: call.index)


def check_launches(
    machine: Machine, analysis: Analysis, calls: list[KernelCall], rng: np.random.Generator, seconds: float
) -> Iterator[KernelCheck]:
    """Check one launch after the other, going through the log once for what was not kept.

    ``seconds`` is about what each may take.
    """
    position: int | None = None
    for call in calls:
        if machine.give_found(call):
            position = None
        elif position is None:
            machine.rewind(call.index)
            position = call.index
        else:
            machine.run(position, call.index)
            position = call.index
        yield from records_of(call, _checked(call, analysis, rng, seconds))


def records_of(call: KernelCall, checks: Sequence[ArgumentCheck]) -> Iterator[KernelCheck]:
    """The checks of one launch as they are sent."""
    for check in checks:
        yield KernelCheck(
            kernel=call.name,
            defined=definition(call.kernel),
            launched=places(call.stack),
            status=check.status,
            reason=f"`{check.place}`: {check.reason}",
            ad=check.ad,
            fd=check.fd,
            argument=check.name,
        )


def _checked(
    call: KernelCall, analysis: Analysis, rng: np.random.Generator, seconds: float
) -> tuple[ArgumentCheck, ...]:
    """The checks of all arrays; a failure counts if it is there too over those alone that have a gradient.

    The program does not differentiate through the others (a residual that the host reads): their share of the adjoint
    is never run. No check where nothing can be asked.
    """
    bound = [(slot, view_of(call, slot)) for slot in call.layout.slots]
    arrays = [(slot, view) for slot, view in bound if view is not None]
    accesses = accesses_of(call, analysis)
    found = LaunchCheck(call, accesses, arrays).run(rng, seconds)
    if not any(check.status is GradientStatus.FAIL for check in found):
        return found
    with_gradient = [(slot, view) for slot, view in arrays if descriptor(call.params[slot.parameter], slot.offset).grad]
    if len(with_gradient) == len(arrays):
        return found
    return LaunchCheck(call, accesses, with_gradient).run(rng, seconds) or found


def accesses_of(call: KernelCall, analysis: Analysis) -> dict[str, Access]:
    """What a launch does with each of its arrays, by its path."""
    return {slot.path: analysis.survey.accesses.of(call, slot) for slot in call.layout.slots}


class LaunchCheck:
    """One launch as a function of its arrays (or of some of them), and its adjoint; memory is left as it was found."""

    def __init__(
        self, call: KernelCall, accesses: Mapping[str, Access], arrays: list[tuple[ArraySlot, FloatView]]
    ) -> None:
        """``accesses``: what the launch does with each array, by its path."""
        self._call = call
        self._before = Contents(call.touched)
        self._views: dict[str, FloatView] = {}
        self._names: dict[str, list[str]] = {}
        self._slots: dict[str, list[tuple[int, int, int]]] = {}
        self._written: list[str] = []
        for slot, view in arrays:
            name = self._same_memory(view) or slot.path
            self._views.setdefault(name, view)
            self._names.setdefault(name, []).append(slot.path)
            offset = view.address - self._views[name].address
            self._slots.setdefault(name, []).append((slot.parameter, slot.offset, offset))
            if accesses[slot.path].writes and name not in self._written:
                self._written.append(name)

    def _same_memory(self, view: FloatView) -> str | None:
        """The array, bound already, that this one shares memory with."""
        low, stop = view.span
        for name, other in self._views.items():
            start, end = other.span
            if low < end and start < stop:
                return name
        return None

    def run(self, rng: np.random.Generator, seconds: float) -> tuple[ArgumentCheck, ...]:
        """The judgement of each array, under every name it has; none if nothing can be differentiated, or too much."""
        if not self._written or sum(memory.size for memory in self._call.touched) > LARGEST:
            return ()
        if any(memory.canary_is_dead() for memory in self._call.touched):
            return ()
        inputs = {name: view.read() for name, view in self._views.items()}
        epsilon = epsilon_of(view.kind for view in self._views.values())
        began = time.perf_counter()
        self._forward({})
        budget = int(min(MOST, max(LEAST, seconds / (time.perf_counter() - began))))
        try:
            found = check_operation(
                self._forward, self._adjoint, inputs, self._written, rng, dtype_eps=epsilon, budget=budget
            )
            checks = [self._doubted(check, inputs, epsilon) for check in found.arguments]
            return tuple(dataclasses.replace(c, name=name) for c in checks for name in self._names[c.name])
        except OutOfBudget:
            return ()
        finally:
            self._before.restore()

    def _doubted(self, found: ArgumentCheck, inputs: State, epsilon: float) -> ArgumentCheck:
        """A failure is no proof where a change of the argument drowns in the rounding of what it changes."""
        if found.status is not GradientStatus.FAIL:
            return found
        values = np.asarray(inputs[found.name])
        base = self._forward({})
        after = [self._forward({found.name: (values * (1.0 + step)).astype(values.dtype)}) for step in STEPS]
        change = rounding = 0.0
        for name, start in base.items():
            known = np.isfinite(start) & np.isfinite(after[0][name])
            moving = np.logical_or.reduce([np.isfinite(state[name]) & (state[name] != start) for state in after])
            first = after[0][name][known & moving].astype(np.float64)
            change += float(np.sum(np.abs(first - start[known & moving])))
            rounding += float(np.sum(epsilon * np.abs(first)))
        if change > 32.0 * rounding:
            return found
        reason = f"what it changes is within {change / max(rounding, 1e-300):.0f} units of rounding"
        return dataclasses.replace(found, status=GradientStatus.INCONCLUSIVE, reason=reason)

    def _forward(self, values: State) -> State:
        self._before.restore()
        for name, array in values.items():
            self._views[name].write(array)
        self._call.run()
        return {name: self._views[name].read() for name in self._written}

    def _adjoint(self, cotangents: State) -> State:
        """The gradients afterwards; in float64 where the adjoint adds to what it finds, so that no share is lost.

        A contribution that is small beside the starting gradient would be rounded away in it: it is taken from a run
        that starts from zero, once it is seen that the two runs are the same but for the start.
        """
        whole = self._run_adjoint(cotangents)
        pure = {name: array for name, array in cotangents.items() if name in self._written}
        alone = self._run_adjoint(pure)
        result = dict(whole)
        for name in self._views:
            if name in self._written or name not in cotangents:
                continue
            start = np.asarray(cotangents[name], dtype=np.float64)
            added = start + alone[name].astype(np.float64)
            room = 8 * np.finfo(whole[name].dtype).eps * (np.abs(start) + np.abs(added))
            if bool((np.abs(whole[name] - added) <= room).all()):
                result[name] = added
        return result

    def _run_adjoint(self, cotangents: State) -> State:
        """On the memory that the launch left, as a tape finds it when nothing else has overwritten it."""
        self._before.restore()
        self._call.run()
        gradients = {name: self._gradient(name) for name in self._views}
        for name, array in cotangents.items():
            self._in(gradients[name], name).write(np.asarray(array))
        params = copied(self._call.params)
        params += adjoint_parameters(params)
        count = len(self._call.layout.names)
        for name, slots in self._slots.items():
            for parameter, offset, shift in slots:
                data = descriptor(params[parameter], offset)
                adjoint = descriptor(params[parameter + count], offset)
                data.grad = adjoint.data = self._address(gradients[name], name) + shift
                adjoint.ndim, data.flags = data.ndim, 0
                for axis in range(int(data.ndim)):
                    adjoint.shape[axis], adjoint.strides[axis] = data.shape[axis], data.strides[axis]
        Packed(self._call.kernel, self._call.hooks, params, adjoint=True)()
        return {name: self._in(gradient, name).read() for name, gradient in gradients.items()}

    def _gradient(self, name: str) -> npt.NDArray[np.uint8]:
        """A zeroed buffer for the gradient, with room around it for adjoints that leave their bounds."""
        low, stop = self._views[name].span
        return np.zeros(stop - low + 2 * _MARGIN, dtype=np.uint8)

    def _address(self, buffer: npt.NDArray[np.uint8], name: str) -> int:
        view = self._views[name]
        return int(buffer.ctypes.data) + _MARGIN + view.address - view.span[0]

    def _in(self, buffer: npt.NDArray[np.uint8], name: str) -> FloatView:
        return self._views[name].at(self._address(buffer, name))


_MARGIN = 256

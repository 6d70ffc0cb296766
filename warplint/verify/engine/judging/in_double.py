"""Where differences are dead in single precision: the adjoints of the launches on the tape, each alone, in double.

That does not prove the gradient; it takes the kernels out of the question, or finds the one that is wrong.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from warplint.dataclass import dataclass
from warplint.verify.engine.differences.measure import Clock, Measurement, otherwise
from warplint.verify.engine.execution.accesses import view_of
from warplint.verify.engine.execution.memory import Memory
from warplint.verify.engine.execution.operations import KernelCall
from warplint.verify.engine.judging.contributions import cache_apart
from warplint.verify.engine.judging.launch_check import LaunchCheck, accesses_of, first_launches, records_of
from warplint.verify.engine.kernels.in_double import in_double
from warplint.verify.engine.kernels.kernel_check import ArgumentCheck
from warplint.verify.engine.kernels.rewriting import NotRewritable
from warplint.verify.engine.replaying.analysis import Analysis
from warplint.verify.engine.replaying.groups import Group
from warplint.verify.engine.replaying.replay import Machine
from warplint.verify.engine.warp_functions import hooks_of
from warplint.verify.engine.warp_types import doubled
from warplint.verify.engine.warp_values import Packed, copied, descriptor, layout_of
from warplint.verify.records import GradientStatus, KernelCheck

SECONDS = 20.0
"""What must be left of the time limit for a kernel to be built again."""
MOST_KERNELS = 4
MOST = 1 << 22
"""Numbers in one array of a launch that is made anew in double precision."""


@dataclass(frozen=True)
class InDouble:
    """Checks the launches of a group's tapes alone, in double precision."""

    machine: Machine
    analysis: Analysis
    clock: Clock
    known: dict[int, tuple[ArgumentCheck, ...]] = field(default_factory=dict)
    """What was found of a kernel, by its identity: to build one again takes seconds."""

    def tried(
        self, group: Group, found: Measurement, rng: np.random.Generator
    ) -> tuple[Measurement, list[KernelCheck]]:
        """What was found, and what the launches alone have to add to it; the checks of those that are wrong."""
        right, wrong, left = list[str](), list[KernelCheck](), list[str]()
        for call in self._launches(group):
            if id(call.kernel) not in self.known:
                self.known[id(call.kernel)] = self._checked(call, rng)
            checks = self.known[id(call.kernel)]
            failed = [check for check in checks if check.status is GradientStatus.FAIL]
            passed = [check for check in checks if check.status is GradientStatus.PASS]
            if failed:
                wrong.extend(records_of(call, [replace(f, reason=f"in double precision: {f.reason}") for f in failed]))
            elif passed:
                right.append(f"`{call.name}`")
            else:
                left.append(f"`{call.name}`")
        said = []
        if wrong:
            said.append(f"the adjoint of `{wrong[0].kernel}` is wrong in double precision ({wrong[0].reason})")
        if right:
            said.append(
                f"in double precision the adjoint of {', '.join(right)} is right for what this launch was given"
            )
        if left:
            said.append(f"{', '.join(left)} could not be looked at in double precision")
        return otherwise(found, found.status, "; ".join((found.reason, *said))), wrong

    def _launches(self, group: Group) -> list[KernelCall]:
        taped = {
            id(entry.forward.kernel)
            for begin in group.backwards
            for entry in begin.entries
            if entry is not None and isinstance(entry.forward, KernelCall)
        }
        return [call for call in first_launches(self.analysis) if id(call.kernel) in taped][:MOST_KERNELS]

    def _checked(self, call: KernelCall, rng: np.random.Generator) -> tuple[ArgumentCheck, ...]:
        if self.clock.left < SECONDS:
            return ()
        self.machine.rewind(call.index)
        try:
            with cache_apart():
                made = _made(call)
        except Exception:  # whatever Warp says to the changed text: it has no form in double precision
            return ()
        arrays = [(slot, view) for slot in made.call.layout.slots if (view := view_of(made.call, slot)) is not None]
        return LaunchCheck(made.call, accesses_of(call, self.analysis), arrays).run(rng, 1.0)


@dataclass(frozen=True)
class _Made:
    """A launch in double precision; ``buffers`` hold its arrays."""

    call: KernelCall
    buffers: tuple[npt.NDArray[np.float64], ...]


def _made(call: KernelCall) -> _Made:
    """The same launch with its numbers in double precision.

    Raises:
        NotRewritable: it has no such form, or arrays that share memory.
    """
    if call.blocks:
        raise NotRewritable("it runs in blocks")
    kernel = in_double(call.kernel)
    hooks = hooks_of(kernel)
    layout = layout_of(kernel)
    params = copied(call.params)
    buffers: list[npt.NDArray[np.float64]] = []
    memories = [memory for memory in call.memories if memory.gradient_of is None]
    spans: list[tuple[int, int]] = []
    for position, argument in enumerate(call.kernel.adj.args, start=1):
        if not hasattr(argument.type, "ndim") and doubled(argument.type) is not argument.type:
            params[position] = _value(params[position], doubled(argument.type))
    for slot in call.layout.slots:
        view = view_of(call, slot)
        if view is None:
            continue
        low, stop = view.span
        if any(low < end and start < stop for start, end in spans) or view.count > MOST:
            raise NotRewritable("its arrays share memory, or are too large")
        spans.append((low, stop))
        buffer = np.ascontiguousarray(view.read(), dtype=np.float64)
        buffers.append(buffer)
        found = descriptor(params[slot.parameter], slot.offset)
        found.data, found.grad, found.flags = buffer.ctypes.data, 0, 0
        for axis in range(int(found.ndim)):
            found.strides[axis] = buffer.strides[axis]
        memories.append(Memory(-1 - len(buffers), buffer.ctypes.data, buffer.nbytes))
    changed = KernelCall(
        call.index,
        call.stack,
        None,
        None,
        None,
        kernel=kernel,
        hooks=hooks,
        params=params,
        adjoint=False,
        blocks=False,
        layout=layout,
        memories=tuple(memories),
    )
    Packed(kernel, hooks, params, adjoint=False)
    return _Made(changed, tuple(buffers))


def _value(value: Any, kind: Any) -> Any:
    """A scalar, vector or matrix in double precision, as a launch is given it."""
    if isinstance(value, ctypes._SimpleCData):
        return ctypes.c_double(float(value.value))
    return kind(*(float(number) for number in _numbers(value)))


def _numbers(value: Any) -> Iterator[float]:
    for part in value:
        if isinstance(part, Sequence) or hasattr(part, "__iter__"):
            yield from _numbers(part)
        else:
            yield part

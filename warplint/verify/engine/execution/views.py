"""Floating-point numbers in raw memory: what a leaf, a gradient or a seed is made of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from warplint.dataclass import dataclass
from warplint.verify.engine.execution.memory import live_bytes
from warplint.verify.engine.warp_values import Scalars


@dataclass(frozen=True)
class FloatView:
    """The floats of an array in memory: its address, shape, strides (bytes), and where they lie in an element.

    Values are handed out with the components as a trailing axis, ``(*shape, components)``, or ``shape`` for scalars.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    scalars: Scalars

    @classmethod
    def of(cls, descriptor: Any, scalars: Scalars, address: int | None = None) -> FloatView:
        """The floats of an ``array_t``; ``address`` in place of its data (its gradient lies the same way)."""
        axes = range(int(descriptor.ndim))
        return cls(
            int(descriptor.data) if address is None else address,
            tuple(int(descriptor.shape[axis]) for axis in axes),
            tuple(int(descriptor.strides[axis]) for axis in axes),
            scalars,
        )

    @classmethod
    def flat(cls, address: int, size: int, kind: np.dtype[Any]) -> FloatView:
        """``size`` bytes of numbers of one kind, one after the other."""
        return cls(address, (size // kind.itemsize,), (kind.itemsize,), Scalars(kind, (0,), kind.itemsize))

    @property
    def kind(self) -> np.dtype[Any]:
        """The numpy type of the numbers."""
        assert self.scalars.kind is not None
        return self.scalars.kind

    @property
    def components(self) -> int:
        """Floats in one element."""
        return len(self.scalars.offsets)

    @property
    def count(self) -> int:
        """Floats in all."""
        return math.prod(self.shape) * self.components

    @property
    def span(self) -> tuple[int, int]:
        """First address and the one behind the last element."""
        low = high = self.address
        for extent, stride in zip(self.shape, self.strides, strict=True):
            if extent <= 0:
                return self.address, self.address
            low, high = low + min(0, (extent - 1) * stride), high + max(0, (extent - 1) * stride)
        return low, high + self.scalars.size

    def at(self, address: int) -> FloatView:
        """The same layout elsewhere."""
        return FloatView(address, self.shape, self.strides, self.scalars)

    def _parts(self) -> list[npt.NDArray[Any]]:
        """Live numpy views: one where the components lie evenly, else one a component."""
        low, stop = self.span
        memory = live_bytes(low, stop - low)
        item = self.kind.itemsize
        offsets = self.scalars.offsets
        base = self.address - low
        if offsets == tuple(range(offsets[0], offsets[0] + item * len(offsets), item)):
            shape, strides = (*self.shape, len(offsets)), (*self.strides, item)
            return [np.ndarray(shape, self.kind, memory.data, base + offsets[0], strides)]
        return [np.ndarray((*self.shape, 1), self.kind, memory.data, base + o, (*self.strides, item)) for o in offsets]

    def read(self) -> npt.NDArray[Any]:
        """A copy of the numbers."""
        if self.count == 0:
            return np.zeros((*self.shape, *self._trailing()), dtype=self.kind)
        values = np.concatenate(self._parts(), axis=-1)
        return values if self._trailing() else values[..., 0]

    def write(self, values: npt.NDArray[Any]) -> None:
        """Put numbers there."""
        if self.count == 0:
            return
        values = values if self._trailing() else values[..., None]
        done = 0
        for part in self._parts():
            width = part.shape[-1]
            part[...] = values[..., done : done + width]
            done += width

    def _trailing(self) -> tuple[int, ...]:
        return (self.components,) if self.components > 1 else ()

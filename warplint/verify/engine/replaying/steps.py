"""What a window runs in the place of its operations."""

from __future__ import annotations

from dataclasses import field
from typing import Protocol

from warplint.dataclass import dataclass
from warplint.verify.engine.execution.memory import Bytes, Memory
from warplint.verify.engine.execution.operations import Operation


class Runnable(Protocol):
    """What may stand in the place of an operation."""

    def run(self) -> None:
        """Do it on the memory as it is."""


@dataclass
class Frozen:
    """An operation that hands gradients on to data (an optimiser's step): repeated as it came out, not run again."""

    operation: Operation
    images: list[tuple[Memory, Bytes]] = field(default_factory=list)

    def run(self) -> None:
        """Put its results there."""
        for memory, contents in self.images:
            memory.write(contents)


@dataclass(frozen=True)
class Put:
    """What a memory held when an operation used it, which the log has a copy of."""

    memory: Memory
    contents: Bytes

    def run(self) -> None:
        """Put it there."""
        self.memory.write(self.contents)


Step = Operation | Frozen | Runnable


def number_of(step: Step) -> int:
    """The number of the operation that a step is or stands for; -1 of one that is only inserted."""
    return step.operation.index if isinstance(step, Frozen) else getattr(step, "index", -1)


def touched_by(step: Operation | Frozen) -> tuple[Memory, ...]:
    """Every memory that a step may read or write by address."""
    return step.operation.touched if isinstance(step, Frozen) else step.touched

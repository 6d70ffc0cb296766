"""The classes of wrong gradients, as records: what a person who knows the theory would call the figures.

A class is named where measurements tell it, never by the look of one number; where they name none, none is said. Both
sides import this module, so it uses the standard library alone.
"""

from __future__ import annotations

import enum

from warplint.dataclass import dataclass
from warplint.verify.build_records import Place


class SignatureKind(str, enum.Enum):
    """What kind of wrong a gradient is; ``FLAT``, ``KINKS`` and ``OPTIMISATION`` may be said of right ones."""

    ZERO = "zero"
    """Every component is exactly zero although the loss moves with the leaf: the chain is cut, or it was cleared."""
    FLAT = "flat"
    """Zero, and rightly: the loss is constant almost everywhere."""
    FACTOR = "factor"
    """The same multiple of the difference in every direction: a seed, a scale, something done twice."""
    GROWING = "growing"
    """It still holds what the iteration before left, to the bit; without that it is right."""
    NOT_FINITE = "not-finite"
    """NaN or inf, with the first operation that made it."""
    OVERWRITE = "overwrite"
    """Right once each adjoint finds the values of its own launch: subtly wrong, and more so with each step."""
    TRUNCATED = "truncated"
    """Right for each tape's window, wrong for the whole horizon."""
    WRONG_ADJOINT = "wrong-adjoint"
    """A kernel's (or a recorded function's) own adjoint is wrong."""
    KINKS = "kinks"
    """It parts from differences only where coordinates stand on kinks, and agrees elsewhere."""
    HELD_CONSTANT = "held-constant"
    """Right if what no tape recorded is held as it came out: a surrogate, or launches that were forgotten."""
    HOST_LOOP = "host-loop"
    """The way from the leaf to the loss passes the host, where no tape looks."""
    OPTIMISATION = "optimisation"
    """The gradient is right, and the step that is made with it raises the loss: not a gradient fault."""


@dataclass(frozen=True)
class Signature:
    """A class and the measurement that names it, in words; ``factor`` is the multiple of a ``FACTOR``.

    ``operation`` and ``at`` are the launch (its kernel, its stack) that a ``NOT_FINITE`` or ``WRONG_ADJOINT`` begins
    with.
    """

    kind: SignatureKind
    text: str
    factor: float | None = None
    operation: str = ""
    at: tuple[Place, ...] = ()

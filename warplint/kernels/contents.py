"""What arrays hold, as far as a program's text says: numbers, or unknown ones that can still be told to be equal."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from dataclasses import field

from warplint.dataclass import dataclass
from warplint.kernels.types import Kind, Type

_identities = itertools.count()


@dataclass(frozen=True)
class Unseen:
    """A number that nobody knows. Two with one ``key`` are equal whatever they are; None equals nothing."""

    key: Hashable = None
    size: int = 1
    """How many numbers went into it, so that keys stay small."""

    def same(self, other: object) -> bool:
        """Whether the other number is certainly the same one."""
        return isinstance(other, Unseen) and self.key is not None and self.key == other.key


UNSEEN = Unseen()

Number = int | float | Unseen
Index = tuple[int, ...]


@dataclass
class Contents:
    """The numbers of one memory: first ``given`` (flat, or one for all), or unknown; then what was ``written`` since.

    ``shape`` is that of the elements; an element of a vector has its components behind its index. Two memories of one
    ``identity`` held the same unknown numbers.
    """

    shape: tuple[int | None, ...] | None = None
    given: Sequence[float] | float | None = None
    written: dict[Index, Number] = field(default_factory=dict)
    identity: Hashable = field(default_factory=lambda: next(_identities))

    def copy(self) -> Contents:
        """The same numbers in another memory."""
        return Contents(self.shape, self.given, dict(self.written), self.identity)

    def forget(self) -> None:
        """Something unknown was written somewhere."""
        self.given, self.identity = None, next(_identities)
        self.written.clear()

    @property
    def even(self) -> bool:
        """Whether all numbers are one number, so that no index matters."""
        return self.given is not None and not isinstance(self.given, Sequence) and not self.written

    def read(self, index: Index, width: int = 1) -> Number:
        """The number at an element's index, followed by its component's where an element has ``width`` of them."""
        if index in self.written:
            return self.written[index]
        if self.given is None:
            return Unseen((self.identity, index))
        if not isinstance(self.given, Sequence):
            return self.given
        position = self._position(index, width)
        return self.given[position] if position is not None and position < len(self.given) else UNSEEN

    def _position(self, index: Index, width: int) -> int | None:
        if self.shape is None:
            return None
        extents = (*self.shape, width) if len(index) > len(self.shape) else self.shape
        if len(index) != len(extents):
            return None
        position = 0
        for number, extent in zip(index, extents, strict=True):
            if extent is None or not 0 <= number < extent:
                return None
            position = position * extent + number
        return position

    def total(self) -> Number:
        """The sum of all numbers of an array of numbers."""
        if self.shape is None or any(extent is None for extent in self.shape):
            return UNSEEN
        extents = [range(extent) for extent in self.shape if extent is not None]
        total: float = 0.0
        for index in itertools.product(*extents):
            number = self.read(index)
            if isinstance(number, Unseen):
                return UNSEEN
            total += number
        return total


def element(contents: Contents, index: Index, of: Type) -> object:
    """The value of one element: a number, a tuple of components, a tuple of rows."""
    if of.kind is Kind.SCALAR:
        return contents.read(index)
    if of.length is None or of.kind not in (Kind.VECTOR, Kind.MATRIX, Kind.QUATERNION):
        return UNSEEN
    numbers = tuple(contents.read((*index, position), of.length) for position in range(of.length))
    if of.kind is not Kind.MATRIX:
        return numbers
    if not of.columns:
        return UNSEEN
    return tuple(numbers[start : start + of.columns] for start in range(0, of.length, of.columns))


def put(contents: Contents, index: Index, of: Type, value: object) -> None:
    """Store a value to an element."""
    if of.kind is Kind.SCALAR:
        contents.written[index] = value if isinstance(value, (int, float, Unseen)) else UNSEEN
    elif of.length is None:
        contents.forget()
    else:
        numbers = _flat(value)
        for position in range(of.length):
            place = (*index, position)
            contents.written[place] = numbers[position] if len(numbers) == of.length else UNSEEN


def _flat(value: object) -> list[Number]:
    if isinstance(value, tuple):
        return [number for part in value for number in _flat(part)]
    return [value] if isinstance(value, (int, float, Unseen)) else []

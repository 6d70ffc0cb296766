"""Arrays: a handle and a memory, views and aliases that share it, and their snapshots as events see them.

A memory is counted in rows of its first dimension. A handle covers a range of rows, all of it, or a part nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from warplint.dataclass import dataclass
from warplint.trace import events
from warplint.trace.events import UNKNOWN_EXTENT, WHOLE, Alias, Extent, Moved
from warplint.trace.host.values import NO_SOURCES, Class, Instance, UnknownValue, Value

Shape = tuple["int | None", ...]

SMALL = 64
"""Literal contents are kept up to this many numbers."""


@dataclass(eq=False)
class Memory:
    """One allocation while the run goes on; :meth:`snapshot` makes the event's record of it at the end."""

    id: int
    allocated: events.Stack
    made_by: str
    requires_grad: bool | None = False
    retain_grad: bool = False
    dtype: str | None = None
    shape: Shape | None = None
    name: str = ""
    contents: tuple[float, ...] | None = None
    copied_from: int | None = None
    outside: bool = False
    extents: dict[int, UnknownValue] = field(default_factory=dict)
    """The unknown sizes by dimension, so that two questions for one size get one answer."""
    on_host: bool = True
    """Whether ``.numpy()`` may share this memory (false where a device other than the CPU is named)."""

    def snapshot(self) -> events.Memory:
        """The record that rules see."""
        return events.Memory(
            id=self.id,
            allocated=self.allocated,
            made_by=self.made_by,
            requires_grad=self.requires_grad,
            retain_grad=self.retain_grad,
            dtype=self.dtype,
            shape=self.shape,
            name=self.name,
            contents=self.contents,
            copied_from=self.copied_from,
            outside=self.outside,
        )


@dataclass(eq=False)
class ArrayValue:
    """A ``wp.array``: a handle on (a part of) a memory or, with ``gradient``, on its gradient.

    ``row_major``: the first dimension counts the memory's rows, so that indexing is exact.
    """

    memory: Memory
    extent: Extent = WHOLE
    gradient: bool = False
    alias: Alias = Alias.NONE
    own_requires_grad: bool | None = None
    dtype: str | None = None
    shape: Shape | None = None
    row_major: bool = True
    moved: Moved | None = None
    own_gradient: Value = None
    """The gradient array that was given (``grad=``) or set (``x.grad = …``)."""
    _shown: events.Array | None = field(default=None, init=False, repr=False)
    """The last snapshot: a loop launches on the same arrays again and again."""

    @property
    def requires_grad(self) -> bool | None:
        """The flag of this handle; a view's is its root's, a pointer alias has its own, a gradient has none."""
        if self.gradient:
            return False
        return self.own_requires_grad if self.alias is Alias.POINTER else self.memory.requires_grad

    @property
    def ndim(self) -> int | None:
        """The number of dimensions."""
        return None if self.shape is None else len(self.shape)

    def snapshot(self, name: str = "") -> events.Array:
        """The handle as an event sees it now."""
        name, flag, shown = name or self.memory.name, self.requires_grad, self._shown
        if shown is None or shown.name != name or shown.requires_grad is not flag or shown.moved is not self.moved:
            shown = self._shown = events.Array(
                memory=self.memory.id,
                extent=self.extent,
                gradient=self.gradient,
                alias=self.alias,
                requires_grad=flag,
                name=name,
                moved=self.moved,
            )
        return shown

    def size_along(self, dimension: int) -> Value:
        """The number of elements along a dimension; an unknown one is the same value at each question."""
        if self.shape is not None and -len(self.shape) <= dimension < len(self.shape):
            known = self.shape[dimension]
            if known is not None:
                return known
        key = dimension if self.extent == WHOLE else -1000 - dimension
        if key not in self.memory.extents:
            self.memory.extents[key] = UnknownValue("the size of an array")
        return self.memory.extents[key]

    def viewed(self, extent: Extent, shape: Shape | None, row_major: bool, dtype: str | None = None) -> ArrayValue:
        """Another handle on the same memory."""
        alias = Alias.VIEW if self.alias is Alias.NONE else self.alias
        return ArrayValue(
            memory=self.memory,
            extent=extent,
            gradient=self.gradient,
            alias=alias,
            own_requires_grad=self.own_requires_grad,
            dtype=dtype or self.dtype,
            shape=shape,
            row_major=row_major,
            moved=self.moved,
        )

    def reshaped(self, shape: Shape | None, dtype: str | None = None) -> ArrayValue:
        """``reshape``, ``flatten``, ``view``, ``transpose``: the same elements under another shape."""
        return self.viewed(self.extent, shape, False, dtype)

    def indexed(self, index: Value) -> ArrayValue:
        """``array[index]`` on the host: a view. Sub-parts of a row are a part nobody knows."""
        first, rest = (index[0], index[1:]) if isinstance(index, tuple) and index else (index, ())
        shape = self._indexed_shape(first, rest)
        trivial = all(isinstance(part, slice) and part == slice(None) for part in rest)
        if not self.row_major or not trivial or first is Ellipsis:
            return self.viewed(UNKNOWN_EXTENT, shape, False)
        start = self.extent.start or 0
        rows = self.shape[0] if self.shape else None
        if isinstance(first, bool) or not isinstance(first, (int, slice)):
            return self.viewed(UNKNOWN_EXTENT, shape, False)
        if isinstance(first, int):
            if first < 0:
                if rows is None:
                    return self.viewed(UNKNOWN_EXTENT, shape, False)
                first += rows
            return self.viewed(Extent(start + first, start + first + 1), shape, False)
        if first == slice(None):
            return self.viewed(self.extent, self.shape, True)
        bounds = _slice_bounds(first, rows)
        if bounds is None:
            return self.viewed(UNKNOWN_EXTENT, shape, False)
        return self.viewed(Extent(start + bounds[0], start + bounds[1]), shape, True)

    def _indexed_shape(self, first: Value, rest: tuple[Value, ...]) -> Shape | None:
        if self.shape is None or first is Ellipsis:
            return None
        shape: list[int | None] = []
        indices = (first, *rest)
        for position, size in enumerate(self.shape):
            part = indices[position] if position < len(indices) else slice(None)
            if isinstance(part, slice):
                bounds = (0, size) if part == slice(None) else _slice_bounds(part, size)
                shape.append(bounds[1] - bounds[0] if bounds is not None and bounds[1] is not None else None)
            elif not isinstance(part, (int, UnknownValue)):
                return None
        return tuple(shape)


def _slice_bounds(part: slice, size: int | None) -> tuple[int, int] | None:
    """Start and stop of a slice in rows, None where they are not known or rows are left out."""
    step = part.step
    if step not in (None, 1):
        return None
    for bound in (part.start, part.stop):
        if bound is not None and (not isinstance(bound, int) or isinstance(bound, bool)):
            return None
    if size is None:
        if part.stop is None or part.stop < 0 or (part.start or 0) < 0:
            return None
        return (part.start or 0), part.stop
    start, stop, _ = part.indices(size)
    return start, max(start, stop)


@dataclass(eq=False)
class NumpyValue:
    """A numpy array (or scalar array): its shape and small literal contents where known, and where they came from.

    ``array`` is the Warp array whose memory it shares; ``memory`` the memory it has of its own once Warp shares it.
    ``taken`` is the place of the ``.numpy()`` that made it a view of a gradient.
    """

    shape: Shape | None = None
    dtype: str | None = None
    contents: list[float] | None = None
    sources: frozenset[int] = NO_SOURCES
    array: ArrayValue | None = None
    memory: Memory | None = None
    allocated: events.Stack = ()
    taken: events.Stack = ()

    def alias(self) -> ArrayValue | None:
        """The handle that a store through this numpy array writes to, None where it shares nothing."""
        if self.array is not None:
            return ArrayValue(
                memory=self.array.memory,
                extent=self.array.extent,
                gradient=self.array.gradient,
                alias=Alias.NUMPY,
                own_requires_grad=self.array.own_requires_grad,
                dtype=self.array.dtype,
                shape=self.array.shape,
                row_major=self.array.row_major,
            )
        if self.memory is not None:
            return ArrayValue(self.memory, alias=Alias.NUMPY, dtype=self.dtype, shape=self.shape)
        return None


@dataclass(frozen=True)
class Pointer:
    """``array.ptr``."""

    array: ArrayValue


def arrays_in(value: Value, depth: int = 4) -> Iterator[ArrayValue]:
    """The arrays that a value holds: itself, in containers, in the attributes of objects of the project."""
    if isinstance(value, ArrayValue):
        yield value
    elif depth <= 0:
        return
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in list(value)[:SMALL]:
            yield from arrays_in(item, depth - 1)
    elif isinstance(value, dict):
        for item in list(value.values())[:SMALL]:
            yield from arrays_in(item, depth - 1)
    elif isinstance(value, Instance):
        for item in list(value.attributes.values())[:SMALL]:
            if not isinstance(item, (Instance, Class)) or depth > 2:
                yield from arrays_in(item, depth - 2 if isinstance(item, Instance) else depth - 1)

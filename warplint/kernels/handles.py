"""Array parameters in a kernel that is executed on contents: what a launch bound, and the indices applied so far."""

from __future__ import annotations

from collections.abc import Iterable

from warplint.dataclass import dataclass
from warplint.kernels.arithmetic import Value
from warplint.kernels.contents import UNSEEN, Contents, Index, Unseen, element, put
from warplint.kernels.types import Kind, Type


@dataclass(frozen=True)
class Bound:
    """What a launch binds to an array parameter: a memory, and the index of the part that is meant.

    ``of`` is the type of an element, ``dimensions`` counts the handle's indices. ``first`` are the leading indices that
    the handle fixes, ``offset`` the row at which it begins; ``known`` false: it is some part of the memory.
    """

    contents: Contents
    of: Type
    dimensions: int = 1
    first: Index = ()
    offset: int = 0
    known: bool = True


@dataclass(frozen=True)
class Handle:
    """An array parameter in the kernel, with the indices applied so far (``row = a[i]``)."""

    bound: Bound
    indices: Index | None = ()


def constructed(of: Type, arguments: list[Value]) -> Value:
    """``float(x)``, ``wp.vec3(x, y, z)``, ``wp.vec3(x)``, ``wp.vec3()``."""
    if of.kind is Kind.SCALAR:
        value = arguments[0] if arguments else 0
        if not isinstance(value, (int, float)):
            return value if isinstance(value, Unseen) and of.floating else UNSEEN
        return bool(value) if of.name == "bool" else float(value) if of.floating else int(value)
    if of.kind is not Kind.VECTOR or of.length is None:
        return UNSEEN
    if len(arguments) == 1 and isinstance(arguments[0], tuple):
        return arguments[0] if len(arguments[0]) == of.length else UNSEEN
    numbers = arguments * of.length if len(arguments) == 1 else arguments or [0.0] * of.length
    if len(numbers) != of.length or any(isinstance(each, tuple) for each in numbers):
        return UNSEEN
    return tuple(float(each) if of.floating and isinstance(each, int) else each for each in numbers)


def further(handle: Handle, indices: Index | None) -> Handle:
    """The handle with more indices; None where one of them is not known."""
    if handle.indices is None or indices is None:
        return Handle(handle.bound, None)
    return Handle(handle.bound, handle.indices + indices)


def loaded(handle: Handle) -> Value:
    """An element as memory holds it now."""
    index = index_of(handle)
    if index is None and handle.bound.contents.even:
        index = ()
    return element(handle.bound.contents, index, handle.bound.of) if index is not None else UNSEEN


def stored(handle: Handle, value: Value) -> None:
    """Store to an element; where nobody knows to which, all of the memory is unknown from then on."""
    index = index_of(handle)
    if index is None:
        handle.bound.contents.forget()
    else:
        put(handle.bound.contents, index, handle.bound.of, value)


def index_of(handle: Handle) -> Index | None:
    """The index in memory, None where nobody knows it or it means no whole element."""
    bound, indices = handle.bound, handle.indices
    if indices is None or not bound.known or len(indices) != bound.dimensions:
        return None
    return (*bound.first, indices[0] + (0 if bound.first else bound.offset), *indices[1:])


def with_part(owner: tuple[Value, ...], indices: Index, value: Value) -> Value:
    """A composite with one part replaced."""
    number, rest = indices[0], indices[1:]
    if not -len(owner) <= number < len(owner) or (rest and not isinstance(owner[number], tuple)):
        return UNSEEN
    parts = list(owner)
    parts[number] = with_part(parts[number], rest, value) if rest else value
    return tuple(parts)


def forget(values: Iterable[Value]) -> None:
    """Arrays that go into something unknown may be written there."""
    for value in values:
        if isinstance(value, Handle):
            value.bound.contents.forget()

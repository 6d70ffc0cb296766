"""Concrete types for the parameters of a kernel, generic or not: the part of the private room about signatures.

Like ``warp_hooks.py`` it touches private names of Warp (1.13 to 1.19 were looked at).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import warp

from warplint.verify.engine.warp_values import fields_of_struct

wp: Any = warp
Types = Mapping[str, Any]
"""A kernel's parameters and their types, in order."""

FREE_LENGTH = 3
"""The length of vectors, rows and columns that a generic kernel leaves open."""


def signatures_of(kernel: Any) -> Iterator[Types]:
    """Signatures to try, the best first: double precision where the kernel is generic, else what it was made for.

    A generic kernel may want single precision (it mixes its values with literals) or vectors; overloads that the
    program declared are tried as they are.
    """
    declared = dict(kernel.adj.arg_types)
    if not _is_generic(kernel):
        yield declared
        return
    yield _with(declared, wp.float64, wp.float64)
    for overload in list(kernel.overloads.values()):
        yield {str(argument.label): argument.type for argument in overload.adj.args}
    yield _with(declared, wp.float32, wp.float32)
    yield _with(declared, wp.vec3d, wp.float64)
    yield _with(declared, wp.vec3, wp.float32)


@contextmanager
def overloads_kept(kernel: Any) -> Iterator[None]:
    """Forget the overloads that were made inside where it ends in an exception: they would be built again and again."""
    before = dict(getattr(kernel, "overloads", {}))
    try:
        yield
    except BaseException:
        if _is_generic(kernel):
            kernel.overloads.clear()
            kernel.overloads.update(before)
            kernel.module.mark_modified()
        raise


def doubled(kind: Any) -> Any:
    """The type with everything of single precision in it made double.

    Raises:
        TypeError: a struct, which the program lays out.
    """
    dtype, ndim = getattr(kind, "dtype", None), getattr(kind, "ndim", None)
    if dtype is not None and isinstance(ndim, int):
        inner = doubled(dtype)
        return kind if inner is dtype else wp.array(dtype=inner, ndim=ndim)
    if fields_of_struct(kind) is not None:
        raise TypeError("it takes a struct")
    if kind is float or kind is wp.float32:
        return wp.float64
    if not is_single(kind):
        return kind
    shape = tuple(kind._shape_)
    if wp.types.type_is_quaternion(kind):
        return wp.types.quaternion(dtype=wp.float64)
    if wp.types.type_is_transformation(kind):
        return wp.types.transformation(dtype=wp.float64)
    return wp.types.vector(shape[0], wp.float64) if len(shape) == 1 else wp.types.matrix(shape, wp.float64)


def is_single(kind: Any) -> bool:
    """Whether it is a scalar, vector or matrix type of single precision."""
    return isinstance(kind, type) and (kind is wp.float32 or getattr(kind, "_wp_scalar_type_", None) is wp.float32)


def is_users_function(value: Any) -> bool:
    """Whether it is a ``@wp.func`` of the program's, none of Warp's own."""
    return isinstance(value, wp.Function) and not value.is_builtin()


def _is_generic(kernel: Any) -> bool:
    return bool(getattr(kernel, "is_generic", False))


def _with(declared: Types, element: Any, scalar: Any) -> Types:
    """The types with everything that was left open filled in: elements of arrays, and scalars."""
    return {name: _filled(kind, element, scalar) for name, kind in declared.items()}


def _filled(kind: Any, element: Any, scalar: Any) -> Any:
    dtype, ndim = getattr(kind, "dtype", None), getattr(kind, "ndim", None)
    if dtype is not None and isinstance(ndim, int):
        inner = element if dtype is Any else _filled(dtype, element, scalar)
        return kind if inner is dtype else wp.array(dtype=inner, ndim=ndim)
    if kind is Any or kind is wp.Float or kind is wp.Scalar:
        return scalar
    if kind is wp.Int:
        return wp.int32
    shape = getattr(kind, "_shape_", None)
    if shape is None or not hasattr(kind, "_wp_scalar_type_"):
        return kind
    part = _filled(kind._wp_scalar_type_, scalar, scalar)
    open_shape = any(length == 0 for length in shape)
    if part is kind._wp_scalar_type_ and not open_shape:
        return kind
    lengths = tuple(length or FREE_LENGTH for length in shape)
    if wp.types.type_is_quaternion(kind):
        return wp.types.quaternion(dtype=part)
    if wp.types.type_is_transformation(kind):
        return wp.types.transformation(dtype=part)
    return wp.types.vector(lengths[0], part) if len(lengths) == 1 else wp.types.matrix(lengths, part)

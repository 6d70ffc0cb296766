"""Types of kernel values, as far as annotations and constructors tell them.

Only what the adjoint cares about is kept: whether numbers are real (integers carry no gradient), how many components
a vector has, how many indices an array takes, which fields a struct has. ``None`` is "cannot be told".
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
import re
from collections.abc import Mapping

from warplint.dataclass import dataclass
from warplint.kernels.source import Builtin, Constant, Scope, Struct, TypeAlias
from warplint.names import dotted


class Kind(enum.Enum):
    """What sort of thing a value is."""

    UNKNOWN = "unknown"
    SCALAR = "scalar"
    VECTOR = "vector"
    MATRIX = "matrix"
    QUATERNION = "quaternion"
    TRANSFORM = "transform"
    ARRAY = "array"
    STRUCT = "struct"
    TILE = "tile"
    TUPLE = "tuple"
    TYPE = "type"
    """A type as a value (``x.dtype``, ``type(x)``); ``element`` is the type meant."""
    OTHER = "other"


COMPOSITES = frozenset((Kind.VECTOR, Kind.MATRIX, Kind.QUATERNION, Kind.TRANSFORM))
"""Kinds whose components are assigned in place, by Warp's ``assign_inplace``."""


@dataclass(frozen=True)
class Type:
    """A type. ``floating`` is that of the numbers inside; ``length`` counts a composite's components."""

    kind: Kind = Kind.UNKNOWN
    floating: bool | None = None
    name: str = ""
    length: int | None = None
    columns: int | None = None
    ndim: int | None = None
    element: Type | None = None
    struct: Struct | None = None
    by_reference: bool = False


UNKNOWN = Type()
REAL = Type(Kind.SCALAR, True, "float")
INTEGER = Type(Kind.SCALAR, False, "int")
BOOLEAN = Type(Kind.SCALAR, False, "bool")
OTHER = Type(Kind.OTHER, False)
TUPLE = Type(Kind.TUPLE)
TILE = Type(Kind.TILE)

_SCALARS = {
    **dict.fromkeys(("float", "float16", "float32", "float64", "bfloat16", "half"), REAL),
    **dict.fromkeys(("int", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"), INTEGER),
    "bool": BOOLEAN,
}
_NAMED = re.compile(
    r"(?:(?P<vec>vec)(?P<length>\d)|(?P<mat>mat)(?P<rows>\d)(?P<columns>\d)"
    r"|(?P<quat>quat)|(?P<transform>transform)|(?P<svector>spatial_vector)|(?P<smatrix>spatial_matrix))"
    r"(?P<scalar>h|f|d|b|ub|s|us|i|ui|l|ul)?"
)
_ARRAY = re.compile(r"(?:indexed|fabric|indexedfabric|Indexed)?(?:array|Array)(?P<ndim>[1-4])?d?")
_GENERIC = {
    "vector": Kind.VECTOR,
    "vec": Kind.VECTOR,
    "vec_t": Kind.VECTOR,
    "matrix": Kind.MATRIX,
    "mat": Kind.MATRIX,
    "mat_t": Kind.MATRIX,
    "quaternion": Kind.QUATERNION,
    "transformation": Kind.TRANSFORM,
}


@functools.lru_cache(maxsize=512)
def named(name: str) -> Type | None:
    """The type that a bare name of Warp means: ``vec3d``, ``float64``, ``spatial_vector``; None if it is no type."""
    scalar = _SCALARS.get(name)
    if scalar is not None:
        return scalar if scalar.name == name else Type(scalar.kind, scalar.floating, name)
    match = _NAMED.fullmatch(name)
    if match is None:
        return None
    floating = match["scalar"] in (None, "h", "f", "d")
    if match["vec"]:
        return Type(Kind.VECTOR, floating, name, length=int(match["length"]))
    if match["mat"]:
        rows, columns = int(match["rows"]), int(match["columns"])
        return Type(Kind.MATRIX, floating, name, length=rows * columns, columns=columns)
    if match["quat"]:
        return Type(Kind.QUATERNION, floating, name, length=4)
    if match["transform"]:
        return Type(Kind.TRANSFORM, floating, name, length=7)
    if match["svector"]:
        return Type(Kind.VECTOR, floating, name, length=6)
    return Type(Kind.MATRIX, floating, name, length=36, columns=6)


def generic(name: str) -> Type | None:
    """The type that a constructor of any size makes: ``wp.vector(...)``, ``wp.matrix(...)``; None if it is none."""
    kind = _GENERIC.get(name)
    return None if kind is None else Type(kind)


def annotated(node: ast.expr | None, scope: Scope) -> Type:
    """The type that an annotation (or any type expression) means."""
    if node is None:
        return UNKNOWN
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return annotated(ast.parse(node.value, mode="eval").body, scope)
        except SyntaxError:
            return UNKNOWN
    if isinstance(node, ast.Call):
        return _called(node, scope)
    if isinstance(node, ast.Subscript):
        return _subscripted(node, scope)
    name = dotted(node)
    meaning = scope.resolve(name) if name else None
    if isinstance(meaning, Builtin):
        return named(meaning.name) or _bare(meaning.name)
    if isinstance(meaning, TypeAlias):
        return annotated(meaning.expression, meaning.scope)
    if isinstance(meaning, Struct):
        return Type(Kind.STRUCT, None, meaning.node.name, struct=meaning)
    return UNKNOWN


def fields(struct: Struct) -> Mapping[str, Type]:
    """Field name to type."""
    if not struct.types:
        struct.types.update({name: annotated(annotation, struct.scope) for name, annotation in struct.fields.items()})
    return struct.types


def _bare(name: str) -> Type:
    """A builtin name used as a type without arguments: ``wp.array``, ``wp.tile``, ``wp.bvh_query_t``."""
    match = _ARRAY.fullmatch(name)
    if match is not None:
        return Type(Kind.ARRAY, None, name, ndim=int(match["ndim"]) if match["ndim"] else None)
    if name == "tile":
        return TILE
    return UNKNOWN if name in _GENERIC else Type(Kind.OTHER, False, name)


def _called(node: ast.Call, scope: Scope) -> Type:
    """``wp.array(dtype=float, ndim=2)``, ``wp.types.vector(length=5, dtype=wp.float64)``, ``wp.tile(...)``."""
    name = dotted(node.func)
    meaning = scope.resolve(name) if name else None
    if not isinstance(meaning, Builtin):
        return UNKNOWN
    arguments = {keyword.arg: keyword.value for keyword in node.keywords}
    positional = list(node.args)
    match = _ARRAY.fullmatch(meaning.name)
    if match is not None:
        element = annotated(arguments.get("dtype") or (positional[0] if positional else None), scope)
        ndim = int(match["ndim"]) if match["ndim"] else _integer(arguments.get("ndim"), scope) or 1
        return _array_of(element, ndim)
    kind = _GENERIC.get(meaning.name)
    if kind is None:
        return Type(Kind.TILE, annotated(arguments.get("dtype"), scope).floating) if meaning.name == "tile" else UNKNOWN
    number = annotated(arguments.get("dtype") or (positional[-1] if positional else None), scope)
    floating = number.floating
    if kind is Kind.QUATERNION:
        return Type(kind, floating, meaning.name, length=4)
    if kind is Kind.TRANSFORM:
        return Type(kind, floating, meaning.name, length=7)
    extent = arguments.get("length") or arguments.get("shape") or (positional[0] if len(positional) > 1 else None)
    if isinstance(extent, ast.Tuple) and len(extent.elts) == 2:
        rows, columns = (_integer(each, scope) for each in extent.elts)
        length = rows * columns if rows and columns else None
        return Type(kind, floating, meaning.name, length=length, columns=columns)
    return Type(kind, floating, meaning.name, length=_integer(extent, scope) if kind is Kind.VECTOR else None)


def _subscripted(node: ast.Subscript, scope: Scope) -> Type:
    """``wp.array[float]``, ``wp.array2d[wp.vec3]``, ``wp.array[float, Literal[2]]``, ``wp.ref[T]``."""
    name = dotted(node.value)
    meaning = scope.resolve(name) if name else None
    arguments = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    if not isinstance(meaning, Builtin):
        return UNKNOWN
    match = _ARRAY.fullmatch(meaning.name)
    if match is not None:
        ndim: int | None = int(match["ndim"]) if match["ndim"] else 1
        if match["ndim"] is None and len(arguments) > 1:
            literal = arguments[1].slice if isinstance(arguments[1], ast.Subscript) else arguments[1]
            ndim = _integer(literal, scope)
        return _array_of(annotated(arguments[0], scope), ndim)
    if meaning.name == "ref":
        inner = annotated(arguments[0], scope)
        return dataclasses.replace(inner, by_reference=True)
    return Type(Kind.TILE, annotated(arguments[0], scope).floating) if meaning.name == "tile" else UNKNOWN


def _array_of(element: Type, ndim: int | None) -> Type:
    return Type(Kind.ARRAY, element.floating, "array", ndim=ndim, element=element)


def _integer(node: ast.expr | None, scope: Scope) -> int | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, int) else None
    name = dotted(node) if node is not None else None
    meaning = scope.resolve(name) if name else None
    return meaning.value if isinstance(meaning, Constant) and isinstance(meaning.value, int) else None

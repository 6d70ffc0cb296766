"""What the adjoint-need analysis is given: a kernel's ``ast`` node and the meaning of the names in it.

The analysis does no name resolution of its own. Whoever holds the environment (the interpreter's at the kernel's
declaration, or a file's at run time) implements :class:`Scope`; everything else in this room sees only meanings.
"""

from __future__ import annotations

import ast
import enum
import functools
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from warplint.dataclass import dataclass

if TYPE_CHECKING:
    from warplint.kernels.types import Type


class Unknown(enum.Enum):
    """A captured value that nobody knows: still a constant for the adjoint, but one that decides nothing."""

    VALUE = "unknown"


@dataclass(frozen=True)
class Constant:
    """A captured Python value (number, ``wp.constant``, tuple, enum member): carries no gradient."""

    value: object = Unknown.VALUE


@dataclass(frozen=True)
class Builtin:
    """A function or type of Warp by its bare name: ``sin``, ``tid``, ``vec3``, ``float64``, ``static``."""

    name: str


@dataclass(frozen=True)
class TypeAlias:
    """A name bound to a type expression: ``vec5 = wp.types.vector(length=5, dtype=float)``."""

    expression: ast.expr
    scope: Scope


class Adjoint(enum.Enum):
    """Where a function's adjoint comes from."""

    GENERATED = "generated"
    """A plain ``@wp.func``: Warp differentiates the body."""
    CUSTOM = "custom"
    """The user gave one with ``@wp.func_grad``."""
    NATIVE = "native"
    """``@wp.func_native`` with an ``adj_snippet``."""
    NATIVE_MISSING = "native-missing"
    """``@wp.func_native`` without an ``adj_snippet``: the gradient stops here."""


@dataclass(frozen=True)
class Function:
    """A ``@wp.func`` of the project. ``overloads`` are further functions declared under the same name."""

    node: ast.FunctionDef
    path: str
    scope: Scope
    adjoint: Adjoint = Adjoint.GENERATED
    replay: Function | None = None
    """Its ``@wp.func_replay``: what the forward half of the backward pass runs in place of the body."""
    gradient: Function | None = None
    """Its ``@wp.func_grad``, where ``adjoint`` is CUSTOM and the function is in sight."""
    overloads: tuple[Function, ...] = ()
    lines: Sequence[str] | None = field(default=None, compare=False, repr=False)
    """The file's text by line, to turn ``ast``'s byte offsets into character columns; None: the file is ASCII."""


@dataclass(frozen=True)
class Struct:
    """A ``@wp.struct`` class; its fields are the annotated names in ``node``."""

    node: ast.ClassDef
    path: str
    scope: Scope
    types: dict[str, Type] = field(default_factory=dict, compare=False, repr=False)
    """What :func:`warplint.kernels.types.fields` has made of the annotations."""

    @property
    def fields(self) -> Mapping[str, ast.expr]:
        """Field name to annotation, in order."""
        return {
            statement.target.id: statement.annotation
            for statement in self.node.body
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
        }


Meaning = Constant | Builtin | TypeAlias | Function | Struct


class Scope(Protocol):
    """The names a kernel or function sees: its closure, then its file's globals. Hashable (identity is enough)."""

    def resolve(self, dotted: str) -> Meaning | None:
        """The meaning of ``"wp.sin"``, ``"DT"``, ``"helpers.spring"``, ``"self.rest"``; None where unknown.

        A module prefix is resolved by the scope: ``"wp.sin"``, ``"warp.sin"``, ``"w.sin"`` (any alias) and ``"sin"``
        (from-import) are all ``Builtin("sin")``; ``"wp.types.vector"`` is ``Builtin("vector")``. The names of
        :data:`PYTHON_BUILTINS` mean Warp's inside a kernel, unless the file shadows them: ``Builtin("float")``.
        """


PYTHON_BUILTINS = frozenset(
    [
        *("abs", "bool", "float", "int", "len", "max", "min", "pow", "print"),
        *("range", "reversed", "round", "slice", "tuple", "type"),
    ]
)
"""Names of Python that mean something of Warp's inside a kernel, unless the file shadows them."""


@dataclass(frozen=True)
class KernelSource:
    """A kernel to analyse: its node, its file, its names, and the module options that shape its adjoint."""

    node: ast.FunctionDef
    path: str
    scope: Scope
    max_unroll: int | None = 16
    enable_backward: bool = True
    lines: Sequence[str] | None = field(default=None, compare=False, repr=False)
    """As in :class:`Function`."""
    warp: tuple[int, int] = (1, 19)
    """The version of Warp whose code generation is meant."""
    followed: frozenset[str] = frozenset()
    """Scalar parameters, and scalar fields of structs by their access paths, whose values are followed like memory:
    what an adjoint needs of them is among the needs."""


@functools.lru_cache(maxsize=65536)
def text_of(node: ast.AST) -> str:
    """The node's first line as text; functions are inlined in many kernels, so that the same nodes come again."""
    return ast.unparse(node).partition("\n")[0]

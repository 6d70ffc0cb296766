"""What the interpreter computes with.

Numbers, strings, ``None``, tuples, lists, dicts and sets of the program stand for themselves: the interpreter mutates
real containers, so that aliasing of containers is right without any bookkeeping. Everything else is wrapped here, or in
:mod:`warplint.trace.host.memory` for arrays.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from warplint.dataclass import dataclass
from warplint.finding import Span
from warplint.project import Module
from warplint.trace import events

if TYPE_CHECKING:
    from warplint.trace.host.machine import Call, Machine
    from warplint.trace.log import Entry

Value = Any
"""An interpreted value: a plain Python object that stands for itself, or one of the classes below."""

_SINGLE_PRECISION = re.compile(r"((?:vec|mat)\d+|quat|transform|spatial_vector|spatial_matrix)f$")

_PLAIN_NUMBERS = {"warp.int": "warp.int32", "warp.float": "warp.float32"}

NO_SOURCES: frozenset[int] = frozenset()


class UnknownValue:
    """A value that nobody knows, and what it was made from.

    ``sources`` are the memories whose contents went into it by way of the host. ``base``, ``factor`` and ``offset``
    keep the relation of counts: ``4 * n + 1`` has the base of ``n``. ``negated``: the opposite of the condition it came
    from, so that ``not c`` goes the other way than ``c``. ``taints`` are the places where values that differ from
    process to process (a clock, a salted hash) entered it. ``foreign``: code outside the project gave or made it, such
    as the caller of a function that is started on its own; so it is what it is, and not a gap in the interpretation.
    """

    __slots__ = ("base", "factor", "foreign", "negated", "offset", "sources", "taints", "why")

    def __init__(
        self,
        why: str = "",
        sources: frozenset[int] = NO_SOURCES,
        base: UnknownValue | None = None,
        offset: int = 0,
        negated: bool = False,
        taints: frozenset[Span] = frozenset(),
        factor: int = 1,
        foreign: bool = False,
    ) -> None:
        self.why = why
        self.sources = sources
        self.base = base
        self.factor = factor
        self.foreign = foreign
        self.offset = offset
        self.negated = negated
        self.taints = taints

    def shifted(self, by: int) -> UnknownValue:
        """``self + by``, remembered as such."""
        return self._related(self.factor, self.offset + by)

    def scaled(self, by: int) -> UnknownValue:
        """``self * by``, remembered as such."""
        return self._related(self.factor * by, self.offset * by)

    def _related(self, factor: int, offset: int) -> UnknownValue:
        return UnknownValue(self.why, self.sources, self.base or self, offset, taints=self.taints, factor=factor)

    def opposite(self) -> UnknownValue:
        """``not self``."""
        return UnknownValue(self.why, self.sources, negated=not self.negated, taints=self.taints)

    def __repr__(self) -> str:
        return f"<unknown: {self.why}>"


@dataclass(frozen=True)
class External:
    """A dotted name outside the project: ``warp.launch``, ``numpy.float32``, ``torch.nn.Module``."""

    path: str

    @property
    def name(self) -> str:
        """The last part."""
        return self.path.rpartition(".")[2]

    @property
    def canonical(self) -> str:
        """The path under which Warp's types have one spelling: ``vec3`` for ``vec3f``, ``float32`` for ``float``."""
        if not self.path.startswith("warp."):
            return self.path
        return _SINGLE_PRECISION.sub(r"\1", _PLAIN_NUMBERS.get(self.path, self.path))


@dataclass(frozen=True)
class ArrayType(External):
    """``wp.array(dtype=…)`` as a type, with the name of its element type where known, and the expression."""

    element: str | None = None
    expression: TypeExpression | None = field(default=None, compare=False)


class Environment:
    """A scope: its variables, the scope around it, and the module whose globals end the search.

    ``names`` of a class body are not seen by the functions in it (``is_class``).
    """

    __slots__ = ("global_names", "is_class", "module", "nonlocal_names", "parent", "variables")

    def __init__(
        self,
        module: ModuleValue,
        parent: Environment | None = None,
        variables: dict[str, Value] | None = None,
        is_class: bool = False,
    ) -> None:
        self.module = module
        self.parent = parent
        self.variables: dict[str, Value] = {} if variables is None else variables
        self.is_class = is_class
        self.global_names: frozenset[str] = frozenset()
        self.nonlocal_names: frozenset[str] = frozenset()

    @property
    def closure(self) -> Environment:
        """The scope that a function defined here sees around itself."""
        scope: Environment = self
        while scope.is_class and scope.parent is not None:
            scope = scope.parent
        return scope

    def binding_scope(self, name: str) -> Environment:
        """The scope that an assignment to ``name`` here writes to."""
        if name in self.global_names:
            return self.module.environment
        if name in self.nonlocal_names:
            scope = self.parent
            while scope is not None and scope.parent is not None:
                if name in scope.variables:
                    return scope
                scope = scope.parent
        return self


@dataclass(eq=False)
class ModuleValue:
    """A file of the project in this run. Its top level runs when a name of it is first needed (``started``)."""

    module: Module
    name: str
    environment: Environment = field(init=False)
    started: bool = False
    running: bool = False
    """Its top level is under way: names that are still to come are not there yet."""
    stars: list[ModuleValue | External] = field(default_factory=list)
    imported: Callable[[], None] | None = None
    """Runs the top level as of the place of the import; None for the program's own file."""

    def __post_init__(self) -> None:
        self.environment = Environment(self)

    def forget(self) -> None:
        """Back to before its top level ran."""
        self.started = False
        self.environment.variables.clear()
        self.stars.clear()


@dataclass(frozen=True)
class Deferred:
    """A name imported from a file whose top level has not run yet."""

    module: ModuleValue
    name: str


@dataclass(eq=False)
class Function:
    """A function of the project with its closure and defaults. ``owner`` is the class it was defined in."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    module: ModuleValue
    closure: Environment
    defaults: tuple[Value, ...] = ()
    keyword_defaults: Mapping[str, Value] = field(default_factory=dict)
    owner: Class | None = None
    attributes: dict[str, Value] = field(default_factory=dict)
    memo: dict[object, Value] | None = None
    """Results by arguments, under ``functools.lru_cache`` or ``cache``."""

    @property
    def name(self) -> str:
        """The function's own name."""
        return "<lambda>" if isinstance(self.node, ast.Lambda) else self.node.name


@dataclass(eq=False, slots=True)
class Bound:
    """A function of the project with its receiver."""

    function: Value
    receiver: Value


@dataclass(eq=False)
class Native:
    """A modelled function: what the library's own does, as far as the trace needs it."""

    name: str
    run: Callable[[Machine, Call], Value]


@dataclass(eq=False)
class Class:
    """A class of the project. ``annotations`` are the annotated names of its body, in order."""

    name: str
    bases: tuple[Value, ...]
    namespace: dict[str, Value]
    module: ModuleValue
    node: ast.ClassDef | None = None
    annotations: dict[str, ast.expr] = field(default_factory=dict)
    closure: Environment | None = None
    is_dataclass: bool = False
    is_struct: bool = False
    is_tuple: bool = False
    fields: dict[str, Class] | None = None
    """The annotated fields and the classes that declare them, once asked for."""
    counts: bool = False
    """An ``IntEnum`` or ``IntFlag``: its members calculate as their numbers."""

    @cached_property
    def ancestry(self) -> tuple[Class, ...]:
        """The class and its bases of the project, in the order attributes are looked up."""
        order: list[Class] = []

        def visit(cls: Class) -> None:
            if cls in order:
                order.remove(cls)
            order.append(cls)
            for base in cls.bases:
                if isinstance(base, Class):
                    visit(base)

        visit(self)
        return tuple(order)

    @property
    def has_outside_base(self) -> bool:
        """Whether some ancestor is not of the project, so that a missing attribute proves nothing."""
        return any(
            not isinstance(base, Class) and base != External("object") for c in self.ancestry for base in c.bases
        )

    def outside_bases(self) -> Iterable[str]:
        """The dotted names of the ancestors outside the project."""
        for cls in self.ancestry:
            for base in cls.bases:
                if isinstance(base, External):
                    yield base.path

    def find(self, name: str) -> tuple[Value, Class] | None:
        """The attribute and the class that defines it."""
        for cls in self.ancestry:
            value = cls.namespace.get(name, self)
            if value is not self:
                return value, cls
        return None


@dataclass(eq=False)
class Instance:
    """An object of a project class (also a ``wp.struct``). ``tape`` if the class derives from ``wp.Tape``."""

    cls: Class
    attributes: dict[str, Value] = field(default_factory=dict)
    tape: TapeValue | None = None


@dataclass(eq=False)
class Record:
    """An object of a library that is modelled by its attributes: ``argparse.Namespace``, ``SimpleNamespace``."""

    kind: str
    attributes: dict[str, Value] = field(default_factory=dict)
    closed: bool = False
    """No attribute exists but those known."""


@dataclass(eq=False)
class Property:
    """A ``property``, its getter and setter."""

    getter: Value
    setter: Value | None = None
    cached: bool = False


@dataclass(frozen=True)
class StaticMethod:
    """A ``staticmethod``."""

    function: Value


@dataclass(frozen=True)
class ClassMethod:
    """A ``classmethod``."""

    function: Value


@dataclass(frozen=True)
class SuperValue:
    """``super()``: looks attributes up behind ``cls``."""

    cls: Class
    receiver: Value


@dataclass(frozen=True)
class FieldDefault:
    """``dataclasses.field(...)``."""

    value: Value = None
    factory: Value = None
    has_value: bool = False


@dataclass(eq=False)
class Generator:
    """A generator of the project that has not run yet: its body runs where it is iterated over."""

    function: Function
    environment: Environment
    items: list[Value] | None = None
    consumed: int = 0


@dataclass(eq=False)
class WarpModule:
    """A Warp module (the unit of compilation): its options, what it holds and what of it was loaded."""

    name: str
    options: dict[str, Value]
    contents: set[str] = field(default_factory=set)
    loaded: frozenset[str] | None = None
    loaded_options: Mapping[str, Value] = field(default_factory=dict)
    """The options in effect at its last load."""
    revision: int = 0
    """Counts the changes of its options."""
    mapped_in: Environment | None = None
    """Of a module that ``wp.map`` made for a plain function: the scope around the first one, which Warp keeps."""


@dataclass(eq=False)
class KernelValue:
    """A declared kernel: its function, the module it was put in, and its own options."""

    function: Function
    module: WarpModule
    key: str
    decorator: ast.expr | None
    options: Mapping[str, Value] = field(default_factory=dict)
    unique: bool = False
    captures: bool = False
    generic: bool = False
    stable: bool | None = None
    open_ended: bool = False
    """A generic kernel was given an instance whose types are not known: any later instance may be that one."""
    described: tuple[int, events.Kernel] | None = None
    """The event's record of it, as of a revision of its module's options."""

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.name


@dataclass(eq=False)
class WarpFunction:
    """A ``@wp.func`` (or native function) of the project, with its custom adjoint and replay."""

    function: Function
    native: bool = False
    native_adjoint: bool = False
    gradient: Function | None = None
    replay: Function | None = None
    overloads: list[WarpFunction] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class TypeExpression:
    """A type made by ``wp.types.vector(...)`` and the like, with the expression that made it."""

    node: ast.expr
    environment: Environment


@dataclass(eq=False)
class TapeValue:
    """A ``wp.Tape``. ``id`` is the number of its recording in the trace, another one with each launch of a graph.

    ``former`` is the number before: the tape knows the gradients of that recording still.
    """

    id: int
    former: int | None = None
    attributes: dict[str, Value] = field(default_factory=dict)


@dataclass(eq=False)
class Graph:
    """A captured graph: the entries of the log that each launch of it repeats."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class TapeGradients:
    """``tape.gradients``: a mapping from arrays to their gradients."""

    tape: TapeValue


@dataclass(eq=False)
class Command:
    """What ``wp.launch(..., record_cmd=True)`` returns: the launch to be made by ``.launch()``."""

    kernel: Value
    arguments: list[Value]
    dim: Value


@dataclass(frozen=True)
class Vector:
    """A small vector, matrix, quaternion or transform made on the host: its type's name and its components."""

    type: str
    components: tuple[Value, ...]


class Signal:
    """How a statement ended when it did not simply end: ``break``, ``continue``, ``return value``."""

    __slots__ = ("kind", "value")

    def __init__(self, kind: str, value: Value = None) -> None:
        self.kind = kind
        self.value = value


BREAK = Signal("break")
CONTINUE = Signal("continue")


_SOURCELESS = frozenset({int, float, str, bool, type(None), bytes, range, External})


def sources_of(value: Value, depth: int = 3) -> frozenset[int]:
    """The memories whose contents went into ``value`` by way of the host."""
    if type(value) in _SOURCELESS:
        return NO_SOURCES
    if isinstance(value, UnknownValue):
        return value.sources
    found: frozenset[int] | None = getattr(value, "sources", None)
    if found is not None:
        return found
    if depth and isinstance(value, (list, tuple, set, frozenset)):
        parts = [sources_of(item, depth - 1) for item in list(value)[:64]]
        return NO_SOURCES.union(*parts) if parts else NO_SOURCES
    if depth and isinstance(value, Vector):
        return sources_of(value.components, depth - 1)
    if depth and isinstance(value, dict):
        return sources_of(list(value.values())[:64], depth)
    return NO_SOURCES


def taints_of(*values: Value) -> frozenset[Span]:
    """Where values that differ from process to process entered any of these."""
    found: frozenset[Span] = frozenset()
    for value in values:
        if isinstance(value, UnknownValue) and value.taints:
            found |= value.taints
    return found


def unknown_from(why: str, *values: Value) -> UnknownValue:
    """An unknown value that remembers what it was made from."""
    for value in values:
        if type(value) not in _SOURCELESS:
            break
    else:
        return UnknownValue(why)
    return UnknownValue(why, NO_SOURCES.union(*(sources_of(value) for value in values)), taints=taints_of(*values))


def part_of(why: str, whole: Value) -> UnknownValue:
    """An attribute, item or result of something unknown: it is as foreign as that is."""
    foreign = isinstance(whole, UnknownValue) and whole.foreign
    return UnknownValue(why, sources_of(whole), taints=taints_of(whole), foreign=foreign)

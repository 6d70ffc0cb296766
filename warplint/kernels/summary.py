"""What one kernel does to memory and what its adjoint needs: the result of the adjoint-need analysis.

The theory is "to-be-recorded" analysis (Hascoët, Naumann, Pascual, *"To be recorded" analysis in reverse-mode
automatic differentiation*, Future Generation Computer Systems 21, 2005), with one twist of Warp's: locals are
recomputed in the backward pass from what memory holds *then*, so that needing a local is needing every array element
that it was computed from.

Access paths name arrays as the launch binds them: ``q`` for a parameter, ``state.q`` for an array field of a struct
parameter. Statement numbers (``order``) rise along the body.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property

from warplint.dataclass import dataclass
from warplint.finding import Span
from warplint.kernels.source import KernelSource

Paths = frozenset[str]


@dataclass(frozen=True)
class Read:
    """The value of ``path[index]`` at statement ``order``; index is normalised source text (``"i"``, ``"i + 1"``)."""

    path: str
    index: str
    order: int
    span: Span
    component: str = ""
    """The only component that is meant: ``"1"`` for ``a[i].y`` and ``a[i][1]``, a field's name, "" for all of it."""


@dataclass(frozen=True)
class Need:
    """An adjoint reads ``read``'s value, if gradient flows through any of ``given``.

    ``given`` empty: needed whatever is active (a condition or index that steers a store to an active destination).
    ``operation`` is what needs it, in the user's words: ``"sin(q[i])"``, ``"q[i] * k[0]"``, ``"the condition"``.
    ``given_destination``: also needed whenever the store's destination is active (a store under a condition consumes
    the destination's adjoint even when it stores a constant).
    """

    read: Read
    given: Paths
    operation: str
    span: Span
    given_destination: bool = False


class StoreKind(str, enum.Enum):
    """How a store meets the old value: replaces it, adds to it, or multiplies/divides it in place."""

    STORE = "store"
    ACCUMULATE = "accumulate"
    MULTIPLY = "multiply"


class Cut(str, enum.Enum):
    """Why gradient does not flow along an edge although the value depends on it."""

    FLAT = "flat"
    NONDIFFERENTIABLE = "nondifferentiable"
    NATIVE = "native"


@dataclass(frozen=True)
class Store:
    """One store (or accumulation) to ``path[index]``.

    ``active``: paths from which gradient flows into the stored value. ``depends``: paths that the value truly depends
    on, cuts ignored (⊇ active). ``cuts`` says for each path in ``depends - active`` why the gradient stops.
    ``needs``: what the adjoint of this store reads. ``whole`` false: a component of an element only.
    ``every_thread``: whether each thread stores to an element of its own (index is the thread's), None if unknown.
    """

    path: str
    index: str
    kind: StoreKind
    order: int
    span: Span
    active: Paths
    depends: Paths
    needs: tuple[Need, ...]
    cuts: tuple[tuple[str, Cut], ...] = ()
    whole: bool = True
    conditional: bool = False
    multiplier: Paths = frozenset()
    """For MULTIPLY: the paths from which gradient flows into the multiplier. (``active`` holds ``path`` too. The old
    value, which the multiplier's adjoint reads, is not among ``needs``: the store itself destroys it, which is the
    fault INPLACE_MULTIPLY.)"""
    covers_array: bool | None = None
    """Whether the launch rewrites every element of the array: thread-indexed, unconditional."""
    component: str = ""
    """As in :class:`Read`; "" where ``whole``."""
    severed: tuple[tuple[str, Cut], ...] = ()
    """The paths from which gradient would reach the stored value, but for an operation that stops it on the way
    (another way may exist: such a path can be in ``active`` too)."""
    every_thread: bool | None = None
    copied: str = ""
    """The path whose element at this very index is stored as it was read: if both are one array, nothing changes."""

    @cached_property
    def active_paths(self) -> tuple[str, ...]:
        """``active`` in order."""
        return tuple(sorted(self.active))

    @cached_property
    def depended_paths(self) -> tuple[str, ...]:
        """``depends`` and ``active`` in order."""
        return tuple(sorted(self.depends | self.active))


LEFT_BEHIND = "what is left behind by"
"""DYNAMIC_LOOP: how a ``break`` or ``return`` that leaves the loop steers what the loop makes."""


SKIPPED = "what is done before"
"""DYNAMIC_LOOP: the adjoint of an iteration goes to a ``continue`` and no farther (``KernelFault.steers``)."""


BY_REFERENCE = "the parameter in"
"""DYNAMIC_LOOP: a function's loop assigns the parameter ``detail``, whose adjoint is the caller's variable's."""


OUT_OF_ORDER = "the order of the iterations of"
"""DYNAMIC_LOOP: the adjoint of a ``while`` loop goes from its first iteration to the last (``KernelFault.steers``)."""


class KernelFaultKind(str, enum.Enum):
    """Faults that lie wholly inside the kernel; each belongs to one rule of the NVW2 group."""

    INPLACE_MULTIPLY = "inplace-multiply"
    """``a[i] *= e``: e's adjoint reads the product in place of a's old value."""
    COMPONENT_MULTIPLY = "component-multiply"
    """``v[0] *= e`` on a local: the old component's cotangent is not cleared. Wrong if it carries gradient."""
    READ_THEN_OVERWRITTEN = "read-then-overwritten"
    """A store to an element whose old value an adjoint of this kernel reads."""
    NEIGHBOUR_OVERWRITTEN = "neighbour-overwritten"
    """A store to the thread's own element, where other threads of the launch read that element as their neighbour:
    which value they get depends on the order of threads, and the adjoint does not undo that order."""
    COMPONENT_REASSIGN = "component-reassign"
    """``v[0] = e`` on a local over a component that carries gradient, or after an adjoint took the whole of v.
    Not where ``enable_vector_component_overwrites`` is in effect (but for fills in dynamic loops)."""
    ELEMENT_COMPONENT = "element-component"
    """``a[i].x = e`` and ``a[i].x += e`` before the version of Warp in ``detail``: no gradient reaches e."""
    DYNAMIC_LOOP = "dynamic-loop"
    """A local that a dynamic loop overwrites is read by an adjoint; ``detail`` is its name, ``loop`` the loop. A fault
    for each operation that reads one: which of them is active decides where the loop goes wrong."""
    NONDIFFERENTIABLE = "nondifferentiable"
    """An operation without an adjoint, although its derivative is not zero; gradient from ``given`` stops here."""
    NATIVE = "native"
    """The same of a native function without ``adj_snippet``; stands at its ``def``, ``detail`` is its name."""
    FLAT = "flat"
    """An operation whose derivative is zero almost everywhere; gradient from ``given`` stops here, rightly."""
    ADJOINT_ASSIGNED = "adjoint-assigned"
    """``wp.adjoint[x] = ...`` in a custom adjoint wipes out what another use of the caller's variable contributed."""
    ADJOINT_OMITTED = "adjoint-omitted"
    """A custom adjoint that gives nothing to the argument ``detail``; stands at its ``def``."""
    UNSELECTED_SINGULAR = "unselected-singular"
    """An operand of ``where`` whose adjoint is not finite just where the condition does not select it: 0 * inf."""
    SHARED_STORE = "shared-store"
    """All threads assign values of their own to one element: the last one wins, the adjoint credits another one."""
    STORE_REPLAYED = "store-replayed"
    """A store in a function: the backward pass runs it again and leaves another value than the forward pass did, which
    an adjoint of the same kernel reads (``detail`` says where). Not ``certain``: no adjoint here reads it."""
    EXTREME_KEPT = "extreme-kept"
    """``atomic_min`` or ``atomic_max`` onto an element that carries gradient: where the new value wins, the old one's
    cotangent is not cleared. Never certain, and of no interest where nothing flows through the old value."""
    ATOMIC_REPLAYED = "atomic-replayed"
    """The value that an atomic returned is needed: the backward pass runs it again, or does not, and gets another."""


@dataclass(frozen=True)
class KernelFault:
    """A statement whose adjoint is wrong, if gradient flows through any of ``given`` and ``into`` is live.

    ``into`` are the paths whose stores the faulty value reaches (all of them dead: nobody reads the wrong gradient).
    """

    kind: KernelFaultKind
    span: Span
    order: int
    given: Paths
    into: Paths
    operation: str
    detail: str = ""
    read: Read | None = None
    loop: Span | None = None
    """DYNAMIC_LOOP: the loop that keeps one copy. COMPONENT_REASSIGN: the innermost dynamic loop around it, if any."""
    steers: str = ""
    """DYNAMIC_LOOP: ``"the index in"``, ``"the condition"`` … where the lost value steers ``operation``; "" where the
    operation's own adjoint reads it."""
    certain: bool = True
    """False where the data decide whether the gradient is wrong: a ``break`` that may never be reached."""
    present: Paths = frozenset()
    """DYNAMIC_LOOP: the array parameters that must be given, and not be None, for the loop to run."""


class PointKind(str, enum.Enum):
    """Why an operation has no derivative at a point."""

    SINGULAR = "singular"
    """Its adjoint is not finite there: a root, a logarithm, a division or a power at zero."""
    KINK = "kink"
    """The derivative jumps there, and the adjoint takes one side's: ``abs`` at zero, ``min`` and ``max`` of equals."""
    OVERFLOW = "overflow"
    """``exp`` of a large number: of interest only where ``where`` does not select it."""


@dataclass(frozen=True)
class NonsmoothPoint:
    """An operation without a derivative at some point, if gradient flows through any of ``given`` and ``into`` is live.

    ``guarded``: nothing says that the data may come there but the data themselves: a condition around it speaks of the
    operand. Kinks always are.
    """

    kind: PointKind
    span: Span
    order: int
    given: Paths
    into: Paths
    operation: str
    guarded: bool = False


@dataclass(frozen=True)
class Parameter:
    """A kernel parameter. ``annotation`` is its text; ``kind``: ``array``, ``struct``, ``scalar`` or ``unknown``."""

    name: str
    annotation: str
    kind: str
    dtype: str | None = None
    ndim: int | None = None
    floating: bool | None = None


@dataclass(frozen=True)
class KernelSummary:
    """Everything the trace needs to know of a kernel.

    ``complete`` false: the analysis gave up (``why``); reads and stores are then what was found so far, and no rule
    may conclude from the absence of one.
    """

    name: str
    span: Span
    parameters: tuple[Parameter, ...]
    reads: tuple[Read, ...]
    stores: tuple[Store, ...]
    faults: tuple[KernelFault, ...] = ()
    complete: bool = True
    why: str = ""
    read_paths: Paths = field(default=frozenset())
    written_paths: Paths = field(default=frozenset())
    points: tuple[NonsmoothPoint, ...] = ()
    """The operations that have no derivative somewhere; those that ``where`` makes a fault are not among them."""
    source: KernelSource | None = field(default=None, compare=False, repr=False)
    """What was analysed."""

    @cached_property
    def first_reads(self) -> Mapping[str, int]:
        """For each path that is read: the number of the first statement that reads it."""
        first: dict[str, int] = {}
        for read in self.reads:
            first[read.path] = min(read.order, first.get(read.path, read.order))
        return first

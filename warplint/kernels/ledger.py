"""The book of one analysis: numbers for paths, tokens and needs, the stores met so far, and the step budget.

A *token* is something that must still be there in the backward pass for a value to be had again: an array element as
it was read, a local that a dynamic loop overwrites, the result of an atomic. A *need* says that some adjoint reads
some tokens, if gradient flows through given paths; it hangs on values and arrives at stores.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
from collections.abc import Sequence
from dataclasses import field

from warplint.dataclass import dataclass
from warplint.kernels.summary import Cut, PointKind, StoreKind
from warplint.kernels.values import Value, members, union

MOST_STEPS = 60_000
"""Expressions and statements evaluated per kernel, unrolled loops and inlined functions counted each time."""
MOST_NEEDS = 6_000
"""Different needs per kernel; contact kernels of big solvers have more."""


class Overrun(Exception):
    """The budget is spent: the kernel's summary is incomplete."""


Bound = tuple[str, str, str]
"""The symbols of a range's start, stop and step."""

Arms = frozenset[tuple[int, bool]]
"""Which arms of which branches (by number) something stands in."""


@dataclass(frozen=True)
class File:
    """Where a node stands: the path for spans, and the text by line where columns need converting."""

    path: str
    lines: Sequence[str] | None = field(default=None, compare=False)


class TokenKind(enum.Enum):
    """Why a value may be gone in the backward pass."""

    READ = "read"
    """An array element: gone when it is overwritten."""
    CARRIED = "carried"
    """A local that a dynamic loop carries, inside the loop: always gone."""
    AFTER = "after"
    """A local that a dynamic loop assigned, after the loop: always gone."""
    ATOMIC = "atomic"
    """The old value that an atomic returned: gone as soon as it is there."""
    COMPONENT = "component"
    """A component of a local composite that was multiplied in place: its cotangent is not cleared."""
    REASSIGNED = "reassigned"
    """A component of a local composite that was assigned in place: the same."""
    ASSIGNED = "assigned"
    """What a variable's other uses contribute to its adjoint, where a custom adjoint assigns it."""
    OMITTED = "omitted"
    """The adjoint of an argument that a custom adjoint leaves out."""
    VARIABLE = "variable"
    """A local variable's own memory: gone for adjoints of operations that read it, if a later loop assigns it."""
    OUTDONE = "outdone"
    """What an element held before ``atomic_min`` or ``atomic_max``: where another value wins, its cotangent stays."""
    UNSELECTED = "unselected"
    """An operand of ``where`` that is singular where it is not selected."""


@dataclass(frozen=True, eq=False)
class Token:
    """What a value stands on. ``path`` and ``index`` for reads and atomics, ``path`` is the local's name otherwise."""

    kind: TokenKind
    path: str
    index: str
    component: str
    order: int
    node: ast.AST
    file: File
    varies: int = 0
    loops: int = 0
    arms: Arms = frozenset()
    loop: ast.AST | None = None
    """The innermost dynamic loop around a component that is replaced."""
    present: frozenset[str] = frozenset()
    """The array parameters without which the loop does not run."""
    indices: tuple[Value, ...] = ()
    """Of a read: the values that ``index`` is the text of."""


@dataclass(frozen=True, eq=False)
class Needed:
    """An adjoint reads ``tokens``, if gradient flows through any of the paths ``given``."""

    tokens: int
    given: int
    destination: bool
    node: ast.AST
    file: File
    what: str
    order: int


@dataclass
class StoreRecord:
    """A store as met: the sets are still bit sets."""

    path: str
    index: tuple[Value, ...]
    symbol: str
    component: str
    kind: StoreKind
    order: int
    node: ast.AST
    file: File
    value: Value
    needs: int
    multiplier: int = 0
    conditional: bool = False
    bounded: bool = False
    """Conditional on a comparison of the thread's index with a size only."""
    loops: int = 0
    arms: Arms = frozenset()
    tests: tuple[ast.AST, ...] = ()
    """The conditions that it stands under."""
    under: tuple[object, ...] = ()
    """The same and loops' bounds, each time that they were met: what stands under no others runs whenever this does."""

    again: bool = False
    """It stands in a function: the backward pass runs it once more, to have the function's locals."""

    copied: str = ""
    """The path whose element at the same index is stored as it was read."""

    @property
    def varies(self) -> int:
        """The dynamic loops in which the index changes."""
        return union(index.varies for index in self.index)


@dataclass(frozen=True, eq=False)
class Mutation:
    """A component of a local composite was assigned after ``readers`` (needs) had read the whole of it."""

    node: ast.AST
    file: File
    order: int
    readers: int
    loop: ast.AST | None = None
    """The innermost dynamic loop around the assignment."""


@dataclass(frozen=True, eq=False)
class DangerRecord:
    """An operation at ``node`` whose adjoint is not finite for some values of what stands on ``tokens``.

    ``kind`` is what it is called for. ``guarded``: a condition around it speaks of the operand, or the operand is no
    data, so that only contents in sight can tell.
    """

    node: ast.AST
    file: File
    tokens: int
    given: int
    kind: PointKind = PointKind.SINGULAR
    guarded: bool = False
    order: int = 0


@dataclass(frozen=True)
class CutRecord:
    """Gradient from a path (by number) stops, at an operation (``node``) or because there never is any."""

    path: int
    why: Cut
    node: ast.AST | None = None
    file: File | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Mark:
    """A point to which the ledger can go back: a trial pass over a loop's body leaves no records."""

    stores: int
    order: int
    versions: dict[str, int]
    fresh: int
    branches: int


@dataclass(frozen=True)
class Astray:
    """What further uses of a variable contribute to its adjoint is lost, or lands elsewhere: why (``token``) and where.

    ``reached``: the paths whose gradient is wrong by it although the variable itself may carry none.
    """

    token: int
    node: ast.AST
    file: File
    what: str = ""
    reached: int = 0


@dataclass
class Ledger:
    """See the module. One ledger belongs to one analysis of one kernel."""

    warp: tuple[int, int]
    """The version of Warp whose code generation is meant."""
    paths: dict[str, int] = field(default_factory=dict)
    tokens: list[Token] = field(default_factory=list)
    needs: list[Needed] = field(default_factory=list)
    stores: list[StoreRecord] = field(default_factory=list)
    order: int = 0
    steps: int = 0
    sparable: int = 0
    """Of these, what loops that are unrolled took for more rounds than a run to their fixpoint would."""
    fresh: int = 0
    unresolved: dict[str, None] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    symbols: dict[str, object] = field(default_factory=dict)
    carried: int = 0
    """The tokens of locals that dynamic loops overwrite."""
    variables: dict[Value, int] = field(default_factory=dict)
    """Locals that some loop of their function assigns, as they were bound: the token that is their own memory."""
    results: dict[Value, tuple[int, ast.AST]] = field(default_factory=dict)
    """Results that the adjoint of the operation at the node reads again, if gradient flows through given paths."""
    chained: dict[Value, int] = field(default_factory=dict)
    """Locals that a ``while`` loop carries, as its body sees them: the need of whatever gradient uses them otherwise
    than to add to them."""
    bounds: dict[int, set[Bound | None]] = field(default_factory=dict)
    """For tokens of locals that loops overwrite: the bounds of those loops; None: one that nobody knows."""
    lane_names: dict[int, str] = field(default_factory=dict)
    loops: dict[tuple[object, ...], int] = field(default_factory=dict)
    branches: int = 0
    readers: dict[Value, int] = field(default_factory=dict)
    """The needs whose operation took this very value of a local composite as a whole."""
    mutations: list[Mutation] = field(default_factory=list)
    filled: set[tuple[ast.AST, str]] = field(default_factory=set)
    """Loops and the local composites whose components they assign: a fault of its own (COMPONENT_REASSIGN)."""
    _token_numbers: dict[tuple[object, ...], int] = field(default_factory=dict)
    _need_numbers: dict[tuple[object, ...], int] = field(default_factory=dict)
    _path_names: dict[int, frozenset[str]] = field(default_factory=dict)
    watched: dict[Value, tuple[Astray, ...]] = field(default_factory=dict)
    """Variables whose adjoint a function that they were passed to assigns."""
    dangers: list[DangerRecord] = field(default_factory=list)
    """The operations that are singular somewhere; by number in :attr:`Value.dangers`."""
    followed: frozenset[str] = frozenset()
    """The scalars, by path, that are reads of memory in this analysis."""
    _cuts: list[CutRecord] = field(default_factory=list)
    _cut_numbers: dict[CutRecord, int] = field(default_factory=dict)
    _cut_bits: dict[tuple[int, Cut, ast.AST | None], int] = field(default_factory=dict)

    def step(self) -> None:
        """Count one step; raises :class:`Overrun` when the budget is spent."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise Overrun(f"more than {MOST_STEPS} steps")

    def tick(self) -> int:
        """The next number in the order of reads and stores."""
        self.order += 1
        return self.order

    def path_bit(self, path: str) -> int:
        """The bit of an access path."""
        return 1 << self.paths.setdefault(path, len(self.paths))

    def path_names(self, bits: int) -> frozenset[str]:
        """The paths of a bit set."""
        names = self._path_names.get(bits)
        if names is None:
            known = list(self.paths)
            names = self._path_names[bits] = frozenset(known[number] for number in members(bits))
        return names

    def token(self, token: Token, identity: tuple[object, ...]) -> int:
        """The bit of a token; tokens with one identity are one token (the first one's place is kept)."""
        key = (token.kind, token.path, token.index, token.component, *identity)
        number = self._token_numbers.get(key)
        if number is None:
            number = self._token_numbers[key] = len(self.tokens)
            self.tokens.append(token)
            if token.kind in (TokenKind.CARRIED, TokenKind.AFTER):
                self.carried |= 1 << number
        return 1 << number

    def component_token(self, whole: Token, component: str) -> int:
        """The bit of the token of a component of an element as it was read."""
        identity = (whole.order, whole.node)
        number = self._token_numbers.get((whole.kind, whole.path, whole.index, component, *identity))
        if number is None:
            return self.token(dataclasses.replace(whole, component=component), identity)
        return 1 << number

    def followed_value(self, value: Value, path: str, node: ast.AST, file: File) -> Value:
        """The value of the scalar at ``path``, standing on what the host holds there if that is followed."""
        if path not in self.followed:
            return value
        token = Token(TokenKind.READ, path, "", "", self.order, node, file)
        return value.like(tokens=value.tokens | self.token(token, ()))

    def lose(self, variable: Value, name: str, loop: ast.AST, bound: Bound | None) -> None:
        """A loop assigns a variable bound before it: its memory is another's when adjoints of earlier reads run."""
        for number in members(self.variables.get(variable, 0)):
            self.bounds.setdefault(1 << number, set()).add(bound)
            if not self.carried >> number & 1:
                self.tokens[number] = dataclasses.replace(self.tokens[number], path=name, node=loop)
                self.carried |= 1 << number

    def there_without(self, bound: Bound | None) -> int:
        """The tokens of locals that are still there where a loop with this bound runs no iteration."""
        if bound is None:
            return 0
        return union(bit for bit, found in self.bounds.items() if all(_is_within(each, bound) for each in found))

    def spared(self, needs: int, there: int) -> int:
        """The bits of needs, each without the tokens that are ``there`` anyway."""
        kept = needs
        for number in members(needs):
            need = self.needs[number]
            if need.tokens & there:
                rest = need.tokens & ~there
                kept &= ~(1 << number)
                kept |= self.need(rest, need.given, need.node, need.file, need.what, need.destination)
        return kept

    def watch(self, variable: Value, astray: Astray) -> None:
        """What is made of the variable from here on contributes to an adjoint that a function assigns."""
        self.watched[variable] = (*self.watched.get(variable, ()), astray)

    def share_elements(self, a: int, b: int) -> bool:
        """Whether two sets of tokens stand on one array element, wherever each of them read it."""
        if a & b or not a or not b:
            return bool(a & b)
        return not self._elements(a).isdisjoint(self._elements(b))

    def _elements(self, tokens: int) -> set[tuple[str, str]]:
        return {(self.tokens[number].path, self.tokens[number].index) for number in members(tokens)}

    def need(
        self, tokens: int, given: int, node: ast.AST, file: File, what: str = "", destination: bool = False
    ) -> int:
        """The bit of a need, or 0 where there is nothing to read or nothing to be active."""
        if not tokens or not (given or destination):
            return 0
        key = (tokens, given, destination, node)
        number = self._need_numbers.get(key)
        if number is None:
            if len(self.needs) >= MOST_NEEDS:
                raise Overrun(f"more than {MOST_NEEDS} needs")
            number = self._need_numbers[key] = len(self.needs)
            self.needs.append(Needed(tokens, given, destination, node, file, what, self.order))
        return 1 << number

    def cut(self, paths: int, why: Cut, node: ast.AST | None = None, file: File | None = None) -> int:
        """The bit set of cuts that says: gradient from each of ``paths`` stops at ``node``, for this reason.

        Without a node no operation stops it: the value never carries gradient (an index, an array of integers).
        """
        if not paths:
            return 0
        bits = self._cut_bits.get((paths, why, node))
        if bits is None:
            records = [CutRecord(number, why, node, file) for number in members(paths)]
            bits = self._cut_bits[paths, why, node] = union(1 << self._cut_number(record) for record in records)
        return bits

    def _cut_number(self, record: CutRecord) -> int:
        number = self._cut_numbers.get(record)
        if number is None:
            number = self._cut_numbers[record] = len(self._cuts)
            self._cuts.append(record)
        return number

    def cuts(self, bits: int) -> list[CutRecord]:
        """The cuts of a bit set."""
        return [self._cuts[number] for number in members(bits)]

    def path_name(self, number: int) -> str:
        """The path with this number."""
        return list(self.paths)[number]

    def mark(self) -> Mark:
        """See :class:`Mark`."""
        return Mark(len(self.stores), self.order, dict(self.versions), self.fresh, self.branches)

    def rollback(self, mark: Mark) -> None:
        """Forget the stores met since the mark; what was numbered keeps its number."""
        del self.stores[mark.stores :]
        self.order, self.versions, self.fresh = mark.order, dict(mark.versions), mark.fresh
        self.branches = mark.branches

    def own_symbol(self, wanted: str, owner: object) -> str:
        """A symbol that means one thing in this kernel: ``wanted``, primed where another value has that name."""
        while self.symbols.setdefault(wanted, owner) != owner:
            wanted += "'"
        return wanted

    def lane_symbol(self, lane: int, wanted: str) -> str:
        """The symbol of one dimension of the thread's index: the first name that the kernel gives it."""
        if lane not in self.lane_names:
            self.lane_names[lane] = self.own_symbol(wanted, ("lane", lane))
        return self.lane_names[lane]

    def fresh_symbol(self) -> str:
        """A symbol that equals no other."""
        self.fresh += 1
        return f"?{self.fresh}"


def _is_within(inner: Bound | None, outer: Bound) -> bool:
    """Whether a range is empty if another one is."""
    if inner is None or inner[1:] != outer[1:]:
        return False
    numbers = inner[0].isdigit() and outer[0].isdigit() and outer[2] == "1"
    return inner[0] == outer[0] or (numbers and int(inner[0]) >= int(outer[0]))

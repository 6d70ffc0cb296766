"""How gradient, dependence and needs pass one operation; how indices and conditions steer a value."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from warplint.dataclass import dataclass
from warplint.kernels import types
from warplint.kernels.builtins import Derivative, table
from warplint.kernels.ledger import Arms, Bound, DangerRecord, File, Ledger, Token, TokenKind
from warplint.kernels.liveness import assigned_in_loops
from warplint.kernels.singular import bounds_of, dangerous, kinked, sign_of
from warplint.kernels.source import Scope
from warplint.kernels.summary import Cut, PointKind
from warplint.kernels.types import COMPOSITES, Kind, Type
from warplint.kernels.values import Value, joined, joined_type, union


class End(enum.Enum):
    """How the execution of a block ended."""

    REACHED = "reached"
    LEFT_ITERATION = "left-iteration"
    """By ``break`` or ``continue``."""
    RETURNED = "returned"


@dataclass
class Condition:
    """What must hold for the statements under it to run.

    ``bounded``: it only compares the thread's index with a size. ``loop``: it is a loop's bound. ``returns``: where it
    does not hold the function was left, so that it also governs what stands behind the loop around it. ``arm``: the
    number of the branch, and which of its arms.
    """

    tokens: int
    depends: int
    threads: int
    varies: int
    node: ast.AST
    file: File
    what: str
    bounded: bool = False
    loop: bool = False
    returns: bool = False
    arm: tuple[int, bool] | None = None
    bound: Bound | None = None
    """Of a loop, where its range is known."""
    present: frozenset[str] = frozenset()
    """It is that these array parameters were given at all (``if joint_qdd:``)."""


Environment = dict[str, Value]


@dataclass
class Exit:
    """The locals at a ``continue`` or ``break``, and the conditions it stands under, from the loop's body on.

    ``node`` is the statement, met at ``order`` in ``arms`` of branches; None where a way just ends.
    """

    locals: Environment
    conditions: tuple[Condition, ...]
    node: ast.stmt | None = None
    order: int = 0
    arms: Arms = frozenset()


@dataclass
class LoopExits:
    """The ``continue``s and ``break``s of one run of a loop's body."""

    height: int
    at_continue: list[Exit] = field(default_factory=list)
    at_break: list[Exit] = field(default_factory=list)


@dataclass
class Frame:
    """A kernel or an inlined function in execution; ``functions`` are the nodes it is inside, outermost first."""

    scope: Scope
    file: File
    locals: Environment = field(default_factory=dict)
    returned: list[Value] = field(default_factory=list)
    conditions_at_entry: int = 0
    functions: tuple[ast.AST, ...] = ()
    loops: list[LoopExits] = field(default_factory=list)
    parameters: Environment = field(default_factory=dict)
    """The parameters of an inlined function as they were bound."""
    added: dict[str, int] = field(default_factory=dict)
    """The paths through which gradient flows into what is added to each of them."""


class Operations:
    """The state of an analysis, and the rules by which values combine."""

    def __init__(self, ledger: Ledger, frame: Frame, max_unroll: int | None, unrolled_steps: int) -> None:
        """``unrolled_steps``: the steps up to which unrolled loops are followed iteration by iteration."""
        self.ledger = ledger
        self.frame = frame
        self.max_unroll = max_unroll
        self.unrolled_steps = unrolled_steps
        self.conditions: list[Condition] = []
        self.loop_bits = 0
        """The dynamic loops that are being executed."""
        self.loop_nodes: list[ast.AST] = []
        self.loop_entries: list[frozenset[int]] = []
        """For each of them: the values (by identity) of the locals that come in from outside and stay as they are."""
        self.table = table()
        self.annotations: dict[ast.expr, Type] = {}

    def apply(self, name: str, arguments: list[Value], node: ast.AST) -> Value:
        """The value of builtin ``name`` on ``arguments``, by the table of builtins."""
        if name == "mul" and len(arguments) == 2 and all(each.type.kind is Kind.TRANSFORM for each in arguments):
            name = "transform_multiply"
        entries = arguments[0].components if name == "determinant" and _is_nested(node) else None
        if entries is not None and len(entries) == 4:
            return self._determinant(entries, node)
        derivative = self.table.derivative(name)
        if derivative is Derivative.FLAT:
            return self.flat(arguments, node=node)
        if derivative is Derivative.MISSING:
            return self.flat(arguments, Cut.NONDIFFERENTIABLE, node)
        arguments = self._without_missing(name, arguments, node)
        value = self.linear(arguments)
        if name in self.table.numbers:
            value.type = types.REAL if value.type.floating else Type(Kind.SCALAR, value.type.floating)
        value.sign = sign_of(name, arguments, node)
        value.bounds = bounds_of(name, arguments, node)
        if value.active and (name == "exp" or name in self.table.singular):
            value.dangers |= self._danger(name, arguments, value.active, node)
        elif value.active and kinked(name, arguments):
            value.dangers |= self._dangerous(node, 0, value.active, PointKind.KINK, guarded=True)
        if value.active and derivative is not Derivative.LINEAR:
            self._add_needs(value, name, derivative, arguments, node)
        return value

    def _determinant(self, entries: Sequence[Value], node: ast.AST) -> Value:
        """The determinant of two rows of two: the adjoint of an entry is the one across."""
        a, b, c, d = entries
        return self.linear([self.apply("mul", [a, d], node), self.apply("mul", [b, c], node)])

    def _without_missing(self, name: str, arguments: list[Value], node: ast.AST) -> list[Value]:
        """The arguments, those cut off that the builtin's adjoint gives nothing to."""
        composite = any(argument.type.kind in COMPOSITES for argument in arguments)
        missing = self.table.missing(name, composite=composite)
        if not missing:
            return arguments
        return [
            self.flat([argument], Cut.NONDIFFERENTIABLE, node).like(type=argument.type)
            if number in missing
            else argument
            for number, argument in enumerate(arguments)
        ]

    def _danger(self, name: str, arguments: list[Value], active: int, node: ast.AST) -> int:
        """The bit of a singular operation, or 0."""
        operand = dangerous(name, arguments)
        if operand is None:
            return 0
        guarded = not operand.tokens or any(
            self.ledger.share_elements(condition.tokens, operand.tokens) for condition in self.conditions
        )
        kind = PointKind.OVERFLOW if name == "exp" else PointKind.SINGULAR
        return self._dangerous(node, operand.tokens, active, kind, guarded=guarded)

    def _dangerous(self, node: ast.AST, tokens: int, given: int, kind: PointKind, *, guarded: bool) -> int:
        dangers = self.ledger.dangers
        dangers.append(DangerRecord(node, self.frame.file, tokens, given, kind, guarded, self.ledger.order))
        return 1 << len(dangers) - 1

    def _add_needs(
        self, value: Value, name: str, derivative: Derivative, arguments: list[Value], node: ast.AST
    ) -> None:
        """The needs of one nonlinear operation; who reads a composite or the operation's own result is noted."""
        own, readers = 0, self.ledger.readers
        mixed = len({argument.type.kind in COMPOSITES for argument in arguments}) > 1
        for given, positions, held in self._readings(name, derivative, arguments, mixed=mixed):
            read = [arguments[position] for position in positions if position < len(arguments)]
            themselves = [arguments[position] for position in held if position < len(arguments)]
            tokens = union(each.tokens for each in read) | union(map(self.read, themselves))
            need = self.need(tokens, given, node)
            own |= need
            for each in themselves:
                if each.type.kind in COMPOSITES:
                    readers[each] = readers.get(each, 0) | need
        value.needs |= own
        reading = self.table.result_readers(name, mixed=mixed)
        through = union(argument.active for number, argument in enumerate(arguments) if number in reading)
        if through:
            self.ledger.results[value] = (through, node)
            if value.type.kind in COMPOSITES:
                readers[value] = readers.get(value, 0) | own

    def _readings(
        self, name: str, derivative: Derivative, arguments: list[Value], *, mixed: bool
    ) -> Iterator[tuple[int, Iterable[int], Iterable[int]]]:
        """If gradient flows through which paths an operation's adjoint reads which arguments (by position).

        First all those whose values it reads, then those that it reads themselves and not in the result.
        """
        count = len(arguments)
        if derivative is Derivative.NONLINEAR:
            yield union(argument.active for argument in arguments), range(count), range(count)
            return
        for number, argument in enumerate(arguments):
            if argument.active:
                held = self.table.held(name, number, count, mixed=mixed)
                yield argument.active, self.table.reads(name, number, count), held

    def variable(self, name: str, value: Value, made: ast.AST) -> Value:
        """A value as the variable ``name`` holds it from ``made`` on.

        Warp has one variable for each assignment, but a dynamic loop stores back into those from before it. So what
        reads the variable itself (not a value made from it) is wrong in the backward pass, which comes to it after the
        loop. Measured: ``t = a[i]``, ``b[i] = t * t``, then a loop with ``t += …``.
        """
        if name not in assigned_in_loops(self.frame.functions[-1]) or value.places or value.local:
            return value
        if value.type.kind in (Kind.STRUCT, Kind.TILE):
            return value
        if value in self.ledger.variables:
            value = value.like()
        token = Token(TokenKind.VARIABLE, name, "", "", self.ledger.order, made, self.frame.file)
        identity = (made, self.frame.functions, self.ledger.order)
        held = self.ledger.token(token, identity)
        if value in self.ledger.results:
            value = value.like(needs=value.needs | self.need(held, *self.ledger.results[value]))
        self.ledger.variables[value] = held
        return value

    def copied(self, value: Value) -> Value:
        """A value that is no longer the variable that it is read from."""
        return value.like() if value in self.ledger.variables or value in self.ledger.results else value

    def read(self, value: Value) -> int:
        """What an adjoint that reads a value stands on: its tokens, and the variable that holds it, if one does."""
        return value.tokens | self.ledger.variables.get(value, 0)

    def need(self, tokens: int, given: int, node: ast.AST, what: str = "") -> int:
        """The bit of a need at a node of the file being executed."""
        return self.ledger.need(tokens, given, node, self.frame.file, what)

    def linear(self, arguments: Iterable[Value]) -> Value:
        """The union of the arguments: sums, constructors, casts between floats."""
        value = Value()
        floating: bool | None = False
        for argument in arguments:
            value.active |= argument.active
            value.depends |= argument.depends
            value.tokens |= argument.tokens
            value.needs |= argument.needs
            value.cuts |= argument.cuts
            value.dangers |= argument.dangers
            value.threads |= argument.threads
            value.varies |= argument.varies
            value.type = joined_type(value.type, argument.type)
            if floating is not True and argument.type.floating is not False:
                floating = argument.type.floating
        if value.type.floating is not floating and value.type.kind is Kind.SCALAR:
            value.type = types.REAL if floating else Type(Kind.SCALAR)
        return value

    def flat(
        self, arguments: Iterable[Value], why: Cut = Cut.FLAT, node: ast.AST | None = None, file: File | None = None
    ) -> Value:
        """A value that depends on its arguments, though no gradient flows back to them: ``node`` stops it."""
        value = self.linear(arguments)
        value.cuts |= self.ledger.cut(value.active, why, node, file or self.frame.file)
        value.active = value.needs = value.dangers = 0
        value.type = types.INTEGER if why is Cut.FLAT else types.UNKNOWN
        return value

    def steered(self, value: Value, indices: Iterable[Value], node: ast.AST) -> Value:
        """A value that indices select: their values are needed where gradient flows through what is selected."""
        tokens = depends = read = 0
        for index in indices:
            tokens |= index.tokens
            depends |= index.depends
            read |= self.read(index)
        if not read and not depends:
            return value
        return value.like(
            tokens=value.tokens | tokens,
            needs=value.needs | self.need(read, value.active, node, "the index in "),
            depends=value.depends | depends,
            cuts=value.cuts | self.ledger.cut(depends, Cut.FLAT),
        )

    def condition(self, test: Value, node: ast.AST, what: str = "the condition ", *, loop: bool = False) -> Condition:
        """The condition that ``test`` is for the statements under it."""
        bounded = bool(test.threads) and not test.depends
        tokens, depends, file = test.tokens, test.depends, self.frame.file
        return Condition(tokens, depends, test.threads, test.varies, node, file, what, bounded, loop)

    def chosen(self, value: Value, by: Condition) -> Value:
        """A value that a condition selects: the condition is needed where gradient flows through the value."""
        if not (by.tokens or by.depends or by.threads or by.varies):
            return value
        ledger = self.ledger
        selected = value.like(
            tokens=value.tokens | by.tokens,
            needs=value.needs | ledger.need(by.tokens, value.active, by.node, by.file, by.what),
            depends=value.depends | by.depends,
            cuts=value.cuts | ledger.cut(by.depends, Cut.FLAT, None if by.loop else by.node, by.file),
            threads=value.threads | by.threads,
            varies=value.varies | by.varies,
            load=None,
        )
        if value.components is not None:
            selected.components = tuple(self.chosen(part, by) for part in value.components)
        if value.fields is not None:
            selected.fields = {name: self.chosen(part, by) for name, part in value.fields.items()}
        return selected

    def meet(self, environments: Iterable[Exit]) -> Environment:
        """What holds where several ways meet: a local that differs was selected by the ways' conditions."""
        result: Environment | None = None
        for way in environments:
            if result is None:
                result = dict(way.locals)
                continue
            for name, value in way.locals.items():
                known = result.get(name)
                if known is not value:
                    result[name] = self.under(value if known is None else joined(known, value), way.conditions)
        return result if result is not None else {}

    def under(self, value: Value, conditions: Iterable[Condition]) -> Value:
        """A value that several conditions select."""
        for condition in conditions:
            value = self.chosen(value, condition)
        return value

    def arms(self) -> Arms:
        """The arms of branches that are being executed."""
        return frozenset(each.arm for each in self.conditions if each.arm is not None)

    def annotation(self, node: ast.expr | None, scope: Scope) -> Type:
        """The type that an annotation means."""
        if node is None:
            return types.UNKNOWN
        known = self.annotations.get(node)
        if known is None:
            known = self.annotations[node] = types.annotated(node, scope)
        return known


def _is_nested(node: ast.AST) -> bool:
    """Whether a call's argument is the result of another call, which no variable holds."""
    return isinstance(node, ast.Call) and bool(node.args) and isinstance(node.args[0], ast.Call)

"""The adjoint-need analysis: what one kernel does to memory, and what its adjoint reads.

``summarise`` executes the kernel's ``ast`` abstractly, once, with functions in place and loops as Warp makes them.
Two ideas make it right. What a value stands on (its *tokens*) passes through everything, also through sums and locals,
since Warp recomputes locals in the backward pass from what memory holds then. And a need is conditional: an adjoint
reads a value only where gradient flows through the operation's other side; so needs hang on values, arrive with them
at stores, and whoever knows which arrays carry gradient decides.

Theory: Hascoët, Naumann, Pascual, *"To be recorded" analysis in reverse-mode automatic differentiation*, 2005.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from warplint.finding import Span
from warplint.kernels import types
from warplint.kernels.dead_stores import bury
from warplint.kernels.faults import faults
from warplint.kernels.ledger import MOST_STEPS, File, Ledger, Overrun, StoreRecord, Token, TokenKind
from warplint.kernels.operations import Frame
from warplint.kernels.points import nonsmooth_points
from warplint.kernels.source import KernelSource, text_of
from warplint.kernels.statements import Interpreter, parameter_value
from warplint.kernels.summary import Cut, KernelSummary, Need, Parameter, Read, Store, StoreKind
from warplint.kernels.types import Kind, Type
from warplint.kernels.values import Value, members, union
from warplint.source import span_of

WORTH_ANOTHER_RUN = MOST_STEPS // 4
"""Where the steps run out: from so many on that unrolled loops took, it is run again with these as loops."""

LONGEST_TEXT = 60
"""Operations are quoted up to this many characters."""

_KINDS = {Kind.ARRAY: "array", Kind.STRUCT: "struct", Kind.UNKNOWN: "unknown"}


def summarise(source: KernelSource) -> KernelSummary:
    """The summary of a kernel, of its text, what its names mean and the options that shape its adjoint.

    Never raises for what the kernel holds: where the analysis gives up, ``complete`` is false and ``why`` says it.
    """
    first = _Analysis(source)
    if first.run(unrolled_steps=MOST_STEPS) or first.ledger.sparable < WORTH_ANOTHER_RUN:
        return first.summary()
    second = _Analysis(source)
    second.run(unrolled_steps=0)
    return second.summary()


class _Analysis:
    """One run over one kernel."""

    def __init__(self, source: KernelSource) -> None:
        self.source = source
        self.file = File(source.path, source.lines)
        self.ledger = Ledger(source.warp)
        self.why = ""
        self._spans: dict[ast.AST, Span] = {}
        self._reads: dict[Token, Read] = {}
        self._expansions: dict[tuple[int, int], tuple[Need, ...]] = {}
        self.reads = 0
        """The tokens that are reads of array elements."""
        arguments = source.node.args
        self.types: dict[ast.arg, Type] = {
            argument: types.annotated(argument.annotation, source.scope)
            for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        }

    def run(self, *, unrolled_steps: int) -> bool:
        """Execute the kernel; false where the budget ran out."""
        node = self.source.node
        self.ledger.followed = self.source.followed
        parameters = {argument.arg: self._parameter_value(argument, of) for argument, of in self.types.items()}
        frame = Frame(self.source.scope, self.file, parameters, functions=(node,))
        interpreter = Interpreter(self.ledger, frame, self.source.max_unroll, unrolled_steps)
        for argument in self.types:
            parameters[argument.arg] = interpreter.variable(argument.arg, parameters[argument.arg], argument)
        try:
            interpreter.block(node.body)
        except Overrun as overrun:
            self.why = str(overrun)
            return False
        except RecursionError:
            self.why = "expressions nested too deep"
        if self.ledger.unresolved and not self.why:
            self.why = "unknown callee: " + ", ".join(self.ledger.unresolved)
        return True

    def _parameter_value(self, argument: ast.arg, of: Type) -> Value:
        value = parameter_value(argument.arg, of)
        return value if value.places else self.ledger.followed_value(value, argument.arg, argument, self.file)

    # -- from bit sets to the public summary ---------------------------------------------------------------------

    def summary(self) -> KernelSummary:
        """What was found, in public terms."""
        ledger, node = self.ledger, self.source.node
        bury(ledger)
        numbers = [number for number, token in enumerate(ledger.tokens) if token.kind is TokenKind.READ]
        self.reads = union(1 << number for number in numbers)
        reads = [token for token in map(ledger.tokens.__getitem__, numbers) if not token.component]
        found = faults(ledger, self._span, self._read)
        stores = self._stores()
        return KernelSummary(
            node.name,
            self._span(node, self.file),
            tuple(self._parameter(argument, of) for argument, of in self.types.items()),
            tuple(sorted(map(self._read, reads), key=lambda read: read.order)),
            stores,
            found,
            not self.why,
            self.why,
            frozenset(token.path for token in reads),
            frozenset(store.path for store in stores),
            nonsmooth_points(ledger, self._span),
            self.source,
        )

    def _span(self, node: ast.AST, file: File) -> Span:
        span = self._spans.get(node)
        if span is None:
            span = self._spans[node] = span_of(node, file.path, file.lines)
        return span

    def _read(self, token: Token) -> Read:
        read = self._reads.get(token)
        if read is None:
            span = self._span(token.node, token.file)
            read = self._reads[token] = Read(token.path, token.index, token.order, span, token.component)
        return read

    def _parameter(self, argument: ast.arg, of: Type) -> Parameter:
        text = ast.unparse(argument.annotation) if argument.annotation is not None else ""
        element = of.element.name if of.element is not None else ""
        return Parameter(argument.arg, text, _KINDS.get(of.kind, "scalar"), element or None, of.ndim, of.floating)

    def _stores(self) -> tuple[Store, ...]:
        """The stores; what an unrolled loop repeats at one index is one store, at its last place in the order."""
        merged: dict[tuple[object, ...], StoreRecord] = {}
        for record in self.ledger.stores:
            key = (record.node, record.path, record.symbol, record.component, record.kind)
            known = merged.get(key)
            if known is None:
                merged[key] = record
                continue
            known.order = max(known.order, record.order)
            known.needs |= record.needs
            known.multiplier |= record.multiplier
            known.conditional &= record.conditional
            known.copied = known.copied if known.copied == record.copied else ""
            known.value = known.value.like(
                active=known.value.active | record.value.active,
                depends=known.value.depends | record.value.depends,
                cuts=known.value.cuts | record.value.cuts,
            )
        return tuple(self._store(record) for record in sorted(merged.values(), key=lambda record: record.order))

    def _store(self, record: StoreRecord) -> Store:
        ledger, value = self.ledger, record.value
        active = ledger.path_names(value.active)
        every_thread = self._every_thread(record)
        cuts = ledger.cuts(value.cuts)
        return Store(
            record.path,
            record.symbol,
            record.kind,
            record.order,
            self._span(record.node, record.file),
            active,
            ledger.path_names(value.depends) | active,
            self._needs(record),
            _distinct((ledger.path_name(cut.path), cut.why) for cut in cuts if not value.active >> cut.path & 1),
            not record.component,
            record.conditional,
            ledger.path_names(record.multiplier),
            _covers_array(record, every_thread),
            record.component,
            _distinct((ledger.path_name(cut.path), cut.why) for cut in cuts if cut.node is not None),
            every_thread=every_thread,
            copied=record.copied,
        )

    def _needs(self, record: StoreRecord) -> tuple[Need, ...]:
        """One need for each element and activity; where several operations read it, the first one speaks for them."""
        seen: dict[tuple[int, bool], int] = {}
        found: list[Need] = []
        for number in members(record.needs):
            need = self.ledger.needs[number]
            asked = (need.given, need.destination)
            new = need.tokens & self.reads & ~seen.get(asked, 0)
            if new:
                seen[asked] = seen.get(asked, 0) | new
                found.extend(self._expanded(number, new))
        return tuple(found)

    def _expanded(self, number: int, tokens: int) -> tuple[Need, ...]:
        """One internal need as public ones, for some of its tokens."""
        known = self._expansions.get((number, tokens))
        if known is None:
            need = self.ledger.needs[number]
            given = self.ledger.path_names(need.given)
            operation = _shortened(need.what + text_of(need.node))
            span = self._span(need.node, need.file)
            reads = [self._read(self.ledger.tokens[token]) for token in members(tokens)]
            known = tuple(Need(read, given, operation, span, need.destination) for read in reads)
            self._expansions[number, tokens] = known
        return known

    def _every_thread(self, record: StoreRecord) -> bool | None:
        """Whether each thread stores to an element of its own: the index holds each dimension of the thread's index."""
        lanes = {abs(index.lane) for index in record.index if index.lane}
        if lanes and lanes >= set(self.ledger.lane_names):
            return True
        return None if union(index.threads for index in record.index) or not record.index else False


def _covers_array(record: StoreRecord, every_thread: bool | None) -> bool | None:
    """True: the launch rewrites all of it; None: it may (bounds and sizes decide)."""
    if record.component or record.kind is not StoreKind.STORE:
        return False
    if record.conditional and not record.bounded:
        return False
    if every_thread is True and all(index.lane > 0 for index in record.index):
        return None if record.conditional or record.loops else True
    if record.loops or every_thread is None or all(isinstance(index.constant, int) for index in record.index):
        return None
    return False


def _distinct(cuts: Iterable[tuple[str, Cut]]) -> tuple[tuple[str, Cut], ...]:
    return tuple(dict.fromkeys(cuts))


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"

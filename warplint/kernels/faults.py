"""Faults that lie wholly inside one kernel: each follows from a need that arrives at a store and is lost on the way."""

from __future__ import annotations

import ast
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import field

from warplint.dataclass import dataclass
from warplint.finding import Span
from warplint.kernels.ledger import File, Ledger, Needed, StoreRecord, Token, TokenKind
from warplint.kernels.neighbours import neighbour_reads
from warplint.kernels.operations import Condition
from warplint.kernels.replays import changed_by_replay
from warplint.kernels.source import text_of
from warplint.kernels.summary import Cut, KernelFault, KernelFaultKind, Read, StoreKind
from warplint.kernels.types import Kind
from warplint.kernels.values import members, union
from warplint.syntax import walk

_STOPPED = {
    Cut.FLAT: KernelFaultKind.FLAT,
    Cut.NONDIFFERENTIABLE: KernelFaultKind.NONDIFFERENTIABLE,
    Cut.NATIVE: KernelFaultKind.NATIVE,
}

DIFFERENTIATES_ELEMENTS = {StoreKind.STORE: (1, 15), StoreKind.ACCUMULATE: (1, 18)}
"""The version from which stores to components of array elements have an adjoint, and sums onto them.

Measured on 1.13, 1.15, 1.17, 1.18 and 1.19: ``a[i].x = e`` passes no gradient on 1.13, ``a[i].x += e`` none up to 1.17.
"""

SpanOf = Callable[[ast.AST, File], Span]

_LOST: dict[TokenKind, KernelFaultKind] = {
    TokenKind.COMPONENT: KernelFaultKind.COMPONENT_MULTIPLY,
    TokenKind.REASSIGNED: KernelFaultKind.COMPONENT_REASSIGN,
    TokenKind.ASSIGNED: KernelFaultKind.ADJOINT_ASSIGNED,
    TokenKind.UNSELECTED: KernelFaultKind.UNSELECTED_SINGULAR,
    TokenKind.OUTDONE: KernelFaultKind.EXTREME_KEPT,
    TokenKind.OMITTED: KernelFaultKind.ADJOINT_OMITTED,
}
"""Tokens that are gone whatever happens in memory, and the fault that needing one is."""


@dataclass
class _Draft:
    """A fault in the making: what several stores say of one statement is one fault."""

    kind: KernelFaultKind
    node: ast.AST
    file: File
    order: int
    read: Token | None = None
    given: int = 0
    into: set[str] = field(default_factory=set)
    what: str = ""
    loop: ast.AST | None = None
    loop_file: File | None = None
    present: frozenset[str] = frozenset()
    steers: str = ""
    certain: bool = True


def faults(ledger: Ledger, span_of: SpanOf, read_of: Callable[[Token], Read]) -> tuple[KernelFault, ...]:
    """All faults of the kernel, in the order of the statements they stand at."""
    consumers = _consumers(ledger)
    drafts: dict[tuple[object, ...], _Draft] = {}
    finders = (_lost, _mutated, _looped, _replayed, _run_again, _overwritten)
    lost = (find(ledger, consumers) for find in finders)
    found = itertools.chain(
        _multiplied(ledger), _cut(ledger), _shared(ledger), _neighbouring(ledger), _in_elements(ledger), *lost
    )
    for key, draft in found:
        known = drafts.setdefault(key, draft)
        known.given |= draft.given
        known.into |= draft.into
        known.certain |= draft.certain
        known.present &= draft.present
    _leave_to_replays(drafts)
    return tuple(
        KernelFault(
            draft.kind,
            span_of(draft.node, draft.file),
            draft.order,
            ledger.path_names(draft.given),
            frozenset(draft.into),
            text_of(draft.node),
            draft.what,
            read_of(draft.read) if draft.read is not None else None,
            span_of(draft.loop, draft.loop_file or draft.file) if draft.loop is not None else None,
            draft.steers.strip(),
            draft.certain,
            draft.present,
        )
        for draft in sorted(drafts.values(), key=lambda draft: draft.order)
    )


def _leave_to_replays(drafts: dict[tuple[object, ...], _Draft]) -> None:
    """What an atomic returned has no adjoint either; where its value is needed, that is told alone."""
    for kind, node in [key[:2] for key in drafts]:
        if kind is KernelFaultKind.ATOMIC_REPLAYED and drafts[kind, node].certain:
            drafts.pop((KernelFaultKind.NONDIFFERENTIABLE, node), None)


def _consumers(ledger: Ledger) -> dict[int, set[str]]:
    """For each need that arrives at a store: the paths stored to."""
    arriving: dict[int, set[str]] = defaultdict(set)
    for store in ledger.stores:
        for number in members(store.needs):
            arriving[number].add(store.path)
    return arriving


def _multiplied(ledger: Ledger) -> Iterator[tuple[tuple[object, ...], _Draft]]:
    """``a[i] *= e`` where e may carry gradient: its adjoint reads the product in place of a's old value."""
    for store in ledger.stores:
        if store.kind is not StoreKind.MULTIPLY or not store.multiplier:
            continue
        given = store.multiplier
        if store.component:
            given |= ledger.path_bit(store.path)
        kind = KernelFaultKind.INPLACE_MULTIPLY
        draft = _Draft(kind, store.node, store.file, store.order, None, given, {store.path}, store.component)
        yield (kind, store.node), draft


def _in_elements(ledger: Ledger) -> Iterator[tuple[tuple[object, ...], _Draft]]:
    """Stores to a component of an array element, which old versions of Warp do not differentiate."""
    kind = KernelFaultKind.ELEMENT_COMPONENT
    for store in ledger.stores:
        given = store.value.active & ~ledger.path_bit(store.path)
        since = DIFFERENTIATES_ELEMENTS.get(store.kind)
        if since is not None and ledger.warp < since and store.component and given:
            told = ".".join(map(str, since))
            yield (kind, store.node), _Draft(kind, store.node, store.file, store.order, None, given, {store.path}, told)


def _lost(ledger: Ledger, consumers: dict[int, set[str]]) -> Iterator[tuple[tuple[object, ...], _Draft]]:
    """Needs of something that no memory holds."""
    gone = union(1 << number for number, token in enumerate(ledger.tokens) if token.kind in _LOST)
    for number, into in consumers.items():
        need = ledger.needs[number]
        for token in map(ledger.tokens.__getitem__, members(need.tokens & gone)):
            kind = _LOST[token.kind]
            draft = _Draft(kind, need.node, need.file, need.order, None, need.given, set(into), token.path, token.loop)
            draft.certain = kind is not KernelFaultKind.EXTREME_KEPT
            yield (kind, need.node), draft


def _shared(ledger: Ledger) -> Iterator[tuple[tuple[object, ...], _Draft]]:
    """Plain stores of each thread's own value to one element. A sum onto the element may come out right by luck.

    Under a condition that all threads share it is the same; where the data of each one decide, several may.
    """
    kind = KernelFaultKind.SHARED_STORE
    for store in ledger.stores:
        fixed = not any(index.threads or index.depends or index.type.kind is Kind.TUPLE for index in store.index)
        own = store.value.threads and store.value.active
        if fixed and own and store.kind is StoreKind.STORE and isinstance(store.node, ast.Assign):
            deciding = [each for each in store.under if isinstance(each, Condition) and each.threads and not each.loop]
            if all(each.depends and not _selects(each.node) for each in deciding):
                given, into = store.value.active, {store.path}
                draft = _Draft(kind, store.node, store.file, store.order, None, given, into, store.path)
                draft.certain = not deciding and not given & ledger.path_bit(store.path)
                yield (kind, store.node), draft


def _selects(test: ast.AST) -> bool:
    """Whether a condition may let a single thread pass: it asks for equality."""
    operators = (each for node in walk(test) if isinstance(node, ast.Compare) for each in node.ops)
    return any(isinstance(each, (ast.Eq, ast.NotEq)) for each in operators)


def _neighbouring(ledger: Ledger) -> Iterator[tuple[tuple[object, ...], _Draft]]:
    """Stores to the thread's own element, which another thread reads (Gauss-Seidel): the read may be of any value."""
    kind = KernelFaultKind.NEIGHBOUR_OVERWRITTEN
    for number, store in neighbour_reads(ledger):
        read, bit = ledger.tokens[number], ledger.path_bit(store.path)
        into = {user.path for user in ledger.stores if user.value.tokens >> number & 1 and user.value.active & bit}
        if into:
            yield (
                (kind, store.node),
                _Draft(kind, store.node, store.file, store.order, read, bit, into, text_of(read.node)),
            )


def _replayed(ledger: Ledger, consumers: dict[int, set[str]]) -> Iterator[tuple[tuple[object, ...], _Draft]]:
    """What an atomic returned, where it is needed. A condition on it may well come out the same once more."""
    kind = KernelFaultKind.ATOMIC_REPLAYED
    atomic = union(1 << number for number, token in enumerate(ledger.tokens) if token.kind is TokenKind.ATOMIC)
    for number, into in consumers.items():
        need = ledger.needs[number]
        for token in map(ledger.tokens.__getitem__, members(need.tokens & atomic)):
            draft = _Draft(kind, token.node, token.file, token.order, None, need.given, set(into), token.path)
            draft.certain = not need.what.startswith("the condition")
            yield (kind, token.node), draft


def _run_again(ledger: Ledger, consumers: dict[int, set[str]]) -> Iterator[tuple[tuple[object, ...], _Draft]]:
    """Stores in functions that leave another value when the backward pass runs them again."""
    kind = KernelFaultKind.STORE_REPLAYED
    for store, changed in changed_by_replay(ledger):
        read = [(number, into) for number, into in consumers.items() if ledger.needs[number].tokens & changed]
        for number, into in read:
            need = ledger.needs[number]
            text = text_of(need.node)
            yield (
                (kind, store.node),
                _Draft(kind, store.node, store.file, store.order, None, need.given, set(into), text),
            )
        if not read:
            draft = _Draft(kind, store.node, store.file, store.order, into={store.path}, certain=False)
            yield (kind, store.node), draft


def _cut(ledger: Ledger) -> Iterator[tuple[tuple[object, ...], _Draft]]:
    """Operations at which gradient on its way from a path to a store stops."""
    for store in ledger.stores:
        for cut in ledger.cuts(store.value.cuts):
            if cut.node is not None and cut.file is not None:
                kind, into = _STOPPED[cut.why], {store.path}
                name = cut.node.name if isinstance(cut.node, ast.FunctionDef) else ""
                yield (kind, cut.node), _Draft(kind, cut.node, cut.file, store.order, None, 1 << cut.path, into, name)


def _mutated(ledger: Ledger, consumers: dict[int, set[str]]) -> Iterator[tuple[tuple[object, ...], _Draft]]:
    """A component assigned after an adjoint took the whole of its vector, of which there is but one copy."""
    kind = KernelFaultKind.COMPONENT_REASSIGN
    for mutation in ledger.mutations:
        for number in members(mutation.readers):
            if number in consumers:
                given, into = ledger.needs[number].given, set(consumers[number])
                draft = _Draft(kind, mutation.node, mutation.file, mutation.order, None, given, into, "", mutation.loop)
                yield (kind, mutation.node), draft


def _looped(ledger: Ledger, consumers: dict[int, set[str]]) -> Iterator[tuple[tuple[object, ...], _Draft]]:
    """The needs, in each dynamic loop and behind it, of a local that the loop keeps only one copy of.

    Those of conditions come last, since what an operation reads is plainer to see. What a ``break`` or ``return`` makes
    of the loop's results is told only where nothing else is wrong with them, since it depends on the data.
    """
    kind = KernelFaultKind.DYNAMIC_LOOP
    found: dict[ast.AST, list[tuple[bool, int, _Draft]]] = defaultdict(list)
    for number, into in consumers.items():
        need = ledger.needs[number]
        for token in map(ledger.tokens.__getitem__, members(need.tokens & ledger.carried)):
            if (token.node, token.path) not in ledger.filled:
                draft = _Draft(kind, need.node, need.file, need.order, None, need.given, set(into), token.path)
                draft.loop, draft.loop_file, draft.steers = token.node, token.file, need.what
                draft.present = token.present
                found[token.node].append((bool(need.what), need.order, draft))
    for loop, ranked in found.items():
        ever = [rank for rank in ranked if not isinstance(rank[2].node, (ast.Break, ast.Continue, ast.Return))]
        for _, _, draft in sorted(ever or ranked, key=lambda rank: rank[:2]):
            yield (kind, loop, draft.node), draft


def _overwritten(ledger: Ledger, consumers: dict[int, set[str]]) -> Iterator[tuple[tuple[object, ...], _Draft]]:
    """Stores to an element whose old value some adjoint of the same kernel needs: the first one after the read."""
    overwriting = _overwriting_stores(ledger)
    gone = union(1 << number for number in overwriting)
    for number, into in consumers.items():
        need = ledger.needs[number]
        for lost in members(need.tokens & gone):
            yield _overwrite(overwriting[lost], ledger.tokens[lost], need, into)


def _overwriting_stores(ledger: Ledger) -> dict[int, StoreRecord]:
    """For each read, by its number: the first store that replaces what was read."""
    stores: dict[tuple[str, str], list[StoreRecord]] = defaultdict(list)
    for store in ledger.stores:
        if "?" not in store.symbol and store.copied != store.path:
            stores[store.path, store.symbol].append(store)
    found: dict[int, StoreRecord] = {}
    for number, token in enumerate(ledger.tokens):
        if token.kind is TokenKind.READ and (token.path, token.index) in stores:
            first = _first_after(token, stores[token.path, token.index])
            if first is not None:
                found[number] = first
    return found


def _overwrite(store: StoreRecord, token: Token, need: Needed, into: set[str]) -> tuple[tuple[object, ...], _Draft]:
    """A need that follows the destination's activity holds whatever else is active, so those faults stay apart."""
    kind = KernelFaultKind.READ_THEN_OVERWRITTEN
    given = 0 if need.destination else need.given
    draft = _Draft(kind, store.node, store.file, store.order, token, given, set(into), text_of(need.node))
    return (kind, store.node, token.path, token.index, need.destination), draft


def _first_after(token: Token, stores: list[StoreRecord]) -> StoreRecord | None:
    """The first store that replaces what was read, in the same iteration or in a later one of a loop around both."""
    for store in stores:
        if not _overlap(token.component, store.component):
            continue
        again = token.loops & store.loops & ~(token.varies | store.varies)
        if again or (store.order > token.order and not _exclusive(token, store)):
            return store
    return None


def _overlap(a: str, b: str) -> bool:
    """Whether two components share memory: one lies in the other, or a component is not known."""
    if not a or not b or "?" in a + b:
        return True
    short, long = sorted((a.split("."), b.split(".")), key=len)
    return all(x == y or not (_known(x) and _known(y)) for x, y in zip(short, long, strict=False))


def _known(component: str) -> bool:
    return component.isdigit() or component.isidentifier()


def _exclusive(token: Token, store: StoreRecord) -> bool:
    """Whether they stand in different arms of one branch."""
    return any((number, not arm) in store.arms for number, arm in token.arms)

"""Stores whose value nobody reads before the same kernel replaces it: no gradient comes back to them.

Measured: the adjoint of the later store takes the element's gradient and clears it, so that whatever the adjoint of the
earlier one makes of nothing is nothing. Who reads the value for such a store alone hands no gradient on either, nor
does who reads it through flat operations alone, or as a condition.
"""

from __future__ import annotations

import ast
import re

from warplint.kernels.ledger import Bound, Ledger, StoreRecord, Token, TokenKind
from warplint.kernels.operations import Condition
from warplint.kernels.summary import StoreKind
from warplint.kernels.values import Value, members, union


def bury(ledger: Ledger) -> None:
    """Take from each dead store what its adjoint would read and where gradient would flow; the store itself stays."""
    for store in _dead(ledger):
        store.value, store.needs, store.multiplier = Value(type=store.value.type, threads=store.value.threads), 0, 0
    for store, there in _dead_behind_loops(ledger):
        store.needs = ledger.spared(store.needs, there)


def _dead(ledger: Ledger) -> list[StoreRecord]:
    """The stores that are replaced before a store that is not dead itself makes use of them."""
    later = _replacing(ledger)
    reads = _reads(ledger) if later else {}
    dead = [store for store in ledger.stores if id(store) in later]
    while dead:
        buried = set(map(id, dead))
        alive = [store for store in ledger.stores if id(store) not in buried]
        met: dict[str, list[Token]] = {}
        for path, found in reads.items():
            own = ledger.path_bit(path)
            used = union(_stands_on(store, ledger) for store in alive if store.value.active & own)
            met[path] = [token for bit, token in found if bit & used]
        kept = [store for store in dead if _is_unread(store, later[id(store)], met.get(store.path, []))]
        if len(kept) == len(dead):
            break
        dead = kept
    return dead


def _dead_behind_loops(ledger: Ledger) -> list[tuple[StoreRecord, int]]:
    """Stores that matter only where a loop runs no iteration, and the tokens that are there then."""
    found: list[tuple[StoreRecord, int]] = []
    reads = _reads(ledger) if ledger.bounds else {}
    for store in ledger.stores if ledger.bounds else ():
        for later in _candidates(store, ledger) if store.needs else ():
            there = ledger.there_without(_only_loop(later, store))
            met = [token for _, token in reads.get(store.path, [])]
            if there and _covers(later, store) and _is_unread(store, [later], met):
                found.append((store, there))
    return found


def _candidates(store: StoreRecord, ledger: Ledger) -> list[StoreRecord]:
    """The later stores to the same element."""
    if "?" in store.symbol:
        return []
    return [each for each in ledger.stores if each.path == store.path and each.symbol == store.symbol]


def _only_loop(later: StoreRecord, store: StoreRecord) -> Bound | None:
    """The bound of the loop under which alone a later store stands, besides what the earlier one stands under."""
    known = set(map(id, store.under))
    further = [each for each in later.under if id(each) not in known]
    only = further[0] if len(further) == 1 else None
    return only.bound if isinstance(only, Condition) and only.loop else None


def _reads(ledger: Ledger) -> dict[str, list[tuple[int, Token]]]:
    """The reads by path. What ``atomic_min`` and ``atomic_max`` compare to see who won is part of their own store."""
    atomics = {id(store.node) for store in ledger.stores if isinstance(store.node, ast.Call)}
    found: dict[str, list[tuple[int, Token]]] = {}
    for number, token in enumerate(ledger.tokens):
        own = token.kind is TokenKind.READ and id(token.node) in atomics
        if token.kind in (TokenKind.READ, TokenKind.ATOMIC) and not own:
            found.setdefault(token.path, []).append((1 << number, token))
    return found


def _stands_on(store: StoreRecord, ledger: Ledger) -> int:
    """The tokens that a store's value, its place and its conditions are made of, or their adjoints read."""
    return store.value.tokens | union(ledger.needs[number].tokens for number in members(store.needs))


def _replacing(ledger: Ledger) -> dict[int, list[StoreRecord]]:
    """For each store, by identity: those that replace all of it wherever it ran."""
    elements: dict[tuple[str, str], list[StoreRecord]] = {}
    for store in ledger.stores:
        if "?" not in store.symbol:
            elements.setdefault((store.path, store.symbol), []).append(store)
    found: dict[int, list[StoreRecord]] = {}
    for stores in elements.values():
        for number, store in enumerate(stores):
            later = [each for each in stores[number + 1 :] if _replaces(each, store)]
            if later:
                found[id(store)] = later
    return found


def _replaces(later: StoreRecord, store: StoreRecord) -> bool:
    return _covers(later, store) and set(map(id, later.under)) <= set(map(id, store.under))


def _covers(later: StoreRecord, store: StoreRecord) -> bool:
    """Whether a later store replaces all of an earlier one where it runs."""
    if later.kind is not StoreKind.STORE or later.order <= store.order:
        return False
    if (later.component and later.component != store.component) or "?" in later.component:
        return False
    return not store.varies & store.loops & ~later.loops


def _is_unread(store: StoreRecord, later: list[StoreRecord], reads: list[Token]) -> bool:
    """Whether nothing of the array is read before one of the later stores replaces what this one left."""
    reads = [read for read in reads if not _is_elsewhere(read, store)]
    return any(
        not any(store.order < read.order < each.order or read.loops & store.loops & ~each.loops for read in reads)
        for each in later
    )


def _is_elsewhere(read: Token, store: StoreRecord) -> bool:
    """Whether a read is of another element than a store in the same iteration: ``b[k + 1]``, not ``b[k]``.

    Where the thread's index is part of it, it is the element of another thread.
    """
    if len(read.indices) != len(store.index) or any(index.threads for index in (*read.indices, *store.index)):
        return False
    pairs = ((_offset(a.symbol), _offset(b.symbol)) for a, b in zip(read.indices, store.index, strict=True))
    return any(a[0] == b[0] and a[1] != b[1] and "?" not in a[0] for a, b in pairs)


def _offset(symbol: str) -> tuple[str, int]:
    """An index as a sum of something and a number: ``k + 1`` as ``("k", 1)``, ``3`` as ``("", 3)``."""
    if symbol.isdigit():
        return "", int(symbol)
    match = re.fullmatch(r"(.+) ([+-]) (\d+)", symbol)
    return (match[1], int(match[2] + match[3])) if match else (symbol, 0)

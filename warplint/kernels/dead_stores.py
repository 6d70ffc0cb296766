"""Stores whose value nobody reads before the same kernel replaces it: no gradient comes back to them.

Measured: the adjoint of the later store takes the element's gradient and clears it, so that whatever the adjoint of the
earlier one makes of nothing is nothing. Who reads the value for such a store alone hands no gradient on either.
"""

from __future__ import annotations

import ast
import re

from warplint.kernels.ledger import Ledger, StoreRecord, Token, TokenKind
from warplint.kernels.summary import StoreKind
from warplint.kernels.values import Value, members, union


def bury(ledger: Ledger) -> None:
    """Take from each dead store what its adjoint would read and where gradient would flow; the store itself stays."""
    for store in _dead(ledger):
        store.value, store.needs, store.multiplier = Value(type=store.value.type, threads=store.value.threads), 0, 0


def _dead(ledger: Ledger) -> list[StoreRecord]:
    """The stores that are replaced before a store that is not dead itself makes use of them."""
    later = _replacing(ledger)
    reads = _reads(ledger) if later else {}
    dead = [store for store in ledger.stores if id(store) in later]
    while dead:
        buried = set(map(id, dead))
        used = union(_stands_on(store, ledger) for store in ledger.stores if id(store) not in buried)
        met = {path: [token for bit, token in found if bit & used] for path, found in reads.items()}
        kept = [store for store in dead if _is_unread(store, later[id(store)], met.get(store.path, []))]
        if len(kept) == len(dead):
            break
        dead = kept
    return dead


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
    if later.kind is not StoreKind.STORE or later.order <= store.order:
        return False
    if (later.component and later.component != store.component) or "?" in later.component:
        return False
    if store.varies & store.loops & ~later.loops:
        return False
    return set(map(id, later.under)) <= set(map(id, store.under))


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

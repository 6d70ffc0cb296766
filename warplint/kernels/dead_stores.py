"""Stores whose value nobody reads before the same kernel replaces it: no gradient comes back to them.

Measured: the adjoint of the later store takes the element's gradient and clears it, so that whatever the adjoint of the
earlier one makes of nothing is nothing.
"""

from __future__ import annotations

from warplint.kernels.ledger import Ledger, StoreRecord, Token, TokenKind
from warplint.kernels.summary import StoreKind
from warplint.kernels.values import Value, union


def bury(ledger: Ledger) -> None:
    """Take from each dead store what its adjoint would read and where gradient would flow; the store itself stays."""
    reads: dict[str, list[Token]] = {}
    used = union(store.value.tokens for store in ledger.stores) | union(need.tokens for need in ledger.needs)
    for number, token in enumerate(ledger.tokens):
        if token.kind is TokenKind.READ or (token.kind is TokenKind.ATOMIC and used >> number & 1):
            reads.setdefault(token.path, []).append(token)
    elements: dict[tuple[str, str], list[StoreRecord]] = {}
    for store in ledger.stores:
        if "?" not in store.symbol:
            elements.setdefault((store.path, store.symbol), []).append(store)
    dead = [
        store
        for (path, _), stores in elements.items()
        for number, store in enumerate(stores)
        if any(_kills(later, store, reads.get(path, [])) for later in stores[number + 1 :])
    ]
    for store in dead:
        store.value, store.needs, store.multiplier = Value(type=store.value.type, threads=store.value.threads), 0, 0


def _kills(later: StoreRecord, store: StoreRecord, reads: list[Token]) -> bool:
    """Whether ``later`` replaces what ``store`` left wherever that ran, before anything of the array is read."""
    if later.kind is not StoreKind.STORE or later.order <= store.order:
        return False
    if (later.component and later.component != store.component) or "?" in later.component:
        return False
    left = store.loops & ~later.loops
    if store.varies & left or not set(map(id, later.under)) <= set(map(id, store.under)):
        return False
    return not any(store.order < read.order < later.order or read.loops & left for read in reads)

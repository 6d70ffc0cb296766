"""Stores that the backward pass runs again: those of functions, which it calls once more to have their locals.

Measured: stores of the kernel itself are not repeated, those of its functions are, once for each call, before anything
is differentiated. What adds to an element adds twice; what was overwritten in the kernel since stands there again.
"""

from __future__ import annotations

from collections.abc import Iterator

from warplint.kernels.ledger import Ledger, StoreRecord, Token, TokenKind
from warplint.kernels.summary import StoreKind
from warplint.kernels.values import members


def changed_by_replay(ledger: Ledger) -> Iterator[tuple[StoreRecord, int]]:
    """The stores that leave another value when they are run again, each with the reads behind it that then find it."""
    if not any(store.again for store in ledger.stores):
        return
    reads = [(1 << number, token) for number, token in enumerate(ledger.tokens) if token.kind is TokenKind.READ]
    for store in ledger.stores:
        if not store.again:
            continue
        builds_on_itself = _builds_on_itself(store, ledger)
        changed = 0
        for bit, token in reads:
            if _reads_behind(token, store) and (builds_on_itself or _is_replaced(store, token.order, ledger)):
                changed |= bit
        if changed or builds_on_itself:
            yield store, changed


def _builds_on_itself(store: StoreRecord, ledger: Ledger) -> bool:
    """Whether the stored value depends on the one that was there, so that storing twice is not storing once."""
    if store.kind is not StoreKind.STORE:
        return True
    tokens = (ledger.tokens[number] for number in members(store.value.tokens))
    return any(_is_same_element(token, store) for token in tokens if token.kind is TokenKind.READ)


def _reads_behind(token: Token, store: StoreRecord) -> bool:
    """Whether a read comes behind a store, and its adjoint behind the store's second run.

    Measured: what stands in a dynamic loop is run again when the adjoint comes to that loop, after what is behind it.
    """
    if token.order <= store.order or not _is_same_element(token, store):
        return False
    apart = any((number, not arm) in store.arms for number, arm in token.arms)
    differentiated_first = bool(store.loops) and not store.loops & token.loops
    return not apart and not differentiated_first


def _is_same_element(token: Token, store: StoreRecord) -> bool:
    return token.path == store.path and token.index == store.symbol and "?" not in store.symbol


def _is_replaced(store: StoreRecord, before: int, ledger: Ledger) -> bool:
    """Whether the kernel itself stores to the element in between."""
    return any(
        other.path == store.path and other.symbol == store.symbol and store.order < other.order < before
        for other in ledger.stores
        if not other.again
    )

"""Elements that one thread reads and another thread of the same launch stores.

The forward pass gives the reader whatever is there when its turn comes. The adjoint runs the threads once more in the
order of the forward pass (or in none, on a GPU): measured, the gradient is wrong whether the neighbour comes earlier or
later, and linear in it or not. Only what can be told from the text counts: the thread's own index on one side, that
index moved by a few places (``i - 1``, ``(i + 1) % n``, ``max(i - 1, 0)``) on the other, all other indices the same.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from warplint.kernels.ledger import Ledger, StoreRecord, Token, TokenKind
from warplint.kernels.summary import StoreKind
from warplint.kernels.values import Value

FARTHEST = 4
"""Places. Elements farther apart may belong to halves that no two threads share."""

_BOUNDING = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def neighbour_reads(ledger: Ledger) -> Iterator[tuple[int, StoreRecord]]:
    """Reads, by the number of their token, each with the store by which another thread replaces what it reads."""
    stores: dict[str, list[StoreRecord]] = defaultdict(list)
    for store in ledger.stores:
        if store.kind is not StoreKind.MULTIPLY and all(map(_is_bound, store.tests)):
            stores[store.path].append(store)
    for number, token in enumerate(ledger.tokens):
        if token.kind is TokenKind.READ:
            for store in stores.get(token.path, ()):
                if _are_neighbours(token, store, ledger):
                    yield number, store


def _is_bound(test: ast.AST) -> bool:
    """Whether a condition only keeps threads inside the array: another one may separate readers from writers."""
    if isinstance(test, ast.BoolOp):
        return all(map(_is_bound, test.values))
    return isinstance(test, ast.Compare) and all(isinstance(operator, _BOUNDING) for operator in test.ops)


def _are_neighbours(token: Token, store: StoreRecord, ledger: Ledger) -> bool:
    """Whether some thread reads what another one stores: one index is moved, the others are the same."""
    pairs = list(zip(token.indices, store.index, strict=False))
    if len(token.indices) != len(store.index) or not pairs:
        return False
    differing = [(read, stored) for read, stored in pairs if read.symbol != stored.symbol]
    return bool(differing) and all(_is_moved(a, b, ledger) or _is_moved(b, a, ledger) for a, b in differing)


def _is_moved(moved: Value, own: Value, ledger: Ledger) -> bool:
    """Whether ``own`` is the thread's index and ``moved`` that index a few places on."""
    if own.lane <= 0 or moved.depends:
        return False
    lane = re.escape(ledger.lane_names.get(own.lane, ""))
    step = rf"{lane} [+-] (\d+)"
    match = re.fullmatch(step, moved.symbol) or re.fullmatch(
        rf"\({step}\) % .+|(?:min|max|clamp)\({step}, .+\)", moved.symbol
    )
    places = [int(each) for each in match.groups() if each] if match else []
    return bool(places) and 0 < places[0] <= FARTHEST

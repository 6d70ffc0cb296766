"""The strongly connected components of a graph, what they lead to first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def rings(
    start: Node, successors: Callable[[Node], Iterable[Node]], known: Collection[Node]
) -> Iterator[tuple[Node, ...]]:
    """The components that ``start`` reaches and that are not ``known``; whoever iterates adds each to ``known``.

    Tarjan 1972, *Depth-first search and linear graph algorithms*, with a stack of its own: import chains are deep.
    """
    if start in known:
        return
    number: dict[Node, int] = {start: 0}
    lowest: dict[Node, int] = {start: 0}
    open_: dict[Node, None] = {start: None}
    path = [(start, iter(successors(start)))]
    while path:
        node, rest = path[-1]
        successor = next((each for each in rest if each not in known), None)
        if successor is None:
            path.pop()
            if path:
                above = path[-1][0]
                lowest[above] = min(lowest[above], lowest[node])
            if lowest[node] == number[node]:
                yield _closed(node, open_)
        elif successor not in number:
            number[successor] = lowest[successor] = len(number)
            open_[successor] = None
            path.append((successor, iter(successors(successor))))
        elif successor in open_:
            lowest[node] = min(lowest[node], number[successor])


def _closed(root: Node, open_: dict[Node, None]) -> tuple[Node, ...]:
    ring = []
    while root in open_:
        member, _ = open_.popitem()
        ring.append(member)
    return tuple(ring)

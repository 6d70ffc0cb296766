"""The ceiling: what would remain if no module were built more often than it has to be.

A module is needed once for each device and block size. What it was built for before its last content is needless: one
build holds all of its kernels, instances and options, if they are there when it is loaded first. A content that two
processes build, or that is built again because the cache was cleared, is needless too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from warplint.builds.observe import RunSeen
from warplint.builds.why import Explained, explained, family


@dataclass(frozen=True)
class Ceiling:
    """Of one cold run: its builds, and those that one build each would replace. Seconds are sums, not wall time."""

    builds: int
    seconds: float
    needless: tuple[Explained, ...] = ()

    @property
    def remaining(self) -> int:
        """Builds that are needed."""
        return self.builds - len(self.needless)

    @property
    def needless_seconds(self) -> float:
        """What the needless ones took."""
        return sum(each.load.milliseconds for each in self.needless) / 1000


def ceiling(run: RunSeen) -> Ceiling:
    """Which builds of a cold run were needed.

    Of the builds of one module, the longest one is taken for the one that holds everything. A unique module that is
    made anew with other content is a build of its own: only passing what changes as an argument would save it.
    """
    built = [each for process in run.processes for each in explained(process) if each.load.compiled]
    groups: dict[tuple[object, ...], list[Explained]] = {}
    for each in built:
        load = each.load
        content = load.hash if load.unique else ""
        groups.setdefault((*family(load), content, load.block_dim), []).append(each)
    needless = [each for group in groups.values() for each in _beside_longest(group)]
    return Ceiling(len(built), sum(each.load.milliseconds for each in built) / 1000, tuple(needless))


def _beside_longest(group: Iterable[Explained]) -> list[Explained]:
    found = list(group)
    longest = max(found, key=lambda each: each.load.milliseconds)
    return [each for each in found if each is not longest]

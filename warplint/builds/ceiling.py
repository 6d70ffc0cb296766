"""The ceiling: what would remain if no module were built more often than it has to be.

A module is needed once for each device and block size. What it was built for before its last content is needless: one
build holds all of its kernels, instances and options, if they are there when it is loaded first. A content that two
processes build, or that is built again because the cache was cleared, is needless too.
"""

from __future__ import annotations

from collections.abc import Sequence

from warplint.builds.observe import RunSeen
from warplint.builds.why import Explained, explained, family
from warplint.dataclass import dataclass


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
    needless: list[Explained] = []
    builds = 0
    seen: set[tuple[object, ...]] = set()
    for process in run.processes:
        groups: dict[tuple[object, ...], list[Explained]] = {}
        for each in explained(process):
            load = each.load
            if not load.compiled:
                continue
            builds += 1
            exact = (*family(load), load.hash, load.block_dim)
            if exact in seen:
                needless.append(each)
            else:
                groups.setdefault((load.module, *family(load), load.block_dim), []).append(each)
            seen.add(exact)
        needless += [each for group in groups.values() for each in _beside_longest(group)]
    return Ceiling(builds, sum(load.milliseconds for load in run.built) / 1000, tuple(needless))


def _beside_longest(group: Sequence[Explained]) -> list[Explained]:
    longest = max(group, key=lambda each: each.load.milliseconds)
    return [each for each in group if each is not longest]

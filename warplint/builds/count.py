"""Module builds, counted: a program in a fresh kernel cache, once more on the same cache, and with a fix applied.

Counts, not times: how long a compiler takes depends on the machine, how often it runs does not. Modules of Warp's own
(``map_add`` and the like) are left out.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace

from warplint.builds.remedy import harm_of, remedied
from warplint.builds.why import Cause, CauseKind, built_again, explained_loads
from warplint.dataclass import dataclass
from warplint.finding import Finding
from warplint.project import Project
from warplint.proof import BuildHarm
from warplint.runner.command import Command
from warplint.runner.protocol import Purpose
from warplint.runner.result import RunResult
from warplint.runner.run import RunOptions, run
from warplint.verify.records import ModuleLoad


@dataclass(frozen=True)
class Builds:
    """What one program loaded, in order: with an empty cache, and again with the cache that it left.

    ``library``: the loads, with an empty cache, of modules that Warp makes itself (``wp.map``, operators of arrays).

    ``problem``: why the counts mean nothing (the program did not run through, or keeps a cache of its own, which may
    have held anything before the first run). ``own_cache``: the folder of that cache; what the second run built is then
    still a fact. ``told_cold`` and ``told_warm`` are all that each run told, in order.
    """

    command: str
    cold: tuple[ModuleLoad, ...] = ()
    warm: tuple[ModuleLoad, ...] = ()
    problem: str | None = None
    own_cache: str | None = None
    library: tuple[ModuleLoad, ...] = ()
    told_cold: tuple[object, ...] = ()
    told_warm: tuple[object, ...] = ()

    @property
    def built_cold(self) -> int:
        """Modules that the compiler built, the cache being empty."""
        return sum(load.compiled for load in self.cold)

    @property
    def built_warm(self) -> int:
        """Modules that the compiler built although the same program had just run."""
        return sum(load.compiled for load in self.warm)

    @property
    def source_bytes(self) -> int:
        """The size of the source that was generated for the cold builds."""
        return sum(load.source_bytes for load in self.cold)

    @property
    def milliseconds(self) -> float:
        """What the cold builds took."""
        return sum(load.milliseconds for load in self.cold if load.compiled)

    @property
    def needed(self) -> int:
        """What would remain of the cold builds if each module were built once for each device and block size."""
        return len({(load.module, load.device, load.block_dim) for load in self.cold if load.compiled})

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules by name."""
        return tuple(dict.fromkeys(load.module for load in self.cold))

    def causes(self, module: str) -> tuple[Cause, ...]:
        """Why the module was built more than once in one run, or in the second run at all; each with its line."""
        again = [*explained_loads(self.told_cold), *built_again(self.cold, self.told_warm)]
        mine = [each for each in again if each.load.module == module and each.load.compiled]
        causes = (cause for each in mine for cause in each.causes if cause.kind is not CauseKind.FIRST)
        return tuple(dict.fromkeys(causes))


@dataclass(frozen=True)
class Comparison:
    """A program as it is, and as it would be without the findings (None: there was nothing mechanical to change).

    ``without_adjoints``: its cold builds with ``wp.config.enable_backward`` off, where a finding says that no adjoint
    is needed.
    """

    before: Builds
    after: Builds | None = None
    without_adjoints: Builds | None = None

    @property
    def ceiling(self) -> int:
        """The cold builds that would remain if all that was found were repaired."""
        repaired = self.after if self.after is not None and self.after.problem is None else self.before
        return min(repaired.needed, self.before.needed)


def count(command: Command, options: RunOptions, texts: Mapping[str, str] | None = None) -> Builds:
    """Count the builds of a program; ``texts``: files that are to have another text while it runs."""
    with tempfile.TemporaryDirectory(prefix="warplint-kernels-", ignore_cleanup_errors=True) as cache:
        isolated = replace(options, cache=cache, texts=texts or {})
        cold = run(command, isolated, Purpose.BUILDS)
        if cold.problem is not None:
            return Builds(command.shown, _loads(cold), (), cold.problem, library=_library(cold))
        warm = run(command, isolated, Purpose.BUILDS)
        own = _own_cache(cold, cache) or _own_cache(warm, cache)
        elsewhere = f"the program keeps its kernels in a cache of its own ({own})" if own is not None else None
        failed = warm.problem is not None
        problem = warm.problem or elsewhere
        return Builds(
            command.shown,
            _loads(cold),
            _loads(warm),
            problem,
            None if failed else own,
            _library(cold),
            cold.records,
            warm.records,
        )


def count_cold(command: Command, options: RunOptions) -> Builds:
    """Count the builds of a program in an empty cache alone."""
    with tempfile.TemporaryDirectory(prefix="warplint-kernels-", ignore_cleanup_errors=True) as cache:
        cold = run(command, replace(options, cache=cache), Purpose.BUILDS)
    return Builds(command.shown, _loads(cold), (), cold.problem, library=_library(cold))


def compare(command: Command, options: RunOptions, findings: Sequence[Finding], project: Project) -> Comparison:
    """Count the builds of a program as it is, and with what the findings ask for changed in the text that it runs."""
    before = count(command, options)
    if before.problem is not None:
        return Comparison(before)
    texts = remedied(findings, project)
    after = count(command, options, texts) if texts else None
    needless = any(harm_of(finding) is BuildHarm.NEEDLESS_ADJOINT for finding in findings)
    off = count_cold(command, replace(options, config={"enable_backward": False})) if needless else None
    return Comparison(before, after, off)


def _loads(result: RunResult) -> tuple[ModuleLoad, ...]:
    return tuple(load for load in result.of(ModuleLoad) if not load.internal)


def _library(result: RunResult) -> tuple[ModuleLoad, ...]:
    return tuple(load for load in result.of(ModuleLoad) if load.internal)


def _own_cache(result: RunResult, cache: str) -> str | None:
    """The folder outside the isolated cache that modules were loaded from."""
    own = os.path.realpath(cache)
    caches = dict.fromkeys(os.path.realpath(load.cache) for load in result.of(ModuleLoad))
    return next((folder for folder in caches if os.path.commonpath([folder, own]) != own), None)

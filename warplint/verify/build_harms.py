"""What the counted loads of a program say of each kind of harm that builds can do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from warplint.builds.count import Builds
from warplint.dataclass import dataclass
from warplint.finding import Finding, Status
from warplint.proof import BuildHarm
from warplint.report import words
from warplint.verify.evidence import Evidence, spot, spots
from warplint.verify.records import KernelSeen, LaunchSeen, ModuleLoad, ModuleOptionsSeen

LARGE_SOURCE = 200_000
"""Bytes of one module's source: twenty small kernels with their adjoints come to 176 kB (Warp 1.19)."""
LINK_SHARE = 0.5


@dataclass(frozen=True)
class Counted:
    """A finding, the loads that it speaks of (at least one), all builds of the program, and its recorded runs."""

    finding: Finding
    own: Sequence[ModuleLoad]
    before: Builds
    runs: Sequence[Evidence]

    @property
    def built(self) -> list[ModuleLoad]:
        """The cold builds of the program."""
        return [load for load in self.before.cold if load.compiled]


Judged = tuple[Status, str]
"""Whether the harm is there, and what was seen."""


def _judged(harm: bool, seen: str, otherwise: str) -> Judged:
    return (Status.CONFIRMED, seen) if harm else (Status.REFUTED, otherwise)


def _needs_cuda(counted: Counted) -> Judged | None:
    """What shows on CUDA alone cannot be told where nothing was built for it."""
    if any(load.device.startswith("cuda") for load in counted.before.cold):
        return None
    return Status.INCONCLUSIVE, "this shows on CUDA alone, and the program built its modules for the CPU"


def _built_again(counted: Counted) -> Judged:
    """One module, several contents, one run."""
    hashes = {(load.module, load.device, load.hash) for load in counted.own if load.compiled}
    built = Counter((module, device) for module, device, _ in hashes)
    (module, _), times = max(built.items(), key=lambda item: item[1], default=(("", ""), 0))
    seen = f"module `{module}` was built {times} times in one run, where one build holds everything"
    return _judged(times > 1, seen, "the module was built once")


def _block_sizes(counted: Counted) -> Judged:
    """One module, several block sizes, one run."""
    sizes = Counter((load.module, load.device) for load in _one_each(counted.own))
    (module, device), times = max(sizes.items(), key=lambda item: item[1], default=(("", ""), 0))
    if times > 1:
        return Status.CONFIRMED, f"module `{module}` was built {times} times for {device}, once for each block size"
    return _needs_cuda(counted) or (Status.REFUTED, "the module was built for one block size")


def _one_each(loads: Iterable[ModuleLoad]) -> list[ModuleLoad]:
    """One build for each block size of a module."""
    return list({(load.module, load.device, load.block_dim): load for load in loads if load.compiled}.values())


def _options_set(counted: Counted) -> Judged:
    """A module that goes on with other values than those that were asked for, or one more build for them."""
    last = {load.module: load for load in counted.own}
    for name, asked in _asked(counted.finding, counted.runs).items():
        load = next((load for load in last.values() if name in load.options and load.options[name] != asked), None)
        if load is not None:
            value = load.options[name]
            seen = f"`{name}` was set to {asked!r}, but module `{load.module}` was built with {value!r}"
            return Status.CONFIRMED, seen
    return _built_again(counted)


def _asked(finding: Finding, runs: Sequence[Evidence]) -> Mapping[str, object]:
    """The options of the call that the finding is about."""
    for run in runs:
        for seen in run.result.of(ModuleOptionsSeen):
            where = (run.places.statement(seen.stack[-1]), run.places.span(seen.stack[-1])) if seen.stack else ()
            if spot(finding.span) in spots(where):
                return seen.options
    return {}


def _second_run(counted: Counted) -> Judged:
    """Builds, although the same program had just run."""
    before = counted.before
    where = "its own cache" if before.own_cache is not None else "the cache that the first one filled"
    seen = f"{words.counted(before.built_warm, 'build')} in a second run on {where}"
    return _judged(before.built_warm > 0, seen, "a second run built nothing")


def _needless_adjoint(counted: Counted) -> Judged:
    """Built with adjoints, and none was run."""
    ran = sum(run.result.program.backward_calls for run in counted.runs if run.result.program is not None)
    with_adjoint = [load for load in counted.own if load.compiled and load.has_adjoints]
    if ran:
        return Status.REFUTED, f"{ran} backward passes were run"
    seen = f"{_modules(with_adjoint)} built with adjoints, and no backward pass was run"
    return _judged(bool(with_adjoint), seen, seen)


def _small_modules(counted: Counted) -> Judged:
    """Several modules of one kernel each, built with equal options."""
    mine = counted.own[0]
    alike = {
        load.module
        for load in counted.built
        if len(load.kernels) == 1 and load.options == mine.options and load.device == mine.device
    }
    seen = f"{len(alike)} modules of one kernel each were built with equal options, where one build holds everything"
    return _judged(len(alike) > 2, seen, seen)


def _header_again(counted: Counted) -> Judged:
    """Several modules that translated Warp's header each for itself."""
    without = [load for load in counted.built if load.options.get("use_precompiled_headers") is False]
    seconds = sum(load.milliseconds for load in without) / 1000
    seen = f"{_modules(without)} built without a precompiled header ({seconds:.1f} s)"
    return _judged(len({load.module for load in without}) > 1, seen, seen)


def _large_source(counted: Counted) -> Judged:
    """More generated source than a compiler takes quickly."""
    largest = max(counted.own, key=lambda load: load.source_bytes)
    if not largest.source_bytes:
        return Status.INCONCLUSIVE, "the size of the generated source is not known"
    took = f"{largest.milliseconds / 1000:.1f} s"
    seen = f"module `{largest.module}` came to {largest.source_bytes:,} bytes of generated source, built in {took}"
    return _judged(largest.source_bytes > LARGE_SOURCE, seen, seen)


def _threads_on_cpu(counted: Counted) -> Judged:
    """Builds for the CPU that were under way at the same time."""
    count = _most_at_once(load for load in counted.built if load.device.startswith("cpu"))
    seen = f"{count} modules were built for the CPU at the same time, each with a precompiled header of its own"
    return _judged(count > 1, seen, "no two builds for the CPU overlapped")


def _unused_modules(counted: Counted) -> Judged:
    """Modules that were built and of which no kernel was launched."""
    recorded = [run for run in counted.runs if run.result.program is not None]
    if not recorded:
        return Status.INCONCLUSIVE, "which kernels were launched is not known"
    launched: set[str] = set()
    for run in recorded:
        modules = {kernel.number: kernel.module for kernel in run.result.of(KernelSeen)}
        launched |= {modules.get(launch.kernel, "") for launch in run.result.of(LaunchSeen)}
    built = [*counted.built, *(load for load in counted.before.library if load.compiled)]
    unused = [load for load in built if load.module not in launched]
    seconds = sum(load.milliseconds for load in unused) / 1000
    seen = f"{_modules(unused)} built of which no kernel was launched ({seconds:.1f} s)"
    return _judged(bool(unused), seen, "a kernel of every module was launched")


def _links(counted: Counted) -> Judged:
    """Link-time artifacts that took most of a build."""
    slow = max(counted.own, key=lambda load: load.lto_ms)
    if not slow.lto:
        return _needs_cuda(counted) or (Status.REFUTED, "no link-time artifact was built")
    share = slow.lto_ms / slow.milliseconds if slow.milliseconds else 0.0
    seen = f"{slow.lto} link-time artifacts took {share:.0%} of the build of module `{slow.module}`"
    return _judged(share > LINK_SHARE, seen, seen)


def _one_by_one(counted: Counted) -> Judged:
    """Builds for CUDA one after another: side by side they take as long as the longest."""
    missing = _needs_cuda(counted)
    if missing is not None:
        return missing
    built = [load for load in counted.built if load.device.startswith("cuda")]
    total, longest = (f(load.milliseconds / 1000 for load in built) if built else 0.0 for f in (sum, max))
    seen = f"{_modules(built)} built one after another in {total:.1f} s; side by side it is at least {longest:.1f} s"
    return _judged(len(built) > 1 and _most_at_once(built) < 2, seen, f"{_modules(built)} built, some at the same time")


def _most_at_once(loads: Iterable[ModuleLoad]) -> int:
    """The largest number of builds that were under way together."""
    spans = [(load.started, load.started + load.milliseconds / 1000) for load in loads]
    return max((sum(start <= other < stop for start, stop in spans) for other, _ in spans), default=0)


def _modules(loads: Iterable[ModuleLoad]) -> str:
    return words.counted(len({load.module for load in loads}), "module")


JUDGED: Mapping[BuildHarm, Callable[[Counted], Judged]] = {
    BuildHarm.OPTION_UNHEARD: _options_set,
    BuildHarm.BUILT_AGAIN: _built_again,
    BuildHarm.BLOCK_SIZES: _block_sizes,
    BuildHarm.SECOND_RUN: _second_run,
    BuildHarm.NEEDLESS_ADJOINT: _needless_adjoint,
    BuildHarm.SMALL_MODULES: _small_modules,
    BuildHarm.HEADER_AGAIN: _header_again,
    BuildHarm.LARGE_SOURCE: _large_source,
    BuildHarm.THREADS_ON_CPU: _threads_on_cpu,
    BuildHarm.UNUSED_MODULES: _unused_modules,
    BuildHarm.LINKS: _links,
    BuildHarm.ONE_BY_ONE: _one_by_one,
}
"""For each harm, what the loads of a program say of it. A harm that is not here is told by a run with the fix."""

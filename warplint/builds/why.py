"""Why a module was built: what changed since it was last loaded, and the line that changed it.

Two loads of a module are one build when their kernels, options and block size are equal. Each difference is a
:class:`Cause`. Where nothing differs and the compiler ran all the same, the kernel cache did not do its work.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator, Sequence

from warplint.builds.observe import ProcessSeen, RunSeen
from warplint.dataclass import dataclass
from warplint.verify.records import (
    CacheClearedSeen,
    ConfigSeen,
    KernelContent,
    ModuleLoad,
    ModuleOptionsSeen,
    Place,
)


class CauseKind(str, enum.Enum):
    """What a build is for."""

    FIRST = "first"
    """The module was not loaded before; ``at`` is the call that needs it."""
    KERNELS = "kernel-set"
    """A kernel came into the module, or left it, after it was loaded."""
    OVERLOAD = "overload"
    """A generic kernel met argument types that it had no instance for."""
    CONTENT = "content"
    """A kernel of the same name has another text, other captured values, or uses other functions."""
    OPTION = "option"
    """An option has another value than at the last load."""
    BLOCK_SIZE = "block-size"
    """The module was loaded for another block size."""
    CACHE = "cache"
    """Nothing changed: what had been built was not found again."""


@dataclass(frozen=True)
class Cause:
    """One reason for a build. ``at`` is the line that makes the difference, None where none is known."""

    kind: CauseKind
    text: str
    at: Place | None = None


@dataclass(frozen=True)
class Explained:
    """A load, and why it was needed."""

    load: ModuleLoad
    causes: tuple[Cause, ...]

    @property
    def again(self) -> bool:
        """Whether the module had been loaded before in the same process."""
        return any(cause.kind is not CauseKind.FIRST for cause in self.causes)


LONGEST = 80
"""Characters of a list of types that are told."""

_SUFFIX = re.compile(r"_[0-9a-f]{8,}$")
_LIBRARY = re.compile(r"/lib/python3[^/]*/(?!site-packages/|dist-packages/)")


def explained(process: ProcessSeen) -> tuple[Explained, ...]:
    """Each load of a process with its causes, in order."""
    return explained_loads(process.records)


def explained_loads(records: Sequence[object]) -> tuple[Explained, ...]:
    """The same of what one process told, in order."""
    last: dict[tuple[str, ...], ModuleLoad] = {}
    found = []
    for position, record in enumerate(records):
        if not isinstance(record, ModuleLoad):
            continue
        key = family(record)
        before = last.get(key)
        if before is None:
            causes: tuple[Cause, ...] = (Cause(CauseKind.FIRST, "first load", place(record.at)),)
        else:
            earlier = records[:position]
            causes = differences(before, record, earlier) or (unused(record, [earlier]),)
        last[key] = record
        found.append(Explained(record, causes))
    return tuple(found)


def of_run(run: RunSeen) -> tuple[tuple[ProcessSeen, tuple[Explained, ...]], ...]:
    """The loads of each process, as :func:`explained`; and why a process built what another one had begun to build."""
    return tuple((each, tuple(_once_more(load, each, run) for load in explained(each))) for each in run.processes)


def _once_more(each: Explained, process: ProcessSeen, run: RunSeen) -> Explained:
    load, others = each.load, [other for other in run.processes if other is not process]
    same = [(other, built) for other in others for built in other.loads if built.compiled and _is_same(built, load)]
    before = min(same, key=lambda pair: pair[1].started, default=None)
    if not load.compiled or before is None or before[1].started > load.started:
        return each
    other, built = before
    if load.started < built.started + built.milliseconds / 1000:
        text = f"process {other.started.process} was building the same"
        return Explained(load, (Cause(CauseKind.CACHE, text, place(load.at)),))
    return Explained(load, (unused(load, [each.records for each in run.processes], built),))


def _is_same(one: ModuleLoad, other: ModuleLoad) -> bool:
    return (family(one), one.hash, one.block_dim) == (family(other), other.hash, other.block_dim)


def family(load: ModuleLoad) -> tuple[str, ...]:
    """What stays the same of a module when it is built again: its name, for a unique one the kernel's definition.

    The ``__main__`` of each program is a module of its own.
    """
    if load.unique and load.contents:
        path, line, _ = load.contents[0].defined
        return _SUFFIX.sub("", load.module), load.device, path, str(line)
    if load.module == "__main__" and load.contents:
        return load.module, load.device, min(each.defined[0] for each in load.contents)
    return _SUFFIX.sub("", load.module) if load.internal else load.module, load.device


def differences(before: ModuleLoad, after: ModuleLoad, earlier: Sequence[object]) -> tuple[Cause, ...]:
    """What is different in ``after``; ``earlier`` is what the process told up to it. Empty: nothing is."""
    return (*_block_size(before, after), *_options(before, after, earlier), *_kernels(before, after))


def _block_size(before: ModuleLoad, after: ModuleLoad) -> Iterator[Cause]:
    if before.block_dim != after.block_dim:
        text = f"block size {after.block_dim} instead of {before.block_dim}"
        yield Cause(CauseKind.BLOCK_SIZE, text, place(after.at))


def _options(before: ModuleLoad, after: ModuleLoad, earlier: Sequence[object]) -> Iterator[Cause]:
    for name in sorted(before.options.keys() | after.options.keys()):
        old, new = before.options.get(name), after.options.get(name)
        if old != new and name != "block_dim":
            at = _setting(name, after.module, earlier)
            yield Cause(CauseKind.OPTION, f"option `{name}` is {new!r}, was {old!r}", at)


def _setting(option: str, module: str, earlier: Sequence[object]) -> Place | None:
    """Where the option was set last, for this module or for all."""
    for record in reversed(earlier):
        if isinstance(record, ModuleOptionsSeen) and option in record.options and record.module == module:
            return place(record.stack)
        if isinstance(record, ConfigSeen) and record.option == option:
            return place(record.stack)
    return None


def _kernels(before: ModuleLoad, after: ModuleLoad) -> Iterator[Cause]:
    known = {content.hash for content in before.contents}
    kept = {content.hash for content in after.contents}
    new = [content for content in after.contents if content.hash not in known]
    for content in new:
        alike = [old for old in before.contents if _plain(old.name) == _plain(content.name)]
        same = [old for old in alike if old.types == content.types]
        if same:
            # That which is gone has most likely become this one.
            old = next((old for old in same if old.hash not in kept), same[-1])
            text = f"`{content.defined[2]}` {_changed(old, content)}"
            yield Cause(CauseKind.CONTENT, text, _definition(content, after))
        elif content.instance:
            types = content.types if len(content.types) <= LONGEST else f"{content.types[:LONGEST]}…"
            text = f"`{content.defined[2]}` met new argument types ({types})"
            yield Cause(CauseKind.OVERLOAD, text, place(after.at))
        else:
            text = f"`{content.defined[2]}` was defined after the module was loaded"
            yield Cause(CauseKind.KERNELS, text, _definition(content, after))
    gone = [content for content in before.contents if content.hash not in kept]
    if gone and not new:
        names = ", ".join(f"`{content.defined[2]}`" for content in gone[:3])
        yield Cause(CauseKind.KERNELS, f"{names} {'is' if len(gone) == 1 else 'are'} no longer there", gone[0].defined)


def _definition(content: KernelContent, load: ModuleLoad) -> Place | None:
    """The kernel's ``def``; of one that Warp wrote itself (``wp.map``), the call that needs it."""
    return content.defined if content.defined[1] > 0 else place(load.at)


def _plain(name: str) -> str:
    """A kernel's key without the hash that a unique module adds to it."""
    return _SUFFIX.sub("", name)


def _changed(old: KernelContent, new: KernelContent) -> str:
    """In which way a kernel's content differs."""
    for name in (*new.constants, *(name for name in old.constants if name not in new.constants)):
        before, now = old.constants.get(name), new.constants.get(name)
        if before != now and name.endswith("()") and not name.startswith("wp.static"):
            return f"uses another `{name}`"
        if before != now:
            shown = name if name.startswith("wp.static") else f"`{name}`"
            return f"has {shown} = {now or 'nothing'}, had {before or 'nothing'}"
    if old.source != new.source:
        return "has another text"
    return "uses a struct or a type that is different"


def unused(load: ModuleLoad, earlier: Iterable[Sequence[object]], cold: ModuleLoad | None = None) -> Cause:
    """Why something unchanged was built once more. ``earlier``: what each process of the run told before."""
    told = [record for records in earlier for record in records]
    clearing = next((record for record in reversed(told) if isinstance(record, CacheClearedSeen)), None)
    if clearing is not None:
        what = "`clear_kernel_cache()`" if clearing.how == "clear_kernel_cache" else "removing its folder"
        return Cause(CauseKind.CACHE, f"the kernel cache was cleared by {what}", place(clearing.stack))
    if load.options.get(_TRACKER):
        text = f"`{_TRACKER}` is on: Warp then builds every module in every run"
        return Cause(CauseKind.CACHE, text, _setting(_TRACKER, load.module, told))
    switched = [r for r in told if isinstance(r, ConfigSeen) and r.option == "cache_kernels"]
    if switched and switched[-1].value is False:
        text = "`wp.config.cache_kernels` is off: nothing that was built before is used"
        return Cause(CauseKind.CACHE, text, place(switched[-1].stack))
    moved = [r for r in told if isinstance(r, ConfigSeen) and r.option == "kernel_cache_dir"]
    if cold is not None and cold.cache != load.cache:
        text = "the kernel cache lies in another folder in each run"
        return Cause(CauseKind.CACHE, text, place(moved[-1].stack) if moved else None)
    if load.options.get("strip_hash"):
        return Cause(CauseKind.CACHE, "the option `strip_hash` takes the hash out of its name", place(load.at))
    return Cause(CauseKind.CACHE, "what was built before was not found in the kernel cache", place(load.at))


_TRACKER = "verify_autograd_array_access"


def defeated(cold: RunSeen, warm: RunSeen) -> tuple[Explained, ...]:
    """The modules that the second run built although the first had just filled the cache, each with what defeats it."""
    found: list[Explained] = []
    for process in warm.processes:
        others = [each.records for each in warm.processes if each is not process]
        found += built_again(cold.loads, process.records, others)
    return tuple(found)


def built_again(
    cold: Sequence[ModuleLoad], records: Sequence[object], others: Sequence[Sequence[object]] = ()
) -> Iterator[Explained]:
    """What one process of the second run built. ``cold``: the loads of the first run, in order of time."""
    for position, record in enumerate(records):
        if isinstance(record, ModuleLoad) and record.compiled:
            yield Explained(record, _defeat(record, cold, [records[:position], *others]))


def _defeat(load: ModuleLoad, cold: Sequence[ModuleLoad], earlier: Sequence[Sequence[object]]) -> tuple[Cause, ...]:
    related = [each for each in cold if family(each) == family(load)]
    same = next((each for each in related if each.hash == load.hash), None)
    if same is not None:
        return (unused(load, earlier, same),)
    if not related:
        return (Cause(CauseKind.FIRST, "the first run did not load this module", place(load.at)),)
    changes = differences(related[-1], load, earlier[0])
    return tuple(Cause(each.kind, f"from run to run, {each.text}", each.at) for each in changes) or (
        unused(load, earlier, related[-1]),
    )


def place(stack: Sequence[Place]) -> Place | None:
    """The innermost frame that is not of the standard library."""
    own = [each for each in stack if not _LIBRARY.search(each[0].replace("\\", "/"))]
    return next(iter([*reversed(own), *reversed(stack)]), None)

"""The life of Warp modules in a trace: made by their first kernel, filled, set up, loaded, launched.

A module copies some options of ``wp.config`` when it is made; others are read when it is first loaded, and again only
after it was changed. So the question whether an assignment comes too late is one about the order of these events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from warplint.dataclass import dataclass
from warplint.finding import Span
from warplint.trace.events import (
    ConfigSet,
    Event,
    Kernel,
    KernelDeclared,
    Launch,
    ModuleCreated,
    ModuleLoaded,
    ModuleOptionsSet,
    Trace,
)


@dataclass
class _Life:
    created: Event | None = None
    declared: list[KernelDeclared] = field(default_factory=list)
    loads: list[Event] = field(default_factory=list)
    options: list[ModuleOptionsSet] = field(default_factory=list)


@dataclass(frozen=True)
class ModuleLife:
    """What happens to one module. ``loads`` are the launches and explicit loads, in order: the first one builds it."""

    name: str
    created: Event
    declared: tuple[KernelDeclared, ...]
    loads: tuple[Event, ...]
    options: tuple[ModuleOptionsSet, ...]

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels declared in the module."""
        return tuple(event.kernel for event in self.declared)

    @property
    def first_load(self) -> Event | None:
        """What builds the module."""
        return self.loads[0] if self.loads else None

    def is_used_after(self, seq: int) -> bool:
        """Whether the module is loaded or launched after event ``seq``."""
        return bool(self.loads) and self.loads[-1].seq > seq

    def is_changed_after(self, seq: int) -> bool:
        """Whether something after event ``seq`` makes Warp hash the module anew: a kernel, or its options."""
        changes = (*self.declared, *(event for event in self.options if not event.direct))
        return any(event.seq > seq for event in changes)

    def launched_after(self, seq: int) -> tuple[Kernel, ...]:
        """The module's kernels that are launched after event ``seq``."""
        found = (event.kernel for event in self.loads if event.seq > seq and isinstance(event, Launch))
        return tuple(dict.fromkeys(kernel for kernel in found if kernel is not None))

    def sets(self, option: str) -> bool:
        """Whether the program says what the module's option shall be, whatever ``wp.config`` has."""
        return any(option in event.options for event in self.options)


def module_lives(trace: Trace) -> tuple[ModuleLife, ...]:
    """The modules whose making is in the trace, in the order in which they were made."""
    lives: dict[str, _Life] = {}
    for event in trace.events:
        if isinstance(event, ModuleCreated):
            lives.setdefault(event.module, _Life()).created = event
        elif isinstance(event, KernelDeclared):
            life = lives.setdefault(event.kernel.module, _Life())
            life.created = life.created or event
            life.declared.append(event)
        elif isinstance(event, ModuleOptionsSet):
            lives.setdefault(event.module, _Life()).options.append(event)
        elif isinstance(event, ModuleLoaded):
            lives.setdefault(event.module, _Life()).loads.append(event)
        elif isinstance(event, Launch) and event.kernel is not None:
            lives.setdefault(event.kernel.module, _Life()).loads.append(event)
    made = [
        ModuleLife(name, life.created, tuple(life.declared), tuple(life.loads), tuple(life.options))
        for name, life in lives.items()
        if life.created is not None
    ]
    return tuple(sorted(made, key=lambda life: life.created.seq))


def stable_kernels(trace: Trace) -> tuple[KernelDeclared, ...]:
    """The declarations of kernels that a run declares once, with content that is the same in each run.

    At the top level of a file that follows from the text. In a function it follows from a whole run: it calls the
    function once, and the kernel captures nothing.
    """
    declared: dict[Span, list[KernelDeclared]] = {}
    for event in trace.events:
        if isinstance(event, KernelDeclared):
            declared.setdefault(event.kernel.span, []).append(event)
    whole = trace.is_program and not trace.cut
    found = []
    for first, *again in declared.values():
        once = first.kernel.stable is True or (first.kernel.stable is None and whole and not again)
        if once and not first.kernel.captures:
            found.append(first)
    return tuple(found)


def values_before(trace: Trace, assignment: ConfigSet) -> tuple[object, ...]:
    """What the option of an assignment was set to earlier in the trace."""
    return tuple(
        event.value
        for event in trace.events
        if isinstance(event, ConfigSet) and event.option == assignment.option and event.seq < assignment.seq
    )


def assigned_next(trace: Trace, assignment: ConfigSet) -> ConfigSet | None:
    """The next assignment of the same option to another value."""
    return next(
        (
            event
            for event in trace.events
            if isinstance(event, ConfigSet)
            and event.option == assignment.option
            and event.seq > assignment.seq
            and event.value != assignment.value
        ),
        None,
    )


def value_in_build(trace: Trace, module: str, option: str, default: object) -> object:
    """The value of a ``wp.config`` option that the module was last built with, or would be built with now.

    For options that are read at the first load, and again only after the module was changed. None: not known.
    """
    value, built, stale = default, default, True
    for event in trace.events:
        if isinstance(event, ConfigSet) and event.option == option:
            value = event.value
        elif isinstance(event, KernelDeclared):
            stale = stale or event.kernel.module == module
        elif isinstance(event, ModuleOptionsSet):
            stale = stale or (event.module == module and not event.direct)
        elif stale and _loads(event, module):
            built, stale = value, False
    return value if stale else built


def _loads(event: Event, module: str) -> bool:
    if isinstance(event, ModuleLoaded):
        return event.module == module
    return isinstance(event, Launch) and event.kernel is not None and event.kernel.module == module


def options_of(life: ModuleLife) -> Mapping[str, object]:
    """The options that the program gave the module."""
    return {name: value for event in life.options for name, value in event.options.items()}


@dataclass(frozen=True)
class Rebuild:
    """One more build of a module that was loaded ``before``, and the launch that asked for it (None: a plain load)."""

    load: ModuleLoaded
    before: ModuleLoaded
    launch: Launch | None


def rebuilds(trace: Trace) -> Iterator[Rebuild]:
    """The loads that build a module again because its content or its options changed; none where that is unknown."""
    loaded: dict[str, ModuleLoaded] = {}
    for position, event in enumerate(trace.events):
        if isinstance(event, ModuleLoaded):
            if event.again and event.module in loaded:
                launches = (later for later in trace.events[position + 1 :] if isinstance(later, Launch))
                launch = next(launches, None)
                here = launch is not None and launch.stack == event.stack
                yield Rebuild(event, loaded[event.module], launch if here else None)
            loaded[event.module] = event

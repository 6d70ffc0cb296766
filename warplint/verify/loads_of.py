"""What a run's builds tell of its events: which content a load brought, which options it changed, where calls stand.

The child tells each load with the contents and the options that it built. Put beside the events, this says of a load
whether it was one build more and why, and of an assignment what it changed: as the interpreter predicts it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from warplint.dataclass import dataclass
from warplint.trace import events
from warplint.trace.host.facts import is_under_condition, may_hold_kernels
from warplint.trace.module_options import CACHING, DEFAULTS, NOT_BUILT_IN
from warplint.verify.places import Places
from warplint.verify.records import KernelContent, ModuleLoad


def with_loads(made: Sequence[events.Event], loads: Iterable[ModuleLoad], places: Places) -> list[events.Event]:
    """The events in order, those about builds completed."""
    waiting: dict[str, list[ModuleLoad]] = {}
    for load in loads:
        waiting.setdefault(load.module, []).append(load)
    modules: dict[str, _Module] = {}
    found: list[events.Event] = []
    built: events.ModuleLoaded | None = None
    for event in made:
        if isinstance(event, events.KernelDeclared):
            modules.setdefault(event.kernel.module, _Module()).declared.append(event.kernel)
        elif isinstance(event, events.ModuleLoaded) and waiting.get(event.module):
            built = modules.setdefault(event.module, _Module()).loaded(event, waiting[event.module].pop(0))
            event = built
        elif isinstance(event, events.Launch):
            known = built.block_dim if built is not None and built.stack == event.stack else None
            event = replace(event, block_dim=known)
        elif isinstance(event, events.ModuleOptionsSet):
            event = _completed(event, modules.setdefault(event.module, _Module()), places)
        elif isinstance(event, events.CacheCleared) or (
            isinstance(event, events.ConfigSet) and event.option in CACHING
        ):
            event = replace(event, guarded=_is_guarded(event.stack, places))
        found.append(event)
    return found


_Identity = tuple[str, str, str]
"""Name, argument types and hash of a kernel: what tells contents apart."""


@dataclass
class _Module:
    """What is known of a module of the run so far."""

    declared: list[events.Kernel] = field(default_factory=list)
    contents: set[_Identity] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)
    hashes: dict[tuple[str, int | None], str] = field(default_factory=dict)
    """The content last loaded, by device and block size."""
    options: Mapping[str, object] = field(default_factory=lambda: DEFAULTS)

    def loaded(self, event: events.ModuleLoaded, load: ModuleLoad) -> events.ModuleLoaded:
        """The event of a load, with what it brought."""
        place = load.device, load.block_dim
        before = self.hashes.get(place)
        added = frozenset(self._added(load)) - self.keys
        changed = frozenset(_different(load.options, self.options)) if self.hashes else frozenset()
        self.hashes[place], self.options = load.hash, load.options
        self.contents |= set(map(_identity, load.contents))
        self.keys |= added
        return replace(
            event,
            block_dim=load.block_dim if load.block_dim is not None else event.block_dim,
            again=before is not None and before != load.hash,
            added=added,
            changed_options=changed,
            device=load.device,
            started=load.started or None,
            link_milliseconds=load.lto_ms,
        )

    def _added(self, load: ModuleLoad) -> Iterator[str]:
        """The keys of what no earlier load of the module had."""
        keys = {kernel.name: kernel.key for kernel in self.declared if kernel.generic}
        new = [content for content in load.contents if _identity(content) not in self.contents]
        for content in new:
            if content.instance:
                yield f"{keys.get(content.defined[2], content.name)}<{content.types}>"
        if any(not content.instance for content in new):
            yield from (kernel.key for kernel in self.declared if not kernel.generic)


def _identity(content: KernelContent) -> _Identity:
    return content.name, content.types, content.hash


def _different(options: Mapping[str, object], before: Mapping[str, object]) -> Iterator[str]:
    """The options of other value than before."""
    for name, value in options.items():
        if name not in NOT_BUILT_IN and name in before and before[name] != value:
            yield name


def _completed(event: events.ModuleOptionsSet, module: _Module, places: Places) -> events.ModuleOptionsSet:
    changes = frozenset(
        name
        for name, value in event.options.items()
        if value is not None and name not in NOT_BUILT_IN and module.options.get(name) != value
    )
    tree = _tree(event.stack[-1], places)
    own = tree is not None and not event.direct and not _names_module(tree, event.span.line)
    return replace(
        event,
        changes=changes,
        own_file=own,
        holds_kernels=may_hold_kernels(tree) if own and tree is not None else None,
    )


def _names_module(tree: ast.Module, line: int) -> bool:
    """Whether the call of ``set_module_options`` on this line says which module it means."""
    calls = [
        item
        for item in ast.walk(tree)
        if isinstance(item, ast.Call)
        and item.lineno == line
        and ast.unparse(item.func).rpartition(".")[2] == "set_module_options"
    ]
    return not calls or any(len(call.args) > 1 or any(k.arg != "options" for k in call.keywords) for call in calls)


def _is_guarded(stack: events.Stack, places: Places) -> bool | None:
    """Whether a call stands under a condition somewhere up the stack; None where a file cannot be read."""
    trees = [(_tree(frame, places), frame.span.line) for frame in stack]
    if any(tree is None for tree, _ in trees):
        return None
    return any(is_under_condition(tree, line) for tree, line in trees if tree is not None)


def _tree(frame: events.Frame, places: Places) -> ast.Module | None:
    module = places.module(frame.span.path)
    return None if module is None else module.tree

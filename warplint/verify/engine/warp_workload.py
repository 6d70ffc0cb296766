"""The launches of a process as the work that it does, whatever modules its kernels are built in.

A private room like ``warp_modules.py``: ``context.launch`` and what it resolves a launch by are touched here. This runs
at every launch of a program that is being timed, so it costs about a microsecond.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from warplint.verify.build_records import LaunchKind, Workload
from warplint.verify.engine.warp_modules import array_type

FIRST = 1024
"""Launches that are told one by one, so that two runs can be compared where they part."""
_CHUNK = 1 << 14
_WORK = "warplint_work"
GRAPH = "(graph)"
"""Stands for a kernel's name where a captured graph is launched."""


class Launches:
    """The launches so far: each kind by its number, in order."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew: in a forked process, whose launches are not those of its parent."""
        self.numbers: dict[tuple[Any, ...], int] = {}
        self._kinds: list[LaunchKind] = []
        self._counts: list[int] = []
        self._first: tuple[int, ...] = ()
        self._digest = hashlib.sha256()
        self._pending = array("I")

    def numbered(self, key: tuple[Any, ...], kind: LaunchKind) -> int:
        """The number of a kind; from now on also under this spelling of it (``4`` and ``(4,)`` are one size)."""
        if kind not in self._kinds:
            self._kinds.append(kind)
            self._counts.append(0)
        self.numbers[key] = number = self._kinds.index(kind)
        return number

    def add(self, number: int) -> None:
        """One launch of a kind."""
        self._pending.append(number)
        if len(self._pending) >= _CHUNK:
            self._digested()

    def _digested(self) -> None:
        if len(self._first) < FIRST:
            self._first = (*self._first, *self._pending)[:FIRST]
        for number in set(self._pending):
            self._counts[number] += self._pending.count(number)
        self._digest.update(self._pending.tobytes())
        self._pending = array("I")

    def told(self, complete: bool) -> Workload:
        """What was launched so far."""
        self._digested()
        digest = self._digest.hexdigest()[:32]
        return Workload(tuple(self._kinds), tuple(self._counts), digest, self._first, complete)


def watch_launches(launches: Launches) -> None:
    """Have every ``wp.launch`` of the imported Warp added, the adjoint ones of tapes included."""
    import warp
    from warp._src import context

    launch = context.launch
    names = tuple(inspect.signature(launch).parameters)
    resolve: Callable[[Any, Any], int] | None = getattr(context, "_resolve_launch_block_dim", None)

    def kind(kernel: Any, dim: Any, arrays: tuple[str, ...], device: Any, block_dim: Any, adjoint: Any) -> LaunchKind:
        resolved = warp.get_device(device)
        size = resolve(resolved, block_dim) if resolve is not None else block_dim or 256
        return LaunchKind(kernel, _sizes(dim), arrays, resolved.alias, int(size), bool(adjoint))

    @functools.wraps(launch)
    def launching(*args: Any, **kwargs: Any) -> Any:
        result = launch(*args, **kwargs)
        # What the launch was given is read afterwards: a call that raises is no work.
        given = kwargs if len(args) == 2 else {**dict(zip(names[2:], args[2:], strict=False)), **kwargs}
        kernel, dim = args if len(args) == 2 else (_first(args, given, "kernel", 0), _first(args, given, "dim", 1))
        name, arrays = kernel.__dict__.get(_WORK) or _work(kernel, given)
        stream, device = given.get("stream"), given.get("device")
        if stream is not None:
            device = stream.device
        if device is None:
            device = context.runtime.default_device  # type: ignore[attr-defined]
        if type(device) is not str:
            device = device.alias
        if type(dim) is list:
            dim = tuple(dim)
        # The key is as the program wrote it, and resolved once.
        key = (name, dim, arrays, device, given.get("block_dim"), given.get("adjoint", False))
        number = launches.numbers.get(key)
        launches.add(launches.numbered(key, kind(*key)) if number is None else number)
        return result

    for owner in (context, warp):
        setattr(owner, "launch", launching)  # noqa: B010 - a function of Warp's, replaced
    _watch_prepared(launches, context)
    _watch_graphs(launches, context, warp)


def _watch_prepared(launches: Launches, context: Any) -> None:
    """Have the launches of ``Launch`` objects added (``record_cmd=True``)."""
    launch = context.Launch.launch

    @functools.wraps(launch)
    def launching(this: Any, *args: Any, **kwargs: Any) -> Any:
        result = launch(this, *args, **kwargs)
        name, arrays = this.kernel.__dict__.get(_WORK) or _work(this.kernel, {})
        shape = tuple(getattr(this.bounds, "shape", ()))
        dim, block_dim = shape[: getattr(this.bounds, "ndim", len(shape))], getattr(this, "block_dim", None)
        adjoint = bool(getattr(this, "adjoint", False))
        key = (name, dim, arrays, this.device.alias, block_dim, adjoint)
        number = launches.numbers.get(key)
        kind = LaunchKind(name, _sizes(dim), arrays, this.device.alias, int(block_dim or 0), adjoint)
        launches.add(launches.numbered(key, kind) if number is None else number)
        return result

    context.Launch.launch = launching


def _watch_graphs(launches: Launches, context: Any, warp: Any) -> None:
    """Have the launches of captured graphs added; what is in them was added when they were captured."""
    launch = getattr(context, "capture_launch", None)
    if launch is None:
        return

    @functools.wraps(launch)
    def launching(graph: Any, *args: Any, **kwargs: Any) -> Any:
        result = launch(graph, *args, **kwargs)
        kind = LaunchKind(GRAPH, (), (), graph.device.alias, 0)
        launches.add(launches.numbered((GRAPH, graph.device.alias), kind))
        return result

    for owner in (context, warp):
        setattr(owner, "capture_launch", launching)  # noqa: B010 - a function of Warp's, replaced


def _first(args: Sequence[Any], given: Mapping[str, Any], name: str, position: int) -> Any:
    return args[position] if len(args) > position else given[name]


def _sizes(dim: Any) -> tuple[int, ...]:
    return tuple(int(size) for size in dim) if isinstance(dim, Iterable) else (int(dim),)


def _work(kernel: Any, given: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """The kernel's name and the types of its arrays: those of the signature, of a generic kernel those passed."""
    name = str(kernel.func.__name__)
    if kernel.is_generic:
        passed = (*given.get("inputs", ()), *given.get("outputs", ()))
        return name, tuple(kind for each in passed if (kind := array_type(each)) is not None)
    types = (array_type(each.type) for each in kernel.adj.args)
    found = kernel.__dict__[_WORK] = name, tuple(kind for kind in types if kind is not None)
    return found

"""The launches of a process as the work that it does, whatever modules its kernels are built in.

A private room like ``warp_modules.py``: ``context.launch`` and what it resolves a launch by are touched here. This runs
at every launch of a program that is being timed, so it costs about a microsecond.
"""

from __future__ import annotations

import functools
import hashlib
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from warplint.verify.engine.warp_modules import array_type
from warplint.verify.records import LaunchKind, Workload

FIRST = 4096
"""Launches that are told one by one, so that two runs can be compared where they part."""
_CHUNK = 1 << 14
_ARRAYS = "warplint_arrays"

Key = tuple[Any, ...]


class Launches:
    """The launches so far: each kind by its number, in order."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew: in a forked process, whose launches are not those of its parent."""
        self._numbers: dict[Key, int] = {}
        self._kinds: list[LaunchKind] = []
        self._counts: list[int] = []
        self._first: tuple[int, ...] = ()
        self._digest = hashlib.sha256()
        self._pending = array("I")

    def add(self, key: Key) -> None:
        """One launch; ``key`` holds the fields of a :class:`LaunchKind`, hashable as Warp or the user gave them."""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbered(key)
        self._pending.append(number)
        if len(self._pending) >= _CHUNK:
            self._digested()

    def _numbered(self, key: Key) -> int:
        """The number of a kind that is new under this spelling (``4`` and ``(4,)`` are one size)."""
        name, dim, arrays, device, block_dim, adjoint = key
        kind = LaunchKind(name, _sizes(dim), arrays, str(device), block_dim, adjoint)
        if kind not in self._kinds:
            self._kinds.append(kind)
            self._counts.append(0)
        self._numbers[key] = number = self._kinds.index(kind)
        return number

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
    resolve: Callable[[Any, Any], int] | None = getattr(context, "_resolve_launch_block_dim", None)

    @functools.wraps(launch)
    def launching(kernel: Any, dim: Any, *args: Any, **kwargs: Any) -> Any:
        result = launch(kernel, dim, *args, **kwargs)
        # What the launch was given is read afterwards: a call that raises is no work.
        inputs = kwargs.get("inputs", args[0] if args else ())
        outputs = kwargs.get("outputs", args[1] if len(args) > 1 else ())
        stream = kwargs.get("stream", args[5] if len(args) > 5 else None)
        device = kwargs.get("device", args[4] if len(args) > 4 else None)
        device = stream.device if stream is not None else warp.get_device(device)
        adjoint = kwargs.get("adjoint", args[6] if len(args) > 6 else False)
        asked = kwargs.get("block_dim", args[10] if len(args) > 10 else None)
        block_dim = resolve(device, asked) if resolve is not None else asked or 256
        size = dim if type(dim) is int or type(dim) is tuple else _sizes(dim)
        launches.add((_name(kernel), size, _arrays(kernel, inputs, outputs), device.alias, block_dim, bool(adjoint)))
        return result

    for owner in (context, warp):
        setattr(owner, "launch", launching)  # noqa: B010 - a function of Warp's, replaced


def _sizes(dim: Any) -> tuple[int, ...]:
    return tuple(int(size) for size in dim) if isinstance(dim, Iterable) else (int(dim),)


def _name(kernel: Any) -> str:
    return str(kernel.func.__name__)


def _arrays(kernel: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[str, ...]:
    """The types of the arrays: those of the signature, of a generic kernel those that are passed."""
    if kernel.is_generic:
        return tuple(kind for each in (*inputs, *outputs) if (kind := array_type(each)) is not None)
    known: tuple[str, ...] | None = kernel.__dict__.get(_ARRAYS)
    if known is None:
        types = (array_type(each.type) for each in kernel.adj.args)
        known = kernel.__dict__[_ARRAYS] = tuple(kind for kind in types if kind is not None)
    return known

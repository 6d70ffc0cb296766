"""What a child writes about modules, launches as work, and options: the records of the compile probe.

A room of their own, because every process of a measured command imports them: this module is cheap, and needs nothing
but the standard library. ``records.py`` has them too, and says how they travel.
"""

from __future__ import annotations

import json
from dataclasses import field
from typing import Any

from warplint.dataclass import dataclass

Place = tuple[str, int, str]


@dataclass(frozen=True)
class KernelContent:
    """What one kernel adds to the identity of its module: two modules of equal contents and options are one build.

    ``name`` is Warp's key of it (qualified), ``types`` those of its arguments. ``hash`` covers the source, the
    captured values and the functions and structs that it uses; ``source`` is a digest of its own text alone, and
    ``constants`` are the captured values and the resolved ``wp.static`` expressions by name, as their ``repr``, those
    of a function as ``function.name``, with a digest of its text as ``function()``.
    ``instance``: one of a generic kernel. ``adjoint``: built with one.
    """

    name: str
    defined: Place
    hash: str
    types: str = ""
    source: str = ""
    constants: dict[str, str] = field(default_factory=dict)
    instance: bool = False
    adjoint: bool = True


@dataclass(frozen=True)
class ModuleLoad:
    """One load of a Warp module for one device: built by the compiler, or taken from the kernel cache.

    ``options`` are those in effect for this build (resolved; by name). ``kernels`` are ``[path, line, name]`` of each
    kernel's ``def``. ``internal``: a module of Warp's own library (``map_add``, ``warp.utils`` …), left out of counts.
    ``cache`` is the kernel cache folder in use. ``at`` is the user's call that needed the module.

    ``started`` is on the system's monotonic clock, in seconds. ``native_ms`` is the time in the compiler itself, and
    ``source_bytes`` the size of what it was given. ``lto`` counts the link-time artifacts (tile operations on CUDA)
    that had to be built, ``lto_ms`` is the time that took.
    """

    module: str
    hash: str
    device: str
    compiled: bool
    milliseconds: float
    kernels: tuple[Place, ...] = ()
    internal: bool = False
    unique: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    cache: str = ""
    at: tuple[Place, ...] = ()
    block_dim: int | None = None
    contents: tuple[KernelContent, ...] = ()
    started: float = 0.0
    native_ms: float = 0.0
    source_bytes: int = 0
    lto: int = 0
    lto_ms: float = 0.0

    @property
    def has_adjoints(self) -> bool:
        """Whether a kernel of it was built with its adjoint."""
        if self.contents:
            return any(each.adjoint for each in self.contents)
        return self.options.get("enable_backward") is not False


@dataclass(frozen=True)
class ProcessStarted:
    """A process that imported Warp, at the end of that import.

    ``started`` (when its interpreter began) is on the system's monotonic clock; ``importing`` is what the import of
    Warp took. Both in seconds. ``arguments`` is its command line.
    """

    process: int
    parent: int
    arguments: tuple[str, ...]
    started: float
    importing: float
    warp: str


@dataclass(frozen=True)
class LaunchKind:
    """A launch as the work that it is: which kernel over how many threads, the types of its arrays, and where.

    ``kernel`` is the name of its function, without the module and the scope that it is defined in: moving a kernel
    does not change the work. ``arrays`` are the arrays' types in the order of the parameters (``float32[2]``).
    """

    kernel: str
    dim: tuple[int, ...]
    arrays: tuple[str, ...]
    device: str
    block_dim: int
    adjoint: bool = False


@dataclass(frozen=True)
class Workload:
    """The launches of one process, in order: ``kinds`` by first use, ``digest`` of the sequence of their numbers.

    ``first`` is the beginning of that sequence. ``complete``: it was told at the end of the process; else the process
    was ended from outside, and launches may be missing.
    """

    kinds: tuple[LaunchKind, ...]
    counts: tuple[int, ...]
    digest: str
    first: tuple[int, ...]
    complete: bool


@dataclass(frozen=True)
class Note:
    """Something that was not done as the program asked, or that the reader must know: said, never silent.

    ``topic``: ``cache`` (a kernel cache was not cleared), ``device`` (requests were redirected), ``unsupported`` …
    """

    topic: str
    text: str
    at: tuple[Place, ...] = ()


@dataclass(frozen=True)
class ConfigSeen:
    """``wp.config.option = value`` by the user's code; ``value`` as its ``repr`` where it is no plain value."""

    seq: int
    stack: tuple[Place, ...]
    option: str
    value: Any = None


@dataclass(frozen=True)
class ModuleOptionsSeen:
    """``wp.set_module_options``; ``direct``: a write into a module's ``options``, which Warp does not hear."""

    seq: int
    stack: tuple[Place, ...]
    module: str
    options: dict[str, Any] = field(default_factory=dict)
    direct: bool = False


@dataclass(frozen=True)
class CacheClearedSeen:
    """The kernel cache is cleared: by ``clear_kernel_cache`` (refused, unless it is isolated) or by ``rmtree``."""

    seq: int
    stack: tuple[Place, ...]
    how: str = "clear_kernel_cache"


def to_json(record: Any) -> str:
    """One line: the record's class name under ``record``, its fields beside it."""
    return _ENCODER.encode({"record": type(record).__name__, **vars(record)})


def _plain(value: Any) -> Any:
    """What JSON has no word for: records by their fields, sets as lists. Enumerations of strings are strings."""
    return sorted(value) if isinstance(value, (set, frozenset)) else vars(value)


_ENCODER = json.JSONEncoder(check_circular=False, default=_plain)
"""One for all records, of which a program tells thousands; none holds itself."""

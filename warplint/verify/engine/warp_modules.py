"""The part of ``warp_hooks.py`` that is about modules: when one is loaded, whether it was built, with which options.

A private room like ``warp_hooks.py``: what Warp 1.13 to 1.19 call ``Module.load``, ``ModuleExec``, ``build_cpu`` and
``build_cuda`` is touched here. ``Module.load`` runs at every launch; a *load* is one that makes an executable.
"""

from __future__ import annotations

import enum
import functools
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from warplint.verify.engine.recording.user_frames import is_user_file, user_stack
from warplint.verify.records import ModuleLoad, Place

Loaded = Callable[[ModuleLoad, "int | None"], None]
"""Called after a load with what it was and the block size asked for."""
Building = Callable[[bool], None]
"""Called with True before the compiler runs and with False afterwards."""

_UNIQUE_NAME = re.compile(r".+_[0-9a-f]{8}")


def watch_loads(loaded: Loaded, building: Building = lambda _: None) -> str | None:
    """Have every load of the imported Warp told from now on; the reason where this Warp does not allow it."""
    import warp
    from warp._src import build, context

    missing = [
        name
        for owner, name in ((context.Module, "load"), (build, "build_cpu"), (build, "build_cuda"))
        if not hasattr(owner, name)
    ]
    if missing:
        return f"loads of modules cannot be seen in Warp {warp.config.version}: it has no {', '.join(missing)}"
    builds = _BuildCounter(building)
    for name in ("build_cpu", "build_cuda"):
        setattr(build, name, builds.counted(getattr(build, name)))
    setattr(context.Module, "load", _watched(context.Module.load, builds, loaded))  # noqa: B010 - a method
    return None


class _BuildCounter:
    """How often the compiler ran in this process."""

    def __init__(self, building: Building) -> None:
        self.count = 0
        self._building = building

    def counted(self, build: Callable[..., Any]) -> Callable[..., Any]:
        """The compiler's entry, counting its calls."""

        @functools.wraps(build)
        def counting(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            self._building(True)
            try:
                return build(*args, **kwargs)
            finally:
                self._building(False)

        return counting


def _watched(load: Callable[..., Any], builds: _BuildCounter, loaded: Loaded) -> Callable[..., Any]:
    @functools.wraps(load)
    def loading(this: Any, device: Any, block_dim: int | None = None, *args: Any, **kwargs: Any) -> Any:
        before = set(map(id, this.execs.values()))
        count, started = builds.count, time.perf_counter()
        made = load(this, device, block_dim, *args, **kwargs)
        if made is not None and id(made) not in before:
            milliseconds = (time.perf_counter() - started) * 1000.0
            compiled = builds.count > count
            loaded(_describe(this, made, compiled, milliseconds), block_dim)
        return made

    return loading


def _describe(module: Any, made: Any, compiled: bool, milliseconds: float) -> ModuleLoad:
    import warp

    kernels = [kernel for kernel in live_kernels(module) if getattr(kernel, "func", None) is not None]
    block = getattr(made, "block_dim", None)
    digest = getattr(made, "module_hash", None)
    return ModuleLoad(
        module=module.name,
        hash=digest.hex() if isinstance(digest, bytes) else "",
        device=str(getattr(made, "device", "")),
        compiled=compiled,
        milliseconds=milliseconds,
        kernels=tuple(definition(kernel) for kernel in kernels),
        internal=not any(_is_written(kernel) for kernel in kernels),
        unique=is_unique(module, kernels),
        options=effective_options(module, block),
        cache=str(warp.config.kernel_cache_dir or ""),
        at=tuple((code.co_filename, line, code.co_name) for code, line in reversed(user_stack(sys._getframe(2)))),
    )


def live_kernels(module: Any) -> list[Any]:
    """The kernels that are built with the module."""
    live = getattr(module, "_get_live_kernels", None)
    return list(live() if callable(live) else module.kernels.values())


def definition(kernel: Any) -> Place:
    """Where the kernel's ``def`` stands; the first line of its source where that cannot be told."""
    adjoint = kernel.adj
    path = getattr(adjoint, "filename", "") or ""
    first = int(getattr(adjoint, "fun_lineno", 0) or 0)
    tree = getattr(adjoint, "tree", None)
    offset = tree.body[0].lineno - 1 if tree is not None and tree.body else 0
    return os.path.abspath(path) if os.path.exists(path) else path, first + offset, kernel.func.__name__


def is_unique(module: Any, kernels: list[Any]) -> bool:
    """Whether the module was made for one kernel (``module="unique"``): Warp names it by the kernel and its hash."""
    return len(kernels) <= 1 and module.name not in sys.modules and _UNIQUE_NAME.fullmatch(module.name) is not None


def effective_options(module: Any, block_dim: int | None) -> dict[str, Any]:
    """The options that the module was built with, as JSON values: those that its hash was taken from."""
    resolved: Mapping[Any, Any] = getattr(module, "resolved_options", None) or {}
    options = resolved.get(block_dim) or next(iter(resolved.values()), None) or module.options
    return {name: plain(value) for name, value in options.items()}


def plain(value: Any) -> Any:
    """A value as JSON can hold it; an enumeration by its value, anything else by its ``repr``."""
    if isinstance(value, enum.Enum):
        value = value.value
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def _is_written(kernel: Any) -> bool:
    """Whether the kernel stands in a file of the user's; those of ``wp.map`` and of array operators stand in none."""
    path = definition(kernel)[0]
    return os.path.exists(path) and is_user_file(path)


def protect_caches(isolated: str | None, refused: Callable[[str], None]) -> None:
    """Have the program clear a kernel cache only where it lies in the folder ``isolated``; else tell what it asked for.

    A cache is the user's, and hours of builds may be in it; that a program clears it is seen without doing it.
    """
    import warp
    from warp._src import build, context

    for name in ("clear_kernel_cache", "clear_lto_cache"):
        clear = getattr(build, name, None)
        if clear is None:
            continue
        guarded = _guarded(clear, name, isolated, refused)
        for owner in (build, context, warp):
            if getattr(owner, name, None) is clear:
                setattr(owner, name, guarded)


def _guarded(
    clear: Callable[[], None], name: str, isolated: str | None, refused: Callable[[str], None]
) -> Callable[[], None]:
    import warp

    @functools.wraps(clear)
    def clearing() -> None:
        warp.init()  # type: ignore[no-untyped-call]
        cache = os.path.realpath(warp.config.kernel_cache_dir or "")
        own = os.path.realpath(isolated) if isolated is not None else None
        if own is not None and os.path.commonpath([cache, own]) == own:
            clear()
        else:
            refused(f"{name}() was not carried out: the kernel cache {cache} is not this run's own")

    return clearing

"""The part of ``warp_hooks.py`` that is about modules: when one is loaded, whether it was built, with which options.

A private room like ``warp_hooks.py``: what Warp 1.13 to 1.19 call ``Module.load``, ``ModuleExec``, ``build_cpu`` and
``build_cuda`` is touched here. ``Module.load`` runs at every launch; a *load* is one that makes an executable.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from warplint.dataclass import dataclass
from warplint.verify.build_records import KernelContent, ModuleLoad, Place
from warplint.verify.engine.recording.user_frames import called_by_user, is_user_file, user_stack

Loaded = Callable[[ModuleLoad, "int | None"], None]
"""Called after a load with what it was and the block size asked for."""
Building = Callable[[bool], None]
"""Called with True before the compiler runs and with False afterwards."""

_UNIQUE_NAME = re.compile(r".+_[0-9a-f]{8}")


def watch_loads(loaded: Loaded, building: Building = lambda _: None) -> str | None:
    """Have every load of the imported Warp told from now on; the reason where this Warp does not allow it."""
    import warp
    from warp._src import build, codegen, context

    missing = [
        name
        for owner, name in ((context.Module, "load"), (build, "build_cpu"), (build, "build_cuda"))
        if not hasattr(owner, name)
    ]
    if missing:
        return f"loads of modules cannot be seen in Warp {warp.config.version}: it has no {', '.join(missing)}"
    work = _Work()
    for name, source in (("build_cpu", 1), ("build_cuda", 0)):
        setattr(build, name, work.timed(getattr(build, name), source, building))
    if hasattr(build, "_build_lto_base"):
        setattr(build, "_build_lto_base", work.linked(build._build_lto_base))  # noqa: B010 - Warp's, not in its stubs
    _keep_references(codegen.Adjoint)
    setattr(context.Module, "load", _watched(context.Module.load, work, loaded))  # noqa: B010 - a method
    return None


@dataclass(frozen=True)
class _Spent:
    """What the compiler did so far in one thread: seconds, bytes of source, link-time artifacts."""

    builds: int = 0
    native: float = 0.0
    source: int = 0
    lto: int = 0
    lto_time: float = 0.0


class _Work(threading.local):
    """What the compiler did, by thread: modules may be loaded in several at once."""

    def __init__(self) -> None:
        self.spent = _Spent()

    def timed(self, build: Callable[..., Any], source: int, building: Building) -> Callable[..., Any]:
        """The compiler's entry, observed; ``source`` is the position of the file that it compiles."""

        @functools.wraps(build)
        def timing(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter()
            building(True)
            try:
                return build(*args, **kwargs)
            finally:
                building(False)
                spent = self.spent
                self.spent = replace(
                    spent,
                    builds=spent.builds + 1,
                    native=spent.native + time.perf_counter() - started,
                    source=spent.source + (_size(args[source]) if len(args) > source else 0),
                )

        return timing

    def linked(self, build: Callable[..., Any]) -> Callable[..., Any]:
        """The maker of link-time artifacts, observed: it calls ``compile_func`` for what its cache does not have."""

        @functools.wraps(build)
        def linking(symbol: Any, compile_func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            def compiling(*paths: Any) -> Any:
                started = time.perf_counter()
                try:
                    return compile_func(*paths)
                finally:
                    spent, took = self.spent, time.perf_counter() - started
                    self.spent = replace(spent, lto=spent.lto + 1, lto_time=spent.lto_time + took)

            return build(symbol, compiling, *args, **kwargs)

        return linking


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _keep_references(adjoint: Any) -> None:
    """Have each kernel and function remember what it refers to, which its hash was taken from and is found anyway."""
    references = getattr(adjoint, "get_references", None)
    if references is None:
        return

    @functools.wraps(references)
    def finding(this: Any) -> Any:
        found = references(this)
        this.__dict__[_REFERENCES] = found
        return found

    adjoint.get_references = finding


_REFERENCES = "warplint_references"
_TOLD = "warplint_told"


def _watched(load: Callable[..., Any], work: _Work, loaded: Loaded) -> Callable[..., Any]:
    @functools.wraps(load)
    def loading(this: Any, device: Any, block_dim: int | None = None, *args: Any, **kwargs: Any) -> Any:
        before, started = work.spent, time.monotonic()  # this runs at every launch
        made = load(this, device, block_dim, *args, **kwargs) if args or kwargs else load(this, device, block_dim)
        if made is not None and _TOLD not in made.__dict__:
            made.__dict__[_TOLD] = True
            loaded(_describe(this, made, before, work.spent, started), block_dim)
        return made

    return loading


def _describe(module: Any, made: Any, before: _Spent, after: _Spent, started: float) -> ModuleLoad:
    import warp

    milliseconds = (time.monotonic() - started) * 1000.0
    kernels = [kernel for kernel in live_kernels(module) if getattr(kernel, "func", None) is not None]
    block = getattr(made, "block_dim", None)
    digest = getattr(made, "module_hash", None)
    return ModuleLoad(
        module=module.name,
        hash=digest.hex() if isinstance(digest, bytes) else "",
        device=str(getattr(made, "device", "")),
        compiled=after.builds > before.builds,
        milliseconds=milliseconds,
        kernels=tuple(definition(kernel) for kernel in kernels),
        internal=not any(_is_written(kernel) for kernel in kernels),
        unique=is_unique(module, kernels),
        options=effective_options(module, block),
        cache=str(warp.config.kernel_cache_dir or ""),
        at=tuple((code.co_filename, line, code.co_name) for code, line in reversed(user_stack(sys._getframe(2)))),
        block_dim=block,
        contents=contents(module, block),
        started=started,
        native_ms=(after.native - before.native) * 1000.0,
        source_bytes=after.source - before.source,
        lto=after.lto - before.lto,
        lto_ms=(after.lto_time - before.lto_time) * 1000.0,
    )


def contents(module: Any, block_dim: int | None) -> tuple[KernelContent, ...]:
    """The kernels that the module's hash was taken from, each content once; empty where Warp does not keep them."""
    hashers: Mapping[Any, Any] = getattr(module, "hashers", None) or {}
    hasher = hashers.get(block_dim) or next(iter(hashers.values()), None)
    kernels: Mapping[bytes, Any] = getattr(hasher, "unique_kernels", None) or {}
    return tuple(_content(module, digest, kernel) for digest, kernel in kernels.items())


def _content(module: Any, digest: bytes, kernel: Any) -> KernelContent:
    generic = getattr(kernel, "generic_parent", None) is not None
    return KernelContent(
        name=kernel.key,
        defined=definition(kernel),
        hash=digest.hex()[:16],
        types=_types(kernel) if generic else "",
        source=_digest(kernel.adj),
        constants=_constants(kernel.adj, set()),
        instance=generic,
        adjoint=kernel.options.get("enable_backward", module.options.get("enable_backward")) is not False,
    )


def _constants(adjoint: Any, seen: set[int]) -> dict[str, str]:
    """What an adjoint's hash holds besides its text: captured values, static expressions, the functions that it calls.

    Those of a function are told as ``function.name``, its text as ``function()``.
    """
    captured, _, functions = adjoint.__dict__.get(_REFERENCES) or ({}, {}, {})
    static: Mapping[str, Any] = getattr(adjoint, "resolved_static_expressions", None) or {}
    deferred: Sequence[tuple[str, Any]] = getattr(adjoint, "deferred_static_expressions", None) or ()
    found = {name: repr(value)[:_LONGEST] for name, value in captured.items()}
    resolved = (*static.items(), *deferred)
    found |= {f"wp.static({code})": repr(value)[:_LONGEST] for code, value in resolved}
    for function in (*functions, *(value for _, value in resolved if hasattr(value, "key"))):
        inner = getattr(function, "adj", None)
        if inner is not None and id(function) not in seen:
            seen.add(id(function))
            found[f"{function.key}()"] = _digest(inner)
            found |= {f"{function.key}.{name}": value for name, value in _constants(inner, seen).items()}
    return found


def _digest(adjoint: Any) -> str:
    return hashlib.sha1((getattr(adjoint, "source", "") or "").encode()).hexdigest()[:16]


_LONGEST = 60
"""Characters of a captured value that are told: enough to know it again."""


def _types(kernel: Any) -> str:
    return ", ".join(array_type(argument) or _name(argument) for argument in kernel.adj.arg_types.values())


def array_type(annotation: Any) -> str | None:
    """``float32[2]`` for a two-dimensional array of floats, whatever class of array; None for anything else."""
    dtype, dimensions = getattr(annotation, "dtype", None), getattr(annotation, "ndim", None)
    return None if dtype is None or not isinstance(dimensions, int) else f"{_name(dtype)}[{dimensions}]"


def _name(dtype: Any) -> str:
    return str(getattr(dtype, "key", None) or getattr(dtype, "__name__", dtype))


def live_kernels(module: Any) -> list[Any]:
    """The kernels that are built with the module."""
    live = getattr(module, "_get_live_kernels", None)
    return list(live() if callable(live) else module.kernels.values())


def definition(kernel: Any) -> Place:
    """Where the kernel's ``def`` stands; the first line of its source where that cannot be told."""
    adjoint = (getattr(kernel, "generic_parent", None) or kernel).adj
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


def watch_config(assigned: Callable[[str, Any], None]) -> None:
    """Have assignments to ``wp.config`` told: the module gets a class of its own, as Python allows."""
    import warp

    before = type(warp.config)

    class Watched(before):  # type: ignore[valid-type,misc]
        def __setattr__(self, name: str, value: Any) -> None:
            before.__setattr__(self, name, value)
            if not name.startswith("_"):
                assigned(name, value)

    Watched.__name__ = before.__name__
    warp.config.__class__ = Watched


def watch_module_options(told: Callable[[str, dict[str, Any]], None]) -> None:
    """Have calls of ``wp.set_module_options`` told, with the module's name and the options."""
    import warp
    from warp._src import context

    set_options = context.set_module_options

    @functools.wraps(set_options)
    def setting(options: dict[str, Any], module: Any = None) -> Any:
        if module is None:
            # Warp looks two frames up for the caller's module: give it what it would have found.
            frame = sys._getframe(1)
            module = sys.modules.get(frame.f_globals.get("__name__", ""))
        result = set_options(options, module)
        name = module if isinstance(module, str) else getattr(module, "name", getattr(module, "__name__", ""))
        told(name, dict(options))
        return result

    for owner in (context, warp):
        setattr(owner, "set_module_options", setting)  # noqa: B010 - a function of Warp's, replaced


def watch_written_options(written: Callable[[str, dict[str, Any]], None]) -> None:
    """Have writes of the user's code into the ``options`` of modules made from now on told, as ``set_module_options``.

    Warp keeps them in a plain dictionary and looks at it when it builds: what is written later, it does not hear.
    """
    from warp._src import context

    make = context.Module.__init__

    @functools.wraps(make)
    def making(this: Any, *args: Any, **kwargs: Any) -> None:
        make(this, *args, **kwargs)
        if type(this.options) is dict:
            this.options = _Options(this.options, functools.partial(written, str(this.name)))

    setattr(context.Module, "__init__", making)  # noqa: B010 - a method of Warp's, replaced


class _Options(dict[str, Any]):
    """A module's options, which tell what the user's code writes into them; a copy of them is a plain dictionary."""

    def __init__(self, options: dict[str, Any], written: Callable[[dict[str, Any]], None]) -> None:
        super().__init__(options)
        self._written = written

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        self._tell({name: value})

    def update(self, *args: Any, **kwargs: Any) -> None:
        """As that of a dictionary."""
        values = dict(*args, **kwargs)
        super().update(values)
        self._tell(values)

    def __ior__(self, other: Any) -> _Options:  # type: ignore[override,misc]
        self.update(other)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)

    def _tell(self, values: dict[str, Any]) -> None:
        if called_by_user(sys._getframe(2)):
            self._written(values)


def watch_clearing(cleared: Callable[[str], None]) -> None:
    """Have it told when the user's code clears the kernel cache, by Warp's function or by removing its folder."""
    import warp
    from warp._src import build, context

    clear = getattr(build, "clear_kernel_cache", None)
    if clear is not None:

        @functools.wraps(clear)
        def clearing() -> None:
            cleared("clear_kernel_cache")
            clear()

        for owner in (build, context, warp):
            if getattr(owner, "clear_kernel_cache", None) is clear:
                setattr(owner, "clear_kernel_cache", clearing)  # noqa: B010 - a function of Warp's, replaced
    remove = shutil.rmtree

    @functools.wraps(remove)
    def removing(path: Any, *args: Any, **kwargs: Any) -> Any:
        if called_by_user(sys._getframe(1)) and _holds_cache(path):
            cleared("rmtree")
        return remove(path, *args, **kwargs)

    setattr(shutil, "rmtree", removing)  # noqa: B010 - what the program gets from now on


def _holds_cache(path: Any) -> bool:
    """Whether removing ``path`` removes modules of the kernel cache."""
    import warp

    try:
        folder, cache = os.path.realpath(path), os.path.realpath(warp.config.kernel_cache_dir or "")
        return bool(warp.config.kernel_cache_dir) and os.path.commonpath([folder, cache]) in (folder, cache)
    except (TypeError, ValueError):
        return False


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

"""Warp's modules (the units of compilation) and its configuration: when options are copied, when a module is loaded.

Measured on 1.19: a module copies ``max_unroll``, ``enable_backward`` and others when its first kernel or function is
declared; ``set_module_options`` marks it modified, a write into ``get_module(n).options`` does not.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping

from warplint.syntax import walk
from warplint.trace import events
from warplint.trace.host.facts import is_under_condition, may_hold_kernels
from warplint.trace.host.machine import Call, Machine
from warplint.trace.host.values import (
    External,
    KernelValue,
    ModuleValue,
    Native,
    Record,
    UnknownValue,
    Value,
    WarpModule,
)
from warplint.trace.host.warp_api.hashing import varying_at_load
from warplint.trace.module_options import CACHING, COPIED_AT_CREATION, DEFAULTS, NOT_BUILT_IN

_FROM_CONFIG = frozenset({"mode", "optimization_level", "cpu_compiler_flags", "default_grid_stride"})
"""Options that follow ``wp.config`` as long as the module's own is None."""


def warp_module(machine: Machine, name: str) -> WarpModule:
    """The module called ``name``, created now if it is new."""
    module = machine.warp_modules.get(name)
    if module is None:
        options = {option: machine.config.get(option, default) for option, default in COPIED_AT_CREATION.items()}
        module = machine.warp_modules[name] = WarpModule(name, options)
        machine.emit(events.ModuleCreated, module=name)
    return module


def module_for(machine: Machine, wanted: Value, definer: ModuleValue, unique_name: str) -> WarpModule:
    """The module that a decorator's ``module=`` means; without one, that of the defining file."""
    if isinstance(wanted, WarpModule):
        return wanted
    if isinstance(wanted, UnknownValue):
        return warp_module(machine, f"<unknown>.{unique_name}")
    if wanted == "unique":
        return warp_module(machine, unique_name)
    if isinstance(wanted, str):
        return warp_module(machine, wanted)
    return warp_module(machine, definer.name)


def declare_content(machine: Machine, module: WarpModule, key: str) -> None:
    """A kernel enters a module."""
    module.contents.add(key)


def ensure_loaded(machine: Machine, kernel: KernelValue, block_dim: Value = None) -> None:
    """The load that a launch brings about: the first one, or one more since the module changed."""
    load(machine, kernel.module, block_dim)


def load(machine: Machine, module: WarpModule, block_dim: Value = None) -> None:
    """Load a module unless what it holds and how it is compiled are loaded already."""
    contents, options = frozenset(module.contents), {name: _effective(machine, module, name) for name in module.options}
    loaded, again = module.loaded or frozenset(), module.loaded is not None
    changed = frozenset(name for name in _different(machine, options, module.loaded_options) if again)
    if again and contents <= loaded and not changed:
        return
    module.loaded, module.loaded_options = contents | loaded, options
    machine.emit(
        events.ModuleLoaded,
        module=module.name,
        block_dim=block_dim if isinstance(block_dim, int) else None,
        again=again,
        added=contents - loaded,
        changed_options=changed,
        varying=varying_at_load(machine, module),
    )


def _different(machine: Machine, options: Mapping[str, Value], before: Mapping[str, Value]) -> Iterator[str]:
    """The options with another value than before; where one of the two is not known, nobody can tell."""
    for name, value in options.items():
        old = before.get(name, _default(machine, name))
        if name not in NOT_BUILT_IN and value != old and not _unknown(value, old):
            yield name


def _unknown(*values: Value) -> bool:
    return any(isinstance(value, UnknownValue) for value in values)


def _effective(machine: Machine, module: WarpModule, name: str) -> Value:
    value = module.options.get(name)
    return _default(machine, name) if value is None else value


def _default(machine: Machine, name: str) -> Value:
    default = DEFAULTS.get(name)
    return machine.config.get(name, default) if name in _FROM_CONFIG else default


def set_config(machine: Machine, option: str, value: Value) -> None:
    """``wp.config.option = value``."""
    machine.config[option] = value
    known = None if isinstance(value, UnknownValue) else _plain(value)
    varying = isinstance(value, UnknownValue) and bool(value.taints)
    guarded = is_guarded(machine) if option in CACHING else None
    machine.emit(events.ConfigSet, option=option, value=known, varying=varying, guarded=guarded)


def cache_in_environment(machine: Machine, value: Value) -> None:
    """``os.environ["WARP_CACHE_PATH"] = …``: the cache folder of this process, if Warp is not yet initialised."""
    if isinstance(value, UnknownValue) and value.taints:
        machine.emit(events.ConfigSet, option="kernel_cache_dir", varying=True, guarded=is_guarded(machine))


def set_options(
    machine: Machine,
    module: WarpModule,
    options: Mapping[str, Value],
    *,
    direct: bool = False,
    own_file: bool = False,
) -> None:
    """Options of a module change; ``direct``: by a write into its dict, which rebuilds nothing."""
    before = {name: _effective(machine, module, name) for name in options}
    asked = {name: _default(machine, name) if value is None else value for name, value in options.items()}
    if not (direct and module.loaded is not None):
        module.options.update(options)
        module.revision += 1
    machine.emit(
        events.ModuleOptionsSet,
        module=module.name,
        options={name: _plain(value) for name, value in options.items()},
        direct=direct,
        changes=frozenset(_different(machine, asked, before)),
        own_file=own_file,
        holds_kernels=may_hold_kernels(machine.frame.module.module.tree) if own_file else None,
    )


def _plain(value: Value) -> object:
    if isinstance(value, (bool, int, float, str, type(None))):
        return value
    return value.path if isinstance(value, External) else None


def module_attribute(machine: Machine, module: WarpModule, name: str) -> Value:
    """``module.options``, ``module.load(device)``."""
    if name == "options":
        return Record("module-options", {"module": module})
    if name == "name":
        return module.name
    if name == "load":

        def run(machine: Machine, call: Call) -> Value:
            load(machine, module)
            return None

        return Native("load", run)
    if name == "mark_modified":
        return Native("mark_modified", _nothing)
    return UnknownValue(f"the attribute {name} of a Warp module")


def _named(machine: Machine, value: Value) -> WarpModule | None:
    """The module meant by a ``module=`` argument of the option functions."""
    if value is None:
        return warp_module(machine, machine.frame.module.name)
    if isinstance(value, WarpModule):
        return value
    if isinstance(value, ModuleValue):
        return warp_module(machine, value.name)
    if isinstance(value, str):
        return warp_module(machine, value)
    return None


def _set_module_options(machine: Machine, call: Call) -> Value:
    options, module = call.get(0, "options"), _named(machine, call.get(1, "module"))
    if module is not None and isinstance(options, dict):
        given = {str(name): value for name, value in options.items()}
        set_options(machine, module, given, own_file=call.get(1, "module") is None)
    return None


def _get_module_options(machine: Machine, call: Call) -> Value:
    module = _named(machine, call.get(0, "module"))
    return UnknownValue("the options of a module") if module is None else dict(module.options)


def _get_module(machine: Machine, call: Call) -> Value:
    name = call.get(0, "name")
    return warp_module(machine, name) if isinstance(name, str) else UnknownValue("a module of unknown name")


def _module_class(machine: Machine, call: Call) -> Value:
    """``wp.Module(name)``: a module object that is in no registry; it is created here."""
    name = call.get(0, "name")
    if not isinstance(name, str):
        name = f"<unnamed>.{len(machine.warp_modules)}"
    return warp_module(machine, name)


def _load_module(machine: Machine, call: Call) -> Value:
    """``wp.load_module(module, device, recursive, block_dim, max_workers)``."""
    module = _named(machine, call.get(0, "module"))
    if module is not None:
        below = [other for name, other in machine.warp_modules.items() if name.startswith(module.name + ".")]
        modules = [module, *(below if call.get(2, "recursive") is True else ())]
        _announce(machine, modules, call.get(1, "device"), call.get(4, "max_workers"))
        for each in modules:
            load(machine, each, call.get(3, "block_dim"))
    return None


def _force_load(machine: Machine, call: Call) -> Value:
    """``wp.force_load(device, modules, block_dim, max_workers)``; without modules, all that were imported."""
    wanted = call.get(1, "modules")
    everything = wanted is None and call.complete
    named = machine.iterate(wanted) if wanted is not None else list(machine.warp_modules.values())
    modules = [module for module in named or () if isinstance(module, WarpModule)]
    known = named is not None and len(modules) == len(named)
    _announce(
        machine, modules if known else None, call.get(0, "device"), call.get(3, "max_workers"), everything=everything
    )
    for module in modules:
        load(machine, module, call.get(2, "block_dim"))
    return None


_WORKERS_OF_NONE = 4
"""What Warp takes at most where ``load_module_max_workers`` is None."""


def _announce(
    machine: Machine, modules: list[WarpModule] | None, device: Value, workers: Value, *, everything: bool = False
) -> None:
    """Several loads at once are asked for."""
    if workers is None:
        workers = machine.config.get("load_module_max_workers", 0)
        workers = _WORKERS_OF_NONE if workers is None else workers
    machine.emit(
        events.LoadsAsked,
        modules=tuple(module.name for module in modules) if modules is not None else None,
        everything=everything,
        workers=workers if isinstance(workers, int) else None,
        on_cpu=_is_on_cpu(machine, device),
    )


def _is_on_cpu(machine: Machine, device: Value) -> bool | None:
    """Whether the CPU is among the devices of a load; without a name, all devices are meant."""
    if device is None:
        return True
    devices = machine.iterate(device) if isinstance(device, (list, tuple)) else [device]
    names = [device_name(each) for each in devices or ()]
    if "cpu" in names:
        return True
    return None if None in names or not names else False


def device_name(value: Value) -> str | None:
    """``"cuda:0"`` for a device given by its name or as an object; None where unknown, or where none is given."""
    if isinstance(value, Record) and value.kind == "device":
        value = value.attributes.get("alias")
    return value if isinstance(value, str) else None


def _clear_cache(machine: Machine, call: Call) -> Value:
    machine.emit(events.CacheCleared, guarded=is_guarded(machine))
    return None


_DEFAULT_CACHE = re.compile(r"\.cache/warp\b")


def _texts_in(node: ast.expr) -> str:
    """The strings of an expression in order, as the parts of a path: ``Path.home() / ".cache" / "warp"``."""
    texts = [item for item in walk(node) if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    return "/".join(str(item.value) for item in sorted(texts, key=lambda item: (item.lineno, item.col_offset)))


def _remove_tree(machine: Machine, call: Call) -> Value:
    """``shutil.rmtree``: of the kernel cache, where that is what it is given."""
    path, own = call.get(0, "path"), machine.config.get("kernel_cache_dir")
    node = call.argument_node(0, "path")
    named = node is not None and (
        ast.unparse(node).endswith("config.kernel_cache_dir") or _DEFAULT_CACHE.search(_texts_in(node)) is not None
    )
    if named or (own is not None and path is own) or (isinstance(path, str) and path == own):
        machine.emit(events.CacheCleared, guarded=is_guarded(machine))
    return None


def is_guarded(machine: Machine) -> bool:
    """Whether what happens now stands under a condition somewhere up the stack, other than the test of ``__name__``."""
    return any(
        is_under_condition(frame.module.module.tree, getattr(frame.node, "lineno", 0)) for frame in machine.frames
    )


def _nothing(machine: Machine, call: Call) -> Value:
    return None


def _context(machine: Machine, call: Call) -> Value:
    return Record("context", {"__enter__": Record("context")})


def _device(machine: Machine, call: Call) -> Value:
    alias = call.get(0, "ident")
    unknown = UnknownValue("the device")
    return Record(
        "device",
        {
            "alias": alias if isinstance(alias, str) else unknown,
            "is_cuda": alias.startswith("cuda") if isinstance(alias, str) else unknown,
            "is_cpu": alias == "cpu" if isinstance(alias, str) else unknown.opposite(),
        },
    )


def _devices(machine: Machine, call: Call) -> Value:
    return UnknownValue("the devices")


MODELS: dict[str, Callable[[Machine, Call], Value]] = {
    "warp.set_module_options": _set_module_options,
    "warp.get_module_options": _get_module_options,
    "warp.get_module": _get_module,
    "warp.Module": _module_class,
    "warp.load_module": _load_module,
    "warp.force_load": _force_load,
    "warp.clear_kernel_cache": _clear_cache,
    "warp.build.clear_kernel_cache": _clear_cache,
    "warp.clear_lto_cache": _nothing,
    "shutil.rmtree": _remove_tree,
    "warp.init": _nothing,
    "warp.synchronize": _nothing,
    "warp.synchronize_device": _nothing,
    "warp.synchronize_stream": _nothing,
    "warp.set_device": _nothing,
    "warp.set_mempool_enabled": _nothing,
    "warp.set_mempool_release_threshold": _nothing,
    "warp.get_device": _device,
    "warp.get_preferred_device": _device,
    "warp.get_cuda_device": _device,
    "warp.get_devices": _devices,
    "warp.ScopedTimer": _context,
    "warp.ScopedDevice": _context,
    "warp.ScopedStream": _context,
    "warp.ScopedMempool": _context,
    "warp.ScopedMemoryTracker": _context,
    "warp.ScopedMempoolAccess": _context,
    "warp.ScopedPeerAccess": _context,
}

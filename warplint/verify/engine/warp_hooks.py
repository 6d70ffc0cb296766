"""The private room: where native operations of Warp are seen.

Private names of Warp are touched here, in ``warp_values.py`` (parameters), ``warp_modules.py`` (builds) and
``warp_workload.py`` (launches as work) only.
Warp 1.13 to 1.19 were looked at; whatever is used is looked up by name and may be missing. :func:`missing_names` and
the self-test decide whether this Warp is supported at all.

The hooks see *native* calls: kernels through ``context.invoke``, memory operations through the attributes of the
ctypes library object, so every Python route (``launch``, ``Launch`` objects, tape adjoints, ``wp.map``, operators,
``warp.fem``) is covered without knowing it.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from warplint.verify.engine import warp_modules
from warplint.verify.engine.observer import Observer
from warplint.verify.engine.warp_values import Unsupported

EXACT_WRITERS = (
    "wp_memcpy_h2h",
    "wp_memset_host",
    "wp_memtile_host",
    "wp_array_copy_host",
    "wp_array_fill_host",
)
"""Memory operations whose destination (and source) can be read off their arguments."""

PURE_QUERIES = ("wp_volume_get", "wp_volume_validate", "wp_bvh_get", "wp_mesh_get", "wp_hash_grid_get")


def redirect_devices(device: str, redirected: Callable[[str], None]) -> None:
    """Have every request for a device answered with ``device``; ``redirected`` is told what was asked for."""
    from warp._src import context

    original = context.Runtime.get_device

    @functools.wraps(original)
    def get_device(this: Any, ident: Any = None) -> Any:
        name = str(getattr(ident, "alias", ident))
        if ident is not None and name != device:
            redirected(name)
        return original(this, device)

    context.Runtime.get_device = get_device  # type: ignore[method-assign, assignment]


class Hooks:
    """Patches Warp once per process and hands what happens to ``observer``; None: everything passes through.

    ``installed`` is called when the program has imported Warp and the hooks are in; ``unsupported`` where that is not
    possible: the program's own import of Warp must not fail for it.
    """

    def __init__(
        self, installed: Callable[[], None] = lambda: None, unsupported: Callable[[str], None] | None = None
    ) -> None:
        self.observer: Observer | None = None
        self._installed = installed
        self._unsupported = unsupported
        self._depth = 0

    def on_import(self) -> None:
        """Install as soon as the program imports Warp (now, if it is imported already)."""
        if "warp" in sys.modules:
            self._try_to_install()
        else:
            sys.meta_path.insert(0, _AfterImport("warp", lambda _: self._try_to_install()))

    def _try_to_install(self) -> None:
        try:
            self.install()
        except Exception as error:
            self.observer = None
            if self._unsupported is None:
                raise
            self._unsupported(str(error) if isinstance(error, Unsupported) else f"{type(error).__name__}: {error}")

    def install(self) -> None:
        """Put the hooks into the imported Warp."""
        import warp
        from warp._src import context

        missing = missing_names(context)
        if missing:
            raise Unsupported("it has no " + ", ".join(missing))
        self._install_kernels(context)
        self._install_tape(warp.Tape)
        self._install_arrays(warp.array)
        self._install_structs()
        self._install_modules(context)
        warp_modules.watch_config(lambda name, value: self.tell(lambda o: o.config(name, value)))
        self._install_optimisers()
        if context.runtime is not None:
            self._install_runtime(context.runtime)
        else:
            self._install_when_initialised(context.Runtime)
        self._installed()

    def _install_when_initialised(self, runtime_class: Any) -> None:
        """``wp.init`` makes the runtime, and with it the native library, at the first call that needs it."""
        original = runtime_class.__init__

        @functools.wraps(original)
        def init(this: Any, *args: Any, **kwargs: Any) -> None:
            original(this, *args, **kwargs)
            self._install_runtime(this)

        runtime_class.__init__ = init

    def _guarded(self, call: Callable[[Observer], Any], otherwise: Callable[[], Any]) -> Any:
        """Ask the observer unless there is none; an error of *ours* switches it off and never reaches the program."""
        observer = self.observer
        return otherwise() if observer is None else call(observer)

    def tell(self, call: Callable[[Observer], None]) -> None:
        """Tell the observer something; its own errors switch it off."""
        observer = self.observer
        if observer is None:
            return
        try:
            call(observer)
        except Exception as error:
            self.observer = None
            observer.failed(error)

    # kernels ------------------------------------------------------------------------------------------------------

    def _install_kernels(self, context: ModuleType) -> None:
        for name, blocks in (("invoke", False), ("invoke_cpu_blocks", True)):
            original = getattr(context, name, None)
            if original is not None:
                setattr(context, name, self._kernel_route(original, blocks))

    def _kernel_route(self, original: Callable[..., None], blocks: bool) -> Callable[..., None]:
        @functools.wraps(original)
        def invoke(kernel: Any, hooks: Any, params: Sequence[Any], adjoint: bool) -> None:
            observer = self.observer
            if observer is None:
                original(kernel, hooks, params, adjoint)
            else:
                observer.kernel(original, kernel, hooks, params, adjoint, blocks)

        return invoke

    # the native library -------------------------------------------------------------------------------------------

    def _install_runtime(self, runtime: Any) -> None:
        core = runtime.core
        for name in [n for n in vars(core) if n in EXACT_WRITERS or (n.startswith("wp_") and n.endswith("_host"))]:
            route = self._native_route(name, getattr(core, name))
            if route is not None:
                setattr(core, name, route)
        for name in ("wp_alloc_pinned", "wp_free_pinned"):
            if name in vars(core):
                setattr(core, name, self._native_route(name.replace("pinned", "host"), getattr(core, name)))
        self._install_capture(core)
        cpu = getattr(runtime, "cpu_device", None) or runtime.get_device("cpu")
        cpu.memset = core.wp_memset_host
        cpu.memtile = core.wp_memtile_host
        for name in ("wp_unload_obj", "unload_obj"):
            if hasattr(runtime.llvm, name):
                setattr(runtime.llvm, name, self._unload_route(getattr(runtime.llvm, name)))

    def _native_route(self, name: str, original: Callable[..., Any]) -> Callable[..., Any] | None:
        if name.startswith(PURE_QUERIES):
            return None
        if name.startswith("wp_alloc"):
            return lambda *args: self._guarded(lambda o: o.allocate(original, args), lambda: original(*args))
        if name.startswith("wp_free"):
            return lambda address: self._guarded(lambda o: o.free(original, address), lambda: original(address))
        if "_destroy_" in name:
            return lambda *args: self._guarded(lambda o: o.destroy(name, original, args), lambda: original(*args))
        if "_create_" in name or (name.startswith("wp_volume_") and "_from_" in name and "rebuild" not in name):
            return self._creating_route(name, original)

        def route(*args: Any) -> Any:
            observer = self.observer
            return original(*args) if observer is None else observer.native(name, original, args)

        return route

    def _creating_route(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def route(*args: Any) -> Any:
            handle = original(*args)
            self.tell(lambda observer: observer.created(name, handle, args))
            return handle

        return route

    def _install_capture(self, core: Any) -> None:
        """Graph capture on the CPU: the native library records operations, and runs them when the graph is launched."""
        counter = getattr(core, "wp_apic_get_operation_count", None)
        for name, what in (
            ("wp_apic_begin_recording", "begin"),
            ("wp_apic_end_recording", "end"),
            ("wp_apic_begin_branch", "branch"),
            ("wp_apic_record_conditional", "branch"),
            ("wp_apic_destroy_state", "forget"),
        ):
            if name in vars(core):
                setattr(core, name, self._capture_route(getattr(core, name), what, counter))
        for name, known in (("wp_apic_cpu_replay_state", True), ("wp_apic_cpu_replay_graph", False)):
            if name in vars(core):
                setattr(core, name, self._graph_route(getattr(core, name), known))
        if "wp_cpu_launch_kernel" in vars(core):
            take = core.wp_cpu_launch_kernel

            def launch(*args: Any) -> Any:
                run = functools.partial(take, *args)
                return self._guarded(lambda o: o.captured_launch(run), run)

            core.wp_cpu_launch_kernel = launch
        try:
            from warp._src.apic import capture
        except ImportError:
            return
        build = capture.APICapture.build_launch_info

        @functools.wraps(build)
        def building(this: Any, kernel: Any, loaded: Any, hooks: Any, params: Any, *args: Any, **kwargs: Any) -> Any:
            adjoint = bool(args[1] if len(args) > 1 else kwargs.get("adjoint", False))
            blocks = int(getattr(loaded, "block_dim", 1) or 1) > 1
            self.tell(lambda o: o.captured_kernel(kernel, hooks, params, adjoint, blocks))
            return build(this, kernel, loaded, hooks, params, *args, **kwargs)

        capture.APICapture.build_launch_info = building  # type: ignore[method-assign, assignment]

    def _capture_route(self, original: Callable[..., Any], what: str, counter: Any) -> Callable[..., Any]:
        def route(state: Any, *args: Any) -> Any:
            count = functools.partial(counter, state) if counter is not None else lambda: -1
            if what == "end":
                self.tell(lambda observer: observer.capture(what, _address(state), count))
            result = original(state, *args)
            if what != "end":
                self.tell(lambda observer: observer.capture(what, _address(state), count))
            return result

        return route

    def _graph_route(self, original: Callable[..., Any], known: bool) -> Callable[..., Any]:
        def route(state: Any, *args: Any) -> Any:
            run = functools.partial(original, state, *args)
            return self._guarded(lambda o: o.graph(_address(state) if known else None, run), run)

        return route

    def _unload_route(self, original: Callable[..., Any]) -> Callable[..., Any]:
        # A replay calls the machine code of operations long gone: what was loaded stays loaded.
        return lambda *args: None if self.observer is not None else original(*args)

    # tapes --------------------------------------------------------------------------------------------------------

    def _install_tape(self, tape: type) -> None:
        self._wrap_method(tape, "__init__", after=lambda t, *_: self.tell(lambda o: o.tape("created", t)))
        self._wrap_method(
            tape,
            "__enter__",
            before=lambda t: self.tell(lambda o: o.tape("enter", t)),
            after=lambda t, *_: self.tell(lambda o: o.tape("entered", t)),
        )
        self._wrap_method(tape, "__exit__", after=lambda t, *_: self.tell(lambda o: o.tape("left", t)))
        for name, done in (("zero", "zeroed"), ("reset", "wasreset")):
            self._wrap_method(
                tape, name, before=functools.partial(self._taped, name), after=functools.partial(self._taped, done)
            )
        self._wrap_method(tape, "record_launch", after=lambda t, *_: self.tell(lambda o: o.recorded(t, t.launches[-1])))
        record_func = tape.record_func  # type: ignore[attr-defined]
        backward = tape.backward  # type: ignore[attr-defined]

        @functools.wraps(record_func)
        def recording(this: Any, backward: Callable[[], Any], arrays: Any) -> Any:
            function = self._guarded(lambda o: o.wrap_callable(this, backward), lambda: backward)
            result = record_func(this, function, arrays)
            self.tell(lambda o: o.recorded(this, this.launches[-1]))
            return result

        @functools.wraps(backward)
        def running(this: Any, loss: Any = None, grads: Any = None) -> Any:
            run = functools.partial(backward, this, loss, grads)
            return self._guarded(lambda o: o.backward(this, loss, grads, run), run)

        tape.record_func = recording  # type: ignore[attr-defined]
        tape.backward = running  # type: ignore[attr-defined]

    def _taped(self, what: str, tape: Any, *_: Any) -> None:
        self.tell(lambda o: o.tape(what, tape))

    # arrays -------------------------------------------------------------------------------------------------------

    def _install_arrays(self, array: type) -> None:
        self._wrap_method(array, "__init__", after=lambda a, *_: self.tell(lambda o: o.array(a)))
        numpy = array.numpy  # type: ignore[attr-defined]

        @functools.wraps(numpy)
        def viewed(this: Any, *args: Any, **kwargs: Any) -> Any:
            self._depth += 1
            try:
                view = numpy(this, *args, **kwargs)
            finally:
                self._depth -= 1
            self.tell(lambda o: o.host_view(this, view, "numpy"))
            return view

        array.numpy = viewed  # type: ignore[attr-defined]
        interface = array.__dict__.get("__array_interface__")
        if isinstance(interface, property) and interface.fget is not None:
            read = interface.fget

            def interface_of(this: Any) -> Any:
                found = read(this)
                if self._depth == 0:
                    self.tell(lambda o: o.host_view(this, None, "array_interface"))
                return found

            array.__array_interface__ = property(interface_of)  # type: ignore[attr-defined]
        for name in ("__dlpack__", "cptr"):
            if name in array.__dict__:
                self._wrap_method(array, name, before=functools.partial(self._viewed, name))

    def _install_structs(self) -> None:
        """Nothing where this Warp keeps its structs elsewhere: changes of their fields are then not told."""
        from warp._src import codegen

        structs = getattr(codegen, "StructInstance", None)
        original = getattr(structs, "__setattr__", None)
        if structs is None or original is None:
            return

        @functools.wraps(original)
        def setting(this: Any, name: str, value: Any) -> None:
            original(this, name, value)
            self.tell(lambda o: o.struct_set(this, name))

        structs.__setattr__ = setting

    def _viewed(self, how: str, array: Any) -> None:
        self.tell(lambda o: o.host_view(array, None, how))

    # builds -------------------------------------------------------------------------------------------------------

    def _install_modules(self, context: Any) -> None:
        self._wrap_method(context.Kernel, "__init__", after=lambda k, *_: self.tell(lambda o: o.kernel_declared(k)))
        self._wrap_method(context.Module, "__init__", after=lambda m, *_: self.tell(lambda o: o.module_created(m)))
        warp_modules.watch_module_options(lambda name, options: self.tell(lambda o: o.module_options(name, options)))
        warp_modules.watch_written_options(lambda name, values: self.tell(lambda o: o.options_written(name, values)))

    def _install_optimisers(self) -> None:
        def wrap(module: ModuleType) -> None:
            for name in ("SGD", "Adam"):
                kind = getattr(module, name, None)
                if kind is not None and hasattr(kind, "step"):
                    self._wrap_step(kind)

        if "warp.optim" in sys.modules:
            wrap(sys.modules["warp.optim"])
        else:
            sys.meta_path.insert(0, _AfterImport("warp.optim", wrap))

    def _wrap_step(self, kind: Any) -> None:
        step = kind.step

        @functools.wraps(step)
        def stepping(this: Any, grad: Any = None, *args: Any, **kwargs: Any) -> Any:
            run = functools.partial(step, this, grad, *args, **kwargs)
            return self._guarded(lambda o: o.optimiser(this, grad, run), run)

        kind.step = stepping

    def _wrap_method(
        self,
        owner: Any,
        name: str,
        before: Callable[[Any], None] | None = None,
        after: Callable[..., None] | None = None,
    ) -> None:
        original = getattr(owner, name)

        @functools.wraps(original)
        def method(this: Any, *args: Any, **kwargs: Any) -> Any:
            if self.observer is None:
                return original(this, *args, **kwargs)
            if before is not None:
                before(this)
            result = original(this, *args, **kwargs)
            if after is not None:
                after(this, result)
            return result

        setattr(owner, name, method)


def _address(state: Any) -> int:
    return int(getattr(state, "value", state) or 0)


def missing_names(context: Any) -> list[str]:
    """What the hooks need and this Warp does not have."""
    import warp

    needed = [(context, n) for n in ("invoke", "Runtime", "Kernel", "Module", "set_module_options")]
    needed += [(warp.Tape, n) for n in ("__enter__", "__exit__", "record_launch", "record_func", "backward", "zero")]
    needed += [(warp.array, n) for n in ("numpy", "__init__")]
    return [f"{getattr(owner, '__name__', owner)}.{name}" for owner, name in needed if not hasattr(owner, name)]


class _AfterImport(importlib.abc.MetaPathFinder):
    """Calls something with a module right after the program has imported it; imports nothing itself."""

    def __init__(self, name: str, action: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._action = action

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Let the other finders find it, and put ourselves behind its loader."""
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute, action = spec.loader.exec_module, self._action

        def exec_module(module: ModuleType) -> None:
            execute(module)
            action(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

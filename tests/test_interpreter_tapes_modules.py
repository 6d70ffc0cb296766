"""Tapes, ways to launch, Warp modules, options, kernels as events see them."""

from __future__ import annotations

from interpreted import launches, of_kind, trace

from warplint.trace import events

KERNELS = """
import warp as wp

@wp.kernel
def step(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    b[wp.tid()] = a[wp.tid()]
"""


def names(kind: type[events.Event], text: str) -> list[events.Event]:
    """Events of a kind of a program that starts with one kernel."""
    return of_kind(trace(text, prelude=KERNELS), kind)


def test_what_a_tape_records() -> None:
    found = trace(
        """
        x, y = make(), make()
        tape = wp.Tape()
        with tape:
            wp.launch(step, dim=3, inputs=[x], outputs=[y])
            wp.launch(step, dim=3, inputs=[x, y], record_tape=False)
            command = wp.launch(step, dim=3, inputs=[x, y], record_cmd=True)
            command.launch()
            wp.launch_tiled(step, dim=[1], inputs=[x, y], block_dim=32)
        wp.launch(step, 3, [x], [y])
        wp.launch(step, dim=3, inputs=[x], outputs=[y], adjoint=True)
        """
    )
    rows = [(launch.tape, launch.active_tape, launch.adjoint) for launch in launches(found)]
    assert rows == [
        (0, 0, False),
        (None, 0, False),
        (None, 0, False),
        (0, 0, False),
        (None, None, False),
        (None, None, True),
    ]


def test_a_recorded_command_takes_new_arguments() -> None:
    found = trace(
        """
        tape = wp.Tape()
        x, y, z = make(), make(), make()
        command = wp.launch(step, dim=3, inputs=[x, y], record_cmd=True)
        command.launch()
        command.set_param_by_name("b", z)
        command.launch()
        """
    )
    first, second = launches(found)
    assert first.bindings[1].array != second.bindings[1].array


def test_every_spelling_of_a_tape() -> None:
    found = trace(
        """
        from contextlib import ExitStack, nullcontext
        x, loss = make(), make(1)
        tape = wp.Tape()
        tape.__enter__()
        wp.launch(total, 3, [x, loss])
        tape.__exit__(None, None, None)
        with wp.ScopedTimer("forward"), wp.Tape() as second:
            wp.launch(total, 3, [x, loss])
        with nullcontext(wp.Tape()) as third, third:
            wp.launch(total, 3, [x, loss])
        tape.backward(loss=loss)
        second.backward(grads={loss: x})
        third.backward()
        tape.zero()
        tape.reset()
        """
    )
    assert [launch.tape for launch in launches(found, "total")] == [0, 1, 2]
    backwards = of_kind(found, events.Backward)
    assert [(b.tape, b.loss is not None, len(b.seeds), b.complete) for b in backwards] == [
        (0, True, 0, True),
        (1, False, 1, True),
        (2, False, 0, True),
    ]
    assert [len(of_kind(found, kind)) for kind in (events.TapeZeroed, events.TapeReset)] == [1, 1]
    assert [event.tape for event in of_kind(found, events.TapeLeft)] == [0, 1, 2]


def test_an_optimiser_reads_gradients_and_ends_the_iteration() -> None:
    found = trace(
        """
        import warp.optim
        x, loss = make(), make(1)
        optimiser = warp.optim.Adam([x], lr=0.1)
        tape = wp.Tape()
        with tape:
            wp.launch(total, 3, [x, loss])
        tape.backward(loss)
        optimiser.step([x.grad])
        """
    )
    assert [read.how for read in of_kind(found, events.GradRead)] == ["optimiser"]
    (step,) = of_kind(found, events.OptimiserStep)
    assert [array.memory for array in step.params] == [of_kind(found, events.GradRead)[0].array.memory]


def test_library_sums_are_never_recorded() -> None:
    found = trace(
        """
        x, out = make(), make(1)
        with wp.Tape() as tape:
            wp.utils.array_sum(x, out=out)
            s = wp.utils.array_inner(x, x)
        """
    )
    (copy,) = of_kind(found, events.Copy)
    assert (copy.how, copy.tape, copy.active_tape) == ("array_sum", None, 0)
    assert {read.how for read in of_kind(found, events.HostRead)} == {"array_inner"}


def test_options_copied_at_creation_and_in_effect_at_launch() -> None:
    found = trace(
        """
        wp.config.max_unroll = 32
        wp.set_module_options({"enable_backward": False})
        x, y = wp.zeros(3), wp.zeros(3)
        wp.launch(step, dim=3, inputs=[x, y])
        """,
        prelude="import warp as wp\nwp.config.max_unroll = 8\n" + KERNELS,
    )
    (declared,) = of_kind(found, events.KernelDeclared)
    (launch,) = launches(found)
    assert (declared.kernel.max_unroll, declared.kernel.enable_backward) == (8, True)
    assert launch.kernel is not None
    assert (launch.kernel.max_unroll, launch.kernel.enable_backward) == (8, False)
    assert declared.kernel.key == launch.kernel.key
    order = [type(event).__name__ for event in found.events]
    assert order == [
        "ConfigSet",
        "ModuleCreated",
        "KernelDeclared",
        "ConfigSet",
        "ModuleOptionsSet",
        "ModuleLoaded",
        "Launch",
    ]


def test_configuration_through_every_alias() -> None:
    events_of = names(
        events.ConfigSet,
        """
        import warp
        import warp.config as settings
        from warp import config
        from functools import partial
        warp.config.mode = "debug"
        settings.verify_fp = True
        config.quiet = False
        setattr(wp.config, "max_unroll", 4)
        wp.config.kernel_cache_dir = input()
        """,
    )
    found = [(event.option, event.value) for event in events_of if isinstance(event, events.ConfigSet)]
    assert found == [
        ("mode", "debug"),
        ("verify_fp", True),
        ("quiet", False),
        ("max_unroll", 4),
        ("kernel_cache_dir", None),
    ]


def test_modules_are_loaded_at_the_first_launch_and_again_when_they_grow() -> None:
    found = trace(
        """
        x, y = wp.zeros(3), wp.zeros(3)
        wp.launch(step, 3, [x, y])
        wp.launch(step, 3, [x, y])

        @wp.kernel
        def late(a: wp.array(dtype=float)):
            a[0] = 1.0

        wp.launch(late, 3, [x])
        wp.set_module_options({"fast_math": True})
        wp.launch(step, 3, [x, y])
        wp.get_module("__main__").options["mode"] = "debug"
        wp.launch(step, 3, [x, y])
        wp.clear_kernel_cache()
        """,
        prelude=KERNELS,
    )
    loads = of_kind(found, events.ModuleLoaded)
    assert [load.module for load in loads] == ["__main__"] * 3
    direct = [event.direct for event in of_kind(found, events.ModuleOptionsSet)]
    assert direct == [False, True]
    assert len(of_kind(found, events.CacheCleared)) == 1


def test_kernels_know_their_module_and_whether_they_are_stable() -> None:
    found = trace(
        """
        home = wp.Module("home")

        @wp.kernel(module="unique")
        def lone(a: wp.array(dtype=float)):
            a[0] = 1.0

        @wp.kernel(module="named", enable_backward=False)
        def named(a: wp.array(dtype=float)):
            a[0] = 1.0

        @wp.kernel(module=home)
        def housed(a: wp.array(dtype=float)):
            a[0] = 1.0

        class Holder:
            @wp.kernel
            def inside(a: wp.array(dtype=float)):
                a[0] = 1.0

        def factory(n):
            @wp.kernel(module="unique")
            def made(a: wp.array(dtype=float)):
                a[0] = wp.float32(n)
            return made

        factory(1), factory(2)
        for _ in range(2):
            @wp.kernel
            def looped(a: wp.array(dtype=float)):
                a[0] = 1.0
        """,
        prelude="import warp as wp\n",
    )
    kernels = [event.kernel for event in of_kind(found, events.KernelDeclared)]
    by_name = {kernel.name: kernel for kernel in kernels}
    assert (by_name["lone"].unique, by_name["lone"].stable) == (True, True)
    assert (by_name["named"].module, by_name["named"].enable_backward) == ("named", False)
    assert by_name["housed"].module == "home"
    assert (by_name["inside"].module, by_name["inside"].stable) == ("__main__", True)
    made = [kernel for kernel in kernels if kernel.name == "made"]
    assert len({kernel.module for kernel in made}) == len({kernel.key for kernel in made}) == 2
    assert all(kernel.captures and kernel.stable is False for kernel in made)
    assert by_name["looped"].stable is False
    assert by_name["lone"].decorator.line == by_name["lone"].span.line - 1


def test_functions_and_adjoints_reach_the_analysis_of_kernels() -> None:
    from interpreted import run

    interpretation = run(
        """
        DT = 0.5
        vec5 = wp.types.vector(length=5, dtype=float)

        @wp.func
        def spring(x: float):
            return DT * wp.sin(x)

        def factory(k):
            @wp.kernel
            def move(a: wp.array(dtype=float), b: wp.array(dtype=float)):
                b[wp.tid()] = k * spring(a[wp.tid()])
            return move

        x, y = make(), make()
        with wp.Tape() as tape:
            wp.launch(factory(2.0), 3, [x], [y])
        """
    )[0]
    (launch,) = launches(interpretation.trace, "move")
    assert launch.kernel is not None
    summary = interpretation.summary_of(launch.kernel)
    assert summary is not None
    assert summary.complete
    assert {need.read.path for store in summary.stores for need in store.needs} == {"a"}

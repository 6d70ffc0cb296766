"""Where the interpreter would go astray in real code: devices, types, raises, meshes, loops that only simulate."""

from __future__ import annotations

import pytest
from interpreted import launches, run, trace

from warplint.trace import events


@pytest.mark.parametrize(
    "guard",
    [
        "x.device != model_device",
        "x.dtype not in (wp.float32, wp.float64)",
        "x.dtype != wp.float32",
        "(x.shape[0], n) != (3, m)",
    ],
)
def test_a_guard_that_is_passed_does_not_end_the_function(guard: str) -> None:
    found = trace(
        f"""
        model_device = wp.get_device()
        n, m = len(open("a").read()), len(open("b").read())

        def check(x):
            if {guard}:
                raise ValueError("not so")
            return x

        x = wp.zeros(3, dtype=float, requires_grad=True)
        y = check(make())
        tape = wp.Tape()
        with tape:
            wp.launch(step, dim=3, inputs=[check(x)], outputs=[y])
        """
    )
    assert [event.complete for event in launches(found, "step")] == [True]


def test_a_raise_that_nobody_catches_is_taken_back() -> None:
    found = trace(
        """
        class Solver:
            def __init__(self, size):
                if size != 3:
                    raise ValueError(size)
                self.x = make()

        solver = Solver(4)
        wp.launch(step, dim=3, inputs=[solver.x], outputs=[make()])
        """
    )
    assert [event.complete for event in launches(found, "step")] == [True]


def test_a_function_that_ends_in_a_raise_has_an_unknown_result() -> None:
    found = trace(
        """
        def make_input(kind):
            if kind == "random":
                return make()
            raise ValueError(kind)

        wp.launch(step, dim=3, inputs=[make_input("other")], outputs=[make()])
        """
    )
    assert [event.complete for event in launches(found, "step")] == [False]


def test_an_exception_that_a_test_expects_ends_what_it_tests() -> None:
    found = trace(
        """
        import pytest

        def refuse(x):
            if x is None:
                raise ValueError("nothing")
            return x

        with pytest.raises(ValueError):
            refuse(None)
            wp.launch(step, dim=3, inputs=[make()], outputs=[make()])
        wp.launch(total, dim=3, inputs=[make()], outputs=[make(1)])
        """
    )
    assert [event.kernel.name for event in found.events if isinstance(event, events.Launch) and event.kernel] == [
        "total"
    ]


def test_a_mesh_gives_its_arrays_back_and_they_escape() -> None:
    found = trace(
        """
        points = make()
        mesh = wp.Mesh(points=points, indices=wp.zeros(3, dtype=int))
        wp.launch(step, dim=3, inputs=[mesh.points], outputs=[make()])
        """
    )
    launch = launches(found, "step")[0]
    bound = next(binding.array for binding in launch.bindings if binding.path == "a")
    assert launch.complete
    assert bound is not None
    assert found.memories[bound.memory].name == "points"
    assert any(isinstance(event, events.Opaque) and event.arrays for event in found.events)


def test_a_long_loop_over_worked_out_numbers_that_only_simulates_is_cut_short() -> None:
    found = trace(
        """
        lengths = [4 for _ in range(100)]
        x, y = make(), make()
        for segment, steps in enumerate(lengths):
            for _ in range(steps):
                wp.launch(step, dim=3, inputs=[x], outputs=[y])
        with wp.Tape() as tape:
            wp.launch(step, dim=3, inputs=[x], outputs=[y])
        """
    )
    assert len(launches(found, "step")) < 20


def test_what_is_found_is_the_same_at_each_run() -> None:
    text = """
    states = [make() for _ in range(400)]
    with wp.Tape() as tape:
        for i in range(399):
            for j in range(60):
                wp.launch(step, dim=3, inputs=[states[i]], outputs=[states[i + 1]])
    """
    first, second = (run(text)[0] for _ in range(2))
    assert first.trace.cut
    assert first.trace.events == second.trace.events


def test_both_halves_of_an_autograd_function_share_their_context() -> None:
    runs = run(
        """
        import torch

        class Sine(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.x = wp.from_torch(x, requires_grad=True)
                ctx.y = make()
                ctx.tape = wp.Tape()
                with ctx.tape:
                    wp.launch(step, dim=3, inputs=[ctx.x], outputs=[ctx.y])
                return wp.to_torch(ctx.y)

            @staticmethod
            def backward(ctx, gradient):
                ctx.y.grad = wp.from_torch(gradient)
                ctx.tape.backward()
                return wp.to_torch(ctx.x.grad)
        """
    )
    kinds = [type(event) for each in runs for event in each.trace.events]
    assert kinds.count(events.Backward) == 1
    assert kinds.index(events.Launch) < kinds.index(events.Backward)
    (tape,) = {event.tape for each in runs for event in each.trace.events if isinstance(event, events.Backward)}
    assert tape == next(e.tape for each in runs for e in each.trace.events if isinstance(e, events.Launch))

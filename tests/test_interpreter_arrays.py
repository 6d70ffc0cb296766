"""Which arrays are one memory, which carry a gradient, and what is read and written."""

from __future__ import annotations

import pytest
from interpreted import launches, memories, of_kind, pairs, trace

from warplint.trace import events
from warplint.trace.events import Alias


def array_of(source: str, name: str = "x") -> events.Memory:
    """The memory that ``name`` was bound to."""
    found = [memory for memory in trace(source).memories.values() if memory.name == name]
    assert len(found) == 1
    return found[0]


TAPED = """
    with wp.Tape() as tape:
        wp.launch(step, dim=3, inputs=[x], outputs=[y])
"""


@pytest.mark.parametrize(
    ("allocation", "flag"),
    [
        ("wp.zeros(3, dtype=float)", False),
        ("wp.zeros(3, dtype=float, requires_grad=True)", True),
        ("wp.zeros(3, float, None, True)", True),
        ("wp.empty(3, requires_grad=True)", True),
        ("wp.full(3, 1.0, dtype=float)", False),
        ("wp.ones(3, dtype=float)", False),
        ("wp.array([1.0, 2.0], dtype=float, requires_grad=True)", True),
        ("wp.array([1.0, 2.0], dtype=float)", False),
        ("wp.from_numpy(np.ones(3))", False),
        ("wp.from_numpy(np.ones(3), dtype=float, requires_grad=True)", True),
        ("wp.zeros_like(make())", True),
        ("wp.zeros_like(wp.zeros(3))", False),
        ("wp.ones_like(make(), requires_grad=False)", False),
        ("wp.empty_like(wp.zeros(3), requires_grad=True)", True),
        ("wp.full_like(make(), 2.0)", True),
        ("wp.clone(make())", True),
        ("wp.clone(make(), requires_grad=False)", False),
        ("wp.zeros(3, requires_grad=wp.get_preferred_device().is_cuda)", None),
    ],
)
def test_requires_grad_follows_the_allocator(allocation: str, flag: bool | None) -> None:
    source = f"x = {allocation}\ntape = wp.Tape()"
    made = [memory for memory in trace(source).memories.values() if memory.name == "x"]
    assert [memory.requires_grad for memory in made] == [flag]


def test_a_flag_set_later_counts() -> None:
    assert array_of("x = wp.zeros(3)\nx.requires_grad = True\ntape = wp.Tape()").requires_grad is True


def test_shape_dtype_and_contents_of_literals() -> None:
    memory = array_of("x = wp.array([(1.0, 2.0, 3.0), (4.0, 5.0, 6.0)], dtype=wp.vec3)\ntape = wp.Tape()")
    assert (memory.shape, memory.dtype, memory.contents) == ((2,), "vec3", (1.0, 2.0, 3.0, 4.0, 5.0, 6.0))
    assert array_of("x = wp.zeros((2, 3), dtype=int)\ntape = wp.Tape()").contents == (0.0,) * 6


def test_allocation_stack_names_the_helper_and_its_caller() -> None:
    memory = array_of("x = make()\ntape = wp.Tape()")
    assert [frame.function for frame in memory.allocated] == ["<module>", "make"]


def test_views_share_memory_and_know_their_rows() -> None:
    found = trace(
        """
        x = wp.zeros((4, 3), dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(step, dim=3, inputs=[x[0]], outputs=[x[-1]])
            wp.launch(step, dim=3, inputs=[x[1:3]], outputs=[x[:, 1]])
            wp.launch(step, dim=3, inputs=[x.flatten()], outputs=[x.reshape((2, 6))])
        """
    )
    first, second, third = launches(found)
    arrays = [binding.array for launch in (first, second, third) for binding in launch.bindings]
    assert len({array.memory for array in arrays if array is not None}) == 1
    extents = [(array.extent.start, array.extent.stop, array.extent.known) for array in arrays if array is not None]
    assert extents[:3] == [(0, 1, True), (3, 4, True), (1, 3, True)]
    assert extents[3][2] is False
    assert extents[4] == extents[5] == (None, None, True)
    assert arrays[0] is not None
    assert arrays[0].alias is Alias.VIEW


def test_view_of_a_view_adds_the_offsets() -> None:
    found = trace(
        """
        x = wp.zeros(8, dtype=float)
        tail = x[2:]
        with wp.Tape() as tape:
            wp.launch(step, dim=3, inputs=[tail[1:4]], outputs=[tail])
        """
    )
    inner, outer = (binding.array for binding in launches(found)[0].bindings)
    assert inner is not None
    assert outer is not None
    assert (inner.extent.start, inner.extent.stop) == (3, 6)
    assert (outer.extent.start, outer.extent.stop) == (2, 8)


def test_pointer_alias_shares_data_but_has_its_own_flag() -> None:
    found = trace(
        """
        x = make()
        y = wp.array(ptr=x.ptr, shape=(3,), dtype=float)
        with wp.Tape() as tape:
            wp.launch(step, dim=3, inputs=[x], outputs=[y])
        """
    )
    x, y = (binding.array for binding in launches(found)[0].bindings)
    assert x is not None
    assert y is not None
    assert x.memory == y.memory
    assert (x.requires_grad, y.requires_grad, y.alias) == (True, False, Alias.POINTER)


def test_store_into_numpy_backing_is_a_write() -> None:
    found = trace(
        """
        store = np.array([1.0, 2.0, 3.0])
        x = wp.array(store, dtype=float, device="cpu", copy=False)
        y = make()
        with wp.Tape() as tape:
            wp.launch(step, dim=3, inputs=[x], outputs=[y])
            store[:] = [0.5, 0.25, 0.125]
            store *= 2.0
        """
    )
    writes = of_kind(found, events.HostWrite)
    assert [write.how for write in writes] == ["numpy-store", "numpy-store"]
    assert {write.dest.memory for write in writes} == {memories(launches(found)[0])[0]}
    assert all(write.dest.alias is Alias.NUMPY for write in writes)


def test_a_copied_numpy_array_shares_nothing() -> None:
    found = trace(
        """
        store = np.array([1.0, 2.0, 3.0])
        x = wp.array(store, dtype=float)
        tape = wp.Tape()
        store[:] = 0.0
        view = x.numpy().copy()
        view[0] = 1.0
        """
    )
    assert of_kind(found, events.HostWrite) == []


def test_writes_through_numpy_of_an_array() -> None:
    found = trace("x = make()\ntape = wp.Tape()\nview = x.numpy()\nview[1] = 3.0")
    (write,) = of_kind(found, events.HostWrite)
    assert (write.how, write.dest.alias) == ("numpy-store", Alias.NUMPY)


def test_host_writes_and_copies() -> None:
    found = trace(
        """
        x, y, z = make(), make(), wp.zeros(3)
        with wp.Tape() as tape:
            x.zero_()
            x.fill_(2.0)
            x.assign([1.0, 2.0, 3.0])
            x.assign(y)
            wp.copy(x, y)
            wp.copy(dest=z, src=y)
            w = wp.clone(x)
        """
    )
    assert [write.how for write in of_kind(found, events.HostWrite)] == ["zero_", "fill_", "assign"]
    copies = of_kind(found, events.Copy)
    assert [(copy.how, copy.tape) for copy in copies] == [("assign", 0), ("copy", 0), ("copy", None), ("clone", 0)]
    assert copies[2].active_tape == 0


def test_data_read_back_marks_what_is_made_from_it() -> None:
    found = trace(
        """
        x, y = make(), make()
        z = wp.array(x.numpy() * 2.0, dtype=float, requires_grad=True)
        s = float(x.numpy()[0]) + 1.0
        with wp.Tape() as tape:
            wp.launch(step, dim=3, inputs=[z], outputs=[y])

        @wp.kernel
        def scale(s: float, y: wp.array(dtype=float)):
            y[wp.tid()] = s

        wp.launch(scale, dim=3, inputs=[s, y])
        """
    )
    (write,) = of_kind(found, events.HostWrite)
    source = next(memory.id for memory in found.memories.values() if memory.name == "x")
    assert write.from_host == {source}
    assert launches(found, "scale")[0].bindings[0].from_host == {source}


def test_wp_array_of_a_warp_array_is_a_copy() -> None:
    found = trace("x = make()\ny = wp.array(x, dtype=float, requires_grad=True)\ntape = wp.Tape()")
    (copy,) = of_kind(found, events.Copy)
    assert (copy.how, copy.tape) == ("array", None)
    assert next(memory.copied_from for memory in found.memories.values() if memory.name == "y") == copy.source.memory


def test_gradients_read_and_written() -> None:
    found = trace(
        """
        x, y = make(), make(1)
        tape = wp.Tape()
        with tape:
            wp.launch(total, dim=3, inputs=[x, y])
        tape.backward(y)
        x.grad.zero_()
        y.grad.fill_(1.0)
        print(x.grad)
        g = x.grad.numpy()
        h = tape.gradients[x].numpy()
        assert x.grad.numpy()[0] == 0.0
        """
    )
    assert [(write.clears, write.array.gradient) for write in of_kind(found, events.GradWrite)] == [
        (True, True),
        (False, True),
    ]
    assert [read.how for read in of_kind(found, events.GradRead)] == ["print", "numpy", "numpy", "assert"]


def test_a_launch_on_a_gradient_is_no_launch_on_the_data() -> None:
    found = trace(
        """
        @wp.kernel
        def descend(w: wp.array(dtype=float), g: wp.array(dtype=float)):
            w[0] = w[0] - 0.1 * g[0]

        @wp.kernel
        def clear(g: wp.array(dtype=float)):
            g[wp.tid()] = 0.0

        x = make()
        tape = wp.Tape()
        wp.launch(descend, dim=1, inputs=[x, x.grad])
        wp.launch(clear, dim=3, inputs=[x.grad])
        """
    )
    assert [read.how for read in of_kind(found, events.GradRead)] == ["launch"]
    assert len(of_kind(found, events.GradWrite)) == 1
    assert launches(found, "descend")[0].bindings[1].array is not None


def test_fresh_arrays_in_a_loop_are_different_memories() -> None:
    found = trace(
        """
        x = make()
        with wp.Tape() as tape:
            for _ in range(3):
                y = wp.zeros_like(x)
                wp.launch(step, dim=3, inputs=[x], outputs=[y])
                x = y
        """
    )
    assert pairs(found) == [(0, 1), (1, 2), (2, 3)]


def test_an_array_is_true_unless_it_is_empty() -> None:
    found = trace(
        """
        x, empty = make(), wp.zeros(0, dtype=float)
        tape = wp.Tape()
        with tape:
            if x and not empty:
                wp.launch(step, dim=3, inputs=[x], outputs=[make()])
        """
    )
    assert len(launches(found)) == 1


def test_foreign_arrays_are_marked() -> None:
    found = trace("import torch\nx = wp.from_torch(torch.zeros(3))\ntape = wp.Tape()\nwp.to_torch(x)")
    (memory,) = found.memories.values()
    assert (memory.outside, memory.requires_grad, memory.made_by) == (True, None, "from_torch")
    assert [event.why for event in of_kind(found, events.Opaque)] == ["to_torch"]


@pytest.mark.parametrize(
    ("decorator", "returns", "gradient"),
    [
        ("@wp.func", " -> float", False),
        ("@wp.func", " -> wp.float32", True),
        ("@wp.func", "", True),
        ("", " -> float", True),
    ],
)
def test_map_of_a_function_that_declares_a_python_float_has_no_gradient(
    decorator: str, returns: str, gradient: bool
) -> None:
    found = trace(
        f"""
        {decorator}
        def scaled(a: float, b: float){returns}:
            return a * b

        x, y = make(), wp.zeros(3, dtype=float)
        with wp.Tape() as tape:
            z = wp.map(scaled, y, x)
        """
    )
    assert [memory.requires_grad for memory in found.memories.values() if memory.made_by == "map"] == [gradient]


def test_map_and_operators_are_launches() -> None:
    found = run_map = trace(
        """
        x, y = make(), make()
        with wp.Tape() as tape:
            z = x * 2.0 + y
            w = wp.map(wp.sin, z)
            v = wp.map(lambda a, b: a * b, z, w)
            z += x
        """
    )
    taped = [event for event in of_kind(run_map, events.Launch) if event.tape == 0]
    assert [event.kernel.name for event in taped if event.kernel] == [
        "map_mult",
        "map_add",
        "map_func",
        "map_func",
        "map_add",
    ]
    assert all(event.complete for event in taped)
    assert memories(taped[-1])[0] == memories(taped[-1])[2] == memories(taped[1])[2]
    assert [memory.requires_grad for memory in found.memories.values() if memory.made_by == "map"] == [True] * 4

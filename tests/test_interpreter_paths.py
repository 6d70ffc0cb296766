"""Loops, unknown counts and conditions, roots and budgets."""

from __future__ import annotations

import pytest
from interpreted import launches, of_kind, pairs, run, trace

from warplint.trace import events
from warplint.trace.settings import TraceSettings


def test_known_counts_run_exactly() -> None:
    found = trace(
        """
        s = [make() for _ in range(37)]
        with wp.Tape() as tape:
            for frame in range(6):
                for sub in range(6):
                    t = frame * 6 + sub
                    wp.launch(step, dim=3, inputs=[s[t]], outputs=[s[t + 1]])
        """
    )
    assert pairs(found) == [(t, t + 1) for t in range(36)]


@pytest.mark.parametrize(
    ("count", "read", "written"),
    [
        ("n + 1", "s[t]", "s[t + 1]"),
        ("1 + n", "s[t]", "s[t + 1]"),
        ("n", "s[t - 1]", "s[t]"),
    ],
)
def test_unknown_counts_keep_their_relation(count: str, read: str, written: str) -> None:
    found = trace(
        f"""
        import sys
        n = int(open("n.txt").read())
        s = [make() for _ in range({count})]
        with wp.Tape() as tape:
            for t in range({"1, n" if "- 1" in read else "n"}):
                wp.launch(step, dim=3, inputs=[{read}], outputs=[{written}])
            wp.launch(total, dim=3, inputs=[s[{"n" if "1" in count else "n - 1"}], make(1)])
        """
    )
    rows = pairs(found)
    assert rows == [(t, t + 1) for t in range(len(rows))]
    assert len(rows) >= 2
    assert all(launch.complete for launch in of_kind(found, events.Launch))
    last = launches(found)[-1].bindings[1].array
    assert launches(found, "total")[0].bindings[0].array.memory == last.memory  # type: ignore[union-attr]


def test_an_unknown_count_goes_round_a_ring_in_sight() -> None:
    found = trace(
        """
        n = int(open("n.txt").read())
        ring = [make() for _ in range(4)]
        with wp.Tape() as tape:
            for t in range(n):
                wp.launch(step, dim=3, inputs=[ring[t % 4]], outputs=[ring[(t + 1) % 4]])
        """
    )
    assert pairs(found) == [(0, 1), (1, 2), (2, 3), (3, 0), (0, 1)]


def test_while_counts_up_to_an_unknown_bound() -> None:
    found = trace(
        """
        n = int(open("n.txt").read())
        s = [make() for _ in range(n + 1)]
        t = 0
        with wp.Tape() as tape:
            while t < n:
                wp.launch(step, dim=3, inputs=[s[t]], outputs=[s[t + 1]])
                t += 1
        """
    )
    assert pairs(found) == [(0, 1), (1, 2), (2, 3)]


def test_epochs_stop_after_three_rounds_but_their_time_loops_do_not() -> None:
    found = trace(
        """
        x, y, loss = make(), make(), make(1)
        for epoch in range(100):
            tape = wp.Tape()
            with tape:
                for t in range(20):
                    wp.launch(step, dim=3, inputs=[x], outputs=[y])
                wp.launch(total, dim=3, inputs=[y, loss])
            tape.backward(loss)
            tape.zero()
        """
    )
    assert len(of_kind(found, events.Backward)) == 3
    assert len(launches(found)) == 60


def test_a_loop_over_recorded_tapes_walks_all_of_them() -> None:
    found = trace(
        """
        states = [make() for _ in range(8)]
        losses = [make(1) for _ in range(7)]
        tapes = []
        for t in range(7):
            with wp.Tape() as tape:
                wp.launch(step, dim=3, inputs=[states[t]], outputs=[states[t + 1]])
                wp.launch(total, dim=3, inputs=[states[t + 1], losses[t]])
            tapes.append(tape)
        for tape, loss in reversed(list(zip(tapes, losses))):
            tape.backward(loss)
        """
    )
    walked = [event.tape for event in of_kind(found, events.Backward)]
    assert len(set(walked)) == len(walked) == 7


def test_simulation_without_a_tape_is_cut_short() -> None:
    found = trace(
        """
        tape = wp.Tape()
        x, y = make(), make()
        for frame in range(300):
            wp.launch(step, dim=3, inputs=[x], outputs=[y])
            x, y = y, x
        """
    )
    assert len(launches(found)) == 3


def test_both_ways_of_an_unknown_condition() -> None:
    interpretations = run(
        """
        flag = bool(open("flag.txt").read())
        x, y, z = make(), make(), make()
        with wp.Tape() as tape:
            if flag:
                wp.launch(step, dim=3, inputs=[x], outputs=[y])
            else:
                wp.launch(step, dim=3, inputs=[x], outputs=[z])
            if not flag:
                wp.launch(total, dim=3, inputs=[z, make(1)])
            else:
                wp.launch(total, dim=3, inputs=[y, make(1)])
        """
    )
    assert len(interpretations) == 2
    written = []
    for interpretation in interpretations:
        (first,) = launches(interpretation.trace)
        (second,) = launches(interpretation.trace, "total")
        assert first.bindings[1].array.memory == second.bindings[0].array.memory  # type: ignore[union-attr]
        written.append(first.bindings[1].array.memory)  # type: ignore[union-attr]
    assert written[0] != written[1]


def test_known_conditions_need_one_path() -> None:
    assert len(run("n = 3\nx, y = make(), make()\nwith wp.Tape() as t:\n    wp.launch(step, 3, [x], [y])")) == 1


def test_arms_that_end_the_run_or_leave_the_loop_are_not_followed() -> None:
    for interpretation in run(
        """
        import sys
        x, y = make(), make()
        value = float(open("v.txt").read())
        if value < 0:
            raise ValueError
        if value > 9:
            sys.exit(1)
        with wp.Tape() as tape:
            for _ in range(4):
                if value < 1:
                    break
                wp.launch(step, dim=3, inputs=[x], outputs=[y])
        """
    ):
        assert len(launches(interpretation.trace)) == 4


def test_a_replayed_graph_is_not_followed_where_the_launches_can_be() -> None:
    for interpretation in run(
        """
        x, y = make(), make()
        graph = wp.ScopedCapture().graph
        with wp.Tape() as tape:
            if graph:
                wp.capture_launch(graph)
            else:
                wp.launch(step, dim=3, inputs=[x], outputs=[y])
        """
    ):
        assert len(launches(interpretation.trace)) == 1


def test_functions_that_open_a_tape_are_roots_unless_entered() -> None:
    interpretations = run(
        """
        def entered():
            with wp.Tape() as tape:
                wp.launch(step, dim=3, inputs=[make()], outputs=[make()])
        def with_arguments(x, n=2):
            with wp.Tape() as tape:
                for _ in range(n):
                    wp.launch(step, dim=3, inputs=[x], outputs=[make()])
        class Model:
            def __init__(self, size):
                self.x = make(size)
            def loss(self):
                tape = wp.Tape()
                with tape:
                    wp.launch(step, dim=3, inputs=[self.x], outputs=[make()])
        if __name__ == "__main__":
            entered()
        """
    )
    counts = [[(launch.complete, launch.stack[1].function) for launch in launches(i.trace)] for i in interpretations]
    assert counts == [[(True, "entered")], [(False, "with_arguments")] * 2, [(True, "loss")]]


def test_one_root_leaves_nothing_to_the_next() -> None:
    interpretations = run(
        """
        cache = []
        flags = {"on": False}
        shared = make()
        def first():
            cache.append(make())
            flags["on"] = True
            shared.requires_grad = False
            wp.config.max_unroll = 4
            with wp.Tape() as tape:
                wp.launch(step, dim=3, inputs=[shared], outputs=[cache[0]])
        def second():
            assert not flags["on"]
            with wp.Tape() as tape:
                for _ in range(1 + len(cache)):
                    wp.launch(step, dim=3, inputs=[shared], outputs=[make()])
        """
    )
    last = interpretations[-1].trace
    assert len(launches(last)) == 1
    assert last.memories[launches(last)[0].bindings[0].array.memory].requires_grad is True  # type: ignore[union-attr]
    assert of_kind(last, events.ConfigSet) == []


def test_a_tape_that_comes_from_elsewhere_is_a_tape() -> None:
    interpretations = run(
        """
        def forward(tape, x):
            with tape:
                wp.launch(step, dim=3, inputs=[make()], outputs=[make()])
            tape.backward(grads={})
        """
    )
    (launch,) = launches(interpretations[-1].trace)
    assert launch.tape is not None


def test_subclasses_of_tape_record() -> None:
    found = trace(
        """
        class Recorder(wp.Tape):
            def run(self, x, y):
                with self:
                    wp.launch(step, dim=3, inputs=[x], outputs=[y])
                self.backward(y)
        Recorder().run(make(), make(1))
        """
    )
    assert launches(found)[0].tape == 0
    assert of_kind(found, events.Backward)[0].tape == 0


def test_a_spent_budget_cuts_the_trace() -> None:
    found = trace(
        """
        x, y = make(), make()
        with wp.Tape() as tape:
            for _ in range(500):
                wp.launch(step, dim=3, inputs=[x], outputs=[y])
        """,
        settings=TraceSettings(steps=200, steps_before_tape=200),
    )
    assert found.cut
    assert launches(found)


def test_launches_have_a_budget_of_their_own() -> None:
    found = trace(
        "x, y = make(), make()\nwith wp.Tape() as t:\n    for _ in range(99):\n        wp.launch(step, 3, [x], [y])",
        settings=TraceSettings(launches=50),
    )
    assert found.cut
    assert len(launches(found)) == 50


def test_endless_recursion_ends() -> None:
    found = trace(
        """
        def again(n):
            return again(n + 1)
        again(0)
        x, y = make(), make()
        with wp.Tape() as tape:
            wp.launch(step, dim=3, inputs=[x], outputs=[y])
        """
    )
    assert len(launches(found)) == 1


def test_what_calls_the_function_with_the_tape_says_its_arguments() -> None:
    traces = run(
        """
        def follow(rounds=1):
            x, y = make(), make()
            with wp.Tape() as tape:
                for _ in range(rounds):
                    wp.launch(step, dim=3, inputs=[x], outputs=[y])
        def helper():
            follow(4)
        def test_short():
            follow()
        def test_long():
            helper()
        """
    )
    assert sorted(len(launches(found.trace)) for found in traces if launches(found.trace)) == [1, 4]

"""Python's constructs: what reaches the launches through names, containers, objects, functions and modules."""

from __future__ import annotations

import textwrap

import pytest
from interpreted import launches, of_kind, pairs, run, trace

from warplint.trace import events

PING_PONG = [(0, 1), (1, 0), (0, 1), (1, 0)]
CHAIN = [(0, 1), (1, 2), (2, 3), (3, 4)]


@pytest.mark.parametrize(
    ("setup", "body", "expected", "how"),
    [
        ("a, b = make(), make()", "launch(a, b)\na, b = b, a", PING_PONG, "swap"),
        ("a, b = make(), make()", "launch(a, b)\nt = a\na = b\nb = t", PING_PONG, "rebind"),
        ("s = [make(), make()]", "launch(s[k % 2], s[(k + 1) % 2])", PING_PONG, "index"),
        ("s = [make(), make()]", "launch(s[0], s[1])\ns[0], s[1] = s[1], s[0]", PING_PONG, "swap"),
        ("s = [make(), make()]", "launch(*s)\ns = s[1:] + s[:1]", PING_PONG, "rotate"),
        ("s = [make(), make()]", "launch(*s)\ns.append(s.pop(0))", PING_PONG, "rotate"),
        ("s = [make(), make()]", "launch(s[0], s[1])\ns.reverse()", PING_PONG, "rotate"),
        (
            "d = {'a': make(), 'b': make()}",
            "launch(d['a'], d['b'])\nd['a'], d['b'] = d['b'], d['a']",
            PING_PONG,
            "swap",
        ),
        ("s = deque([make(), make()])", "launch(s[0], s[1])\ns.rotate(1)", PING_PONG, "rotate"),
        ("o = Pair(make(), make())", "launch(o.a, o.b)\no.a, o.b = o.b, o.a", PING_PONG, "swap"),
        (
            "o = Pair(make(), make())",
            "launch(o.a, o.b)\nold = getattr(o, 'a')\nsetattr(o, 'a', getattr(o, 'b'))\nsetattr(o, 'b', old)",
            PING_PONG,
            "rebind",
        ),
        ("a, b = make(), make()", "launch(a, b)\na, b = other(a, b)", PING_PONG, "rebind"),
        ("s = [make() for _ in range(5)]", "launch(s[k], s[k + 1])", CHAIN, None),
        ("a = make()", "b = wp.zeros_like(a)\nlaunch(a, b)\na = b", CHAIN, "rebind"),
        ("a = make()", "b = wp.clone(a)\nlaunch(a, b)\na = b", CHAIN, "rebind"),
    ],
)
def test_buffers_in_turn(setup: str, body: str, expected: list[tuple[int, int]], how: str | None) -> None:
    program = f"""
from collections import deque

class Pair:
    def __init__(self, a, b):
        self.a = a
        self.b = b

def launch(a, b):
    wp.launch(step, dim=3, inputs=[a], outputs=[b])

def other(a, b):
    return b, a

{setup}
with wp.Tape() as tape:
    for k in range(4):
{textwrap.indent(body, " " * 8)}
"""
    found = trace(program)
    assert pairs(found) == expected
    last = launches(found)[-1].bindings[0].array
    assert last is not None
    assert (last.moved.how if last.moved is not None else None) == how


@pytest.mark.parametrize("counted", ["zip(range(4), turns)", "zip(turns, range(4))"])
def test_an_endless_iterator_gives_as_many_items_as_its_neighbour(counted: str) -> None:
    found = trace(
        f"""
        import itertools

        a, b = make(), make()
        turns = itertools.cycle([(a, b), (b, a)])
        with wp.Tape() as tape:
            for pair in {counted}:
                source, target = pair[1] if isinstance(pair[0], int) else pair[0]
                wp.launch(step, dim=3, inputs=[source], outputs=[target])
        """
    )
    assert pairs(found) == PING_PONG


def test_moved_names_the_statement_between_two_launches() -> None:
    found = trace(
        """
        a, b = make(), make()
        with wp.Tape() as tape:
            for _ in range(2):
                wp.launch(step, dim=3, inputs=[a], outputs=[b])
                a, b = b, a
        """
    )
    first, second = launches(found)
    moved = second.bindings[0].array.moved  # type: ignore[union-attr]
    assert moved is not None
    assert first.seq < moved.seq < second.seq
    assert moved.stack[-1].span.line == second.span.line + 1


def test_a_swap_outside_loop_and_tape_leaves_no_mark() -> None:
    found = trace(
        """
        a, b = make(), make()
        a, b = b, a
        with wp.Tape() as tape:
            wp.launch(step, dim=3, inputs=[a], outputs=[b])
        """
    )
    assert launches(found)[0].bindings[0].array.moved is None  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "text",
    [
        # a class with helpers, properties and inheritance
        """
        class Base:
            scale = 2
            def __init__(self, n):
                self.n = n
                self.buffers = [make() for _ in range(n)]
            @property
            def first(self):
                return self.buffers[0]
            @staticmethod
            def run(a, b):
                wp.launch(step, dim=3, inputs=[a], outputs=[b])
        class Child(Base):
            def __init__(self):
                super().__init__(2)
            @classmethod
            def create(cls):
                return cls()
            def go(self):
                self.run(self.first, self.buffers[-1])
        with wp.Tape() as tape:
            Child.create().go()
        """,
        # dataclasses with factories
        """
        from dataclasses import dataclass, field
        @dataclass
        class State:
            x: wp.array = field(default_factory=lambda: make())
            y: wp.array = None
            def __post_init__(self):
                self.y = make() if self.y is None else self.y
        s = State()
        with wp.Tape() as tape:
            wp.launch(step, dim=3, inputs=[s.x], outputs=[s.y])
        """,
        # named tuples and star arguments
        """
        from typing import NamedTuple
        class State(NamedTuple):
            x: wp.array
            y: wp.array
        s = State(make(), y=make())
        args = [*s]
        with wp.Tape() as tape:
            wp.launch(step, 3, [args[0]], [s.y])
        """,
        # closures, defaults, keyword arguments, partial
        """
        from functools import partial
        def outer(x):
            y = make()
            def inner(*, a=x, **rest):
                wp.launch(step, dim=3, inputs=[a], outputs=[rest["b"]])
            return partial(inner, b=y)
        with wp.Tape() as tape:
            outer(make())()
        """,
        # generators: in a for loop and as a context manager
        """
        from contextlib import contextmanager
        def pairs():
            x = make()
            for y in [make()]:
                yield x, y
        @contextmanager
        def taped():
            tape = wp.Tape()
            with tape:
                yield tape
        with taped() as t:
            for x, y in pairs():
                wp.launch(step, dim=3, inputs=[x], outputs=[y])
        """,
        # dict of kernels, lambda, conditional expression
        """
        kernels = {"step": step, "total": total}
        pick = lambda name: kernels[name] if name in kernels else None
        with wp.Tape() as tape:
            wp.launch(kernel=pick("step"), dim=3, inputs=[make()], outputs=[make()])
        """,
        # a decorator of the project, try/finally, early return
        """
        def logged(f):
            def wrapper(*args, **kwargs):
                try:
                    return f(*args, **kwargs)
                finally:
                    print("done")
            return wrapper
        @logged
        def go(x, y):
            if x is None:
                return
            wp.launch(step, dim=x.shape[0], inputs=[x], outputs=[y])
        with wp.Tape() as tape:
            go(None, None)
            go(make(), make())
        """,
        # enumerate, zip, reversed, sorted, comprehension with condition, dict methods
        """
        xs = {k: make() for k in ("b", "a", "c") if k != "c"}
        order = [xs[k] for k in sorted(xs)]
        with wp.Tape() as tape:
            for i, (x, y) in enumerate(zip(order, reversed(order))):
                if i == 0:
                    wp.launch(step, dim=3, inputs=[x], outputs=[y])
        """,
        # argparse and a main guard
        """
        import argparse
        def main():
            parser = argparse.ArgumentParser()
            parser.add_argument("--steps", type=int, default=1)
            parser.add_argument("--verbose", action="store_true")
            args = parser.parse_args()
            x, y = make(), make()
            with wp.Tape() as tape:
                for _ in range(args.steps):
                    wp.launch(step, dim=3, inputs=[x], outputs=[y])
            if args.verbose:
                wp.launch(step, dim=3, inputs=[y], outputs=[x])
        if __name__ == "__main__":
            main()
        """,
        # an iterator object and next()
        """
        class Buffers:
            def __init__(self):
                self.left = [make(), make()]
            def __iter__(self):
                return self
            def __next__(self):
                if not self.left:
                    raise StopIteration
                return self.left.pop(0)
        x, y = Buffers()
        with wp.Tape() as tape:
            wp.launch(step, dim=3, inputs=[x], outputs=[y])
        """,
    ],
)
def test_one_launch_from_one_array_to_another(text: str) -> None:
    found = trace(text)
    assert pairs(found) == [(0, 1)]
    (launch,) = launches(found)
    assert launch.complete
    assert launch.tape == 0


def test_generator_runs_in_step_with_its_loop() -> None:
    found = trace(
        """
        def states():
            x = make()
            for _ in range(2):
                y = make()
                yield x, y
                x.zero_()
                x = y
        with wp.Tape() as tape:
            for x, y in states():
                wp.launch(step, dim=3, inputs=[x], outputs=[y])
        """
    )
    kinds = [type(event).__name__ for event in found.events if isinstance(event, (events.Launch, events.HostWrite))]
    assert kinds == ["Launch", "HostWrite", "Launch", "HostWrite"]


def test_leaving_a_generator_early_runs_its_finally() -> None:
    found = trace(
        """
        def buffers():
            x = make()
            try:
                while True:
                    yield x
            finally:
                x.zero_()
        tape = wp.Tape()
        for x in buffers():
            break
        """
    )
    assert [write.how for write in of_kind(found, events.HostWrite)] == ["zero_"]


def test_exceptions_reach_their_handler() -> None:
    found = trace(
        """
        def risky():
            raise ValueError("no")
        x, y = make(), make()
        with wp.Tape() as tape:
            try:
                risky()
                wp.launch(total, dim=3, inputs=[x, y])
            except ValueError:
                wp.launch(step, dim=3, inputs=[x], outputs=[y])
        """
    )
    assert len(launches(found)) == 1
    assert launches(found, "total") == []


def test_an_uncaught_raise_ends_only_its_function() -> None:
    found = trace(
        """
        def check(x):
            if len(x) == 3:
                raise RuntimeError
        x, y = make(), make()
        with wp.Tape() as tape:
            check(x)
            wp.launch(step, dim=3, inputs=[x], outputs=[y])
        """
    )
    assert len(launches(found)) == 1


def test_a_cached_factory_declares_once_for_each_argument() -> None:
    found = trace(
        """
        import functools
        @functools.lru_cache(maxsize=None)
        def build(n):
            @wp.kernel
            def power(a: wp.array(dtype=float)):
                a[0] = wp.float32(wp.static(n))
            return power
        tape = wp.Tape()
        for n in (1, 2, 1, 2):
            wp.launch(build(n), dim=1, inputs=[make()])
        """
    )
    assert [event.kernel.name for event in of_kind(found, events.KernelDeclared)].count("power") == 2
    keys = [event.kernel.key for event in launches(found, "power") if event.kernel]
    assert keys[0] == keys[2] != keys[1] == keys[3]


def test_struct_fields_are_bound_by_path_and_snapshotted() -> None:
    found = trace(
        """
        @wp.struct
        class Inner:
            q: wp.array(dtype=float)
        @wp.struct
        class State:
            inner: Inner
            v: wp.array(dtype=float)
            dt: float
        @wp.kernel
        def move(s: State, out: wp.array(dtype=float)):
            out[wp.tid()] = s.inner.q[wp.tid()] + s.v[wp.tid()] * s.dt
        s = State()
        s.inner.q = make()
        s.v = make()
        s.dt = 0.5
        with wp.Tape() as tape:
            wp.launch(move, dim=3, inputs=[s, make()])
            s.v = make()
            wp.launch(move, dim=3, inputs=[s, make()])
        """
    )
    first, second = launches(found, "move")
    assert [binding.path for binding in first.bindings] == ["s.inner.q", "s.v", "s.dt", "out"]
    assert first.bindings[0].array.memory == second.bindings[0].array.memory  # type: ignore[union-attr]
    assert first.bindings[1].array.memory != second.bindings[1].array.memory  # type: ignore[union-attr]
    assert first.bindings[2].value == 0.5


def test_what_nobody_knows_makes_a_launch_incomplete_and_is_recorded() -> None:
    found = trace(
        """
        import elsewhere
        buffers = [make(), make()]
        with wp.Tape() as tape:
            wp.launch(step, dim=3, inputs=[elsewhere.buffer()], outputs=[make()])
            wp.launch(step, dim=3, inputs=[buffers[elsewhere.number()]], outputs=[make()])
            wp.launch(elsewhere.kernel, dim=3, inputs=[make()])
        """
    )
    foreign, unknown, unresolved = of_kind(found, events.Launch)
    assert (foreign.complete, foreign.stood_in) == (False, True)
    assert (unknown.complete, unknown.stood_in) == (False, False)
    assert unresolved.kernel is None
    assert found.unknowns[0].text == "buffers[elsewhere.number()]"
    assert "unknown index" in found.unknowns[0].why


def test_scripts_and_notebook_cells_run_at_top_level() -> None:
    found = trace(
        """
        # %% data
        x, y = make(), make()
        # %% forward
        with wp.Tape() as tape:
            wp.launch(step, dim=3, inputs=[x], outputs=[y])
        # %% backward
        tape.backward(grads={y: y})
        """
    )
    (backward,) = of_kind(found, events.Backward)
    assert len(backward.seeds) == 1


def test_a_file_without_tapes_kernels_or_options_is_not_interpreted() -> None:
    assert run("x = make()\nprint(x)", prelude="import warp as wp\ndef make(): return wp.zeros(3)\n") == ()

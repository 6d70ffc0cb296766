"""Whatever the order of events: no rule fails, no finding stands nowhere, and more doubt never makes more warnings."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from traces import Program, store

from warplint import registry
from warplint.finding import Finding, Severity
from warplint.kernels.summary import StoreKind
from warplint.rule import Context
from warplint.trace.events import Array

STORES = (
    store("b", ["a"], {"a": ["a"]}),
    store("b", ["a"]),
    store("b", ["a"], {"a": ["a"]}, kind=StoreKind.ACCUMULATE),
    store("b", ["a", "b"], kind=StoreKind.MULTIPLY),
    store("b"),
)
ACTIONS = ("launch", "unrecorded", "copy", "fill", "enter", "leave", "backward", "zero", "reset", "read", "clear")
STEPS = st.lists(st.tuples(st.sampled_from(ACTIONS), *(st.integers(0, 4) for _ in range(3))), max_size=40)


def program(steps: list[tuple[str, int, int, int]], *, known: bool, warp: tuple[int, int]) -> Program:
    """Three arrays and a loss, two tapes, and what the steps say; ``known`` false: nobody knows who has a gradient."""
    made = Program(warp=warp)
    kernels = [made.kernel(f"kernel{number}", one) for number, one in enumerate(STORES)]
    arrays = [made.array(f"array{number}", 10 + number, grad=True if known else None) for number in range(4)]
    arrays.append(made.array("without", 14, grad=False))
    tapes = [made.tape(20), made.tape(21)]
    for line, (action, one, two, three) in enumerate(steps, 30):
        first, second = arrays[one], arrays[two]
        if action in ("launch", "unrecorded"):
            made.launch(kernels[three], line, recorded=action == "launch", a=first, b=second)
        elif action == "copy":
            made.copy(first, second, line)
        elif action == "fill":
            made.fill(first, line)
        elif action == "enter" and made.open is None:
            made.enter(tapes[one % 2], line)
        elif action == "leave" and made.open is not None:
            made.leave(line)
        elif action == "backward":
            made.backward(tapes[one % 2], second, line)
        elif action == "zero":
            made.zero(tapes[one % 2], line)
        elif action == "reset":
            made.reset(tapes[one % 2], line)
        elif action == "read":
            made.read_gradient(first, line)
        elif action == "clear":
            made.clear_gradient(first, line)
    return made


def found(made: Program) -> list[Finding]:
    flow = made.dataflow()
    return [one for rule in registry.rules() for one in rule.detect(Context(flow.trace, flow, flow.trace.warp))]


@settings(deadline=None, max_examples=150)
@given(STEPS, st.sampled_from([(1, 12), (1, 19)]))
def test_rules_stand_any_order_of_events(steps: list[tuple[str, int, int, int]], warp: tuple[int, int]) -> None:
    for one in found(program(steps, known=True, warp=warp)):
        assert one.span.line > 0
        assert one.message
        assert all(label.span.line > 0 and label.text for label in one.labels)
    doubted = found(program(steps, known=False, warp=warp))
    about_gradients = [one for one in doubted if one.code.startswith(("NVW1", "NVW2"))]
    assert not [one for one in about_gradients if one.severity is Severity.WARNING]


@settings(deadline=None, max_examples=60)
@given(STEPS)
def test_unknown_ranges_never_make_a_warning_of_an_overwrite(steps: list[tuple[str, int, int, int]]) -> None:
    made = program(steps, known=True, warp=(1, 19))
    blurred = Program(
        events=[_blurred(event) for event in made.events], memories=made.memories, summaries=made.summaries
    )
    assert not [one for one in found(blurred) if one.code[:5] == "NVW10" and one.severity is Severity.WARNING]


def _blurred(event: object) -> object:
    """The same event with handles of which nobody knows what part of the memory they mean."""
    from warplint.trace.events import UNKNOWN_EXTENT, Copy, HostWrite, Launch

    def blur(array: Array) -> Array:
        return replace(array, extent=UNKNOWN_EXTENT)

    if isinstance(event, Launch):
        bindings = tuple(replace(b, array=blur(b.array)) if b.array is not None else b for b in event.bindings)
        return replace(event, bindings=bindings)
    if isinstance(event, Copy):
        return replace(event, source=blur(event.source), dest=blur(event.dest))
    return replace(event, dest=blur(event.dest)) if isinstance(event, HostWrite) else event

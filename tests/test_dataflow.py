"""What follows from the order of events, on traces made by hand."""

from __future__ import annotations

import pytest
from traces import Program, store

from warplint.kernels.summary import StoreKind
from warplint.trace.dataflow import Dataflow
from warplint.trace.events import Array, Extent, Kernel
from warplint.trace.flow.overwrites import Writer
from warplint.trace.flow.reachability import Regard
from warplint.trace.flow.repeats import Harm

SINE = store("b", ["a"], {"a": ["a"]})
LINEAR = store("b", ["a"])


def ping_pong(step: object, launches: int, *, warp: tuple[int, int] = (1, 19)) -> tuple[Program, Dataflow]:
    """x → b → x → b … → loss, all on one tape."""
    program = Program(warp=warp)
    kernel = program.kernel("step", step)  # type: ignore[arg-type]
    square = program.kernel("square", store("l", ["b"], {"b": ["b"]}, kind=StoreKind.ACCUMULATE))
    a, b, loss = program.array("a", 10), program.array("b", 11), program.array("loss", 12, size=1)
    tape = program.tape(13)
    program.enter(tape, 14)
    for _ in range(launches):
        program.launch(kernel, 15, a=a, b=b)
        a, b = program.moved(b, 16), program.moved(a, 16)
    program.launch(square, 17, b=a, l=loss)
    program.leave(17)
    program.backward(tape, loss, 18)
    return program, program.dataflow()


def test_one_launch_destroys_nothing() -> None:
    _, flow = ping_pong(SINE, 1)
    assert flow.overwrites == ()


def test_the_second_launch_destroys_what_the_first_one_needs() -> None:
    _, flow = ping_pong(SINE, 2)
    (overwrite,) = flow.overwrites
    assert overwrite.writer is Writer.LAUNCH
    assert overwrite.established
    assert overwrite.reader.event.span.line == overwrite.write.event.span.line == 15
    assert overwrite.moved is not None
    assert overwrite.moved.stack[-1].span.line == 16


def test_each_read_is_destroyed_once() -> None:
    _, flow = ping_pong(SINE, 4)
    assert [(o.reader.seq, o.write.seq) for o in flow.overwrites] == [(2, 3), (3, 4), (4, 5)]


def test_a_linear_step_needs_nothing() -> None:
    _, flow = ping_pong(LINEAR, 4)
    assert flow.overwrites == ()


def test_a_coefficient_with_gradient_needs_the_state_and_one_without_does_not() -> None:
    for trained in (True, False):
        program = Program()
        scale = program.kernel("scale", store("b", ["a", "c"], {"a": ["c"], "c": ["a"]}))
        total = program.kernel("total", store("l", ["b"], kind=StoreKind.ACCUMULATE))
        a, b, c, loss = (program.array(name) for name in ("a", "b", "c", "loss"))
        if not trained:
            c = program.array("c", grad=False)
        tape = program.tape(13)
        program.enter(tape, 14)
        program.launch(scale, 15, a=a, c=c, b=b)
        program.launch(scale, 15, a=b, c=c, b=a)
        program.launch(total, 16, b=a, l=loss)
        program.leave(16)
        program.backward(tape, loss, 17)
        assert [o.established for o in program.dataflow().overwrites] == ([True] if trained else [])


def test_a_reader_that_never_reaches_the_loss_costs_nothing() -> None:
    program = Program()
    sine, total = program.kernel("sine", SINE), program.kernel("total", store("l", ["b"], kind=StoreKind.ACCUMULATE))
    x, diagnostic, y, loss = (program.array(name) for name in ("x", "diagnostic", "y", "loss"))
    copy = program.kernel("linear", LINEAR)
    tape = program.tape(13)
    program.enter(tape, 14)
    program.launch(copy, 15, a=x, b=y)
    program.launch(sine, 16, a=y, b=diagnostic)
    program.launch(total, 17, b=y, l=loss)
    program.launch(copy, 18, a=x, b=y)
    program.leave(19)
    program.backward(tape, loss, 20)
    assert program.dataflow().overwrites == ()


@pytest.mark.parametrize(
    ("write", "writer"),
    [
        ("copy", Writer.COPY),
        ("fill", Writer.FILL),
        ("numpy", Writer.NUMPY),
        ("after", Writer.AFTER_TAPE),
        ("unrecorded", Writer.UNRECORDED_LAUNCH),
        ("inplace", Writer.INPLACE_LAUNCH),
    ],
)
def test_the_kind_of_the_write_is_told(write: str, writer: Writer) -> None:
    program = Program()
    sine, total = program.kernel("sine", SINE), program.kernel("total", store("l", ["b"], kind=StoreKind.ACCUMULATE))
    clear = program.kernel("clear", store("a"))
    add = program.kernel("add", store("a", kind=StoreKind.ACCUMULATE))
    x, y, loss = (program.array(name) for name in ("x", "y", "loss"))
    tape = program.tape(13)
    program.enter(tape, 14)
    program.launch(sine, 15, a=x, b=y)
    program.launch(total, 16, b=y, l=loss)
    if write == "copy":
        program.copy(x, y, 17)
    elif write == "fill":
        program.fill(x, 17)
    elif write == "numpy":
        program.fill(x, 17, "numpy-store")
    elif write == "unrecorded":
        program.launch(clear, 17, recorded=False, a=x)
    elif write == "inplace":
        program.launch(add, 17, a=x)
    program.leave(18)
    if write == "after":
        program.fill(x, 19)
    program.backward(tape, loss, 20)
    (overwrite,) = program.dataflow().overwrites
    assert overwrite.writer is writer


def test_only_the_first_write_is_the_fault() -> None:
    program, _ = ping_pong(SINE, 2)
    program.fill(Array(1), 30)
    (overwrite,) = program.dataflow().overwrites
    assert overwrite.writer is Writer.LAUNCH


def test_rows_of_one_array_do_not_destroy_each_other_and_an_unknown_row_is_no_warning() -> None:
    for extent, expected in ((Extent(1, 2), []), (Extent(0, 1), [True]), (Extent(known=False), [False])):
        program = Program()
        sine = program.kernel("sine", SINE)
        total = program.kernel("total", store("l", ["b"], kind=StoreKind.ACCUMULATE))
        log, out, loss = (program.array(name) for name in ("log", "out", "loss"))
        row, other = Array(log.memory, Extent(0, 1), name="log[0]"), Array(log.memory, extent, name="log[1]")
        tape = program.tape(13)
        program.enter(tape, 14)
        program.launch(sine, 15, a=row, b=out)
        program.launch(total, 16, b=out, l=loss)
        program.launch(program.kernel("set", store("a")), 17, a=other)
        program.leave(18)
        program.backward(tape, loss, 19)
        assert [o.established for o in program.dataflow().overwrites] == expected


def test_an_index_that_depends_on_an_argument_hits_only_where_it_is_the_same() -> None:
    def trajectory(steps: list[tuple[int, int]]) -> list[bool]:
        program = Program()
        read = program.kernel("force", store("f", ["x"], {"x": ["x"]}, index="t, i", covers=None))
        write = program.kernel("move", store("x", ["f"], index="t, i", covers=None))
        total = program.kernel("total", store("l", ["f"], kind=StoreKind.ACCUMULATE))
        x, f, loss = (program.array(name) for name in ("x", "f", "loss"))
        tape = program.tape(13)
        program.enter(tape, 14)
        for first, second in steps:
            program.launch(read, 15, x=x, f=f, t=first)
            program.launch(total, 16, f=f, l=loss)
            program.launch(write, 17, x=x, f=f, t=second)
        program.leave(18)
        program.backward(tape, loss, 19)
        return [o.established for o in program.dataflow().overwrites]

    assert True not in trajectory([(0, 1), (1, 2)])
    assert True in trajectory([(0, 0)])


def test_a_swap_after_the_backward_is_harmless() -> None:
    program, _ = ping_pong(SINE, 1)
    program.launch(program.kernel("step", SINE), 30, a=Array(2), b=Array(1))
    assert program.dataflow().overwrites == ()


def test_backward_switched_off_or_unknown_is_no_warning() -> None:
    for enabled, expected in ((False, []), (None, [False])):
        program = Program()
        sine = program.kernel("sine", SINE, enable_backward=enabled)
        total = program.kernel("total", store("l", ["b"], kind=StoreKind.ACCUMULATE))
        a, b, loss = (program.array(name) for name in ("a", "b", "loss"))
        tape = program.tape(13)
        program.enter(tape, 14)
        program.launch(sine, 15, a=a, b=b)
        program.launch(total, 16, b=b, l=loss)
        program.launch(program.kernel("set", store("a")), 17, a=a)
        program.leave(18)
        program.backward(tape, loss, 19)
        assert [o.established for o in program.dataflow().overwrites] == expected


def chain(*, grad: bool | None, read_on: bool = True) -> Dataflow:
    program = Program()
    kernel = program.kernel("linear", LINEAR)
    total = program.kernel("total", store("l", ["b"], kind=StoreKind.ACCUMULATE))
    x, middle, loss = program.array("x"), program.array("middle", 11, grad=grad), program.array("loss")
    tape = program.tape(13)
    program.enter(tape, 14)
    program.launch(kernel, 15, a=x, b=middle)
    program.launch(total, 16, b=middle if read_on else x, l=loss)
    program.leave(17)
    program.backward(tape, loss, 18)
    return program.dataflow()


def test_a_gap_in_the_chain_of_gradients() -> None:
    (gap,) = chain(grad=False).flag_gaps
    assert gap.memory.name == "middle"
    assert gap.writer.event.span.line == 15
    assert gap.reader is not None
    assert gap.reader.event.span.line == 16
    assert chain(grad=True).flag_gaps == ()
    assert chain(grad=None).flag_gaps == ()
    assert chain(grad=False, read_on=False).flag_gaps == ()


def test_only_leaves_whose_gradient_is_used_are_wanted() -> None:
    program = Program()
    scale = program.kernel("scale", store("b", ["a", "c"], {"a": ["c"], "c": ["a"]}))
    a, c, b = (program.array(name) for name in ("a", "c", "b"))
    tape = program.tape(13)
    program.enter(tape, 14)
    program.launch(scale, 15, a=a, c=c, b=b)
    program.leave(16)
    program.backward(tape, b, 17)
    assert program.dataflow().recordings[0].wanted == {a.memory, c.memory}
    program.read_gradient(c, 18)
    assert program.dataflow().recordings[0].wanted == {c.memory}


def test_a_full_store_consumes_from_1_13_on_unless_the_gradient_is_retained() -> None:
    for warp, retain, matters in (((1, 19), False, False), ((1, 12), False, True), ((1, 19), True, True)):
        program = Program(warp=warp)
        kernel = program.kernel("linear", LINEAR)
        x, y = program.array("x"), program.array("y", retain=retain)
        tape = program.tape(13)
        program.enter(tape, 14)
        program.launch(kernel, 15, a=x, b=y)
        program.launch(program.kernel("set", store("b")), 16, b=y)
        program.leave(17)
        program.backward(tape, y, 18)
        flow = program.dataflow()
        assert flow.reach(flow.recordings[0], Regard.ESTABLISHED).matters == (matters, True)


def twice(
    kernel_store: object, *, retain: bool = False, warp: tuple[int, int] = (1, 19), between: str = ""
) -> list[tuple[Harm, int]]:
    program = Program(warp=warp)
    kernel = program.kernel("work", kernel_store)  # type: ignore[arg-type]
    total = program.kernel("total", store("l", ["b"], {"b": ["b"]}, kind=StoreKind.ACCUMULATE))
    x, y, loss = program.array("x"), program.array("y", retain=retain), program.array("loss", size=1)
    tape = program.tape(13)
    program.enter(tape, 14)
    program.launch(kernel, 15, a=x, b=y)
    if between == "cleared":
        program.fill(y, 16)
    elif between == "cleared by a kernel":
        program.launch(program.kernel("clear", store("b")), 16, b=y)
    elif between == "fed anew":
        program.launch(program.kernel("clear", store("b")), 16, b=x)
    program.launch(kernel, 17, a=x, b=y)
    program.launch(total, 18, b=y, l=loss)
    program.leave(19)
    program.backward(tape, loss, 20)
    return [(repeat.harm, repeat.second.span.line) for repeat in program.dataflow().repeats]


ADD = store("b", ["a"], {"a": ["a"]}, kind=StoreKind.ACCUMULATE)


def test_repeated_launches() -> None:
    assert twice(SINE) == [(Harm.NONE, 17)]
    assert twice(SINE, retain=True) == [(Harm.RETAINED, 17)]
    assert twice(SINE, warp=(1, 12)) == [(Harm.NOT_CONSUMED, 17)]
    assert twice(ADD) == []
    assert twice(ADD, between="cleared") == [(Harm.CLEARED, 17)]
    assert twice(ADD, between="cleared by a kernel") == [(Harm.NONE, 17)]
    assert twice(SINE, between="fed anew") == []


def test_a_repetition_destroys_nothing() -> None:
    program = Program()
    sine = program.kernel("sine", SINE)
    x, y, z, loss = (program.array(name) for name in ("x", "y", "z", "loss"))
    tape = program.tape(13)
    program.enter(tape, 14)
    program.launch(sine, 15, a=x, b=y)
    program.launch(sine, 16, a=y, b=z)
    program.launch(sine, 17, a=x, b=y)
    program.launch(sine, 18, a=z, b=loss)
    program.leave(19)
    program.backward(tape, loss, 20)
    assert program.dataflow().overwrites == ()


def test_a_sum_that_is_added_to_again_is_another_sum() -> None:
    program = Program()
    add, sine = program.kernel("add", ADD), program.kernel("sine", SINE)
    x, y, z, loss = (program.array(name) for name in ("x", "y", "z", "loss"))
    tape = program.tape(13)
    program.enter(tape, 14)
    program.launch(add, 15, a=x, b=y)
    program.launch(sine, 16, a=y, b=z)
    program.launch(add, 17, a=x, b=y)
    program.launch(sine, 18, a=z, b=loss)
    program.leave(19)
    program.backward(tape, loss, 20)
    assert [o.write.event.span.line for o in program.dataflow().overwrites] == [17]


def epochs(*, reset: bool, clear_loss: bool, persistent: bool = True, zero: bool = True) -> list[Harm]:
    program = Program()
    predict, mse = (
        program.kernel("predict", SINE),
        program.kernel("mse", store("l", ["b"], {"b": ["b"]}, kind=StoreKind.ACCUMULATE)),
    )
    w, y, loss = program.array("w"), program.array("y"), program.array("loss", size=1)
    tape = program.tape(13)
    for _ in range(2):
        if not persistent:
            y, loss = program.array("y"), program.array("loss", size=1)
        if clear_loss:
            program.fill(loss, 14)
        program.enter(tape, 15)
        program.launch(predict, 16, a=w, b=y)
        program.launch(mse, 17, b=y, l=loss)
        program.leave(17)
        program.backward(tape, loss, 18)
        program.read_gradient(w, 19)
        if reset:
            program.reset(tape, 20)
        elif zero:
            program.zero(tape, 20)
    return [reentry.harm for reentry in program.dataflow().reentries]


def test_a_tape_that_goes_on_after_its_backward() -> None:
    assert epochs(reset=True, clear_loss=True) == []
    assert epochs(reset=False, clear_loss=True) == [Harm.CLEARED]
    assert epochs(reset=False, clear_loss=False, persistent=False) == [Harm.NONE]
    assert epochs(reset=False, clear_loss=False, persistent=False, zero=False) == [Harm.SEED_LEFT]


def test_two_losses_on_one_tape_share_its_beginning_rightly() -> None:
    program = Program()
    predict, mse = (
        program.kernel("predict", SINE),
        program.kernel("mse", store("l", ["b"], {"b": ["b"]}, kind=StoreKind.ACCUMULATE)),
    )
    w, y, first, second = (program.array(name) for name in ("w", "y", "first", "second"))
    tape = program.tape(13)
    program.enter(tape, 14)
    program.launch(predict, 15, a=w, b=y)
    program.launch(mse, 16, b=y, l=first)
    program.leave(16)
    program.backward(tape, first, 17)
    program.zero(tape, 18)
    program.enter(tape, 19)
    program.launch(mse, 20, b=y, l=second)
    program.leave(20)
    program.backward(tape, second, 21)
    assert program.dataflow().reentries == ()


def windows(backward: str, *, carry: str = "handle", update: bool = False, cut: bool = False) -> list[int]:
    """Three steps, a tape each; returns the lines of the tapes that start from carried state."""
    program = Program(cut=cut)
    step: Kernel = program.kernel("step", store("n", ["s", "c"], {"s": ["c"], "c": ["s"]}))
    mse = program.kernel("mse", store("l", ["b"], {"b": ["b"]}, kind=StoreKind.ACCUMULATE))
    c, s = program.array("c"), program.array("s")
    pairs = []
    for _ in range(3):
        n, loss = program.array("n"), program.array("loss", size=1)
        tape = program.tape(13)
        program.enter(tape, 14)
        program.launch(step, 15, s=s, c=c, n=n)
        program.launch(mse, 16, b=n, l=loss)
        program.leave(17)
        pairs.append((tape, loss))
        if backward == "each":
            program.backward(tape, loss, 18)
        if update:
            program.launch(program.kernel("descend", store("w")), 19, w=c)
            program.clear_gradient(c, 20)
        if carry == "handle":
            s = n
        elif carry == "copy":
            program.copy(s, n, 21)
        elif carry == "none":
            s = program.array("s")
    if backward == "last":
        program.backward(*pairs[-1], 22)
    elif backward == "reversed":
        for pair in reversed(pairs):
            program.backward(*pair, 22)
    program.read_gradient(c, 23)
    return [
        state.recording.period.opened.span.line
        for state in program.dataflow().carried_states
        if state.recording.period.opened
    ]


def test_state_that_crosses_the_windows_of_tapes() -> None:
    assert windows("each") == [13, 13]
    assert windows("last") == [13]
    assert windows("each", carry="copy") == [13, 13]
    assert windows("reversed") == []
    assert windows("each", carry="none") == []
    assert windows("each", update=True) == []
    assert windows("each", cut=True) == []

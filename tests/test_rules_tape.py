"""The rules about tapes and arrays, on the measured variants: what is wrong is found at its line, the rest is not."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from programs import PRELUDE, check, taped

LOSS = "wp.launch(ssq, 3, inputs=[a], outputs=[l])"

PING_PONG = {
    "one launch": f"""
        a, b = x, zer()
        wp.launch(nl, 3, inputs=[a], outputs=[b])
        a, b = b, a
        {LOSS}
    """,
    "copied in, swapped": f"""
        a, b = zer(), zer()
        wp.copy(a, x)
        for _ in range(3):
            wp.launch(nl, 3, inputs=[a], outputs=[b])
            a, b = b, a  # expect: NVW101
        {LOSS}
    """,
    "x itself is a buffer": f"""
        a, b = x, zer()
        for _ in range(2):
            wp.launch(nl, 3, inputs=[a], outputs=[b])
            a, b = b, a  # expect: NVW101
        {LOSS}
    """,
    "linear": f"""
        a, b = x, zer()
        for _ in range(4):
            wp.launch(lin, 3, inputs=[a], outputs=[b])
            a, b = b, a
        {LOSS}
    """,
    "written out": f"""
        b = zer()
        wp.launch(nl, 3, inputs=[x], outputs=[b])
        wp.launch(nl, 3, inputs=[b], outputs=[x])  # expect: NVW101
        a = x
        {LOSS}
    """,
    "list of N+1": f"""
        s = [x] + [zer() for _ in range(4)]
        for k in range(4):
            wp.launch(nl, 3, inputs=[s[k]], outputs=[s[k + 1]])
        a = s[-1]
        {LOSS}
    """,
    "fresh each step": f"""
        a = x
        for _ in range(4):
            b = wp.zeros_like(a)
            wp.launch(nl, 3, inputs=[a], outputs=[b])
            a = b
        {LOSS}
    """,
    "fresh clone, stored fully": f"""
        a = x
        for _ in range(4):
            b = wp.clone(a)
            wp.launch(nl, 3, inputs=[a], outputs=[b])
            a = b
        {LOSS}
    """,
    "ring that outlasts the steps": f"""
        r = [zer() for _ in range(4)]
        wp.copy(r[0], x)
        for k in range(3):
            wp.launch(nl, 3, inputs=[r[k % 4]], outputs=[r[(k + 1) % 4]])
        a = r[3]
        {LOSS}
    """,
    "ring that does not": f"""
        r = [zer() for _ in range(3)]
        wp.copy(r[0], x)
        for k in range(5):
            wp.launch(nl, 3, inputs=[r[k % 3]], outputs=[r[(k + 1) % 3]])  # expect: NVW101
        a = r[5 % 3]
        {LOSS}
    """,
    "last becomes first": f"""
        s = [x] + [zer() for _ in range(2)]
        for frame in range(2):
            for k in range(2):
                wp.launch(nl, 3, inputs=[s[k]], outputs=[s[k + 1]])
            s[0] = s[-1]  # expect: NVW101
        a = s[-1]
        {LOSS}
    """,
    "rotated list": f"""
        s = [x, zer(), zer()]
        for _ in range(4):
            wp.launch(nl, 3, inputs=[s[0]], outputs=[s[1]])
            s = s[1:] + s[:1]  # expect: NVW101
        a = s[0]
        {LOSS}
    """,
    "popped and appended": f"""
        s = [x, zer()]
        for _ in range(4):
            wp.launch(nl, 3, inputs=[s[0]], outputs=[s[1]])
            s.append(s.pop(0))  # expect: NVW101
        a = s[0]
        {LOSS}
    """,
    "through a third name": f"""
        a, b = x, zer()
        for _ in range(3):
            wp.launch(nl, 3, inputs=[a], outputs=[b])
            t = a
            a = b
            b = t  # expect: NVW101
        {LOSS}
    """,
    "through an argument list": f"""
        a, b = x, zer()
        for _ in range(3):
            args = [a, b]
            wp.launch(nl, 3, args)
            a, b = b, a  # expect: NVW101
        {LOSS}
    """,
    "two rows of one array": f"""
        rows = wp.zeros((2, 3), dtype=float, requires_grad=True)
        wp.copy(rows[0], x)
        for k in range(4):
            wp.launch(nl, 3, inputs=[rows[k % 2]], outputs=[rows[(k + 1) % 2]])  # expect: NVW101
        a = rows[0]
        {LOSS}
    """,
    "a deque of three levels, read in place": f"""
        from collections import deque
        levels = deque([x, zer(), zer()])
        for _ in range(4):
            wp.launch(nl, 3, inputs=[levels[0]], outputs=[levels[1]])
            levels.rotate(-1)  # expect: NVW101
        a = levels[0]
        {LOSS}
    """,
    "a scratch array for every step": f"""
        force = zer()
        a = x
        for _ in range(3):
            b = zer()
            wp.launch(nl, 3, inputs=[a], outputs=[force])  # expect: NVW101
            wp.launch(nl, 3, inputs=[force], outputs=[b])
            a = b
        {LOSS}
    """,
    "a scratch array read linearly": f"""
        force = zer()
        a = x
        for _ in range(3):
            b = zer()
            wp.launch(nl, 3, inputs=[a], outputs=[force])
            wp.launch(lin, 3, inputs=[force], outputs=[b])
            a = b
        {LOSS}
    """,
}


@pytest.mark.parametrize("body", PING_PONG.values(), ids=PING_PONG)
def test_ping_pong(tmp_path: Path, body: str) -> None:
    check(tmp_path, taped(body))


@pytest.mark.parametrize(("warp", "found"), [((1, 12), 1), ((1, 13), 0), ((1, 19), 0)])
def test_a_linear_ping_pong_is_wrong_before_1_13(tmp_path: Path, warp: tuple[int, int], found: int) -> None:
    body = PING_PONG["linear"]
    if found:
        body = body.replace("a, b = b, a", "a, b = b, a  # expect: NVW101")
    check(tmp_path, taped(body), warp_version=warp)


def test_a_trained_coefficient_needs_every_old_state(tmp_path: Path) -> None:
    body = f"""
        a, b = arr([0.7, 1.3, -0.4]), zer()
        for _ in range(3):
            wp.launch(bil, 3, inputs=[a, x], outputs=[b])
            a, b = b, a  # expect: NVW101
        {LOSS}
    """
    check(tmp_path, taped(body))
    untrained = body.replace("[a, x]", "[a, c]").replace("  # expect: NVW101", "")
    check(tmp_path, taped(untrained, before="c = arr([1.0, 1.0, 1.0], rg=False)", after=""))


def test_state_objects_with_two_needed_arrays_are_one_finding(tmp_path: Path) -> None:
    source = (
        PRELUDE
        + """
@wp.kernel
def advance(q: A, v: A, q1: A, v1: A):
    i = wp.tid()
    w = v[i] - wp.sin(q[i]) * v[i]
    v1[i] = w
    q1[i] = q[i] + 0.1 * w

class State:
    def __init__(self):
        self.q = zer()
        self.v = zer()

class Model:
    def __init__(self):
        self.now, self.then = State(), State()
        self.loss = zer(1)

    def step(self):
        wp.launch(advance, 3, inputs=[self.now.q, self.now.v], outputs=[self.then.q, self.then.v])

    def advance(self, n):
        for _ in range(n):
            self.step()
            self.now, self.then = self.then, self.now  # expect: NVW101

    def forward(self):
        self.advance(4)
        wp.launch(ssq, 3, inputs=[self.now.q], outputs=[self.loss])

def main():
    model = Model()
    start = model.now.v
    with wp.Tape() as tape:
        model.forward()
    tape.backward(model.loss)
    print(start.grad.numpy())

main()
"""
    )
    (finding,) = check(tmp_path, source)
    assert "q" in finding.message
    assert "v" in finding.message
    roles = {label.role.value for label in finding.labels}
    assert {"read", "write", "allocation", "tape", "backward"} <= roles
    assert finding.anchor.allocation is not None
    assert finding.anchor.write is not None


def test_buffers_swapped_without_a_tape_are_nobodys_business(tmp_path: Path) -> None:
    check(
        tmp_path,
        PRELUDE
        + """
a, b = zer(), zer()
for _ in range(3):
    wp.launch(nl, 3, inputs=[a], outputs=[b])
    a, b = b, a
print(a.numpy())
""",
    )


def test_each_backward_has_its_own_recording(tmp_path: Path) -> None:
    check(
        tmp_path,
        PRELUDE
        + """
x, y, l = arr([0.7, 1.3, -0.4]), zer(), zer(1)
for _ in range(3):
    l.zero_()
    with wp.Tape() as tape:
        wp.launch(nl, 3, inputs=[x], outputs=[y])
        wp.launch(ssq, 3, inputs=[y], outputs=[l])
    tape.backward(l)
    print(x.grad.numpy())
    tape.zero()
""",
    )


MADE = {
    "zeros": ("wp.zeros(3, dtype=float)", True),
    "empty": ("wp.empty(3, dtype=float)", True),
    "full": ("wp.full(3, 0.0, dtype=float)", True),
    "ones": ("wp.ones(3, dtype=float)", True),
    "array": ("wp.array(np.zeros(3), dtype=float)", True),
    "from_numpy": ("wp.from_numpy(np.zeros(3), dtype=float)", True),
    "zeros_like": ("wp.zeros_like(x)", False),
    "empty_like": ("wp.empty_like(x)", False),
    "clone": ("wp.clone(x)", False),
    "full_like": ("wp.full_like(x, 0.0)", False),
    "ones_like": ("wp.ones_like(x)", False),
    "like one without": ("wp.zeros_like(wp.zeros(3, dtype=float))", True),
    "clone without": ("wp.clone(x, requires_grad=False)", True),
    "clone of one without": ("wp.clone(wp.zeros(3, dtype=float))", True),
    "with it": ("wp.zeros(3, dtype=float, requires_grad=True)", False),
}


@pytest.mark.parametrize(("made", "wrong"), MADE.values(), ids=MADE)
def test_an_intermediate_without_gradient(tmp_path: Path, made: str, wrong: bool) -> None:
    comment = "  # expect: NVW110" if wrong else ""
    check(
        tmp_path,
        taped(f"t = {made}{comment}\nwp.launch(nl, 3, inputs=[x], outputs=[t])\nwp.launch(ssq, 3, inputs=[t, l])"),
    )


FLAGS = {
    "set before the launch": """
        t = wp.zeros(3, dtype=float)
        t.requires_grad = True
        wp.launch(nl, 3, inputs=[x], outputs=[t])
        wp.launch(ssq, 3, inputs=[t, l])
    """,
    "set after the launches": """
        t = wp.zeros(3, dtype=float)
        wp.launch(nl, 3, inputs=[x], outputs=[t])
        wp.launch(ssq, 3, inputs=[t, l])
        t.requires_grad = True
    """,
    "a constant that is only read": """
        c = wp.array([1.0, 2.0, 3.0], dtype=float)
        t = zer()
        wp.launch(bil, 3, inputs=[x, c], outputs=[t])
        wp.launch(ssq, 3, inputs=[t, l])
    """,
    "a constant that a kernel fills": """
        c = wp.zeros(3, dtype=float)
        wp.launch(lin, 3, inputs=[wp.array([1.0, 2.0, 3.0], dtype=float)], outputs=[c])
        t = zer()
        wp.launch(bil, 3, inputs=[x, c], outputs=[t])
        wp.launch(ssq, 3, inputs=[t, l])
    """,
    "a diagnostic beside the path": """
        t, seen = zer(), wp.zeros(3, dtype=float)
        wp.launch(nl, 3, inputs=[x], outputs=[t])
        wp.launch(nl, 3, inputs=[t], outputs=[seen])
        wp.launch(ssq, 3, inputs=[t, l])
    """,
    "an unknown flag": """
        import os
        t = wp.zeros(3, dtype=float, requires_grad=bool(os.environ.get("TRAIN")))
        wp.launch(nl, 3, inputs=[x], outputs=[t])
        wp.launch(ssq, 3, inputs=[t, l])
    """,
    "two in a row": """
        t = wp.zeros(3, dtype=float)  # expect: NVW110
        u = wp.zeros(3, dtype=float)  # expect: NVW110
        wp.launch(nl, 3, inputs=[x], outputs=[t])
        wp.launch(nl, 3, inputs=[t], outputs=[u])
        wp.launch(ssq, 3, inputs=[u, l])
    """,
    "a helper that makes both kinds": """
        t = zer(3, False)  # expect: NVW110
        u = zer()
        wp.launch(nl, 3, inputs=[x], outputs=[t])
        wp.launch(nl, 3, inputs=[t], outputs=[u])
        wp.launch(ssq, 3, inputs=[u, l])
    """,
}


@pytest.mark.parametrize("body", FLAGS.values(), ids=FLAGS)
def test_flags(tmp_path: Path, body: str) -> None:
    check(tmp_path, taped(body))


def test_an_array_made_in_another_file_is_reported_there(tmp_path: Path) -> None:
    buffers = """
        import warp as wp

        class Buffers:
            def __init__(self, n):
                self.hidden = wp.zeros(n, dtype=float)  # expect: NVW110
                self.loss = wp.zeros(1, dtype=float, requires_grad=True)
    """
    source = (
        PRELUDE
        + """
from buffers import Buffers

x = arr([0.7, 1.3, -0.4])
b = Buffers(3)
with wp.Tape() as tape:
    wp.launch(nl, 3, inputs=[x], outputs=[b.hidden])
    wp.launch(ssq, 3, inputs=[b.hidden], outputs=[b.loss])
tape.backward(b.loss)
print(x.grad.numpy())
"""
    )
    check(tmp_path, source, others={"buffers.py": buffers})


TWICE = {
    "stored twice": """
        b = zer()
        wp.launch(nl, 3, inputs=[x, b])
        wp.launch(nl, 3, inputs=[x, b])  # expect-info: NVW120
        wp.launch(ssq, 3, inputs=[b, l])
    """,
    "added twice": """
        b = zer()
        wp.launch(acc, 3, inputs=[x, b])
        wp.launch(acc, 3, inputs=[x, b])
        wp.launch(ssq, 3, inputs=[b, l])
    """,
    "added, cleared, added": """
        b = zer()
        wp.launch(acc, 3, inputs=[x, b])
        b.zero_()
        wp.launch(acc, 3, inputs=[x, b])  # expect: NVW120
        wp.launch(ssq, 3, inputs=[b, l])
    """,
    "retained and stored twice": """
        b = wp.zeros(3, dtype=float, requires_grad=True, retain_grad=True)
        wp.launch(nl, 3, inputs=[x, b])
        wp.launch(nl, 3, inputs=[x, b])  # expect: NVW120
        wp.launch(ssq, 3, inputs=[b, l])
    """,
    "retained and stored once": """
        b = wp.zeros(3, dtype=float, requires_grad=True, retain_grad=True)
        wp.launch(nl, 3, inputs=[x, b])
        wp.launch(ssq, 3, inputs=[b, l])
    """,
    "the loss added twice": """
        wp.launch(ssq, 3, inputs=[x, l])
        wp.launch(ssq, 3, inputs=[x, l])
    """,
    "what is read changes in between": """
        b = zer()
        for _ in range(3):
            wp.launch(lin, 3, inputs=[x, b])
            wp.copy(x, b)
        wp.launch(ssq, 3, inputs=[b, l])
    """,
}


@pytest.mark.parametrize("body", TWICE.values(), ids=TWICE)
def test_repeated_launches(tmp_path: Path, body: str) -> None:
    check(tmp_path, taped(body))


def test_a_repetition_behind_a_helper_is_reported_at_its_call(tmp_path: Path) -> None:
    before = """
        def evaluate():
            l.zero_()
            wp.launch(ssq, 3, inputs=[x, l])
    """
    body = """
        evaluate()
        print("first")
        evaluate()  # expect: NVW120
    """
    check(tmp_path, taped(body, before=before))


def test_a_helper_of_two_launches_is_repeated_as_a_whole(tmp_path: Path) -> None:
    before = """
        b = zer()

        def evaluate():
            l.zero_()
            wp.launch(nl, 3, inputs=[x], outputs=[b])
            wp.launch(ssq, 3, inputs=[b], outputs=[l])
            return l.numpy()[0]
    """
    body = """
        first = evaluate()
        evaluate()  # expect: NVW120
    """
    check(tmp_path, taped(body, before=before))


def test_a_repeated_store_is_wrong_before_1_13(tmp_path: Path) -> None:
    body = TWICE["stored twice"].replace("expect-info", "expect")
    check(tmp_path, taped(body), warp_version=(1, 12))


def epochs(clear: str, *, persistent: bool = True, mark: str = "") -> str:
    fresh = "" if persistent else "    b, l = zer(), zer(1)\n"
    return (
        PRELUDE
        + f"""
x, b, l = arr([0.7, 1.3, -0.4]), zer(), zer(1)
tape = wp.Tape()
for _ in range(3):
{fresh}    l.zero_()
    with tape:{mark}
        wp.launch(nl, 3, inputs=[x], outputs=[b])
        wp.launch(ssq, 3, inputs=[b], outputs=[l])
    tape.backward(l)
    print(x.grad.numpy())
    {clear}
"""
    )


def test_a_tape_that_is_never_reset(tmp_path: Path) -> None:
    check(tmp_path, epochs("tape.reset()"))
    check(tmp_path, epochs("tape.zero()", mark="  # expect: NVW120"))
    check(tmp_path, epochs("tape.zero()", persistent=False))
    check(tmp_path, epochs("pass", persistent=False, mark="  # expect: NVW120"))


def test_one_tape_entered_for_every_step_and_differentiated_once(tmp_path: Path) -> None:
    check(
        tmp_path,
        PRELUDE
        + """
x, l, tape = arr([0.7, 1.3, -0.4]), zer(1), wp.Tape()
a = x
for _ in range(3):
    b = zer()
    with tape:
        wp.launch(nl, 3, inputs=[a], outputs=[b])
        wp.launch(ssq, 3, inputs=[b], outputs=[l])
    a = b
tape.backward(l)
print(x.grad.numpy())
""",
    )


def windows(body: str, after: str = "", before: str = "") -> str:
    return (
        PRELUDE
        + f"""
c, s = arr([0.7, 1.3, -0.4]), arr([0.5, -0.3, 0.9])
{before}
for _ in range(3):
    n, l = zer(), zer(1)
{body}
{after}
print(c.grad.numpy())
"""
    )


RECORD = """
    with t:
        wp.launch(bil, 3, inputs=[s, c], outputs=[n])
        wp.launch(ssq, 3, inputs=[n], outputs=[l])
"""

WINDOWS = {
    "a backward for each": windows("    t = wp.Tape()  # expect: NVW130" + RECORD + "    t.backward(l)\n    s = n"),
    "only the last one's": windows("    t = wp.Tape()  # expect: NVW130" + RECORD + "    s = n", "t.backward(l)"),
    "copied into a persistent array": windows(
        "    t = wp.Tape()  # expect: NVW130" + RECORD + "    t.backward(l)\n    wp.copy(s, n)"
    ),
    "summed on the host": windows(
        "    t = wp.Tape()  # expect: NVW130"
        + RECORD
        + "    t.backward(l)\n    total += c.grad.numpy()\n    t.zero()\n    s = n",
        "c.assign(c.numpy() - 0.1 * total)",
        "total = np.zeros(3)",
    ),
    "printed and cleared, one window at a time": windows(
        "    t = wp.Tape()" + RECORD + "    t.backward(l)\n    print(c.grad.numpy())\n    t.zero()\n    s = n",
    ),
    "backwards in reverse order": windows(
        "    t = wp.Tape()" + RECORD + "    kept.append((t, l))\n    s = n",
        "for t, l in reversed(kept):\n    t.backward(l)",
        "kept = []",
    ),
    "independent items": windows("    s = arr([0.5, -0.3, 0.9])\n    t = wp.Tape()" + RECORD + "    t.backward(l)"),
    "the parameter is updated": windows(
        "    t = wp.Tape()"
        + RECORD
        + "    t.backward(l)\n    c.assign(c.numpy() - 0.1 * c.grad.numpy())\n    t.zero()\n    s = n"
    ),
    "a new parameter each time": windows(
        "    c = arr(c.numpy())\n    t = wp.Tape()" + RECORD + "    t.backward(l)\n    g = c.grad.numpy()\n    s = n"
    ),
}


@pytest.mark.parametrize("source", WINDOWS.values(), ids=WINDOWS)
def test_state_carried_between_tapes(tmp_path: Path, source: str) -> None:
    check(tmp_path, source)


def in_a_row(first: str, between: str = "", *, made: str = "m, y = zer(), zer()") -> str:
    """Two tapes, differentiated backwards: the earlier one from the gradient that the later one's walk left on y."""
    return (
        PRELUDE
        + f"""
x, l = arr([0.7, 1.3, -0.4]), zer(1)
{made}
with wp.Tape() as t1:
{textwrap.indent(first, "    ")}
with wp.Tape() as t2:
    wp.launch(ssq, 3, inputs=[y], outputs=[l])
t2.backward(l)
{between}
t1.backward()
print(x.grad.numpy())
"""
    )


STEPS = "wp.launch(nl, 3, inputs=[x], outputs=[m])\nwp.launch(nl, 3, inputs=[m], outputs=[y])"
REUSED = """\
wp.launch(nl, 3, inputs=[x], outputs=[y])
wp.launch(nl, 3, inputs=[y], outputs=[x])
wp.launch(nl, 3, inputs=[x], outputs=[y])"""

IN_A_ROW = {
    "one array for each value": in_a_row(STEPS),
    "no gradient in the middle": in_a_row(STEPS, made="m, y = zer(rg=False), zer()  # expect: NVW110"),
    "buffers reused": in_a_row(REUSED.replace("outputs=[x])", "outputs=[x])  # expect: NVW101")),
    "buffers reused, and what was left is cleared": in_a_row(REUSED, "y.grad.zero_()"),
    "buffers reused, and the later tape is zeroed": in_a_row(REUSED, "t2.zero()"),
    "a chain of tapes": PRELUDE
    + """
c, s, tapes, l = arr([0.7, 1.3, -0.4]), arr([0.5, -0.3, 0.9]), [], zer(1)
for _ in range(3):
    m, n, t = zer(rg=False), zer(), wp.Tape()  # expect: NVW110
    with t:
        wp.launch(bil, 3, inputs=[s, c], outputs=[m])
        wp.launch(nl, 3, inputs=[m], outputs=[n])
    tapes.append(t)
    s = n
with wp.Tape() as last:
    wp.launch(ssq, 3, inputs=[s], outputs=[l])
last.backward(l)
for t in reversed(tapes):
    t.backward()
print(c.grad.numpy())
""",
}


@pytest.mark.parametrize("source", IN_A_ROW.values(), ids=IN_A_ROW)
def test_a_backward_that_starts_from_what_another_tape_left(tmp_path: Path, source: str) -> None:
    check(tmp_path, source)


def test_a_loop_that_is_written_out_is_one_fault(tmp_path: Path) -> None:
    step = "wp.launch(nl, 3, inputs=[a], outputs=[b])\na, b = b, a"
    body = f"a, b = x, zer()\n{step}  # expect: NVW101\n" + f"{step}\n" * 5 + LOSS
    (found,) = check(tmp_path, taped(body))
    assert "and 4 more like it" in found.message


def test_other_arrays_are_another_fault(tmp_path: Path) -> None:
    pair = """
wp.launch(nl, 3, inputs=[x], outputs=[{0}])
wp.launch(nl, 3, inputs=[{0}], outputs=[{1}])
wp.launch(nl, 3, inputs=[{1}], outputs=[{0}])  # expect: NVW101
wp.launch(ssq, 3, inputs=[{0}], outputs=[l])
"""
    check(tmp_path, taped("a, b, c, d = zer(), zer(), zer(), zer()" + pair.format("a", "b") + pair.format("c", "d")))

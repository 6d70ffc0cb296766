"""Of a large log only that is run again, and in as little memory, as it takes: what comes out is the same."""

import pytest
from test_engine_replay import in_process

pytestmark = pytest.mark.warp

SURVEYED = """\
import itertools
from warplint.verify.engine.execution.operations import KernelCall
from warplint.verify.engine.replaying.analysis import Analysis

def surveyed():
    hooks.observer = None
    machine = Machine(log)
    survey = Survey(machine)
    survey.run()
    return machine, survey, Analysis(log, survey)

passed = [wp.zeros(12_000_000, dtype=float) for _ in range(2)]
"""


def test_a_slice_rebuilds_what_it_is_asked_for_without_a_backward_call(tmp_path):
    output = in_process(
        SURVEYED
        + """
from warplint.verify.engine.replaying.slices import resume, slice_of
from warplint.verify.engine.execution.operations import TapeMark
x, loss = ones([0.3, 0.8]), ones([0.0])
states = [wp.zeros_like(x) for _ in range(5)]
for _ in range(3):
    wp.copy(*passed)
    loss.zero_()
    with wp.Tape() as tape:
        for before, after in itertools.pairwise([x, *states]):
            wp.launch(swing, dim=2, inputs=[before], outputs=[after])
        wp.launch(loss_of, dim=2, inputs=[states[-1]], outputs=[loss])
    tape.backward(loss)
    wp.launch(descend, dim=2, inputs=[x, x.grad])
    tape.zero()
expected = x.numpy().copy()
machine, survey, analysis = surveyed()
memory = log.memories.find(x.ptr)
print("large", survey.large, "as it was", bool((x.numpy() == expected).all()))
for mark in log.operations:
    if isinstance(mark, TapeMark) and mark.what == "entered":
        machine.rewind(mark.index)
        whole = memory.read().tobytes()
        memory.live()[:] = 0
        resume(machine, analysis, mark.index, {memory})
        stretch = slice_of({memory}, machine.nearest(mark.index), mark.index, analysis)
        run = [step for step in stretch.steps if isinstance(step, KernelCall)]
        print(memory.read().tobytes() == whole, [step.name for step in run])
""",
        tmp_path,
    )
    assert output.splitlines()[-4:] == [
        "large True as it was True",
        "True []",
        "True ['descend']",
        "True ['descend', 'descend']",
    ]


RECYCLED = (
    SURVEYED
    + """
from warplint.verify.engine.replaying.recycling import recycled

def run_again(*arrays):
    machine, survey, analysis = surveyed()
    begin = log.backwards[-1]
    steps = [each for each in log.between(0, begin.index) if isinstance(each, KernelCall)]
    machine.rewind(steps[0].index)
    start = {memory: memory.read() for memory in machine.touched(log.base, log.next_index)}
    for step in steps:
        step.run()
    whole = begin.loss.read().tobytes()
    found = recycled(steps, {begin.loss.memory}, analysis)
    if found is None:
        print("none")
        return
    for memory, contents in start.items():
        memory.write(contents)
    for step in found.steps:
        step.run()
    print(begin.loss.read().tobytes() == whole, len(found.moved), len(found.buffers))
    print(all((memory.live() == start[memory]).all() for memory in found.moved))
    print(*(log.memories.find(array.ptr) in found.moved for array in arrays))
"""
)


def test_what_launches_make_for_each_other_takes_turns_in_few_buffers(tmp_path):
    output = in_process(
        RECYCLED
        + """
wp.copy(*passed)
x, loss = ones([0.3, 0.8]), ones([0.0])
states = [wp.zeros_like(x) for _ in range(6)]
kept = wp.full(2, 0.5, dtype=float)
with wp.Tape() as tape:
    for before, after in itertools.pairwise([x, *states]):
        wp.launch(swing, dim=2, inputs=[before], outputs=[after])
    wp.launch(square, dim=1, inputs=[states[0]], outputs=[kept])
    for array in (states[-1], kept):
        wp.launch(loss_of, dim=2, inputs=[array], outputs=[loss])
tape.backward(loss)
run_again(x, kept, states[0], states[-1])
""",
        tmp_path,
    )
    assert output.splitlines()[-3:] == ["True 6 3", "True", "False False True True"]


def test_memory_that_a_kernel_may_reach_unseen_stays_where_it_is(tmp_path):
    output = in_process(
        RECYCLED
        + """
from warplint.verify.engine.warp_values import layout_of

@wp.struct
class Box:
    state: State
    mass: float

@wp.kernel
def by_parameters(a: wp.array(dtype=wp.vec3), s: State, n: int):
    i = wp.tid()

@wp.kernel
def by_an_array_of_structs(a: wp.array(dtype=Box)):
    i = wp.tid()

@wp.kernel
def by_identifier(mesh: wp.uint64):
    i = wp.tid()

@wp.kernel
def by_identifiers(meshes: wp.array(dtype=wp.uint64)):
    i = wp.tid()

print(*(layout_of(k).unseen for k in (by_parameters, by_an_array_of_structs, by_identifier, by_identifiers)))
""",
        tmp_path,
    )
    assert output.splitlines()[-1] == "False True True True"

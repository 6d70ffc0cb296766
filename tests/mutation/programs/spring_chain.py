"""Fit the stiffness of a hanging chain."""

import numpy as np
import warp as wp
from mutation_kernels import Spring, advance, descend, pull, reach

START = globals().get("START", np.array([3.0, 4.0, 5.0]))
STEPS = 4
GOAL = wp.vec2(2.0, -1.0)

history = []
spring = Spring()
spring.rest = wp.array([0.8, 0.9, 1.0], dtype=float, requires_grad=True)
spring.stiffness = wp.array(START, dtype=float, requires_grad=True)
places = [[0.0, 0.0], [1.1, 0.1], [2.0, 0.3], [3.2, 0.2]]


def simulate(q, v):
    for _ in range(STEPS):
        force = wp.zeros(4, dtype=wp.vec2, requires_grad=True)
        q_next = wp.zeros(4, dtype=wp.vec2, requires_grad=True)
        v_next = wp.zeros(4, dtype=wp.vec2, requires_grad=True)
        wp.launch(pull, dim=3, inputs=[q, spring], outputs=[force])
        wp.launch(advance, dim=4, inputs=[q, v, force, 0.1], outputs=[q_next, v_next])
        q, v = q_next, v_next
    return q


for _epoch in range(2):
    leaf = spring.stiffness.numpy().copy()
    q = wp.array(places, dtype=wp.vec2, requires_grad=True)
    v = wp.zeros(4, dtype=wp.vec2, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        last = simulate(q, v)
        wp.launch(reach, dim=1, inputs=[last, GOAL], outputs=[loss])
    tape.backward(loss)
    history.append((float(loss.numpy()[0]), leaf, spring.stiffness.grad.numpy().copy()))
    wp.launch(descend, dim=3, inputs=[spring.stiffness, spring.stiffness.grad, 0.5])
    tape.zero()

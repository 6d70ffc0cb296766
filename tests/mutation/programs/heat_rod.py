"""Fit the conductivity of a rod."""

import numpy as np
import warp as wp
from mutation_kernels import conduct, descend, misfit

START = globals().get("START", np.linspace(0.5, 1.5, 8))
STEPS = 5

history = []
conductivity = wp.array(START, dtype=float, requires_grad=True)
first = wp.array(np.sin(np.linspace(0.0, 3.0, 8)) + 1.0, dtype=float, requires_grad=True)
target = wp.array(np.linspace(0.2, 0.9, 8), dtype=float)
for _epoch in range(2):
    leaf = conductivity.numpy().copy()
    states = [first] + [wp.zeros(8, dtype=float, requires_grad=True) for _ in range(STEPS)]
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        for i in range(STEPS):
            wp.launch(conduct, dim=8, inputs=[states[i], conductivity, 0.2], outputs=[states[i + 1]])
        wp.launch(misfit, dim=8, inputs=[states[STEPS], target], outputs=[loss])
    tape.backward(loss)
    history.append((float(loss.numpy()[0]), leaf, conductivity.grad.numpy().copy()))
    wp.launch(descend, dim=8, inputs=[conductivity, conductivity.grad, 0.05])
    tape.zero()

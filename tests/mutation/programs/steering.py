"""Learn the controls of a few walkers."""

import numpy as np
import warp as wp
import warp.optim
from mutation_kernels import effort, misfit, steer

START = globals().get("START", np.array([0.2, -0.1, 0.3, 0.15]))
STEPS = 4

history = []
control = wp.array(START, dtype=float, requires_grad=True)
goal = wp.array([1.0, 2.0, -1.0], dtype=float)
optimizer = warp.optim.SGD([control], lr=0.05)


def rollout(path, loss):
    for t in range(STEPS):
        wp.launch(steer, dim=3, inputs=[path[t], control, t], outputs=[path[t + 1]])
    wp.launch(misfit, dim=3, inputs=[path[-1], goal], outputs=[loss])
    wp.launch(effort, dim=STEPS, inputs=[control], outputs=[loss])


def new_path():
    begin = wp.array([0.5, 1.0, -0.7], dtype=float, requires_grad=True)
    path = [begin]
    for _ in range(STEPS):
        path.append(wp.zeros(3, dtype=float, requires_grad=True))
    return path


for _epoch in range(2):
    leaf = control.numpy().copy()
    path = new_path()
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        rollout(path, loss)
    tape.backward(loss)
    history.append((float(loss.numpy()[0]), leaf, control.grad.numpy().copy()))
    optimizer.step([control.grad])
    tape.zero()

"""Fit one hidden layer to a number."""

import numpy as np
import warp as wp
from mutation_kernels import activate, dense, readout, squared_error

START = globals().get("START", np.linspace(-0.6, 0.8, 12).reshape(3, 4))


class Layer:
    def __init__(self):
        self.w = wp.array(START, dtype=float, requires_grad=True)
        self.b = wp.array([0.1, -0.2, 0.3], dtype=float, requires_grad=True)
        self.z = wp.zeros(3, dtype=float, requires_grad=True)
        self.y = wp.zeros(3, dtype=float, requires_grad=True)

    def forward(self, x):
        wp.launch(dense, dim=3, inputs=[x, self.w, self.b], outputs=[self.z])
        wp.launch(activate, dim=3, inputs=[self.z], outputs=[self.y])
        return self.y


history = []
layer = Layer()
x = wp.array([0.3, -0.4, 0.9, 0.2], dtype=float)
v = wp.array([0.7, -1.1, 0.5], dtype=float)
for _epoch in range(2):
    leaf = layer.w.numpy().copy()
    out = wp.zeros(1, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        y = layer.forward(x)
        wp.launch(readout, dim=3, inputs=[y, v], outputs=[out])
        wp.launch(squared_error, dim=1, inputs=[out, 0.4], outputs=[loss])
    tape.backward(loss)
    grad = layer.w.grad.numpy().copy()
    history.append((float(loss.numpy()[0]), leaf, grad))
    layer.w.assign(layer.w.numpy() - 0.1 * grad)
    tape.zero()

"""Find the exposure of a picture through a blur."""

import numpy as np
import warp as wp
from mutation_kernels import blend, blur, gain, misfit, scaled

START = globals().get("START", np.array([0.3]))
N = 12

history = []
exponent = wp.array(START, dtype=float, requires_grad=True)
picture = wp.array(np.abs(np.sin(np.arange(N))) + 0.2, dtype=float)
weight = wp.array([0.2, 0.6, 0.3], dtype=float)
vignette = wp.array(np.linspace(1.0, 0.6, N), dtype=float)
target = wp.array(np.linspace(0.4, 1.2, N), dtype=float)
bright = wp.zeros(N, dtype=float, requires_grad=True)
soft = wp.zeros(N, dtype=float, requires_grad=True)
softer = wp.zeros(N, dtype=float, requires_grad=True)
framed = wp.zeros(N, dtype=float, requires_grad=True)
mixed = wp.zeros(N, dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)
for _epoch in range(2):
    leaf = exponent.numpy().copy()
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(gain, dim=N, inputs=[picture, exponent], outputs=[bright])
        wp.launch(blur, dim=N, inputs=[bright, weight], outputs=[soft])
        wp.launch(blur, dim=N, inputs=[soft, weight], outputs=[softer])
        wp.launch(scaled, dim=N, inputs=[softer, vignette], outputs=[framed])
        wp.launch(blend, dim=N, inputs=[framed, bright], outputs=[mixed])
        wp.launch(misfit, dim=N, inputs=[mixed, target], outputs=[loss])
    tape.backward(loss)
    history.append((float(loss.numpy()[0]), leaf, exponent.grad.numpy().copy()))
    exponent.assign(exponent.numpy() - 0.01 * exponent.grad.numpy())
    tape.zero()

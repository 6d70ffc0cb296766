"""A fit of a field's start through a rollout, in sizes that the command line gives: what the engine's cost is told on.

    python training_program.py [--iterations N] [--steps N] [--size N] [--gradcheck]

``--gradcheck`` hands the same objective to ``wp.autograd.gradcheck`` instead of training.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
import warp as wp
import warp.autograd

DEVICE = "cpu"


@wp.kernel
def advance(before: wp.array(dtype=float), after: wp.array(dtype=float)):
    i = wp.tid()
    n = before.shape[0]
    left = before[wp.max(i - 1, 0)]
    right = before[wp.min(i + 1, n - 1)]
    u = before[i]
    after[i] = u + 0.01 * (left - 2.0 * u + right) - 0.001 * u * u * u


@wp.kernel
def misfit(field: wp.array(dtype=float), target: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = field[i] - target[i]
    wp.atomic_add(loss, 0, d * d)


@wp.kernel
def descend(start: wp.array(dtype=float), gradient: wp.array(dtype=float), rate: float):
    i = wp.tid()
    start[i] = start[i] - rate * gradient[i]


def rollout(states: list[wp.array], target: wp.array, loss: wp.array) -> wp.array:
    for before, after in itertools.pairwise(states):
        wp.launch(advance, dim=before.shape[0], inputs=[before], outputs=[after], device=DEVICE)
    wp.launch(misfit, dim=target.shape[0], inputs=[states[-1], target], outputs=[loss], device=DEVICE)
    return loss


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--gradcheck", action="store_true")
    options = parser.parse_args()

    where = np.linspace(0.0, 1.0, options.size, dtype=np.float32)
    start = wp.array(np.sin(3.0 * where), dtype=float, requires_grad=True, device=DEVICE)
    target = wp.array(np.cos(2.0 * where), dtype=float, device=DEVICE)
    states = [start, *(wp.zeros_like(start, requires_grad=True) for _ in range(options.steps))]
    loss = wp.zeros(1, dtype=float, requires_grad=True, device=DEVICE)

    if options.gradcheck:

        def objective(leaf: wp.array) -> wp.array:
            loss.zero_()
            return rollout([leaf, *states[1:]], target, loss)

        warp.autograd.gradcheck(objective, inputs=[start], raise_exception=False, show_summary=False)
        return
    for iteration in range(options.iterations):
        loss.zero_()
        with wp.Tape() as tape:
            rollout(states, target, loss)
        tape.backward(loss)
        wp.launch(descend, dim=options.size, inputs=[start, start.grad, 0.01], device=DEVICE)
        tape.zero()
        if iteration % 10 == 0:
            print(iteration, loss.numpy()[0])


if __name__ == "__main__":
    main()

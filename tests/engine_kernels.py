"""Kernels for programs that the engine judges: one module, so that all tests share one build."""

import warp as wp


@wp.struct
class State:
    q: wp.array(dtype=float)
    v: wp.array(dtype=float)


@wp.kernel
def swing(q: wp.array(dtype=float), q_out: wp.array(dtype=float)):
    i = wp.tid()
    q_out[i] = q[i] + 0.3 * wp.sin(2.0 * q[i])


@wp.kernel
def driven(q: wp.array(dtype=float), gain: wp.array(dtype=float), q_out: wp.array(dtype=float)):
    i = wp.tid()
    q_out[i] = q[i] + gain[0] * wp.sin(2.0 * q[i])


@wp.kernel
def scale(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    b[i] = 0.5 * a[i]


@wp.kernel
def square(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    b[i] = a[i] * a[i]


@wp.kernel
def accumulate(a: wp.array(dtype=float), total: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(total, i, a[i] * a[i])


@wp.kernel
def loss_of(a: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (a[i] - 0.5) * (a[i] - 0.5))


@wp.kernel
def weighted_loss(a: wp.array(dtype=float), weight: float, loss: wp.array(dtype=float)):
    wp.atomic_add(loss, 0, weight * a[wp.tid()])


@wp.kernel
def loss_of_both(a: wp.array(dtype=float), b: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, a[i] + b[i] * b[i])


@wp.kernel
def in_place(a: wp.array(dtype=float)):
    i = wp.tid()
    a[i] = a[i] / (1.0 + a[i])


@wp.kernel
def descend(x: wp.array(dtype=float), gradient: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] - 0.1 * gradient[i]


@wp.kernel
def drift(s: State, out: State):
    i = wp.tid()
    out.v[i] = s.v[i] - 0.2 * wp.sin(s.q[i])
    out.q[i] = s.q[i] + 0.2 * out.v[i]


@wp.kernel
def carry(a: wp.array(dtype=float), n: int, total: wp.array(dtype=float)):
    s = wp.float32(0.0)
    i = wp.int32(0)
    while i < n:
        s = s + a[i] * a[i]
        i = i + 1
    total[0] = s


@wp.kernel
def measured(
    a: wp.array(dtype=float), gain: wp.array(dtype=float), b: wp.array(dtype=float), most: wp.array(dtype=float)
):
    i = wp.tid()
    b[i] = gain[0] * a[i]
    wp.atomic_max(most, 0, b[i])


def ones(values, **options):
    """A float array of these values, with a gradient unless told otherwise."""
    return wp.array(values, dtype=float, **{"requires_grad": True, **options})


@wp.kernel
def stairs(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    b[i] = wp.floor(3.0 * a[i])


@wp.kernel
def root(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    b[i] = wp.where(a[i] > 0.0, wp.sqrt(a[i]), 0.0)


@wp.kernel
def bent(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    b[i] = wp.abs(a[i]) + 2.0 * a[i]


@wp.kernel
def climb(x: wp.array(dtype=float), gradient: wp.array(dtype=float), rate: float):
    i = wp.tid()
    x[i] = x[i] + rate * gradient[i]


OFFSET = 1.0e8
"""Beside it nothing that is added is left in single precision."""


@wp.kernel
def buried(a: wp.array(dtype=float), rate: float, b: wp.array(dtype=float)):
    i = wp.tid()
    b[i] = OFFSET + rate * wp.sin(a[i])


@wp.kernel
def buried_wrongly(a: wp.array(dtype=float), rate: float, b: wp.array(dtype=float)):
    i = wp.tid()
    b[i] = wp.sin(a[i])
    b[i] *= rate * a[i]
    b[i] = b[i] + OFFSET


@wp.kernel
def plate(field: wp.array(dtype=wp.vec2), phase: wp.array(dtype=float), out: wp.array(dtype=wp.vec2)):
    """Turns what comes from three neighbours: behind the last plate no phase changes what is bright."""
    i = wp.tid()
    n = field.shape[0]
    f = 0.6 * field[i] + 0.2 * field[(i + 1) % n] + 0.2 * field[(i + n - 1) % n]
    lit = wp.where(i % 4 == 3, 0.0, 1.0)
    c, s = wp.cos(phase[i]) * lit, wp.sin(phase[i]) * lit
    out[i] = wp.vec2(c * f[0] - s * f[1], s * f[0] + c * f[1])


@wp.kernel
def brightness_misfit(field: wp.array(dtype=wp.vec2), goal: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    e = wp.dot(field[i], field[i]) - goal[i]
    wp.atomic_add(loss, 0, e * e)


@wp.kernel
def combined(a: wp.array(dtype=float), b: wp.array(dtype=float), loss: wp.array(dtype=float)):
    loss[0] = 2.0 * a[0] + b[0]


@wp.kernel
def folded(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    if i % 2 == 0:
        b[i] = 0.5 * wp.sin(a[i]) + wp.abs(a[i])
    else:
        b[i] = 0.5 * wp.sin(a[i]) - wp.abs(-a[i])


@wp.kernel
def loss_of_halves(a: wp.array(dtype=wp.float16), loss: wp.array(dtype=float)):
    loss[0] = float(wp.float16(300.1) * a[0] + wp.float16(0.37) * a[1] + a[2])


@wp.kernel
def bent_loss_of_halves(a: wp.array(dtype=wp.float16), loss: wp.array(dtype=float)):
    loss[0] = float(a[0] * a[0] + wp.float16(0.37) * a[1] + a[2])


@wp.kernel
def evened(a: wp.array(dtype=float)):
    i = wp.tid()
    mean = 0.5 * (a[0] + a[1])
    a[i] = wp.where(i < 2 and wp.abs(a[i] - mean) > 2.0e-6, mean, a[i])

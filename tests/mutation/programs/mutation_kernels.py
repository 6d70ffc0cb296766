"""The kernels of all base programs: one module, built once for all mutants."""

import warp as wp

A = wp.array(dtype=float)
A2 = wp.array(dtype=float, ndim=2)


@wp.kernel
def conduct(u: A, conductivity: A, dt: float, out: A):
    i = wp.tid()
    left = wp.max(i - 1, 0)
    right = wp.min(i + 1, u.shape[0] - 1)
    flow = conductivity[i] * (u[left] - 2.0 * u[i] + u[right])
    out[i] = u[i] + dt * flow - 0.01 * u[i] * u[i]


@wp.kernel
def misfit(u: A, target: A, loss: A):
    i = wp.tid()
    d = u[i] - target[i]
    wp.atomic_add(loss, 0, d * d)


@wp.kernel
def descend(p: A, g: A, rate: float):
    i = wp.tid()
    p[i] = p[i] - rate * g[i]


@wp.kernel
def dense(x: A, w: A2, b: A, z: A):
    j = wp.tid()
    s = b[j]
    for k in range(4):
        s += w[j, k] * x[k]
    z[j] = s


@wp.kernel
def activate(z: A, y: A):
    j = wp.tid()
    y[j] = wp.tanh(z[j])


@wp.kernel
def readout(y: A, v: A, out: A):
    j = wp.tid()
    wp.atomic_add(out, 0, y[j] * v[j])


@wp.kernel
def squared_error(out: A, wanted: float, loss: A):
    d = out[0] - wanted
    wp.atomic_add(loss, 0, d * d)


@wp.struct
class Spring:
    rest: wp.array(dtype=float)
    stiffness: wp.array(dtype=float)


@wp.kernel
def pull(q: wp.array(dtype=wp.vec2), spring: Spring, force: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    d = q[i + 1] - q[i]
    length = wp.length(d)
    f = spring.stiffness[i] * (length - spring.rest[i]) * d / length
    wp.atomic_add(force, i, f)
    wp.atomic_sub(force, i + 1, f)


@wp.kernel
def advance(
    q: wp.array(dtype=wp.vec2),
    v: wp.array(dtype=wp.vec2),
    force: wp.array(dtype=wp.vec2),
    dt: float,
    q_next: wp.array(dtype=wp.vec2),
    v_next: wp.array(dtype=wp.vec2),
):
    i = wp.tid()
    moved = v[i] + dt * force[i] - 0.05 * dt * v[i] * wp.length(v[i])
    v_next[i] = moved
    q_next[i] = q[i] + dt * moved


@wp.kernel
def reach(q: wp.array(dtype=wp.vec2), goal: wp.vec2, loss: A):
    d = q[q.shape[0] - 1] - goal
    wp.atomic_add(loss, 0, wp.dot(d, d))


@wp.kernel
def blur(image: A, weight: A, out: A):
    i = wp.tid()
    s = 0.0
    for k in range(3):
        j = wp.clamp(i + k - 1, 0, image.shape[0] - 1)
        s += weight[k] * image[j]
    out[i] = s


@wp.kernel
def gain(image: A, exponent: A, out: A):
    i = wp.tid()
    out[i] = image[i] * wp.exp(exponent[0] * image[i])


@wp.kernel
def blend(a: A, b: A, out: A):
    i = wp.tid()
    out[i] = a[i] * (1.0 - 0.3 * b[i])


@wp.func
def softened(x: float, width: float):
    return wp.sqrt(x * x + width * width)


@wp.func_grad(softened)
def adj_softened(x: float, width: float, adj_ret: float):
    r = wp.sqrt(x * x + width * width)
    wp.adjoint[x] += adj_ret * x / r
    wp.adjoint[width] += adj_ret * width / r


@wp.func
def softened_wrongly(x: float, width: float):
    return wp.sqrt(x * x + width * width)


@wp.func_grad(softened_wrongly)
def adj_softened_wrongly(x: float, width: float, adj_ret: float):
    r = wp.sqrt(x * x + width * width)
    wp.adjoint[x] += 0.5 * adj_ret * x / r
    wp.adjoint[width] += adj_ret * width / r


@wp.kernel
def steer(position: A, control: A, step: int, out: A):
    i = wp.tid()
    out[i] = position[i] + 0.1 * wp.sin(position[i]) + control[step] * softened(position[i], 0.5)


@wp.kernel
def steer_wrongly(position: A, control: A, step: int, out: A):
    i = wp.tid()
    out[i] = position[i] + 0.1 * wp.sin(position[i]) + control[step] * softened_wrongly(position[i], 0.5)


@wp.kernel
def effort(control: A, loss: A):
    i = wp.tid()
    wp.atomic_add(loss, 0, 0.1 * control[i] * control[i])


@wp.kernel
def scaled(x: A, factor: A, out: A):
    i = wp.tid()
    out[i] = x[i] * factor[i]


@wp.kernel
def scaled_in_place(x: A, factor: A, out: A):
    i = wp.tid()
    out[i] = x[i]
    out[i] *= factor[i]


@wp.kernel
def overwritten(x: A, out: A):
    i = wp.tid()
    out[i] = 0.5 * x[i]

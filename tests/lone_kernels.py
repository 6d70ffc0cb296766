"""Kernels without a program, right and wrong ones, for the check of kernels alone. One module: one build."""
# ruff: noqa: UP018, RUF046 - a dynamic variable is declared by a call

from typing import Any

import warp as wp


@wp.struct
class State:
    q: wp.array(dtype=wp.vec3)
    mass: wp.array(dtype=float)
    dt: float


@wp.struct
class Body:
    position: wp.vec3
    weight: float
    identity: int


@wp.kernel
def multiply_element(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] *= x[0]


@wp.kernel
def divide_element(y: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    y[i] /= z[i]


@wp.kernel
def multiply_by_literal(y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] *= 2.5


@wp.kernel
def multiply_local(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    s = float(1.0)
    s *= x[i]
    s *= x[i + 1]
    y[i] = s


@wp.kernel
def multiply_component(x: wp.array(dtype=wp.float64), a: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    v = wp.vec3d(x[i], x[i] * wp.float64(2.0), wp.float64(1.0))
    v[0] *= a[i]
    y[i] = wp.dot(v, v)


@wp.kernel
def sine_in_place(y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.sin(y[i])


@wp.kernel
def scale_in_place(y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.5 * y[i]


@wp.kernel
def add_square(y: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    y[i] += z[i] * z[i]


@wp.kernel
def read_then_overwrite(y: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    t = y[i]
    z[i] = t * t
    y[i] = 0.5 * t


@wp.kernel
def sum_of_squares(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i] * x[i])


@wp.kernel
def positive_only(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.log(x[i]) + wp.sqrt(x[i])


@wp.kernel
def scatter(x: wp.array(dtype=float), index: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    y[index[i]] = wp.exp(x[i])


@wp.kernel
def shared_store(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[0] = x[i] * x[i]


@wp.kernel
def struct_fields(state: State, out: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    out[i] = state.q[i] * state.mass[i] * state.dt


@wp.kernel
def struct_field_in_place(state: State):
    i = wp.tid()
    state.q[i] = state.q[i] * wp.length(state.q[i])


@wp.kernel
def array_of_structs(bodies: wp.array(dtype=Body), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = wp.length(bodies[i].position) * bodies[i].weight


@wp.kernel
def hand_kept_index(x: wp.array(dtype=float), n: int, out: wp.array(dtype=float)):
    t = wp.tid()
    s = float(0.0)
    i = int(0)
    while i < n:
        s += x[i] * x[i]
        i += 1
    out[t] = s


@wp.kernel
def stencil(u: wp.array2d(dtype=float), v: wp.array2d(dtype=float), k: float):
    i, j = wp.tid()
    v[i, j] = u[i, j] + k * (u[i - 1, j] + u[i + 1, j] + u[i, j + 1] - 3.0 * u[i, j])


@wp.kernel
def flat_three(u: wp.array(dtype=float), w: int, h: int, out: wp.array(dtype=float)):
    i, j, k = wp.tid()
    n = (i * w + j) * h + k
    out[n] = wp.exp(u[n])


@wp.kernel
def rotations(
    t: wp.array(dtype=wp.transform),
    q: wp.array(dtype=wp.quat),
    m: wp.array(dtype=wp.mat33),
    p: wp.array(dtype=wp.vec3),
    out: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    out[i] = wp.transform_point(t[i], m[i] * wp.quat_rotate(q[i], p[i]))


@wp.kernel
def four_axes(a: wp.array4d(dtype=wp.float64), b: wp.array4d(dtype=wp.float64)):
    i, j, k, m = wp.tid()
    b[i, j, k, m] = wp.sin(a[m, k, j, i])


@wp.kernel
def stairs(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.floor(x[i] * 3.0)


@wp.kernel(module="unique")
def generic(x: wp.array(dtype=Any), c: Any, y: wp.array(dtype=Any)):
    i = wp.tid()
    y[i] = c * x[i] * x[i]


@wp.kernel(module="unique")
def generic_vectors(
    x: wp.array(dtype=wp.types.vector(length=Any, dtype=wp.Float)), c: wp.Float, y: wp.array2d(dtype=wp.Scalar)
):
    i, j = wp.tid()
    y[i, j] = c * wp.dot(x[i], x[j]) * x[i][0]


@wp.kernel(module="unique")
def generic_in_place(x: wp.array(dtype=Any), y: wp.array(dtype=Any)):
    i = wp.tid()
    y[i] *= x[i]


@wp.kernel(module="unique")
def generic_with_literals(x: wp.array(dtype=Any), y: wp.array(dtype=Any)):
    i = wp.tid()
    y[i] = 2.0 * x[i] * x[i] + 1.0


@wp.struct
class Mesh:
    points: wp.array(dtype=wp.vec3)
    edges: wp.array2d(dtype=int)
    bent: bool


@wp.struct
class World:
    mesh: Mesh
    gravity: wp.vec3


@wp.kernel
def nested_structs(world: World, energy: wp.array(dtype=float), lengths: wp.array(dtype=float)):
    i = wp.tid()
    d = world.mesh.points[world.mesh.edges[i, 0]] - world.mesh.points[world.mesh.edges[i, 1]]
    lengths[i] = wp.length_sq(d)
    wp.atomic_add(energy, 0, wp.dot(d, world.gravity))


@wp.kernel
def flagged(x: wp.array(dtype=float), squared: bool, mode: int, y: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i]
    if mode == 0:
        z[i] *= x[i]
    elif squared:
        z[i] = x[i] * x[i]


@wp.kernel
def counted(count: wp.array(dtype=int), x: wp.array(dtype=float), out: wp.array(dtype=float)):
    slot = wp.atomic_add(count, 0, 1)
    out[slot] = x[slot]


@wp.kernel
def guarded_division(p: wp.array(dtype=float), m: wp.array(dtype=float), v: wp.array(dtype=float)):
    i = wp.tid()
    v[i] = wp.where(m[i] != 0.0, p[i] / m[i], 0.0)


@wp.kernel
def larger(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float)):
    i = wp.tid()
    c[i] = wp.max(a[i], b[i])


@wp.kernel
def below_one(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.sqrt(1.0 - x[i] * x[i])


@wp.kernel
def two_outputs(
    q: wp.array(dtype=wp.quat),
    w: wp.array(dtype=wp.mat22),
    s: wp.mat22,
    out: wp.array(dtype=wp.vec2),
    turned: wp.array(dtype=wp.quat),
):
    i = wp.tid()
    v = wp.vec2(q[i][0], q[i][3])
    out[i] = s * w[i] * v
    turned[i] = wp.quat_inverse(q[i])


@wp.kernel
def half(x: wp.array(dtype=wp.float16), y: wp.array(dtype=wp.float16)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def integer_division(x: wp.array(dtype=float), n: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[7 % n[i]]


@wp.func
def cube(x: float):
    return x * x * x


@wp.func_grad(cube)
def adj_cube(x: float, ret: float):
    wp.adjoint[x] += 2.0 * x * ret


@wp.kernel
def custom_adjoint(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = cube(x[i])


@wp.kernel
def far_beyond(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i + 100000000] = x[i]


@wp.kernel
def a_little_beyond(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i + 100] = x[i]


@wp.kernel
def takes_mesh(mesh: wp.uint64, x: wp.array(dtype=wp.vec3), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = x[i][0]


@wp.kernel
def integers_only(x: wp.array(dtype=int)):
    i = wp.tid()
    x[i] = i


@wp.kernel(enable_backward=False)
def forward_only(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i]


class Solver:
    @wp.kernel
    def in_class(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = x[i] * x[i]


def factory(constant):
    @wp.kernel
    def made_in_factory(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = x[i] * constant

    return made_in_factory


if __name__ == "__main__":
    raise SystemExit("the main guard was opened")

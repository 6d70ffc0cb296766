"""Small kernels, of each way in which an adjoint may or may not read what the forward pass read.

test_kernels_measured.py analyses this file's text and runs it: both must name the same arrays.
"""

import warp as wp

real = wp.float64
Reals = wp.array(dtype=real)
Vectors = wp.array(dtype=wp.vec3d)
Integers = wp.array(dtype=int)


@wp.struct
class State:
    position: wp.array(dtype=wp.float64)
    stiffness: wp.array(dtype=wp.float64)
    step: wp.float64


@wp.func
def cubic(x: real, a: real):
    return a * x * x * x


@wp.func
def gathered(values: Reals, where: Integers, i: int):
    return wp.sin(values[where[i]])


@wp.func
def clipped(x: real):
    if x < real(0.5):
        return real(0.1) * x
    return x


@wp.func
def total(values: Reals, n: int):
    s = real(0.0)
    for k in range(n):
        s += values[k] * values[k]
    return s


@wp.kernel
def linear(a: Reals, b: Reals):
    i = wp.tid()
    b[i] = real(2.5) * a[i] - a[i] / real(3.0)


@wp.kernel
def bilinear(a: Reals, c: Reals, b: Reals):
    i = wp.tid()
    b[i] = c[i] * a[i]


@wp.kernel
def quotient(a: Reals, c: Reals, b: Reals):
    i = wp.tid()
    b[i] = a[i] / c[i]


@wp.kernel
def through_locals(a: Reals, c: Reals, b: Reals):
    i = wp.tid()
    shifted = a[i] + real(1.0)
    scaled = real(2.0) * shifted
    b[i] = wp.exp(scaled) + c[i]


@wp.kernel
def condition(a: Reals, mask: Reals, b: Reals):
    i = wp.tid()
    if mask[i] > real(0.9):
        b[i] = real(2.0) * a[i]
    else:
        b[i] = real(3.0) * a[i]


@wp.kernel
def ternary(a: Reals, mask: Integers, b: Reals):
    i = wp.tid()
    b[i] = a[i] if mask[i] > 1 else real(0.1) * a[i]


@wp.kernel
def selected(a: Reals, mask: Integers, b: Reals):
    i = wp.tid()
    b[i] = wp.where(mask[i] > 1, a[i], real(0.1) * a[i])


@wp.kernel
def gather(a: Reals, where: Integers, b: Reals):
    i = wp.tid()
    b[i] = real(2.0) * a[where[i]]


@wp.kernel
def scatter(a: Reals, where: Integers, b: Reals):
    i = wp.tid()
    b[where[i]] = real(2.0) * a[i]


@wp.kernel
def bound(a: Reals, count: Integers, b: Reals):
    i = wp.tid()
    s = real(0.0)
    for k in range(count[i]):
        s += real(2.0) * a[k]
    b[i] = s


@wp.kernel
def accumulated(a: Reals, c: Reals, b: Reals):
    i = wp.tid()
    b[i] += real(2.0) * a[i]
    wp.atomic_add(b, 0, c[i] * c[i])


@wp.kernel
def multiplied(c: Reals, b: Reals):
    i = wp.tid()
    b[i] *= c[i]


@wp.kernel
def extremes(a: Reals, c: Reals, d: Reals, b: Reals):
    i = wp.tid()
    b[i] = wp.min(a[i], c[i]) + wp.abs(d[i])


@wp.kernel
def clamped(a: Reals, lower: Reals, b: Reals):
    i = wp.tid()
    b[i] = wp.clamp(a[i], lower[i], lower[i] + real(1.5))


@wp.kernel
def remainder(a: Reals, b: Reals):
    i = wp.tid()
    b[i] = wp.mod(a[i], real(0.7))


@wp.kernel
def interpolated(a: Reals, c: Reals, t: Reals, b: Reals):
    i = wp.tid()
    b[i] = wp.lerp(a[i], c[i], t[i])


@wp.kernel
def rounded(a: Reals, c: Reals, b: Reals):
    i = wp.tid()
    b[i] = wp.floor(real(3.0) * a[i]) + real(2.0) * c[i]


@wp.kernel
def products(v: Vectors, w: Vectors, b: Reals):
    i = wp.tid()
    b[i] = wp.dot(v[i], wp.vec3d(real(1.0), real(2.0), real(3.0))) + w[i][1]


@wp.kernel
def crossed(v: Vectors, w: Vectors, out: Vectors):
    i = wp.tid()
    out[i] = wp.cross(v[i], w[i])


@wp.kernel
def components(v: Vectors, out: Vectors):
    i = wp.tid()
    p = v[i]
    q = wp.vec3d(real(2.0) * p[0], p.y, real(0.0))
    q[2] = p[0] + p[1]
    out[i] = q


@wp.kernel
def normalised(v: Vectors, out: Vectors):
    i = wp.tid()
    out[i] = wp.normalize(v[i])


@wp.kernel
def fields(state: State, b: Reals):
    i = wp.tid()
    b[i] = state.position[i] + state.step * state.stiffness[i]


@wp.kernel
def spring(state: State, b: Reals):
    i = wp.tid()
    b[i] = -state.stiffness[0] * state.position[i]


@wp.kernel
def called(a: Reals, c: Reals, where: Integers, b: Reals):
    i = wp.tid()
    b[i] = cubic(a[i], real(2.0)) + gathered(c, where, i)


@wp.kernel
def returned_early(a: Reals, b: Reals):
    i = wp.tid()
    b[i] = clipped(a[i])


@wp.kernel
def left_early(a: Reals, mask: Integers, b: Reals):
    i = wp.tid()
    if mask[i] > 1:
        return
    b[i] = real(2.0) * a[i]


@wp.kernel
def summed(a: Reals, c: Reals, b: Reals):
    i = wp.tid()
    b[i] = c[i] / total(a, 3)


@wp.kernel
def unrolled(a: Reals, c: Reals, b: Reals):
    i = wp.tid()
    s = real(1.0)
    for k in range(3):
        s *= a[k]
    b[i] = s + c[i]


@wp.kernel
def through_alias(a: Reals, c: Reals, b: Reals):
    i = wp.tid()
    other = a
    b[i] = wp.sin(other[i]) + c[i]

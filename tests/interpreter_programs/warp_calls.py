"""Ways of Warp to make, alias and pass arrays; each function ``sNN`` is one. Run on a tape."""

import numpy as np
import warp as wp
from warp import launch as fire

N = 2


@wp.struct
class State:
    q: wp.array(dtype=float)
    qd: wp.array(dtype=float)
    dt: float


@wp.kernel
def step(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    b[wp.tid()] = wp.sin(a[wp.tid()])


@wp.kernel
def step2(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float)):
    i, j = wp.tid()
    b[i, j] = wp.sin(a[i, j])


@wp.kernel
def stepv(a: wp.array(dtype=wp.vec3), s: float, b: wp.array(dtype=wp.vec3)):
    b[wp.tid()] = a[wp.tid()] * s


@wp.kernel
def move(s: State, t: State):
    t.q[wp.tid()] = s.q[wp.tid()] + s.dt * s.qd[wp.tid()]


def mk():
    return wp.zeros(N, dtype=float, requires_grad=True)


def go(a, b):
    wp.launch(step, dim=N, inputs=[a], outputs=[b])


def s01():
    s, t = State(), State()
    s.q, s.qd, s.dt = mk(), mk(), 0.1
    t.q = mk()
    t.qd = s.qd
    wp.launch(move, dim=N, inputs=[s, t])
    s, t = t, s
    wp.launch(move, dim=N, inputs=[s], outputs=[t])


def s02():
    x = mk()
    y = wp.zeros(N, dtype=float)
    z = wp.zeros_like(x)
    w = wp.empty_like(y)
    f = wp.full_like(x, 1.0)
    o = wp.ones_like(y, requires_grad=True)
    for a, b in ((x, y), (y, z), (z, w), (w, f), (f, o)):
        go(a, b)


def s03():
    x = mk()
    y = wp.clone(x)
    z = wp.clone(x, requires_grad=False)
    wp.copy(x, y)
    wp.copy(dest=z, src=x)
    x.assign(y)
    go(z, x)


def s04():
    x = wp.zeros((4, N), dtype=float, requires_grad=True)
    go(x[0], x[1])
    v = x.reshape((2, 4))
    go(v[0], x[3])
    go(x.flatten(), x[2])
    wp.launch(step2, dim=(2, N), inputs=[x[1:3]], outputs=[x[:2]])
    t = x.transpose()
    wp.launch(step2, dim=(2, 2), inputs=[t], outputs=[x])


def s05():
    x = mk()
    y = wp.array(ptr=x.ptr, shape=(N,), dtype=float, capacity=x.capacity)
    go(x, y)
    z = wp.array(ptr=x.ptr, shape=x.shape, dtype=float, grad=x.grad, requires_grad=True)
    go(z, x)


def s06():
    a = np.array([1.0, 2.0], dtype=np.float32)
    x = wp.array(a, dtype=float, requires_grad=True)
    y = wp.from_numpy(a, dtype=float)
    z = wp.from_numpy(a, dtype=float, requires_grad=True)
    w = wp.array(a, dtype=float, copy=False, device="cpu")
    u = wp.array(a, dtype=float, copy=False, device="cpu")
    go(x, y)
    go(y, z)
    go(z, w)
    go(w, u)


def s07():
    x = wp.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=wp.vec3, requires_grad=True)
    y = wp.zeros(2, dtype=wp.vec3)
    y.requires_grad = True
    wp.launch(stepv, dim=2, inputs=[x, 0.5], outputs=[y])
    wp.launch(stepv, 2, [y, 2.0, x])
    wp.launch(kernel=stepv, dim=(2,), inputs=(x, 1.0), outputs=(y,))
    fire(stepv, 2, inputs=[x, 1.0, y], record_tape=False)


def s08():
    x, y = mk(), mk()
    x.zero_()
    y.fill_(3.0)
    x.numpy()
    go(x, y)
    x.zero_()


def s09():
    x, y = mk(), mk()
    with wp.ScopedDevice("cpu"):
        with wp.ScopedTimer("x", active=False):
            go(x, y)
    with wp.ScopedTimer("y", active=False) as t, wp.ScopedDevice("cpu"):
        go(y, x)


def s10():
    x = wp.full(N, 2.0, dtype=float, requires_grad=True)
    y = wp.full(shape=(N,), value=1.0, dtype=wp.float32)
    z = wp.ones(N, dtype=wp.float32, requires_grad=True)
    e = wp.empty(shape=N, dtype=float)
    go(x, y)
    go(z, e)
    g = wp.array(np.zeros(N, dtype=np.float32), requires_grad=bool(1))
    go(g, x)


def s11():
    x = mk()
    y = wp.array(x, dtype=float, requires_grad=True)
    go(x, y)
    go(x.contiguous(), y)
    go(x.view(dtype=float), y.to("cpu"))


def s12():
    traj = wp.zeros((5, N), dtype=float, requires_grad=True)
    for t in range(4):
        go(traj[t], traj[t + 1])
    rows = [traj[t] for t in range(5)]
    for a, b in zip(rows, rows[1:]):
        go(a, b)


def s13():
    states = [State() for _ in range(3)]
    for s in states:
        s.q = wp.zeros(N, dtype=float, requires_grad=True)
        s.qd = wp.zeros(N, dtype=float, requires_grad=True)
        s.dt = 0.5
    for a, b in zip(states, states[1:]):
        wp.launch(move, dim=N, inputs=[a, b])
    states[0] = states[-1]
    wp.launch(move, dim=N, inputs=[states[0], states[1]])


def s14():
    ks = {"a": step, 3: stepv}
    mods = [k for k in ks.values()]
    wp.launch(mods[0], dim=N, inputs=[mk(), mk()])
    wp.launch(ks[3], dim=2, inputs=[wp.zeros(2, dtype=wp.vec3), 1.0, wp.zeros(2, dtype=wp.vec3)])


def s15():
    a = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
    tape2 = wp.Tape()
    a.grad.zero_()
    a.grad.fill_(1.0)
    g = a.grad
    b = mk()
    go(a, b)


tape = wp.Tape()
with tape:
    for name in sorted(k for k in globals() if k[0] == "s" and k[1:].isdigit()):
        globals()[name]()

# stores inside functions, which the backward pass runs again before it differentiates
from h import *
A = wp.array(dtype=F)
@wp.func
def step(x: F, c: A, i: int):
    c[i] = c[i] + x
    return x * x
@wp.func
def count(x: F, c: A, i: int):
    c[i] += x
    return x * x
@wp.func
def atomic(x: F, c: A, i: int):
    wp.atomic_add(c, i, x)
    return x * x
@wp.func
def put(x: F, c: A, i: int):
    c[i] = x + F(1.0)
    return x * x
@wp.func
def step_and_use(x: F, c: A, i: int):
    c[i] = c[i] + x
    return wp.sin(c[i])
@wp.func
def counted(x: F, c: A, i: int):
    c[i] += x
    return x * x
@wp.func_replay(counted)
def counted_once(x: F, c: A, i: int):
    return x * x
@wp.func
def add_to(v: F, l: A):
    wp.atomic_add(l, 0, v)
    return v
@wp.kernel
def k_step(x: A, c: A, y: A):
    i = wp.tid()
    t = step(x[i], c, i)
    y[i] = wp.sin(c[i]) + t
@wp.kernel
def k_count(x: A, c: A, y: A):
    i = wp.tid()
    t = count(x[i], c, i)
    y[i] = wp.sin(c[i]) + t
@wp.kernel
def k_atomic(x: A, c: A, y: A):
    i = wp.tid()
    t = atomic(x[i], c, i)
    y[i] = wp.sin(c[i]) + t
@wp.kernel
def k_put(x: A, c: A, y: A):
    i = wp.tid()
    t = put(x[i], c, i)
    y[i] = wp.sin(c[i]) + t
@wp.kernel
def k_put_then(x: A, c: A, y: A):
    i = wp.tid()
    t = put(x[i], c, i)
    c[i] = F(3.0) * c[i]
    y[i] = wp.sin(c[i]) + t
@wp.kernel
def k_linear(x: A, c: A, y: A):
    i = wp.tid()
    t = step(x[i], c, i)
    y[i] = F(2.0) * c[i] + t
@wp.kernel
def k_inside(x: A, c: A, y: A):
    i = wp.tid()
    y[i] = step_and_use(x[i], c, i)
@wp.kernel
def k_inline(x: A, c: A, y: A):
    i = wp.tid()
    c[i] = c[i] + x[i]
    y[i] = wp.sin(c[i])
@wp.kernel
def k_before(x: A, c: A, y: A):
    i = wp.tid()
    s = wp.sin(c[i] * x[i])
    t = count(x[i], c, i)
    y[i] = s + t
@wp.kernel
def k_counted(x: A, c: A, y: A):
    i = wp.tid()
    t = counted(x[i], c, i)
    y[i] = wp.sin(c[i]) + t
@wp.kernel
def ssq(b: A, l: A):
    i = wp.tid()
    wp.atomic_add(l, 0, b[i] * b[i])
@wp.kernel
def k_loss(x: A, l: A):
    i = wp.tid()
    v = add_to(x[i] * x[i], l)
def f(k):
    def q(x):
        c = arr((0.3, 0.2, 0.1)); y = zer(3); l = zer(1); wp.launch(k, 3, inputs=[x, c, y]); wp.launch(ssq, 3, inputs=[y, l]); return l
    return q
check("c[i] = c[i] + x in a function, then sin(c[i])", f(k_step))
check("c[i] += x in a function, then sin(c[i])", f(k_count))
check("atomic_add in a function, then sin(c[i])", f(k_atomic))
check("c[i] = x + 1 in a function, then sin(c[i])", f(k_put))
check("c[i] = x + 1 in a function, tripled in the kernel, then sin(c[i])", f(k_put_then))
check("c[i] = c[i] + x in a function, then 2 c[i]", f(k_linear))
check("c[i] = c[i] + x and sin(c[i]) in one function", f(k_inside))
check("c[i] = c[i] + x in the kernel, then sin(c[i])", f(k_inline))
check("sin(c[i] x), then c[i] += x in a function", f(k_before))
check("c[i] += x in a function with a replay without it, then sin(c[i])", f(k_counted))
def lo(x):
    l = zer(1); wp.launch(k_loss, 3, inputs=[x, l]); return l
check("atomic_add to the loss in a function", lo)
def twice():
    x = arr((.7, 1.3, -.4)); l = zer(1)
    with wp.Tape() as t: wp.launch(k_loss, 3, inputs=[x, l])
    a = float(l.numpy()[0]); t.backward(l); return dict(fwd=a, after=float(l.numpy()[0]))
probe("the loss that a function adds to, before and after backward", twice)

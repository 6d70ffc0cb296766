# What p20_tracker asks Warp's own tracker about, with the gradient: which of the writes are real
from h import *
A = wp.array(dtype=F)
@wp.kernel
def rd(a: A, l: A):
    i = wp.tid()
    wp.atomic_add(l, 0, wp.sin(a[i]))
@wp.kernel
def wr(a: A, b: A):
    i = wp.tid()
    b[i] = a[i] * a[i]
@wp.kernel
def wr2(b: A, v: F):
    i = wp.tid()
    b[i] = v
@wp.kernel
def at(a: A, b: A):
    i = wp.tid()
    wp.atomic_add(b, i, wp.sin(a[i]))
@wp.kernel
def aug(a: A, b: A):
    i = wp.tid()
    b[i] += wp.sin(a[i])
@wp.struct
class S:
    q: wp.array(dtype=F)
@wp.kernel
def srd(s: S, l: A):
    i = wp.tid()
    wp.atomic_add(l, 0, wp.sin(s.q[i]))
@wp.kernel
def swr(s: S):
    i = wp.tid()
    s.q[i] = F(1.0)
def W(fn):
    def f(x0):
        x = wp.clone(x0); l = zer(1); fn(x, arr([.2, .3, .4]), l); return l
    return f
def read(x, l, n=3): wp.launch(rd, n, inputs=[x, l])
def write(x, n=3, **k): wp.launch(wr2, n, inputs=[x, F(1.0)], **k)
def a1(x, y, l): read(x, l); write(x)
check("read then kernel write", W(a1))
def a2(x, y, l): read(x, l); wp.copy(x, y)
check("read then wp.copy", W(a2))
def a3(x, y, l): read(x, l); x.assign(y)
check("read then assign(warp array)", W(a3))
def a4(x, y, l): read(x, l); x.assign(np.ones(3))
check("read then assign(numpy)", W(a4))
def a5(x, y, l): read(x, l); x.zero_()
check("read then zero_()", W(a5))
def a5b(x, y, l): read(x, l); x.zero_(); write(x)
check("read, zero_(), then KERNEL write", W(a5b))
def a6(x, y, l): read(x, l); x.fill_(F(2.0))
check("read then fill_()", W(a6))
def a7(x, y, l): read(x, l); write(x, record_tape=False)
check("read then record_tape=False write", W(a7))
def a8(x, y, l): read(x[1:], l, 2); write(x)
check("view read then base written", W(a8))
def a9(x, y, l): read(x, l); write(x[1:], 2)
check("base read then view written", W(a9))
def a10(x, y, l):
    v = x[1:]; read(x, l); write(v, 2)
check("base read then PRE-MADE view written", W(a10))
def a11(x, y, l): read(x[0:1], l, 1); write(x[1:2], 1)
check("disjoint slices (benign)", W(a11))
def a12(x, y, l):
    al = wp.array(ptr=x.ptr, dtype=F, shape=(3,), device="cpu", requires_grad=True); read(x, l); write(al)
check("ptr alias written", W(a12))
def a13(x, y, l):
    tr = wp.zeros((3, 3), dtype=F, requires_grad=True); wp.copy(tr[0], x); wp.launch(wr, 3, inputs=[tr[0], tr[1]]); wp.launch(wr, 3, inputs=[tr[1], tr[2]]); read(tr[2], l)
check("2-D trajectory rows t[k]->t[k+1] (benign)", W(a13))
def a14(x, y, l): read(x, l); x.numpy()[:] = 0
check("numpy alias write", W(a14))
def a15(x, y, l):
    s = S(); s.q = x; wp.launch(srd, 3, inputs=[s, l]); wp.launch(swr, 3, inputs=[s])
check("struct array", W(a15))
def a16(x, y, l):
    s = S(); s.q = x; wp.launch(srd, 3, inputs=[s, l]); write(x)
check("read via struct, written as plain arg", W(a16))
def a17(x, y, l): read(x, l); wp.launch(at, 3, inputs=[y, x])
check("read then atomic_add onto it", W(a17))
def a18(x, y, l): read(x, l); wp.launch(aug, 3, inputs=[y, x])
check("read then += onto it", W(a18))
def fw(x):
    l = zer(1); read(x, l); return l
def outside(x):
    l = zer(1)
    with wp.Tape() as t: read(x, l)
    write(x); t.backward(l); return x.grad.numpy()
check("write after with-block before backward", fw, ad=outside)
def other(x):
    l = zer(1)
    with wp.Tape() as t: read(x, l)
    with wp.Tape() as t2: write(x)
    t.backward(l); return x.grad.numpy()
check("other tape writes before backward", fw, ad=other)
def after(x):
    l = zer(1)
    with wp.Tape() as t: read(x, l)
    t.backward(l)
    with wp.Tape() as t2: write(x)
    return x.grad.numpy()
check("other tape writes after backward (benign)", fw, ad=after)

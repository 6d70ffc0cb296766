# where the adjoint of a loop that a break leaves begins and ends; what a return or a continue does
from h import *
A = wp.array(dtype=F)
@wp.kernel
def at_start(x: A, n: int, l: A):
    s = F(0.0)
    for i in range(n):
        if x[i] < F(0.0):
            break
        s += x[i] * x[i]
    wp.atomic_add(l, 0, s)
@wp.kernel
def at_end(x: A, n: int, l: A):
    s = F(0.0)
    for i in range(n):
        s += x[i] * x[i]
        if x[i] < F(0.0):
            break
    wp.atomic_add(l, 0, s)
@wp.kernel
def inner(x: A, n: int, l: A):
    for k in range(n):
        s = F(0.0)
        for i in range(n):
            if x[i] < F(0.0):
                break
            s += x[i] * x[k]
        wp.atomic_add(l, 0, s)
@wp.kernel
def adding(x: A, n: int, l: A):
    for i in range(n):
        if x[i] < F(0.0):
            break
        wp.atomic_add(l, 0, x[i] * x[i])
@wp.kernel
def storing(x: A, n: int, y: A):
    for i in range(n):
        if x[i] < F(0.0):
            break
        y[i] = x[i] * x[i]
@wp.kernel
def returning(x: A, n: int, l: A):
    for i in range(n):
        if x[i] < F(0.0):
            return
        wp.atomic_add(l, 0, x[i] * x[i])
@wp.kernel
def returning_sum(x: A, n: int, l: A):
    s = F(0.0)
    for i in range(n):
        if x[i] < F(0.0):
            wp.atomic_add(l, 0, s)
            return
        s += x[i] * x[i]
    wp.atomic_add(l, 0, s)
@wp.func
def summed(x: A, n: int):
    s = F(0.0)
    for i in range(n):
        if x[i] < F(0.0):
            return s
        s += x[i] * x[i]
    return s
@wp.kernel
def returning_func(x: A, n: int, l: A):
    wp.atomic_add(l, 0, summed(x, n))
@wp.func
def first_negative(x: A, n: int):
    for i in range(n):
        if x[i] < F(0.0):
            return i
    return n
@wp.kernel
def counted_first(x: A, n: int, l: A):
    s = F(0.0)
    for i in range(first_negative(x, n)):
        s += x[i] * x[i]
    wp.atomic_add(l, 0, s)
@wp.kernel
def ssq(b: A, l: A):
    i = wp.tid()
    wp.atomic_add(l, 0, b[i] * b[i])
def k1(k, *e):
    def f(x):
        l = zer(1); wp.launch(k, 1, inputs=[x, *e, l]); return l
    return f
X = (0.7, -1.0, 1.3)
check("break at the start of the body", k1(at_start, 3), X)
check("break at the end of the body", k1(at_end, 3), X)
check("break from the inner loop", k1(inner, 3), X)
check("break from a loop that adds to an array", k1(adding, 3), X)
def st(x):
    y = zer(3); l = zer(1); wp.launch(storing, 1, inputs=[x, 3, y]); wp.launch(ssq, 3, inputs=[y, l]); return l
check("break from a loop that stores to an array", st, X)
check("break that is reached in the first iteration", k1(at_start, 3), (-0.7, 1.3, 1.0))
check("return from a loop that adds to an array", k1(returning, 3), X)
check("return from a loop, the sum used there", k1(returning_sum, 3), X)
check("return of the sum from a loop in a function", k1(returning_func, 3), X)
check("the end found by a function, then a loop up to it", k1(counted_first, 3), X)

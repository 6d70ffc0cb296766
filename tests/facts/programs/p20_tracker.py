import os; os.environ["VERIFY"] = "1"
from h import *
A = wp.array(dtype=F)
def mkk(name, body):
    return f"@wp.kernel\ndef {name}(a: A, b: A):\n    i = wp.tid()\n" + "".join("    " + l + "\n" for l in body.split("\n"))
B = {
 "left operand only: sin(a[i]) * 2": "b[i] = wp.sin(a[i]) * F(2.0)",
 "left operand only: a[i] * 2": "b[i] = a[i] * F(2.0)",
 "right operand: 2 * sin(a[i])": "b[i] = F(2.0) * wp.sin(a[i])",
 "both operands: a[i] * a[i]": "b[i] = a[i] * a[i]",
 "product then plus const: a[i]*a[i] + 1": "b[i] = a[i] * a[i] + F(1.0)",
 "(a*a)*c: left-nested": "b[i] = a[i] * a[i] * F(3.0)",
 "pow: a[i] ** 2": "b[i] = a[i] ** F(2.0)",
 "no binop: sin(a[i])": "b[i] = wp.sin(a[i])",
 "local first: t=a[i]; t*t": "t = a[i]\nb[i] = t * t",
 "if condition only": "if a[i] > F(0.0):\n    b[i] = F(1.0)",
 "dynamic loop": "s = F(0.0)\nfor j in range(i + 1):\n    s += a[j] * a[j]\nb[i] = s",
 "aug: s += sin(a[i])*c (left)": "s = F(0.0)\ns += wp.sin(a[i]) * F(2.0)\nb[i] = s",
 "via wp.func array arg": "b[i] = rdf(a, i)",
 "local alias: c = a; c[i]": "c = a\nb[i] = wp.sin(c[i])",
}
import tempfile, importlib.util
d = tempfile.mkdtemp(prefix="warp_facts_"); p = os.path.join(d, "gen20.py")
open(p, "w").write("import warp as wp\nF = wp.float64\nA = wp.array(dtype=F)\n@wp.func\ndef rdf(q: A, i: int):\n    return wp.sin(q[i])\n" + "\n".join(mkk(f"k{n}", b) for n, b in enumerate(B.values())))
sp = importlib.util.spec_from_file_location("gen20", p); m = importlib.util.module_from_spec(sp); sp.loader.exec_module(m)
@wp.kernel
def wr(a: A, b: A):
    i = wp.tid()
    b[i] = wp.sin(a[i])
@wp.kernel
def wr2(b: A, v: F):
    i = wp.tid()
    b[i] = v
@wp.kernel
def rd(a: A, l: A):
    i = wp.tid()
    wp.atomic_add(l, 0, wp.sin(a[i]))
for n, (name, b) in enumerate(B.items()):
    def f(n=n):
        x = arr([.7, 1.3, .4]); y = zer(3)
        with wp.Tape() as t: wp.launch(getattr(m, f"k{n}"), 3, inputs=[x, y])
        k = getattr(m, f"k{n}"); return dict(is_read=[a.is_read for a in k.adj.args], is_write=[a.is_write for a in k.adj.args], flag=x._is_read)
    probe("READ-FLAG " + name, f)
def W(fn):
    def g():
        x = arr([.7, 1.3, .4]); y = zer(3)
        with wp.Tape() as t: fn(x, y, t)
        return dict(n=len(t.launches), x_is_read=x._is_read)
    return g
def a1(x, y, t): wp.launch(rd, 3, inputs=[x, zer(1)]); wp.launch(wr2, 3, inputs=[x, F(1.0)])
probe("WARN read then kernel write", W(a1))
def a2(x, y, t): wp.launch(rd, 3, inputs=[x, zer(1)]); wp.copy(x, y)
probe("WARN read then wp.copy", W(a2))
def a3(x, y, t): wp.launch(rd, 3, inputs=[x, zer(1)]); x.assign(y)
probe("WARN read then assign(warp array)", W(a3))
def a4(x, y, t): wp.launch(rd, 3, inputs=[x, zer(1)]); x.assign(np.ones(3))
probe("WARN read then assign(numpy)", W(a4))
def a5(x, y, t): wp.launch(rd, 3, inputs=[x, zer(1)]); x.zero_()
probe("WARN read then zero_()", W(a5))
def a5b(x, y, t): wp.launch(rd, 3, inputs=[x, zer(1)]); x.zero_(); wp.launch(wr2, 3, inputs=[x, F(1.0)])
probe("WARN read, zero_(), then KERNEL write (flag was cleared by zero_)", W(a5b))
def a6(x, y, t): wp.launch(rd, 3, inputs=[x, zer(1)]); x.fill_(F(2.0))
probe("WARN read then fill_()", W(a6))
def a7(x, y, t): wp.launch(rd, 3, inputs=[x, zer(1)]); wp.launch(wr2, 3, inputs=[x, F(1.0)], record_tape=False)
probe("WARN read then record_tape=False write", W(a7))
def a8(x, y, t): wp.launch(rd, 2, inputs=[x[1:], zer(1)]); wp.launch(wr2, 3, inputs=[x, F(1.0)])
probe("WARN view read then base written", W(a8))
def a9(x, y, t): wp.launch(rd, 3, inputs=[x, zer(1)]); wp.launch(wr2, 2, inputs=[x[1:], F(1.0)])
probe("WARN base read then view written", W(a9))
def a10(x, y, t):
    v = x[1:]; wp.launch(rd, 3, inputs=[x, zer(1)]); wp.launch(wr2, 2, inputs=[v, F(1.0)])
probe("WARN base read then PRE-MADE view written", W(a10))
def a11(x, y, t): wp.launch(rd, 1, inputs=[x[0:1], zer(1)]); wp.launch(wr2, 1, inputs=[x[1:2], F(1.0)])
probe("WARN disjoint slices (false positive?)", W(a11))
def a12(x, y, t):
    al = wp.array(ptr=x.ptr, dtype=F, shape=(3,), device="cpu", requires_grad=True); wp.launch(rd, 3, inputs=[x, zer(1)]); wp.launch(wr2, 3, inputs=[al, F(1.0)])
probe("WARN ptr alias written", W(a12))
def a13(x, y, t):
    tr = wp.zeros((3, 3), dtype=F, requires_grad=True); wp.launch(wr, 3, inputs=[tr[0], tr[1]]); wp.launch(wr, 3, inputs=[tr[1], tr[2]])
probe("WARN 2-D trajectory rows t[k]->t[k+1] (false positive?)", W(a13))
def a14(x, y, t): wp.launch(rd, 3, inputs=[x, zer(1)]); x.numpy()[:] = 0
probe("WARN numpy alias write", W(a14))
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
def a15(x, y, t):
    s = S(); s.q = x; wp.launch(srd, 3, inputs=[s, zer(1)]); wp.launch(swr, 3, inputs=[s])
probe("WARN struct array", W(a15))
def a16(x, y, t):
    s = S(); s.q = x; wp.launch(srd, 3, inputs=[s, zer(1)]); wp.launch(wr2, 3, inputs=[x, F(1.0)])
probe("WARN read via struct, written as plain arg", W(a16))
@wp.kernel
def at(a: A, b: A):
    i = wp.tid()
    wp.atomic_add(b, i, wp.sin(a[i]))
@wp.kernel
def aug(a: A, b: A):
    i = wp.tid()
    b[i] += wp.sin(a[i])
def a17(x, y, t): wp.launch(rd, 3, inputs=[x, zer(1)]); wp.launch(at, 3, inputs=[y, x])
probe("WARN read then atomic_add onto it", W(a17))
def a18(x, y, t): wp.launch(rd, 3, inputs=[x, zer(1)]); wp.launch(aug, 3, inputs=[y, x])
probe("WARN read then += onto it", W(a18))
def outside():
    x = arr([.7, 1.3, .4]); l = zer(1)
    with wp.Tape() as t: wp.launch(rd, 3, inputs=[x, l])
    wp.launch(wr2, 3, inputs=[x, F(0.0)]); t.backward(l); return {}
probe("WARN write after with-block before backward", outside)
def crosstape():
    x = arr([.7, 1.3, .4]); l = zer(1)
    with wp.Tape() as t: wp.launch(rd, 3, inputs=[x, l])
    with wp.Tape() as t2: wp.launch(wr2, 3, inputs=[x, F(0.0)])
    return {}
probe("WARN other tape writes (first tape never ran backward)", crosstape)
def crosstape2():
    x = arr([.7, 1.3, .4]); l = zer(1)
    with wp.Tape() as t: wp.launch(rd, 3, inputs=[x, l])
    t.backward(l)
    with wp.Tape() as t2: wp.launch(wr2, 3, inputs=[x, F(0.0)])
    return {}
probe("WARN other tape writes after backward (flags cleared)", crosstape2)
def catch():
    r = {}
    x = arr([.7, 1.3, .4]); y = zer(3)
    with warnings.catch_warnings(record=True) as rec:
        warnings.simplefilter("always")
        with wp.Tape() as t: a1(x, y, t)
    r["catch_warnings_record_n"] = len(rec)
    with warnings.catch_warnings():
        warnings.simplefilter("error"); e = None
        try:
            x = arr([.7, 1.3, .4])
            with wp.Tape() as t: a1(x, y, t)
        except Exception as ex: e = type(ex).__name__
    r["simplefilter_error_raises"] = e
    class Lg:
        m = []
        def debug(s, m): pass
        def info(s, m): pass
        def warning(s, m, category=None, stacklevel=1): s.m.append((str(category), m[:60]))
        def error(s, m): pass
    if hasattr(wp, "set_logger"):
        lg = Lg(); wp.set_logger(lg); x = arr([.7, 1.3, .4])
        with wp.Tape() as t: a1(x, y, t)
        wp.set_logger(None); r["set_logger_got"] = lg.m
    old = getattr(wp.config, "log_level", None)
    if old is not None:
        wp.config.log_level = wp.LOG_ERROR; o = io.StringIO()
        with contextlib.redirect_stderr(o):
            x = arr([.7, 1.3, .4])
            with wp.Tape() as t: a1(x, y, t)
        wp.config.log_level = old; r["at_LOG_ERROR"] = o.getvalue()[:40]
    return r
probe("HOW warnings are emitted", catch)
def twice():
    o = []
    for _ in range(2):
        x = arr([.7, 1.3, .4]); y = zer(3)
        with wp.Tape() as t: a1(x, y, t)
    return {}
probe("WARN repeated? same text twice in default filter", twice)

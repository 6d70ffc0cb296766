from h import *
import math
f32 = wp.float32
A = wp.array(dtype=f32); V = wp.vec3; AV = wp.array(dtype=V); AQ = wp.array(dtype=wp.quat)
def s1(name, body):
    src = f"def {name}(x: wp.array(dtype=f32), y: wp.array(dtype=f32)):\n    i = wp.tid()\n    a = x[i]\n    y[i] = {body}\n"
    return src
SC = {
 "sqrt(a)": ("wp.sqrt(a)", [0.0, -1.0, 1e-12]), "sqrt(a*a)": ("wp.sqrt(a*a)", [0.0]), "cbrt(a)": ("wp.cbrt(a)", [0.0]), "1/a": ("1.0/a", [0.0]), "a/a": ("a/a", [0.0]),
 "log(a)": ("wp.log(a)", [0.0, -1.0]), "log2(a)": ("wp.log2(a)", [0.0]), "log10(a)": ("wp.log10(a)", [0.0]),
 "pow(a,2)": ("wp.pow(a, 2.0)", [0.0, -1.0]), "pow(a,0.5)": ("wp.pow(a, 0.5)", [0.0]), "pow(a,3)": ("wp.pow(a, 3.0)", [0.0, -2.0]), "pow(a,1)": ("wp.pow(a, 1.0)", [0.0]), "pow(2,a)": ("wp.pow(2.0, a)", [0.0]), "pow(0,a)": ("wp.pow(0.0, a)", [1.0]), "a**2.0": ("a**2.0", [0.0, -1.0]), "pow(a,a)": ("wp.pow(a, a)", [0.0]),
 "acos(a)": ("wp.acos(a)", [1.0, -1.0, 1.5]), "asin(a)": ("wp.asin(a)", [1.0, -1.0]), "atan2(a,0)": ("wp.atan2(a, 0.0)", [0.0]), "atan2(0,a)": ("wp.atan2(0.0, a)", [0.0]),
 "abs(a)": ("wp.abs(a)", [0.0]), "sign(a)": ("wp.sign(a)", [0.0, 0.7]), "max(a,0)": ("wp.max(a, 0.0)", [0.0]), "min(a,0)": ("wp.min(a, 0.0)", [0.0]), "max(a,a)": ("wp.max(a, a)", [0.5]), "clamp(a,0,1)": ("wp.clamp(a, 0.0, 1.0)", [0.0, 1.0, 2.0]),
 "tan(pi/2)": ("wp.tan(a)", [1.57079637]), "exp(a) overflow": ("wp.exp(a)", [100.0]), "tanh(a) big": ("wp.tanh(a)", [100.0]), "mod(a,1)": ("wp.mod(a, 1.0)", [0.3, 1.0]), "a%1": ("a % 1.0", [0.3]), "acosh(a)": ("wp.acosh(a)", [1.0]) , "atanh(a)": ("wp.atanh(a)", [1.0]), "floordiv": ("a // 2.0", [0.7]), "sinh": ("wp.sinh(a)", [0.0]),
 "where(a>0, sqrt(a), 0)": ("wp.where(a > 0.0, wp.sqrt(a), 0.0)", [0.0, -1.0]), "where(a!=0, 1/a, 0)": ("wp.where(a != 0.0, 1.0/a, 0.0)", [0.0]), "where softplus": ("wp.where(a > 20.0, a, wp.log(1.0 + wp.exp(a)))", [100.0]), "where(a>0, log(a), 0)": ("wp.where(a > 0.0, wp.log(a), 0.0)", [0.0, -1.0]),
 "where double": ("wp.where(a > 0.0, wp.sqrt(wp.where(a > 0.0, a, 1.0)), 0.0)", [0.0]), "ternary a>0": ("wp.sqrt(a) if a > 0.0 else 0.0", [0.0, -1.0]), "sqrt(max(a,0))": ("wp.sqrt(wp.max(a, 0.0))", [0.0, -1.0]), "sqrt(a+1e-6)": ("wp.sqrt(a + 1.0e-6)", [0.0]), "sqrt(a)*0": ("wp.sqrt(a) * 0.0", [0.0]), "acos(clamp)": ("wp.acos(wp.clamp(a, -1.0, 1.0))", [1.0, 1.5]),
 "round": ("wp.round(a)", [0.7]), "rint": ("wp.rint(a)", [0.7]), "floor": ("wp.floor(a)", [0.7]), "ceil": ("wp.ceil(a)", [0.7]), "trunc": ("wp.trunc(a)", [0.7]), "frac": ("wp.frac(a)", [0.7]), "float(int(a))": ("float(int(a))", [1.7]), "step(a)": ("wp.step(a)", [0.7]), "a*float(a>0)": ("a * float(a > 0.0)", [0.7]), "where(a>0,1,0)": ("wp.where(a > 0.0, 1.0, 0.0)", [0.7]), "a*floor(a)": ("a * wp.floor(a)", [2.3]), "smoothstep": ("wp.smoothstep(0.0, 1.0, a)", [0.5]),"wp.float32(wp.float64(a))": ("wp.float32(wp.float64(a)*wp.float64(a))", [0.7]), "f16 cast": ("wp.float32(wp.float16(a))", [0.7]), "nonzero": ("wp.nonzero(a)", [0.7]), "erf": ("wp.erf(a)", [0.3]), "lerp": ("wp.lerp(0.0, a, 0.5)", [0.3]),
 "randf+a": ("wp.randf(wp.rand_init(1, i)) * a", [0.3]), "noise": ("wp.noise(wp.uint32(1), a)", [0.3]),
}
VE = {
 "length(v)": "wp.length(v)", "length_sq(v)": "wp.length_sq(v)", "normalize(v)[0]": "wp.normalize(v)[0]", "sqrt(dot(v,v))": "wp.sqrt(wp.dot(v, v))", "v/length(v)": "(v / wp.length(v))[0]", "norm_l2": "wp.norm_l2(v)", "norm_l1": "wp.norm_l1(v)", "norm_huber": "wp.norm_huber(v)", "smooth_normalize": "wp.smooth_normalize(v)[0]", "norm_pseudo_huber": "wp.norm_pseudo_huber(v)", "where(len>0, normalize)": "wp.where(wp.length(v) > 0.0, wp.normalize(v)[0], 0.0)", "where(len>0, v/len)": "wp.where(wp.length(v) > 0.0, (v / wp.length(v))[0], 0.0)", "cross.length": "wp.length(wp.cross(v, v))", "dot": "wp.dot(v, v)", "acos(dot/len)": "wp.acos(wp.dot(v, v) / (wp.length(v) * wp.length(v)))", "min(v)": "wp.min(v)",
}
mods = []
import importlib.util, tempfile
def build(srcs):
    d = tempfile.mkdtemp(prefix="warp_facts_"); p = os.path.join(d, "gen10.py")
    with open(p, "w") as fh: fh.write("import warp as wp\nf32 = wp.float32\nV=wp.vec3\n" + "\n".join(srcs))
    sp = importlib.util.spec_from_file_location("gen10_%d" % len(mods), p); m = importlib.util.module_from_spec(sp); sp.loader.exec_module(m); mods.append(m); return m
names = {}
src = []
for k, (n, (b, _)) in enumerate(SC.items()):
    names[n] = f"k{k}"; src.append("@wp.kernel\n" + s1(f"k{k}", b))
vsrc = []
for k, (n, b) in enumerate(VE.items()):
    names[n] = f"v{k}"; vsrc.append(f"@wp.kernel\ndef v{k}(x: wp.array(dtype=V), y: wp.array(dtype=f32)):\n    i = wp.tid()\n    v = x[i]\n    y[i] = {b}\n")
def has(b):
    import re
    return all(hasattr(wp, t) or t in ("float32", "float64") for t in re.findall(r"wp\.([a-z_0-9]+)", b))
ok = [s for s in src if has(s.split("y[i] =")[1])]
SAMPLES = [-1.7, -0.6, 0.3, 0.9, 1.6]
def value(k, x, dtype=f32):
    y = wp.zeros(len(x), dtype=f32); wp.launch(k, len(x), inputs=[wp.array(x, dtype=dtype), y]); return y.numpy().astype(float)
def slopes(k, x, dtype=f32):
    x = np.asarray(x, dtype=np.float32); y = wp.zeros(len(x), dtype=f32, requires_grad=True); a = wp.array(x, dtype=dtype, requires_grad=True)
    with wp.Tape() as t: wp.launch(k, len(x), inputs=[a, y])
    t.backward(grads={y: wp.ones_like(y)}); return a.grad.numpy().astype(float)
def sides(k, x, dtype=f32):
    """One-sided differences at each point and in each component: [[left, right] of step 1e-2, the same of step 2.5e-3]."""
    x = np.asarray(x, dtype=np.float32); rows = x.reshape(len(x), -1); r = []
    for e in (1e-2, 2.5e-3):
        left, right = np.zeros(rows.shape), np.zeros(rows.shape); v = value(k, x, dtype)
        for c in range(rows.shape[1]):
            for s, to in ((-e, left), (e, right)):
                p = rows.copy(); p[:, c] += s; to[:, c] = (value(k, p.reshape(x.shape), dtype) - v) / s
        r.append([left.ravel(), right.ravel()])
    return [[[str(q) for q in side] for side in pair] for pair in r]
def run_s(m, n, vals):
    def f():
        k = getattr(m, names[n]); x = wp.array(vals, dtype=f32, requires_grad=True); y = wp.zeros(len(vals), dtype=f32, requires_grad=True)
        with wp.Tape() as t: wp.launch(k, len(vals), inputs=[x, y])
        t.backward(grads={y: wp.ones_like(y)}); return dict(at=vals, val=[str(q) for q in y.numpy()], grad=[str(q) for q in x.grad.numpy()], sides=sides(k, vals), slopes=[str(q) for q in slopes(k, SAMPLES)])
    probe(n, f)
try:
    m = build(ok); k0 = getattr(m, "k0")
    wp.load_module(m, device="cpu") if False else None
except Exception as e:
    emit("build", exc=str(e))
# if one kernel fails to compile, isolate
def safe(n, b, vals):
    run_s(m, n, vals)
first = True
for n, (b, vals) in SC.items():
    if not has(b): emit(n, exc="builtin missing in this version"); continue
    safe(n, b, vals)
mv = build([v for v in vsrc if has(v.split("y[i] =")[1])])
for n, b in VE.items():
    if not has(b): emit(n, exc="builtin missing in this version"); continue
    def f(n=n):
        k = getattr(mv, names[n]); x = wp.array([[0., 0., 0.], [3e-24, 0, 0]], dtype=V, requires_grad=True); y = wp.zeros(2, dtype=f32, requires_grad=True)
        with wp.Tape() as t: wp.launch(k, 2, inputs=[x, y])
        t.backward(grads={y: wp.ones_like(y)}); return dict(at=[[0., 0., 0.]], val=[str(q) for q in y.numpy()], grad=[str(q) for q in x.grad.numpy()[0]], grad_tiny=[str(q) for q in x.grad.numpy()[1]], sides=sides(k, [[0., 0., 0.]], V), slopes=[str(q) for q in slopes(k, [[.3, -.8, 1.2], [-1., .4, .1]], V).ravel()])
    probe(n + " at 0", f)

"""Tiny harness: AD (tape) vs central FD, JSON line per case."""
import contextlib, io, json, os, sys, traceback, warnings
import numpy as np
import warp as wp
VERIFY = os.environ.get("VERIFY", "0") == "1"
wp.config.verify_autograd_array_access = VERIFY
if hasattr(wp.config, "log_level"):
    wp.config.log_level = wp.LOG_DEBUG if os.environ.get("DBG") == "1" else wp.LOG_WARNING
else:
    wp.config.quiet = True
    wp.config.verbose = os.environ.get("DBG") == "1"
if hasattr(wp.config, "optimization_level"):
    wp.config.optimization_level = 0   # only for the speed of builds
ONLY = os.environ.get("ONLY")
F = wp.float64
SCRIPT = os.path.basename(sys.argv[0]).replace(".py", "")
wp.init()

@contextlib.contextmanager
def cap():
    o = io.StringIO()
    old = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = o
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            yield o
    finally:
        sys.stdout, sys.stderr = old

def emit(case, **kw):
    d = dict(v=wp.config.version, verify=VERIFY, script=SCRIPT, case=case)
    d.update(kw)
    sys.__stdout__.write(json.dumps(d, default=lambda o: np.asarray(o).tolist()) + "\n")
    sys.__stdout__.flush()

def arr(v, dtype=F, rg=True, **k):
    return wp.array(np.asarray(v), dtype=dtype, requires_grad=rg, device="cpu", **k)
def zer(n, dtype=F, rg=True, **k):
    return wp.zeros(n, dtype=dtype, requires_grad=rg, device="cpu", **k)

def fd(fwd, x0, dtype, eps):
    x0 = np.asarray(x0, dtype=float); g = np.zeros(x0.size); fl = x0.ravel()
    for i in range(fl.size):
        r = []
        for s in (1, -1):
            p = fl.copy(); p[i] += s * eps
            r.append(float(np.sum(fwd(arr(p.reshape(x0.shape), dtype)).numpy().astype(float))))
        g[i] = (r[0] - r[1]) / (2 * eps)
    return g

def rnd(a): return [float("%.6g" % t) for t in np.asarray(a, dtype=float).ravel()]

_pre = []
def preload():
    if _pre: return
    _pre.append(1)
    def f():
        wp.force_load(device="cpu", modules=[wp.get_module("__main__")])
    o = io.StringIO()
    try:
        with cap() as o: f()
        emit("<<module build>>", buildwarn=o.getvalue().strip()[:12000], ok=True)
    except BaseException as e:
        emit("<<module build>>", exc=f"{type(e).__name__}: {e}"[:800], buildwarn=o.getvalue().strip()[:12000])

def check(case, fwd, x0=(0.7, 1.3, -0.4), dtype=F, eps=(1e-4, 1e-6), ad=None, note=""):
    """fwd(x)->loss array. ad(x)->grad ndarray overrides the default single-tape AD."""
    if ONLY and ONLY not in case: return
    preload()
    w = ""
    try:
        with cap() as o:
            x = arr(x0, dtype)
            if ad is None:
                tape = wp.Tape()
                with tape:
                    loss = fwd(x)
                tape.backward(loss)
                g = x.grad.numpy().ravel().astype(float)
            else:
                g = np.asarray(ad(x), dtype=float).ravel()
        w = o.getvalue()
        with cap():
            if dtype is not F: eps = (1e-2, 1e-3)
            fds = [fd(fwd, x0, dtype, e) for e in eps]
        f = fds[-1]; tol = 1e-5 if dtype is F else 5e-2
        scale = max(np.max(np.abs(f)), 1e-12)
        fdspread = float(np.max(np.abs(fds[0] - fds[1])) / scale)
        err = float(np.max(np.abs(g - f)) / scale) if np.all(np.isfinite(g)) else float("inf")
        emit(case, ok=bool(err < max(tol, 20 * fdspread if fdspread < 1e-3 else tol)), ad=rnd(g), fd=rnd(f), rel=float("%.3g" % err), fdspread=float("%.2g" % fdspread), warn=w.strip()[:600], note=note)
    except BaseException as e:
        emit(case, ok=None, exc=f"{type(e).__name__}: {e}"[:600], warn=w.strip()[:600], tb=traceback.format_exc()[-300:], note=note)

def probe(case, fn):
    """free-form: fn() returns dict."""
    if ONLY and ONLY not in case: return
    o = io.StringIO()
    try:
        with cap() as o:
            r = fn()
        emit(case, warn=o.getvalue().strip()[:900], **(r or {}))
    except BaseException as e:
        emit(case, exc=f"{type(e).__name__}: {e}"[:500], warn=o.getvalue().strip()[:900])

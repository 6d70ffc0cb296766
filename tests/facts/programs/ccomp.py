"""Compile-time cases: each snippet runs in its own process with its own cache; we count module builds from Warp's own load lines."""
import os, re, subprocess, sys, tempfile, json, shutil, time
PY = sys.executable; only = sys.argv[1] if len(sys.argv) > 1 else None; RUN = sys.argv[2] if len(sys.argv) > 2 else None
PRE = '''
import os, sys
import warp as wp, numpy as np
wp.init()
def go(k, *a, n=1, **kw): wp.launch(k, n, inputs=list(a), device="cpu", **kw)
def f32(n=1): return wp.zeros(n, dtype=wp.float32, device="cpu")
'''
C = {}
def case(name, code, pre=PRE, repeat=1, env=None): C[name] = (pre, code, repeat, env or {})
K = '''
@wp.kernel
def {n}(x: wp.array(dtype=wp.float32)):
    x[0] = x[0] + {v}
'''
case("C1 two kernels defined first, then both launched", K.format(n="a", v=1.0) + K.format(n="b", v=2.0) + "go(a, f32()); go(b, f32())\n")
case("C1 define a, launch, define b, launch (same module)", K.format(n="a", v=1.0) + "go(a, f32())\n" + K.format(n="b", v=2.0) + "go(b, f32()); go(a, f32())\n")
case("C1 four kernels interleaved define/launch", "".join(K.format(n=f"k{i}", v=float(i)) + f"go(k{i}, f32())\n" for i in range(4)))
case("C1 kernel defined in function called 3x, identical body", '''
def run(x):
    @wp.kernel
    def k(x: wp.array(dtype=wp.float32)):
        x[0] = x[0] + 1.0
    go(k, x)
for _ in range(3): run(f32())
''')
case("C1 kernel defined in loop with captured constant changing (3 values)", '''
for c in (1.0, 2.0, 3.0):
    @wp.kernel
    def k(x: wp.array(dtype=wp.float32)):
        x[0] = x[0] + c
    go(k, f32())
''')
case("C1 factory closure, 3 values created up front, then launched", '''
def mk(c):
    @wp.kernel
    def k(x: wp.array(dtype=wp.float32)):
        x[0] = x[0] + c
    return k
ks = [mk(c) for c in (1.0, 2.0, 3.0)]
for k in ks: go(k, f32())
''')
case("C1 factory closure, created+launched one by one, kept", '''
def mk(c):
    @wp.kernel
    def k(x: wp.array(dtype=wp.float32)):
        x[0] = x[0] + c
    return k
ks = []
for c in (1.0, 2.0, 3.0):
    ks.append(mk(c)); go(ks[-1], f32())
''')
case("C1 factory closure, same value 3x, kept", '''
def mk(c):
    @wp.kernel
    def k(x: wp.array(dtype=wp.float32)):
        x[0] = x[0] + c
    return k
ks = []
for c in (1.0, 1.0, 1.0):
    ks.append(mk(c)); go(ks[-1], f32())
''')
case("C1 new @wp.func after load, unused", K.format(n="a", v=1.0) + "go(a, f32())\n@wp.func\ndef foo(q: float):\n    return q * 2.0\ngo(a, f32())\n")
case("C1 new @wp.struct after load, unused", K.format(n="a", v=1.0) + "go(a, f32())\n@wp.struct\nclass S:\n    q: float\ngo(a, f32())\n")
case("C1 wp.map(lambda) first use then another lambda", "x = wp.zeros(3, dtype=float)\nwp.map(wp.sin, x); wp.map(wp.cos, x); wp.map(wp.sin, x)\n")
case("C1 wp.map python lambda in a loop (same lambda text, 3x)", "x = wp.zeros(3, dtype=float)\nfor i in range(3): wp.map(lambda a: a * 2.0, x)\n")
case("C1 wp.map lambda capturing changing value, 3x", "x = wp.zeros(3, dtype=float)\nfor i in range(3):\n    c = float(i)\n    wp.map(lambda a: a * c, x)\n")
case("C1 array operators x+y, x*y, -x", "x = wp.zeros(3, dtype=float)\ny = x + x; y = x * x; y = -x; y = x + x\n")
for opt, val in dict(fast_math="True", max_unroll="4", enable_backward="False", mode="'debug'", block_dim="64", lineinfo="True").items():
    case(f"C3 set_module_options({opt}) after load", K.format(n="a", v=1.0) + f"go(a, f32())\nwp.set_module_options({{'{opt}': {val}}})\ngo(a, f32())\n")
case("C3 set_module_options with SAME value after load", K.format(n="a", v=1.0) + "go(a, f32())\nwp.set_module_options({'max_unroll': 16})\ngo(a, f32())\n")
case("C3 options before load", K.format(n="a", v=1.0) + "wp.set_module_options({'fast_math': True})\ngo(a, f32())\n")
case("C3 get_module(..).options[...] = after load", K.format(n="a", v=1.0) + "go(a, f32())\nwp.get_module(__name__).options['max_unroll'] = 4\ngo(a, f32())\n")
case("C4 4 kernels each module='unique' at module scope", "".join(K.format(n=f"k{i}", v=float(i)).replace("@wp.kernel", "@wp.kernel(module='unique')") for i in range(4)) + "".join(f"go(k{i}, f32())\n" for i in range(4)))
case("C4 4 kernels in one module", "".join(K.format(n=f"k{i}", v=float(i)) for i in range(4)) + "".join(f"go(k{i}, f32())\n" for i in range(4)))
case("C5 launch block_dim 64,128,256 on CPU", K.format(n="a", v=1.0) + "for b in (64,128,256): go(a, f32(), block_dim=b)\n")
case("C5 launch block_dim 64,128 on CPU with enable_cpu_blocks", "wp.config.enable_cpu_blocks = True\n" + K.format(n="a", v=1.0) + "for b in (64,128): go(a, f32(), block_dim=b)\n")
G = '''
from typing import Any
@wp.kernel
def g(x: wp.array(dtype=Any)):
    x[0] = x[0] + x[0]
'''
case("C6 generic kernel launched with f32, f64, i32", G + "for t in (wp.float32, wp.float64, wp.int32): go(g, wp.zeros(1, dtype=t))\n")
case("C6 generic kernel with wp.overload for 3 types before first launch", G + "o = [wp.overload(g, [wp.array(dtype=t)]) for t in (wp.float32, wp.float64, wp.int32)]\nfor t in (wp.float32, wp.float64, wp.int32): go(g, wp.zeros(1, dtype=t))\n")
case("C6 generic kernel f32 launched 3x", G + "for _ in range(3): go(g, f32())\n")
case("C6 generic @wp.func only (kernel concrete), 2 kernels", "from typing import Any\n@wp.func\ndef tw(a: Any):\n    return a + a\n" + K.format(n="a", v="tw(1.0)") + "go(a, f32())\n")
U = '''
def mk(c):
    @wp.kernel(module="unique")
    def k(x: wp.array(dtype=wp.float32)):
        x[0] = x[0] + c
    return k
'''
case("C7 unique factory, same value 3x (kept)", U + "ks = [mk(1.0) for _ in range(3)]\nfor k in ks: go(k, f32())\n")
case("C7 unique factory, same value 3x, created+launched+dropped in loop", U + "for _ in range(3): go(mk(1.0), f32())\n")
case("C7 unique factory, 3 different values", U + "for c in (1.0, 2.0, 3.0): go(mk(c), f32())\n")
case("C7 unique defined in loop, identical body", '''
for _ in range(3):
    @wp.kernel(module="unique")
    def k(x: wp.array(dtype=wp.float32)):
        x[0] = x[0] + 1.0
    go(k, f32())
''')
case("C7 unique via set option enable_backward=False same body as enable_backward True", '''
for eb in (True, False, True):
    @wp.kernel(module="unique", enable_backward=eb)
    def k(x: wp.array(dtype=wp.float32)):
        x[0] = x[0] + 1.0
    go(k, f32())
''')
case("C8 second process, same cache", K.format(n="a", v=1.0) + "go(a, f32())\n", repeat=2)
case("C8 wp.config.cache_kernels=False, 2 processes", "wp.config.cache_kernels = False\n" + K.format(n="a", v=1.0) + "go(a, f32())\n", repeat=2)
case("C8 clear_kernel_cache at top, 2 processes", "wp.clear_kernel_cache()\n" + K.format(n="a", v=1.0) + "go(a, f32())\n", repeat=2)
case("C8 kernel_cache_dir = mkdtemp BEFORE init, 2 processes", K.format(n="a", v=1.0) + "go(a, f32())\n", pre=PRE.replace("wp.init()", "import tempfile; wp.config.kernel_cache_dir = tempfile.mkdtemp(prefix='warp_facts_'); wp.init()"), repeat=2)
case("C8 kernel_cache_dir set AFTER init, 2 processes (does it take effect?)", "import tempfile; wp.config.kernel_cache_dir = tempfile.mkdtemp(prefix='warp_facts_')\n" + K.format(n="a", v=1.0) + "go(a, f32())\nprint('DIR', os.listdir(wp.config.kernel_cache_dir)[:2])\n", repeat=2)
case("C8 clear_kernel_cache between launches in one process", K.format(n="a", v=1.0) + "go(a, f32()); wp.clear_kernel_cache(); go(a, f32())\n")
case("C8 verify_autograd_array_access=True, 2 processes", "wp.config.verify_autograd_array_access = True\n" + K.format(n="a", v=1.0) + "go(a, f32())\n", repeat=2)
BIG = "\n".join(K.format(n=f"k{i}", v=f"wp.sin(x[0]*{i}.0)*wp.cos(x[0])*wp.exp(x[0])*wp.length(wp.vec3(x[0],x[0],{i}.0))") for i in range(20))
case("C9 20 kernels enable_backward default", BIG + "go(k0, f32())\n")
case("C9 20 kernels module option enable_backward False", "wp.set_module_options({'enable_backward': False})\n" + BIG + "go(k0, f32())\n")
def unroll(n, mu, bw=True):
    return f"wp.set_module_options({{'max_unroll': {mu}, 'enable_backward': {bw}}})\n" + f'''
@wp.kernel
def a(x: wp.array(dtype=wp.float32)):
    s = float(0.0)
    for i in range({n}):
        s = wp.sin(s) + x[i] * wp.cos(s)
    x[0] = s
go(a, f32({n}))
'''
for n, mu in ((64, 16), (64, 64), (256, 256), (1024, 1024)): case(f"C10 range({n}) max_unroll={mu}", unroll(n, mu))
case("C10 nested range(16)x3 levels at default 16", '''
@wp.kernel
def a(x: wp.array(dtype=wp.float32)):
    s = float(0.0)
    for i in range(10):
        for j in range(10):
            for k in range(10):
                s = wp.sin(s) + x[i]
    x[0] = s
go(a, f32(10))
''')
case("C11 wp.static with changing global, redefinition in loop", '''
def run(c):
    @wp.kernel
    def k(x: wp.array(dtype=wp.float32)):
        x[0] = x[0] + wp.static(c * 2.0)
    go(k, f32())
for c in (1.0, 2.0, 1.0): run(c)
''')
case("C11 exec f-string kernel 3x identical text (needs file)", '''
import tempfile, importlib.util
src = "import warp as wp\\n@wp.kernel\\ndef k(x: wp.array(dtype=wp.float32)):\\n    x[0] = x[0] + 1.0\\n"
for i in range(3):
    d = tempfile.mkdtemp(prefix="warp_facts_"); p = d + f"/gen{i}.py"; open(p, "w").write(src)
    s = importlib.util.spec_from_file_location(f"gen{i}", p); m = importlib.util.module_from_spec(s); s.loader.exec_module(m); go(m.k, f32())
''')
case("C11 same kernel object re-decorated in loop: k=wp.Kernel / wp.kernel(f)", '''
def f(x: wp.array(dtype=wp.float32)):
    x[0] = x[0] + 1.0
for _ in range(3):
    k = wp.kernel(f); go(k, f32())
''')
case("C11 global constant changed after load (python global float)", '''
G = wp.constant(1.0)
@wp.kernel
def a(x: wp.array(dtype=wp.float32)):
    x[0] = x[0] + G
x = f32(); go(a, x); G = wp.constant(5.0); go(a, x); print("VAL", x.numpy())
''')
case("C11 scalar passed as argument, 3 values (benign)", '''
@wp.kernel
def a(x: wp.array(dtype=wp.float32), c: float):
    x[0] = x[0] + c
for c in (1.0, 2.0, 3.0): go(a, f32(), c)
''')
case("C12 use_precompiled_headers default: 1 small module", K.format(n="a", v=1.0) + "go(a, f32())\n")
case("C12 use_precompiled_headers False: 1 small module", "wp.config.use_precompiled_headers = False\n" + K.format(n="a", v=1.0) + "go(a, f32())\n")
U5 = "".join(K.format(n=f"k{i}", v=float(i)).replace("@wp.kernel", "@wp.kernel(module='unique')") for i in range(5)) + "".join(f"go(k{i}, f32())\n" for i in range(5))
case("C12 pch default: 5 small modules", U5); case("C12 pch False: 5 small modules", "wp.config.use_precompiled_headers = False\n" + U5)
case("C13 force_load() with modules=None (how many modules?)", K.format(n="a", v=1.0) + "wp.force_load(device='cpu')\ngo(a, f32())\n")
case("C13 force_load() modules=None after import warp.fem + warp.sparse + warp.optim", "import warp.sparse, warp.optim, warp.fem\n" + K.format(n="a", v=1.0) + "import warp._src.context as c\nprint('REG', len(c.user_modules))\n")
case("C13 load_module own module only", K.format(n="a", v=1.0) + "wp.load_module(device='cpu')\ngo(a, f32())\n")
case("C13 5 unique modules parallel load max_workers=2 on CPU", "".join(K.format(n=f"k{i}", v=float(i)).replace("@wp.kernel", "@wp.kernel(module='unique')") for i in range(5)) + "wp.force_load(device='cpu', modules=[k.module for k in (k0,k1,k2,k3,k4)], max_workers=2)\n" + "".join(f"go(k{i}, f32())\n" for i in range(5)))

# in-process runner: one process per group, precompiled header built once; each case = its own module; builds counted at Module._compile
import importlib.util, io, contextlib, traceback
d0 = tempfile.mkdtemp(prefix="warp_facts_")
os.environ["WARP_CACHE_PATH"] = d0
import warp as wp
wp.config.log_level = wp.LOG_INFO
wp.init()
ctx = wp._src.context
wp.config.optimization_level = 0
defaults = {k: getattr(wp.config, k) for k in dir(wp.config) if not k.startswith("_") and isinstance(getattr(wp.config, k), (bool, int, str, type(None)))}
rx = re.compile(r"Module (\S+) (\S+) load on device '\S+' took ([\d.]+) ms\s+\((\w+)\)")
# warm-up: builds the PCH
p = d0 + "/warm.py"; open(p, "w").write("import warp as wp\n@wp.kernel\ndef w(x: wp.array(dtype=wp.float32)):\n    x[0] = 1.0\n")
sp = importlib.util.spec_from_file_location("warm_mod", p); m = importlib.util.module_from_spec(sp); sp.loader.exec_module(m)
t = time.time(); wp.launch(m.w, 1, inputs=[wp.zeros(1, dtype=float, device="cpu")], device="cpu"); print(json.dumps(dict(case="warm-up (first compile in process)", s=round(time.time() - t, 2))), flush=True)
def srcsize():
    n = 0
    for r, _, fs in os.walk(d0):
        for f in fs:
            if f.endswith(".cpp"): n += os.path.getsize(os.path.join(r, f))
    return n
for num, (name, (pre, code, rep, env)) in enumerate(C.items()):
    if only and not re.search(only, name): continue
    if rep > 1 or "C8" in name or "C12" in name or "C13" in name: continue
    mn = f"case_{num}"; p = f"{d0}/{mn}.py"; open(p, "w").write(pre + code)
    o = io.StringIO(); err = None; s0 = srcsize(); t = time.time()
    try:
        with contextlib.redirect_stdout(o), contextlib.redirect_stderr(o):
            sp = importlib.util.spec_from_file_location(mn, p); m = importlib.util.module_from_spec(sp); sys.modules[mn] = m; sp.loader.exec_module(m)
    except BaseException as e: err = f"{type(e).__name__}: {e}"[:300]
    for k, v in defaults.items():
        if getattr(wp.config, k) != v:
            setattr(wp.config, k, v)
    L = rx.findall(o.getvalue())
    print(json.dumps(dict(case=name, compiled=sum(x[3] == "compiled" for x in L), cached=sum(x[3] == "cached" for x in L), mods=[f"{x[0][-34:]}:{x[1]}:{round(float(x[2]))}ms:{x[3]}" for x in L][:9], src=srcsize() - s0, wall=round(time.time() - t, 2), extra=[l for l in o.getvalue().splitlines() if l.startswith(("VAL", "REG"))], err=err)), flush=True)
shutil.rmtree(d0, ignore_errors=True)

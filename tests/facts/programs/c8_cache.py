"""C8/C12/C13: separate processes (tiny program), count compiled/cached from Warp's load lines."""
import os, re, subprocess, sys, tempfile, json, shutil, time
PY = sys.argv[1]
PRE = '''import os, sys
import warp as wp, numpy as np
{cfg}
wp.config.optimization_level = 0
wp.init()
@wp.kernel
def a(x: wp.array(dtype=wp.float32)):
    x[0] = x[0] + 1.0
def f32(): return wp.zeros(1, dtype=wp.float32, device="cpu")
{body}
wp.launch(a, 1, inputs=[f32()], device="cpu")
{post}
'''
rx = re.compile(r"Module (\S+) (\S+) load on device '\S+' took ([\d.]+) ms\s+\((\w+)\)")
KK = "".join(f"@wp.kernel(module='unique')\ndef k{i}(x: wp.array(dtype=wp.float32)):\n    x[0] = x[0] + {i}.0\n" for i in range(5))
CASES = [
 ("C8 second process, same cache", "", "", "", 2),
 ("C8 cache_kernels=False", "wp.config.cache_kernels = False", "", "", 2),
 ("C8 clear_kernel_cache() at top", "", "wp.clear_kernel_cache()", "", 2),
 ("C8 kernel_cache_dir=mkdtemp before init", "import tempfile; wp.config.kernel_cache_dir = tempfile.mkdtemp(prefix='warp_facts_')", "", "", 2),
 ("C8 kernel_cache_dir=mkdtemp AFTER init", "", "import tempfile; wp.config.kernel_cache_dir = tempfile.mkdtemp(prefix='warp_facts_')", "print('DIR', os.listdir(wp.config.kernel_cache_dir)[:2])", 2),
 ("C8 clear_kernel_cache between launches in one process", "", "wp.launch(a, 1, inputs=[f32()], device='cpu'); wp.clear_kernel_cache()", "", 1),
 ("C8 verify_autograd_array_access=True", "wp.config.verify_autograd_array_access = True", "", "", 2),
 ("C12 pch default, 1 small module", "", "", "", 1), ("C12 pch False, 1 small module", "wp.config.use_precompiled_headers = False", "", "", 1),
 ("C12 pch default, 6 small modules", "", KK, "[wp.launch(k, 1, inputs=[f32()], device='cpu') for k in (k0,k1,k2,k3,k4)]", 1), ("C12 pch False, 6 small modules", "wp.config.use_precompiled_headers = False", KK, "[wp.launch(k, 1, inputs=[f32()], device='cpu') for k in (k0,k1,k2,k3,k4)]", 1),
 ("C13 5 unique modules force_load max_workers=2 CPU", "", KK + "wp.force_load(device='cpu', modules=[k.module for k in (k0,k1,k2,k3,k4)], max_workers=2)", "[wp.launch(k, 1, inputs=[f32()], device='cpu') for k in (k0,k1,k2,k3,k4)]; print('VAL ok')", 1),
 ("C13 modules registered by imports", "import warp.sparse, warp.optim, warp.fem, warp.utils", "import warp._src.context as c; print('REG', len(c.user_modules), sum(1 for m in c.user_modules.values() if m.kernels))", "", 1),
 ("C13 force_load(modules=None) tiny program, plain import warp: modules with kernels", "", "import warp._src.context as c; print('REG', len(c.user_modules), [n for n, m in c.user_modules.items() if m.kernels][:12])", "", 1),
]
only = sys.argv[2] if len(sys.argv) > 2 else None
for name, cfg, body, post, rep in CASES:
    if only and not re.search(only, name): continue
    d = tempfile.mkdtemp(prefix="warp_facts_"); p = d + "/prog.py"; open(p, "w").write(PRE.format(cfg=cfg, body=body, post=post)); runs = []
    for _ in range(rep):
        t = time.time(); q = subprocess.run([PY, p], capture_output=True, text=True, env=dict(os.environ, WARP_CACHE_PATH=d + "/cache"), timeout=300); m = rx.findall(q.stdout)
        import resource
        runs.append(dict(compiled=sum(x[3] == "compiled" for x in m), cached=sum(x[3] == "cached" for x in m), ms=[round(float(x[2])) for x in m], wall=round(time.time() - t, 1), rc=q.returncode, extra=[l[:300] for l in q.stdout.splitlines() if l.startswith(("DIR", "REG", "VAL"))], err=[l[:200] for l in q.stderr.splitlines() if "rror" in l][-2:]))
    print(json.dumps(dict(case=name, runs=runs)), flush=True); shutil.rmtree(d, ignore_errors=True)

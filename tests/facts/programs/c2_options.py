"""C2: for each wp.config attribute: does the change made at stage S reach the module? (1 process, PCH once)"""
import os, sys, json, tempfile, importlib.util, io, contextlib, re, time
d0 = tempfile.mkdtemp(prefix="warp_facts_"); os.environ["WARP_CACHE_PATH"] = d0
import warp as wp
wp.config.log_level = wp.LOG_INFO; wp.config.optimization_level = 0; wp.init()
ctx = wp._src.context; rx = re.compile(r"Module (\S+) (\S+) load on device '\S+' took ([\d.]+) ms\s+\((\w+)\)")
OPT = dict(max_unroll=4, enable_backward=False, lineinfo=True, compile_time_trace=True, deterministic_max_records=5, deterministic=wp.config.DeterministicMode.RUN_TO_RUN, mode="debug", optimization_level=1, cpu_compiler_flags="", enable_mathdx_gemm=False, default_grid_stride=False, verify_fp=True, line_directives=False, enable_vector_component_overwrites=True, use_precompiled_headers=False, verify_autograd_array_access=True, enable_tiles_in_stack_memory=False, cuda_output="ptx", llvm_cuda=True, cache_kernels=False, enable_cpu_blocks=True, verify_cuda=True, legacy_scalar_return_types=True)
only = sys.argv[1].split(",") if len(sys.argv) > 1 else None
A = "import warp as wp\n@wp.kernel\ndef {n}(x: wp.array(dtype=wp.float32)):\n    x[0] = x[0] + 1.0\n"
def mod(tag):
    p = f"{d0}/{tag}.py"; open(p, "w").write(A.format(n="a")); sp = importlib.util.spec_from_file_location(tag, p); m = importlib.util.module_from_spec(sp); sys.modules[tag] = m; sp.loader.exec_module(m); return m
def hash_now(M):
    # resolve + hash without compiling
    try: return M.get_module_hash(M.options["block_dim"] if False else None).hex()[:7]
    except Exception:
        try: return M.hash_module().hex()[:7]
        except Exception as e: return f"{type(e).__name__}:{e}"[:60]
def go(k):
    o = io.StringIO()
    with contextlib.redirect_stdout(o), contextlib.redirect_stderr(o): wp.launch(k, 1, inputs=[wp.zeros(1, dtype=float, device="cpu")], device="cpu")
    return [f"{h}:{c}" for _, h, _, c in rx.findall(o.getvalue())]
for n, v in OPT.items():
    if only and n not in only: continue
    if not hasattr(wp.config, n): print(json.dumps(dict(opt=n, missing=True))); continue
    d = getattr(wp.config, n); r = dict(opt=n, default=str(d), new=str(v))
    try:
        m = mod("before_" + n); M = wp.get_module("before_" + n)
        r["in_module_options"] = n in M.options; r["copied_at_creation"] = (n in M.options and M.options[n] is not None)
        ro = M.resolve_options(wp.config); setattr(wp.config, n, v); ro2 = M.resolve_options(wp.config)
        ch = [k for k in ro2 if ro.get(k) != ro2[k]]
        r["resolve_options changed by late set (unloaded module)"] = ch
        setattr(wp.config, n, d)
        l1 = go(m.a); setattr(wp.config, n, v); l2 = go(m.a); r["load"] = l1; r["relaunch after late set"] = l2
        # define another kernel in same module -> rebuild; does the new option value arrive?
        src = A.format(n="b").replace("1.0", "2.0"); exec_p = f"{d0}/before_{n}_b.py"; open(exec_p, "w").write(src)
        exec(compile(src, exec_p, "exec"), m.__dict__); import linecache; linecache.checkcache(exec_p)
        l3 = go(m.b); r["new kernel after late set"] = l3
        R = list(M.resolved_options.values())[-1] if isinstance(M.resolved_options, dict) and M.resolved_options else {}
        r["value used in that rebuild"] = str(R.get(n, "n/a"))
    except BaseException as e: r["exc"] = f"{type(e).__name__}: {e}"[:200]
    finally: setattr(wp.config, n, d)
    print(json.dumps(r), flush=True)

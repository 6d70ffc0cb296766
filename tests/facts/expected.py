"""What must be reported of each variant whose gradient is wrong: the rule, and how the line begins that it stands at.

A variant that is not here must be met with silence (information is silence).
"""

from __future__ import annotations

from .expected_tapes import OLDER_TAPES, TAPES, Places

EXPECTED: dict[str, dict[str, Places]] = {
    **TAPES,
    "p03_inplace": {
        "y[i]=sin(y[i])": [("NVW104", "y[i] = wp.sin(y[i])")],
        "y[i]=y[i]*y[i]": [("NVW104", "y[i] = y[i] * y[i]")],
        "t=y[i]; z=t*t; y[i]=0.5*t  (read to local then overwrite)": [("NVW104", "y[i] = F(0.5) * t")],
        "y[i]+=y[i]*y[i]": [("NVW104", "y[i] += y[i] * y[i]")],
        "y[i]*=z[i], grad z": [("NVW201", "y[i] *= z[i]")],
        "y[i]/=z[i], grad z": [("NVW201", "y[i] /= z[i]")],
        "atomic_add RETURN value used in math": [("NVW209", "old = wp.atomic_add(y, 0, z[i] * z[i])")],
        "same array as input and output: b=a*a": [("NVW104", "b[i] = a[i] * a[i]")],
        "b=a^2; b=3b+sin(b) in one kernel (write, read, overwrite)": [
            ("NVW104", "b[i] = b[i] * F(3.0) + wp.sin(b[i])"),
        ],
        "Gauss-Seidel y[i]=.5y[i]+.25y[j] in place (serial CPU order)": [
            ("NVW104", "y[i] = F(0.5) * y[i] + F(0.25) * y[j]"),
        ],
        "b=a*a; a[i]=1.0 in one kernel": [("NVW104", "a[i] = F(1.0)")],
    },
    "p04_muldiv": {
        "local v[0]*=a; v[1]/=b once each": [("NVW201", "v[0] *= x[1]"), ("NVW201", "v[1] /= x[2]")],
        "local v[0]*=a; v[0]*=b twice": [("NVW201", "v[0] *= x[1]"), ("NVW201", "v[0] *= x[2]")],
        "s*=x[i] dynamic loop range(n)": [("NVW203", "s *= x[i]")],
        "*= in dynamic loop inside @wp.func": [("NVW203", "s *= x[i]")],
        "s*= in constant range(20) > max_unroll": [("NVW203", "s *= (F(0.5) + x[i % 3])")],
        "array-of-vec v[0]*=s, grad s": [("NVW201", "v[0] *= x[0]")],
        "array-of-vec v[0][1]*=s, grad s": [("NVW201", "v[0][1] *= x[0]")],
        "array-of-vec v[0].y*=s, grad s": [("NVW201", "v[0].y *= x[0]")],
        "y[i]=x^2; y[i]*=x[0] same kernel": [("NVW201", "y[i] *= x[0]")],
    },
    "p04b_while": {
        "while i<n: s+=x[i]^2; i+=1 (n=3 of 8, padded)": [("NVW203", "s += x[i] * x[i]")],
        "while i<n, s=s+..., i=i+1 (n=3 of 8)": [("NVW203", "s = s + x[i] * x[i]")],
        "for range(n) with separate index j+=1 (n=3 of 8)": [("NVW203", "s += x[j] * x[j]")],
        "while i<n: s*=x[i] (n=3 of 8)": [("NVW203", "s *= x[i]")],
        "while newton sqrt iteration to convergence": [("NVW203", "d = (x[0] - y * y) / (F(2.0) * y)")],
    },
    "p04c_oob": {
        "while loop adjoint writes beyond x.grad (sentinel)": [("NVW203", "s += x[i] * x[i]")],
    },
    "p08_components": {
        "twice_distinct_rhs": [("NVW202", "v[0] = x[1] * x[2]")],
        "twice_with_read_between": [("NVW202", "v[0] = x[1] * x[2]")],
        "ctor_then_assign": [("NVW202", "v[0] = x[1] * x[2]")],
        "attr_x_twice": [("NVW202", "v.x = x[1] * x[2]")],
        "self_ref_v0_eq_v0_v1": [("NVW202", "v[0] = v[0] * v[1]")],
        "read_whole_then_assign": [("NVW202", "v[0] = x[1]")],
        "mat_twice": [("NVW202", "m[0, 0] = x[1] * x[1]")],
        "mat_ctor_then_assign": [("NVW202", "m[0, 1] = x[2] * x[2]")],
        "ctor_then_assign_in_if": [("NVW202", "v[0] = F(0.5)")],
        "dyn_loop_fill": [("NVW202", "v[i] = x[i] * x[i]")],
        "dyn_loop_fill [OVW=1]": [("NVW202", "v[i] = x[i] * x[i]")],
    },
    "p09_dynloops": {
        "additive s+=f(x[i]), s*s after loop": [("NVW203", "wp.atomic_add(l, 0, s * s)")],
        "carried nonlinear s=sin(s)+x[i]": [("NVW203", "s = wp.sin(s) + x[i]")],
        "s/w after loop": [("NVW203", "wp.atomic_add(l, 0, s / w)")],
        "last loop local used after loop": [("NVW203", "wp.atomic_add(l, 0, t * x[0])")],
        "m=max(m,x[i]); m*m": [("NVW203", "m = wp.max(m, x[i])")],
        "if x[i]>m: m=x[i]": [("NVW203", "if x[i] > m:")],
        "const range(17) carried nonlinear (> max_unroll)": [("NVW203", "s = wp.sin(s) + x[i % 3] * F(0.1)")],
        "const range(3) with break, carried nonlinear": [("NVW203", "s = wp.sin(s) + x[i]")],
        "dynamic outer, static inner, carried": [("NVW203", "s = wp.sin(s) + x[i]")],
        "body in @wp.func, carried nonlinear": [("NVW203", "for i in range(n):")],
        "carried nonlinear loop wholly inside @wp.func": [("NVW203", "s = wp.sin(s) + x[i]")],
        "range(x.shape[0]) additive, s*s after": [("NVW203", "wp.atomic_add(l, 0, s * s)")],
        "range(wp.static(20)) carried nonlinear": [("NVW203", "s = wp.sin(s) + x[i % 3] * F(0.1)")],
    },
    "p09b_dynloops2": {
        "BREAK_additive": [("NVW203", "break")],
        "cond_on_accumulator": [("NVW203", "if s < F(1.0):")],
        "vec_accumulator_dot_after": [("NVW203", "wp.atomic_add(l, 0, wp.dot(f, f))")],
        "after_times_array": [("NVW203", "wp.atomic_add(l, 0, s * x[0])")],
        "after_if_on_accumulator": [("NVW203", "if s > F(1.0):")],
        "two_accumulators_cross": [("NVW203", "s += p * x[i]")],
    },
    "p12_custom": {
        "func_grad with = , v also used by sin(v) AFTER in expr": [
            ("NVW207", "wp.adjoint[x] = F(2.0) * x * adj_ret"),
        ],
        "func_grad with = , called twice on v": [("NVW207", "wp.adjoint[x] = F(2.0) * x * adj_ret")],
        "func_grad with =, static loop of 3 calls": [("NVW207", "wp.adjoint[x] = F(2.0) * x * adj_ret")],
        "func_grad on array arg, wp.adjoint[x][i] = (shared index)": [
            ("NVW207", "wp.adjoint[x][i] = F(2.0) * x[i] * adj_ret"),
        ],
        "func_grad omits one argument's adjoint": [("NVW213", "def adj_fg_missing(x: F, y: F, adj_ret: F):")],
        "func_native without adj_snippet": [("NVW208", "def nat(x: F) -> F: ...")],
        "atomic counter index without func_replay (inline)": [("NVW209", "idx = wp.atomic_add(c, 0, 1)")],
        "atomic counter inside @wp.func without func_replay (padded)": [("NVW209", "return wp.atomic_add(c, 0, 1)")],
        "wp.grad() in ordinary kernel, differentiated by tape": [("NVW212", "y[i] = wp.grad(base)(x[i])")],
    },
    "p22_more": {
        "TRACKER-HOLE nonlinear ping-pong sin(a)*1.4 (left operand only)": [
            ("NVW101", "for _ in range(3): la(k, a, b); a, b = b, a"),
        ],
        "TRACKER-HOLE nonlinear ping-pong a**2": [("NVW101", "for _ in range(3): la(k, a, b); a, b = b, a")],
        "states[k%2] -> states[(k+1)%2], 3 steps": [
            ("NVW101", "for k in range(3): la(sq, s[k % 2], s[(k + 1) % 2])"),
        ],
        "mask read in if, then filled (no-grad array)": [
            ("NVW103", "m = arr([1., 1., -1.], rg=False); b = zer(3); wp.launch(gate, 3, input"),
        ],
        "mask read in if, then overwritten by KERNEL (no-grad array)": [
            ("NVW101", "m = arr([1., 1., -1.], rg=False); b = zer(3); wp.launch(gate, 3, input"),
        ],
        "int index array read, then overwritten by zero": [("NVW103", 'if how == "zero": idx.zero_()')],
        "int index array read, then overwritten by kernel": [
            ("NVW101", 'elif how == "kernel": wp.launch(setidx, 3, inputs=[idx, 1])'),
        ],
        "int index array read, then overwritten by copy": [
            ("NVW102", 'elif how == "copy": wp.copy(idx, wp.array([2, 2, 2], dtype=int))'),
        ],
        "int index array read, then overwritten by assign": [
            ("NVW103", 'elif how == "assign": idx.assign([1, 1, 1])'),
        ],
        "count array n[0] used as loop bound, then n.zero_()": [
            ("NVW103", "n = wp.array([3], dtype=int); l = zer(1); wp.launch(dynn, 1, inputs=[n"),
        ],
        "struct scalar field p.dt changed between launches (same struct object)": [
            ("NVW109", "b = zer(3); wp.launch(stepp, 3, inputs=[p, a, b]); a = b; p.dt = ")
        ],
        "l[0] = b[i]^2 all threads write same element": [("NVW211", "l[0] = b[i] * b[i]")],
        "wp.frac: zero gradient vs FD": [("NVW212", "b[i] = wp.frac(a[i])")],
        "caller's inputs list mutated after launch": [("NVW109", "args = [x, zer(3)]; wp.launch(sq, 3, inputs=args)")],
        "args list reused across launches, elements replaced (loop)": [
            ("NVW109", "wp.launch(leftnl, 3, inputs=args); args[0] = args[1]")
        ],
        "3 iters ONE tape re-entered, only zero(), PERSISTENT buffers and loss": [
            ("NVW120", "with t: wp.launch(sq, 3, inputs=[x, B]); wp.launch(ssq, 3, inputs=[B, "),
        ],
        "no-grad scalar array (dt, learning rate) read, then s.assign([3.0])": [
            ("NVW103", "s = arr([2.0], rg=False); b = zer(3); wp.launch(sc, 3, inputs=[x, s, b"),
        ],
        "constant input buffer refilled every step (s.assign per step)": [
            ("NVW103", "s.assign([v]); b = zer(3); wp.launch(sc, 3, inputs=[x, s, b]); wp.laun"),
        ],
    },
    "p24_more2": {
        "range(20) carried nonlinear but body contains wp.static (forced unroll)": [
            ("NVW203", "s = wp.sin(s) + x[i % 3] * F(0.1) * wp.static(wp.float64(1.0))"),
        ],
        "constant range(3) additive with break that fires": [("NVW203", "break")],
    },
    "p25_addonto": {
        "t read nonlinearly, then atomic_add onto t by a later launch": [
            ("NVW104", "wp.atomic_add(b, i, wp.sin(a[i]))"),
        ],
        "t read nonlinearly, then t[i] += by a later launch": [("NVW104", "b[i] += wp.sin(a[i])")],
    },
    "p26_breaks": {
        "break at the start of the body": [("NVW203", "break")],
        "break at the end of the body": [("NVW203", "break")],
        "break from the inner loop": [("NVW203", "break")],
        "break from a loop that adds to an array": [("NVW203", "break")],
        "break from a loop that stores to an array": [("NVW203", "break")],
        "break that is reached in the first iteration": [("NVW203", "break")],
        "return from a loop that adds to an array": [("NVW203", "return")],
        "return from a loop, the sum used there": [("NVW203", "return")],
        "return of the sum from a loop in a function": [("NVW203", "return s")],
    },
    "p27_replays": {
        "c[i] = c[i] + x in a function, then sin(c[i])": [("NVW209", "c[i] = c[i] + x")],
        "c[i] += x in a function, then sin(c[i])": [("NVW209", "c[i] += x")],
        "atomic_add in a function, then sin(c[i])": [("NVW209", "wp.atomic_add(c, i, x)")],
        "c[i] = x + 1 in a function, tripled in the kernel, then sin(c[i])": [("NVW209", "c[i] = x + F(1.0)")],
        "c[i] = c[i] + x and sin(c[i]) in one function": [("NVW209", "c[i] = c[i] + x")],
        "sin(c[i] x), then c[i] += x in a function": [("NVW104", "c[i] += x")],
    },
}

_SINGULAR = (
    "sqrt(a)",
    "sqrt(a*a)",
    "cbrt(a)",
    "1/a",
    "a/a",
    "log(a)",
    "log2(a)",
    "log10(a)",
    "pow(a,0.5)",
    "pow(0,a)",
    "pow(a,a)",
    "sqrt(a)*0",
    "sqrt(dot(v,v)) at 0",
    "v/length(v) at 0",
    "acos(dot/len) at 0",
)
"""The data come to a point where the adjoint is not finite."""
_UNSELECTED = (
    "where(a>0, sqrt(a), 0)",
    "where(a!=0, 1/a, 0)",
    "where softplus",
    "where(a>0, log(a), 0)",
    "where(len>0, v/len) at 0",
)
_FLAT = (
    "sign(a)",
    "floordiv",
    "round",
    "rint",
    "floor",
    "ceil",
    "trunc",
    "float(int(a))",
    "step(a)",
    "where(a>0,1,0)",
    "nonzero",
)
EXPECTED["p10_singular"] = {
    case: [(code, "y[i] = ")]
    for code, cases in {"NVW204": _UNSELECTED, "NVW205": _SINGULAR, "NVW206": _FLAT, "NVW212": ("frac",)}.items()
    for case in cases
}

SILENT = {
    ("p10_singular", "exp(a) overflow"): "the value itself overflows: nobody needs a gradient to see it",
    ("p10_singular", "atan2(a,0)"): "zero at these points by the values, not by the operation",
    ("p10_singular", "atan2(0,a)"): "zero at these points by the values, not by the operation",
    ("p10_singular", "cross.length at 0"): "the length of v x v is zero for all v",
}
"""Variants with another verdict than benign that are met with silence, each with the reason."""

GUARDED = {
    ("p10_singular", "sqrt(a+1e-6)"): "the bend is narrower than the differences' steps",
    ("p10_singular", "f16 cast"): "the steps are near the half's precision",
    ("p10_singular", "where double"): "the gradient is that of the side at which the data are",
    ("p10_singular", "ternary a>0"): "the gradient is that of the side at which the data are",
    ("p10_singular", "length(v) at 0"): "guarded in Warp",
    ("p10_singular", "normalize(v)[0] at 0"): "guarded in Warp",
    ("p10_singular", "norm_l2 at 0"): "guarded in Warp",
    ("p10_singular", "where(len>0, normalize) at 0"): "guarded in Warp",
    ("p10_singular", "acos(a)"): "guarded in Warp",
    ("p10_singular", "asin(a)"): "guarded in Warp",
    ("p10_singular", "acos(clamp)"): "guarded in Warp",
}
"""Variants measured at a point without derivative that are met with silence all the same, each with the reason."""

OLDER: dict[str, dict[str, dict[str, Places]]] = {
    "1.13": {
        "p04_muldiv": {"array-of-vec v[0].y+=s*t, grad (benign)": [("NVW202", "v[0].y += x[0] * x[1]")]},
        "p08_components": {
            "array element comp v[0][0]= / v[0].y= once": [
                ("NVW202", "v[0][0] = x[0] * x[1]"),
                ("NVW202", "v[0].y = x[2]"),
            ],
            "array element comp v[0][0]= twice": [("NVW202", "v[0][0] = x[2] * x[2]")],
        },
        "p09_dynloops": {"const range(3) with continue": [("NVW203", "s = wp.sin(s) + x[i]")]},
    },
    "1.16": {"p09_dynloops": {"const range(3) with continue": [("NVW203", "s = wp.sin(s) + x[i]")]}},
}
"""The same for versions of Warp before 1.19, where they differ: by version, program and variant."""
for _version, _programs in OLDER_TAPES.items():
    OLDER.setdefault(_version, {}).update(_programs)

"""What must be reported of each variant about tapes whose gradient is wrong; :data:`EXPECTED` says how to read it."""

from __future__ import annotations

from dataclasses import dataclass

Places = list[tuple[str, str]]

TAPES: dict[str, dict[str, Places]] = {
    "p01_pingpong": {
        "nonlinear pingpong, copied-in x, 2 launches": [
            ("NVW101", "wp.launch(kern, 3, inputs=[a], outputs=[b]); a, b = b, a")
        ],
        "nonlinear pingpong, copied-in x, 3 launches": [
            ("NVW101", "wp.launch(kern, 3, inputs=[a], outputs=[b]); a, b = b, a")
        ],
        "nonlinear pingpong, copied-in x, 4 launches": [
            ("NVW101", "wp.launch(kern, 3, inputs=[a], outputs=[b]); a, b = b, a")
        ],
        "nonlinear pingpong, x itself is buffer A, 2 launches": [
            ("NVW101", "wp.launch(kern, 3, inputs=[a], outputs=[b]); a, b = b, a")
        ],
        "nonlinear pingpong, x itself is buffer A, 3 launches": [
            ("NVW101", "wp.launch(kern, 3, inputs=[a], outputs=[b]); a, b = b, a")
        ],
        "bilinear step b=c*a, grad wrt param c, 3 launches pingpong": [
            ("NVW101", "wp.launch(bil, 3, inputs=[a, c], outputs=[b]); a, b = b, a")
        ],
        "state objects swapped, nonlinear, 3 launches": [
            ("NVW101", "wp.launch(nl, 3, inputs=[s0.q], outputs=[s1.q]); s0, s1 = s1, s0")
        ],
        "ring r[k%3] with 5 steps (reuse)": [
            ("NVW101", "for k in range(5): wp.launch(nl, 3, inputs=[r[k % 3]], outputs=[")
        ],
        "states[0]=states[-1] rebind, 2 frames in ONE tape": [("NVW101", "st_[0] = st_[-1]")],
    },
    "p02_overwrite_copy": {
        "copy back onto read array, CHANGED values (sin stage), loss(q,y)": [
            ("NVW102", "cp = lambda q, z: wp.copy(q, z)")
        ],
        "wp.copy(dest=q, src=z) kw order": [
            ("NVW102", 'check("wp.copy(dest=q, src=z) kw order", t_copyback(sn, lambda q')
        ],
        "wp.copy(src=z, dest=q) kw order": [
            ("NVW102", 'check("wp.copy(src=z, dest=q) kw order", t_copyback(sn, lambda q')
        ],
        "q.assign(z) changed values": [("NVW102", 'check("q.assign(z) changed values", t_copyback(sn, lambda q, z:')],
        "q.assign(z.numpy()) changed values": [
            ("NVW103", 'check("q.assign(z.numpy()) changed values", t_copyback(sn, lambd')
        ],
        "clamp write-back that ENGAGES for one element": [
            ("NVW102", "la(sq, q, y); la(clampk, q, z, F(lo), F(hi)); wp.copy(q, z)")
        ],
        "t read nonlinearly, then t.zero_() (t not used again)": [
            ("NVW103", 'check("t read nonlinearly, then t.zero_() (t not used again)", z')
        ],
        "t read nonlinearly, then t.fill_(5) (t not used again)": [
            ("NVW103", 'check("t read nonlinearly, then t.fill_(5) (t not used again)",')
        ],
        "accumulator: add, read, zero_(), add again, read again (force-buffer reuse)": [
            ("NVW103", 'check("accumulator: add, read, zero_(), add again, read again (f')
        ],
        "accumulator reuse with zero_(), LINEAR readers only": [
            ("NVW103", "la(addin, x, t); la(lin3, t, y1); t.zero_(); la(sn, x, y2); la(a")
        ],
        "t written, then fill_(0.5), then read: chain should be cut": [
            ("NVW103", "t = zer(3); y = zer(3); la(sn, x, t); t.fill_(F(0.5)); la(sq, t,")
        ],
        "t written, then t.assign(numpy), then read: chain should be cut": [
            ("NVW103", "t = zer(3); y = zer(3); la(sn, x, t); t.assign(np.array([.5, .6,")
        ],
        "wp.copy(dest without requires_grad, src=x)": [
            ("NVW111", "t = zer(3, rg=False); wp.copy(t, x); y = zer(3); la(sq, t, y); r")
        ],
        "reset of taped array AFTER the with-block but BEFORE backward": [("NVW108", "t.zero_()")],
        "t[0:1].fill_(9) after t was read": [
            ("NVW103", "t = wp.clone(x); y = zer(3); la(sq, t, y); t[0:1].fill_(F(9.0));")
        ],
    },
    "p05_requires_grad": {
        "intermediate made by zeros": [("NVW110", "zeros=lambda x: wp.zeros(3, dtype=F),")],
        "intermediate made by empty": [("NVW110", "empty=lambda x: wp.empty(3, dtype=F),")],
        "intermediate made by full": [("NVW110", "full=lambda x: wp.full(3, F(0.0), dtype=F),")],
        "intermediate made by ones": [("NVW110", "ones=lambda x: wp.ones(3, dtype=F),")],
        "intermediate made by array": [("NVW110", "array=lambda x: wp.array(np.zeros(3), dtype=F),")],
        "intermediate made by from_numpy": [("NVW110", "from_numpy=lambda x: wp.from_numpy(np.zeros(3), dtype=F),")],
        "intermediate made by zeros_like_of_norg": [
            ("NVW110", "zeros_like_of_norg=lambda x: wp.zeros_like(wp.zeros(3, dtype=F))")
        ],
        "intermediate made by clone_rg_false": [
            ("NVW110", "clone_rg_false=lambda x: wp.clone(x, requires_grad=False),")
        ],
        "intermediate made by clone_of_norg": [("NVW110", "clone_of_norg=lambda x: wp.clone(wp.zeros(3, dtype=F)),")],
        "backward() with no loss and no seed": [("NVW116", "t.backward(); return dict(g=x.grad.numpy())")],
        "loss kernel launched outside the tape": [
            ("NVW113", "wp.launch(ssq, 3, inputs=[y, l]); t.backward(l); return dict(g=x")
        ],
    },
    "p06_duplicate": {
        "identical launch twice, output retain_grad=True": [
            ("NVW120", "for _ in range(n): wp.launch(k, 3, inputs=[x, b])")
        ],
        "same work taped on two tapes, both backward (accumulates 2x)": [("NVW121", "t1.backward(l); t2.backward(l2)")],
        "tape.backward(loss) called twice, no zero()": [
            ("NVW121", "t.backward(l); t.backward(l); return x.grad.numpy()")
        ],
        "intermediate grads after backward (consumed?)": [
            ("NVW122", "t.backward(l); return dict(bgrad=b.grad.numpy(), lgrad=l.grad.nu")
        ],
    },
    "p07_tape": {
        "tape per step, state array object carried, grads accumulate": [
            ("NVW130", "with wp.Tape() as t: wp.launch(step, 3, inputs=[s, c, n]); wp.la")
        ],
        "new Tape each step, backward on the last only": [("NVW130", "t = wp.Tape()")],
        "3 iters: tape reused, neither zero nor reset": [("NVW120", "with t:")],
        "3 iters: new Tape each iter, no zero()": [("NVW121", "t.backward(l)")],
        "grad read after tape.zero()": [("NVW122", "if read_after_zero: g = c.grad.numpy().copy()")],
        "persistent ATOMIC accumulator grad never zeroed (only param.grad.zero_)": [
            ("NVW121", "t.backward(l); g = c.grad.numpy().copy(); c.grad.zero_()")
        ],
        "g = x.grad.numpy() kept (no copy), then tape.zero(): CPU zero-copy alias": [
            ("NVW122", "t.backward(l); g = x.grad.numpy(); t.zero(); return dict(kept_re")
        ],
    },
    "p13_misc": {
        "13 kernel(enable_backward=False) in the middle": [("NVW114", "@wp.kernel(enable_backward=False)")],
        "13 loss kernel enable_backward=False": [("NVW114", "@wp.kernel(enable_backward=False)")],
        "13 module option enable_backward=False": [
            ("NVW114", '@wp.kernel(module="unique", module_options={"enable_backward": F')
        ],
        "13 wp.config.enable_backward=False while module was created": [
            ("NVW114", "wp.config.enable_backward = False")
        ],
        "14 struct-held array read then overwritten by a kernel": [("NVW105", "s.q[i] = wp.sin(s.q[i])")],
        "14 struct ping-pong 3 launches": [
            ("NVW101", "for _ in range(3): wp.launch(st_step2, 3, inputs=[a, b]); a, b =")
        ],
        "14 struct with non-requires_grad output array": [
            ("NVW110", "s = mk(wp.clone(x)); o = mk(wp.zeros(3, dtype=F)); wp.launch(st_")
        ],
        "14 struct member REBOUND after launch (s.q = other): tape holds struct by reference": [
            ("NVW109", "s = mk(wp.clone(x)); y = zer(3); wp.launch(st_sq, 3, inputs=[s,")
        ],
        "14 view t[1:] read, base t overwritten by kernel": [
            ("NVW106", "def la(k, a, b, n=3): wp.launch(k, n, inputs=[a, b]); return b")
        ],
        "14 base read, view t[1:] overwritten by kernel": [
            ("NVW106", "def la(k, a, b, n=3): wp.launch(k, n, inputs=[a, b]); return b")
        ],
        "14 ptr alias overwritten after read": [
            ("NVW106", "def la(k, a, b, n=3): wp.launch(k, n, inputs=[a, b]); return b")
        ],
        "14 ptr alias as a plain read: separate grad buffer (severed chain)": [
            ("NVW106", "def la(k, a, b, n=3): wp.launch(k, n, inputs=[a, b]); return b")
        ],
        "14 reshape view filled after read": [
            ("NVW103", "t = wp.clone(x); y = zer(3); la(sq, t, y); t.reshape((3, 1)).fil")
        ],
        "15 y.grad.fill_(1); backward(); then second backward without re-seed": [
            ("NVW116", "y.grad.fill_(F(1.0)); t.backward(); a = x.grad.numpy().copy(); y")
        ],
        "16 chain through int array (requires_grad=True on ints)": [("NVW206", "b[i] = int(a[i] * F(10.0))")],
        "17 y.numpy() -> wp.array(...) mid-tape": [
            ("NVW112", "y = la(sq, x, zer(3)); z = wp.array(y.numpy(), dtype=F, requires")
        ],
        "17 y.list() -> wp.array mid-tape": [
            ("NVW112", "y = la(sq, x, zer(3)); z = wp.array(y.list(), dtype=F, requires_")
        ],
        "17 float(x.numpy()[0]) passed as scalar kernel arg": [
            ("NVW112", "y = wp.zeros(3, dtype=F, requires_grad=True); wp.launch(scl, 3,")
        ],
        "17 wp.array(y.numpy(), copy=False) alias mid-tape": [
            ("NVW106", "def la(k, a, b, n=3): wp.launch(k, n, inputs=[a, b]); return b")
        ],
        "17 writing into y.numpy() (CPU alias) after y was read": [
            ("NVW106", "y = la(sq, x, zer(3)); v = y.numpy(); w = la(sn, y, zer(3)); v[:")
        ],
        "17 wp.utils.array_sum as loss (not recorded?)": [
            ("NVW111", "y = la(sq, x, zer(3)); l = zer(1); wp.utils.array_sum(y, out=l);")
        ],
        "17 wp.utils.array_inner as loss": [
            ("NVW111", "y = la(sq, x, zer(3)); l = zer(1); wp.utils.array_inner(y, y, ou")
        ],
        "19 launch(record_tape=False) on loss path": [
            ("NVW111", "y = zer(3); wp.launch(sq, 3, inputs=[x, y], record_tape=False);")
        ],
        "19 record_cmd=True + cmd.launch() inside tape": [
            ("NVW111", "y = zer(3); c = wp.launch(sq, 3, inputs=[x, y], record_cmd=True)")
        ],
    },
    "p28_tracked": {
        "read then kernel write": [("NVW101", "def a1(x, y, l): read(x, l); write(x)")],
        "read then wp.copy": [("NVW102", "def a2(x, y, l): read(x, l); wp.copy(x, y)")],
        "read then assign(warp array)": [("NVW102", "def a3(x, y, l): read(x, l); x.assign(y)")],
        "read then assign(numpy)": [("NVW103", "def a4(x, y, l): read(x, l); x.assign(np.ones(3))")],
        "read then zero_()": [("NVW103", "def a5(x, y, l): read(x, l); x.zero_()")],
        "read, zero_(), then KERNEL write": [("NVW103", "def a5b(x, y, l): read(x, l); x.zero_(); write(x)")],
        "read then fill_()": [("NVW103", "def a6(x, y, l): read(x, l); x.fill_(F(2.0))")],
        "read then record_tape=False write": [
            ("NVW103", "def write(x, n=3, **k): wp.launch(wr2, n, inputs=[x, F(1.0)], **")
        ],
        "view read then base written": [("NVW106", "def write(x, n=3, **k): wp.launch(wr2, n, inputs=[x, F(1.0)], **")],
        "base read then view written": [("NVW106", "def write(x, n=3, **k): wp.launch(wr2, n, inputs=[x, F(1.0)], **")],
        "base read then PRE-MADE view written": [
            ("NVW106", "def write(x, n=3, **k): wp.launch(wr2, n, inputs=[x, F(1.0)], **")
        ],
        "ptr alias written": [("NVW106", "def write(x, n=3, **k): wp.launch(wr2, n, inputs=[x, F(1.0)], **")],
        "numpy alias write": [("NVW106", "def a14(x, y, l): read(x, l); x.numpy()[:] = 0")],
        "struct array": [("NVW101", "s = S(); s.q = x; wp.launch(srd, 3, inputs=[s, l]); wp.launch(sw")],
        "read via struct, written as plain arg": [
            ("NVW101", "s = S(); s.q = x; wp.launch(srd, 3, inputs=[s, l]); write(x)")
        ],
        "read then atomic_add onto it": [("NVW104", "wp.atomic_add(b, i, wp.sin(a[i]))")],
        "read then += onto it": [("NVW104", "b[i] += wp.sin(a[i])")],
        "write after with-block before backward": [
            ("NVW108", "def write(x, n=3, **k): wp.launch(wr2, n, inputs=[x, F(1.0)], **")
        ],
        "other tape writes before backward": [("NVW101", "with wp.Tape() as t2: write(x)")],
    },
}


@dataclass(frozen=True)
class Warned:
    """A warning that stands although what was measured is right, and why."""

    place: tuple[str, str]
    reason: str


WARNED: dict[str, dict[str, Warned]] = {
    "p02_overwrite_copy": {
        "clamp write-back that does NOT engage": Warned(
            ("NVW102", "la(sq, q, y); la(clampk, q, z, F(lo), F(hi)); wp.copy(q, z)"),
            "the same code is wrong where a value is clamped: the data decide",
        ),
        "t written, then zero_(), then read: chain should be cut": Warned(
            ("NVW103", "t = zer(3); y = zer(3); la(sn, x, t); t.zero_(); la(sq, t, y); r"),
            "the reader's slope at the cleared value is zero",
        ),
    },
    "p13_misc": {
        "15 x.grad.zero_() then backward again (benign)": Warned(
            ("NVW122", "t.backward(l); x.grad.zero_(); a = x.grad.numpy().copy(); t.back"),
            "the cleared gradient is read on purpose; what the first backward gave is lost",
        ),
    },
}
"""By program and variant."""


OLDER_TAPES: dict[str, dict[str, dict[str, Places]]] = {
    "1.12": {
        "p01_pingpong": {
            "linear pingpong 4 launches, sum-sq loss": [
                ("NVW101", "wp.launch(kern, 3, inputs=[a], outputs=[b]); a, b = b, a")
            ],
            "linear pingpong 4 launches, linear loss": [
                ("NVW101", "wp.launch(kern, 3, inputs=[a], outputs=[b]); a, b = b, a")
            ],
            "fresh clone per step, fully overwritten, rebind": [
                ("NVW102", "b = mk(a); wp.launch(nl, 3, inputs=[a], outputs=[b]); a = b")
            ],
            "fresh clone per step, partially overwritten, rebind": [
                ("NVW102", "b = wp.clone(a); wp.launch(part, 3, inputs=[a, b, k]); a = b")
            ],
            "fresh clone per step, kernel b=b+sin(a), rebind": [
                ("NVW102", "b = wp.clone(a); wp.launch(nl_acc, 3, inputs=[a, b]); a = b")
            ],
        },
        "p06_duplicate": {
            "identical launch twice, output overwritten": [
                ("NVW120", "for _ in range(n): wp.launch(k, 3, inputs=[x, b])")
            ],
        },
    },
    "1.13": {
        "p01_pingpong": {
            "fresh clone per step, fully overwritten, rebind": [
                ("NVW102", "b = mk(a); wp.launch(nl, 3, inputs=[a], outputs=[b]); a = b")
            ],
            "fresh clone per step, partially overwritten, rebind": [
                ("NVW102", "b = wp.clone(a); wp.launch(part, 3, inputs=[a, b, k]); a = b")
            ],
            "fresh clone per step, kernel b=b+sin(a), rebind": [
                ("NVW102", "b = wp.clone(a); wp.launch(nl_acc, 3, inputs=[a, b]); a = b")
            ],
        },
        "p02_overwrite_copy": {
            "copy back onto read array, SAME values (identity stage), loss(q,y)": [
                ("NVW102", "cp = lambda q, z: wp.copy(q, z)")
            ],
            "copy back, identity stage, loss(q) only": [("NVW102", "cp = lambda q, z: wp.copy(q, z)")],
            "copy back, LINEAR stage 3a, changed values, loss(q) only": [("NVW102", "cp = lambda q, z: wp.copy(q, z)")],
            "copy back, only linear reader before the overwrite, nonlinear after": [
                ("NVW102", "q = wp.clone(x); z = zer(3); la(lin3, q, z); wp.copy(q, z); w =")
            ],
            "q.assign(z) same values (identity)": [
                ("NVW102", 'check("q.assign(z) same values (identity)", t_copyback(ident, la')
            ],
            "clamp write-back that does NOT engage": [
                ("NVW102", "la(sq, q, y); la(clampk, q, z, F(lo), F(hi)); wp.copy(q, z)")
            ],
            "clone(x) FIRST, then another kernel reads x; loss(c,y)": [
                ("NVW102", "y = zer(3); c = wp.clone(x); la(sq, x, y); return L(c, y)")
            ],
        },
        "p05_requires_grad": {
            "intermediate made by clone": [("NVW102", "clone=lambda x: wp.clone(x),")],
        },
    },
    "1.16": {
        "p01_pingpong": {
            "fresh clone per step, fully overwritten, rebind": [
                ("NVW102", "b = mk(a); wp.launch(nl, 3, inputs=[a], outputs=[b]); a = b")
            ],
            "fresh clone per step, partially overwritten, rebind": [
                ("NVW102", "b = wp.clone(a); wp.launch(part, 3, inputs=[a, b, k]); a = b")
            ],
            "fresh clone per step, kernel b=b+sin(a), rebind": [
                ("NVW102", "b = wp.clone(a); wp.launch(nl_acc, 3, inputs=[a, b]); a = b")
            ],
        },
        "p02_overwrite_copy": {
            "copy back onto read array, SAME values (identity stage), loss(q,y)": [
                ("NVW102", "cp = lambda q, z: wp.copy(q, z)")
            ],
            "copy back, identity stage, loss(q) only": [("NVW102", "cp = lambda q, z: wp.copy(q, z)")],
            "copy back, LINEAR stage 3a, changed values, loss(q) only": [("NVW102", "cp = lambda q, z: wp.copy(q, z)")],
            "copy back, only linear reader before the overwrite, nonlinear after": [
                ("NVW102", "q = wp.clone(x); z = zer(3); la(lin3, q, z); wp.copy(q, z); w =")
            ],
            "q.assign(z) same values (identity)": [
                ("NVW102", 'check("q.assign(z) same values (identity)", t_copyback(ident, la')
            ],
            "clamp write-back that does NOT engage": [
                ("NVW102", "la(sq, q, y); la(clampk, q, z, F(lo), F(hi)); wp.copy(q, z)")
            ],
            "clone(x) FIRST, then another kernel reads x; loss(c,y)": [
                ("NVW102", "y = zer(3); c = wp.clone(x); la(sq, x, y); return L(c, y)")
            ],
        },
    },
}
"""What must be reported for versions of Warp before 1.19, where it differs: by version, program and variant."""

UNSEEN: dict[str, dict[str, str]] = {
    "p02_overwrite_copy": {
        "wp.copy with offsets/count, dest not read before": "a copy over a value that nothing read: before Warp 1.17",
    },
    "p06_duplicate": {
        "same work taped on two tapes, both backward (accumulates 2x)": "the gradient of the sum of both tapes' losses",
    },
    "p07_tape": {
        "grad read after tape.zero()": "read before as well: whether that reading is used is not followed",
        "persistent ATOMIC accumulator grad never zeroed (only param.grad.zero_)": "right on 1.13: its copy assigns",
    },
}
"""Where the analysis is known to disagree with what was measured, with some version of Warp, and why."""

"""Fifty ways of Python to bring arrays to a launch; each function ``sNN`` is one. Run on a tape."""

import copy
import functools
import itertools
import operator
from collections import OrderedDict, defaultdict, deque, namedtuple
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from types import SimpleNamespace
from typing import NamedTuple, Optional

import numpy as np
import warp as wp

N = 2


@wp.kernel
def step(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    b[wp.tid()] = wp.sin(a[wp.tid()])


def mk():
    return wp.zeros(N, dtype=float, requires_grad=True)


def go(a, b):
    wp.launch(step, dim=N, inputs=[a], outputs=[b])


def s01():
    bufs = [mk(), mk(), mk()]
    ring = itertools.cycle(bufs)
    a = next(ring)
    for _ in range(5):
        b = next(ring)
        go(a, b)
        a = b


def s02():
    bufs = [mk() for _ in range(3)]
    for _ in range(2):
        for a, b in zip(bufs, bufs[1:] + bufs[:1]):
            go(a, b)


def s03():
    a, b = mk(), mk()
    for src, dst in [(a, b), (b, a)] * 2:
        go(src, dst)


def s04():
    class S:
        pass

    s = S()
    for k in range(2):
        setattr(s, f"buf_{k}", mk())
    for k in range(4):
        go(getattr(s, f"buf_{k % 2}"), getattr(s, f"buf_{(k + 1) % 2}"))


def s05():
    def rollout(a, b, n):
        if n == 0:
            return a
        go(a, b)
        return rollout(b, a, n - 1)

    rollout(mk(), mk(), 4)


def s06():
    def states():
        cur = mk()
        while True:
            nxt = mk()
            yield cur, nxt
            cur = nxt

    gen = states()
    for _ in range(3):
        a, b = next(gen)
        go(a, b)


def s07():
    def states():
        a, b = mk(), mk()
        while True:
            yield a, b
            a, b = b, a

    for k, (x, y) in enumerate(states()):
        if k == 3:
            break
        go(x, y)


def s08():
    class Ring:
        def __init__(self, n):
            self.items = [mk() for _ in range(n)]
            self.head = 0

        def __getitem__(self, k):
            return self.items[(self.head + k) % len(self.items)]

        def advance(self):
            self.head += 1

        def __len__(self):
            return len(self.items)

    r = Ring(3)
    for _ in range(4):
        go(r[0], r[1])
        r.advance()


def s09():
    class Sim:
        def __init__(self):
            self._front, self._back = mk(), mk()

        @property
        def front(self):
            return self._front

        @front.setter
        def front(self, value):
            self._back = self._front
            self._front = value

        def __call__(self):
            back = self._back
            go(self.front, back)
            self.front = back

    s = Sim()
    for _ in range(3):
        s()


def s10():
    class P(NamedTuple):
        x: object
        y: object

    p = P(mk(), mk())
    for _ in range(3):
        go(p.x, p.y)
        p = p._replace(x=p.y, y=p.x)


def s11():
    @dataclass
    class D:
        x: wp.array = field(default_factory=mk)
        y: Optional[wp.array] = None

        def __post_init__(self):
            if self.y is None:
                self.y = mk()

    d = D()
    for _ in range(2):
        go(d.x, d.y)
        d = replace(d, x=d.y, y=d.x)
    e = copy.copy(d)
    go(e.x, d.y)


def s12():
    reg = defaultdict(list)
    for k in range(4):
        reg[k % 2].append(mk())
    for a, b in zip(reg[0], reg[1]):
        go(a, b)
        go(b, a)


def s13():
    d = OrderedDict()
    d["a"] = mk()
    d["b"] = mk()
    for _ in range(2):
        keys = list(d)
        go(d[keys[0]], d[keys[1]])
        d[keys[0]], d[keys[1]] = d[keys[1]], d[keys[0]]


def s14():
    functools.reduce(lambda a, b: (go(a, b), b)[1], [mk() for _ in range(4)])


def s15():
    st = deque((mk() for _ in range(3)), maxlen=3)
    for _ in range(4):
        go(st[-1], st[0])
        st.append(st.popleft())


def s16():
    n = 0
    a, b = mk(), mk()
    while (n := n + 1) <= 3:
        go(a, b)
        a, b = b, a


def s17():
    mode = "swap"
    a, b = mk(), mk()
    for k in range(3):
        match mode:
            case "keep":
                go(b, b)
            case "swap" | "rotate":
                go(a, b)
                a, b = b, a


def s18():
    class Base:
        def __init__(self):
            self.a = mk()

        def run(self):
            go(self.a, self.other())

    class Mixin:
        def other(self):
            return self.b

    class Child(Mixin, Base):
        def __init__(self):
            super().__init__()
            self.b = mk()

    Child().run()


def s19():
    with ExitStack() as stack:
        stack.enter_context(suppress(ValueError))
        a, b = mk(), mk()
        go(a, b)
        raise ValueError("x")


def s20():
    a, b, c = mk(), mk(), mk()
    first, *rest = [a, b, c]
    for r in rest:
        go(first, r)
        first = r


def s21():
    d = {}
    for i, j in itertools.product(range(2), range(2)):
        d[i, j] = mk()
    for (i, j), arr in d.items():
        go(arr, d[j, i])


def s22():
    ns = SimpleNamespace(q=mk(), qd=mk())
    for _ in range(2):
        go(ns.q, ns.qd)
        ns.q, ns.qd = ns.qd, ns.q


def s23():
    class Kind(Enum):
        EVEN = 0
        ODD = 1

    bufs = {Kind.EVEN: mk(), Kind.ODD: mk()}
    for k in range(3):
        go(bufs[Kind(k % 2)], bufs[Kind((k + 1) % 2)])


def s24():
    Pair = namedtuple("Pair", "x y")
    p = Pair(mk(), y=mk())
    x, y = p
    go(x, y)
    go(*p)
    go(p[1], p[0])


def s25():
    fs = [lambda a, b=mk(): go(a, b) for _ in range(3)]
    x = mk()
    for f in fs:
        f(x)


def s26():
    out = []

    def inner(a):
        nonlocal out
        b = mk()
        out = [*out, b]
        go(a, b)

    x = mk()
    for _ in range(3):
        inner(out[-1] if out else x)


def s27():
    a, b = mk(), mk()
    for k in range(4):
        try:
            if k == 1:
                continue
            if k == 3:
                break
            go(a, b)
        finally:
            a, b = b, a


def s28():
    table = [[mk() for _ in range(2)] for _ in range(3)]
    for row, nxt in zip(table, table[1:]):
        for x, y in zip(row, nxt):
            go(x, y)
    for col in zip(*table):
        go(col[0], col[-1])


def s29():
    xs = sorted([(2, mk()), (1, mk()), (3, mk())], key=operator.itemgetter(0))
    for (_, a), (_, b) in itertools.pairwise(xs):
        go(a, b)


def s30():
    class Node:
        def __init__(self, depth):
            self.x = mk()
            self.kids = [Node(depth - 1) for _ in range(2)] if depth else []

        def walk(self):
            yield self
            for k in self.kids:
                yield from k.walk()

    nodes = list(Node(2).walk())
    for a, b in zip(nodes[:-1], nodes[1:]):
        go(a.x, b.x)


def s31():
    @contextmanager
    def swapped(pair):
        pair[0], pair[1] = pair[1], pair[0]
        try:
            yield pair
        finally:
            pair[0], pair[1] = pair[1], pair[0]

    pair = [mk(), mk()]
    go(*pair)
    with swapped(pair) as p:
        go(*p)
    go(*pair)


def s32():
    x = wp.zeros((4, N), dtype=float, requires_grad=True)
    for t in range(3):
        go(x[t], x[t + 1])
    go(x[-1], x[0])
    v = x[1:]
    go(v[0], v[-1])


def s33():
    kw = {"inputs": [mk()], "outputs": [mk()]}
    wp.launch(step, dim=N, **kw)
    args = (step, N)
    wp.launch(*args, **kw)


def s34():
    class Meta:
        count = 0
        bufs = []

        def __new__(cls, *a):
            cls.count += 1
            return super().__new__(cls)

        def __init__(self, x):
            self.x = x
            Meta.bufs.append(x)

        @classmethod
        def last(cls):
            return cls.bufs[-1]

    for _ in range(3):
        Meta(mk())
    go(Meta.bufs[Meta.count - 2], Meta.last())


def s35():
    a = [mk(), mk()]
    b = a
    b[0], b[1] = b[1], b[0]
    go(*a)
    c = a[:]
    c.reverse()
    go(*c)
    go(*a)


def s36():
    h = {"cur": 0}
    s = [mk(), mk(), mk()]
    while h["cur"] < 4:
        i = h["cur"]
        go(s[i % 3], s[(i + 1) % 3])
        h["cur"] = i + 1


def s37():
    def deco(times):
        def outer(f):
            @functools.wraps(f)
            def wrapper(*args, **kwargs):
                for _ in range(times):
                    f(*args, **kwargs)

            return wrapper

        return outer

    @deco(2)
    def body(x, *, y):
        go(x, y)

    body(mk(), y=mk())


def s38():
    it = iter([mk(), mk(), mk()])
    a = next(it)
    for b in it:
        go(a, b)
        a = b


def s39():
    def choose(n):
        return {0: lambda: "zero", 1: lambda: "one"}.get(n, lambda: "many")()

    bufs = {"zero": mk(), "one": mk(), "many": mk()}
    for k in range(3):
        go(bufs[choose(k)], bufs[choose(k + 1)])


def s40():
    @dataclass
    class Conf:
        steps: int = 3
        subs: int = 2

        @property
        def total(self):
            return self.steps * self.subs

    c = Conf(subs=1)
    s = [mk() for _ in range(c.total + 1)]
    for f in range(c.steps):
        for k in range(c.subs):
            t = f * c.subs + k
            go(s[t], s[t + 1])


def s41():
    n = int(np.ceil(2.3))
    m = max(1, min(n, 8)) // 2
    for _ in range(m):
        go(mk(), mk())
    for _ in np.arange(2):
        go(mk(), mk())
    for k in np.linspace(0, 1, 3):
        if k > 0.4:
            go(mk(), mk())


def s42():
    chunks = [list(range(i, min(i + 2, 5))) for i in range(0, 5, 2)]
    s = [mk() for _ in range(6)]
    for chunk in chunks:
        for i in chunk:
            go(s[i], s[i + 1])


def s43():
    x = mk()
    y = wp.clone(x)
    z = wp.zeros_like(y)
    go(x, y)
    go(y, z)
    w = x.flatten()
    go(w, z)


def s44():
    class Buf:
        __slots__ = ("a", "b")

        def __init__(self):
            self.a = mk()
            self.b = mk()

        def swap(self):
            self.a, self.b = self.b, self.a
            return self

        def run(self):
            go(self.a, self.b)
            return self

    Buf().run().swap().run()


def s45():
    a, b = mk(), mk()
    for i in reversed(range(3)):
        if i & 1:
            go(a, b)
        else:
            go(b, a)


def s46():
    acc = {}
    for name in "xyx":
        acc.setdefault(name, mk())
    for p, q in itertools.combinations(acc, 2):
        go(acc[p], acc[q])
    for p, q in itertools.permutations(sorted(acc), 2):
        go(acc[p], acc[q])


def s47():
    pairs = [(mk(), mk()) for _ in range(2)]
    list(map(lambda p: go(*p), pairs))
    [go(b, a) for a, b in pairs]
    any(go(a, b) for a, b in pairs)


def s48():
    def f(x, y=None, *rest, flag=False, **kw):
        y = mk() if y is None else y
        go(x, y)
        for r in rest:
            go(y, r)
        if flag:
            go(y, kw["z"])
        return y

    a = mk()
    b = f(a)
    f(a, b, mk(), mk(), flag=True, z=mk())


def s49():
    state = dict(pos=mk(), vel=mk())
    new = {k: wp.zeros_like(v) for k, v in state.items()}
    for k in state:
        go(state[k], new[k])
    state.update(new)
    for k, v in state.items():
        go(v, new[k])
    merged = {**state, "extra": mk()} | {"more": mk()}
    go(merged["extra"], merged["more"])


def s50():
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    for _ in range(fib(4)):
        go(mk(), mk())


tape = wp.Tape()
with tape:
    for name in sorted(k for k in globals() if k[0] == "s" and k[1:].isdigit()):
        try:
            globals()[name]()
        except ValueError:
            pass

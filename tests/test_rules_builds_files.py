"""The rules about builds in programs of several files, and on values that differ from process to process.

What each program builds in a first and a second process was counted on 1.19; where a comment gives counts, they are
those of the first process.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import check, findings

from warplint.finding import Applicability

HEAD = """
import warp as wp
wp.config.enable_backward = False

def floats():
    return wp.zeros(3, dtype=float)
"""

Files = dict[str, str]


def kernel(name: str = "k", options: str = "", value: str = "1.0", mark: str = "") -> str:
    return f"""
@wp.kernel{options}{mark}
def {name}(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] + {value}
"""


def launch(name: str = "k", mark: str = "") -> str:
    return f"wp.launch({name}, dim=3, inputs=[floats()]){mark}\n"


def options(text: str, mark: str = "") -> str:
    return f"wp.set_module_options({text}){mark}\n"


LIBRARY = {"library.py": HEAD + kernel("theirs")}
IMPORTS = "import warp as wp\nimport library\nfrom library import floats, theirs\n"
FAST = '{"fast_math": True}'
LATE = "  # expect: NVW302"
OPTIONS: dict[str, tuple[str, Files]] = {
    "before the import, of a file without kernels": (
        "import warp as wp\n" + options(FAST, LATE) + IMPORTS + launch("theirs"),
        LIBRARY,
    ),
    "of the library, before its load": (IMPORTS + options(f"{FAST}, module=library") + launch("theirs"), LIBRARY),
    "of the library, after its load (2 builds)": (
        IMPORTS + launch("theirs") + options(f"{FAST}, module=library", LATE) + launch("theirs"),
        LIBRARY,
    ),
    "put back before the next load": (
        HEAD
        + kernel()
        + launch()
        + 'before = wp.get_module_options()["fast_math"]\n'
        + options(FAST)
        + options('{"fast_math": before}')
        + launch(),
        {},
    ),
    "of a module that several files share": (
        "import warp as wp\nwp.config.enable_backward = False\n"
        + options(f'{FAST}, module=wp.get_module("solver")')
        + "from a import a, floats\nfrom b import b\n"
        + launch("a")
        + launch("b"),
        {f"{name}.py": HEAD + kernel(name, '(module="solver")', f"{i}.5") for i, name in enumerate("ab")},
    ),
    "in a library's function, after a launch": (
        "from solver import run\nrun()\n",
        {
            **LIBRARY,
            "solver.py": IMPORTS
            + "def run():\n    "
            + launch("theirs")
            + "    "
            + options(f"{FAST}, module=theirs.module", LATE)
            + "    "
            + launch("theirs"),
        },
    ),
}


@pytest.mark.parametrize(("source", "others"), OPTIONS.values(), ids=OPTIONS)
def test_options_across_files(tmp_path: Path, source: str, others: Files) -> None:
    check(tmp_path, source, others=others)


WARP = "import warp as wp\n"
SHARING = {f"{name}.py": WARP + kernel(name, '(module="solver")') for name in "ab"}
SWITCH = WARP + "import theirs\n" + options(f"{FAST}, module=theirs")
AFFECTING: dict[str, tuple[str, Files]] = {
    "files of one module (1 build)": (
        HEAD + "import a\nimport b\n" + launch("a.a") + launch("b.b"),
        SHARING,
    ),
    "options of another file's module, before its load (1 build)": (
        HEAD + "import theirs\nimport switches\n" + launch("theirs.k"),
        {"theirs.py": WARP + kernel(), "switches.py": SWITCH},
    ),
    "options of another file's module, after its load (2 builds)": (
        HEAD + "import theirs\n" + launch("theirs.k") + "import switches\n" + launch("theirs.k"),
        {"theirs.py": WARP + kernel(), "switches.py": SWITCH.rstrip() + LATE},
    ),
}


@pytest.mark.parametrize(("source", "others"), AFFECTING.values(), ids=AFFECTING)
def test_what_an_imported_file_does_to_other_modules_happens_at_its_import(
    tmp_path: Path, source: str, others: Files
) -> None:
    check(tmp_path, source, others=others)


CONFIG: dict[str, tuple[str, Files]] = {
    "saved, set for an import, put back": (
        HEAD
        + kernel()
        + launch()
        + "before = wp.config.max_unroll\nwp.config.max_unroll = 4\nimport library\nwp.config.max_unroll = before\n"
        + launch()
        + launch("library.theirs"),
        LIBRARY,
    ),
    "put back before the module is used": (
        HEAD
        + kernel()
        + launch()
        + "before = wp.config.verify_fp\nwp.config.verify_fp = True\ntry:\n    pass\n"
        + "finally:\n    wp.config.verify_fp = before\n"
        + launch(),
        {},
    ),
    "put back after the module was used": (
        HEAD
        + kernel()
        + launch()
        + "before = wp.config.verify_fp\nwp.config.verify_fp = True  # expect: NVW301\n"
        + launch()
        + "wp.config.verify_fp = before\n"
        + launch(),
        {},
    ),
}


@pytest.mark.parametrize(("source", "others"), CONFIG.values(), ids=CONFIG)
def test_configuration_across_files(tmp_path: Path, source: str, others: Files) -> None:
    check(tmp_path, source, others=others)


SHARED = {f"{name}.py": HEAD + kernel(name, '(module="solver")', f"{i}.5") for i, name in enumerate("abc")}
IN_TURN = {
    "a.py": HEAD + kernel("a", '(module="solver")'),
    "b.py": HEAD + kernel("b", '(module="solver")', "7.0", mark="  # expect: NVW304"),
}
MAKER = """
import warp as wp

def make(home):
    @wp.kernel(module=home)  # expect: NVW304
    def b(x: wp.array(dtype=float)):
        x[wp.tid()] += 2.0
    return b
"""
NAMED: dict[str, tuple[str, Files]] = {
    "all imported first (1 build)": (
        "from a import a, floats\nfrom b import b\nfrom c import c\nimport warp as wp\n"
        + launch("a")
        + launch("b")
        + launch("c"),
        SHARED,
    ),
    "one imported after the other's launch (2 builds)": (
        "import warp as wp\nfrom a import a, floats\n" + launch("a") + "from b import b\n" + launch("b"),
        IN_TURN,
    ),
    "a kernel from another file's function (2 builds)": (
        HEAD
        + 'HOME = wp.Module("home")\n'
        + kernel("a", "(module=HOME)")
        + launch("a")
        + "import maker\nb = maker.make(HOME)\n"
        + launch("b"),
        {"maker.py": MAKER},
    ),
    "a module for each file": (
        "import warp as wp\nfrom a import a, floats\nfrom b import b\nfrom c import c\n"
        + launch("a")
        + launch("b")
        + launch("c"),
        {f"{name}.py": HEAD + kernel(name, f'(module="of_{name}")', f"{i}.5") for i, name in enumerate("abc")},
    ),
}


@pytest.mark.parametrize(("source", "others"), NAMED.values(), ids=NAMED)
def test_modules_of_several_files(tmp_path: Path, source: str, others: Files) -> None:
    check(tmp_path, source, others=others)


UNIQUE = '(module="unique")'
ALONE = "  # expect: NVW303"


def pair(indent: str, mark: str = ALONE, first: str = "1.0", second: str = "2.0") -> str:
    text = kernel("a", UNIQUE, first, mark) + kernel("b", UNIQUE, second, mark)
    return "".join(f"{indent}{line}\n" if line else "\n" for line in text.splitlines())


BUILD = "def build():\n" + pair("    ") + "    return a, b\n\n"
BUILD_SILENT = "def build():\n" + pair("    ", "") + "    return a, b\n\n"
BOTH = launch("a") + launch("b")
ONCE: dict[str, tuple[str, Files]] = {
    "in a function called once": (HEAD + BUILD + "a, b = build()\n" + BOTH, {}),
    "in a function called once by another one": (
        HEAD + BUILD + "def main():\n    a, b = build()\n    " + launch("a") + "    " + launch("b") + "\nmain()\n",
        {},
    ),
    "in the constructor of one object": (
        HEAD
        + "class Solver:\n    def __init__(self):\n"
        + pair("        ")
        + "        self.a, self.b = a, b\n\ns = Solver()\n"
        + launch("s.a")
        + launch("s.b"),
        {},
    ),
    "in a function called twice": (HEAD + BUILD_SILENT + "a, b = build()\na, b = build()\n" + BOTH, {}),
    "in a function whose results are kept": (
        HEAD + "import functools\n\n@functools.cache\n" + BUILD_SILENT + "a, b = build()\n" + BOTH,
        {},
    ),
    "that capture an argument": (
        HEAD + "def build(c):\n" + pair("    ", "", "c", "c * 2.0") + "    return a, b\n\na, b = build(3.0)\n" + BOTH,
        {},
    ),
    "made when the others were loaded (2 builds with the fix, too)": (
        HEAD + kernel("a", UNIQUE) + launch("a") + kernel("b", UNIQUE, "2.0") + launch("b"),
        {},
    ),
    "of other block sizes (on CUDA 2 builds with the fix, too)": (
        HEAD
        + kernel("a", UNIQUE)
        + kernel("b", UNIQUE, "2.0")
        + launch("a")
        + launch("b").replace("])", "], block_dim=64)"),
        {},
    ),
    "of which one is never launched": (
        HEAD + pair("", mark="  # expect-info: NVW303") + launch("a"),
        {},
    ),
    "in a file beside": (
        "import warp as wp\nwp.config.enable_backward = False\nfrom library import a, b, floats\n" + BOTH,
        {"library.py": HEAD + pair("")},
    ),
}


@pytest.mark.parametrize(("source", "others"), ONCE.values(), ids=ONCE)
def test_unique_kernels_that_are_declared_once(tmp_path: Path, source: str, others: Files) -> None:
    check(tmp_path, source, others=others)


def test_unique_kernels_of_a_package_are_left_to_its_own_check(tmp_path: Path) -> None:
    main = "import warp as wp\nwp.config.enable_backward = False\nfrom library import a, b, floats\n" + BOTH
    check(tmp_path, "pass\n", others={"library.py": HEAD + pair("", "")})
    others = {"app/main.py": "import sys\n" + main, "library.py": HEAD + pair("", "")}
    assert findings(tmp_path, others, entry="app/main.py") == ()


FAST = '(module="unique", module_options={"fast_math": True})'
PLAIN = kernel("c", value="3.0")
SMALL = launch("a").replace("])", "], block_dim=64)") + launch("b").replace("])", "], block_dim=64)")
HOMES: dict[str, tuple[str, Applicability | None]] = {
    "the file's module": (HEAD + pair("") + PLAIN + BOTH + launch("c"), Applicability.SAFE),
    "a file's module with options": (
        HEAD + 'wp.set_module_options({"fast_math": True})\n' + pair("") + BOTH,
        Applicability.UNSAFE,
    ),
    "no module but one with their options": (
        HEAD + kernel("a", FAST, mark=ALONE) + kernel("b", FAST, "2.0", ALONE) + BOTH,
        None,
    ),
    "no module that is built for another block size": (HEAD + pair("") + PLAIN + SMALL + launch("c"), None),
    "the module of their block size": (HEAD + pair("") + SMALL, Applicability.SAFE),
}


@pytest.mark.parametrize(("source", "home"), HOMES.values(), ids=HOMES)
def test_unique_kernels_go_where_they_fit(tmp_path: Path, source: str, home: Applicability | None) -> None:
    found = [each for each in findings(tmp_path, {"main.py": source}, entry="main.py") if each.code == "NVW303"]
    assert [each.fix.applicability if each.fix is not None else None for each in found] == [home, home]
    assert all(("under a name" in each.message) == (home is None) for each in found)


COLD = "  # expect: NVW306"
USES = """
@wp.kernel
def k(x: wp.array(dtype=float)):
    x[wp.tid()] += float(wp.static({value})){mark}

"""


def value(name: str, text: str, mark: str = COLD, imports: str = "") -> str:
    return f"{imports}{HEAD}{text}{mark}\n" + USES.format(value=name, mark="") + launch()


def inline(text: str, mark: str = COLD, imports: str = "") -> str:
    return imports + HEAD + USES.format(value=text, mark=mark) + launch()


NAMES = "{'steel', 'wood', 'glass', 'stone'}"
VARYING = {
    "a random number": value("SEED", "SEED = random.randint(0, 1000)", imports="import random\n"),
    "a random number, seeded": value(
        "SEED", "random.seed(3)\nSEED = random.randint(0, 1000)", "", imports="import random\n"
    ),
    "numpy's, unseeded": value(
        "SEED", "SEED = float(np.random.default_rng().random())", imports="import numpy as np\n"
    ),
    "numpy's, seeded": value(
        "SEED", "SEED = float(np.random.default_rng(3).random())", "", imports="import numpy as np\n"
    ),
    "a clock, read by a function that the kernel calls": "import time\n"
    + HEAD
    + "SEED = int(time.time() * 10.0) % 1000"
    + COLD
    + "\n"
    + """
@wp.func
def inner():
    return wp.rand_init(SEED, 0)

@wp.func
def noise(i: int):
    return wp.randn(inner()) * float(i)

@wp.kernel
def k(x: wp.array(dtype=float)):
    x[wp.tid()] += noise(wp.tid())
"""
    + launch(),
    "a random number in wp.static": inline("random.random()", imports="import random\n"),
    "the time in wp.static": inline("int(time.time())", imports="import time\n"),
    "a constant in wp.static": inline("float(3)", ""),
    "an address": value("TAG", "TAG = id(floats) % 97"),
    "a place in a set": value("WOOD", f"WOOD = list({NAMES}).index('wood')"),
    "a place in a sorted set": value("WOOD", f"WOOD = sorted({NAMES}).index('wood')", ""),
    "a place in a set of numbers": value("SEVEN", "SEVEN = list({3, 7, 11}).index(7)", ""),
    "an item of a set": value("FIRST", f"FIRST = len(next(iter({NAMES})))"),
    "numbers of a set's items": value(
        "WOOD", f"IDS = {{name: i for i, name in enumerate({NAMES})}}\nWOOD = IDS['wood']"
    ),
    "numbers of a sorted set's items": value(
        "WOOD", f"IDS = {{name: i for i, name in enumerate(sorted({NAMES}))}}\nWOOD = IDS['wood']", ""
    ),
    "numbers beside a set": value("WOOD", f"WOOD = dict(zip({NAMES}, range(4)))['wood']"),
    "the size of a set": value("COUNT", f"COUNT = len({NAMES})", ""),
    "an argument of a factory": "import os\n"
    + HEAD
    + "def make(seed):"
    + USES.format(value="seed", mark="").replace("\n", "\n    ")
    + "return k\n\nk = make(os.getpid())  # expect: NVW306\n"
    + launch(),
    "a cache folder by the clock": "import time\n"
    + HEAD
    + kernel()
    + f'wp.config.kernel_cache_dir = "/tmp/k" + time.strftime("%H%M%S"){COLD}\n'
    + launch(),
    "a cache folder by a given time": "import time\n"
    + HEAD
    + kernel()
    + 'wp.config.kernel_cache_dir = "/tmp/k" + time.strftime("%H", time.gmtime(0))\n'
    + launch(),
    "a cache folder of the environment": "import os, tempfile\n"
    + f'os.environ["WARP_CACHE_PATH"] = tempfile.mkdtemp(){COLD}\n'
    + HEAD
    + kernel()
    + launch(),
    "a fixed folder of the environment": 'import os\nos.environ["WARP_CACHE_PATH"] = "/tmp/kernels"\n'
    + HEAD
    + kernel()
    + launch(),
}


@pytest.mark.parametrize("source", VARYING.values(), ids=VARYING)
def test_what_differs_from_process_to_process(tmp_path: Path, source: str) -> None:
    check(tmp_path, source)


AGAIN = "  # expect: NVW304"
LOOP = "x = floats()\nfor i in range(3):\n    c = float(i)\n    y = "
MAPS = {
    "a lambda that reads a changing global (3 builds)": LOOP + "wp.map(lambda v: v * c, x)" + AGAIN + "\n",
    "a function that reads a changing global (3 builds)": "def f(v: float):\n    return v * c\n\n"
    + LOOP
    + f"wp.map(f, x){AGAIN}\n",
    "a wp.func that reads a changing global (1 build)": "@wp.func\ndef f(v: float):\n    return v * c\n\n"
    + LOOP
    + "wp.map(f, x)\n",
    "a lambda whose captured variable changes in its call (3 builds)": "def scale(x):\n    for c in (1.0, 2.0, 3.0):\n"
    + f"        y = wp.map(lambda v: v * c, x){AGAIN}\n\nscale(floats())\n",
    "the same in a generator (3 builds)": "def scale(x):\n    for c in (1.0, 2.0, 3.0):\n"
    + f"        yield wp.map(lambda v: v * c, x){AGAIN}\n\nfor y in scale(floats()):\n    print(y)\n",
    "a nested function whose captured variable changes (3 builds)": "def scale(x):\n    for c in (1.0, 2.0, 3.0):\n"
    + "        def times(v: float):\n            return v * c\n\n"
    + f"        y = wp.map(times, x){AGAIN}\n\nscale(floats())\n",
    "a nested wp.func whose captured variable changes (1 build)": "def scale(x):\n    for c in (1.0, 2.0, 3.0):\n"
    + "        @wp.func\n        def times(v: float):\n            return v * c\n\n"
    + "        y = wp.map(times, x)\n\nscale(floats())\n",
    "a fresh lambda that captures an argument (1 build)": "def scale(x, c):\n    return wp.map(lambda v: v * c, x)\n\n"
    + LOOP
    + "scale(x, c)\n",
    "a kernel whose function captures a changing value (2 builds)": f"""
def make(c):
    @wp.func
    def f(v: float):
        return v * wp.static(c)

    @wp.kernel{AGAIN}
    def k(x: wp.array(dtype=float)):
        x[wp.tid()] = f(x[wp.tid()])

    return k

for c in (1.0, 2.0):
    wp.launch(make(c), dim=3, inputs=[floats()])
""",
}


def test_a_program_of_maps_alone_is_looked_at(tmp_path: Path) -> None:
    maps = "import warp as wp  # expect: NVW307\nx = wp.zeros(3, dtype=float)\nfor c in (1.0, 2.0):\n"
    check(tmp_path, f"{maps}    print(wp.map(lambda v: v * c, x)){AGAIN}\n")


@pytest.mark.parametrize("source", MAPS.values(), ids=MAPS)
def test_functions_that_become_kernels(tmp_path: Path, source: str) -> None:
    check(tmp_path, HEAD + source)

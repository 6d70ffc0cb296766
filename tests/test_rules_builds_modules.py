"""The rules about what makes modules be built again, or at all, on the measured variants."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import check

HEAD = """
import warp as wp
wp.config.enable_backward = False

def floats():
    return wp.zeros(3, dtype=float)
"""

KERNEL = """
@wp.kernel{options}
def {name}(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] + {value}
"""


def kernel(name: str = "k", options: str = "", value: str = "1.0", mark: str = "") -> str:
    return KERNEL.format(name=name, options=options + mark, value=value)


def launch(name: str = "k", mark: str = "") -> str:
    return f"wp.launch({name}, dim=3, inputs=[floats()]){mark}\n"


def options(text: str, mark: str = "") -> str:
    return f"wp.set_module_options({text}){mark}\n"


LATE = "  # expect: NVW302"
OPTIONS = {
    "after the load": kernel() + launch() + options('{"fast_math": True}', LATE) + launch(),
    "mode": kernel() + launch() + options('{"mode": "debug"}', LATE) + launch(),
    "backward": kernel() + launch() + options('{"enable_backward": True}', LATE) + launch(),
    "in a loaded module's dict": kernel()
    + launch()
    + f'wp.get_module("__main__").options["fast_math"] = True{LATE}\n'
    + launch(),
    "unique": options('{"fast_math": True}', LATE) + kernel("k", '(module="unique")') + launch(),
    "before the load": kernel() + options('{"fast_math": True}') + launch(),
    "the same value": kernel() + launch() + options('{"fast_math": False, "mode": "release"}') + launch(),
    "the block size": kernel() + launch() + options('{"block_dim": 64}') + launch(),
    "not used any more": kernel() + launch() + options('{"fast_math": True}'),
    "unique, its own": options('{"fast_math": True}')
    + kernel("k", '(module="unique", module_options={"fast_math": True})')
    + launch(),
}


@pytest.mark.parametrize("source", OPTIONS.values(), ids=OPTIONS)
def test_module_options(tmp_path: Path, source: str) -> None:
    check(tmp_path, HEAD + source)


def test_options_of_a_file_without_kernels(tmp_path: Path) -> None:
    library = {"library.py": HEAD + kernel("theirs")}
    main = "import warp as wp\nfrom library import floats, theirs\n"
    check(tmp_path, main + options('{"fast_math": True}', LATE) + launch("theirs"), others=library)
    check(tmp_path, main + options('{"fast_math": True}, module="library"') + launch("theirs"), others=library)
    check(tmp_path, main + options('{"fast_math": True}') + kernel() + launch("theirs"), others=library)


AGAIN = "  # expect: NVW304"
FACTORY = """
{cache}
def make(c):
    @wp.kernel{options}
    def k(x: wp.array(dtype=float)):
        x[wp.tid()] += c
    return k

"""


def factory(cache: str = "", options: str = "") -> str:
    return "import functools\n" + FACTORY.format(cache=cache, options=options)


def launched(values: str) -> str:
    return f"for c in {values}:\n    wp.launch(make(c), dim=3, inputs=[floats()])\n"


CONTENT = {
    "both first": kernel("a") + kernel("b", value="2.0") + launch("a") + launch("b"),
    "one by one": kernel("a") + launch("a") + kernel("b", mark=AGAIN, value="2.0") + launch("b"),
    "never launched": kernel("a") + launch("a") + kernel("b", value="2.0"),
    "another capture each time": factory(options=AGAIN) + launched("(1.0, 2.0, 3.0)"),
    "the same capture each time": factory() + launched("(1.0, 1.0, 1.0)"),
    "all made first": factory()
    + "made = [make(c) for c in (1.0, 2.0, 3.0)]\n"
    + "for k in made:\n    wp.launch(k, dim=3, inputs=[floats()])\n",
    "a cached factory of unique kernels": factory("@functools.lru_cache", '(module="unique")')
    + launched("(1.0, 2.0, 1.0, 2.0)"),
    "an attribute": f"""
class Model:
    def __init__(self):
        self.level = 1

    def step(self):
        @wp.kernel{AGAIN}
        def k(x: wp.array(dtype=float)):
            for _ in range(wp.static(self.level)):
                x[wp.tid()] += 1.0
        wp.launch(k, dim=3, inputs=[floats()])
        self.level += 1

model = Model()
for _ in range(3):
    model.step()
""",
    "a global": f"""
for LEVEL in (1, 2, 3):
    @wp.kernel{AGAIN}
    def k(x: wp.array(dtype=float)):
        x[wp.tid()] += float(wp.static(LEVEL))
    wp.launch(k, dim=3, inputs=[floats()])
""",
    "an argument": """
@wp.kernel
def k(x: wp.array(dtype=float), c: float):
    x[wp.tid()] += c

for c in (1.0, 2.0):
    wp.launch(k, dim=3, inputs=[floats(), c])
""",
    "a map of one lambda": "x = floats()\nfor _ in range(3):\n    y = wp.map(lambda v: v + 1.0, x)\n",
    "a map that captures": "x = floats()\nfor c in (1.0, 2.0):\n    y = wp.map(lambda v: v + c, x)" + AGAIN + "\n",
    "array operators": "x = floats()\ny = x + x\nz = x * y\nw = x + z\n",
}


@pytest.mark.parametrize("source", CONTENT.values(), ids=CONTENT)
def test_content_that_comes_after_the_load(tmp_path: Path, source: str) -> None:
    check(tmp_path, HEAD + source)


GENERIC = """
from typing import Any

@wp.kernel{options}
def add(x: wp.array(dtype=Any), c: Any):
    x[wp.tid()] = x[wp.tid()] + x[wp.tid()]

"""


def generic(*types: str, mark: str = "", options: str = "") -> str:
    return GENERIC.format(options=options) + used(*types, mark=mark)


def used(*types: str, mark: str = "") -> str:
    lines = [f"wp.launch(add, dim=3, inputs=[wp.zeros(3, dtype={name}), 1])" for name in types]
    return "\n".join([*lines[:1], *(line + mark for line in lines[1:]), ""])


def overloads(*types: str) -> str:
    return f"for t in ({', '.join(types)},):\n    wp.overload(add, [wp.array(dtype=t), wp.float32])\n"


GROWING = "  # expect: NVW305"
INSTANCES = {
    "new types": generic("float", "wp.float64", "wp.vec3", mark=GROWING),
    "the same type": generic("float", "wp.float32", "float"),
    "two names of one type": generic("wp.vec3", "wp.vec3f"),
    "unique": generic("float", "wp.float64", mark="  # expect-info: NVW305", options='(module="unique")'),
    "a struct by the name of a type variable": """
@wp.struct
class Scalar:
    a: float

@wp.kernel
def k(y: wp.array(dtype=Scalar)):
    y[wp.tid()].a = 1.0

@wp.kernel
def other(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0

wp.launch(other, dim=3, inputs=[floats()])
wp.launch(k, dim=3, inputs=[wp.zeros(3, dtype=Scalar)])
""",
    "an unknown type": "import sys\n" + generic("float", "getattr(wp, sys.argv[1])"),
    "overloads first": generic() + overloads("float", "wp.float64") + used("float", "wp.float64"),
}


@pytest.mark.parametrize("source", INSTANCES.values(), ids=INSTANCES)
def test_instances_of_generic_kernels(tmp_path: Path, source: str) -> None:
    check(tmp_path, HEAD + source)


COLD = "  # expect: NVW306"
CONSTANT = """
TAG = wp.constant({value}){mark}

@wp.kernel
def k(x: wp.array(dtype=float)):
    x[wp.tid()] = float(TAG)

"""


def constant(value: str, mark: str = "") -> str:
    return CONSTANT.format(value=value, mark=mark)


CACHE = {
    "cleared": f"wp.clear_kernel_cache(){COLD}\n" + kernel() + launch(),
    "cleared on demand": 'import sys\nif "--rebuild" in sys.argv:\n    wp.clear_kernel_cache()\n' + kernel() + launch(),
    "off": f"wp.config.cache_kernels = False{COLD}\n" + kernel() + launch(),
    "a fresh folder": f"import tempfile\nwp.config.kernel_cache_dir = tempfile.mkdtemp(){COLD}\n" + kernel() + launch(),
    "a fixed folder": "import os, tempfile\n"
    'wp.config.kernel_cache_dir = os.path.join(tempfile.gettempdir(), "kernels")\n' + kernel() + launch(),
    "removed": f"import shutil\nshutil.rmtree(wp.config.kernel_cache_dir){COLD}\n" + kernel() + launch(),
    "the tracker": f"wp.config.verify_autograd_array_access = True{COLD}\n" + kernel() + launch(),
    "the tracker for a while": "wp.config.verify_autograd_array_access = True\n"
    + kernel()
    + launch()
    + "wp.config.verify_autograd_array_access = False\n",
    "the time": "import time\n" + constant("int(time.time())", COLD) + launch(),
    "a salted hash": constant('hash("steel") % 97', COLD) + launch(),
    "a hash of numbers": constant("hash((1, 2)) % 97") + launch(),
    "a checksum": "import zlib\n" + constant('zlib.crc32(b"steel") % 97') + launch(),
    "the time as an argument": "import time\nTAG = time.time()\n" + kernel() + launch(),
}


@pytest.mark.parametrize("source", CACHE.values(), ids=CACHE)
def test_what_keeps_the_cache_from_being_used(tmp_path: Path, source: str) -> None:
    check(tmp_path, HEAD + source)


SHOWS = "import warp as wp{mark}\n\ndef floats():\n    return wp.zeros(3, dtype=float)\n"
UNNEEDED = "  # expect: NVW307"


@pytest.mark.parametrize(
    "more",
    [
        "tape = wp.Tape()\n",
        'wp.set_module_options({"enable_backward": True})\n',
        "import torch\n",
        "import unittest\n",
        "import some_simulator\n",
        "def later(x):\n    wp.launch(k, dim=3, inputs=[x], adjoint=True)\n",
    ],
)
def test_adjoints_that_something_could_run(tmp_path: Path, more: str) -> None:
    check(tmp_path, SHOWS.format(mark="") + more + kernel() + launch())


def test_adjoints_that_nothing_runs(tmp_path: Path) -> None:
    check(tmp_path, SHOWS.format(mark=UNNEEDED) + kernel() + launch())
    check(tmp_path, SHOWS.format(mark="") + kernel())
    check(tmp_path, SHOWS.format(mark="") + kernel("k", "(enable_backward=False)") + launch())
    library = {"library.py": SHOWS.format(mark="") + "def loss(x):\n    return wp.Tape()\n"}
    check(tmp_path, SHOWS.format(mark="") + "import library\n" + kernel() + launch(), others=library)


def test_a_library_that_tries_itself_out_is_no_program_to_switch_off(tmp_path: Path) -> None:
    tried = kernel() + 'if __name__ == "__main__":\n    ' + launch()
    check(tmp_path, SHOWS.format(mark="") + tried, others={"solver.py": "from program import k\n"})
    check(tmp_path, SHOWS.format(mark=UNNEEDED) + tried, others={"solver.py": "# program\n"})


def modules(*names: str, mark: str = "", options: str = "") -> str:
    made = "".join(
        f'{name}_home = wp.Module("{name}_home"){mark if not i else ""}\n'
        + kernel(name, f"(module={name}_home{options})", value=f"{i}.0")
        for i, name in enumerate(names)
    )
    return made + "".join(launch(name) for name in names)


MANY = "  # expect: NVW308"
SMALL = {
    "three": modules("a", "b", "c", mark=MANY),
    "two": modules("a", "b"),
    "two of three alike": modules("a", "b") + modules("c", options=", enable_backward=True"),
    "made as they are needed": modules("a") + modules("b") + modules("c"),
    "two kernels in one": kernel("d", '(module="a_home")') + modules("a", "b", "c"),
}


@pytest.mark.parametrize("source", SMALL.values(), ids=SMALL)
def test_modules_of_one_kernel(tmp_path: Path, source: str) -> None:
    check(tmp_path, HEAD + source)

"""The rules about options and builds, on the measured variants."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from programs import check as check_all

check = partial(check_all, select=("NVW301", "NVW303"))

HEAD = """
import warp as wp
"""

KERNEL = """
@wp.kernel{options}
def {name}(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] + {value}
"""


def kernel(name: str = "k", options: str = "", value: str = "1.0") -> str:
    return KERNEL.format(name=name, options=options, value=value)


def launch(name: str = "k") -> str:
    return f"wp.launch({name}, dim=3, inputs=[wp.zeros(3, dtype=float)])\n"


def assign(option: str, value: str, mark: str = "") -> str:
    return f"wp.config.{option} = {value}{mark}\n"


LATE = "  # expect: NVW301"
INFO = "  # expect-info: NVW301"

CREATION = [("max_unroll", "4"), ("enable_backward", "False"), ("lineinfo", "True"), ("compile_time_trace", "True")]
FIRST_LOAD = [
    ("mode", '"debug"'),
    ("optimization_level", "1"),
    ("verify_fp", "True"),
    ("line_directives", "False"),
    ("enable_vector_component_overwrites", "True"),
    ("use_precompiled_headers", "False"),
    ("verify_autograd_array_access", "True"),
    ("enable_tiles_in_stack_memory", "False"),
    ("enable_mathdx_gemm", "False"),
    ("default_grid_stride", "False"),
    ("llvm_cuda", "True"),
]
LOAD = [("cuda_output", '"ptx"'), ("cache_kernels", "False"), ("kernel_cache_dir", '"/tmp/elsewhere"')]
USE = [("print_launches", "True"), ("verify_cuda", "True"), ("quiet", "True"), ("log_level", "30")]


@pytest.mark.parametrize(("option", "value"), CREATION)
def test_options_that_a_module_copies_when_it_is_made(tmp_path: Path, option: str, value: str) -> None:
    check(tmp_path, HEAD + assign(option, value) + kernel() + launch())
    check(tmp_path, HEAD + kernel() + assign(option, value, LATE) + launch())
    check(tmp_path, HEAD + kernel() + launch() + assign(option, value, LATE) + launch())


def test_options_of_one_statement_are_told_apart(tmp_path: Path) -> None:
    both = f"wp.config.max_unroll, wp.config.enable_backward = 64, False{LATE}\n"
    found = check(tmp_path, HEAD + kernel() + both + launch())
    assert {each.anchor.option for each in found} == {"max_unroll", "enable_backward"}


@pytest.mark.parametrize(("option", "value"), FIRST_LOAD)
def test_options_that_are_read_at_the_first_load(tmp_path: Path, option: str, value: str) -> None:
    check(tmp_path, HEAD + kernel() + assign(option, value) + launch())
    check(tmp_path, HEAD + kernel() + launch() + assign(option, value, LATE) + launch())
    check(tmp_path, HEAD + kernel() + launch() + assign(option, value) + kernel("b", value="2.0") + launch("b"))
    check(tmp_path, HEAD + kernel() + launch() + assign(option, value))


@pytest.mark.parametrize(("option", "value"), LOAD)
def test_options_that_are_read_at_each_load(tmp_path: Path, option: str, value: str) -> None:
    check(tmp_path, HEAD + kernel() + assign(option, value) + launch())
    check(tmp_path, HEAD + kernel() + launch() + assign(option, value, LATE) + launch())


@pytest.mark.parametrize(("option", "value"), USE)
def test_options_that_are_read_at_each_use(tmp_path: Path, option: str, value: str) -> None:
    check(tmp_path, HEAD + kernel() + launch() + assign(option, value) + launch())


def test_an_option_that_this_warp_does_not_have(tmp_path: Path) -> None:
    source = HEAD + kernel() + launch() + assign("default_grid_stride", "False", LATE) + launch()
    check(tmp_path, source, warp_version=(1, 15))
    check(tmp_path, source.replace(LATE, ""), warp_version=(1, 14))


SILENT = {
    "the default again": kernel() + launch() + assign("max_unroll", "16") + launch(),
    "put back": assign("max_unroll", "4") + kernel() + launch() + assign("max_unroll", "16") + launch(),
    "set the same again": assign("max_unroll", "4") + kernel() + assign("max_unroll", "4") + launch(),
    "an unknown value": "import sys\n" + kernel() + assign("max_unroll", "int(sys.argv[1])") + launch(),
    "the module's own": 'wp.set_module_options({"max_unroll": 8})\n' + kernel() + assign("max_unroll", "4") + launch(),
    "each kernel's own": kernel(options="(enable_backward=False)") + assign("enable_backward", "False") + launch(),
}


@pytest.mark.parametrize("source", SILENT.values(), ids=SILENT)
def test_assignments_that_ask_for_nothing(tmp_path: Path, source: str) -> None:
    check(tmp_path, HEAD + source)


def test_a_later_module_gets_it(tmp_path: Path) -> None:
    library = HEAD + kernel("theirs")
    check(
        tmp_path,
        HEAD
        + kernel()
        + assign("max_unroll", "4", INFO)
        + "from library import theirs\n"
        + launch()
        + launch("theirs"),
        others={"library.py": library},
    )


def test_an_imported_module_is_made_before(tmp_path: Path) -> None:
    library = HEAD + kernel("theirs")
    late = HEAD + "from library import theirs\n" + assign("enable_backward", "False", LATE) + launch("theirs")
    early = HEAD + assign("enable_backward", "False") + "from library import theirs\n" + launch("theirs")
    check(tmp_path, late, others={"library.py": library})
    check(tmp_path, early, others={"library.py": library})


UNIQUE = '(module="unique")'
ALONE = "  # expect: NVW303"


def marked(name: str, options: str = UNIQUE, value: str = "1.0") -> str:
    return kernel(name, options + ALONE, value)


def test_stable_kernels_that_could_share_a_module(tmp_path: Path) -> None:
    (first, second) = check(tmp_path, HEAD + marked("a") + marked("b", value="2.0") + launch("a") + launch("b"))
    assert "`b`" in first.message
    assert second.labels
    check(tmp_path, HEAD + marked("a") + kernel("b", value="2.0") + launch("a") + launch("b"))


FINE = {
    "no company": kernel("a", UNIQUE) + launch("a"),
    "other options": kernel("a", '(module="unique", enable_backward=False)')
    + kernel("b", UNIQUE, "2.0")
    + launch("a")
    + launch("b"),
    "other module options": kernel("a", '(module="unique", module_options={"fast_math": True})')
    + kernel("b", UNIQUE, "2.0")
    + launch("a")
    + launch("b"),
    "a factory": """
import functools

@functools.lru_cache
def make(c):
    @wp.kernel(module="unique")
    def k(x: wp.array(dtype=float)):
        x[wp.tid()] += c
    return k

for c in (1.0, 2.0, 3.0):
    wp.launch(make(c), dim=3, inputs=[wp.zeros(3, dtype=float)])
""",
    "generic": """
from typing import Any

@wp.kernel(module="unique")
def a(x: wp.array(dtype=Any)):
    x[wp.tid()] = x[wp.tid()] + x[wp.tid()]

@wp.kernel(module="unique")
def b(x: wp.array(dtype=Any)):
    x[wp.tid()] = x[wp.tid()] * x[wp.tid()]
""",
}


@pytest.mark.parametrize("source", FINE.values(), ids=FINE)
def test_unique_modules_that_are_meant(tmp_path: Path, source: str) -> None:
    check(tmp_path, HEAD + source)


def test_kernels_in_a_class_body(tmp_path: Path) -> None:
    body = marked("a") + marked("b", value="2.0")
    indented = "\n".join(f"    {line}" for line in body.splitlines())
    check(tmp_path, f"{HEAD}\nclass Field:\n{indented}\n\n{launch('Field.a')}{launch('Field.b')}")

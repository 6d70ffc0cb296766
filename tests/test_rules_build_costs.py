"""The rules about what makes builds long: block sizes, unrolled loops, headers, threads, loads of everything, links."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from programs import check
from traces import Program

from warplint.finding import Finding, Severity
from warplint.registry import rule_of
from warplint.rule import Context
from warplint.trace.events import ModuleLoaded

HEAD = """
import warp as wp
{switch}

def floats():
    return wp.zeros(3, dtype=float)
"""
FORWARD = HEAD.format(switch="wp.config.enable_backward = False")


def kernel(name: str = "k", options: str = "", value: str = "1.0") -> str:
    return f"""
@wp.kernel{options}
def {name}(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] + {value}
"""


def launch(name: str = "k", more: str = "", mark: str = "") -> str:
    return f"wp.launch({name}, dim=3, inputs=[floats()]{more}){mark}\n"


SIZED = "  # expect: NVW309"
ON_CUDA, ON_CPU = ', device="cuda:0"', ', device="cpu"'
APART = kernel("a", '(module="one")') + kernel("b", '(module="two")', "2.0")
BLOCKS = {
    "two sizes": kernel()
    + launch(more=", block_dim=64")
    + launch(more=", block_dim=128", mark="  # expect-info: NVW309"),
    "two sizes on CUDA": kernel()
    + launch(more=f", block_dim=64{ON_CUDA}")
    + launch(more=f", block_dim=128{ON_CUDA}", mark=SIZED),
    "two sizes on the CPU (1 build)": kernel()
    + launch(more=f", block_dim=64{ON_CPU}")
    + launch(more=f", block_dim=128{ON_CPU}"),
    "two sizes on the CPU, with blocks (2 builds)": "wp.config.enable_cpu_blocks = True\n"
    + kernel()
    + launch(more=f", block_dim=64{ON_CPU}")
    + launch(more=f", block_dim=128{ON_CPU}", mark=SIZED),
    "the default and another size": 'DEVICE = "cuda"\n'
    + kernel()
    + launch()
    + launch(more=", block_dim=64", mark=SIZED),
    "the default by number": 'DEVICE = "cuda"\n' + kernel() + launch() + launch(more=", block_dim=256"),
    "a size for each module": 'DEVICE = "cuda"\n'
    + APART
    + launch("a", ", block_dim=64")
    + launch("b", ", block_dim=128"),
    "sizes that nobody knows": 'import sys\nDEVICE = "cuda"\n'
    + kernel()
    + launch(more=", block_dim=int(sys.argv[1])")
    + launch(more=", block_dim=int(sys.argv[2])"),
}


@pytest.mark.parametrize("source", BLOCKS.values(), ids=BLOCKS)
def test_block_sizes(tmp_path: Path, source: str) -> None:
    check(tmp_path, FORWARD + source)


LARGE = "  # expect: NVW310"
WITH_ADJOINTS = "ADJOINTS = wp.Tape"


def nest(*counts: object, mark: str = "", body: str = "s += x[i] * float(j)", before: str = "") -> str:
    """A kernel with a loop in a loop for each count; the innermost index is ``j``."""
    lines = [before, "@wp.kernel", "def k(x: wp.array(dtype=float)):", "    i = wp.tid()", "    s = float(0.0)"]
    for depth, count in enumerate(counts):
        name = "j" if depth == len(counts) - 1 else f"q{depth}"
        lines.append(f"{'    ' * (depth + 1)}for {name} in range({count}):{mark if not depth else ''}")
    indent = "    " * (len(counts) + 1)
    lines += [indent + line for line in body.splitlines()]
    return "\n".join([*lines, "    x[i] = s", "", ""]) + launch()


LOOPS = {
    "16 x 16 x 16 (995 kB with adjoints)": nest(16, 16, 16, mark=LARGE),
    "10 x 10 x 10": nest(10, 10, 10, mark=LARGE),
    "3 x 3 x 3": nest(3, 3, 3),
    "6 x 6": nest(6, 6),
    "64 x 64, which stay loops": nest(64, 64),
    "100 x 16, of which one stays a loop": nest(100, 16),
    "1024 under a raised limit": nest(1024, mark=LARGE, before="wp.config.max_unroll = 1024"),
    "by a constant of the file": nest("N", "N", "N", mark=LARGE, before="N = 16"),
    "by wp.constant": nest("N", "N", "N", mark=LARGE, before="N = wp.constant(16)"),
    "by wp.static": nest("wp.static(N)", 16, 16, mark=LARGE, before="N = 16"),
    "backwards": nest("15, -1, -1", 16, 16, mark=LARGE),
    "an inner break": nest(16, 16, 16, body="s += x[i] * float(j)\nif s > 1.0:\n    break"),
    "a lowered limit": nest(16, 16, 16, before='wp.set_module_options({"max_unroll": 8})'),
    "2000 forced by wp.static": nest(2000, mark=LARGE, body="s += wp.static(float(j)) * x[i]"),
    "bounds that nobody knows": nest("N", "N", "N", before="import sys\nN = int(sys.argv[1])"),
    "in a function": f"""
@wp.func
def total(v: float):
    s = float(0.0)
    for a in range(16):{LARGE}
        for b in range(16):
            for c in range(16):
                s += v * float(a * b * c)
    return s

@wp.kernel
def k(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = total(x[i])

{launch()}""",
    "never launched": nest(16, 16, 16).replace(launch(), ""),
}


@pytest.mark.parametrize("source", LOOPS.values(), ids=LOOPS)
def test_unrolled_loops(tmp_path: Path, source: str) -> None:
    check(tmp_path, FORWARD + source)


def test_an_adjoint_triples_the_source(tmp_path: Path) -> None:
    loop = nest(16, 16, mark="  # expect: NVW310")
    check(tmp_path, HEAD.format(switch=WITH_ADJOINTS) + loop)
    check(tmp_path, FORWARD + loop.replace("  # expect: NVW310", ""))


OFF = "wp.config.use_precompiled_headers = False"
AGAIN = "  # expect: NVW311"
HEADERS = {
    "two modules": f"{OFF}{AGAIN}\n" + APART + launch("a") + launch("b"),
    "one module": f"{OFF}\n" + kernel("a") + kernel("b", value="2.0") + launch("a") + launch("b"),
    "two modules, one loaded before": APART + launch("a") + f"{OFF}\n" + launch("b"),
    "two modules, on again for the second": f"{OFF}\n"
    + APART
    + launch("a")
    + "wp.config.use_precompiled_headers = True\n"
    + launch("b"),
    "a program for CUDA": 'DEVICE = "cuda:0"\n' + f"{OFF}  # expect-info: NVW311\n" + APART + launch("a") + launch("b"),
}


@pytest.mark.parametrize("source", HEADERS.values(), ids=HEADERS)
def test_headers(tmp_path: Path, source: str) -> None:
    check(tmp_path, FORWARD + source)


BOTH = "modules=[a.module, b.module]"
THREADS = "  # expect: NVW312"


def loaded(arguments: str, mark: str = "", before: str = "") -> str:
    return before + APART + f"wp.force_load({arguments}){mark}\n" + launch("a") + launch("b")


WORKERS = {
    "the CPU": loaded(f'"cpu", {BOTH}, max_workers=4', THREADS),
    "all devices": loaded(f"{BOTH}, max_workers=2", THREADS),
    "several devices": loaded(f'["cuda:0", "cpu"], {BOTH}, max_workers=2', THREADS),
    "CUDA": loaded(f'"cuda:0", {BOTH}, max_workers=4'),
    "CUDA as an object": loaded(f'wp.get_device("cuda:0"), {BOTH}, max_workers=4'),
    "one after another": loaded(f'"cpu", {BOTH}'),
    "by the configuration": loaded(f'"cpu", {BOTH}', THREADS, "wp.config.load_module_max_workers = 4\n"),
    "as Warp likes": loaded(f'"cpu", {BOTH}', THREADS, "wp.config.load_module_max_workers = None\n"),
    "a device that nobody knows": loaded(
        f"sys.argv[1], {BOTH}, max_workers=4", "  # expect-info: NVW312", "import sys\n"
    ),
    "one module": loaded('"cpu", [a.module], max_workers=4'),
}


@pytest.mark.parametrize("source", WORKERS.values(), ids=WORKERS)
def test_threads_that_load(tmp_path: Path, source: str) -> None:
    check(tmp_path, FORWARD + source)


ALL = "  # expect: NVW313"
FOUR = "".join(
    kernel(name + more, f'(module="of_{name}")', f"{i}.0") for i, name in enumerate("abcd") for more in ("", "2")
)
EVERYTHING = {
    "of one module (4 builds)": kernel() + f'wp.force_load("cpu"){ALL}\n' + launch(),
    "on all devices": kernel() + f"wp.force_load(){ALL}\n" + launch(),
    "the file's own": kernel() + 'wp.load_module(device="cpu")\n' + launch(),
    "named": kernel() + 'wp.force_load("cpu", modules=[k.module])\n' + launch(),
    "all of which are used": FOUR + 'wp.force_load("cpu")\n' + "".join(launch(name) for name in "abcd"),
    "most of which are not": FOUR + f'wp.force_load("cpu"){ALL}\n' + launch("a"),
    "with a launch that nobody knows": kernel()
    + 'import somewhere\nwp.force_load("cpu")\n'
    + launch()
    + launch("somewhere.k"),
}


@pytest.mark.parametrize("source", EVERYTHING.values(), ids=EVERYTHING)
def test_loads_of_everything(tmp_path: Path, source: str) -> None:
    check(tmp_path, FORWARD + source)


def of_a_run(code: str, *loads: ModuleLoaded) -> list[Finding]:
    """What a rule says of a run that loaded these modules."""
    program = Program()
    for load in loads:
        program.add(replace(load, seq=program.seq, stack=program.stack(10 + program.seq)))
    rule = rule_of(code)
    assert rule is not None
    return list(rule.detect(Context(program.trace(), program.dataflow())))


def built(name: str, seconds: float, started: float, device: str = "cuda:0", links: float = 0.0) -> ModuleLoaded:
    return ModuleLoaded(
        0,
        (),
        name,
        compiled=True,
        milliseconds=1000.0 * seconds,
        device=device,
        started=started,
        link_milliseconds=1000.0 * links,
    )


def test_links_that_outweigh_the_compiler() -> None:
    (found,) = of_a_run("NVW314", built("tiles", 80.0, 0.0, links=76.0), built("plain", 2.4, 80.0))
    assert found.severity is Severity.WARNING
    assert "76.0 s of the 80.0 s" in found.message
    assert of_a_run("NVW314", built("tiles", 80.0, 0.0, links=20.0)) == []
    assert of_a_run("NVW314", replace(built("tiles", 80.0, 0.0, links=76.0), compiled=False)) == []


def test_builds_one_after_another() -> None:
    serial = [built(name, 4.0, 4.0 * number) for number, name in enumerate("abc")]
    (found,) = of_a_run("NVW315", *serial)
    assert "3.0 times" in found.message
    assert len(found.labels) == 3
    assert of_a_run("NVW315", *serial[:2]) == []
    assert of_a_run("NVW315", *(replace(load, started=0.1) for load in serial)) == []
    assert of_a_run("NVW315", *(replace(load, device="cpu") for load in serial)) == []
    assert of_a_run("NVW315", built("a", 40.0, 0.0), built("b", 1.0, 40.0), built("c", 1.0, 41.0)) == []

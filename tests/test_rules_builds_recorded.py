"""The rules about builds on the trace of a run: what they find in the source they find in what was recorded."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import check, expected

from warplint.catalogue import catalogue
from warplint.config import Settings
from warplint.lint import judge
from warplint.project import Project
from warplint.runner.command import parse
from warplint.runner.run import RunOptions, run
from warplint.trace.interpreter import Interpretation
from warplint.verify.trace_of import recorded_trace

AGAIN = """
from typing import Any

import warp as wp  # expect: NVW307

def floats(dtype=float):
    return wp.zeros(3, dtype=dtype)

@wp.kernel
def step(x: wp.array(dtype=float)):
    x[wp.tid()] += 1.0

@wp.kernel
def double(x: wp.array(dtype=Any)):
    x[wp.tid()] = x[wp.tid()] + x[wp.tid()]

def make(c):
    @wp.kernel  # expect: NVW304
    def shift(x: wp.array(dtype=float)):
        x[wp.tid()] += c
    shift.func.__name__ = f"shift_by_{c}"
    return shift

wp.launch(step, dim=3, inputs=[floats()])
for c in (1.0, 2.0):
    wp.launch(make(c), dim=3, inputs=[floats()])
wp.launch(double, dim=3, inputs=[floats()])  # expect: NVW305
wp.launch(double, dim=3, inputs=[floats(wp.float64)])  # expect: NVW305
wp.set_module_options({"fast_math": True})  # expect: NVW302
wp.launch(step, dim=3, inputs=[floats()])
"""

APART = """
import warp as wp

wp.config.enable_backward = False
wp.init()
wp.clear_kernel_cache()  # expect: NVW306
wp.set_module_options({"fast_math": True})  # expect: NVW302
parts = [wp.Module(f"part_{name}") for name in "abc"]  # expect: NVW308

@wp.kernel(module="unique")  # expect: NVW303
def first(x: wp.array(dtype=float)):
    x[wp.tid()] += 7.0

@wp.kernel(module="unique")  # expect: NVW303
def second(x: wp.array(dtype=float)):
    x[wp.tid()] += 8.0

@wp.kernel(module=parts[0])
def a(x: wp.array(dtype=float)):
    x[wp.tid()] += 1.0

@wp.kernel(module=parts[1])
def b(x: wp.array(dtype=float)):
    x[wp.tid()] += 2.0

@wp.kernel(module=parts[2])
def c(x: wp.array(dtype=float)):
    x[wp.tid()] += 3.0

for kernel in (a, b, c, first, second):
    wp.launch(kernel, dim=3, inputs=[wp.zeros(3, dtype=float)])
wp.config.verify_fp = True  # expect: NVW301
wp.launch(a, dim=3, inputs=[wp.zeros(3, dtype=float)])
"""

HARMLESS = """
from typing import Any

import warp as wp

wp.config.enable_backward = False
wp.set_module_options({"fast_math": True})

def floats(dtype=float):
    return wp.zeros(3, dtype=dtype)

@wp.kernel
def double(x: wp.array(dtype=Any)):
    x[wp.tid()] = x[wp.tid()] + x[wp.tid()]

def make(c):
    @wp.kernel
    def shift(x: wp.array(dtype=float)):
        x[wp.tid()] += c
    return shift

for dtype in (float, wp.float64):
    wp.overload(double, [wp.array(dtype=dtype)])
shifts = [make(c) for c in (1.0, 2.0, 1.0)]
for shift in shifts:
    wp.launch(shift, dim=3, inputs=[floats()])
for dtype in (float, wp.float64):
    wp.launch(double, dim=3, inputs=[floats(dtype)], block_dim=64)
wp.set_module_options({"fast_math": True})
wp.launch(make(2.0), dim=3, inputs=[floats()], block_dim=128)
"""


PROGRAMS = pytest.mark.parametrize("source", [AGAIN, APART, HARMLESS], ids=["again", "apart", "once"])


@PROGRAMS
def test_the_source_tells_it(tmp_path: Path, source: str) -> None:
    check(tmp_path, source)


@pytest.mark.warp
@PROGRAMS
def test_a_run_shows_what_the_source_tells(tmp_path: Path, source: str) -> None:
    pytest.importorskip("warp")
    program = tmp_path / "program.py"
    program.write_text(source)
    result = run(parse(f"python {program}"), RunOptions())
    assert result.problem is None
    recorded = recorded_trace(result.records, Project.for_paths([str(program)]), str(program))
    interpretation = Interpretation(recorded.trace, recorded.summary_of, source_of=recorded.source_of)
    found = judge(interpretation, Settings(tmp_path), [rule for rule in catalogue() if rule.code.startswith("NVW3")])
    warnings = {(Path(each.span.path).name, each.span.line, each.code) for each in found}
    assert warnings == expected({"program.py": source})[0]

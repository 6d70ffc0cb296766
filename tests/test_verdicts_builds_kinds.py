"""What loads alone say of each kind of finding about builds, where no fix is tried."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from warplint.builds.count import Builds, Comparison
from warplint.finding import Anchor, Finding, Severity, Span, Status
from warplint.verify.build_verdicts import by_build_count
from warplint.verify.records import KernelContent, ModuleLoad

PATH = os.path.abspath("prog.py")
FIRST = ModuleLoad("m", "h1", "cpu", True, 1.0, ((PATH, 6, "k"),), options={"enable_backward": True})
AGAIN = replace(FIRST, hash="h2")
CACHED = replace(FIRST, compiled=False)
OTHER = replace(FIRST, module="n", kernels=((PATH, 20, "other"),))
THIRD = replace(FIRST, module="o", kernels=((PATH, 30, "third"),))


def status(
    code: str, cold: tuple[ModuleLoad, ...], warm: tuple[ModuleLoad, ...] = (), **anchor: object
) -> Status | None:
    ties = Anchor(kernel=Span("prog.py", 6)) if not anchor else Anchor(**anchor)  # type: ignore[arg-type]
    finding = Finding(code, "name", Severity.WARNING, Span("prog.py", 9), "m", anchor=ties)
    verdict = by_build_count(finding, [Comparison(Builds("python prog.py", cold, warm))])
    return verdict.status if verdict is not None else None


@pytest.mark.parametrize("code", ["NVW304", "NVW305"])
def test_a_module_that_is_built_again(code: str) -> None:
    assert status(code, (FIRST, AGAIN)) is Status.CONFIRMED
    assert status(code, (FIRST, OTHER)) is Status.REFUTED, "two modules, one build each"
    assert status(code, (FIRST, replace(AGAIN, compiled=False))) is Status.REFUTED
    assert status(code, (OTHER,)) is None, "the kernel was not loaded"
    before = replace(FIRST, hash="h0", kernels=((PATH, 2, "earlier"),))
    assert status(code, (before, AGAIN)) is Status.CONFIRMED, "the kernel came into a module that was there"


def test_options_set_late_are_about_the_module_they_name() -> None:
    assert status("NVW302", (FIRST, AGAIN), module="m") is Status.CONFIRMED
    assert status("NVW302", (FIRST, OTHER), module="m") is Status.REFUTED


def test_a_cache_is_judged_by_the_second_run() -> None:
    assert status("NVW306", (FIRST,), (FIRST,)) is Status.CONFIRMED
    assert status("NVW306", (FIRST,), (CACHED,)) is Status.REFUTED


def test_adjoints_that_were_built_and_not_run() -> None:
    assert status("NVW307", (FIRST,)) is Status.CONFIRMED
    assert status("NVW307", (replace(FIRST, options={"enable_backward": False}),)) is Status.REFUTED


def test_small_modules_are_three_with_equal_options() -> None:
    assert status("NVW308", (FIRST, OTHER, THIRD)) is Status.CONFIRMED
    assert status("NVW308", (FIRST, OTHER)) is Status.REFUTED
    different = replace(THIRD, options={"enable_backward": False})
    assert status("NVW308", (FIRST, OTHER, different)) is Status.REFUTED


def test_options_that_a_module_never_gets_and_those_it_is_built_again_for() -> None:
    assert status("NVW302", (FIRST,), module="m") is Status.REFUTED, "nothing of the call is known, and one build"


def test_adjoints_are_told_by_what_they_cost() -> None:
    finding = Finding(
        "NVW307", "name", Severity.WARNING, Span("prog.py", 9), "m", anchor=Anchor(kernel=Span("prog.py", 6))
    )
    with_them = Builds("python prog.py", (replace(FIRST, source_bytes=9000, milliseconds=4000.0),))
    without = Builds("python prog.py", (replace(FIRST, source_bytes=3000, milliseconds=2500.0),))
    verdict = by_build_count(finding, [Comparison(with_them, None, without)])
    assert verdict is not None
    assert verdict.status is Status.CONFIRMED
    assert "with `enable_backward` off 9,000 bytes of generated source become 3,000" in verdict.reason
    assert (verdict.figures["source_bytes"], verdict.figures["fixed_source_bytes"]) == (9000, 3000)
    same = by_build_count(finding, [Comparison(with_them, None, with_them)])
    assert same is not None
    assert same.status is Status.REFUTED, "switching it off changes nothing"
    broken = by_build_count(finding, [Comparison(with_them, None, replace(without, problem="exit 3"))])
    assert broken is not None
    assert broken.status is Status.INCONCLUSIVE


def test_kernels_that_switch_their_adjoint_off_themselves_have_none() -> None:
    contents = (KernelContent("k", (PATH, 6, "k"), "h", adjoint=False),)
    assert status("NVW307", (replace(FIRST, contents=contents),)) is Status.REFUTED


MAPPED = ModuleLoad(
    "map_func_0123456789abcdef", "h1", "cpu", True, 1.0, (("unknown source file", 0, "map_kernel"),), internal=True
)


def mapped(*loads: ModuleLoad) -> Status | None:
    finding = Finding(
        "NVW304", "name", Severity.WARNING, Span("prog.py", 9), "m", anchor=Anchor(write=Span("prog.py", 9))
    )
    finding = replace(finding, anchor=replace(finding.anchor, kernel=Span("prog.py", 9)))
    verdict = by_build_count(finding, [Comparison(Builds("python prog.py", (), library=loads))])
    return verdict.status if verdict is not None else None


def test_a_map_is_judged_by_what_its_own_line_built() -> None:
    here, there = ((PATH, 9, "<module>"),), ((PATH, 12, "<module>"),)
    one, two = replace(MAPPED, at=here), replace(MAPPED, at=here, hash="h2")
    assert mapped(one, two) is Status.CONFIRMED
    assert mapped(one, replace(two, at=there)) is Status.REFUTED
    assert mapped(replace(one, at=there)) is None


def test_what_shows_on_cuda_alone_is_not_refuted_on_the_cpu() -> None:
    for code in ("NVW309", "NVW315"):
        assert status(code, (FIRST, OTHER)) is Status.INCONCLUSIVE, code
    blocks = replace(FIRST, block_dim=64, hash="h2")
    assert status("NVW309", (replace(FIRST, block_dim=32), blocks)) is Status.CONFIRMED, "cooperative blocks on the CPU"
    on_cuda = [replace(each, device="cuda:0") for each in (FIRST, OTHER)]
    after, beside = replace(on_cuda[1], started=2.0), replace(on_cuda[1], started=0.0005)
    assert status("NVW315", (on_cuda[0], after)) is Status.CONFIRMED
    assert status("NVW315", (on_cuda[0], beside)) is Status.REFUTED


def test_threads_on_the_cpu_are_builds_that_overlap() -> None:
    long = replace(FIRST, milliseconds=1000.0)
    beside = replace(OTHER, milliseconds=1000.0, started=0.5)
    assert status("NVW312", (long, beside)) is Status.CONFIRMED
    assert status("NVW312", (long, replace(beside, started=1.5))) is Status.REFUTED


def test_headers_and_source_and_links() -> None:
    off = {"use_precompiled_headers": False}
    assert status("NVW311", (replace(FIRST, options=off), replace(OTHER, options=off))) is Status.CONFIRMED
    assert status("NVW311", (replace(FIRST, options=off), OTHER)) is Status.REFUTED, "one module has nothing to share"
    assert status("NVW310", (replace(FIRST, source_bytes=900_000),)) is Status.CONFIRMED
    assert status("NVW310", (replace(FIRST, source_bytes=30_000),)) is Status.REFUTED
    assert status("NVW310", (FIRST,)) is Status.INCONCLUSIVE
    linked = replace(FIRST, device="cuda:0", milliseconds=1000.0, lto=2)
    assert status("NVW314", (replace(linked, lto_ms=800.0),)) is Status.CONFIRMED
    assert status("NVW314", (replace(linked, lto_ms=100.0),)) is Status.REFUTED
    assert status("NVW314", (FIRST,)) is Status.INCONCLUSIVE


def test_the_ceiling_is_what_would_remain() -> None:
    twice = Builds("python prog.py", (FIRST, AGAIN, OTHER))
    assert Comparison(twice).ceiling == 2
    assert Comparison(twice, Builds("python prog.py", (FIRST,))).ceiling == 1
    assert Comparison(twice, Builds("python prog.py", (), problem="exit 3")).ceiling == 2

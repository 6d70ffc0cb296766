"""What loads alone say of each kind of finding about builds, where no fix is tried."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from warplint.builds.count import Builds, Comparison
from warplint.finding import Anchor, Finding, Severity, Span, Status
from warplint.verify.build_verdicts import by_build_count
from warplint.verify.records import ModuleLoad

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

"""Why a module was built: each kind of change is told from the others, with the line that makes it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from build_runs import OPTIONS, content, load, process, run

from warplint.builds.ceiling import ceiling
from warplint.builds.count import Builds
from warplint.builds.figures import covered, start_up
from warplint.builds.text import ceiling_line
from warplint.builds.why import CauseKind, defeated, explained, of_run
from warplint.verify.records import CacheClearedSeen, ConfigSeen, ModuleOptionsSeen

HERE = (("prog.py", 20, "<module>"),)
K, OTHER = content("k", 4, "k1"), content("other", 30, "o1")


def second(*records: object) -> tuple[CauseKind, str, tuple[str, int] | None]:
    """Kind, text and line of the only cause of the last of two loads."""
    last = explained(process(*records))[-1]
    (cause,) = last.causes
    return cause.kind, cause.text, cause.at[:2] if cause.at is not None else None


def test_the_first_load_is_no_rebuild() -> None:
    (only,) = explained(process(load()))
    assert [(cause.kind, cause.at) for cause in only.causes] == [(CauseKind.FIRST, ("prog.py", 40, "main"))]
    assert not only.again


def test_a_kernel_that_comes_later_is_told_with_its_definition() -> None:
    kind, text, at = second(load(K), load(K, OTHER))
    assert (kind, at) == (CauseKind.KERNELS, ("prog.py", 30))
    assert text == "`other` was defined after the module was loaded"


def test_a_kernel_that_is_gone() -> None:
    assert second(load(K, OTHER), load(K))[:2] == (CauseKind.KERNELS, "`other` is no longer there")


def test_a_new_instance_of_a_generic_kernel_is_told_with_the_launch_that_needs_it() -> None:
    one = replace(K, types="float32[1]", instance=True)
    two = replace(K, hash="k2", types="float64[1]", instance=True)
    kind, text, at = second(load(one), load(one, two))
    assert (kind, at) == (CauseKind.OVERLOAD, ("prog.py", 40)), "the frame of the standard library is passed over"
    assert text == "`k` met new argument types (float64[1])"


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({"constants": {"c": "1.0"}}, {"constants": {"c": "2.0"}}, "`k` has `c` = 2.0, had 1.0"),
        ({"constants": {"wp.static(n)": "1"}}, {"constants": {"wp.static(n)": "2"}}, "`k` has wp.static(n) = 2, had 1"),
        ({"constants": {"f()": "a"}}, {"constants": {"f()": "b"}}, "`k` uses another `f()`"),
        ({"source": "a"}, {"source": "b"}, "`k` has another text"),
        ({}, {}, "`k` uses a struct or a type that is different"),
    ],
)
def test_other_content_of_the_same_kernel(before: dict[str, object], after: dict[str, object], told: str) -> None:
    old, new = content("k", 4, "k1", **before), content("k", 4, "k2", **after)
    assert second(load(old), load(new)) == (CauseKind.CONTENT, told, ("prog.py", 4))
    assert second(load(old), load(old, new))[1] == told, "a closure that stays beside the one that was there"


def test_a_kernel_that_warp_writes_itself_is_told_with_the_call() -> None:
    old = replace(K, defined=("unknown source file", 0, "map_kernel"), constants={"f.c": "1"})
    new = replace(old, hash="k2", constants={"f.c": "2"})
    assert second(load(old), load(new))[2] == ("prog.py", 40)


def test_an_option_is_told_with_the_last_line_that_set_it_for_this_module() -> None:
    changed = load(K, hash="h2", options={**OPTIONS, "max_unroll": 4})
    elsewhere = ModuleOptionsSeen(2, (("prog.py", 21, "f"),), "other", {"max_unroll": 4})
    told = "option `max_unroll` is 4, was 16"
    by_config = ConfigSeen(1, HERE, "max_unroll", 4)
    assert second(load(K), by_config, elsewhere, changed) == (CauseKind.OPTION, told, ("prog.py", 20))
    mine = replace(elsewhere, module="m")
    assert second(load(K), by_config, mine, changed)[2] == ("prog.py", 21)
    assert second(load(K), changed)[2] is None, "nobody was seen setting it"


def test_a_block_size_is_no_option() -> None:
    wider = load(K, hash="h2", block_dim=64, options={**OPTIONS, "block_dim": 64})
    assert second(load(K), wider)[:2] == (CauseKind.BLOCK_SIZE, "block size 64 instead of 1")


def test_several_causes_are_all_told() -> None:
    changed = load(K, OTHER, options={**OPTIONS, "max_unroll": 4})
    last = explained(process(load(K), changed))[-1]
    assert [cause.kind for cause in last.causes] == [CauseKind.OPTION, CauseKind.KERNELS]


def test_unique_modules_of_one_kernel_are_one_family() -> None:
    one = load(content("k", 4, "k1", constants={"c": "1"}), module="k_0123abcd", unique=True)
    two = load(content("k", 4, "k2", constants={"c": "2"}), module="k_9876fedc", unique=True)
    assert second(one, two)[1] == "`k` has `c` = 2, had 1"
    assert not ceiling(run(process(one, two))).needless, "each of them is another kernel"
    more = replace(one, hash="k1-k3", contents=(*one.contents, content("k", 4, "k3", types="int32", instance=True)))
    assert ceiling(run(process(one, two, more))).remaining == 2, "the instances of one kernel could be there at once"


# ------------------------------------------------------------------------------------------------------------------
# The second run


def warm_cause(*records: object, cold: tuple[object, ...] = (load(),)) -> tuple[CauseKind, str, int | None]:
    found = defeated(run(process(*cold)), run(process(*records)))
    cause = found[0].causes[0]
    return cause.kind, cause.text, cause.at[1] if cause.at is not None else None


def test_a_warm_run_that_finds_everything_is_silent() -> None:
    assert defeated(run(process(load())), run(process(load(compiled=False)))) == ()


@pytest.mark.parametrize(
    ("records", "told", "line"),
    [
        ((CacheClearedSeen(1, HERE), load()), "the kernel cache was cleared by `clear_kernel_cache()`", 20),
        ((CacheClearedSeen(1, HERE, "rmtree"), load()), "the kernel cache was cleared by removing its folder", 20),
        (
            (ConfigSeen(1, HERE, "cache_kernels", False), load()),
            "`wp.config.cache_kernels` is off: nothing that was built before is used",
            20,
        ),
        (
            (ConfigSeen(1, HERE, "kernel_cache_dir", "/tmp/x"), load(cache="/tmp/x")),
            "the kernel cache lies in another folder in each run",
            20,
        ),
        (
            (
                ConfigSeen(1, HERE, "verify_autograd_array_access", True),
                load(options={**OPTIONS, "verify_autograd_array_access": True}),
            ),
            "`verify_autograd_array_access` is on: Warp then builds every module in every run",
            20,
        ),
        ((load(),), "what was built before was not found in the kernel cache", 40),
    ],
)
def test_what_defeats_the_cache(records: tuple[object, ...], told: str, line: int) -> None:
    assert warm_cause(*records) == (CauseKind.CACHE, told, line)


def test_a_value_that_changes_from_run_to_run() -> None:
    one, two = (content("k", 4, f"k{n}", constants={"seed": str(n)}) for n in (1, 2))
    assert warm_cause(load(two), cold=(load(one),)) == (
        CauseKind.CONTENT,
        "from run to run, `k` has `seed` = 2, had 1",
        4,
    )


# ------------------------------------------------------------------------------------------------------------------
# The ceiling, and times


def test_the_ceiling_is_one_build_for_each_module_device_and_block_size() -> None:
    first, again = load(K, milliseconds=4000.0), load(K, OTHER, at=6.0, milliseconds=1500.0)
    found = ceiling(run(process(first, again, load(K, module="n"), load(K, module="n", block_dim=64))))
    assert (found.builds, found.remaining, found.needless_seconds) == (4, 3, 1.5)
    assert ceiling_line(found).endswith(
        "3 of 4 builds would remain if each module were built once (1.50 of 7.50 s saved)"
    )


def test_nothing_needless_is_said() -> None:
    assert "nothing is built redundantly here: the one build is needed" in ceiling_line(ceiling(run(process(load()))))


def test_a_defeated_cache_is_not_called_needed() -> None:
    line = ceiling_line(ceiling(run(process(load()))), 2)
    assert line.endswith(
        "the one build is needed in a fresh cache; in the second run none of 2 would remain if the cache were reused"
    )


def test_what_two_processes_build_each_for_itself_is_needless() -> None:
    twice = run(process(load(), number=7), process(load(at=1.1), number=8))
    assert (ceiling(twice).builds, ceiling(twice).remaining) == (2, 1)
    told = [each.causes[0].text for _, loads in of_run(twice) for each in loads]
    assert told == ["first load", "process 7 was building the same"]


def test_a_process_that_builds_again_what_another_one_has_built() -> None:
    later = run(process(load(), number=7), process(load(at=9.0), number=8))
    told = [each.causes[0].text for _, loads in of_run(later) for each in loads]
    assert told == ["first load", "what was built before was not found in the kernel cache"]


def test_builds_at_the_same_time_are_covered_once() -> None:
    assert covered([load(at=1.0), load(at=1.5), load(at=4.0)]) == pytest.approx(2.5)
    assert covered([]) == 0.0


def test_the_share_of_a_start_up_that_is_not_compilation() -> None:
    start = start_up(run(process(load(at=3.0))))
    assert (start.seconds, start.loading, start.importing) == (4.0, pytest.approx(1.0), 0.3)
    assert start.other_share == pytest.approx(0.75)


def test_the_reasons_of_a_counted_module_are_those_of_both_runs() -> None:
    first, again = load(K), load(K, OTHER)
    cleared = CacheClearedSeen(1, HERE)
    builds = Builds("prog.py", (first, again), (again,), told_cold=(first, again), told_warm=(cleared, again))
    assert [(cause.kind, cause.at[:2]) for cause in builds.causes(first.module) if cause.at is not None] == [
        (CauseKind.KERNELS, ("prog.py", 30)),
        (CauseKind.CACHE, ("prog.py", 20)),
    ]
    assert builds.causes("another") == ()

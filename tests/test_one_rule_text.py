"""One rule text, two sources: what the rules about tapes find in the source, they find in the trace of a run."""

from __future__ import annotations

import dataclasses
import os
import pathlib

import pytest
from test_fixtures import FIXTURES, PROGRAMS, Program

from warplint import registry
from warplint.config import Settings
from warplint.finding import Severity
from warplint.lint import judge
from warplint.project import Project
from warplint.rule import Group
from warplint.runner.command import parse
from warplint.runner.process import Limits
from warplint.runner.protocol import ITERATIONS
from warplint.runner.run import RunOptions, run
from warplint.trace.interpreter import Interpretation
from warplint.verify.trace_of import recorded_trace

QUICK = {
    "ping-pong/bad_state_objects.py",
    "overwrite-fill/bad_schedule_uploaded.py",
    "alias-overwrite/bad_targets_in_numpy.py",
    "mutated-arguments/bad_argument_list_reused.py",
    "mutated-arguments/bad_step_size_in_struct.py",
    "severed-copy/bad_optimiser_on_copy.py",
}
"""Those whose recording differs most from what the interpreter sees: names that change hands, hosts that write."""

UNSEEN_IN_A_RUN = {
    "missing-requires-grad/bad_map_of_float_function.py": "the kernel that `wp.map` makes has no source",
    "alias-overwrite/bad_pointer_cuts_chain.py": "that an alias has a gradient of its own is not told",
    "unrecorded-write/bad_sum_utility.py": "what a native utility reads is not told",
    "host-round-trip/bad_clipped_in_numpy.py": "what numpy makes of an array's contents is not seen",
    "host-round-trip/bad_normalised_by_host.py": "what numpy makes of an array's contents is not seen",
    "overwrite-fill/bad_limited_on_host.py": "what numpy makes of an array's contents is not seen",
    "stale-grad/bad_view_in_report.py": "what is made of a numpy view later is not seen",
    "stale-grad/bad_view_then_zero.py": "what is made of a numpy view later is not seen",
}
TO_THE_END = {
    "severed-copy/bad_clone_in_list.py",
    "severed-copy/bad_copy_in_trainer.py",
    "missing-tape-zero/bad_bias_forgotten.py",
    "missing-tape-zero/bad_fresh_tape_zeroed_early.py",
}
"""Those whose finding rests on what never happens: a run that was stopped early cannot tell it."""
NOT_IN_A_RUN = {"seed-mismatch"}
"""What number the host makes of an array's contents, and which one is the loss, stands in the source alone."""
TAPE_RULES = {rule.code: rule.name for rule in registry.rules() if rule.group is Group.TAPE}
COMPARED = set(TAPE_RULES.values()) - NOT_IN_A_RUN
BAD = [p for p in PROGRAMS if p.is_bad and p.path.parent.name in COMPARED and p.expectations("")]
"""Without those whose fault shows in a run alone."""


def recorded(program: Program) -> set[tuple[pathlib.Path, int, str]]:
    """The warnings of the rules about tapes in the trace of the program's run."""
    project = Project.for_paths([program.entry.parent])
    iterations = 1_000 if program.name in TO_THE_END else ITERATIONS
    result = run(parse(["python", str(program.entry)]), RunOptions(limits=Limits(120), iterations=iterations))
    assert result.problem is None, result.output_tail
    found = recorded_trace(result.records, project, str(program.entry))
    settings = dataclasses.replace(Settings(program.entry.parent), warp_version=found.trace.warp)
    interpretation = Interpretation(found.trace, found.summary_of, source_of=found.source_of)
    return {
        (pathlib.Path(os.path.realpath(each.span.path)), each.span.line, each.code)
        for each in judge(interpretation, settings, registry.rules())
        if each.code in TAPE_RULES and each.severity is not Severity.INFO
    }


@pytest.mark.warp
@pytest.mark.parametrize(
    "program",
    [
        pytest.param(p, id=p.name, marks=() if p.name in QUICK else pytest.mark.slow)
        for p in BAD
        if p.name not in UNSEEN_IN_A_RUN
    ],
)
def test_a_run_shows_what_the_source_shows(program: Program) -> None:
    wanted = {e.place for e in program.expectations("") if e.code in TAPE_RULES}
    assert wanted
    assert recorded(program) == wanted


def test_every_rule_about_tapes_is_compared() -> None:
    compared = {p.path.parent.name for p in BAD if p.name not in UNSEEN_IN_A_RUN}
    assert compared == COMPARED & {p.path.parent.name for p in PROGRAMS if p.expectations("")}
    assert {p.name for p in BAD} >= QUICK | UNSEEN_IN_A_RUN.keys() | TO_THE_END
    assert FIXTURES.is_dir()

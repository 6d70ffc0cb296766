"""What the analysis says of the programs that the rules stand on, against what was measured of each."""

from __future__ import annotations

import json

import pytest
from facts import compare, measure
from facts.expected import EXPECTED, GUARDED, SILENT
from facts.expected_tapes import UNSEEN
from facts.variants import variants

LEAST_AGREEMENT = 0.98
SAMPLE = ("p08_components", "p24_more2", "p28_tracked")
"""Measured again in each run: one module each."""

VERSION, MEASURED = measure.load()
OLDER_VERSIONS = json.loads((measure.HERE / "older.json").read_text())


@pytest.fixture(scope="module")
def rows() -> list[compare.Row]:
    return list(compare.rows(MEASURED))


def test_each_variant_of_the_programs_is_measured_and_cut_out():
    for program in measure.PROGRAM_NAMES:
        assert {variant.case for variant in variants(program)} >= set(MEASURED[program])
        assert all(variant.text.strip() for variant in variants(program))


def test_what_must_be_reported_is_what_was_measured_wrong():
    for program, cases in MEASURED.items():
        wrong = {case for case, found in cases.items() if compare.needs_report(program, case, found)}
        raising = {case for case, found in cases.items() if found.verdict == measure.Verdict.RAISES}
        assert wrong - raising <= set(EXPECTED.get(program, {})) <= wrong, program
    assert all(MEASURED[program][case].verdict != measure.Verdict.BENIGN for program, case in SILENT)
    assert all(MEASURED[program][case].verdict == measure.Verdict.KINK for program, case in GUARDED)


def test_the_analysis_agrees_with_the_measurements(rows: list[compare.Row], capsys: pytest.CaptureFixture[str]):
    agreement = compare.share(rows)
    with capsys.disabled():
        print(f"\nWarp {VERSION}, {len(rows)} variants, agreement {agreement:.1%}; the disagreements:")
        print("\n".join(compare.lines([row for row in rows if row.agrees is not True])))
        for program, (agreeing, judged) in compare.shares(rows).items():
            print(f"{program:20} {agreeing:3} of {judged:3} agree ({agreeing / judged:.1%})")
    print("\n".join(compare.lines(rows)))
    assert agreement >= LEAST_AGREEMENT
    about_tapes = [row for row in rows if row.program in measure.TAPE_PROGRAMS]
    assert compare.share(about_tapes) >= LEAST_AGREEMENT


@pytest.mark.parametrize("version", sorted(OLDER_VERSIONS))
def test_the_analysis_for_an_older_warp_agrees_with_its_measurements(version: str):
    """The verdicts of 1.12, 1.13, 1.16 and 1.17 were measured once, with these programs and those versions."""
    wrong = [
        (program, variant.case)
        for program, verdicts in OLDER_VERSIONS[version].items()
        for variant in variants(program)
        if variant.case in verdicts
        and variant.case not in UNSEEN.get(program, {})
        and not compare.agrees_on(variant, verdicts[variant.case], version)
    ]
    assert wrong == []


@pytest.mark.warp
@pytest.mark.parametrize("program", [pytest.param(name, marks=pytest.mark.slow) for name in measure.PROGRAM_NAMES])
def test_the_measurements_can_be_made_again(program: str):
    assert _verdicts(measure.measure([program])) == _verdicts({program: MEASURED[program]})


@pytest.mark.warp
def test_a_sample_of_the_measurements_can_be_made_again():
    assert _verdicts(measure.measure(SAMPLE)) == _verdicts({program: MEASURED[program] for program in SAMPLE})


def _verdicts(table: measure.Table) -> dict[tuple[str, str], str]:
    return {(program, case): found.verdict for program, cases in table.items() for case, found in cases.items()}

"""The renderers: the same report for people, for editors, for GitHub, for other tools."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from warplint import hygiene
from warplint.finding import Applicability, Edit, Finding, Fix, Label, Role, Severity, Source, Span, Status, Verdict
from warplint.proof import Experiment
from warplint.report import words
from warplint.report.look import Look, wants_colour
from warplint.report.model import BuildCount, GradientCheck, ProgramRun, Report, SignatureShown, Verification
from warplint.report.renderers import FORMATS, renderer

SCHEMA = json.loads((Path(__file__).parent.parent / "docs" / "json-schema.json").read_text())

SOURCES = {
    "train.py": (
        "import warp as wp",
        "",
        "with tape:",
        "\twp.launch(step, dim=n, inputs=[größe], outputs=[b])",
        "    x = 1",
        "    x = 2",
        "    größe, b = b, größe",
        "    loss()",
    ),
    "kernels.py": ("@wp.kernel", "def step(a: wp.array(dtype=float)):", "    a[0] = wp.sin(a[0])"),
}

SWAP = Finding(
    "NVW101",
    "ping-pong",
    Severity.ERROR,
    Span("train.py", 7, 5, 7, 24),
    "`größe` is reused while an adjoint needs its value",
    labels=(
        Label(Span("train.py", 4, 2, 4, 51), Role.READ, "read here by `step`"),
        Label(Span("kernels.py", 3, 12, 3, 24), Role.KERNEL, "its adjoint needs the value"),
    ),
    fix=Fix(Applicability.UNSAFE, "allocate per step", (Edit(Span("train.py", 7, 5, 7, 24), "b = wp.zeros(n)"),)),
    verdict=Verdict(
        Status.CONFIRMED,
        "with the memory restored AD agrees",
        Experiment.FINITE_DIFFERENCE,
        {"ad": 1.13, "fd": 1.95, "relative_error": 0.42, "repaired": True},
    ),
)
BROKEN = Finding("NVW900", "unreadable", Severity.WARNING, Span("odd,name:1.py", 2, 1), "100 % wrong\nindeed")
SEEN = Finding("NVW130", "tape-per-step", Severity.INFO, Span("train.py", 3), "cut", source=Source.RUNTIME)
VERIFICATION = Verification(
    (SWAP,),
    (
        GradientCheck("x", "train.py", 2, "pass", 1.0, 1.0001, 1e-4),
        GradientCheck(
            "k",
            "train.py",
            3,
            "fail",
            math.nan,
            2.0,
            signature=SignatureShown("not-finite", "nan in 1 of 3", operation="root", path="train.py", line=9),
        ),
    ),
    (BuildCount("train", 2, 0, "python train.py"),),
    (
        ProgramRun("python train.py", 3.14159, 2, 40, "1.19.0", "cpu"),
        ProgramRun("pytest", 9.0, 0, 0, problem="time limit"),
    ),
    ("no Warp in that interpreter",),
)


def report(*findings: Finding, **changes: object) -> Report:
    return Report(findings or (SWAP, BROKEN, SEEN), files=3, warp="1.19.0", rules=hygiene.RULES, **changes)


def lines_of(path: str) -> tuple[str, ...]:
    return SOURCES.get(path, ())


def rendered(name: str, given: Report, coloured: bool = False) -> str:
    return renderer(name)(given, Look(coloured, lines_of))


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_renders_an_empty_and_a_full_report(name: str) -> None:
    assert rendered(name, Report((), 0, "1.19")).endswith("\n")
    full = rendered(name, report(verification=VERIFICATION, errors=("an error",)))
    assert full.endswith("\n")
    assert "\x1b" not in full


def test_text_shows_every_place_of_the_fault() -> None:
    text = rendered("text", report(SWAP))
    assert text.splitlines() == [
        "error[NVW101] ping-pong: `größe` is reused while an adjoint needs its value",
        " --> train.py:7:5",
        "  |",
        "4 |     wp.launch(step, dim=n, inputs=[größe], outputs=[b])",
        "  |     ------------------------------------------------- read here by `step`",
        "...",
        "6 |     x = 2",
        "7 |     größe, b = b, größe",
        "  |     ^^^^^^^^^^^^^^^^^^^",
        "8 |     loss()",
        "  |",
        " ::: kernels.py:3:12",
        "  |",
        "3 |     a[0] = wp.sin(a[0])",
        "  |            ------------ its adjoint needs the value",
        "  |",
        "  = confirmed by finite differences: AD 1.13, FD 1.95, off by 42 %; with the memory restored AD agrees",
        "  = fix (unsafe): allocate per step",
        "",
        "Found 1 finding (1 error) in 3 files; 1 confirmed.",
        "1 fixable with --fix --unsafe-fixes.",
    ]


def test_text_aligns_under_wide_letters_and_tabs() -> None:
    finding = Finding("NVW101", "ping-pong", Severity.WARNING, Span("w.py", 1, 5, 1, 6), "m")
    look = Look(False, lambda path: ("\t猫猫=x",))
    lines = renderer("text")(report(finding), look).splitlines()
    assert lines[3] == "1 |     猫猫=x"
    assert lines[4] == "  |          ^"


def test_text_draws_no_control_characters() -> None:
    finding = Finding("NVW101", "ping-pong", Severity.WARNING, Span("w.py", 1, 1, 1, 2), "m")
    assert "\x1b" not in renderer("text")(report(finding), Look(False, lambda path: ("x = '\x1b[31m'",)))


def test_text_without_the_source_still_names_the_places() -> None:
    text = renderer("text")(report(SWAP), Look())
    assert "4:2 read here by `step`" in text


def test_text_tells_what_was_run_and_what_was_not_shown() -> None:
    text = rendered("text", report(SWAP, verification=VERIFICATION, hidden=2, suppressed=1, statistics={"files": 3}))
    assert "ran `python train.py` for 3.1 s: 40 launches, 2 backward calls (Warp 1.19.0, cpu)" in text
    assert "not judged to the end: time limit" in text
    assert "gradient of `k` (train.py:3) is wrong: AD nan, FD 2" in text
    assert "gradient of `x` (train.py:2) agrees with finite differences: AD 1, FD 1, off by 0.01 %" in text
    assert text.index("gradient of `k`") < text.index("gradient of `x`")
    assert "module train: built twice in a fresh cache, never in the second run" in text
    assert "error: no Warp in that interpreter" in text
    assert "     1  NVW101  ping-pong" in text
    assert text.splitlines()[-2] == (
        "Found 1 finding (1 error) in 3 files; 1 confirmed; 2 gradients checked: 1 wrong, 1 right; "
        "2 below severity warning not shown; 1 suppressed."
    )


def test_text_says_when_nothing_was_run() -> None:
    text = rendered("text", report(SWAP, verification=Verification((SWAP,))))
    assert "nothing was run: no program among these files (--run names one)" in text


def test_a_check_of_a_program_alone_counts_gradients() -> None:
    given = Report((), 0, "1.19", verification=VERIFICATION)
    assert rendered("text", given).splitlines()[-1] == "2 gradients checked: 1 wrong, 1 right."


def test_colours_change_nothing_but_the_looks() -> None:
    import re

    coloured = rendered("text", report(verification=VERIFICATION), coloured=True)
    assert "\x1b[" in coloured
    plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert plain == rendered("text", report(verification=VERIFICATION))


@pytest.mark.parametrize(
    ("terminal", "environment", "wanted"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (True, {"TERM": "dumb"}, False),
        (False, {"FORCE_COLOR": "1"}, True),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_when_colours_are_shown(terminal: bool, environment: dict[str, str], wanted: bool) -> None:
    class Stream:
        def isatty(self) -> bool:
            return terminal

    assert wants_colour(Stream(), environment) is wanted


def test_concise_is_one_line_a_finding() -> None:
    lines = rendered("concise", report()).splitlines()
    assert lines[0].startswith("train.py:7:5: NVW101 `größe` is reused while an adjoint needs its value [confirmed by")
    assert lines[1] == "odd,name:1.py:2:1: NVW900 100 % wrong indeed"
    assert len(lines) == 5
    assert lines[-1] == "1 fixable with --fix --unsafe-fixes."


def test_json_keeps_its_contract() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(SCHEMA)
    document = json.loads(rendered("json", report(verification=VERIFICATION, statistics={"files": 3})))
    validator.validate(document)
    validator.validate(json.loads(rendered("json", Report((), 0, "1.19"))))
    swap, broken, seen = document["findings"]
    assert (swap["line"], swap["column"], swap["end_line"], swap["end_column"]) == (7, 5, 7, 24)
    assert [label["role"] for label in swap["labels"]] == ["read", "kernel"]
    assert swap["verdict"]["figures"] == {"ad": 1.13, "fd": 1.95, "relative_error": 0.42, "repaired": True}
    assert swap["fix"]["edits"][0]["content"] == "b = wp.zeros(n)"
    assert broken["verdict"] is None
    assert broken["noqa_line"] == 2
    assert seen["source"] == "runtime"
    assert document["gradients"][1]["ad"] == "nan"
    assert document["programs"][1]["problem"] == "time limit"
    assert document["errors"] == ["no Warp in that interpreter"]


def test_the_json_schema_refuses_what_is_not_in_the_contract() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    document = json.loads(rendered("json", report()))
    document["findings"][0]["extra"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate(document)


def test_github_annotations_are_escaped() -> None:
    lines = rendered("github", report(verification=VERIFICATION)).splitlines()
    assert lines[0].startswith(
        "::error file=train.py,line=7,endLine=7,col=5,endColumn=24,title=NVW101 ping-pong::`größe`"
    )
    assert "%0Atrain.py:4: read here by `step`%0A" in lines[0]
    assert "off by 42 %25" in lines[0]
    assert (
        lines[1]
        == "::warning file=odd%2Cname%3A1.py,line=2,endLine=2,col=1,title=NVW900 unreadable::100 %25 wrong%0Aindeed"
    )
    assert lines[2].startswith("::notice ")
    assert "::error title=warplint::no Warp in that interpreter" in lines
    assert "::error title=warplint::`pytest`: time limit" in lines


def test_github_paths_are_those_of_the_repository(tmp_path, monkeypatch) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    monkeypatch.chdir(tmp_path / "sub")
    assert "file=sub/train.py," in rendered("github", report(SWAP))


def test_github_leaves_columns_out_of_ranges_over_several_lines() -> None:
    finding = Finding("NVW101", "ping-pong", Severity.WARNING, Span("a.py", 2, 5, 4, 2), "m")
    assert rendered("github", report(finding)).startswith("::warning file=a.py,line=2,endLine=4,title=")


def test_sarif_holds_rules_places_ways_and_fixes() -> None:
    (run,) = json.loads(rendered("sarif", report(verification=VERIFICATION)))["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["NVW900", "NVW901"]
    swap, broken, seen = run["results"]
    assert [swap["level"], broken["level"], seen["level"]] == ["error", "warning", "note"]
    assert swap["locations"][0]["physicalLocation"]["region"] == {
        "startLine": 7, "startColumn": 5, "endLine": 7, "endColumn": 24,
    }  # fmt: skip
    assert [place["id"] for place in swap["relatedLocations"]] == [1, 2]
    assert swap["codeFlows"][0]["threadFlows"][0]["locations"][-1]["location"]["message"]["text"] == SWAP.message
    assert swap["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"]["text"] == "b = wp.zeros(n)"
    assert broken["ruleIndex"] == 0
    assert broken["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "odd%2Cname%3A1.py"
    assert run["invocations"][0]["executionSuccessful"] is False


def test_sarif_fingerprints_survive_added_lines_and_tell_equal_lines_apart() -> None:
    def prints(lines: tuple[str, ...], *numbers: int) -> list[str]:
        findings = [Finding("NVW101", "ping-pong", Severity.WARNING, Span("a.py", n), "m") for n in numbers]
        log = json.loads(renderer("sarif")(report(*findings), Look(False, lambda path: lines)))
        return [result["partialFingerprints"]["warplint/v1"] for result in log["runs"][0]["results"]]

    before = prints(("a, b = b, a", "a, b = b, a"), 1, 2)
    assert prints(("x = 1", "a, b = b, a", "  a, b = b, a"), 2, 3) == before
    assert before[0] != before[1]


def test_words_are_whole() -> None:
    assert [words.ordinal(n) for n in (1, 2, 3, 4, 11, 22)] == ["1st", "2nd", "3rd", "4th", "11th", "22nd"]
    check = GradientCheck("x", "a.py", 3, "pass", 1.0, 1.0, backward=2, backward_line=9, repeated=True)
    assert words.gradient(check).startswith("gradient of `x` (a.py:3, iteration 2, backward in line 9) agrees")
    warnings = [replace(BROKEN, span=Span("a.py", line)) for line in (1, 2)]
    told = words.summary(Report((*warnings, SEEN, SEEN), 1, "1.19"))
    assert told == "Found 4 findings (2 warnings, 2 info) in 1 file."


def test_the_class_of_a_wrong_gradient_has_a_line_below_it_and_a_right_one_only_where_it_matters() -> None:
    said = SignatureShown("factor", "2 times the difference in 4 directions", 2.0)
    wrong = GradientCheck("x", "a.py", 3, "fail", 2.0, 1.0, signature=said)
    lines = rendered("text", report(SWAP, verification=Verification(gradients=(wrong,)))).splitlines()
    (place,) = [number for number, line in enumerate(lines) if "gradient of `x`" in line]
    assert lines[place + 1] == "    signature factor: 2 times the difference in 4 directions"
    kinked = replace(wrong, status="pass", signature=SignatureShown("kinks", "kinks in 1 of 4 directions"))
    assert words.signature(kinked) == ""
    uphill = replace(kinked, signature=SignatureShown("optimisation", "it goes along it", right=True))
    assert words.signature(uphill) == "  signature optimisation: it goes along it"


def test_a_wrong_gradient_that_no_finding_explains_is_reported_by_itself() -> None:
    check = GradientCheck("x", "a,b.py", 3, "fail", 1.0, 2.0, 0.5, unexplained=True)
    explained = GradientCheck("y", "a,b.py", 4, "fail", 1.0, 2.0, 0.5)
    given = report(SWAP, verification=Verification(gradients=(check, explained)))
    annotations = [line for line in rendered("github", given).splitlines() if "title=wrong gradient" in line]
    place = "::error file=a%2Cb.py,line=3,title=wrong gradient::"
    assert annotations == [f"{place}gradient of `x` (a,b.py:3) is wrong: AD 1, FD 2, off by 50 %25"]
    assert "\na,b.py:3:1: wrong gradient: gradient of `x`" in rendered("concise", given)
    (run,) = json.loads(rendered("sarif", given))["runs"]
    assert [result["ruleId"] for result in run["results"]] == ["NVW101", "wrong gradient"]
    assert run["results"][1]["locations"][0]["physicalLocation"]["region"]["startLine"] == 3
    cases = ElementTree.fromstring(rendered("junit", given)).iter("testcase")
    assert [case.get("name") for case in cases] == ["NVW101 ping-pong", "wrong gradient x"]


def test_junit_is_xml_with_a_failed_test_for_each_finding() -> None:
    odd = Finding("NVW900", "unreadable", Severity.WARNING, Span("a.py", 1), "a \x00 <null> & more")
    root = ElementTree.fromstring(rendered("junit", report(SWAP, odd, verification=VERIFICATION)))
    assert [case.get("name") for case in root.iter("testcase")][:2] == ["NVW101 ping-pong", "NVW900 unreadable"]
    assert [failure.get("message") for failure in root.iter("failure")][1] == "a \ufffd <null> & more"
    assert [error.get("message") for error in root.iter("error")] == ["no Warp in that interpreter"]
    quiet = ElementTree.fromstring(rendered("junit", Report((), 2, "1.19")))
    assert [case.get("name") for case in quiet.iter("testcase")] == ["No findings in 2 files."]

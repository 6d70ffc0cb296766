"""From files to findings, with an interpreter and rules made for the test: merged, selected, cached."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from warplint import hygiene
from warplint.cache import Cache, fingerprint
from warplint.config import Settings
from warplint.finding import Finding, Label, Role, Severity, Source, Span
from warplint.lint import Engine, LintResult, lint, project_of
from warplint.proof import Experiment
from warplint.rule import Context, Group, Rule
from warplint.source import SourceFile
from warplint.trace.events import Frame, TapeCreated, Trace


@dataclass(frozen=True)
class OneTrace:
    """An interpretation whose trace went through the top level and the functions given."""

    trace: Trace
    statistics: None = None

    def summary_of(self, kernel: object) -> None:
        return None

    def source_of(self, kernel: object) -> None:
        return None


@dataclass
class Interpreter:
    """Stands for the real one: one trace a file, with an event in every function named; counts its calls."""

    functions: tuple[str, ...] = ()
    calls: list[str] = field(default_factory=list)

    def __call__(self, path, project, settings):
        self.calls.append(path)
        frames = [Frame(Span(path, 1), name) for name in ("<module>", *self.functions)]
        events = tuple(TapeCreated(number, (frame,), number) for number, frame in enumerate(frames))
        return (OneTrace(Trace(path, Source.STATIC, events, {})),)


def rule(detect, code: str = "NVW101", name: str = "ping-pong") -> Rule:
    return Rule(code, name, "summary", Group.TAPE, Severity.WARNING, Experiment.NONE, "0.1.0", detect)


def at(line: int, severity: Severity = Severity.WARNING, path: str | None = None, **changes: object):
    """A detector that finds one thing, always."""

    def detect(context: Context):
        span = Span(path or context.trace.path, line, 1)
        return [replace(Finding("NVW101", "ping-pong", severity, span, "message"), **changes)]

    return detect


def engine(*rules: Rule, interpret=None) -> Engine:
    return Engine((*rules, *hygiene.RULES), interpret or Interpreter(), project_of)


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Writes a program into the working directory and lints it."""
    monkeypatch.chdir(tmp_path)

    def run(text: str, *rules: Rule, name: str = "p.py", settings: Settings | None = None, **options) -> LintResult:
        Path(name).write_text(text)
        options.setdefault("engine", engine(*rules))
        return lint([name], settings or Settings(tmp_path), **options)

    return run


def told(result: LintResult) -> list[tuple[str, int, str]]:
    return [(finding.code, finding.span.line, finding.severity.value) for finding in result.findings]


WARP = "import warp as wp\n"


def test_a_file_without_warp_is_parsed_and_not_interpreted(program) -> None:
    interpreter = Interpreter()
    assert told(program("x = 1\n", engine=engine(rule(at(1)), interpret=interpreter))) == []
    assert told(program("x = (\n", engine=engine(rule(at(1)), interpret=interpreter))) == [("NVW900", 1, "warning")]
    assert interpreter.calls == []


def test_a_file_too_large_to_parse_is_told_only_if_it_names_warp(program, monkeypatch) -> None:
    monkeypatch.setattr("warplint.source.LARGEST", 100)
    assert told(program("x = 1\n" * 100)) == []
    (finding,) = program(WARP * 100).findings
    assert (finding.code, finding.message) == ("NVW900", "the file is too large to be checked (0 MiB, limit 0 MiB)")


def test_a_script_that_reaches_warp_by_an_import_alone_is_interpreted(program) -> None:
    Path("sim.py").write_text(WARP)
    assert told(program("from sim import run\nrun()\n", rule(at(2)))) == [("NVW101", 2, "warning")]


def test_one_fault_seen_twice_is_one_finding_of_the_graver_kind(program) -> None:
    label = Label(Span("p.py", 2), Role.READ, "read here")
    result = program(WARP, rule(at(3, Severity.INFO)), rule(at(3, labels=(label,))), rule(at(3)))
    assert told(result) == [("NVW101", 3, "warning")]
    assert result.findings[0].labels == (label,)


def test_findings_in_another_file_are_spelled_as_the_user_did_and_united(program, tmp_path) -> None:
    Path("helper.py").write_text(WARP + "x = 1  # noqa: NVW101\ny = 2\n")
    absolute = str(tmp_path / "helper.py")
    result = program(WARP, rule(at(3, path=absolute)), rule(at(2, path=absolute), name="other"))
    assert [(f.span.path, f.span.line) for f in result.findings] == [("helper.py", 3)]


def test_excluded_files_keep_their_findings_to_themselves(program, tmp_path) -> None:
    Path("gen").mkdir()
    Path("gen/h.py").write_text(WARP)
    settings = Settings(tmp_path, extend_exclude=("gen",))
    assert told(program(WARP, rule(at(1, path="gen/h.py")), settings=settings)) == []


def test_a_file_that_was_named_is_not_excluded(program, tmp_path) -> None:
    Path("build").mkdir()
    assert told(program(WARP, rule(at(1)), name="build/p.py")) == [("NVW101", 1, "warning")]


def test_a_failing_interpreter_and_a_failing_rule_are_findings(program) -> None:
    def broken(path, project, settings):
        raise RecursionError("too deep")

    def detect(context):
        yield from at(2)(context)
        raise KeyError("lost")

    (finding,) = program(WARP, engine=engine(interpret=broken)).findings
    assert finding.code == "NVW900"
    assert "RecursionError" in finding.message
    result = program(WARP, rule(detect, name="broken"), rule(at(3)))
    assert told(result) == [("NVW900", 1, "warning"), ("NVW101", 3, "warning")]
    assert "broken" in result.findings[0].message


def test_suppressed_findings_are_counted_and_asked_about(program) -> None:
    result = program(WARP + "x = 1  # noqa: NVW101\n", rule(at(2)))
    assert told(result) == []
    assert [finding.span.line for finding in result.selected] == [2]


def test_unused_suppressions(program, tmp_path) -> None:
    text = WARP + "x = 1  # noqa: NVW101, E501, NVW110\ny = 2  # warplint: ignore[ping-pong] no\nz = 3  # noqa\n"
    missing = rule(lambda context: (), "NVW110", "missing-requires-grad")
    result = program(text, rule(at(2)), missing)
    assert told(result) == [("NVW901", 2, "warning"), ("NVW901", 3, "warning")]
    assert "`NVW110`" in result.findings[0].message
    assert "NVW101" not in result.findings[0].message
    ignoring = Settings(tmp_path, per_file_ignores=(("p.py", ("NVW110", "NVW101")),))
    assert told(program(text, rule(at(2)), missing, settings=ignoring)) == []
    assert told(program("# flake8: noqa\n" + text, rule(at(2)), missing)) == []


def test_a_suppression_of_a_rule_that_is_not_there_says_so(program) -> None:
    lines = ("a = 1  # noqa: NVW199, E501", "b = 2  # warplint: ignore[pingpong] no", "c = 3  # noqa: W605, pingpong")
    result = program(WARP + "def f():\n    " + "\n    ".join(lines) + "\n", rule(lambda context: ()))
    assert told(result) == [("NVW901", 3, "warning"), ("NVW901", 4, "warning")]
    assert "no such rule as `NVW199`" in result.findings[0].message
    assert "no such rule as `pingpong`" in result.findings[1].message


def test_a_suppression_that_no_trace_passed_is_information(program) -> None:
    text = WARP + "def f():\n    x = 1  # noqa: NVW101\n"
    detect = rule(lambda context: ())
    assert told(program(text, detect)) == [("NVW901", 3, "info")]
    passed = engine(detect, interpret=Interpreter(functions=("f",)))
    assert told(program(text, engine=passed)) == [("NVW901", 3, "warning")]


def test_a_quoted_suppression_is_not_called_unused(program) -> None:
    assert told(program(WARP + '"""\n# noqa: NVW101\n"""\n', rule(lambda context: ()))) == []


def test_text_that_does_not_come_from_the_disk(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.py").write_text("x = (\n")
    buffer = SourceFile("p.py", (WARP + "x = 1\n").encode())
    assert told(lint([], Settings(tmp_path), engine=engine(rule(at(2))), texts=[buffer])) == [("NVW101", 2, "warning")]


def test_many_files_in_several_processes_give_the_same(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = [f"p{number:02}.py" for number in range(20)]
    for number, name in enumerate(names):
        Path(name).write_text("x = (\n" if number % 7 == 3 else "x = 1\n")
    alone = lint(names, Settings(tmp_path), engine=Engine(hygiene.RULES, _never, project_of))
    spread = lint(names, Settings(tmp_path), engine=Engine(hygiene.RULES, _never, project_of), jobs=2)
    assert spread.findings == alone.findings
    assert [finding.span.path for finding in spread.findings] == ["p03.py", "p10.py", "p17.py"]


def _never(path, project, settings):
    raise AssertionError("no file here mentions it")


def test_the_cache_answers_until_something_that_matters_changes(program, tmp_path) -> None:
    Path("sim.py").write_text(WARP)
    interpreter = Interpreter()
    detect = rule(at(2, labels=(Label(Span("sim.py", 1, 2, 3, 4), Role.WRITE, "here"),)))
    text = WARP + "from sim import step  # noqa: E402\n"

    def run(text: str, warp: tuple[int, int] = (1, 19), select: tuple[str, ...] = ("NVW",)) -> LintResult:
        cache = Cache(tmp_path / "cache", fingerprint((), warp))
        used = engine(detect, interpret=interpreter)
        return program(text, engine=used, cache=cache, settings=Settings(tmp_path, select=select, warp_version=warp))

    first = run(text)
    assert run(text).findings == first.findings
    assert first.findings[0].labels
    assert len(interpreter.calls) == 1
    assert told(run(text, select=("NVW2",))) == []
    assert len(interpreter.calls) == 1
    run(text + "y = 1\n")
    assert len(interpreter.calls) == 2
    Path("sim.py").write_text(WARP + "def step(): ...\n")
    run(text)
    assert len(interpreter.calls) == 3
    run(text, warp=(1, 15))
    assert len(interpreter.calls) == 4
    Path("sim.py").write_text(WARP)
    run(text)
    assert len(interpreter.calls) == 4


def test_a_file_that_appears_and_changes_what_an_import_means_is_noticed(program, tmp_path) -> None:
    interpreter = Interpreter()
    text = WARP + "from pkg import helper\n"
    Path("pkg").mkdir()
    Path("pkg/__init__.py").write_text("")

    def run() -> None:
        program(text, engine=engine(interpret=interpreter), cache=Cache(tmp_path / "cache", "same"))

    run()
    run()
    assert len(interpreter.calls) == 1
    Path("pkg/helper.py").write_text(WARP)
    run()
    assert len(interpreter.calls) == 2


def test_files_that_import_each_other_count_for_each_other(program, tmp_path) -> None:
    interpreter = Interpreter()
    for name, imported in (("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")):
        Path(f"{name}.py").write_text(f"import {imported}\n")

    def run() -> int:
        before = len(interpreter.calls)
        program(WARP + "import d\n", engine=engine(interpret=interpreter), cache=Cache(tmp_path / "cache", "same"))
        return len(interpreter.calls) - before

    assert [run(), run()] == [1, 0]
    Path("c.py").write_text("import a\nx = 1\n")
    assert [run(), run()] == [1, 0]
    Path("b.py").write_text("import c\nx = 1\n")
    assert run() == 1


def test_a_failure_is_not_kept(program, tmp_path) -> None:
    def fail(path, project, settings):
        raise ValueError("once")

    cache = Cache(tmp_path / "cache", "same")
    assert told(program(WARP, engine=engine(rule(at(1)), interpret=fail), cache=cache)) == [("NVW900", 1, "warning")]
    assert told(program(WARP, rule(at(1)), cache=cache)) == [("NVW101", 1, "warning")]


def test_a_damaged_cache_is_a_miss(program, tmp_path) -> None:
    cache = Cache(tmp_path / "cache", "same")
    detect = rule(at(1))
    expected = told(program(WARP, detect, cache=cache))
    for damage in ("", "[]", '{"path": 3, "findings": [{"code": 1}]}', '{"unknown": 1}'):
        for entry in (tmp_path / "cache").glob("*/*.json"):
            entry.write_text(damage)
        assert told(program(WARP, detect, cache=cache)) == expected


def test_a_cache_that_cannot_be_written_stops_nothing(program, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file" / "cache", "same")
    cache.tidy()
    assert told(program(WARP, rule(at(1)), cache=cache)) == [("NVW101", 1, "warning")]


def test_old_entries_are_removed_and_the_folder_is_marked(tmp_path) -> None:
    cache = Cache(tmp_path / "cache", "same")
    key = cache.key("p.py", b"content")
    cache.put(key, Span("p.py", 3))
    assert cache.get(key, Span) == Span("p.py", 3)
    cache.tidy()
    assert (tmp_path / "cache" / ".gitignore").read_text() == "*\n"
    assert (tmp_path / "cache" / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")
    assert cache.get(key, Span) is not None
    import time

    cache.tidy(now=time.time() + 40 * 86_400)
    assert cache.get(key, Span) is None

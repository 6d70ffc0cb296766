"""What the commands do: check, rule, gradcheck. Each returns the exit status."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplint import baseline, catalogue, config
from warplint.config import Settings
from warplint.dataclass import dataclass
from warplint.discovery import Discovered, discover
from warplint.finding import CELL, Applicability, Finding, Severity, Source, Status
from warplint.notebook import SUFFIX as NOTEBOOK
from warplint.notebook import Cells
from warplint.proof import Experiment
from warplint.report import words
from warplint.report.cells import in_cells
from warplint.report.look import Look, wants_colour
from warplint.report.model import Report, Verification
from warplint.report.progress import Progress
from warplint.report.renderers import renderer
from warplint.rule import Rule
from warplint.source import SourceFile, Unreadable, of_bytes, read
from warplint.usage import FAILED, FINDINGS, OK, UsageError, refuse_idle

if TYPE_CHECKING:
    from warplint.fix.plan import Plan, Rewrite
    from warplint.lint import LintResult

STDIN = "-"
UNNAMED = "<stdin>"

MOST_JOBS = 8
"""Processes, unless more are asked for: each parses for itself what its files import."""

DEFAULT_BASELINE = "warplint-baseline.json"

MOST_ROUNDS = 10
"""Of fixing and looking again: each must leave less to fix, which a pack's fix might not."""


def check(options: argparse.Namespace, given: Mapping[str, Any]) -> int:
    """``warplint [check] PATH…``."""
    if options.add_ignore and (options.fix or options.diff or options.write_baseline or STDIN in options.paths):
        raise UsageError("--add-ignore changes files by itself: not with --fix, --diff, --write-baseline or -")
    if options.diff and options.verify:
        raise UsageError("--diff and --verify do not go together: fix first")
    paths = options.paths or ["."]
    rules = catalogue.catalogue()
    settings = _settings(paths, options.stdin_filename, given, rules)
    if options.show_settings:
        print(json.dumps({"file": str(settings.file or ""), **config.as_table(settings)}, indent=2))
        return OK
    refuse_idle(options)
    texts = _standard_input(paths, options, settings)
    found = discover([path for path in paths if path != STDIN], settings)
    _tell_what_is_left_out(found, texts, paths)
    result = _lint(found, texts, settings, options)
    if options.diff:
        return _diff(result, texts, settings, options)
    fixed = Fixed(result, texts)
    if options.fix:
        fixed = _fixed(result, found, texts, settings, options)
    verification = _verify(fixed.result, found, settings) if options.verify else None
    report = _report(fixed, verification, settings, rules, options)
    if options.add_ignore:
        return _add_ignores(report, texts)
    if options.write_baseline:
        return _write_baseline(report, settings)
    if settings.baseline is not None:
        report = _without_known(report, fixed.result, settings)
    if options.fix and texts:
        _print_fixed(fixed.texts)
    _write(report, options, fixed.texts)
    return _status(report, options)


def rule(options: argparse.Namespace) -> int:
    """``warplint rule [CODE… | --all]``."""
    rules = catalogue.catalogue()
    asked = [each for word in options.codes for each in _known(word, rules)] if options.codes else list(rules)
    if options.format == "json":
        print(json.dumps([rule_json(each) for each in asked], indent=2))
    elif options.format == "markdown":
        print(catalogue.table(asked))
    elif options.codes or options.all:
        print("\n\n".join(page(each) for each in asked))
    else:
        width = max(len(each.name) for each in asked)
        for each in asked:
            print(f"{each.code}  {each.name.ljust(width)}  {each.severity.value:7}  {each.summary}")
    return OK


def gradcheck(options: argparse.Namespace, given: Mapping[str, Any], command: Sequence[str]) -> int:
    """``warplint gradcheck -- COMMAND``: every gradient that a program computes, whatever the linter says about it."""
    rules = catalogue.catalogue()
    settings = _settings(["."], None, given, rules)
    from warplint.verify import session

    verification = session.gradcheck(command, settings, _progress())
    findings = tuple(f for f in verification.findings if f.severity.rank >= settings.severity.rank)
    report = Report(
        findings, 0, _warp(settings, verification), settings.severity, rules=rules, verification=verification
    )
    _write(report, options, ())
    wrong = any(check.status == "fail" for check in verification.gradients)
    if wrong or any(_is_confirmed(finding) for finding in findings):
        return FINDINGS
    return OK if verification.judged else FAILED


def page(rule: Rule) -> str:
    """A rule's page: its documentation and the line that says what kind of rule it is."""
    proof = "" if rule.experiment is Experiment.NONE else f"proven by {words.EXPERIMENTS[rule.experiment]}, "
    facts = f"group {rule.group.value}, severity {rule.severity.value}, {proof}since {rule.since}"
    text = rule.documentation
    head, _, rest = text.partition("\n")
    if not head.startswith("# "):
        head, rest = f"# {rule.name} ({rule.code})", text
    return f"{head}\n\n{rule.summary} ({facts})\n\n{rest.strip()}"


def rule_json(rule: Rule) -> dict[str, str]:
    """A rule's declaration as JSON."""
    return {
        "code": rule.code,
        "name": rule.name,
        "summary": rule.summary,
        "group": rule.group.value,
        "severity": rule.severity.value,
        "experiment": rule.experiment.value,
        "since": rule.since,
        "documentation": rule.documentation,
    }


def _known(word: str, rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    found = catalogue.find(word, rules)
    if not found:
        raise UsageError(f"no rule has the code or name `{word}`; `warplint rule` lists them")
    return found


def _settings(
    paths: Sequence[str], stdin_filename: str | None, given: Mapping[str, Any], rules: tuple[Rule, ...]
) -> Settings:
    """Those of the pyproject.toml nearest to all the paths, with the command line's over them."""
    places = [os.path.abspath(stdin_filename or ".") if path == STDIN else os.path.abspath(path) for path in paths]
    folders = [place if os.path.isdir(place) else os.path.dirname(place) for place in places]
    try:
        common = Path(os.path.commonpath(folders))
    except ValueError:  # different drives
        common = Path(folders[0])
    settings = config.load(common)
    config.check_codes(settings, [(rule.code, rule.name) for rule in rules], str(settings.file))
    settings = config.update(settings, given, "command line")
    config.check_codes(settings, [(rule.code, rule.name) for rule in rules], "command line")
    return settings


def _standard_input(paths: Sequence[str], options: argparse.Namespace, settings: Settings) -> tuple[SourceFile, ...]:
    if STDIN not in paths:
        return ()
    if len(paths) > 1:
        raise UsageError("- (standard input) cannot be checked together with other paths")
    if options.verify:
        raise UsageError("--verify needs a file to run, not standard input")
    name = options.stdin_filename or UNNAMED
    try:
        text = of_bytes(name, sys.stdin.buffer.read())
    except Unreadable as error:
        raise UsageError(f"{name}: {error.message}") from error
    return () if settings.force_exclude and settings.excludes(name) else (text,)


def _tell_what_is_left_out(found: Discovered, texts: tuple[SourceFile, ...], paths: Sequence[str]) -> None:
    if found.notebooks:
        left = words.counted(len(found.notebooks), "notebook")
        print(f"warplint: {left} not checked: name it, or set `notebooks`", file=sys.stderr)
    if not found.files and not texts:
        print(f"warplint: no Python files in {', '.join(paths)}", file=sys.stderr)


def _lint(
    found: Discovered, texts: tuple[SourceFile, ...], settings: Settings, options: argparse.Namespace
) -> LintResult:
    from warplint.cache import Cache, default_folder, fingerprint
    from warplint.lint import lint

    cache = None
    if not options.no_cache and not texts:
        cache = Cache(default_folder(settings.root), fingerprint(catalogue.pack_folders(), settings.warp_version))
        cache.tidy()
    lowest = Severity.INFO if options.verify else settings.severity  # a run may confirm what is only information
    jobs = options.jobs or min(os.cpu_count() or 1, MOST_JOBS)
    return lint(found.files, settings, cache=cache, jobs=jobs, texts=texts, lowest=lowest)


@dataclass(frozen=True)
class Fixed:
    """What is found after ``count`` fixes were made, and standard input as they left it."""

    result: LintResult
    texts: tuple[SourceFile, ...]
    count: int = 0


def _fixed(
    result: LintResult,
    found: Discovered,
    texts: tuple[SourceFile, ...],
    settings: Settings,
    options: argparse.Namespace,
) -> Fixed:
    """Fix, look again, and so on until nothing is left to fix."""
    from warplint.fix import files

    fixed = Fixed(result, texts)
    for _ in range(MOST_ROUNDS):
        made = _plan(fixed.result, fixed.texts, settings, options)
        if not made.rewrites:
            break
        for rewrite in made.rewrites:
            if not texts:
                _written(rewrite)
        texts = tuple(SourceFile(each.path, files.encoded(each)) for each in made.rewrites) if texts else ()
        fixed = Fixed(_lint(found, texts, settings, options), texts, fixed.count + len(made.fixed))
        _tell_what_waits(made, "are made in the next round")
    return fixed


def _written(rewrite: Rewrite) -> None:
    from warplint.fix import files

    try:
        files.write(rewrite)
    except OSError as error:
        raise UsageError(f"{rewrite.path}: cannot be written: {error.strerror or error}") from error


def _diff(result: LintResult, texts: tuple[SourceFile, ...], settings: Settings, options: argparse.Namespace) -> int:
    """Show what ``--fix`` would change in its first round."""
    from warplint.fix import files

    made = _plan(result, texts, settings, options)
    for rewrite in made.rewrites:
        sys.stdout.write(files.diff(rewrite))
    sys.stdout.flush()
    _tell_what_waits(made, "are left for the next round")
    print(f"warplint: {words.counted(len(made.fixed), 'finding')} would be fixed", file=sys.stderr)
    return FINDINGS if made.rewrites and not options.exit_zero else OK


def _plan(result: LintResult, texts: tuple[SourceFile, ...], settings: Settings, options: argparse.Namespace) -> Plan:
    """The fixes of what is shown, in the files that are checked."""
    from warplint.fix.edits import with_edits
    from warplint.fix.plan import plan

    source_of = _source_of(texts)
    checked = {report.path for report in result.reports if not report.path.endswith(NOTEBOOK)}
    shown = [
        finding
        for finding in with_edits(_shown(result.findings, settings), source_of)
        if finding.fix is not None and all(edit.span.path in checked for edit in finding.fix.edits)
    ]
    try:
        return plan(shown, _applicable(options), source_of)
    except Unreadable as error:
        raise UsageError(f"nothing is fixed: {error.message}") from error


def _shown(findings: Sequence[Finding], settings: Settings) -> tuple[Finding, ...]:
    return tuple(each for each in findings if each.severity.rank >= settings.severity.rank)


def _applicable(options: argparse.Namespace) -> frozenset[Applicability]:
    unsafe = {Applicability.UNSAFE} if options.unsafe_fixes else set()
    return frozenset({Applicability.SAFE} | unsafe)


def _tell_what_waits(made: Plan, when: str) -> None:
    if made.overlapping:
        count = words.counted(len(made.overlapping), "finding")
        print(f"warplint: the fixes of {count} overlap others and {when}", file=sys.stderr)


def _source_of(texts: tuple[SourceFile, ...]) -> Callable[[str], SourceFile]:
    known = {text.path: text for text in texts}

    def source_of(path: str) -> SourceFile:
        if path not in known:
            known[path] = read(path)
        return known[path]

    return source_of


def _print_fixed(texts: tuple[SourceFile, ...]) -> None:
    """Standard input as it is after the fixes, byte for byte."""
    sys.stdout.flush()
    for text in texts:
        sys.stdout.buffer.write(text.data)
    sys.stdout.flush()


def _verify(result: LintResult, found: Discovered, settings: Settings) -> Verification:
    from warplint.verify import session

    return session.verify(result.selected, found, settings, _progress())


def _progress() -> Progress:
    """Shows one changing line on a terminal, and each program once anywhere else."""
    return Progress(sys.stderr)


def _add_ignores(report: Report, texts: tuple[SourceFile, ...]) -> int:
    """Silence what is reported, each by a comment at its line."""
    from warplint.fix.ignores import with_ignores

    findings = [finding for finding in report.findings if not finding.span.path.endswith(NOTEBOOK)]
    rewrites = with_ignores(findings, _source_of(texts))
    for rewrite in rewrites:
        _written(rewrite)
    count = words.counted(len(findings), "finding")
    print(f"warplint: comments for {count} written to {words.counted(len(rewrites), 'file')}", file=sys.stderr)
    return OK


def _write_baseline(report: Report, settings: Settings) -> int:
    """Keep what is reported, so that the next run reports what is new."""
    file = Path(settings.baseline or DEFAULT_BASELINE)
    baseline.write(baseline.of(report.findings, file.resolve().parent, _lines_of(())), file)
    print(f"warplint: {words.counted(len(report.findings), 'finding')} written to {file}", file=sys.stderr)
    return OK


def _without_known(report: Report, result: LintResult, settings: Settings) -> Report:
    """The report without what the baseline knows."""
    kept = baseline.read(Path(settings.baseline or DEFAULT_BASELINE))
    checked = [each.path for each in result.reports]
    compared = baseline.compare(report.findings, kept, checked, _lines_of(()))
    return replace(report, findings=compared.new, known=compared.known, gone=compared.gone)


def _report(
    fixed: Fixed,
    verification: Verification | None,
    settings: Settings,
    rules: tuple[Rule, ...],
    options: argparse.Namespace,
) -> Report:
    from warplint.fix.edits import with_edits

    result = fixed.result
    reported = result.reported(verification.findings if verification is not None else result.selected)
    shown = with_edits(_shown(reported.findings, settings), _source_of(fixed.texts))
    return Report(
        shown,
        files=len(result.reports),
        warp=_warp(settings, verification),
        severity=settings.severity,
        hidden=len(reported.findings) - len(shown),
        suppressed=reported.suppressed,
        rules=rules,
        verification=verification,
        statistics=_statistics(result) if options.statistics else None,
        applicable=_applicable(options),
        fixed=fixed.count,
    )


def _warp(settings: Settings, verification: Verification | None) -> str:
    """The version that ran, else the one that the rules speak of."""
    ran = [program.warp for program in verification.programs if program.warp] if verification else []
    return ran[0] if ran else ".".join(map(str, settings.warp_version))


def _statistics(result: LintResult) -> Mapping[str, int]:
    reports = result.reports
    return {
        "files": len(reports),
        "files with traces": sum(report.traces > 0 for report in reports),
        "traces": sum(report.traces for report in reports),
        "traces cut by the budget": sum(report.cut for report in reports),
        "events": sum(report.events for report in reports),
        "places given up": sum(report.unknowns for report in reports),
    }


def _write(report: Report, options: argparse.Namespace, texts: tuple[SourceFile, ...]) -> None:
    render = renderer(options.format)
    to_file = options.output_file is not None
    look = Look(not to_file and wants_colour(sys.stdout), _lines_of(texts))
    text = render(in_cells(report, _cells_of(texts)), look)
    if to_file:
        try:
            Path(options.output_file).write_text(text, encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise UsageError(f"{options.output_file}: cannot be written: {error.strerror}") from error
        return
    stream = sys.stderr if getattr(options, "fix", False) and texts else sys.stdout  # the fixed text has the other
    stream.write(text)
    stream.flush()


def _lines_of(texts: tuple[SourceFile, ...]) -> Callable[[str], tuple[str, ...]]:
    """The lines of a file or, by ``train.ipynb:cell 3``, those of a notebook's cell."""
    known: dict[str, tuple[str, ...]] = {}
    source_of = _source_of(texts)

    def lines_of(file: str) -> tuple[str, ...]:
        if file not in known:
            path, _, cell = file.partition(CELL)
            try:
                source = source_of(path)
                known[file] = source.cells.lines_of(int(cell), source.lines) if source.cells and cell else source.lines
            except Unreadable:
                known[file] = ()
        return known[file]

    return lines_of


def _cells_of(texts: tuple[SourceFile, ...]) -> Callable[[str], Cells | None]:
    source_of = _source_of(texts)

    def cells_of(path: str) -> Cells | None:
        try:
            return source_of(path).cells if path.endswith(NOTEBOOK) else None
        except Unreadable:
            return None

    return cells_of


def _status(report: Report, options: argparse.Namespace) -> int:
    verification = report.verification
    if verification is None:
        failing: Sequence[Finding] = report.findings
    elif options.fail_on == "any":
        failing = [finding for finding in report.findings if not _is_refuted(finding)]
    else:
        failing = [finding for finding in report.findings if _is_confirmed(finding) or _is_unprovable(finding, report)]
    wrong = verification is not None and verification.unexplained
    if (failing or wrong) and not options.exit_zero:
        return FINDINGS
    if report.errors or (verification is not None and not verification.judged):
        return FAILED
    return OK


def _is_confirmed(finding: Finding) -> bool:
    return finding.verdict is not None and finding.verdict.status is Status.CONFIRMED


def _is_refuted(finding: Finding) -> bool:
    return finding.verdict is not None and finding.verdict.status is Status.REFUTED


def _is_unprovable(finding: Finding, report: Report) -> bool:
    """Whether no run could ever say anything about the finding (a file that cannot be read): it counts as it stands."""
    rule = next((rule for rule in report.rules if rule.code == finding.code), None)
    return rule is not None and rule.experiment is Experiment.NONE and finding.source is Source.STATIC

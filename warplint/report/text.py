"""The output for people: code frames with all places of a fault, verdicts with their figures, and a summary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from warplint.finding import Finding, Severity, Status
from warplint.report import words
from warplint.report.frame import frame
from warplint.report.look import Look
from warplint.report.model import GradientCheck, Report, Verification

MOST_GRADIENTS = 20

_SEVERITY_STYLE = {Severity.INFO: "blue", Severity.WARNING: "yellow", Severity.ERROR: "red"}
_STATUS_STYLE = {
    Status.CONFIRMED: "red",
    Status.REFUTED: "green",
    Status.NOT_REACHED: "cyan",
    Status.INCONCLUSIVE: "cyan",
}
_SHOWN_FIRST = ("fail", "inconclusive", "flat", "pass")


def render(report: Report, look: Look) -> str:
    """The whole report as text."""
    return "\n".join(_lines(report, look)) + "\n"


def _lines(report: Report, look: Look) -> Iterator[str]:
    for finding in report.findings:
        yield from finding_lines(finding, look, words.mark(finding, report))
        yield ""
    if report.verification is not None:
        yield from _verification(report.verification, look)
    yield from (f"{look.paint('red', 'error')}: {error}" for error in report.errors)
    if report.statistics is not None:
        yield from statistics(report)
    yield words.summary(report)
    yield from words.fixes(report)


def finding_lines(finding: Finding, look: Look, mark: str = "") -> Iterator[str]:
    """A finding: what it says, where, and what a run said about it. ``mark`` tells that it can be fixed."""
    severity = look.paint(_SEVERITY_STYLE[finding.severity], f"{finding.severity.value}[{finding.code}]")
    yield f"{severity} {mark}{look.paint('bold', f'{finding.name}: {finding.message}')}"
    yield from frame(finding, look)
    equals = look.paint("blue", "=")
    if finding.verdict is not None:
        yield f"  {equals} {look.paint(_STATUS_STYLE[finding.verdict.status], words.verdict(finding.verdict))}"
    if finding.source.value == "runtime":
        yield f"  {equals} seen only while the program ran"
    if finding.fix is not None:
        yield f"  {equals} fix ({finding.fix.applicability.value}): {finding.fix.title}"


def _verification(verification: Verification, look: Look) -> Iterator[str]:
    yield from verification.notes
    for program in verification.programs:
        yield from words.program(program)
    yield from (f"  {line}" for line in _gradients(verification.gradients, look))
    yield from (f"  {line}" for build in verification.builds for line in words.build(build))
    yield from (f"{look.paint('red', 'error')}: {error}" for error in verification.errors)
    if not verification.programs and not verification.errors:
        yield words.NOTHING_RUN
    yield ""


def _gradients(checks: Iterable[GradientCheck], look: Look) -> Iterator[str]:
    ordered = sorted(checks, key=lambda check: _SHOWN_FIRST.index(check.status) if check.status in _SHOWN_FIRST else 9)
    for check in ordered[:MOST_GRADIENTS]:
        line = words.gradient(check)
        yield look.paint("red", line) if check.status == "fail" else line
        if signature := words.signature(check):
            yield signature
    rest = ordered[MOST_GRADIENTS:]
    if rest:
        passed = sum(check.status == "pass" for check in rest)
        yield f"and {words.counted(len(rest), 'more gradient')}, {passed} of them right (--format json has all)"


def statistics(report: Report) -> Iterator[str]:
    """The counts of ``--statistics``: findings by rule, then what the interpreter did."""
    counts: dict[tuple[str, str], int] = {}
    for finding in report.findings:
        counts[finding.code, finding.name] = counts.get((finding.code, finding.name), 0) + 1
    for (code, name), count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        yield f"{count:6,}  {code}  {name}"
    for name, value in (report.statistics or {}).items():
        yield f"{value:6,}  {name}"

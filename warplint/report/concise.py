"""One line a finding: ``train.py:12:9: NVW101 message``, in the form that editors and other tools parse."""

from __future__ import annotations

from collections.abc import Iterator

from warplint.report import words
from warplint.report.look import Look
from warplint.report.model import Report
from warplint.report.text import statistics


def render(report: Report, look: Look) -> str:
    """The findings, then the summary."""
    return "\n".join(_lines(report, look)) + "\n"


def _lines(report: Report, look: Look) -> Iterator[str]:
    for finding in report.findings:
        place = f"{look.paint('bold', finding.span.file)}:{finding.span.line}:{finding.span.column}:"
        verdict = f" [{words.verdict(finding.verdict)}]" if finding.verdict is not None else ""
        message = finding.message.replace("\n", " ")
        yield f"{place} {look.paint('red', finding.code)} {words.mark(finding, report)}{message}{verdict}"
    if report.verification is not None:
        if not report.verification.programs and not report.verification.errors:
            yield words.NOTHING_RUN
        for check in report.verification.unexplained:
            yield f"{check.span.file}:{check.line}:1: {words.WRONG}: {words.gradient(check)}"
        yield from (f"error: {error}" for error in report.verification.errors)
        for program in report.verification.programs:
            if program.problem:
                yield f"error: `{program.command}` not judged to the end: {program.problem}"
    yield from (f"error: {error}" for error in report.errors)
    if report.statistics is not None:
        yield from statistics(report)
    yield words.summary(report)
    yield from words.fixes(report)

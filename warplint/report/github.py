"""Annotations of GitHub Actions: workflow commands that show findings beside the changed lines."""

from __future__ import annotations

import os
from collections.abc import Iterator

from warplint.finding import Finding, Severity
from warplint.report import words
from warplint.report.look import Look
from warplint.report.model import GradientCheck, Report

_COMMANDS = {Severity.INFO: "notice", Severity.WARNING: "warning", Severity.ERROR: "error"}


def render(report: Report, look: Look) -> str:
    """One workflow command a finding and an error, then the summary as an ordinary line of the log."""
    del look
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield from (_annotation(finding) for finding in report.findings)
    ran = report.verification
    yield from (_wrong(check) for check in (ran.unexplained if ran else ()))
    problems = [f"`{p.command}`: {p.problem}" for p in ran.programs if p.problem] if ran else []
    for error in (*report.errors, *(ran.errors if ran else ()), *problems):
        yield f"::error title=warplint::{escaped(error)}"
    yield words.summary(report)


def _annotation(finding: Finding) -> str:
    span = finding.span
    properties = {"file": workspace_path(span.path), "line": str(span.line), "endLine": str(span.end_line or span.line)}
    if (span.end_line or span.line) == span.line:  # GitHub refuses columns of a range over several lines
        properties["col"] = str(span.column)
        if span.end_column:
            properties["endColumn"] = str(span.end_column)
    properties["title"] = f"{finding.code} {finding.name}"
    named = ",".join(f"{key}={escaped_property(value)}" for key, value in properties.items())
    return f"::{_COMMANDS[finding.severity]} {named}::{escaped(message(finding))}"


def _wrong(check: GradientCheck) -> str:
    place = f"file={escaped_property(workspace_path(check.path))},line={check.line}," if check.path else ""
    return f"::error {place}title={words.WRONG}::{escaped(words.gradient(check))}"


def message(finding: Finding) -> str:
    """The message with the other places of the fault and the verdict, a line each."""
    labels = [f"{label.span.file}:{label.span.line}: {label.text}" for label in finding.labels]
    verdict = [words.verdict(finding.verdict)] if finding.verdict is not None else []
    where = f"cell {finding.span.cell}: " if finding.span.cell else ""
    return "\n".join([f"{where}{finding.message}", *labels, *verdict])


def workspace_path(path: str) -> str:
    """The path below the root of the repository, which is what GitHub matches."""
    root = os.environ.get("GITHUB_WORKSPACE")
    if not root:
        return path
    relative = os.path.relpath(os.path.realpath(path), os.path.realpath(root))
    return path if relative.startswith("..") else relative.replace(os.sep, "/")


def escaped(text: str) -> str:
    """The data of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escaped_property(text: str) -> str:
    """A property of a workflow command."""
    return escaped(text).replace(":", "%3A").replace(",", "%2C")

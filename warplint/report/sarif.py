"""SARIF 2.1.0, for GitHub's code scanning and other viewers: rules, several places, the way of the fault, fixes.

Fingerprints rest on the rule and the text of the line, not on its number, so that a finding keeps its identity when
lines are added above it; equal lines of one file are counted.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from typing import Any
from urllib.parse import quote

from warplint import __version__
from warplint.finding import Finding, Fix, Severity, Span
from warplint.report import words
from warplint.report.json_report import finding_json, finite
from warplint.report.look import LinesOf, Look
from warplint.report.model import GradientCheck, Report
from warplint.rule import Rule

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
FINGERPRINT = "warplint/v1"

_LEVELS = {Severity.INFO: "note", Severity.WARNING: "warning", Severity.ERROR: "error"}


def render(report: Report, look: Look) -> str:
    """The report as one SARIF log with one run."""
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(report, look.lines_of)]}
    return json.dumps(finite(log), indent=2, allow_nan=False) + "\n"


def _run(report: Report, lines_of: LinesOf) -> dict[str, Any]:
    order = {rule.code: index for index, rule in enumerate(report.rules)}
    seen: Counter[tuple[str, str, str]] = Counter()
    ran = report.verification
    errors = [*report.errors, *(ran.errors if ran else ())]
    errors += [f"`{program.command}`: {program.problem}" for program in ran.programs if program.problem] if ran else []
    return {
        "tool": {
            "driver": {
                "name": "warplint",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [_rule(rule) for rule in report.rules],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [
            *(_result(finding, order, seen, lines_of) for finding in report.findings),
            *(_wrong(check) for check in (ran.unexplained if ran else ())),
        ],
        "invocations": [
            {
                "executionSuccessful": not errors,
                "toolExecutionNotifications": [{"level": "error", "message": {"text": error}} for error in errors],
            }
        ],
    }


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.summary},
        "help": {"text": rule.documentation, "markdown": rule.documentation},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"group": rule.group.value, "experiment": rule.experiment.value, "since": rule.since},
    }


def _result(
    finding: Finding, order: dict[str, int], seen: Counter[tuple[str, str, str]], lines_of: LinesOf
) -> dict[str, Any]:
    text = finding.message
    if finding.verdict is not None:
        text = f"{text}\n{words.verdict(finding.verdict)}"
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [_location(finding.span)],
        "partialFingerprints": {FINGERPRINT: _fingerprint(finding, seen, lines_of)},
        "properties": {"source": finding.source.value, "verdict": finding_json(finding)["verdict"]},
    }
    if finding.code in order:
        result["ruleIndex"] = order[finding.code]
    if finding.labels:
        places = [{**_location(label.span), "message": {"text": label.text}} for label in finding.labels]
        result["relatedLocations"] = [{"id": number, **place} for number, place in enumerate(places, 1)]
        steps = sorted(finding.labels, key=lambda label: (label.span.path, label.span.line))
        flow = [{"location": {**_location(step.span), "message": {"text": step.text}}} for step in steps]
        flow.append({"location": {**_location(finding.span), "message": {"text": finding.message}}})
        result["codeFlows"] = [{"threadFlows": [{"locations": flow}]}]
    if finding.fix is not None and finding.fix.edits:
        result["fixes"] = [_fix(finding.fix)]
    return result


def _wrong(check: GradientCheck) -> dict[str, Any]:
    """A gradient that is wrong without a finding that says by what."""
    result: dict[str, Any] = {"ruleId": words.WRONG, "level": "error", "message": {"text": words.gradient(check)}}
    if check.path:
        result["locations"] = [_location(check.span)]
    return result


def _fix(fix: Fix) -> dict[str, Any]:
    paths = dict.fromkeys(edit.span.path for edit in fix.edits)
    changes = [
        {
            "artifactLocation": {"uri": uri(path)},
            "replacements": [
                {"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.content}}
                for edit in fix.edits
                if edit.span.path == path
            ],
        }
        for path in paths
    ]
    return {"description": {"text": fix.title}, "artifactChanges": changes}


def _location(span: Span) -> dict[str, Any]:
    return {"physicalLocation": {"artifactLocation": {"uri": uri(span.path)}, "region": _region(span)}}


def _region(span: Span) -> dict[str, int]:
    region = {"startLine": span.line, "startColumn": span.column, "endLine": span.end_line or span.line}
    return {**region, "endColumn": span.end_column} if span.end_column else region


def uri(path: str) -> str:
    """Relative where the path is, as viewers ask for; else ``file://``."""
    return f"file://{quote(path)}" if os.path.isabs(path) else quote(path.replace(os.sep, "/"))


def _fingerprint(finding: Finding, seen: Counter[tuple[str, str, str]], lines_of: LinesOf) -> str:
    lines = lines_of(finding.span.file)
    line = lines[finding.span.line - 1].strip() if finding.span.line <= len(lines) else ""
    key = (finding.code, finding.span.path, line)
    seen[key] += 1
    return hashlib.sha256("\0".join([*key, str(seen[key])]).encode("utf-8", "surrogateescape")).hexdigest()[:32]

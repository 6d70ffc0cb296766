"""The report as JSON: schema 1, described in ``docs/json.md`` and, for programs, by ``docs/json-schema.json``.

Figures that are not finite are the strings ``"nan"``, ``"inf"`` and ``"-inf"``: JSON has no such numbers, and a
gradient that is not a number is just what a reader wants to see.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from warplint import __version__
from warplint.finding import Edit, Finding, Fix, Label, Span, Verdict
from warplint.report.look import Look
from warplint.report.model import BuildCount, GradientCheck, ProgramRun, Report, SignatureShown, Verification

SCHEMA_VERSION = 1


def render(report: Report, look: Look) -> str:
    """The whole report as one JSON object."""
    del look
    return json.dumps(document(report), indent=2, allow_nan=False) + "\n"


def document(report: Report) -> dict[str, Any]:
    """The report as plain data."""
    ran = report.verification or Verification()
    value = {
        "schema": SCHEMA_VERSION,
        "warplint": __version__,
        "warp": report.warp,
        "findings": [finding_json(finding) for finding in report.findings],
        "gradients": [_gradient(check) for check in ran.gradients],
        "builds": [_build(count) for count in ran.builds],
        "programs": [_program(program) for program in ran.programs],
        "notes": list(ran.notes),
        "errors": [*report.errors, *ran.errors],
    }
    if report.statistics is not None:
        value["statistics"] = dict(report.statistics)
    plain: dict[str, Any] = finite(value)
    return plain


def finding_json(finding: Finding) -> dict[str, Any]:
    """One finding. Lines and columns are 1-based, ends are exclusive; 0 stands for an end that is not known."""
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        **_span(finding.span),
        "message": finding.message,
        "labels": [_label(label) for label in finding.labels],
        "source": finding.source.value,
        "fix": _fix(finding.fix) if finding.fix is not None else None,
        "noqa_line": finding.noqa_line or finding.span.line,
        "verdict": _verdict(finding.verdict) if finding.verdict is not None else None,
    }


def _span(span: Span) -> dict[str, Any]:
    """Where it is; in a notebook, ``cell`` says in which cell the lines are counted."""
    return {
        "path": span.path,
        **({"cell": span.cell} if span.cell else {}),
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line or span.line,
        "end_column": span.end_column,
    }


def _label(label: Label) -> dict[str, Any]:
    return {**_span(label.span), "role": label.role.value, "text": label.text}


def _fix(fix: Fix) -> dict[str, Any]:
    return {"applicability": fix.applicability.value, "title": fix.title, "edits": [_edit(edit) for edit in fix.edits]}


def _edit(edit: Edit) -> dict[str, Any]:
    return {**_span(edit.span), "content": edit.content}


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "status": verdict.status.value,
        "reason": verdict.reason,
        "experiment": verdict.experiment.value,
        "figures": dict(verdict.figures),
    }


def _gradient(check: GradientCheck) -> dict[str, Any]:
    return {
        "leaf": check.leaf,
        "path": check.path,
        **({"cell": check.cell} if check.cell else {}),
        "line": check.line,
        "backward": check.backward,
        "backward_path": check.backward_path,
        **({"backward_cell": check.backward_cell} if check.backward_cell else {}),
        "backward_line": check.backward_line,
        "status": check.status,
        "ad": check.ad,
        "fd": check.fd,
        "relative_error": check.relative_error,
        "reason": check.reason,
        "unexplained": check.unexplained,
        "signature": _signature(check.signature) if check.signature is not None else None,
        "program": check.program,
    }


def _signature(shown: SignatureShown) -> dict[str, Any]:
    return {
        "name": shown.name,
        "text": shown.text,
        "factor": shown.factor,
        "operation": shown.operation,
        "path": shown.path,
        **({"cell": shown.cell} if shown.cell else {}),
        "line": shown.line,
    }


def _build(count: BuildCount) -> dict[str, Any]:
    return {
        "module": count.module,
        "builds_cold": count.cold,
        "builds_second_run": count.warm,
        "seconds": count.seconds,
        "program": count.program,
        "why": list(count.why),
    }


def _program(program: ProgramRun) -> dict[str, Any]:
    return {
        "command": program.command,
        "seconds": round(program.seconds, 3),
        "backward_calls": program.backward_calls,
        "launches": program.launches,
        "warp": program.warp,
        "device": program.device,
        "stopped": program.stopped,
        "problem": program.problem,
        "notes": list(program.notes),
    }


def finite(value: Any) -> Any:
    """``value`` as JSON can hold it: figures that are not finite become strings, so does what JSON does not know."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [finite(item) for item in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return str(value)

"""JUnit XML, which most CI servers show as tests: a file is a suite, a finding a failed test, an error a broken one."""

from __future__ import annotations

import re
from itertools import groupby
from xml.etree import ElementTree as xml

from warplint.finding import Finding
from warplint.report import words
from warplint.report.github import message
from warplint.report.look import Look
from warplint.report.model import GradientCheck, Report

_FORBIDDEN = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report, look: Look) -> str:
    """The report as one ``testsuites`` element; without findings it holds one test that passed."""
    del look
    root = xml.Element("testsuites", name="warplint")
    for path, findings in groupby(report.findings, key=lambda finding: finding.span.path):
        _suite(root, path, tuple(findings))
    wrong = report.verification.unexplained if report.verification else ()
    for path, checks in groupby(sorted(wrong, key=lambda check: check.path), key=lambda check: check.path):
        _gradients(root, path, tuple(checks))
    errors = [*report.errors, *(report.verification.errors if report.verification else ())]
    if errors:
        suite = xml.SubElement(root, "testsuite", name="warplint", tests=str(len(errors)), errors=str(len(errors)))
        for error in errors:
            case = xml.SubElement(suite, "testcase", name="warplint", classname="warplint")
            xml.SubElement(case, "error", message=_clean(error))
    if not len(root):
        suite = xml.SubElement(root, "testsuite", name="warplint", tests="1", failures="0", errors="0")
        xml.SubElement(suite, "testcase", name=words.summary(report), classname="warplint")
    xml.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + xml.tostring(root, encoding="unicode") + "\n"


def _suite(root: xml.Element, path: str, findings: tuple[Finding, ...]) -> None:
    count = str(len(findings))
    suite = xml.SubElement(root, "testsuite", name=_clean(path), tests=count, failures=count, errors="0")
    for finding in findings:
        name = f"{finding.code} {finding.name}"
        place = {"name": name, "classname": _clean(path), "file": _clean(path), "line": str(finding.span.line)}
        case = xml.SubElement(suite, "testcase", place)
        failure = xml.SubElement(case, "failure", message=_clean(finding.message), type=finding.severity.value)
        failure.text = _clean(f"{finding.span.file}:{finding.span.line}:{finding.span.column}\n{message(finding)}")


def _gradients(root: xml.Element, path: str, checks: tuple[GradientCheck, ...]) -> None:
    """The gradients that are wrong without a finding that says by what."""
    count = str(len(checks))
    suite = xml.SubElement(root, "testsuite", name=_clean(path), tests=count, failures=count, errors="0")
    for check in checks:
        place = {"name": f"{words.WRONG} {check.leaf}", "classname": _clean(path), "line": str(check.line)}
        case = xml.SubElement(suite, "testcase", place)
        xml.SubElement(case, "failure", message=_clean(words.gradient(check)), type="error")


def _clean(text: str) -> str:
    """Without the characters that XML does not allow."""
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)

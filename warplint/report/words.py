"""What verdicts, gradients, programs and counts are called in the output for people; numbers as people read them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from warplint.finding import Applicability, Finding, Severity, Status, Verdict
from warplint.proof import Experiment
from warplint.report.model import BuildCount, GradientCheck, ProgramRun, Report

EXPERIMENTS: Mapping[Experiment, str] = {
    Experiment.FINITE_DIFFERENCE: "finite differences",
    Experiment.KERNEL_CHECK: "a check of the kernel alone",
    Experiment.FLAT_GRADIENT: "a gradient that is zero, rightly",
    Experiment.NONSMOOTH_POINT: "a gradient that is not finite, or the slope of one side",
    Experiment.ADJOINT_CHECK: "a check of the custom adjoint alone",
    Experiment.RUN_ON: "the same loop, run on",
    Experiment.BUILD_COUNT: "a count of builds",
    Experiment.OPTION_VALUE: "the value read back",
    Experiment.NONE: "",
}

_FIGURES: Mapping[str, str] = {"ad": "AD", "fd": "FD", "relative_error": "off by"}
_COUNTED: Mapping[str, str] = {"fail": "wrong", "inconclusive": "not judged", "flat": "flat", "pass": "right"}
_STATUS: Mapping[str, str] = {
    "pass": "agrees with finite differences",
    "fail": "is wrong",
    "flat": "is zero, and zero is right (the loss is flat there)",
    "inconclusive": "could not be judged",
}


def number(value: object) -> str:
    """A figure: four digits for a float, yes or no for a truth value, anything else as it is."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(number(item) for item in value)
    return str(value)


def figures(values: Mapping[str, object]) -> str:
    """``AD 1.13, FD 1.95, off by 42 %``: those that a person reads first; the JSON report has them all."""
    return ", ".join(_figure(key, values[key]) for key in _FIGURES if values.get(key) is not None)


def _figure(key: str, value: object) -> str:
    if key == "relative_error" and isinstance(value, float) and math.isfinite(value):
        return f"off by {percent(value)}"
    return f"{_FIGURES[key]} {number(value)}"


def percent(share: float) -> str:
    """``42 %``; small shares with the digits that tell them from nothing."""
    return f"{100 * share:.0f} %" if share >= 0.1 or share == 0 else f"{100 * share:.2g} %"


def verdict(value: Verdict) -> str:
    """One line: the status, by which measurement, its figures, its reason."""
    measured = EXPERIMENTS[value.experiment] if value.status in (Status.CONFIRMED, Status.REFUTED) else ""
    head = value.status.value.replace("-", " ") + (f" by {measured}" if measured else "")
    told = figures(value.figures)
    return f"{head}: {'; '.join(part for part in (told, value.reason) if part)}".rstrip(": ")


def gradient(check: GradientCheck) -> str:
    """One line for a leaf."""
    values = figures({"ad": check.ad, "fd": check.fd, "relative_error": check.relative_error})
    told = "; ".join(part for part in (values, check.reason) if part)
    backward = f"cell {check.backward_cell}, " if check.backward_cell else ""
    which = f", iteration {check.backward}, backward in {backward}line {check.backward_line}" if check.repeated else ""
    place = f"{check.span.file}:{check.line}{which}"
    line = f"gradient of `{check.leaf}` ({place}) {_STATUS.get(check.status, check.status)}"
    return f"{line}: {told}" if told else line


def signature(check: GradientCheck) -> str:
    """The class of what is wrong with the leaf's gradient, where one is named; empty where nothing is to be said."""
    shown = check.signature
    if shown is None or (check.status == "pass" and not shown.right):
        return ""
    return f"  signature {shown.name}: {shown.text}"


MOST_REASONS = 3
"""Reasons of one module's builds that are told; the JSON has them all."""


def build(count: BuildCount) -> Iterator[str]:
    """A line for a module, and one for each reason why it was built more than once."""
    yield f"module {count.module}: built {times(count.cold)} in a fresh cache, {times(count.warm)} in the second run"
    yield from (f"  since {reason}" for reason in count.why[:MOST_REASONS])
    if len(count.why) > MOST_REASONS:
        yield f"  and for {counted(len(count.why) - MOST_REASONS, 'other reason')}"


def program(run: ProgramRun) -> Iterator[str]:
    """What was run and what became of it."""
    where = ", ".join(part for part in (f"Warp {run.warp}" if run.warp else "", run.device) if part)
    seen = f"{counted(run.launches, 'launch')}, {counted(run.backward_calls, 'backward call')}"
    yield f"ran `{run.command}` for {run.seconds:.1f} s: {seen}" + (f" ({where})" if where else "")
    if run.stopped:
        yield f"  stopped {run.stopped}; {run.more or '--iterations'} N looks at more"
    if run.problem:
        yield f"  not judged to the end: {run.problem}"
    yield from (f"  {note}" for note in run.notes)


WRONG = "wrong gradient"
"""What a wrong gradient is called where it is reported without a finding."""

NOTHING_RUN = "nothing was run: no program among these files (--run names one)"


def summary(report: Report) -> str:
    """The last line: how much was found in how much, what runs said of it, and what is not shown."""
    ran = report.verification
    if ran is not None and not report.files:
        return f"{_gradients(ran.gradients)}."
    by_severity = Counter(finding.severity for finding in report.findings)
    kinds = ", ".join(_of_severity(by_severity[s], s) for s in reversed(Severity) if by_severity[s])
    found = counted(len(report.findings), "finding") + (f" ({kinds})" if kinds else "")
    head = f"Found {found}" if report.findings else "No findings"
    unseen = [f"{report.hidden} below severity {report.severity.value} not shown"] if report.hidden else []
    unseen += [f"{report.fixed} fixed"] if report.fixed else []
    unseen += [f"{report.suppressed} suppressed"] if report.suppressed else []
    unseen += [f"{report.known} known to the baseline"] if report.known else []
    unseen += [f"{report.gone} of the baseline no longer found"] if report.gone else []
    told = [_gradients(ran.gradients)] if ran is not None and ran.gradients else []
    return "; ".join([f"{head} in {counted(report.files, 'file')}", *_verdicts(report), *told, *unseen]) + "."


FIXABLE = "[*]"
"""Marks a finding that ``--fix`` would change."""


def mark(finding: Finding, report: Report) -> str:
    """``[*] `` before the message of a finding that can be fixed with the options given."""
    return f"{FIXABLE} " if finding.is_fixable(report.applicable) else ""


def fixes(report: Report) -> Iterator[str]:
    """The line that says how many findings can be fixed, and how."""
    now = sum(finding.is_fixable(report.applicable) for finding in report.findings)
    unsafe = {Applicability.UNSAFE} - report.applicable
    more = sum(finding.is_fixable(unsafe) for finding in report.findings)
    told = [f"{FIXABLE} {now} fixable with --fix"] if now else []
    told += [f"{more} {'more ' if now else ''}fixable with --fix --unsafe-fixes"] if more else []
    if told:
        yield f"{', '.join(told)}."


def _of_severity(count: int, severity: Severity) -> str:
    """``1 error``, ``6 warnings``, ``2 info``: information has no plural."""
    return f"{count:,} info" if severity is Severity.INFO else counted(count, severity.value)


def _verdicts(report: Report) -> list[str]:
    """``1 confirmed, 2 refuted``, where something was run."""
    counts = Counter(finding.verdict.status for finding in report.findings if finding.verdict is not None)
    return [", ".join(f"{counts[s]} {s.value.replace('-', ' ')}" for s in Status if counts[s])] if counts else []


def _gradients(checks: Sequence[GradientCheck]) -> str:
    counts = Counter(check.status for check in checks)
    kinds = ", ".join(f"{counts[status]} {_COUNTED[status]}" for status in _COUNTED if counts[status])
    return f"{counted(len(checks), 'gradient')} checked" + (f": {kinds}" if kinds else "")


def counted(count: int, thing: str) -> str:
    """``1 file``, ``2 files``, ``2 launches``, ``2 processes``."""
    if count == 1:
        return f"1 {thing}"
    return f"{count:,} {thing}{'es' if thing.endswith(('ch', 's')) else 's'}"


def ordinal(number: int) -> str:
    """``1st``, ``2nd``, ``3rd``, ``4th``, ``11th``."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def times(count: int) -> str:
    """``never``, ``once``, ``twice``, ``3 times``."""
    return ("never", "once", "twice")[count] if count < 3 else f"{count} times"

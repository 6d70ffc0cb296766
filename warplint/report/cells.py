"""A report on notebooks, with its places told by cell and line there.

Rules and runs know the module that a notebook's code cells make; whoever reads the report has the cells before them.
"""

from __future__ import annotations

import re
from dataclasses import replace

from warplint.finding import Finding, Label, Span, Verdict
from warplint.notebook import SUFFIX, CellsOf
from warplint.report.model import BuildCount, GradientCheck, ProgramRun, Report, SignatureShown, Verification

_IN_FILE = re.compile(rf"([^\s`'\"(]+{re.escape(SUFFIX)}):(\d+)")
_IN_LINE = re.compile(r"\bline (\d+)")


def in_cells(report: Report, cells_of: CellsOf) -> Report:
    """The report with every place in a notebook as its reader sees it."""
    placing = _Placing(cells_of)
    ran = report.verification
    return replace(
        report,
        findings=tuple(map(placing.finding, report.findings)),
        verification=ran if ran is None else placing.verification(ran),
    )


class _Placing:
    """Puts places of notebooks' modules into their cells; those of other files stay as they are."""

    def __init__(self, cells_of: CellsOf) -> None:
        self._cells_of = cells_of

    def finding(self, finding: Finding) -> Finding:
        """One finding; in a notebook without a fix, since cells are not edited."""
        path, own = finding.span.path, self._span(finding.span)
        return replace(
            finding,
            span=own,
            message=self._text(finding.message, path),
            labels=tuple(
                Label(self._span(each.span), each.role, self._text(each.text, path)) for each in finding.labels
            ),
            noqa_line=finding.noqa_line + own.line - finding.span.line if finding.noqa_line else 0,
            fix=None if own.cell else finding.fix,
            verdict=None if finding.verdict is None else self._verdict(finding.verdict, path),
        )

    def verification(self, ran: Verification) -> Verification:
        """What the programs told."""
        return replace(
            ran,
            findings=tuple(map(self.finding, ran.findings)),
            gradients=tuple(map(self._gradient, ran.gradients)),
            builds=tuple(map(self._build, ran.builds)),
            programs=tuple(map(self._program, ran.programs)),
            notes=tuple(map(self._text, ran.notes)),
        )

    def _verdict(self, verdict: Verdict, path: str) -> Verdict:
        return replace(verdict, reason=self._text(verdict.reason, path))

    def _gradient(self, check: GradientCheck) -> GradientCheck:
        made, called = self._span(check.span), self._span(Span(check.backward_path, check.backward_line))
        return replace(
            check,
            line=made.line,
            cell=made.cell,
            backward_line=called.line,
            backward_cell=called.cell,
            reason=self._text(check.reason, check.path),
            signature=None if check.signature is None else self._signature(check.signature),
        )

    def _signature(self, shown: SignatureShown) -> SignatureShown:
        span = self._span(Span(shown.path, shown.line))
        return replace(shown, line=span.line, cell=span.cell, text=self._text(shown.text, shown.path))

    def _build(self, count: BuildCount) -> BuildCount:
        return replace(count, why=tuple(map(self._text, count.why)))

    def _program(self, program: ProgramRun) -> ProgramRun:
        notes = tuple(map(self._text, program.notes))
        return replace(program, problem=self._text(program.problem), notes=notes)

    def _span(self, span: Span) -> Span:
        cells = self._cells_of(span.path)
        if cells is None or not span.line:
            return span
        cell, line = cells.place(span.line)
        return replace(span, line=line, end_line=line + (span.end_line - span.line) if span.end_line else 0, cell=cell)

    def _text(self, text: str, path: str = "") -> str:
        """Words that name places: ``fit.ipynb:31`` in any notebook, ``line 31`` in the one that they are about."""

        def in_file(match: re.Match[str]) -> str:
            span = self._span(Span(match[1], int(match[2])))
            return f"{span.file}:{span.line}" if span.cell else match[0]

        def in_line(match: re.Match[str]) -> str:
            span = self._span(Span(path, int(match[1])))
            return f"cell {span.cell}, line {span.line}" if span.cell else match[0]

        if path.endswith(SUFFIX):
            text = _IN_LINE.sub(in_line, text)
        return _IN_FILE.sub(in_file, text) if SUFFIX in text else text

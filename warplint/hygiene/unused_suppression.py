"""# unused-suppression (NVW901)

## What it does

Reports a `# noqa: NVW…` or `# warplint: ignore[…]` comment that suppresses nothing, or that names no rule.

## Why is this bad

A comment that outlives its fault hides the next one: whoever overwrites an array on that line gets no warning.

## Example

```python
wp.launch(step, dim=n, inputs=[a], outputs=[b])  # noqa: NVW101
```

where `a` is never written again.

## Use instead

The line without the comment, or without the code in it.

## How it is verified

It is not. With `--verify` a comment that suppresses a finding which only the run showed is in use.

## Limits

A line in a function that no trace reached (it is called from a file that was not checked, say, or the budget ran out)
may well be found at fault by another run, so the comment may be needed there: severity `info`, hidden by default.
Codes of other linters in the same comment are not looked at, and neither is a bare `# noqa`, which may be there for any
of them. Rules that are switched off (`ignore`, `per-file-ignores`) are left aside. flake8 does not report this rule: it
sees one file at a time.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Severity, Span
from warplint.proof import Experiment
from warplint.rule import Context, Group, Rule
from warplint.suppression import Suppression


def detect(context: Context) -> Iterable[Finding]:
    """Nothing: comments leave no trace."""
    del context
    return ()


UNUSED_SUPPRESSION = Rule(
    code="NVW901",
    name="unused-suppression",
    summary="a suppression that suppresses nothing",
    group=Group.LINTER,
    severity=Severity.WARNING,
    experiment=Experiment.NONE,
    since="0.1.0",
    detect=detect,
)


def no_such_rule(path: str, comment: Suppression, codes: Iterable[str]) -> Finding:
    """The finding for those ``codes`` of a comment that no rule answers to: a slip of the pen, most often."""
    span = Span(path, comment.line, comment.column, comment.line, comment.end_column)
    listed = ", ".join(f"`{code}`" for code in codes)
    message = f"this comment suppresses nothing: there is no such rule as {listed} (`warplint rule` lists all)"
    return Finding(UNUSED_SUPPRESSION.code, UNUSED_SUPPRESSION.name, UNUSED_SUPPRESSION.severity, span, message)


def unused(path: str, comment: Suppression, codes: Iterable[str], severity: Severity) -> Finding:
    """The finding for those ``codes`` of a comment that silenced nothing."""
    span = Span(path, comment.line, comment.column, comment.line, comment.end_column)
    listed = ", ".join(f"`{code}`" for code in codes)
    message = f"this comment suppresses nothing: no finding of {listed} stands here"
    return Finding(UNUSED_SUPPRESSION.code, UNUSED_SUPPRESSION.name, severity, span, message)

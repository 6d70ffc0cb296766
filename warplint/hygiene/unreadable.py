"""# unreadable (NVW900)

## What it does

Reports a file that was not checked: it cannot be read, decoded or parsed, or warplint itself failed on it. There is
one finding, at the place of the error; the other files are checked all the same.

## Why is this bad

A run that passes over a file in silence looks like a run that found nothing. So a file that was not checked counts as
a finding (exit status 1), and `--select` does not turn it off; `--ignore NVW900` does.

## Example

```python
def step(a, b:
    return a
```

## Use instead

A file that Python can parse. A file for another version of Python, or a template, can be left out with
`extend-exclude = ["templates"]`. Where the message says that warplint failed, it is a fault of warplint: please report
it with the file.

## How it is verified

It is not: there is nothing to run.

## Limits

flake8 reports syntax errors itself (E999) and calls no plugin for such a file.
"""

from __future__ import annotations

from collections.abc import Iterable

from warplint.finding import Finding, Severity, Span
from warplint.proof import Experiment
from warplint.rule import Context, Group, Rule
from warplint.source import Unreadable


def detect(context: Context) -> Iterable[Finding]:
    """Nothing: what cannot be read leaves no trace."""
    del context
    return ()


UNREADABLE = Rule(
    code="NVW900",
    name="unreadable",
    summary="a file that cannot be read, decoded or parsed",
    group=Group.LINTER,
    severity=Severity.WARNING,
    experiment=Experiment.NONE,
    since="0.1.0",
    detect=detect,
)


def unreadable(path: str, error: Unreadable) -> Finding:
    """The finding for a file that could not be read."""
    span = Span(path, error.line, error.column)
    return Finding(UNREADABLE.code, UNREADABLE.name, UNREADABLE.severity, span, error.message)


def failed(path: str, error: BaseException) -> Finding:
    """The finding for a file on which warplint itself failed."""
    text = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(": ")
    return unreadable(path, Unreadable(f"warplint failed on this file ({text}); please report it"))

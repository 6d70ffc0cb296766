"""Published code that is installed here has the findings that are kept of it, and each about tapes has a reason."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
kept_findings = importlib.import_module("tests.findings")

KEPT = sorted(kept_findings.HERE.glob("*.tsv"))
SITE = Path(importlib.import_module("pytest").__file__).parent.parent


def installed() -> list[kept_findings.Published]:  # type: ignore[name-defined]
    return [each for each in kept_findings.published(SITE) if each.kept_in in KEPT]


@pytest.mark.slow
@pytest.mark.parametrize("distribution", installed(), ids=lambda each: each.kept_in.stem)
def test_findings_are_those_kept(distribution: kept_findings.Published) -> None:  # type: ignore[name-defined]
    assert kept_findings.findings(distribution) == set(kept_findings.kept(distribution.kept_in))


@pytest.mark.parametrize("file", KEPT, ids=lambda each: each.stem)
def test_each_warning_about_a_tape_was_looked_at(file: Path) -> None:
    rows = kept_findings.kept(file)
    assert not [place for place, reason in rows.items() if place[0].startswith("NVW1") and not reason]

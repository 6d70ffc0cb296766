"""Every rule there is: those of the packs that are installed, and those about the linter's own work."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from warplint import hygiene, registry
from warplint.rule import Rule


def catalogue() -> tuple[Rule, ...]:
    """All rules by code."""
    return tuple(sorted((*registry.rules(), *hygiene.RULES), key=lambda rule: rule.code))


def pack_folders() -> tuple[Path, ...]:
    """Where the code of the rule packs lies, found without importing any."""
    specs = [find_spec(point.module.partition(".")[0]) for point in registry.entry_points()]
    origins = [Path(spec.origin) for spec in specs if spec is not None and spec.origin]
    return tuple(origin.parent if origin.name == "__init__.py" else origin for origin in origins)


def find(word: str, rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """The rules that a code, the beginning of a code, or a name means."""
    return tuple(rule for rule in rules if rule.code.startswith(word.upper()) or rule.name == word.lower())


def table(rules: Iterable[Rule]) -> str:
    """The rules as a table in Markdown; the README's is this one."""
    rows = [
        f"| {' | '.join((rule.code, rule.name, rule.summary, rule.severity.value, _proof(rule)))} |" for rule in rules
    ]
    head = ["| code | name | what it finds | severity | proven by |", "| --- | --- | --- | --- | --- |"]
    return "\n".join([*head, *rows])


def _proof(rule: Rule) -> str:
    from warplint.report.words import EXPERIMENTS  # reports are no part of flake8's start-up

    return EXPERIMENTS[rule.experiment] or "nothing to run"

"""Every rule there is: those of the packs that are installed, and those about the linter's own work."""

from __future__ import annotations

from warplint import hygiene, registry
from warplint.rule import Rule


def catalogue() -> tuple[Rule, ...]:
    """All rules by code."""
    return tuple(sorted((*registry.rules(), *hygiene.RULES), key=lambda rule: rule.code))


def find(word: str, rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """The rules that a code, the beginning of a code, or a name means."""
    return tuple(rule for rule in rules if rule.code.startswith(word.upper()) or rule.name == word.lower())

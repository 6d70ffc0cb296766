"""The built-in rule pack: one module a rule. A module that declares ``RULE`` is a rule; the others help."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from warplint.rule import Rule


def _declared() -> tuple[Rule, ...]:
    modules = (import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__))
    found = (getattr(module, "RULE", None) for module in modules)
    return tuple(sorted((rule for rule in found if isinstance(rule, Rule)), key=lambda rule: rule.code))


RULES: tuple[Rule, ...] = _declared()

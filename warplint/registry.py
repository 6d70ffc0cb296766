"""Finds the rule packs: whatever is installed under the entry-point group ``warplint.rules``, this project's own too.

An entry point names an iterable of :class:`~warplint.rule.Rule`, usually a tuple ``RULES``. In a source checkout that
is not installed, the entry points are those that its ``pyproject.toml`` declares, and its source folders can be
imported from.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from warplint.rule import Rule

GROUP = "warplint.rules"

_CODE = re.compile(r"[A-Z]{1,3}[0-9]{3}")


class RegistryError(Exception):
    """A rule pack cannot be used: it fails to import, is no collection of rules, or claims another pack's code."""


@lru_cache(maxsize=1)
def rules() -> tuple[Rule, ...]:
    """The rules of all installed packs, by code.

    Raises:
        RegistryError: with the name of the pack, and of both packs where two claim one code or one name.
    """
    return collect(entry_points())


def rule_of(code: str) -> Rule | None:
    """The rule of a code; None: no installed pack has it."""
    return next((rule for rule in rules() if rule.code == code), None)


@lru_cache(maxsize=1)
def entry_points() -> tuple[metadata.EntryPoint, ...]:
    """The packs' entry points, each once: an installed checkout shows its own twice."""
    found = {(point.name, point.value): point for point in (*metadata.entry_points(group=GROUP), *_declared_here())}
    return tuple(found[key] for key in sorted(found))


def _declared_here() -> Iterator[metadata.EntryPoint]:
    """What the ``pyproject.toml`` beside this package declares, if this is a checkout."""
    root = Path(__file__).resolve().parent.parent
    project = root / "pyproject.toml"
    if not project.is_file():
        return
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    declared = tomllib.loads(project.read_text(encoding="utf-8"))
    if declared.get("project", {}).get("name") != "warplint":
        return
    packs = declared["project"].get("entry-points", {}).get(GROUP, {})
    folders = declared.get("tool", {}).get("setuptools", {}).get("packages", {}).get("find", {}).get("where", ["."])
    for name, value in packs.items():
        if find_spec(value.partition(":")[0].partition(".")[0]) is None:
            sys.path.extend(str(root / folder) for folder in folders if folder != ".")
        yield metadata.EntryPoint(name, value, GROUP)


def collect(points: Iterable[metadata.EntryPoint]) -> tuple[Rule, ...]:
    """Load the packs and put their rules together.

    Raises:
        RegistryError: see :func:`rules`.
    """
    claimed: dict[str, tuple[Rule, str]] = {}
    for point in points:
        for rule in _load(point):
            for word in (rule.code, rule.name):
                other, pack = claimed.setdefault(word, (rule, point.name))
                if other is not rule:
                    raise RegistryError(
                        f"the rule packs '{pack}' and '{point.name}' both claim {word} "
                        f"({other.code} {other.name} and {rule.code} {rule.name})"
                    )
    unique = {rule.code: rule for rule, _ in claimed.values()}
    return tuple(unique[code] for code in sorted(unique))


def _load(point: metadata.EntryPoint) -> tuple[Rule, ...]:
    try:
        pack = tuple(point.load())
    except Exception as error:
        raise RegistryError(f"the rule pack '{point.name}' ({point.value}) cannot be loaded: {error}") from error
    for rule in pack:
        if not isinstance(rule, Rule):
            raise RegistryError(f"the rule pack '{point.name}' ({point.value}) holds {rule!r}, which is no Rule")
        if not _CODE.fullmatch(rule.code):
            raise RegistryError(
                f"the rule pack '{point.name}' has a rule with the code {rule.code!r}: "
                "one to three capitals and three digits are wanted"
            )
    return pack

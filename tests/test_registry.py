"""Rule packs: this project's own, a third party's, and those that cannot be used."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest

from warplint import registry
from warplint.finding import Severity
from warplint.proof import Experiment
from warplint.rule import Group, Rule

OPTIONAL = "Fix"
"""Where a rule's findings carry a fix: what it changes, and when it is safe."""
HEADINGS = ("What it does", "Why is this bad", "Example", "Use instead", "How it is verified", "Limits")


def rule(code: str, name: str) -> Rule:
    return Rule(code, name, "", Group.TAPE, Severity.WARNING, Experiment.NONE, "1.0", lambda context: ())


@pytest.fixture
def pack() -> Iterator[types.ModuleType]:
    """An importable module that stands for somebody's rule pack."""
    module = types.ModuleType("somebodys_rules")
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]


def point(value: str, name: str = "somebody") -> EntryPoint:
    return EntryPoint(name, value, registry.GROUP)


def test_the_built_in_pack_is_found_and_documented() -> None:
    found = {each.code: each for each in registry.rules()}
    assert {"NVW101", "NVW110", "NVW120", "NVW130", "NVW201", "NVW301", "NVW303"} <= found.keys()
    for each in found.values():
        headings = [line[3:] for line in each.documentation.splitlines() if line.startswith("## ")]
        assert each.documentation.startswith(f"# {each.name} ({each.code})"), each.code
        assert tuple(heading for heading in headings if heading != OPTIONAL) == HEADINGS, each.code
        assert each.summary


def test_a_third_partys_pack_stands_beside_ours(pack: types.ModuleType) -> None:
    pack.RULES = (rule("ABC001", "theirs"),)  # type: ignore[attr-defined]
    found = registry.collect([*registry.entry_points(), point("somebodys_rules:RULES")])
    assert "ABC001" in [each.code for each in found]
    assert "NVW101" in [each.code for each in found]


@pytest.mark.parametrize("stolen", [("NVW101", "other-name"), ("ABC001", "ping-pong")])
def test_two_packs_that_claim_one_code_or_name_are_an_error(pack: types.ModuleType, stolen: tuple[str, str]) -> None:
    pack.RULES = (rule(*stolen),)  # type: ignore[attr-defined]
    with pytest.raises(registry.RegistryError, match=r"'somebody'.*'warplint'|'warplint'.*'somebody'"):
        registry.collect([*registry.entry_points(), point("somebodys_rules:RULES")])


def test_the_same_pack_found_twice_is_no_error() -> None:
    (own,) = (each for each in registry.entry_points() if each.name == "warplint")
    assert registry.collect([own, own]) == registry.collect([own])


@pytest.mark.parametrize(
    ("rules", "said"),
    [(3, "cannot be loaded"), (("no rule",), "is no Rule"), ((rule("x1", "odd"),), "one to three capitals")],
)
def test_a_pack_that_is_none_is_named(pack: types.ModuleType, rules: object, said: str) -> None:
    pack.RULES = rules  # type: ignore[attr-defined]
    with pytest.raises(registry.RegistryError, match=f"'somebody'.*{said}"):
        registry.collect([point("somebodys_rules:RULES")])


def test_a_pack_that_is_not_there_is_named() -> None:
    with pytest.raises(registry.RegistryError, match=r"'somebody'.*cannot be loaded"):
        registry.collect([point("no_such_pack_anywhere:RULES")])

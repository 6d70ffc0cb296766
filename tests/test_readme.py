"""The README and the other documents say what the program says: rules, commands, formats, settings, version."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from warplint import __version__, cli, config
from warplint.builds import command_line
from warplint.catalogue import catalogue, table
from warplint.report.renderers import FORMATS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(start: str, end: str) -> str:
    return README[README.index(start) + len(start) : README.index(end)].strip()


def test_the_table_of_rules_is_the_generated_one() -> None:
    told = block("<!-- rules -->", "<!-- end of rules -->")
    assert told == table(catalogue()), "write the output of `warplint rule --format markdown` between the marks"


@pytest.mark.warp
def test_the_example_is_what_the_command_prints() -> None:
    pytest.importorskip("warp")
    (words, told) = re.findall(r"<!-- example: (.*?) -->\n```text\n(.*?)```", README, re.DOTALL)[0]
    assert f"/warplint {words}\n" in README
    done = subprocess.run([sys.executable, "-m", "warplint", *words.split()], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert without_numbers(done.stdout) == without_numbers(told)


def without_numbers(text: str) -> str:
    """Times differ from run to run, and last digits from processor to processor."""
    return re.sub(r"-?\d+(\.\d+)*(e-?\d+)?", "#", text)


def test_every_rule_has_a_page_and_is_in_the_changelog() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for rule in catalogue():
        assert re.match(rf"# {rule.name} \({rule.code}\)\n", rule.documentation), rule.code
        assert f"{rule.name} ({rule.code})" in " ".join(changelog.split()), rule.code


def test_the_continuous_integration_runs_the_test_command() -> None:
    (command,) = re.findall(r"^python3 -m venv .*\.\[dev\].*bin/(python -m pytest .*)$", README, re.MULTILINE)
    assert command in (ROOT / ".ci" / "run").read_text()


def test_the_settings_shown_are_settings_with_their_defaults() -> None:
    (text,) = re.findall(r"```toml\n(\[tool\.warplint\].*?)```", README, re.DOTALL)
    given = tomllib.loads(text)["tool"]["warplint"]
    settings = config.update(config.Settings(ROOT), given, "README.md")
    defaults = config.as_table(config.Settings(ROOT))
    examples = {"exclude", "per-file-ignores", "baseline", "verify"}
    shown = config.as_table(settings)
    assert {key: shown[key] for key in shown if key not in examples} == {
        key: defaults[key] for key in defaults if key not in examples
    }
    assert set(given) == set(defaults)
    assert set(given["verify"]) == set(defaults["verify"])
    assert given["verify"]["time-limit"] == config.VerifySettings().time_limit
    assert set(given["exclude"]) < set(config.DEFAULT_EXCLUDE)


@pytest.mark.parametrize("document", ["README.md", "docs/json.md"])
def test_options_and_formats_that_are_named_exist(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    parsers = [cli.check_parser(), *command_line.parser()._subparsers._group_actions[0].choices.values()]  # type: ignore
    known = {option for parser in parsers for action in parser._actions for option in action.option_strings}
    others = {"--all", "--steps", "--hook-stage", "--to"}  # of `warplint rule`, and of other programs
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) <= known | others
    assert set(re.findall(r"--format (\w+)", text)) <= set(FORMATS) | {"markdown"}


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_changelog_knows_this_version() -> None:
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_licence_is_whole() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text

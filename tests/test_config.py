"""[tool.warplint]: what it means, which one holds, and the clear refusal of what means nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from warplint import config
from warplint.config import ConfigError, Settings
from warplint.finding import Severity

RULES = [
    ("NVW101", "ping-pong"),
    ("NVW110", "missing-requires-grad"),
    ("NVW201", "inplace-mul"),
    ("NVW900", "unreadable"),
]


def project(folder: Path, table: str) -> Settings:
    (folder / "pyproject.toml").write_text(table, encoding="utf-8")
    return config.load(folder)


def test_all_settings_are_read(tmp_path) -> None:
    settings = project(
        tmp_path,
        """
        [tool.warplint]
        select = ["NVW1"]
        extend-select = ["inplace-mul"]
        ignore = ["NVW110"]
        severity = "info"
        exclude = ["third_party"]
        extend-exclude = ["gen_*.py"]
        force-exclude = true
        warp-version = "1.15.2"
        [tool.warplint.per-file-ignores]
        "tests/*" = ["NVW2"]
        [tool.warplint.verify]
        run = ["python -m pkg.train --steps 3"]
        python = ".venv/bin/python"
        device = "cpu"
        time-limit = 30
        """,
    )
    assert settings.severity is Severity.INFO
    assert settings.exclude == ("third_party",)
    assert settings.extend_exclude == ("gen_*.py",)
    assert settings.force_exclude
    assert settings.warp_version == (1, 15)
    assert settings.verify.run == ("python -m pkg.train --steps 3",)
    assert settings.verify.python == str(tmp_path / ".venv/bin/python")
    assert (settings.verify.device, settings.verify.time_limit) == ("cpu", 30.0)
    assert settings.selected("NVW101", "ping-pong", "a.py")
    assert settings.selected("NVW201", "inplace-mul", "a.py")
    assert not settings.selected("NVW110", "missing-requires-grad", "a.py")
    assert not settings.selected("NVW201", "inplace-mul", str(tmp_path / "tests" / "a.py"))
    assert not settings.selected("NVW301", "late-config", "a.py")


def test_nearest_table_holds_and_files_without_one_are_passed_over(tmp_path) -> None:
    project(tmp_path, '[tool.warplint]\nseverity = "error"\n')
    inner = tmp_path / "inner"
    inner.mkdir()
    assert project(inner, "[project]\nname = 'x'\n").severity is Severity.ERROR
    assert project(inner, "[tool.warplint]\n").severity is Severity.WARNING
    assert config.load(inner).root == inner


def test_defaults_without_any_file(tmp_path) -> None:
    settings = config.load(tmp_path)
    assert settings.selected("NVW101", "ping-pong", "a.py")
    assert settings.file is None


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("selct = ['NVW1']", r"unknown setting `selct`; did you mean `select`\?"),
        ("select = 'NVW1'", "`select`: expected a list of strings"),
        ("select = [1]", "`select`: expected a list of strings"),
        ("severity = 'loud'", "`severity`: expected one of info, warning, error"),
        ("force-exclude = 'yes'", "`force-exclude`: expected true or false"),
        ("warp-version = 1.19", "`warp-version`: expected a version"),
        ("warp-version = 'new'", "`warp-version`: expected a version"),
        ("per-file-ignores = ['a']", "`per-file-ignores`: expected a table"),
        ("verify = true", "`verify` must be a table"),
        ("[tool.warplint.verify]\ntimelimit = 3", r"unknown setting `verify.timelimit`; did you mean `time-limit`\?"),
        ("[tool.warplint.verify]\ntime-limit = 0", "`verify.time-limit`: expected a number of seconds above 0"),
        ("[tool.warplint.verify]\nrun = 'x'", "`verify.run`: expected a list"),
    ],
)
def test_what_means_nothing_is_refused_with_its_place(tmp_path, table, told) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        project(tmp_path, f"[tool.warplint]\n{table}\n")
    assert str(tmp_path / "pyproject.toml") in str(caught.value)


def test_broken_toml_is_refused_with_its_place(tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"not a valid TOML file.*line 2"):
        project(tmp_path, "[tool.warplint]\nselect = [\n\n'a' 'b'\n".replace("[\n\n", "[ = "))


def test_a_code_that_no_rule_has_is_refused(tmp_path) -> None:
    for settings in (Settings(tmp_path, select=("NVW9999",)), Settings(tmp_path, ignore=("ping-pon",))):
        with pytest.raises(ConfigError, match="no rule has the code or name"):
            config.check_codes(settings, RULES, "here")
    with pytest.raises(ConfigError, match=r"did you mean `ping-pong`\?"):
        config.check_codes(Settings(tmp_path, ignore=("ping-pon",)), RULES, "here")
    config.check_codes(Settings(tmp_path, select=("NVW", "nvw101", "inplace-mul")), RULES, "here")


def test_the_most_specific_word_wins(tmp_path) -> None:
    narrow = Settings(tmp_path, select=("NVW101",), ignore=("NVW1",))
    assert narrow.selected("NVW101", "ping-pong", "a.py")
    assert not narrow.selected("NVW110", "missing-requires-grad", "a.py")
    equal = Settings(tmp_path, select=("ping-pong",), ignore=("NVW101",))
    assert not equal.selected("NVW101", "ping-pong", "a.py")


def test_an_unreadable_file_is_reported_whatever_is_selected(tmp_path) -> None:
    assert Settings(tmp_path, select=("NVW101",)).selected("NVW900", "unreadable", "a.py")
    assert Settings(tmp_path, ignore=("NVW",)).selected("NVW900", "unreadable", "a.py")
    assert not Settings(tmp_path, ignore=("NVW900",)).selected("NVW900", "unreadable", "a.py")
    assert not Settings(tmp_path, ignore=("unreadable",)).selected("NVW900", "unreadable", "a.py")


@pytest.mark.parametrize(
    ("pattern", "path", "matched"),
    [
        ("*.py", "a/b.py", True),
        ("tests/*", "tests/a.py", True),
        ("tests/*", "tests/deep/a.py", False),
        ("tests/**", "tests/deep/a.py", True),
        ("**/gen/*.py", "a/b/gen/c.py", True),
        ("**/gen/*.py", "gen/c.py", True),
        ("./docs/", "docs", True),
        ("docs", "src/docs", True),
        ("src/docs", "src/docs", True),
        ("src/docs", "other/src/docs", False),
    ],
)
def test_patterns(tmp_path, pattern, path, matched) -> None:
    assert config.matches(pattern, str(tmp_path / path), tmp_path) is matched


def test_a_negated_pattern_ignores_everywhere_else(tmp_path) -> None:
    settings = Settings(tmp_path, per_file_ignores=(("!src/*", ("NVW101",)),))
    assert settings.selected("NVW101", "ping-pong", str(tmp_path / "src" / "a.py"))
    assert not settings.selected("NVW101", "ping-pong", str(tmp_path / "tests" / "a.py"))


def test_shown_settings_are_read_back_as_they_are(tmp_path) -> None:
    settings = config.update(
        Settings(tmp_path), {"select": ["NVW2"], "verify": {"run": ["pytest"], "python": "py"}}, "test"
    )
    shown = config.as_table(settings)
    shown["verify"] = {key: value for key, value in shown["verify"].items() if value is not None}
    shown = {key: value for key, value in shown.items() if value is not None}
    assert config.update(Settings(tmp_path), shown, "test") == settings

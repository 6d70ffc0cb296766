"""What is installed: a wheel with both packages and their data, built from a copy so that the tree stays clean."""

from __future__ import annotations

import subprocess
import sys
import zipfile

import pytest
from installed import copy_of_the_project


@pytest.mark.slow
def test_the_wheel_holds_the_linter_the_rules_and_their_data(tmp_path) -> None:
    project = copy_of_the_project(tmp_path / "project")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(project)]
    subprocess.run(pip, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("warplint-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = (name for name in names if name.endswith("METADATA"))
        (points,) = (name for name in names if name.endswith("entry_points.txt"))
        described, entry_points = archive.read(metadata).decode(), archive.read(points).decode()
    for package in (project / "warplint", project / "rules" / "warplint_rules"):
        for file in package.rglob("*"):
            if file.suffix in (".py", ".json", ".typed"):
                assert file.relative_to(package.parent).as_posix() in names
    assert not any(name.startswith(("tests/", "fixtures/", "docs/")) for name in names)
    assert any(name.endswith("licenses/LICENSE") or name.endswith("/LICENSE") for name in names)
    assert "NVW = warplint.flake8_plugin:Plugin" in entry_points
    assert "warplint = warplint.cli:run" in entry_points
    assert "warplint = warplint_rules:RULES" in entry_points
    required = [line for line in described.splitlines() if line.startswith("Requires-Dist:") and "extra ==" not in line]
    assert not any("warp-lang" in line or "numpy" in line or "<" in line.split(";")[0] for line in required)

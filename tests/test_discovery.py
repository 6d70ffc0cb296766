"""Which files are found: names, folders, .gitignore, excludes, notebooks."""

from __future__ import annotations

from pathlib import Path

import pytest

from warplint.config import Settings
from warplint.discovery import DiscoveryError, discover


@pytest.fixture
def tree(tmp_path, monkeypatch) -> Path:
    for name in ("a.py", "b.txt", "pkg/c.py", "pkg/gen/d.py", "build/e.py", ".venv/f.py", "out/g.py", "keep/h.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(paths: list[str], **settings: object) -> list[str]:
    return list(discover(paths, Settings(Path.cwd(), **settings)).files)


def test_a_folder_without_what_is_excluded_by_default(tree) -> None:
    assert files(["."]) == ["a.py", "keep/h.py", "out/g.py", "pkg/c.py", "pkg/gen/d.py"]


def test_gitignore_files_at_every_level(tree) -> None:
    (tree / ".gitignore").write_text("out/\n/keep/*\n!/keep/h.py\n")
    (tree / "pkg" / ".gitignore").write_text("gen\n")
    assert files(["."]) == ["a.py", "keep/h.py", "pkg/c.py"]
    assert files(["pkg"]) == ["pkg/c.py"]


def test_a_deeper_gitignore_overrules(tree) -> None:
    (tree / ".gitignore").write_text("c.py\n")
    (tree / "pkg" / ".gitignore").write_text("!c.py\n")
    assert "pkg/c.py" in files(["."])


def test_what_is_named_is_checked_unless_excludes_are_forced(tree) -> None:
    (tree / ".gitignore").write_text("out/\n")
    assert files(["build/e.py", "out/g.py", "b.txt"]) == ["b.txt", "build/e.py", "out/g.py"]
    assert files(["build/e.py", "a.py"], force_exclude=True) == ["a.py"]
    assert files(["pkg/gen/d.py"], force_exclude=True, extend_exclude=("pkg/gen",)) == []


def test_excludes(tree) -> None:
    assert files(["."], extend_exclude=("gen", "a.py")) == ["keep/h.py", "out/g.py", "pkg/c.py"]
    assert files(["."], extend_exclude=("pkg/gen/*.py",)) == ["a.py", "keep/h.py", "out/g.py", "pkg/c.py"]
    assert "build/e.py" in files(["."], exclude=("pkg",))


def test_each_file_once_and_spelled_as_given(tree) -> None:
    assert files(["pkg", "./pkg/c.py", str(tree / "pkg" / "c.py")]) == ["pkg/c.py", "pkg/gen/d.py"]
    assert files([str(tree / "a.py")]) == [str(tree / "a.py")]


def test_a_missing_path_is_refused_and_notebooks_are_found_where_they_are_wanted(tree) -> None:
    (tree / "n.ipynb").write_text("{}")
    with pytest.raises(DiscoveryError, match=r"nowhere\.py: no such file"):
        files(["nowhere.py"])
    assert files(["n.ipynb"]) == ["n.ipynb"]
    assert "n.ipynb" in files(["."], notebooks=True)
    found = discover(["."], Settings(tree))
    assert found.notebooks == ("n.ipynb",)
    assert "n.ipynb" not in found.files

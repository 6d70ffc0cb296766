"""The project as other programs meet it: installed (or looking so, from a checkout), and as a copy to build from."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from warplint import __version__

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent


def environment(folder: Path) -> dict[str, str]:
    """Variables under which a new Python process finds warplint, its plugin and its rules."""
    variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        metadata.distribution("warplint")
    except metadata.PackageNotFoundError:
        paths = [_metadata(folder), ROOT, ROOT / "rules"]
        variables["PYTHONPATH"] = os.pathsep.join(map(str, paths))
    return variables


def _metadata(folder: Path) -> Path:
    """A folder with the metadata that an installation would write."""
    info = folder / f"warplint-{__version__}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: warplint\nVersion: {__version__}\n")
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    groups = [f"[{group}]\n" + "\n".join(f"{n} = {v}" for n, v in points.items()) for group, points in declared.items()]
    (info / "entry_points.txt").write_text("\n\n".join(groups) + "\n")
    return folder


def copy_of_the_project(folder: Path) -> Path:
    """Copy what git would commit into ``folder``, so that a build leaves nothing in the tree."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in listed.stdout.decode().split("\0"):
        source = ROOT / name
        if name and source.is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    return folder

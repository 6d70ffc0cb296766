"""What warplint finds in published code, kept: no change of the program moves a verdict there unseen.

``python -m tests.findings --write FOLDER...`` writes the findings of each folder's distribution to
``<name>-<version>.tsv`` beside this file: rule, path within the distribution, line, and the reason of who looked at it
(kept for the findings that are still there). The rows of a distribution are compared where it is installed in that
version.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
COLUMNS = ("rule", "path", "line", "reason")

Place = tuple[str, str, int]
"""Rule, path within the distribution, line."""


@dataclass(frozen=True)
class Published:
    """A distribution that is installed somewhere: its name, version, the folder it lies in and its own packages."""

    name: str
    version: str
    folder: Path
    packages: tuple[str, ...]

    @property
    def kept_in(self) -> Path:
        """The file of its findings."""
        return HERE / f"{self.name}-{self.version}.tsv"


def published(folder: Path) -> list[Published]:
    """The distributions whose packages lie in a folder, or are the folder itself (``…/site-packages/warp``)."""
    found = []
    for place, only in ((folder, None), (folder.parent, folder.name)):
        for distribution in metadata.distributions(path=[str(place)]):
            packages = {
                file.parts[0] for file in distribution.files or () if file.suffix == ".py" and len(file.parts) > 1
            }
            if packages and (only is None or only in packages):
                name = distribution.metadata["Name"].lower().replace("-", "_")
                found.append(Published(name, distribution.version, place, tuple(sorted(packages))))
        if found:
            break
    return found


def findings(of: Published) -> set[Place]:
    """The warnings of every rule in a distribution, by a run of the command line."""
    with tempfile.TemporaryDirectory() as folder:  # no settings of anybody's
        paths = [str(of.folder / package) for package in of.packages]
        done = subprocess.run(
            [sys.executable, "-m", "warplint", "check", "--format", "json", "--exclude", "__pycache__", *paths],
            cwd=folder,
            capture_output=True,
            text=True,
            env=dict(os.environ, PYTHONPATH=os.pathsep.join([str(ROOT), str(ROOT / "rules")])),
        )
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr[-2000:])
    return {(each["code"], _within(each["path"], of), each["line"]) for each in json.loads(done.stdout)["findings"]}


def _within(path: str, of: Published) -> str:
    return Path(path).resolve().relative_to(of.folder.resolve()).as_posix()


def kept(file: Path) -> dict[Place, str]:
    """The rows of a file, and the reason of each."""
    with file.open(encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text, delimiter="\t"))
    return {(row["rule"], row["path"], int(row["line"])): row["reason"] for row in rows}


def write(file: Path, found: Iterable[Place]) -> None:
    """Keep findings, with the reasons that are known of them."""
    reasons = kept(file) if file.exists() else {}
    with file.open("w", encoding="utf-8", newline="") as text:
        writer = csv.writer(text, delimiter="\t", lineterminator="\n")
        writer.writerow(COLUMNS)
        for place in sorted(found, key=lambda each: (each[1], each[2], each[0])):
            writer.writerow((*place, reasons.get(place, "")))

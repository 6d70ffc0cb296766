"""Measurements kept in a file, by the text of their cases: the analysis can be judged anew without measuring anew."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from tests.differential.cases import Case
from tests.differential.measuring import Measured, measured


def kept(cases: Sequence[Case], folder: Path, cache: str | None, file: Path | None) -> list[Measured]:
    """The measurements of all cases: those that ``file`` (JSON lines) holds, and the others, which are added to it.

    Whoever changes how cases are measured takes another file.
    """
    known = _read(file) if file is not None else {}
    new = [case for case in cases if key(case) not in known]
    found = {key(case): what for case, what in zip(new, measured(new, folder, cache), strict=True)}
    if file is not None:
        with file.open("a", encoding="utf-8") as out:
            out.writelines(f"{json.dumps({'key': each, **dataclasses.asdict(found[each])})}\n" for each in found)
    return [{**known, **found}[key(case)] for case in cases]


def key(case: Case) -> str:
    """What names a case in a file."""
    return hashlib.sha256(json.dumps(dataclasses.asdict(case)).encode()).hexdigest()


def _read(file: Path) -> dict[str, Measured]:
    if not file.exists():
        return {}
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return {each["key"]: Measured(each["outcome"], each["what"]) for each in lines}

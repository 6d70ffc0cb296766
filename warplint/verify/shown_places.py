"""Words of a child that name places, with the files as findings show them: relative to the working directory."""

from __future__ import annotations

import re
from dataclasses import replace

from warplint.runner.result import RunResult
from warplint.verify.places import Places
from warplint.verify.records import Gradient, KernelCheck, Note, Program

_PLACE = re.compile(r"((?:/|[A-Za-z]:[\\/])[^\s:()`]+):(\d+)")
"""An absolute path and a line, as a child writes them: it knows nothing of where its answer is read."""


def with_shown_places(result: RunResult, places: Places) -> RunResult:
    """The answer of a child, its reasons and signatures with the files as they are shown."""
    program = result.program
    return replace(
        result,
        records=tuple(_shown(record, places) for record in result.records),
        program=None if program is None else replace(program, reason=_words(program.reason, places)),
    )


def _shown(record: object, places: Places) -> object:
    if isinstance(record, Gradient) and record.signature is not None:
        signature = replace(record.signature, text=_words(record.signature.text, places))
        record = replace(record, signature=signature)
    if isinstance(record, (Gradient, KernelCheck, Program)):
        return replace(record, reason=_words(record.reason, places))
    return replace(record, text=_words(record.text, places)) if isinstance(record, Note) else record


def _words(text: str, places: Places) -> str:
    return _PLACE.sub(lambda place: f"{places.shown(place[1])}:{place[2]}", text)

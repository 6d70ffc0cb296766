"""What became of the processes that a program started: those that were judged, and those that could not be."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

from warplint.runner.result import RunResult
from warplint.verify.records import ChildSeen, Place

_STARTED = {"fork": "forked", "spawn": "started"}


def judged_children(result: RunResult) -> Iterator[RunResult]:
    """The answers of processes that computed gradients and were judged; each by a name of its own."""
    for child in result.children:
        seen = next(iter(child.of(ChildSeen)), None)
        if seen is not None and child.program is not None:
            yield replace(child, command=f"{result.command}: process {seen.process}{_where(seen.how, seen.at)}")


def unjudged_children(result: RunResult) -> list[str]:
    """A line on the processes that computed gradients and were ended before these were judged; empty for none."""
    ended = [child for child in result.children if child.of(ChildSeen) and child.program is None]
    if not ended:
        return []
    which = f"{len(ended)} process{'' if len(ended) == 1 else 'es'} that it started"
    return [f"{which} computed gradients that were not judged: ended before"]


def _where(how: str, at: tuple[Place, ...]) -> str:
    if not at:
        return ""
    path, line, _ = at[-1]
    return f" ({_STARTED.get(how, how)} at {os.path.relpath(path)}:{line})"

"""What the command line and the commands share: exit statuses, and the use that is refused."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

OK, FINDINGS, FAILED, INTERRUPTED = 0, 1, 2, 130

RUNNING: Mapping[str, str] = {
    "run": "run",
    "python": "python",
    "device": "device",
    "time-limit": "time_limit",
    "memory-limit": "memory_limit",
    "iterations": "iterations",
    "horizon": "horizon",
    "keep": "keep",
}
"""Settings that are about running programs, and the options that give them."""


class UsageError(Exception):
    """Words that do not go together; the message says which."""


def refuse_idle(options: argparse.Namespace) -> None:
    """Options that would do nothing are a mistake, most often a forgotten ``--verify``.

    Raises:
        UsageError: one that speaks of running programs is given, and none is to be run.
    """
    given = [name for name, key in (*RUNNING.items(), ("fail-on", "fail_on")) if getattr(options, key) is not None]
    if given and not options.verify:
        raise UsageError(f"--{given[0]} does nothing without --verify, which runs the programs")

"""``warplint builds measure`` and ``warplint builds compare``: their words, and what their exit status is.

``measure``: the command's own; 2 where nothing could be measured. ``compare``: 0 an improvement, 1 a regression, 2 two
measurements that cannot be compared, 3 inconclusive.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from warplint.builds import compared, document, text
from warplint.builds.compared import Outcome
from warplint.builds.measure import Measurement, measure
from warplint.builds.observe import invocation
from warplint.runner.command import CommandError
from warplint.runner.process import Limits
from warplint.usage import FAILED, FINDINGS, OK, UsageError

INCONCLUSIVE = 3
TIME_LIMIT = 900.0
"""Seconds for one run, unless another limit is asked for: builds of large programs take minutes."""

_STATUS = {
    Outcome.IMPROVEMENT: OK,
    Outcome.REGRESSION: FINDINGS,
    Outcome.REFUSED: FAILED,
    Outcome.INCONCLUSIVE: INCONCLUSIVE,
}


def main(words: Sequence[str]) -> int:
    """Run ``warplint builds`` with these words; returns the exit status.

    Raises:
        UsageError: the command or a file is not there, or a word is missing.
    """
    cut = words.index("--") if "--" in words else len(words)
    options = parser().parse_args(words[:cut])
    if options.what == "compare":
        return _compare(options)
    if not words[cut + 1 :]:
        raise UsageError("builds measure: the command is missing: warplint builds measure -- python train.py")
    return _measure(options, words[cut + 1 :])


def parser() -> argparse.ArgumentParser:
    """The words of ``warplint builds``."""
    whole = argparse.ArgumentParser(prog="warplint builds", description="What a program builds, and what that costs.")
    kinds = whole.add_subparsers(dest="what", required=True, metavar="measure|compare")
    measuring = kinds.add_parser(
        "measure",
        usage="warplint builds measure [--samples N] [--json FILE] -- COMMAND ...",
        description="Run a command as it is in fresh kernel caches, each time followed by a run on the cache that it "
        "left, and say what was built, why, and what that cost.",
        epilog="The command's output is passed through, the report goes to standard error. Standard input is empty. "
        "exit status: the command's; 2 where nothing could be measured.",
    )
    measuring.add_argument("--samples", type=_samples, default=1, metavar="N", help="cold runs (default: 1)")
    measuring.add_argument("--json", metavar="FILE", help="write the measurement there, for builds compare")
    measuring.add_argument("--time-limit", type=float, default=TIME_LIMIT, metavar="SECONDS", help="for each run")
    measuring.add_argument("--python", metavar="FILE", help="what `python` means (default: the active environment's)")
    comparing = kinds.add_parser(
        "compare",
        description="Compare two measurements: the launches, the times against their noise, the builds.",
        epilog="exit status: 0 improvement, 1 regression, 2 not comparable (another workload), 3 inconclusive.",
    )
    comparing.add_argument("before", metavar="BEFORE.json")
    comparing.add_argument("after", metavar="AFTER.json")
    return whole


def _samples(word: str) -> int:
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError("a number of samples above 0 is needed")
    return int(word)


def _measure(options: argparse.Namespace, words: Sequence[str]) -> int:
    if options.json is not None and not Path(options.json).resolve().parent.is_dir():
        raise UsageError(f"{options.json}: cannot be written: there is no such folder")
    try:
        command = invocation(words, options.python)
        measured = measure(command, options.samples, Limits(options.time_limit), _say)
    except CommandError as error:
        raise UsageError(f"builds measure: {error}") from error
    sys.stdout.flush()
    sys.stderr.write(text.measurement(measured))
    if options.json is not None:
        _write(measured, options.json)
    return measured.status or (FAILED if measured.problem is not None else OK)


def _say(line: str) -> None:
    print(f"warplint: {line}", file=sys.stderr, flush=True)


def _write(measured: Measurement, path: str) -> None:
    try:
        Path(path).write_text(json.dumps(document.as_json(measured), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error


def _compare(options: argparse.Namespace) -> int:
    try:
        before, after = document.read(options.before), document.read(options.after)
    except document.Unusable as error:
        raise UsageError(str(error)) from error
    found = compared.compare(before, after)
    sys.stdout.write(text.comparison(found))
    return _STATUS[found.verdict]

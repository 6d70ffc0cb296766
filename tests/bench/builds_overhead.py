"""What watching costs a command that `warplint builds measure` runs: cold and warm, against the plain command.

    python -m tests.bench.builds_overhead [--rounds N] [-- COMMAND ...]

Each round runs the command four times in turn: plain and watched, cold and warm, in fresh kernel caches, so that what
else the machine does falls on both sides alike. Wall time is what people wait for; the processor time of the command
and its children is steadier on a machine that is shared. Both are told as medians over the rounds, with the targets:
5 % of a cold run, 0.2 s of a warm one. Exit status 1 where the processor time misses a target.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.bench.rows import Row
from warplint.builds.observe import Invocation, invocation, observe
from warplint.runner.process import Limits, accompany
from warplint.runner.protocol import RUN_VARIABLE

COLD_SHARE, WARM_SECONDS = 0.05, 0.2
LIMITS = Limits(1800.0)
DEFAULT = Path(__file__).parent / "builds_program.py"

Times = dict[tuple[str, str], list[float]]
"""Seconds by (plain or watched, cold or warm), one for each round."""


def main() -> int:
    """Measure, print a line for each kind of run, and judge."""
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(description="What watching builds costs.")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(words[:cut])
    wall, processor = measured(words[cut + 1 :] or ["python", str(DEFAULT)], options.rounds)
    _told("wall", wall)
    return 0 if _told("processor", processor) else 1


def build_rows(folders: Sequence[Path], repeat: int) -> Iterator[Row]:
    """The rows of the table: by processor time, since other work on the machine is in the wall time of either side."""
    _, processor = measured(["python", str(DEFAULT)], max(repeat, 3))
    median, more = _medians(processor)
    share = 100 * more["cold"] / median["plain", "cold"]
    of = f"{median['watched', 'cold']:.2f} s against {median['plain', 'cold']:.2f} s"
    yield Row("`builds measure`, added to a cold run", "5 % at most", share, " %", of)
    of = f"{median['watched', 'warm']:.2f} s against {median['plain', 'warm']:.2f} s"
    yield Row("`builds measure`, added to a warm run", "0.2 s at most", more["warm"], " s", of)


def measured(words: Sequence[str], rounds: int) -> tuple[Times, Times]:
    """Wall and processor time of the command, plain and watched in turn."""
    command = invocation(words, sys.executable)
    wall: Times = {}
    processor: Times = {}
    for number in range(rounds):
        for how in ("plain", "watched") if number % 2 else ("watched", "plain"):
            with tempfile.TemporaryDirectory(prefix="builds-overhead-") as cache:
                for state in ("cold", "warm"):
                    before = _spent()
                    seconds = _watched(command, cache) if how == "watched" else _plain(command, cache)
                    wall.setdefault((how, state), []).append(seconds)
                    processor.setdefault((how, state), []).append(_spent() - before)
    return wall, processor


def _watched(command: Invocation, cache: str) -> float:
    return observe(command, cache, LIMITS).ended.seconds


def _plain(command: Invocation, cache: str) -> float:
    environment: Mapping[str, str] = {
        **os.environ,
        **command.environment,
        "WARP_CACHE_PATH": os.path.join(cache, "warp"),
        "CUDA_CACHE_PATH": os.path.join(cache, "cuda"),
        RUN_VARIABLE: uuid.uuid4().hex,
    }
    return accompany(command.words, environment, LIMITS).seconds


def _spent() -> float:
    """Processor seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _medians(times: Times) -> tuple[dict[tuple[str, str], float], dict[str, float]]:
    """The medians over the rounds, and what watching adds to each kind of run."""
    median = {key: statistics.median(values) for key, values in times.items()}
    return median, {state: median["watched", state] - median["plain", state] for state in ("cold", "warm")}


def _told(name: str, times: Times) -> bool:
    """Print the medians; whether they keep to the targets."""
    median, more = _medians(times)
    share = more["cold"] / median["plain", "cold"]
    for state in ("cold", "warm"):
        plain, watched = median["plain", state], median["watched", state]
        ratio = f"{watched / plain:.3f} x, {more[state]:+.3f} s"
        print(f"{name:9} {state}: plain {plain:.2f} s, watched {watched:.2f} s, {ratio}")
    limits = f"at most {COLD_SHARE:.0%} and {WARM_SECONDS} s"
    print(f"{name:9} added: {share:+.1%} to the cold run, {more['warm']:+.3f} s to the warm one; {limits}")
    return share <= COLD_SHARE and more["warm"] <= WARM_SECONDS


if __name__ == "__main__":
    sys.exit(main())

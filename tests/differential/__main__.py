"""The command: ``python -m tests.differential --kernels 2000 --seed 1``."""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from tests.differential.answers import Verdict
from tests.differential.comparing import Compared, codes, compared, matrix
from tests.differential.generate import cases
from tests.differential.measuring import PER_MODULE
from tests.differential.shrinking import shrunk, size

MOST_SHRUNK = 12
"""Disagreements of each sort that are shrunk."""


def main() -> None:
    """Generate, judge, measure, compare; shrink what disagrees."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--kernels", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shrink", type=int, default=MOST_SHRUNK, help="disagreements of each sort to shrink")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="differential_") as name:
        folder = Path(name)
        results = _all(arguments.seed, arguments.kernels, folder)
        print(f"\nseed {arguments.seed}, {len(results)} kernels\n{matrix(results).text()}")
        print("rules that were right:", ", ".join(f"{code} {n}" for code, n in sorted(codes(results).items())))
        for verdict in (Verdict.WRONG, Verdict.RIGHT):
            _report(
                verdict,
                [each for each in results if each.disagrees and each.answer.verdict is verdict],
                arguments.shrink,
                folder,
            )


def _all(seed: int, count: int, folder: Path) -> list[Compared]:
    made, results = cases(seed, count), list[Compared]()
    for first in range(0, count, PER_MODULE):
        results += compared(made[first : first + PER_MODULE], folder / str(first), str(folder / "cache"))
        disagreeing = sum(each.disagrees for each in results)
        print(f"{len(results)} kernels, {disagreeing} disagreements", flush=True)
        for each in results[first:]:
            if each.measured.outcome in ("refused", "crashed"):
                print(f"{each.measured.outcome}: {each.measured.what[-160:]!r}", flush=True)
    return results


def _report(verdict: Verdict, disagreeing: Sequence[Compared], most: int, folder: Path) -> None:
    """The disagreements of one sort by kind, small ones first."""
    few = sorted(disagreeing, key=lambda each: size(each.case))[:most]
    small = shrunk(few, folder / f"shrink_{verdict.value}", str(folder / "cache")) if few else []
    kinds: dict[str, list[Compared]] = defaultdict(list)
    for each in small:
        kinds[_kind(each)].append(each)
    print(
        f"\n{len(disagreeing)} gradients called {verdict.value} that are not; {len(small)} shrunk, {len(kinds)} kinds"
    )
    for kind, members in sorted(kinds.items(), key=lambda item: -len(item[1])):
        one = min(members, key=lambda each: size(each.case))
        print(f"\n--- {len(members)} x {kind}\n{one.case.text('')}")
        print(f"dim {one.case.dim}, aliases {one.case.aliases}; {one.measured.what}")
        print("\n".join(one.answer.messages))


def _kind(result: Compared) -> str:
    """The rules that spoke, and the sorts of statements and operations that are left."""
    words = Counter[str]()
    text = f"{result.case.functions}\n{result.case.body}"
    for word in _WORDS:
        words[word] += text.count(word)
    return " ".join([*result.answer.codes, "|", *(word.strip() for word, count in words.items() if count)])


_WORDS = (
    "for ", "while ", "if ", " break", "continue", "return", " *= ", " /= ", " += ", " -= ", "atomic_add", "atomic_min",
    "atomic_max", "wp.where", "wp.func", "Vec", "Mat", "g[", "w[", "state.",
)  # fmt: skip


if __name__ == "__main__":
    main()

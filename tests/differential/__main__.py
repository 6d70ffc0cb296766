"""The command: ``python -m tests.differential --kernels 2000 --seed 1``."""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.differential.answers import Verdict, answers
from tests.differential.cases import Case
from tests.differential.comparing import Compared, codes, joined, matrix
from tests.differential.generate import cases
from tests.differential.keeping import kept
from tests.differential.measuring import PER_MODULE, Measured
from tests.differential.shrinking import shrunk, size

MOST_SHRUNK = 12
"""Disagreements of each sort that are shrunk."""


def main() -> None:
    """Generate, judge, measure, compare; shrink what disagrees."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--kernels", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shrink", type=int, default=MOST_SHRUNK, help="disagreements of each sort to shrink")
    parser.add_argument("--jobs", type=int, default=1, help="modules that are measured at once")
    parser.add_argument("--keep", type=Path, help="file of measurements, to be read and added to")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="differential_") as name:
        folder = Path(name)
        results = _all(cases(arguments.seed, arguments.kernels), folder, arguments.jobs, arguments.keep)
        print(f"\nseed {arguments.seed}, {len(results)} kernels\n{matrix(results).text()}")
        print("rules that were right:", ", ".join(f"{code} {n}" for code, n in sorted(codes(results).items())))
        for verdict in (Verdict.WRONG, Verdict.RIGHT):
            _report(
                verdict,
                [each for each in results if each.disagrees and each.answer.verdict is verdict],
                arguments.shrink,
                folder,
            )


def _all(made: Sequence[Case], folder: Path, jobs: int, keep: Path | None) -> list[Compared]:
    parts = {first: made[first : first + PER_MODULE] for first in range(0, len(made), PER_MODULE)}
    results = list[Compared]()

    def measurements(first: int) -> list[Measured]:
        return kept(parts[first], folder / str(first), str(folder / "cache"), keep)

    with ThreadPoolExecutor(jobs) as pool:
        for first, found in zip(parts, pool.map(measurements, parts), strict=True):
            results += joined(parts[first], answers(parts[first], folder / f"programs_{first}"), found)
            print(f"{len(results)} kernels, {sum(each.disagrees for each in results)} disagreements", flush=True)
            for each in found:
                if each.outcome in ("refused", "crashed"):
                    print(f"{each.outcome}: {each.what[-160:]!r}", flush=True)
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

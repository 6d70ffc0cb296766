"""Compare two measurements: the work first, then the times against their noise, then the structure of the builds.

A program that launches something else is another program, and its times say nothing of its builds: it is refused. Of
times, only what leaves the noise band counts: the larger of 1 % and twice the median absolute deviation, which needs
three samples. Builds, modules and bytes of source do not depend on the machine, so there every difference counts.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from warplint.builds.document import Recorded
from warplint.builds.figures import Spread
from warplint.dataclass import dataclass

FEWEST_SAMPLES = 3
"""Below this, a median absolute deviation says nothing of the noise."""
SAME_BUILDS = "; the builds are as many and as large as before: was the machine as busy?"
"""What is said where times alone changed: a machine that has other work to do drifts by more than samples show."""
BAND = 0.01
DEVIATIONS = 2.0


class Outcome(str, enum.Enum):
    """What a comparison comes to."""

    IMPROVEMENT = "improvement"
    REGRESSION = "regression"
    INCONCLUSIVE = "inconclusive"
    REFUSED = "refused"


@dataclass(frozen=True)
class Compared:
    """The outcome, why, and the figures that it rests on, a line each."""

    verdict: Outcome
    reason: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Difference:
    """One figure before and after. ``sign``: -1 better, 1 worse, 0 the same or within the noise."""

    name: str
    sign: int
    line: str


def compare(before: Recorded, after: Recorded) -> Compared:
    """What changed from one measurement to the other."""
    refusal = _refusal(before, after)
    if refusal is not None:
        return Compared(Outcome.REFUSED, refusal)
    times = [
        _time("cold wall", before.cold, after.cold),
        _time("warm wall", before.warm, after.warm),
    ]
    structure = list(_structure(before, after))
    lines = tuple(each.line for each in (*times, *structure))
    outcome, reason = _outcome(times, structure)
    return Compared(outcome, reason, lines)


def _outcome(times: Sequence[Difference], structure: Sequence[Difference]) -> tuple[Outcome, str]:
    better = [each.name for each in (*times, *structure) if each.sign < 0]
    worse = [each.name for each in (*times, *structure) if each.sign > 0]
    if better and worse:
        return Outcome.INCONCLUSIVE, f"{_listed(better)} went down, but {_listed(worse)} went up"
    same = "" if any(each.sign for each in structure) else SAME_BUILDS
    if better:
        return Outcome.IMPROVEMENT, f"{_listed(better)} went down, and nothing went up{same}"
    if worse:
        return Outcome.REGRESSION, f"{_listed(worse)} went up, and nothing went down{same}"
    return Outcome.INCONCLUSIVE, "the builds are the same, and no time leaves its noise"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1]


def _time(name: str, before: Sequence[float], after: Sequence[float]) -> Difference:
    old, new = Spread.of(before), Spread.of(after)
    change = new.median - old.median
    share = f"{change / old.median:+.1%}" if old.median else "+0 %"
    line = f"{name}: {old.median:.2f} s -> {new.median:.2f} s ({share})"
    if min(len(before), len(after)) < FEWEST_SAMPLES:
        return Difference(name, 0, f"{line}; {FEWEST_SAMPLES} samples on both sides are needed to tell it from noise")
    band = max(BAND * old.median, DEVIATIONS * max(old.mad, new.mad))
    if abs(change) <= band:
        return Difference(name, 0, f"{line}; within the noise of ± {band:.2f} s")
    return Difference(name, 1 if change > 0 else -1, f"{line}; the noise is ± {band:.2f} s")


def _structure(before: Recorded, after: Recorded) -> Iterator[Difference]:
    for name, old, new in (
        ("builds in a fresh cache", before.builds_cold, after.builds_cold),
        ("builds in the second run", before.builds_warm, after.builds_warm),
        ("bytes of generated source", before.source_bytes, after.source_bytes),
        ("LTO artifacts", before.lto, after.lto),
    ):
        yield Difference(name, (new > old) - (new < old), f"{name}: {old} -> {new}")


# ------------------------------------------------------------------------------------------------------------------
# The work


def _refusal(before: Recorded, after: Recorded) -> str | None:
    """Why the two cannot be compared; None where they did the same work."""
    if before.warp != after.warp:
        return f"Warp {before.warp} ran before, Warp {after.warp} after: the compiler is another one"
    for name, recorded in (("first", before), ("second", after)):
        if not recorded.complete:
            return f"not all launches of the {name} measurement are known: a process was ended before it told them"
        changing = next((each for each in recorded.work[1:] if not _same(recorded.work[0], each)), None)
        if changing is not None:
            what = _parting(recorded.work[0], changing)
            return f"the launches of the {name} measurement differ from run to run ({what}): its times compare nothing"
    if not _same(before.work[0], after.work[0]):
        return f"the work is not the same: {_parting(before.work[0], after.work[0])}"
    return None


Process = Mapping[str, Any]


def _same(one: Sequence[Process], other: Sequence[Process]) -> bool:
    """Whether the processes launched the same; which of several came first does not matter."""
    return sorted(map(_identity, one)) == sorted(map(_identity, other))


def _identity(process: Process) -> str:
    return repr(([_kind(kind) for kind in process["kinds"]], process["digest"]))


def _kind(kind: Mapping[str, Any]) -> str:
    """``integrate[1024] (float32[1]) on cpu, block size 1``."""
    dims, arrays = "x".join(map(str, kind["dim"])), ", ".join(kind["arrays"])
    adjoint = "adjoint of " if kind["adjoint"] else ""
    return f"{adjoint}{kind['kernel']}[{dims}] ({arrays}) on {kind['device']}, block size {kind['block_dim']}"


def _parting(one: Sequence[Process], other: Sequence[Process]) -> str:
    """Where two runs part, in words."""
    if len(one) != len(other):
        return f"{len(one)} processes launched kernels, and {len(other)} now"
    for before, after in zip(sorted(one, key=_identity), sorted(other, key=_identity), strict=True):
        if _identity(before) != _identity(after):
            return _first_difference(before, after)
    return "the order of the launches"


def _first_difference(before: Process, after: Process) -> str:
    pairs = zip(before["first"], after["first"], strict=False)
    for number, (old, new) in enumerate(pairs, 1):
        was, now = _kind(before["kinds"][old]), _kind(after["kinds"][new])
        if was != now:
            return f"launch {number} is {now}, was {was}"
    totals = sum(before["counts"]), sum(after["counts"])
    if totals[0] != totals[1]:
        return f"{totals[1]} launches, were {totals[0]}"
    return f"the order of the launches after the first {len(before['first'])}"

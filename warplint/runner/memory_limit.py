"""How much memory a child may take: what is allowed, how it is held to it, and how it is told that it was too much.

Two bounds. The system refuses a process what lies beyond its own limit (``RLIMIT_DATA``: what it writes to, not what it
maps; measured on Linux, an idle Warp has 145 MB of it in 540 MB of addresses, and builds with LLVM from 160 MB on, so a
limit on addresses would end programs that take next to nothing). And the parent adds up what the whole group of
processes holds, shared pages once. Where the system has neither, nothing is enforced.
"""

from __future__ import annotations

import os
import re

GIGABYTE = 1 << 30
SHARE = 0.75
"""Of the machine's memory, what a program may take where nobody says otherwise."""
JUDGING = 1 << 28
"""Bytes that the judging may take besides copies of all that the program holds."""
MOST = 0.9
"""Of the machine's memory, what program and judging may take together, if the program alone may not take more."""

_SHORTAGE = re.compile(
    r"MemoryError|Unable to allocate|Failed to allocate \d+ bytes|Cannot allocate memory|std::bad_alloc|out of memory",
    re.IGNORECASE,
)
"""What Python, NumPy, Warp, the system, C++ and LLVM say when they are refused memory."""


def default() -> int | None:
    """Three quarters of the machine's memory, or of what its control group allows; None where nobody knows."""
    known = [size for size in (_physical(), _of_group()) if size]
    return int(SHARE * min(known)) if known else None


def _physical() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _of_group() -> int | None:
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as file:
            text = file.read().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def with_judging(limit: int) -> int:
    """What a child may take in all: the judging keeps copies of what the program holds."""
    wanted = 2 * limit + JUDGING
    known = [size for size in (_physical(), _of_group()) if size]
    return max(limit, min(wanted, int(MOST * min(known)))) if known else wanted


def confine(limit: int | None) -> None:
    """Have the system refuse this process, and those that it starts, what lies beyond ``limit`` bytes."""
    _set(limit, with_judging(limit) if limit is not None else None)


def relax(by: int | None = None) -> None:
    """Give this process more: ``by`` bytes for a record of it; None: all that is kept back, for its judging."""
    try:
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        if soft != resource.RLIM_INFINITY:
            more = hard if by is None else soft + by
            resource.setrlimit(resource.RLIMIT_DATA, (more if hard < 0 else min(more, hard), hard))
    except (ImportError, AttributeError, OSError, ValueError):
        pass


def _set(soft: int | None, hard: int | None) -> None:
    if soft is None or hard is None:
        return
    try:
        import resource

        most = resource.getrlimit(resource.RLIMIT_DATA)[1]
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
    except (ImportError, AttributeError, OSError, ValueError):
        pass


def is_shortage(text: str) -> bool:
    """Whether these are the words of somebody who was refused memory."""
    return _SHORTAGE.search(text) is not None


def shown(limit: int) -> str:
    """``8 GB``, ``0.5 GB``."""
    return f"{limit / GIGABYTE:.3g} GB"

"""Which files are worth interpreting: those whose text, or whose imports' text, names what events are made of."""

from __future__ import annotations

import enum
import re

from warplint.project import Module, Project

_BUILDS = re.compile(
    rb"[\"']unique[\"']|\bconfig\.\w+\s*=[^=]|\bset_module_options\(|\bget_module\(|clear_kernel_cache|\bsetattr\("
)
_BUILDS_WORDS = (b"unique", b"config", b"module", b"cache")
_TAPE = re.compile(rb"\bTape\(")
_NAMES_TAPE = re.compile(rb"\bTape\(|\bwith [^\n]*[Tt]ape\b|[Tt]ape\.__enter__|\(\w+\.Tape\)")
_RUNS = re.compile(rb"^(?:[a-zA-Z_][\w.]*\(|[\w, .]+ = [\w.]+\(|with |for |while |if __name__)", re.MULTILINE)


class Interest(enum.Enum):
    """What can be learned from running a file."""

    NOTHING = "nothing"
    BUILDS = "builds"
    """Options, modules, kernels: what a short run shows."""
    TAPES = "tapes"
    """Something may be recorded on a tape."""


def interest(project: Project, module: Module) -> Interest:
    """What can be learned from running the file, told from its text and that of its imports."""
    data = module.source.data
    names_warp = b"warp" in data
    if names_warp and (b"Tape" in data or b"tape" in data) and _NAMES_TAPE.search(data):
        return Interest.TAPES
    if project.reaches(module, _TAPE, depth=2) and _RUNS.search(data) is not None:
        return Interest.TAPES
    builds = names_warp and any(word in data for word in _BUILDS_WORDS) and _BUILDS.search(data)
    return Interest.BUILDS if builds else Interest.NOTHING

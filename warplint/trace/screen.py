"""Which files are worth interpreting: those whose text, or whose imports' text, names what events are made of."""

from __future__ import annotations

import enum
import re

from warplint.project import Module, Project

_OWN = re.compile(
    rb"[Tt]ape\b|[Tt]ape\(|[\"']unique[\"']|\bset_module_options\(|\bget_module\(|clear_kernel_cache"
    rb"|\bconfig\.\w+\s*=[^=]|\bconfig as \w|\bsetattr\([^,\n]*config\b"
)
_TAPE = re.compile(rb"\bTape\(")
_NAMES_TAPE = re.compile(rb"\bTape\(|\bwith [^\n]*[Tt]ape\b|[Tt]ape\.__enter__|\(\w+\.Tape\)")
_RUNS = re.compile(rb"^if __name__|^(?!def |class |import |from |[#@\s\"')}\]])\S.*\(", re.MULTILINE)


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
    if b"warp" in data and _NAMES_TAPE.search(data):
        return Interest.TAPES
    if _RUNS.search(data) is not None and project.reaches(module, _TAPE, depth=2):
        return Interest.TAPES
    return Interest.BUILDS if b"warp" in data and _OWN.search(data) else Interest.NOTHING

"""Which files are worth interpreting: those whose text, or whose imports' text, names what events are made of."""

from __future__ import annotations

import re

from warplint.project import Module, Project

_OWN = re.compile(
    rb"[Tt]ape\b|[Tt]ape\(|[\"']unique[\"']|\bset_module_options\(|\bget_module\(|clear_kernel_cache"
    rb"|\bconfig\.\w+\s*=[^=]|\bconfig as \w|\bsetattr\([^,\n]*config\b"
)
_TAPE = re.compile(rb"\bTape\(")
_RUNS = re.compile(rb"^if __name__|^(?!def |class |import |from |[#@\s\"')}\]])\S.*\(", re.MULTILINE)


def worth_interpreting(project: Project, module: Module) -> bool:
    """Whether anything that a rule may speak of can happen when the file runs."""
    data = module.source.data
    if b"warp" in data and _OWN.search(data):
        return True
    return _RUNS.search(data) is not None and project.reaches(module, _TAPE, depth=2)

"""Which files are worth interpreting: those whose text, or whose imports' text, names what events are made of."""

from __future__ import annotations

import enum
import re

from warplint.project import Module, Probe, Project

_BUILDS = (
    b'"unique"',
    b"'unique'",
    b"set_module_options(",
    b"wp.get_module(",
    b"clear_kernel_cache(",
    b"import config",
    b"warp.config as",
)
_CONFIG_SET = re.compile(rb"\.config\.\w+\s*=[^=]|setattr\([\w.]*\.config\b")
_OWNER = re.compile(rb"[\w.]+$")
_NOT_WARP = (b"self", b"cls", b"args")
_TAPE = Probe((b"Tape(",), re.compile(rb"\bTape\("))
_NAMES_TAPE = Probe((b"Tape", b"tape"), re.compile(rb"\bTape\(|\bwith [^\n]*[Tt]ape\b|[Tt]ape\.__enter__|\.Tape\)"))
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
    if names_warp and _NAMES_TAPE.found_in(data):
        return Interest.TAPES
    if project.reaches(module, _TAPE, depth=2) and _RUNS.search(data) is not None:
        return Interest.TAPES
    builds = names_warp and (any(word in data for word in _BUILDS) or _sets_config(data))
    return Interest.BUILDS if builds else Interest.NOTHING


def _sets_config(data: bytes) -> bool:
    """Whether an option of ``wp.config``, under whatever alias, is assigned; not a ``config`` of the program's own."""
    if b".config" not in data:
        return False
    for match in _CONFIG_SET.finditer(data):
        owner = _OWNER.search(data, max(match.start() - 64, 0), match.start())
        if match.group().startswith(b"setattr") or (owner is not None and owner.group() not in _NOT_WARP):
            return True
    return False

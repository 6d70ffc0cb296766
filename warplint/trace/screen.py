"""Which files are worth interpreting: those whose text, or whose imports' text, names what events are made of."""

from __future__ import annotations

import enum
import os
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
_CONFIG_SET = re.compile(rb"\.config\.\w+\s*(?:=[^=]|,)|setattr\([\w.]*\.config\b|\b(?:wp|warp)\.config\b(?!\.)")
_DECIDES = Probe(
    (b"p.config.", b'"unique"', b"'unique'", b"module=", b"set_module_options("),
    re.compile(
        rb"\b(?:wp|warp)\.config\.\w+\s*=[^=]|[\"']unique[\"']|kernel\([^)\n]*\bmodule\s*=|set_module_options\("
    ),
)
"""What a file holds that decides how its modules are built, besides its kernels."""
_NAMED_MODULE = re.compile(rb"kernel\([^)\n]*\bmodule\s*=")
_OWNER = re.compile(rb"[\w.]+$")
_NOT_WARP = (b"self", b"cls", b"args")
_TAPE = Probe((b"Tape",), re.compile(rb"\bTape\(|import [^\n]*\bTape\b"))
_NAMES_TAPE = Probe(
    (b"Tape", b"tape"),
    re.compile(rb"\bTape\(|import [^\n]*\bTape\b|\bwith [^\n]*[Tt]ape\b|[Tt]ape\.__enter__|\.Tape\)"),
)
_RUNS_KERNELS = Probe((b"launch(", b"launch_tiled("), re.compile(rb"\blaunch(?:_tiled)?\("))
_MAPS = Probe((b"p.map(",), re.compile(rb"\b(?:wp|warp)\.map\("))
"""Kernels that Warp writes by itself, for a function that may capture what changes."""
_CUDA = Probe(
    (b'"cuda', b"'cuda", b"get_cuda_device", b"is_cuda"),
    re.compile(rb"""["']cuda(?::\d+)?["']|\bget_cuda_device|\bis_cuda\b"""),
)
_NEAR = 12
"""Files of a program's own that are looked at, so that a large package costs no more than a small program."""
_KERNEL = Probe((b"kernel",), re.compile(rb"\bkernel\b"))
_RUNS = re.compile(
    rb"^(?:with |for |while |if |try:|match |(?!def |class |async |import |from |@|#|[\"'\])}])[^\n#]*\w\()",
    re.MULTILINE,
)
"""A statement at the top level that may call something: a control statement, or any line with a call."""
_STARTS = re.compile(
    rb"^(?:with |for |while |if __name__|raise |(?!warp|wp)[a-zA-Z_][\w.]*\(|(?:warp|wp)\.launch)", re.MULTILINE
)
"""A statement at the top level that starts something, as a program has and a library has not."""


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
    names_warp = module.source.mentions_warp
    if names_warp and _NAMES_TAPE.found_in(data):
        return Interest.TAPES
    if project.leads_to(module, _TAPE) and _RUNS.search(data) is not None:
        return Interest.TAPES
    if names_warp and _decides_builds(project, module, data):
        return Interest.BUILDS
    starts_others = _STARTS.search(data) is not None and _leads_beside(project, module, _RUNS_KERNELS)
    return Interest.BUILDS if starts_others else Interest.NOTHING


def _decides_builds(project: Project, module: Module, data: bytes) -> bool:
    """Whether options, modules or the order of kernels and launches may be told from a run of the file."""
    if any(word in data for word in _BUILDS) or _NAMED_MODULE.search(data) is not None or _sets_config(data):
        return True
    maps = _MAPS.found_in(data)
    if not (maps or b"launch(" in data) or _STARTS.search(data) is None:
        return False
    if maps:
        return True
    return _KERNEL.found_in(data) or project.leads_to(module, _DECIDES)


def is_beside(module: Module, entry: Module) -> bool:
    """Whether a file is the entry file, lies beside it, or in a folder there: it is the program's own."""
    folder = os.path.join(os.path.dirname(os.path.abspath(entry.path)), "")
    return os.path.abspath(module.path).startswith(folder)


def names_cuda(project: Project, module: Module) -> bool:
    """Whether a file's text names a CUDA device."""
    return project.finds(module, _CUDA)


def _leads_beside(project: Project, module: Module, probe: Probe) -> bool:
    """Whether the pattern occurs in what the program imports of its own: files beside it, or in a folder there."""
    near = [module]
    for current in near:  # grows while it is walked
        found = (target for target in project.imported_by(current) if target not in near)
        near += [target for target in found if is_beside(target, module)][: _NEAR - len(near)]
    return any(each.source.mentions_warp and project.finds(each, probe) for each in near[1:])


def _sets_config(data: bytes) -> bool:
    """Whether an option of ``wp.config``, under whatever alias, is assigned; not a ``config`` of the program's own."""
    if b".config" not in data:
        return False
    for match in _CONFIG_SET.finditer(data):
        owner = _OWNER.search(data, max(match.start() - 64, 0), match.start())
        if not match.group().startswith(b".config") or (owner is not None and owner.group() not in _NOT_WARP):
            return True
    return False

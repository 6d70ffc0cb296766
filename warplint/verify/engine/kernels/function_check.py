"""A custom adjoint alone: a kernel made around the function alone, judged on made inputs like any other.

So a wrong adjoint is told from all else that a kernel around it does, and the argument has the name that the user gave.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import warp

from warplint.dataclass import dataclass
from warplint.verify.engine.kernels.kernel_check import ArgumentCheck, weightiest
from warplint.verify.engine.kernels.lone_kernel import check_each_draw
from warplint.verify.engine.warp_functions import CustomAdjoint
from warplint.verify.records import GradientStatus

wp: Any = warp

TAKEN, GIVEN = "in_", "out_"
"""How the parameters of the kernel begin: those that the function takes, and those for what it gives."""


@dataclass(frozen=True)
class FunctionCheck:
    """The judgement of one argument of a function; ``everywhere``: on every draw of the inputs, not on one of them."""

    check: ArgumentCheck
    everywhere: bool


def check_function(adjoint: CustomAdjoint, seed: int) -> Iterator[FunctionCheck]:
    """Judge the adjoint of a function: one check for each of its floating-point arguments, by its own name.

    An argument to which the adjoint gives nothing at all is passed over: it says so in its own text. Builds a kernel,
    in a cache of its own: to be called in a process that ends afterwards.
    """
    wp.config.kernel_cache_dir = tempfile.mkdtemp()
    found: dict[str, list[ArgumentCheck]] = {}
    for checks in check_each_draw(kernel_around(adjoint), seed):
        for check in checks:
            if check.name.startswith(TAKEN):
                found.setdefault(check.name, []).append(check)
    for name, judged in found.items():
        worst = weightiest(judged)
        if worst.status is GradientStatus.FAIL and worst.ad == 0.0:
            continue
        everywhere = all(check.status is worst.status for check in judged)
        yield FunctionCheck(replace(worst, name=name.removeprefix(TAKEN)), everywhere)


def kernel_around(adjoint: CustomAdjoint) -> Any:
    """A kernel that calls the function once a thread, on elements of arrays, and stores what it returns.

    Arrays that the function takes are handed on whole.
    """
    names = {"wp": wp, "_function": adjoint.function}
    parameters, arguments = [], []
    for name, kind in adjoint.takes.items():
        names[f"_type_{name}"] = kind
        whole = getattr(kind, "ndim", None) is not None and hasattr(kind, "dtype")
        parameters.append(f"{TAKEN}{name}: _type_{name}" if whole else f"{TAKEN}{name}: wp.array(dtype=_type_{name})")
        arguments.append(f"{TAKEN}{name}" if whole else f"{TAKEN}{name}[_thread]")
    results = [f"_result_{number}" for number in range(len(adjoint.gives))]
    for number, kind in enumerate(adjoint.gives):
        names[f"_gives_{number}"] = kind
        parameters.append(f"{GIVEN}{number}: wp.array(dtype=_gives_{number})")
    call = f"_function({', '.join(arguments)})"
    lines = [
        f"def around({', '.join(parameters)}):",
        "    _thread = wp.tid()",
        f"    {', '.join(results)} = {call}" if results else f"    {call}",
        *(f"    {GIVEN}{number}[_thread] = {result}" for number, result in enumerate(results)),
    ]
    return wp.Kernel(func=_defined("\n".join(lines), names), key="around", module=wp.get_module("warplint_around"))


def _defined(text: str, names: dict[str, Any]) -> Any:
    """The function that the text defines, in a file, since Warp reads the source of what it compiles."""
    handle, path = tempfile.mkstemp(suffix=".py", prefix="around_")
    os.close(handle)
    Path(path).write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    vars(module).update(names)
    spec.loader.exec_module(module)
    return module.around

"""Functions with adjoints of the user's own, as Warp knows them: the part of the private room about functions.

Like ``warp_hooks.py`` it touches private names of Warp (1.13 to 1.19 were looked at).
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping
from typing import Any

from warplint.dataclass import dataclass
from warplint.verify.records import Place


@dataclass(frozen=True)
class CustomAdjoint:
    """A function whose adjoint the user has written: ``@wp.func_grad``, or a native snippet with ``adj_snippet``.

    ``takes`` are its parameters' types by name, ``gives`` those of what it returns. ``defined`` is the ``def`` of the
    adjoint (of the function itself where that is a snippet).
    """

    function: Any
    name: str
    takes: Mapping[str, Any]
    gives: tuple[Any, ...]
    defined: Place
    forward: Place


def custom_adjoints(kernel: Any) -> tuple[CustomAdjoint, ...]:
    """The custom adjoints that a kernel comes to, through the functions that it calls; those whose types are known."""
    found: dict[int, CustomAdjoint] = {}
    for function in _called(kernel.adj, set()):
        adjoint = getattr(function, "custom_grad_func", None)
        snippet = getattr(function, "adj_native_snippet", None)
        if adjoint is None and not snippet:
            continue
        gives = _returns(function)
        if gives is not None:
            forward = place_of(function.func)
            defined = place_of(adjoint.func) if adjoint is not None else forward
            takes = dict(function.input_types)
            found[id(function)] = CustomAdjoint(function, forward[2], takes, gives, defined, forward)
    return tuple(found.values())


def hooks_of(kernel: Any) -> Any:
    """The machine code of a kernel on the CPU, built now; whatever stands in the way is raised."""
    import warp

    return kernel.module.load(warp.get_device("cpu")).get_kernel_hooks(kernel)


def _called(adjoint: Any, seen: set[int]) -> Iterator[Any]:
    """The user's functions that this code calls, and those that they call; overloads apart."""
    try:
        _, _, functions = adjoint.get_references()
    except (AttributeError, TypeError, ValueError):
        return
    for function in functions:
        for overload in list(getattr(function, "user_overloads", {}).values()) or [function]:
            if id(overload) not in seen:
                seen.add(id(overload))
                yield overload
                yield from _called(overload.adj, seen)


def _returns(function: Any) -> tuple[Any, ...] | None:
    """What the function returns: as it was built, else as it is annotated; None where neither tells."""
    built = getattr(function.adj, "return_var", None)
    if built is not None:
        return tuple(variable.type for variable in built)
    try:
        told = inspect.get_annotations(function.func, eval_str=True).get("return")
    except Exception:
        return None
    return () if told is None else (told,)


def place_of(function: Any) -> Place:
    """Where the ``def`` stands, below its decorators."""
    code = inspect.unwrap(function).__code__
    path, line = code.co_filename, code.co_firstlineno
    try:
        lines, line = inspect.getsourcelines(code)
        line += next((k for k, text in enumerate(lines) if text.lstrip().startswith("def ")), 0)
    except OSError:
        pass
    return os.path.abspath(path) if os.path.exists(path) else path, line, code.co_name

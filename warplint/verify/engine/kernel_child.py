"""The child that checks kernels alone: imports their modules, finds them, and judges each in a process of its own.

A module is imported under its own name or a made one, never as ``__main__``, so its main guard stays shut. A kernel
may reach beyond any array that is made for it: it runs in a forked process, whose death is an answer and not an end.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import warp

from warplint.proof import Draw
from warplint.runner.protocol import Channel, KernelTarget, Request
from warplint.verify.engine.kernels.apart import in_a_fork
from warplint.verify.engine.kernels.kernel_check import ArgumentCheck
from warplint.verify.engine.kernels.lone_kernel import check_draw, check_modes, check_ordinary
from warplint.verify.records import GradientStatus, KernelCheck, Note, Program

wp: Any = warp

RESERVE = 1.0
"""Seconds kept back for the last records."""
LEAST = 60.0
"""Seconds that every kernel gets, as long as there are so many: a build takes some."""
FROM_ONE_PLACE = 4
"""Kernels that one ``def`` made (a factory called at import) that are checked at most."""


class NotReachable(Exception):
    """The kernel cannot be had by importing its module."""


def main(request: Request, channel: Channel) -> int:
    """Answer with the checks of every kernel that is asked for; returns the process's exit status."""
    began = time.monotonic()
    deadline = began + request.limit - RESERVE
    if request.device not in (None, "cpu"):
        channel.send(Note("device", f"kernels are checked alone on the CPU, not on {request.device}"))
    modules = _Modules()
    for number, target in enumerate(request.kernels):
        left = deadline - time.monotonic()
        share = min(left, max(left / (len(request.kernels) - number), LEAST))
        try:
            kernels = find_kernels(modules.load(target), target)
        except NotReachable as problem:
            channel.send(_unjudged(target, str(problem)))
            continue
        _check(target, kernels, request.seed, share, channel)
    channel.send(
        Program(
            command=f"{len(request.kernels)} kernels alone",
            seconds=time.monotonic() - began,
            backward_calls=0,
            launches=0,
            taped_launches=0,
            warp=str(wp.config.version),
            stopped="end",
        )
    )
    return 0


Checks = Callable[[Any, int], Iterator[ArgumentCheck]]


def _check(target: KernelTarget, kernels: Sequence[Any], seed: int, seconds: float, channel: Channel) -> None:
    """All questions of one kernel, each in a process of its own: the end of one is no answer to the others.

    Other modes are tried for what they show: that a kernel cannot be run with some values of them is no news.
    """
    deadline = time.monotonic() + seconds

    def ask(checks: Checks, failing: Callable[[str], None]) -> None:
        def work() -> None:
            for kernel in kernels:
                for check in checks(kernel, seed):
                    channel.send(_record(target, check))

        in_a_fork(work, deadline - time.monotonic(), failing)

    ask(check_ordinary, lambda reason: channel.send(_unjudged(target, reason)))
    ask(check_modes, lambda reason: None)
    for draw in target.draws:
        ask(
            functools.partial(check_draw, draw=draw),
            lambda reason, draw=draw: channel.send(_unjudged(target, reason, draw)),  # type: ignore[misc]
        )


def _record(target: KernelTarget, check: ArgumentCheck) -> KernelCheck:
    reason = f"`{check.place}`: {check.reason}" if check.name else check.reason
    reason = f"on {check.draw.value}: {reason}" if check.draw is not None else reason
    defined = (target.path, target.line, target.name)
    return KernelCheck(target.name, defined, (), check.status, reason, check.ad, check.fd, check.name, check.draw)


def _unjudged(target: KernelTarget, reason: str, draw: Draw | None = None) -> KernelCheck:
    nan = float("nan")
    return _record(target, ArgumentCheck("", GradientStatus.INCONCLUSIVE, reason, nan, nan, draw=draw))


# -- finding the kernel -----------------------------------------------------------------------------------------------


class _Modules:
    """The user's modules, each imported once; what went wrong is remembered as well."""

    def __init__(self) -> None:
        self._loaded: dict[str, ModuleType | NotReachable] = {}

    def load(self, target: KernelTarget) -> ModuleType:
        """Import the target's module.

        Raises:
            NotReachable: the import raises, exits, or another module has its name.
        """
        if target.path not in self._loaded:
            try:
                self._loaded[target.path] = import_module(target)
            except (Exception, SystemExit) as error:
                text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
                self._loaded[target.path] = NotReachable(f"its module cannot be imported: {text}")
        found = self._loaded[target.path]
        if isinstance(found, NotReachable):
            raise found
        return found


def import_module(target: KernelTarget) -> ModuleType:
    """Import the file as the module it is in its package, or by its path where its name means something else."""
    if target.root not in sys.path:
        sys.path.insert(0, target.root)
    if "." in target.module:
        module = importlib.import_module(target.module)
        if _same_file(getattr(module, "__file__", None), target.path):
            return module
    name = target.module.rpartition(".")[2]
    if name in sys.modules or name in sys.stdlib_module_names or name == "__main__":
        name = f"_{name}_"
    spec = importlib.util.spec_from_file_location(name, target.path)
    if spec is None or spec.loader is None:
        raise NotReachable("its file is no Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _same_file(one: str | None, other: str) -> bool:
    return one is not None and os.path.realpath(one) == os.path.realpath(other)


def find_kernels(module: ModuleType, target: KernelTarget) -> list[Any]:
    """The kernels that the target's ``def`` made, wherever the module holds them.

    Raises:
        NotReachable: it holds none, since the ``def`` stands in a function that was not called.
    """
    found: dict[int, Any] = {}
    for kernel in _kernels(vars(module), set(), depth=3):
        code = kernel.func.__code__
        if (
            code.co_name == target.name
            and _same_file(code.co_filename, target.path)
            and _spans(kernel.func, target.line)
        ):
            found.setdefault(id(kernel), kernel)
    if not found:
        raise NotReachable("it is made inside a function: not reachable without a program")
    return list(found.values())[:FROM_ONE_PLACE]


def _kernels(names: Mapping[str, Any], seen: set[int], depth: int) -> Iterator[Any]:
    """Kernels among a namespace's values, in classes and in containers."""
    for value in list(names.values()):
        yield from _kernels_in(value, seen, depth)


def _kernels_in(value: Any, seen: set[int], depth: int) -> Iterator[Any]:
    if id(value) in seen or depth < 0:
        return
    if isinstance(value, wp.Kernel):
        seen.add(id(value))
        yield value
    elif isinstance(value, staticmethod):
        yield from _kernels_in(value.__func__, seen, depth)
    elif isinstance(value, type):
        seen.add(id(value))
        yield from _kernels(vars(value), seen, depth - 1)
    elif isinstance(value, (list, tuple, dict)):
        seen.add(id(value))
        inner: Iterable[Any] = value.values() if isinstance(value, dict) else value
        for item in list(inner)[:1000]:
            yield from _kernels_in(item, seen, depth - 1)


def _spans(function: Any, line: int) -> bool:
    """Whether the function's decorators or ``def`` stand on the line."""
    first = function.__code__.co_firstlineno
    if line == first:
        return True
    try:
        lines, _ = inspect.getsourcelines(function)
    except (OSError, TypeError):
        return False
    head = next((k for k, text in enumerate(lines) if text.lstrip().startswith(("def ", "async def "))), 0)
    return bool(first <= line <= first + head)

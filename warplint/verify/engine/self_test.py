"""The start-up self-test: a known program is recorded, run again, and has to come out bit for bit.

Private names of Warp may keep their names and change what they do. So where this Warp is not one that the engine was
measured on, the engine first answers for itself; when it cannot, no verdict is given.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from warplint.verify.engine.execution.log import Log
from warplint.verify.engine.execution.operations import KernelCall
from warplint.verify.engine.recording.horizon import Budget, Horizon
from warplint.verify.engine.recording.recorder import Recorder
from warplint.verify.engine.replaying.analysis import Analysis
from warplint.verify.engine.replaying.groups import groups_of
from warplint.verify.engine.replaying.replay import Machine, NotExact
from warplint.verify.engine.replaying.survey import Survey
from warplint.verify.engine.replaying.windows import Window
from warplint.verify.engine.warp_hooks import Hooks
from warplint.verify.engine.warp_values import Unsupported

MEASURED = ("1.19.",)
"""Versions that the engine was measured on."""


def is_needed(version: str) -> bool:
    """Whether this Warp is not one that was measured."""
    return not version.startswith(MEASURED)


def run(hooks: Hooks) -> None:
    """Record a known program with the installed ``hooks`` and check every step of the engine on it.

    Raises:
        Unsupported: with what came out differently.
    """
    log = Log()
    recorder = Recorder(log, Horizon(Budget(), lambda _: None))
    before, hooks.observer = hooks.observer, recorder
    try:
        gradient = _program()
    finally:
        hooks.observer = before
    if recorder.error is not None:
        raise Unsupported(f"recording failed with {type(recorder.error).__name__}: {recorder.error}")
    _check_record(log)
    _check_replay(log, gradient)


def _program() -> Any:
    """``loss = sum(sin(x)^2)`` through a copy; returns the gradient as the tape has it."""
    wp: Any = importlib.import_module("warp")
    sine, squares = _kernels(wp)
    x = wp.array(np.array([0.3, -0.7, 1.1], dtype=np.float32), requires_grad=True, device="cpu")
    y = wp.zeros(3, dtype=wp.float32, requires_grad=True, device="cpu")
    z = wp.zeros_like(y)
    loss = wp.zeros(1, dtype=wp.float32, requires_grad=True, device="cpu")
    with wp.Tape() as tape:
        wp.launch(sine, dim=3, inputs=[x], outputs=[y], device="cpu")
        wp.copy(z, y)
        wp.launch(squares, dim=3, inputs=[z], outputs=[loss], device="cpu")
    tape.backward(loss)
    return np.array(x.grad.numpy(), copy=True)


def _kernels(wp: Any) -> tuple[Any, Any]:
    def sine(x: Any, y: Any) -> None:
        i = wp.tid()
        y[i] = wp.sin(x[i])

    def squares(x: Any, y: Any) -> None:
        wp.atomic_add(y, 0, x[wp.tid()] * x[wp.tid()])

    for function in (sine, squares):
        function.__annotations__ = {"x": wp.array(dtype=wp.float32), "y": wp.array(dtype=wp.float32)}
    return wp.kernel(sine), wp.kernel(squares)


def _check_record(log: Log) -> None:
    calls = [operation for operation in log.operations if isinstance(operation, KernelCall)]
    forward = [call for call in calls if call.entry is not None]
    adjoint = [call for call in calls if call.adjoint and call.step is not None]
    if len(forward) != 2 or len(adjoint) != 2:
        raise Unsupported(f"of two taped launches {len(forward)} and {len(adjoint)} adjoints were seen")
    if len(log.backwards) != 1 or log.backwards[0].end is None or not log.backwards[0].end.complete:
        raise Unsupported("the operations of backward cannot be matched to the tape's entries")


def _check_replay(log: Log, gradient: Any) -> None:
    machine = Machine(log)
    survey = Survey(machine)
    survey.run()
    if not survey.exact or survey.inexact:
        raise Unsupported("running recorded operations again does not give the same bytes")
    analysis = Analysis(log, survey)
    groups = groups_of(analysis)
    if len(groups) != 1 or not np.array_equal(groups[0].consumed, gradient.astype(np.float64)):
        raise Unsupported("the gradient that the program reads is not what the engine takes for it")
    group = groups[0]
    try:
        window = Window(machine, analysis, group.start, group.backwards)
    except NotExact as error:
        raise Unsupported(str(error)) from error
    step = 1e-2

    def moved(by: float) -> float:
        return window.evaluate({}, lambda values: (values.astype(np.float64) + by).astype(values.dtype), group.leaf)

    slope, claimed = (moved(step) - moved(-step)) / (2.0 * step), float(np.sum(gradient))
    if abs(slope - claimed) > 1e-3 * max(1.0, abs(claimed)):
        raise Unsupported(f"a known derivative of {claimed:.6g} is measured as {slope:.6g}")

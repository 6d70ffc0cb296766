"""Measures the kernels of one module: adjoints against finite differences. Runs in a process of its own.

Every array that carries gradient starts with a gradient of its own, the weights of the objective: the sum over all
arrays of weights times final values. So the adjoint must leave the derivative of the objective with respect to the
initial values, whether an array is read, overwritten or added to.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp
from warp._src.context import Module, ModuleBuilder

from tests.differential.cases import ANNOTATIONS, COLUMNS, SIZE, Case, case_of, module_text
from tests.differential.draws import DRAWS, Draw, drawn

STEP, OTHER_STEP = 1e-5, 3.7e-5
"""The other one confirms what is wrong, lest a quotient be so by a kink or by rounding."""
SMALLEST = 1e-3
"""Of derivatives, below which errors count as they are."""
STEADY = 1e-4
"""Of a directional derivative, relative: how far two difference quotients may be apart to say something."""
TOLERANCE = 1e-6
"""The same of adjoint and difference quotient: small terms that are lost are lost."""
LARGEST = 1e8
STEEPEST = 1e5
"""Derivatives by which a step changes values so much that a sine of them is another one."""
ROUNDING = 1e-15
"""Of the objective, relative: what the sums of a kernel lose of it."""
PADDING = 64
"""Elements before and behind each array: wrong adjoints write out of bounds."""
_DTYPES = {"Reals": wp.float64, "Vectors": wp.vec3d, "Grid": wp.float64}
_SHAPES = {"Reals": (), "Vectors": (3,), "Grid": (COLUMNS,)}


@dataclass
class Launch:
    """A kernel with arrays: ``values`` and ``gradients`` are NumPy views of them, by path."""

    kernel: Any
    dim: int
    arguments: list[Any] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    gradients: dict[str, Any] = field(default_factory=dict)
    integers: list[Any] = field(default_factory=list)
    scalars: dict[str, int] = field(default_factory=dict)
    """The positions of ``n``, ``s`` and ``state`` among the arguments."""

    def run(self) -> None:
        wp.launch(self.kernel, dim=self.dim, inputs=self.arguments, device="cpu")

    def take(self, draw: Draw) -> None:
        """Set indices and scalars; the values are put in place before each run."""
        for index in self.integers:
            index.numpy()[:SIZE] = draw.permutation
        for name, position in self.scalars.items():
            if name == "state":
                self.arguments[position].dt = draw.time_step
            else:
                self.arguments[position] = draw.rounds if name == "n" else draw.scalar


def padded(annotation: str) -> Any:
    """A writable array with gradient amid unused memory of its own."""
    rows = SIZE + 2 * PADDING
    shape = (rows, COLUMNS) if annotation == "Grid" else (rows,)
    whole = wp.zeros(shape, dtype=_DTYPES[annotation], requires_grad=True, device="cpu")
    return whole[PADDING : PADDING + SIZE]


def prepared(case: Case, names: Any, kernel: Any) -> Launch:
    """Arguments for a kernel."""
    launch, made = Launch(kernel, case.dim), {}

    def array(path: str, annotation: str) -> Any:
        made[path] = padded(annotation)
        launch.values[path] = made[path].numpy()
        launch.gradients[path] = made[path].grad.numpy()
        return made[path]

    for name in case.parameters:
        annotation, owner = ANNOTATIONS[name], case.shared[name]
        if annotation in ("int", "real", "State"):
            launch.scalars[name] = len(launch.arguments)
        if annotation in ("int", "real"):
            launch.arguments.append(None)
        elif annotation == "Integers":
            launch.integers.append(wp.zeros(SIZE + 2 * PADDING, dtype=int, device="cpu"))
            launch.arguments.append(launch.integers[0])
        elif annotation == "State":
            state = names.State()
            state.position, state.velocity = array("state.position", "Reals"), array("state.velocity", "Reals")
            launch.arguments.append(state)
        else:
            launch.arguments.append(made[owner] if owner in made else array(owner, annotation))
    return launch


def measure(case: Case, names: Any, kernel: Any) -> dict[str, Any]:
    """``right``, ``wrong`` (with adjoint and difference quotient along some direction) or ``unmeasured``."""
    launch, measured, broken = prepared(case, names, kernel), False, dict[str, Any]()
    shapes = {path: view.shape for path, view in launch.values.items()}
    for number in range(DRAWS):
        draw = drawn(number, shapes)
        launch.take(draw)
        quotient, doubt = difference(launch, draw, STEP)
        if not doubt < STEADY * max(abs(quotient), SMALLEST) or abs(quotient) > STEEPEST:
            continue  # a kink, or a sine of so large a number that the steps mean nothing
        adjoints = differentiated(launch, draw)
        adjoint = float(sum(np.sum(adjoints[path] * draw.direction[path]) for path in shapes))
        if not np.isfinite(adjoint):  # nothing is singular: a local has overflowed here, unless it always is so
            broken = broken or {"outcome": "wrong", "adjoint": adjoint, "difference": quotient, "draw": number}
            continue
        measured = True
        if not near(adjoint, quotient, doubt) and not near(adjoint, *difference(launch, draw, OTHER_STEP)):
            return {"outcome": "wrong", "adjoint": adjoint, "difference": quotient, "draw": number}
    return {"outcome": "right"} if measured else broken or {"outcome": "unmeasured"}


def near(adjoint: float, quotient: float, doubt: float) -> bool:
    """Whether an adjoint may be the derivative that a difference quotient stands for."""
    return abs(adjoint - quotient) <= TOLERANCE * max(abs(quotient), SMALLEST) + 10.0 * doubt


def differentiated(launch: Launch, draw: Draw) -> dict[str, Any]:
    """The gradients that the tape leaves."""
    put(launch.values, draw.start)
    tape = wp.Tape()
    with tape:
        launch.run()
    put(launch.gradients, draw.weights)
    tape.backward()
    return {path: view.copy() for path, view in launch.gradients.items()}


def objective(launch: Launch, start: dict[str, Any], weights: dict[str, Any]) -> float | None:
    """Weights times final values; None where they are not finite."""
    put(launch.values, start)
    launch.run()
    total = float(sum(np.sum(weights[path] * view) for path, view in launch.values.items()))
    return total if np.isfinite(total) and abs(total) < LARGEST else None


def difference(launch: Launch, draw: Draw, longest: float) -> tuple[float, float]:
    """A directional derivative by two central differences, extrapolated, and how far they are apart (or may be)."""
    quotients, rounding = [], 0.0
    for step in (longest, longest / 2.0):
        ends = [
            objective(
                launch, {path: at + sign * step * draw.direction[path] for path, at in draw.start.items()}, draw.weights
            )
            for sign in (1, -1)
        ]
        if ends[0] is None or ends[1] is None:
            return 0.0, np.inf
        quotients.append((ends[0] - ends[1]) / (2.0 * step))
        rounding = ROUNDING * abs(ends[0]) / step
    return (4.0 * quotients[1] - quotients[0]) / 3.0, abs(quotients[1] - quotients[0]) + rounding


def put(views: dict[str, Any], values: dict[str, Any]) -> None:
    for path, value in values.items():
        views[path][...] = value


def refusal(kernel: Any) -> str:
    """Why Warp does not generate code for a kernel; "" if it does."""
    try:
        options = {**kernel.module.resolve_options(wp.config), "output_arch": None}
        ModuleBuilder(Module("differential_dummy", None), options).build_kernel(kernel)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def refusals(module: Any, cases: Mapping[int, Case]) -> dict[int, str]:
    """The kernels of a module that Warp does not generate code for, and why."""
    found = {number: refusal(getattr(module, f"c{number}_kernel")) for number in cases}
    return {number: why for number, why in found.items() if why}


def imported(folder: Path, name: str, cases: dict[int, Case]) -> Any:
    """A module of some cases."""
    path = folder / f"{name}.py"
    path.write_text(module_text(cases))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def main(request: str) -> None:
    """Measure the cases that ``request`` (JSON text) holds, one line each; without those that do not build.

    ``folder``: for the modules. ``cases``: number to case. ``cache``: a kernel cache, null for the user's.
    """
    asked = json.loads(request)
    wp.config.quiet = True
    if asked["cache"]:
        wp.config.kernel_cache_dir = asked["cache"]
    wp.config.optimization_level = asked["optimization"]
    wp.init()
    folder, cases = Path(asked["folder"]), {int(number): case_of(each) for number, each in asked["cases"].items()}
    measured = imported(folder, "differential_module", cases)
    try:
        wp.load_module(measured, device="cpu")
    except Exception:
        for number, why in refusals(measured, cases).items():
            del cases[number]
            say({"case": number, "outcome": "refused", "why": why})
        measured = imported(folder, "differential_rest", cases)
        wp.load_module(measured, device="cpu")
    say({"loaded": True})
    for number, case in cases.items():
        say({"starts": number})
        say({"case": number, **measure(case, measured, getattr(measured, f"c{number}_kernel"))})


def say(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(sys.stdin.read())

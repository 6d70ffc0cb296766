"""The local check names the operand whose adjoint is wrong, and no other: on plain operations, and on real kernels."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warplint.proof import Draw
from warplint.runner.process import Limits
from warplint.runner.protocol import KernelTarget
from warplint.runner.run import RunOptions, check_kernels
from warplint.verify.engine.kernels.kernel_check import OperationCheck, check_operation
from warplint.verify.records import GradientStatus, KernelCheck

PASS, FAIL, FLAT, INCONCLUSIVE = (
    GradientStatus.PASS,
    GradientStatus.FAIL,
    GradientStatus.FLAT,
    GradientStatus.INCONCLUSIVE,
)
Arrays = dict[str, Any]


@dataclass(frozen=True)
class Operation:
    """``run`` changes the arrays in place; ``reverse`` changes the gradients in place, given the arrays afterwards."""

    run: Callable[[Arrays], None]
    reverse: Callable[[Arrays, Arrays], None]
    outputs: tuple[str, ...]

    def check(self, real: type = np.float32, seed: int = 0, **arrays: Any) -> OperationCheck:
        """Check it on these inputs, as the memory is restored before every run and before the adjoint."""
        inputs = {name: np.array(values, dtype=real) for name, values in arrays.items()}

        def state(values: Any) -> Arrays:
            return {**{name: array.copy() for name, array in inputs.items()}, **values}

        def forward(values: Any) -> Arrays:
            memory = state(values)
            self.run(memory)
            return {name: memory[name].copy() for name in self.outputs}

        def adjoint(cotangents: Any) -> Arrays:
            memory = state({})
            self.run(memory)
            gradients = {name: array.copy() for name, array in cotangents.items()}
            self.reverse(memory, gradients)
            return {name: gradients[name] for name in inputs}

        eps = float(np.finfo(real).eps)
        return check_operation(forward, adjoint, inputs, self.outputs, np.random.default_rng(seed), dtype_eps=eps)


def multiply(a: Arrays) -> None:
    a["y"] *= a["z"]


def multiply_reverse_with_the_new_value(a: Arrays, g: Arrays) -> None:
    g["z"] += g["y"] * a["y"]
    g["y"] *= a["z"]


def multiply_reverse(a: Arrays, g: Arrays) -> None:
    g["z"] += g["y"] * a["y"] / a["z"]
    g["y"] *= a["z"]


def store(a: Arrays) -> None:
    a["y"] = np.sin(a["x"])


def store_reverse(a: Arrays, g: Arrays) -> None:
    g["x"] += g["y"] * np.cos(a["x"])
    g["y"][...] = 0


def store_reverse_that_clobbers(a: Arrays, g: Arrays) -> None:
    g["x"][...] = g["y"] * np.cos(a["x"])
    g["y"][...] = 0


def store_reverse_with_one_wrong_element(a: Arrays, g: Arrays) -> None:
    store_reverse(a, g)
    g["x"].flat[3] *= 1.2


def in_place_sine(a: Arrays) -> None:
    a["y"] = np.sin(a["y"])


def in_place_sine_reverse_with_the_new_value(a: Arrays, g: Arrays) -> None:
    g["y"] *= np.cos(a["y"])


def accumulate(a: Arrays) -> None:
    a["y"] += a["x"] * a["x"]


def accumulate_reverse(a: Arrays, g: Arrays) -> None:
    g["x"] += g["y"] * 2 * a["x"]


Y, Z = [0.7, 1.3, -0.4, 2.1], [1.4, -0.6, 0.9, 0.3]


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_the_multiplier_of_an_in_place_product_is_named_and_not_the_product(real: type) -> None:
    wrong = Operation(multiply, multiply_reverse_with_the_new_value, ("y",)).check(real, y=Y, z=Z)
    assert (wrong.status, wrong.argument, wrong.failed) == (FAIL, "z", ("z",))
    assert "`z[" in wrong.reason
    assert Operation(multiply, multiply_reverse, ("y",)).check(real, y=Y, z=Z).status is PASS


def test_an_in_place_store_names_itself() -> None:
    wrong = Operation(in_place_sine, in_place_sine_reverse_with_the_new_value, ("y",)).check(y=Y)
    assert (wrong.status, wrong.argument) == (FAIL, "y")


def test_a_store_consumes_and_an_accumulation_passes_on_the_gradient_of_what_it_writes() -> None:
    assert Operation(store, store_reverse, ("y",)).check(x=Y, y=Z).status is PASS
    assert Operation(accumulate, accumulate_reverse, ("y",)).check(x=Y, y=Z).status is PASS
    assert Operation(store, accumulate_reverse, ("y",)).check(x=Y, y=Z).failed == ("x",)


def test_a_gradient_left_over_for_a_value_that_is_overwritten_is_nobodys() -> None:
    def reverse(a: Arrays, g: Arrays) -> None:
        g["x"] += g["y"] * np.cos(a["x"])

    assert Operation(store, reverse, ("y",)).check(x=Y, y=Z).status is PASS


def test_an_adjoint_that_clobbers_what_was_accumulated_fails() -> None:
    wrong = Operation(store, store_reverse_that_clobbers, ("y",)).check(x=Y, y=Z)
    assert (wrong.status, wrong.failed) == (FAIL, ("x",))


@pytest.mark.parametrize("size", [5, 40])
def test_one_wrong_element_is_found_and_named(size: int) -> None:
    x = np.random.default_rng(size).uniform(-1, 1, size)
    x[3] = 0.2
    wrong = Operation(store, store_reverse_with_one_wrong_element, ("y",)).check(x=x, y=np.zeros(size))
    assert (wrong.status, wrong.argument, wrong.element) == (FAIL, "x", (3,))


@pytest.mark.parametrize("slope", [0.0, 1.0])
def test_either_slope_passes_where_the_input_stands_on_a_kink(slope: float) -> None:
    def run(a: Arrays) -> None:
        a["y"] = np.maximum(a["x"], 0)

    def reverse(a: Arrays, g: Arrays) -> None:
        g["x"] += g["y"] * np.where(a["x"] == 0, slope, a["x"] > 0).astype(a["x"].dtype)
        g["y"][...] = 0

    assert Operation(run, reverse, ("y",)).check(x=[0.0, 0.0, 1.0, -1.0], y=Z).status is PASS


def test_a_gradient_that_is_no_number_fails() -> None:
    def reverse(a: Arrays, g: Arrays) -> None:
        store_reverse(a, g)
        g["x"][1] = np.nan

    wrong = Operation(store, reverse, ("y",)).check(x=Y, y=Z)
    assert (wrong.status, wrong.element) == (FAIL, (1,))


def test_an_adjoint_is_not_right_where_neither_it_nor_the_slope_is_a_number() -> None:
    def run(a: Arrays) -> None:
        a["y"][...] = np.sqrt(np.maximum(a["x"], 0.0))

    def reverse(a: Arrays, g: Arrays) -> None:
        with np.errstate(divide="ignore"):
            g["x"] += g["y"] / (2.0 * np.sqrt(a["x"]))
        g["y"][...] = 0

    endless = Operation(run, reverse, ("y",)).check(x=[0.0, 1.0, 2.0, 3.0], y=Z)
    assert endless.status is GradientStatus.INCONCLUSIVE
    assert not np.isfinite(endless.ad)


def test_outputs_that_are_no_numbers_are_left_out() -> None:
    def run(a: Arrays) -> None:
        store(a)
        a["y"][0] = np.nan

    def reverse(a: Arrays, g: Arrays) -> None:
        g["y"][0] = 0
        store_reverse(a, g)

    assert Operation(run, reverse, ("y",)).check(x=Y, y=Z).status is PASS


def test_a_step_function_is_flat() -> None:
    def run(a: Arrays) -> None:
        a["y"] = np.floor(a["x"] * 3)

    def reverse(a: Arrays, g: Arrays) -> None:
        g["y"][...] = 0

    judged = Operation(run, reverse, ("y",)).check(x=[0.5, 0.8, -0.55], y=[0.0, 0.0, 0.0])
    assert judged.status is FLAT


def test_the_budget_bounds_the_runs() -> None:
    runs = 0

    def run(a: Arrays) -> None:
        nonlocal runs
        runs += 1
        multiply(a)

    def forward(values: Any) -> Arrays:
        memory = {"y": np.array(Y), "z": np.array(Z), **values}
        run(memory)
        return {"y": memory["y"]}

    def adjoint(cotangents: Any) -> Arrays:
        gradients = {name: array.copy() for name, array in cotangents.items()}
        multiply_reverse({"y": np.array(Y) * np.array(Z), "z": np.array(Z)}, gradients)
        return gradients

    inputs = {"y": np.array(Y), "z": np.array(Z)}
    for budget in (2, 5, 20, 60):
        runs = 0
        judged = check_operation(forward, adjoint, inputs, ("y",), np.random.default_rng(0), budget=budget)
        assert runs <= budget
        assert judged.status in (PASS, INCONCLUSIVE)


KERNELS = Path(__file__).with_name("lone_kernels.py")


def targets(path: Path, *names: str) -> list[KernelTarget]:
    """The kernels of a file, as the parent asks for them; all functions with a decorator, or the named ones."""
    functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    return [
        KernelTarget(str(path), node.lineno, node.name, path.stem, str(path.parent))
        for node in functions
        if (node.name in names if names else any("kernel" in ast.unparse(mark) for mark in node.decorator_list))
    ]


def alone(*asked: KernelTarget) -> tuple[dict[str, list[KernelCheck]], Any]:
    """The checks by kernel, from a real child, and the run's result."""
    result = check_kernels(asked, RunOptions(python=sys.executable, limits=Limits(300.0)))
    found: dict[str, list[KernelCheck]] = {}
    for check in result.of(KernelCheck):
        found.setdefault(check.kernel, []).append(check)
    return found, result


@pytest.fixture(scope="session")
def checked() -> dict[str, list[KernelCheck]]:
    """Every kernel of the shared module, checked alone in one child."""
    found, result = alone(*targets(KERNELS))
    assert result.problem is None, result.output_tail
    return found


WRONG = {
    "multiply_element": {"x"},
    "divide_element": {"z"},
    "multiply_component": {"x"},
    "sine_in_place": {"y"},
    "read_then_overwrite": {"y"},
    "shared_store": {"x"},
    "struct_field_in_place": {"state.q"},
    "hand_kept_index": {"x"},
    "custom_adjoint": {"x"},
    "generic_in_place": {"x"},
    "flagged": {"x"},
    "counted": {"x"},
}
RIGHT = {
    "multiply_by_literal": {"y"},
    "multiply_local": {"x", "y"},
    "scale_in_place": {"y"},
    "add_square": {"y", "z"},
    "sum_of_squares": {"x", "loss"},
    "positive_only": {"x", "y"},
    "scatter": {"x", "y"},
    "struct_fields": {"state.q", "state.mass", "out"},
    "array_of_structs": {"bodies.position", "bodies.weight", "out"},
    "stencil": {"u", "v"},
    "flat_three": {"u", "out"},
    "rotations": {"t", "q", "m", "p", "out"},
    "four_axes": {"a", "b"},
    "generic": {"x", "y"},
    "in_class": {"x", "y"},
    "generic_vectors": {"x", "y"},
    "generic_with_literals": {"x", "y"},
    "nested_structs": {"world.mesh.points", "energy", "lengths"},
    "guarded_division": {"p", "m", "v"},
    "larger": {"a", "b", "c"},
    "below_one": {"x", "y"},
    "two_outputs": {"q", "w", "out", "turned"},
    "half": {"x", "y"},
}
UNJUDGED = {
    "far_beyond": "beyond",
    "a_little_beyond": "beyond `y`",
    "takes_mesh": "`mesh` is a handle",
    "integers_only": "floating-point",
    "forward_only": "without an adjoint",
    "made_in_factory": "not reachable without a program",
    "integer_division": "divides an integer by zero",
}


@pytest.mark.warp
@pytest.mark.parametrize("kernel", WRONG)
def test_a_wrong_adjoint_is_found_and_its_operand_named(kernel: str, checked: dict[str, list[KernelCheck]]) -> None:
    failed = {check.argument: check for check in checked[kernel] if check.status is FAIL}
    assert set(failed) == WRONG[kernel], checked[kernel]
    for argument, check in failed.items():
        assert abs(check.ad - check.fd) > 0.02 * max(abs(check.ad), abs(check.fd))
        assert argument in check.reason
    assert all(check.status is PASS for check in checked[kernel] if check.argument not in failed)


@pytest.mark.warp
@pytest.mark.parametrize("kernel", RIGHT)
def test_a_right_adjoint_passes_in_every_argument(kernel: str, checked: dict[str, list[KernelCheck]]) -> None:
    assert {check.argument: check.status for check in checked[kernel]} == dict.fromkeys(RIGHT[kernel], PASS)


@pytest.mark.warp
def test_a_step_function_of_an_argument_is_flat_in_it(checked: dict[str, list[KernelCheck]]) -> None:
    assert {check.argument: check.status for check in checked["stairs"]} == {"x": FLAT, "y": PASS}


@pytest.mark.warp
@pytest.mark.parametrize("kernel", UNJUDGED)
def test_what_cannot_be_judged_says_why(kernel: str, checked: dict[str, list[KernelCheck]]) -> None:
    (check,) = checked[kernel]
    assert check.status is INCONCLUSIVE
    assert UNJUDGED[kernel] in check.reason
    assert check.argument == ""


@pytest.mark.warp
def test_what_is_asked_for_at_zeros_is_told_apart_from_what_holds_elsewhere() -> None:
    chosen = targets(KERNELS, "guarded_division", "larger")
    asked = [replace(target, draws=(Draw.ZEROS, Draw.TIES)) for target in chosen]
    found, _ = alone(*asked)
    wrong = {(check.argument, check.draw) for check in found["guarded_division"] if check.status is FAIL}
    assert wrong == {("m", Draw.ZEROS), ("p", Draw.ZEROS)}
    assert {check.status for check in found["guarded_division"] if check.draw is None} == {PASS}
    assert {check.draw for check in found["larger"]} == {None, Draw.ZEROS, Draw.TIES}
    assert {check.status for check in found["larger"]} == {PASS}


@pytest.mark.warp
def test_a_check_stands_where_its_kernel_is_defined(checked: dict[str, list[KernelCheck]]) -> None:
    lines = KERNELS.read_text().splitlines()
    for name, checks in checked.items():
        for check in checks:
            path, line, function = check.defined
            assert (Path(path), function) == (KERNELS, name)
            assert f"def {name}(" in lines[line - 1]


@pytest.mark.warp
def test_modules_that_cannot_be_imported_are_said(tmp_path: Path) -> None:
    header = "import warp as wp\n\n@wp.kernel\ndef k(x: wp.array(dtype=float)):\n    x[0] = 1.0\n\n"
    endings = {
        "raises": ("raise ValueError('no data')", "ValueError: no data"),
        "leaves": ("raise SystemExit(3)", "SystemExit: 3"),
        "lacks": ("import not_there_at_all", "ModuleNotFoundError"),
    }
    asked = []
    for name, (statement, _) in endings.items():
        (tmp_path / f"{name}.py").write_text(header.replace("def k", f"def {name}") + statement + "\n")
        asked += targets(tmp_path / f"{name}.py")
    found, result = alone(*asked)
    assert result.problem is None
    for name, (_, reason) in endings.items():
        (check,) = found[name]
        assert check.status is INCONCLUSIVE
        assert reason in check.reason


@pytest.mark.warp
def test_a_module_of_a_package_is_imported_as_what_it_is(tmp_path: Path) -> None:
    package = tmp_path / "things" / "inner"
    package.mkdir(parents=True)
    (tmp_path / "things" / "__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    (tmp_path / "things" / "constants.py").write_text("NAME = __name__\n")
    text = "import warp as wp\nfrom ..constants import NAME\nassert NAME == 'things.constants'\n"
    (package / "mod.py").write_text(text + "\n@wp.kernel\ndef k(mesh: wp.uint64):\n    i = wp.tid()\n")
    (asked,) = targets(package / "mod.py")
    asked = KernelTarget(asked.path, asked.line, asked.name, "things.inner.mod", str(tmp_path))
    found, _ = alone(asked)
    (check,) = found["k"]
    assert "handle" in check.reason

"""The local check names the operand whose adjoint is wrong, and no other: on plain operations, and on real kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from warplint.verify.kernel_check import OperationCheck, check_operation
from warplint.verify.records import GradientStatus

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
    left_over = Operation(store, accumulate_reverse, ("y",)).check(x=Y, y=Z)
    assert set(left_over.failed) == {"x", "y"}


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

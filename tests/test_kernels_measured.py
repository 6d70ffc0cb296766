"""What the analysis says an adjoint reads, against what the adjoint does read: arrays are changed before backward."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernel_sources import sources_of

from warplint.kernels.analysis import summarise

np = pytest.importorskip("numpy")
wp = pytest.importorskip("warp")
pytestmark = pytest.mark.warp

TEXT = Path(__file__).with_name("measured_kernels.py").read_text()
SOURCES = sources_of(TEXT)
SIZE = 5


@pytest.fixture(scope="module")
def kernels():
    import measured_kernels

    wp.config.quiet = True
    wp.init()
    return measured_kernels


def _numbers(seed: int, shape: tuple[int, ...]):
    """Numbers of both signs, away from zero: on both sides of every kink and condition of the kernels."""
    random = np.random.default_rng(seed)
    return random.uniform(0.3, 1.5, shape) * random.choice([-1.0, 1.0], shape)


def _argument(annotation: str, seed: int):
    if annotation == "Integers":
        return wp.array([2, 0, 1, 4, 3], dtype=int, device="cpu")
    if annotation == "Vectors":
        return wp.array(_numbers(seed, (SIZE, 3)), dtype=wp.vec3d, requires_grad=True, device="cpu")
    return wp.array(_numbers(seed, (SIZE,)), dtype=wp.float64, requires_grad=True, device="cpu")


def _arguments(summary, kernels):
    """The launch's arguments, and its arrays by access path."""
    arguments, arrays = [], {}
    for number, parameter in enumerate(summary.parameters):
        if parameter.kind == "struct":
            state = kernels.State()
            state.position = _argument("Reals", 10)
            state.stiffness = _argument("Reals", 11)
            state.step = 0.3
            arguments.append(state)
            arrays |= {"state.position": state.position, "state.stiffness": state.stiffness}
        else:
            array = _argument(parameter.annotation, number)
            arguments.append(array)
            arrays[parameter.name] = array
    return arguments, arrays


def _gradients(summary, kernels, changed: str | None):
    """The gradients of all arrays, where ``changed`` holds other values in the backward pass than in the forward."""
    arguments, arrays = _arguments(summary, kernels)
    tape = wp.Tape()
    with tape:
        wp.launch(getattr(kernels, summary.name), dim=SIZE, inputs=arguments, device="cpu")
    if changed is not None:
        array = arrays[changed]
        before = array.numpy()
        array.assign(np.array([1, 2, 0, 3, 4]) if before.dtype.kind == "i" else -1.3 * before[::-1])
    seeds = np.random.default_rng(5)
    for path in sorted(summary.written_paths):
        array = arrays[path]
        array.grad.assign(seeds.uniform(0.5, 1.5, array.grad.numpy().shape))
    tape.backward()
    return {path: array.grad.numpy().copy() for path, array in arrays.items() if array.grad is not None}


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_adjoint_reads_exactly_the_arrays_that_the_summary_names(name, kernels):
    summary = summarise(SOURCES[name])
    assert summary.complete, summary.why
    claimed = {need.read.path for store in summary.stores for need in store.needs}
    truth = _gradients(summary, kernels, None)
    read = set()
    for path in _arguments(summary, kernels)[1]:
        disturbed = _gradients(summary, kernels, path)
        if any(not np.array_equal(truth[other], disturbed[other]) for other in truth):
            read.add(path)
    destroyed = {store.path for store in summary.stores if store.multiplier}
    assert claimed | destroyed == read


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_gradient_reaches_exactly_the_arrays_that_are_active(name, kernels):
    summary = summarise(SOURCES[name])
    active = {path for store in summary.stores for path in store.active}
    gradients = _gradients(summary, kernels, None)
    reached = {path for path, gradient in gradients.items() if np.any(gradient) and path not in summary.written_paths}
    assert reached == active - summary.written_paths


def test_the_table_of_builtins_agrees_with_warp():
    from warp._src.context import builtin_functions

    from warplint.kernels.builtins import Derivative, table

    if not wp.config.version.startswith("1.19"):
        pytest.skip("the table is that of Warp 1.19")
    cutting = {Derivative.FLAT, Derivative.MISSING}
    for name, function in builtin_functions.items():
        if function.is_differentiable:
            assert table().derivative(name) not in cutting, name
    cut = {name for name, how in table().derivatives.items() if how in cutting}
    assert all(name in builtin_functions and not builtin_functions[name].is_differentiable for name in cut)

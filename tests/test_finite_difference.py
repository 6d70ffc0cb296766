"""What the instrument says of functions whose derivative is known exactly, in single and in double precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from warplint.verify.engine.differences.directions import quantiles
from warplint.verify.engine.differences.finite_difference import (
    EPS32,
    EPS64,
    OutOfBudget,
    both,
    combine,
    directions,
    is_hidden,
    judge_direction,
    one_sided,
    wants_one_sided,
)
from warplint.verify.records import Direction, GradientStatus

PASS, FAIL, FLAT, INCONCLUSIVE = (
    GradientStatus.PASS,
    GradientStatus.FAIL,
    GradientStatus.FLAT,
    GradientStatus.INCONCLUSIVE,
)
EPS = {np.float32: EPS32, np.float64: EPS64}
PRECISIONS = pytest.mark.parametrize("real", [np.float32, np.float64])


def judge(function: Callable[[Any], Any], at: float, ad: float, real: type = np.float32, **options: Any) -> Direction:
    """Judge ``ad`` at the point ``at`` of a function of one variable that computes in ``real``."""

    def objective(step: float) -> float:
        with np.errstate(all="ignore"):
            return float(function(real(real(at) + step)))

    return judge_direction(objective, ad, dtype_eps=EPS[real], **options)


@dataclass(frozen=True)
class Term:
    """``size * function(rate * x + shift)`` and its derivative; ``value`` rounds every operation to ``real``."""

    name: str
    size: float
    rate: float
    shift: float

    FUNCTIONS = {
        "sin": (np.sin, np.cos),
        "tanh": (np.tanh, lambda z: 1.0 / np.cosh(z) ** 2),
        "bump": (lambda z: np.exp(-z * z), lambda z: -2.0 * z * np.exp(-z * z)),
        "square": (lambda z: z * z, lambda z: 2.0 * z),
        "cube": (lambda z: z * z * z, lambda z: 3.0 * z * z),
        "soft root": (lambda z: np.sqrt(z * z + z.dtype.type(0.1)), lambda z: z / np.sqrt(z * z + 0.1)),
    }

    def value(self, x: Any) -> Any:
        real = x.dtype.type
        return real(self.size) * self.FUNCTIONS[self.name][0](real(self.rate) * x + real(self.shift))

    def slope(self, x: np.float64, real: type) -> float:
        rate, shift = float(real(self.rate)), float(real(self.shift))
        with np.errstate(over="ignore"):
            return float(real(self.size)) * rate * float(self.FUNCTIONS[self.name][1](np.float64(rate * x + shift)))


@dataclass(frozen=True)
class Smooth:
    """A sum of terms and a constant."""

    terms: tuple[Term, ...]
    constant: float
    at: float

    def value(self, x: Any) -> Any:
        total = x.dtype.type(self.constant)
        for term in self.terms:
            total = total + term.value(x)
        return total

    def slope(self, real: type) -> float:
        return sum(term.slope(np.float64(real(self.at)), real) for term in self.terms)


def terms(rates: st.SearchStrategy[float]) -> st.SearchStrategy[tuple[Term, ...]]:
    sizes = st.floats(0.1, 10.0).map(lambda size: round(size, 3))
    shifts = st.floats(-2.0, 2.0).map(lambda shift: round(shift, 3))
    term = st.builds(Term, st.sampled_from(sorted(Term.FUNCTIONS)), sizes, rates, shifts)
    return st.lists(term, min_size=1, max_size=4).map(tuple)


POINTS = st.floats(-2.0, 2.0).map(lambda at: round(at, 4))
SMOOTH = st.one_of(
    st.builds(Smooth, terms(st.floats(-500.0, 500.0)), st.sampled_from([0.0, 1.0, -30.0, 100.0]), POINTS),
    st.builds(Smooth, terms(st.floats(-5.0, 5.0)), st.sampled_from([1e3, 1e5, -1e7]), POINTS),
)
"""Ripples, or a constant that swallows most of the movement; not ripples below the constant's last digit."""


@PRECISIONS
@settings(max_examples=300, deadline=None)
@given(function=SMOOTH)
def test_an_exact_derivative_of_a_smooth_function_never_fails(real: type, function: Smooth) -> None:
    judged = judge(function.value, function.at, function.slope(real), real)
    assert judged.status is not FAIL, judged
    assert judged.reason


@PRECISIONS
@settings(max_examples=200, deadline=None)
@given(
    function=st.builds(Smooth, terms(st.floats(0.2, 3.0)), st.sampled_from([0.0, 1.0]), POINTS),
    factor=st.sampled_from([0.0, 0.5, 0.9, 0.95, 1.05, 1.1, 2.0, -1.0, 310.0]),
)
def test_a_derivative_wrong_by_five_percent_or_more_fails_on_a_well_conditioned_function(
    real: type, function: Smooth, factor: float
) -> None:
    slope = function.slope(real)
    size = abs(function.constant) + sum(abs(float(term.value(np.float64(function.at)))) for term in function.terms)
    steep = sum(abs(term.slope(np.float64(function.at), real)) for term in function.terms)
    assume(abs(slope) > max(0.3 * steep, 0.1 * size, 1e-2))  # it shows at the first steps
    assert judge(function.value, function.at, slope, real).status is PASS
    judged = judge(function.value, function.at, factor * slope, real)
    assert judged.status is FAIL, judged


KINKS = {
    "absolute value": (lambda x: abs(x), -1.0, 1.0),
    "positive part": (lambda x: max(x, x.dtype.type(0)), 0.0, 1.0),
    "uneven": (lambda x: np.where(x > 0, 5.0 * x, 0.3 * x), 0.3, 5.0),
    "on a curve": (lambda x: abs(x) + np.sin(x) + x * x, 0.0, 2.0),
}


@PRECISIONS
@pytest.mark.parametrize("name", KINKS)
def test_on_a_kink_both_one_sided_slopes_and_what_lies_between_pass(name: str, real: type) -> None:
    function, left, right = KINKS[name]
    for ad in (left, right, 0.7 * left + 0.3 * right):
        judged = judge(function, 0.0, ad, real)
        assert judged.status is PASS, (ad, judged)
        assert judged.forward == pytest.approx(right, rel=0.05, abs=0.05)
        assert judged.backward == pytest.approx(left, rel=0.05, abs=0.05)
        assert "one-sided" in judged.reason or judged.fd == pytest.approx(ad, rel=0.05)
        assert min(abs(judged.fd - slope) for slope in (left, right, (left + right) / 2.0)) < 0.06 * max(1.0, right)
    assert "kink" in judge(function, 0.0, right, real).reason


def test_on_a_kink_the_figure_is_a_measured_slope_and_nothing_is_off_between_two() -> None:
    between = judge(lambda x: max(x, x.dtype.type(0)), 0.0, 0.3, np.float32)
    assert (between.status, between.ad) == (PASS, 0.3)
    assert between.fd == pytest.approx(0.0, abs=0.01)
    told = combine([between])
    assert (told.status, told.relative_error) == (PASS, None)
    side = judge(lambda x: max(x, x.dtype.type(0)), 0.0, 1.0, np.float32)
    assert side.fd == pytest.approx(1.0, rel=0.01)
    assert combine([side]).relative_error == pytest.approx(0.0, abs=0.02)


@PRECISIONS
@pytest.mark.parametrize("name", KINKS)
def test_on_a_kink_what_lies_outside_the_one_sided_slopes_fails(name: str, real: type) -> None:
    function, left, right = KINKS[name]
    for ad in (right + (right - left), left - (right - left)):
        assert judge(function, 0.0, ad, real).status is FAIL


@pytest.mark.parametrize("seed", range(20))
def test_a_small_kink_under_noise_that_nobody_told_of_is_not_called_wrong(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def advected(x: Any) -> float:
        return -0.0036 * float(x) - 0.0011 * abs(float(x)) + 2e-7 * rng.standard_normal()

    for ad in (-0.0025, -0.0047, -0.003):
        assert judge(advected, 0.0, ad).status is not FAIL


@PRECISIONS
@pytest.mark.parametrize("distance", [1e-1, 1e-2, 1e-3])
def test_a_kink_beside_the_starting_point_does_not_hide_the_slope_at_it(distance: float, real: type) -> None:
    def contact(x: Any) -> Any:
        return x + 5.0 * max(x - real(0.5 + distance), real(0))

    assert judge(contact, 0.5, 1.0, real).status is PASS
    assert judge(contact, 0.5, 3.5, real).status is not PASS
    assert judge(contact, 0.5, 0.0, real).status is FAIL


@PRECISIONS
def test_where_the_function_jumps_on_one_side_the_slope_of_the_other_side_passes(real: type) -> None:
    def jumping(x: Any) -> Any:
        return real(3.0) * np.floor(x) + np.sin(x)

    judged = judge(jumping, 1.0, math.cos(1.0), real)
    assert judged.status is PASS
    assert "jump" in judged.reason
    assert judge(jumping, 1.0, 1.1 * math.cos(1.0), real).status is INCONCLUSIVE
    assert judge(np.floor, 1.0, 0.0, real).status is FLAT
    assert judge(np.floor, 1.0, 1.0, real).status is INCONCLUSIVE


@PRECISIONS
def test_a_zero_gradient_on_a_stair_is_flat_and_any_other_proves_nothing(real: type) -> None:
    def stairs(x: Any) -> Any:
        return np.floor(real(4.0) * x)

    assert judge(stairs, 0.62, 0.0, real).status is FLAT
    assert judge(stairs, 0.62, 4.0, real).status is INCONCLUSIVE
    assert judge(lambda x: np.floor(real(40.0) * x), 0.613, 0.0, real).status is FLAT


@PRECISIONS
def test_a_stair_beside_a_slope_is_no_flat(real: type) -> None:
    assert judge(lambda x: real(0.5) * x + np.floor(real(4.0) * x), 0.62, 0.5, real).status is PASS
    assert judge(lambda x: real(0.5) * x + np.floor(real(4.0) * x), 0.62, 0.0, real).status is FAIL


def test_a_change_that_a_large_constant_swallows_proves_nothing() -> None:
    def absorbing(x: Any) -> Any:
        return np.float32(1e9) + x

    for ad in (1.0, 0.5, 2.0):
        judged = judge(absorbing, 0.5, ad)
        assert judged.status is INCONCLUSIVE
        assert "absorbed" in judged.reason
    assert judge(absorbing, 0.5, 1.0, np.float64).status is PASS


def test_a_change_that_an_intermediate_value_swallows_proves_nothing() -> None:
    def absorbing(x: Any) -> Any:
        return (np.float32(1e8) + x) - np.float32(1e8)

    for ad in (1.0, 0.0, 2.0):
        assert judge(absorbing, 0.5, ad).status in (INCONCLUSIVE, FLAT)


@PRECISIONS
def test_a_gradient_of_something_that_does_not_move_at_all_fails_and_zero_passes(real: type) -> None:
    assert judge(lambda x: real(3.0), 0.5, 1.0, real).status is FAIL
    assert judge(lambda x: real(3.0), 0.5, 0.0, real).status is PASS


@PRECISIONS
def test_at_a_minimum_zero_passes_and_one_fails(real: type) -> None:
    def bowl(x: Any) -> Any:
        return (x - real(0.3)) ** 2 + real(2.0)

    assert judge(bowl, 0.3, 0.0, real).status is PASS
    assert judge(bowl, 0.3, 1.0, real).status is FAIL


@PRECISIONS
@pytest.mark.parametrize("start", [0.21, 0.37, 0.44, 0.71, 0.83])
def test_chaos_proves_nothing(start: float, real: type) -> None:
    def logistic(x: Any) -> Any:
        for _ in range(60):
            x = real(3.9) * x * (real(1.0) - x)
        return x

    slope, x = 1.0, float(real(start))
    for _ in range(60):
        slope, x = slope * 3.9 * (1.0 - 2.0 * x), 3.9 * x * (1.0 - x)
    for ad in (slope, 0.5 * slope, 1.0):
        assert judge(logistic, start, ad, real).status in (INCONCLUSIVE, FLAT)


@PRECISIONS
def test_a_gradient_that_is_no_number_fails_where_a_difference_is_one(real: type) -> None:
    for ad in (math.nan, math.inf, -math.inf):
        assert judge(np.sin, 0.5, ad, real).status is FAIL
    assert judge(lambda x: np.sqrt(x * x), 0.0, math.nan, real).status is FAIL
    assert judge(lambda x: real(1.0), 0.0, math.nan, real).status is FAIL


@PRECISIONS
def test_an_infinite_gradient_at_a_singular_point_is_not_called_wrong(real: type) -> None:
    assert judge(np.sqrt, 0.0, math.inf, real).status is INCONCLUSIVE


@PRECISIONS
def test_steps_beyond_the_domain_are_left_out(real: type) -> None:
    assert judge(np.log, 0.02, 50.0, real).status is PASS
    assert judge(np.log, 0.02, 25.0, real).status is FAIL
    assert judge(lambda x: np.exp(real(300.0) * x), 0.0, 300.0, real).status is PASS


@PRECISIONS
def test_where_one_side_is_outside_the_domain_the_other_side_tells(real: type) -> None:
    def from_zero_on(x: Any) -> Any:
        return x + x * x if x >= 0 else real(math.nan)

    judged = judge(from_zero_on, 0.0, 1.0, real)
    assert judged.status is PASS
    assert "forward" in judged.reason
    assert judge(from_zero_on, 0.0, 2.0, real).status is FAIL


def test_an_objective_that_is_no_number_proves_nothing() -> None:
    assert judge(lambda x: np.float32(math.nan), 0.0, 1.0).status is INCONCLUSIVE
    assert judge(lambda x: np.float32(0.0) if x == 0 else np.float32(math.nan), 0.0, 1.0).status is INCONCLUSIVE


def test_a_clear_case_is_cheap() -> None:
    right, wrong = judge(np.sin, 0.5, math.cos(0.5)), judge(np.sin, 0.5, 1.1 * math.cos(0.5))
    assert (right.status, wrong.status) == (PASS, FAIL)
    assert right.evaluations == 3
    assert wrong.evaluations <= 11


def test_where_the_objective_bends_one_step_is_not_enough_to_agree_at() -> None:
    assert judge(lambda x: x + 20.0 * (x - 0.5) ** 2, 0.5, 1.0).evaluations == 5


def test_a_slope_below_what_a_long_sum_rounds_is_given_up_soon_in_a_small_budget() -> None:
    def judged(terms: int) -> Any:
        def jumping(step: float) -> float:
            return 20000.0 + 20.0 * step + (0.3 if step > 0.0 else 0.0)

        return judge_direction(jumping, 20.0, budget=14, terms=terms)

    assert (judged(200_000).status, judged(200_000).evaluations) == (INCONCLUSIVE, 3)
    assert judged(200_000).reason.startswith("noise of")
    assert judged(1).evaluations > 5


@pytest.mark.parametrize("budget", range(0, 30))
def test_no_budget_is_exceeded_and_none_invents_a_failure(budget: int) -> None:
    calls = 0

    def ripples(x: Any) -> Any:
        nonlocal calls
        calls += 1
        return np.float32(100.0) + np.sin(np.float32(40.0) * x)

    judged = judge(ripples, 0.5, 40.0 * math.cos(20.0), budget=budget)
    assert calls <= budget
    assert judged.evaluations <= budget
    assert judged.status is not FAIL


def test_a_small_budget_is_not_spent_on_a_slope_that_rounding_hides() -> None:
    def small(x: Any) -> Any:
        return np.float32(1e6) + np.float32(20.0) * x

    hidden = judge(small, 0.5, 20.0, budget=14)
    assert (hidden.status, hidden.evaluations) == (INCONCLUSIVE, 3)
    assert hidden.reason.startswith("noise of")
    assert judge(small, 0.5, 20.0, budget=48).evaluations > 12


@pytest.mark.parametrize("slope", [1.0, 20.0, 1e3, 1e5, 1e6])
@pytest.mark.parametrize("terms", [1, 200_000])
def test_what_rounding_will_hide_is_known_before_anything_is_evaluated(slope: float, terms: int) -> None:
    def line(x: Any) -> Any:
        return np.float32(1e6) + np.float32(slope) * x

    base = float(line(np.float32(0.5)))
    told = is_hidden(base, slope, dtype_eps=EPS32, budget=14, terms=terms)
    assert told == (judge(line, 0.5, slope, budget=14, terms=terms).status is INCONCLUSIVE)
    assert not is_hidden(base, slope, dtype_eps=EPS32, budget=48, terms=terms)


def test_an_objective_may_end_the_search_itself() -> None:
    def limited(x: Any) -> Any:
        raise OutOfBudget

    assert judge(limited, 0.5, 1.0).status is INCONCLUSIVE


def test_noise_that_the_caller_knows_of_is_respected() -> None:
    rng = np.random.default_rng(1)

    def noisy(x: Any) -> float:
        return float(x) + 2e-4 * rng.standard_normal()

    assert judge(noisy, 0.5, 1.0, noise=5e-4).status is PASS
    assert judge(noisy, 0.5, 0.0, noise=5e-4).status is FAIL
    assert judge(noisy, 0.5, 1.03, noise=5e-4).status is not FAIL


@PRECISIONS
def test_noise_that_nobody_told_of_does_not_fail_an_exact_derivative(real: type) -> None:
    for seed in range(40):
        rng = np.random.default_rng(seed)
        level = 10.0 ** rng.uniform(-6, -1)

        def noisy(x: Any, rng: np.random.Generator = rng, level: float = level) -> float:
            return float(np.sin(x)) + level * rng.standard_normal()

        assert judge(noisy, 0.5, math.cos(0.5), real).status is not FAIL


def test_long_sums_in_single_precision_do_not_fail_an_exact_derivative() -> None:
    weights = np.linspace(0.5, 1.5, 20000, dtype=np.float32)[:, None]
    for seed in range(6):
        rng = np.random.default_rng(seed)
        leaf = rng.standard_normal(8).astype(np.float32)
        gradient = np.sum(weights * np.cos(weights * leaf.astype(np.float64)), axis=0)
        for direction in directions(leaf, gradient, rng):

            def total(step: float, leaf: Any = leaf, direction: Any = direction) -> float:
                return float(np.cumsum(np.sin(weights * direction.moved(leaf, step)), dtype=np.float32)[-1])

            assert judge_direction(total, direction.ad).status is not FAIL


def test_directions_are_of_several_kinds_and_claim_what_the_gradient_claims() -> None:
    rng = np.random.default_rng(0)
    leaf, gradient = rng.standard_normal((20, 3)).astype(np.float32), rng.standard_normal((20, 3))
    found = directions(leaf, gradient, rng, component_axes=1)
    assert [direction.kind for direction in found] == ["random", "gradient", "largest", "coordinate", "coordinate"]
    for direction in found:
        assert direction.vector.shape == leaf.shape
        assert direction.ad == pytest.approx(float(np.sum(gradient * direction.vector)))
        assert direction.moved(leaf, 1e-2).dtype == leaf.dtype
    moved = [np.count_nonzero(direction.vector) for direction in found]
    assert moved == [60, 60, 1, 1, 1]
    assert len({int(np.argmax(direction.vector != 0)) for direction in found[2:]}) == 3


def test_two_directions_at_once_move_and_claim_what_both_do() -> None:
    rng = np.random.default_rng(0)
    leaf, gradient = rng.standard_normal(50).astype(np.float32), rng.standard_normal(50)
    first, second = directions(leaf, gradient, rng)[:2]
    joint = both(second, first)
    assert joint.kind == "gradient"
    assert joint.ad == pytest.approx(float(np.sum(gradient * joint.vector)))
    assert joint.vector == pytest.approx(first.vector + second.vector)


def test_each_component_moves_by_a_share_of_its_own_size() -> None:
    rng = np.random.default_rng(0)
    leaf = rng.standard_normal((50, 2)) * np.array([1e5, 1e-3])
    (random, *_) = directions(leaf, np.ones_like(leaf), rng, component_axes=1)
    rms = np.sqrt(np.mean(random.vector**2, axis=0))
    assert rms[0] == pytest.approx(1e5, rel=0.5)
    assert rms[1] == pytest.approx(1e-3, rel=0.5)


def test_elements_of_mixed_units_move_by_a_share_of_themselves() -> None:
    leaf = np.array([1e6, 2e5, 3e-2, 4e-2, 5.0, 0.0])
    (random, *_) = directions(leaf, np.ones_like(leaf), np.random.default_rng(0))
    assert np.all(np.abs(random.vector[:5]) <= 1.5 * leaf[:5])
    assert random.vector[5] != 0.0


def test_a_zero_leaf_moves_by_units() -> None:
    found = directions(np.zeros(4), np.array([1.0, 0.0, 0.0, 0.0]), np.random.default_rng(0))
    assert np.all(np.abs(found[0].vector) <= 1.5)
    assert np.all(np.abs(found[0].vector) >= 0.5)


def test_a_coordinate_whose_gradient_is_no_number_is_the_largest() -> None:
    gradient = np.array([1.0, math.nan, 2.0, 3.0])
    found = {direction.kind: direction for direction in directions(np.ones(4), gradient, np.random.default_rng(0))}
    assert math.isnan(found["largest"].ad)
    assert math.isnan(found["random"].ad)


def test_leaves_of_few_elements_and_of_none() -> None:
    rng = np.random.default_rng(0)
    assert directions(np.zeros((0, 3)), np.zeros((0, 3)), rng) == ()
    assert [direction.kind for direction in directions(np.array(2.0), np.array(1.0), rng)] == ["largest"]
    assert len(directions(np.ones(2), np.ones(2), rng)) == 4


def direction(kind: str, status: GradientStatus, ad: float = 1.0, fd: float = 1.0, reason: str = "r") -> Direction:
    return Direction(kind, ad, fd, 0.0, 1e-2, status=status, reason=reason)


def test_one_failed_direction_fails_the_leaf() -> None:
    judged = combine([direction("random", PASS), direction("coordinate", FAIL, 1.0, 2.0, "told")])
    assert judged.status is FAIL
    assert (judged.ad, judged.fd, judged.relative_error) == (1.0, 2.0, 0.5)
    assert "told" in judged.reason


def test_one_coordinate_alone_does_not_pass_the_leaf() -> None:
    unclear = direction("random", INCONCLUSIVE)
    assert combine([unclear, direction("largest", PASS)]).status is INCONCLUSIVE
    assert combine([unclear, direction("largest", PASS), direction("coordinate", PASS)]).status is PASS
    assert combine([unclear, direction("gradient", PASS)]).status is PASS
    zero = direction("coordinate", PASS, 0.0, 0.0)
    assert combine([unclear, zero, zero]).status is INCONCLUSIVE


def test_a_leaf_without_influence_passes_and_a_flat_one_is_flat() -> None:
    zero = direction("random", PASS, 0.0, 0.0)
    assert combine([zero, zero]).status is PASS
    assert combine([zero, direction("largest", FLAT, 0.0, 0.0)]).status is FLAT
    assert combine([]).status is INCONCLUSIVE


def test_mixed_kinks_do_not_fail_a_leaf_unless_a_coordinate_fails() -> None:
    kink = direction("largest", PASS, reason="a kink at the starting point")
    mixed = direction("random", FAIL, 1.0, 2.0)
    assert combine([mixed, kink]).status is INCONCLUSIVE
    assert combine([mixed, kink, direction("coordinate", FAIL, 1.0, 3.0)]).status is FAIL
    assert combine([mixed, kink, direction("one-sided", PASS)]).status is PASS
    assert not wants_one_sided([mixed])
    assert not wants_one_sided([kink])


@pytest.mark.parametrize("slope", ["left", "right"])
def test_a_leaf_whose_coordinates_all_stand_on_kinks_passes_with_the_gradient_of_either_side(slope: str) -> None:
    rng = np.random.default_rng(3)
    leaf = np.zeros(30, dtype=np.float32)
    left, right = rng.standard_normal((2, 30)).astype(np.float32)

    def judged_with(gradient: Any) -> list[Direction]:
        def ask(vector: Any) -> Direction:
            def objective(step: float) -> float:
                x = vector.moved(leaf, step)
                return float(np.sum(np.where(x > 0, right * x, left * x), dtype=np.float32))

            return judge_direction(objective, vector.ad, kind=vector.kind)

        judged = [ask(vector) for vector in directions(leaf, gradient, rng)]
        return [*judged, ask(one_sided(leaf, gradient, rng))] if wants_one_sided(judged) else judged

    assert combine(judged_with(left if slope == "left" else right)).status is PASS
    assert combine(judged_with(3.0 * (left if slope == "left" else right))).status is FAIL


def test_a_gradient_that_is_no_number_has_no_relative_error() -> None:
    judged = combine([direction("largest", FAIL, math.nan, 2.0)])
    assert judged.status is FAIL
    assert judged.relative_error is None


@pytest.mark.parametrize("budget", [10, 14, 48])
def test_what_nothing_hangs_on_is_rightly_zero_however_few_evaluations_there_are(budget: int):
    judged = judge(lambda x: np.float32(4.2), 1.0, 0.0, budget=budget)
    assert judged.status is PASS, judged.reason
    assert judge(lambda x: np.float32(4.2), 1.0, 0.5, budget=budget).status is not PASS


@given(st.lists(st.floats(1e-12, 1e12), min_size=1, max_size=60), st.lists(st.floats(0.0, 1.0), min_size=1, max_size=4))
@settings(deadline=None)
def test_quantiles_are_numpys(values: list[float], shares: list[float]) -> None:
    assert quantiles(np.array(values), shares) == pytest.approx(np.quantile(np.array(values), shares), rel=1e-14)

"""Intervals cover what they claim to cover, and the formulas agree with scipy's own."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isinf, isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from dialsim.experiments.intervals import (
    Interval,
    Jump,
    Known,
    mean_interval,
    median_difference,
    paired_difference,
    quantile_interval,
    rank,
    share_beyond,
    share_difference,
    share_interval,
)

EXPERIMENTS = 400
Chance = np.random.Generator


def coverage(draw: Callable[[], Interval], truth: float) -> float:
    """The share of repeated experiments whose interval holds the truth."""
    intervals = [draw() for _ in range(EXPERIMENTS)]
    return sum(found.low <= truth <= found.high for found in intervals) / EXPERIMENTS


SAMPLES: dict[str, tuple[Callable[[Chance], NDArray[np.float64]], float]] = {
    "normal": (lambda chance: chance.normal(5.0, 2.0, 20), 5.0),
    "a makespan, the longest of 40": (
        lambda chance: chance.exponential(1.0, (25, 40)).max(axis=1),
        sum(1 / k for k in range(1, 41)),
    ),
    "people reached, binomial": (lambda chance: chance.binomial(300, 0.4, 20) * 1.0, 120.0),
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_95_percent_intervals_of_the_mean_cover_the_truth_95_times_in_100(kind: str) -> None:
    sample, truth = SAMPLES[kind]
    chance = np.random.default_rng(1)
    assert 0.92 <= coverage(lambda: mean_interval(sample(chance), 0.95), truth) <= 0.98


@pytest.mark.parametrize("share", [0.25, 0.5, 0.95])
def test_intervals_of_quantiles_cover_at_least_as_often_as_they_say(share: float) -> None:
    chance = np.random.default_rng(2)
    truth = float(stats.expon.ppf(share))
    found = coverage(lambda: quantile_interval(chance.exponential(1.0, 100), share, 0.95), truth)
    assert 0.94 <= found <= 0.99


@pytest.mark.parametrize("share", [0.02, 0.5, 0.95])
def test_intervals_of_shares_cover_at_least_as_often_as_they_say(share: float) -> None:
    chance = np.random.default_rng(3)
    found = coverage(
        lambda: share_interval(int(chance.binomial(60, share)), 60, (0.025, 0.025)), share
    )
    assert found >= 0.94


def test_mean_and_share_intervals_are_scipy_s() -> None:
    values = np.random.default_rng(4).normal(0.0, 3.0, 17)
    found = mean_interval(values, 0.9)
    theirs = stats.t.interval(0.9, 16, loc=values.mean(), scale=stats.sem(values))
    assert (found.low, found.high) == pytest.approx(theirs)
    share = share_interval(3, 40, (0.025, 0.025))
    exact = stats.binomtest(3, 40).proportion_ci(0.95, method="exact")
    assert (share.low, share.high) == pytest.approx((exact.low, exact.high))


def test_differences_have_scipy_s_p_values() -> None:
    chance = np.random.default_rng(5)
    first, second = chance.normal(1, 1, 15), chance.normal(0, 2, 15)
    paired = paired_difference(first, second, 0.95)
    theirs = stats.ttest_rel(first, second)
    assert paired.p_value == pytest.approx(theirs.pvalue)
    assert (paired.low, paired.high) == pytest.approx(tuple(theirs.confidence_interval(0.95)))


def test_an_unfinished_run_makes_the_mean_infinite_and_leaves_quantiles_alone() -> None:
    values = np.array([1.0, 2.0, 3.0, inf])
    mean = mean_interval(values, 0.95)
    assert isinf(mean.estimate)
    assert isnan(mean.low)
    assert quantile_interval(values, 0.5, 0.95).estimate == 2.0
    assert quantile_interval(values, 0.95, 0.95).estimate == inf


def test_too_few_runs_give_a_quantile_no_upper_limit() -> None:
    assert quantile_interval(np.arange(20.0), 0.95, 0.95).high == inf
    assert quantile_interval(np.arange(200.0), 0.95, 0.95).high < inf


def test_differences_with_unfinished_runs_have_no_interval_and_are_not_real() -> None:
    finite = np.arange(12.0)
    found = paired_difference(np.full(12, inf), finite, 0.95)
    assert (found.method, found.estimate, found.rose) == ("no interval", inf, 12)
    assert isnan(found.p_value)
    assert not found.real


def test_pairs_of_which_neither_finished_are_ties_and_leave_no_interval() -> None:
    chance = np.random.default_rng(6)
    baseline = np.concatenate([np.full(23, inf), chance.normal(1000.0, 9.0, 17)])
    values = baseline + np.concatenate([np.zeros(23), chance.normal(30.0, 5.0, 17)])
    found = paired_difference(values, baseline, 0.95)
    assert (found.method, found.pairs, found.rose, found.fell) == ("no interval", 40, 17, 0)
    assert all(isnan(x) for x in (found.estimate, found.low, found.high, found.p_value))
    none = paired_difference(np.full(5, inf), np.full(5, inf), 0.95)
    assert (none.method, none.rose, none.fell) == ("no interval", 0, 0)


def test_the_same_value_in_every_run_is_known_exactly_only_where_there_is_no_chance() -> None:
    same = np.full(7, 0.1)
    assert mean_interval(same, 0.95, Known(certain=True)) == Interval(0.1, 0.1, 0.1)
    assert quantile_interval(same, 0.95, 0.95, certain=True) == Interval(0.1, 0.1, 0.1)
    assert share_interval(7, 7, (0.025, 0.025), certain=True) == Interval(1.0, 1.0, 1.0)
    assert mean_interval(same, 0.95) == Interval(0.1, -inf, inf)
    # seven runs may have missed 1 − 0.025^(1/7) = 41 % of all, which may be 0, 1, or an hour later
    unseen = 1 - 0.025 ** (1 / 7)
    share = mean_interval(same, 0.95, Known(least=0.0, most=1.0))
    assert (share.low, share.high) == pytest.approx((0.1 - 0.1 * unseen, 0.1 + 0.9 * unseen))
    later = mean_interval(same, 0.95, Known(least=0.0, up=(Jump(3600.0),)))
    assert (later.low, later.high) == pytest.approx((0.1, 0.1 + 3600 * unseen))


def test_differences_that_are_alike_have_no_interval_unless_there_is_no_chance() -> None:
    values, baseline = np.full(7, 3.0), np.full(7, 1.0)
    certain = Known(certain=True), Known(certain=True)
    exact = paired_difference(values, baseline, 0.95, certain)
    assert (exact.low, exact.high, exact.p_value, exact.method) == (2.0, 2.0, 0.0, "no chance")
    alike = paired_difference(values, baseline, 0.95)
    assert (alike.estimate, alike.method) == (2.0, "no interval")
    assert isnan(alike.low)
    assert not alike.real
    two = paired_difference(values[:2], baseline[:2], 0.95)
    assert isnan(two.low)


@given(st.integers(1, 2000), st.integers(1, 99))
def test_a_quantile_is_the_least_value_that_so_many_runs_do_not_exceed(n: int, p: int) -> None:
    assert rank(n, p / 100) == max(1, -(-n * p // 100))


def test_the_median_of_differences_has_the_interval_that_the_sign_test_inverts() -> None:
    rng = np.random.default_rng(5)
    for count in (5, 6, 9, 20):
        base = rng.normal(size=count)
        values = base + rng.normal(0.4, 1.0, size=count)
        found = median_difference(values, base, 0.95)
        assert found.estimate == pytest.approx(np.median(values - base))
        excluded = not found.low <= 0 <= found.high
        assert excluded is (found.p_value <= 0.05 + 1e-12)
        opposite = median_difference(base, values, 0.95)
        assert (opposite.low, opposite.high) == (-found.high, -found.low)
    assert np.isinf(median_difference(values[:5], base[:5], 0.95).low)


def test_a_median_of_differences_covers_where_rare_runs_decide_the_mean() -> None:
    # the middle of pairs does not move with runs that go on for another day
    rng = np.random.default_rng(6)
    for count in (10, 20, 50):
        inside = 0
        for _ in range(300):
            base = rng.normal(0, 40, count) + 86_400 * (rng.random(count) < 0.057)
            values = rng.normal(-170, 40, count)
            found = median_difference(values, base, 0.95)
            inside += found.low <= TRUE_MEDIAN <= found.high
        assert inside >= 0.93 * 300


TRUE_MEDIAN = -170 - 4.05  # of N(-170, 40² + 40²) with 5.7 % of the pairs a day lower


@pytest.mark.parametrize("count", [10, 20, 50, 100])
def test_a_difference_of_shares_covers_and_tells_chance_from_more(count: int) -> None:
    rng = np.random.default_rng(count)
    for up, down in ((0.0, 0.0), (0.06, 0.0), (0.3, 0.3), (0.5, 0.5), (0.45, 0.05)):
        inside = real = 0
        for _ in range(200):
            drawn = rng.random(count)
            values, base = (drawn < up).astype(float), (drawn > 1 - down).astype(float)
            found = share_difference(values, base, 0.95)
            inside += found.low <= up - down <= found.high
            real += found.real
        assert inside >= 0.93 * 200
        assert up != down or real <= 0.05 * 200 + 5


def test_the_tail_of_distances_gives_an_estimate_and_a_limit_above_it() -> None:
    rng = np.random.default_rng(3)
    near = truth = 0.0
    for _ in range(200):
        distances = rng.normal(2.0, 1.0, 40)
        estimated, limit = share_beyond(distances), share_beyond(distances, 0.025)
        assert 0 < estimated <= limit
        near, truth = near + estimated / 200, float(stats.norm.cdf(-2.0))
    assert truth < near < 3 * truth  # a normal tail is lighter than an exponential one
    assert share_beyond(np.append(distances, -1.0), 0.025) == 1  # the event was seen
    assert share_beyond(np.full(40, 2.0)) == 0  # alike: nothing to estimate
    assert (share_beyond(np.arange(3.0)), share_beyond(np.arange(3.0), 0.025)) == (0, 1)


UNSEEN = 1 - 0.025 ** (1 / 20)


def test_a_jump_that_no_run_shows_is_as_rare_as_so_many_runs_tell() -> None:
    assert Jump(1.0).probability(20, 0.025) == pytest.approx(UNSEEN)
    # 20 runs stayed 9 h away from closing, with a spread of 3 min: no run will ever reach it
    far = np.random.default_rng(1).normal(9 * 3600.0, 180.0, 20)
    assert Jump(1.0, distances=far).probability(20, 0.025) < 1e-12
    near = np.random.default_rng(1).normal(400.0, 180.0, 20)
    assert 0.01 < Jump(1.0, distances=near).probability(20, 0.025) <= UNSEEN
    assert Jump(1.0, distances=near - near.min()).probability(20, 0.025) == pytest.approx(UNSEEN)
    # each of 20 runs had 3 incidents, and one of them rules the event out
    some = Jump(1.0, counts=np.full(20, 3.0)).probability(20, 0.025)
    assert np.exp(-3.0) < some < UNSEEN


def test_the_limit_of_an_exponential_tail_holds_as_often_as_it_says() -> None:
    chance = np.random.default_rng(7)
    edge = 4.0  # exceeded with a probability of exp(-4)
    for runs in (10, 20, 100):
        limits = [
            Jump(1.0, distances=edge - chance.exponential(1.0, runs)).probability(runs, 0.05)
            for _ in range(EXPERIMENTS)
        ]
        assert sum(limit >= np.exp(-edge) for limit in limits) / EXPERIMENTS >= 0.94


def test_a_jump_that_some_runs_show_has_clopper_and_pearson_s_limits() -> None:
    levels = np.repeat([0.0, 100.0], [18, 2])
    found = mean_interval(levels, 0.95, Known(levels=levels))
    share = share_interval(2, 20, (0.025, 0.025))
    assert (found.low, found.high) == pytest.approx((100 * share.low, 100 * share.high))
    beyond = mean_interval(levels, 0.95, Known(levels=levels, up=(Jump(100.0),)))
    assert beyond.high == pytest.approx(100 * (share.high + UNSEEN))


def test_a_control_of_which_the_mean_is_known_narrows_the_interval() -> None:
    chance = np.random.default_rng(8)
    rest, talk = chance.normal(50.0, 1.0, 20), chance.lognormal(0.0, 2.0, 20) - np.exp(2.0)
    known = Known(least=0.0, surplus=talk)
    found = mean_interval(rest + talk, 0.95, known)
    plain = mean_interval(rest, 0.95, Known(least=0.0))
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high))
    # where the runs vary more without it, it isn't used
    full = mean_interval(rest, 0.95, known)
    assert (full.low, full.high) == (plain.low, plain.high)
    settled = mean_interval(50.0 + talk, 0.95, Known(surplus=talk, settled=True))
    assert (settled.low, settled.high) == pytest.approx((50.0, 50.0))


def test_jumps_of_a_difference_go_both_ways() -> None:
    chance = np.random.default_rng(9)
    values, baseline = chance.normal(0.0, 1.0, 20), np.zeros(20)
    later, same = Known(up=(Jump(1000.0),)), Known()
    plain = paired_difference(values, baseline, 0.95)
    one = paired_difference(values, baseline, 0.95, (later, same))
    other = paired_difference(values, baseline, 0.95, (same, later))
    assert (one.low, one.high) == pytest.approx((plain.low, plain.high + 1000 * UNSEEN))
    assert (other.low, other.high) == pytest.approx((plain.low - 1000 * UNSEEN, plain.high))
    far = paired_difference(values + 50.0, baseline, 0.95, (later, later))
    assert not far.real
    assert 0.05 < far.p_value <= 1
    apart = paired_difference(values + 500.0, baseline, 0.95, (later, later))
    assert apart.real
    assert apart.p_value < 0.05

"""Distributions: a fine uniform grid must show the moments that were asked for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dialsim.engine.behaviour import durations, quantile, weibull_shape
from dialsim.scenario.distribution import distribution

GRID = (np.arange(1_000_000) + 0.5) / 1_000_000
SPREAD = {"mean": "75s", "sd": "60s"}


def lognormal() -> Any:
    sigma = math.sqrt(math.log(1 + (60 / 75) ** 2))
    return stats.lognorm(sigma, scale=75_000 * math.exp(-(sigma**2) / 2))


FAMILIES: list[tuple[dict[str, Any], Any]] = [
    ({"dist": "uniform", "low": "1s", "high": "3s"}, stats.uniform(1000, 2000)),
    ({"dist": "exponential", "mean": "60s"}, stats.expon(scale=60_000)),
    ({"dist": "lognormal", **SPREAD}, lognormal()),
    ({"dist": "gamma", **SPREAD}, stats.gamma((75 / 60) ** 2, scale=60_000**2 / 75_000)),
    (
        {"dist": "triangular", "low": "5s", "mode": "12s", "high": "30s"},
        stats.triang(7 / 25, 5000, 25_000),
    ),
]


@pytest.mark.parametrize(("given", "reference"), FAMILIES, ids=lambda v: str(v)[:24])
def test_quantiles_are_those_of_the_family(given: dict[str, Any], reference: Any) -> None:
    at = np.array([0.0, 0.001, 0.05, 0.25, 0.5, 0.75, 0.95, 0.999])
    assert quantile(distribution(given))(at) == pytest.approx(reference.ppf(at), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("dist", ["lognormal", "gamma", "weibull"])
@pytest.mark.parametrize("sd", ["5s", "60s", "75s", "120s"])
def test_mean_and_sd_are_the_ones_asked_for(dist: str, sd: str) -> None:
    drawn = durations(distribution({"dist": dist, "mean": "75s", "sd": sd}), GRID)
    assert drawn.mean() == pytest.approx(75_000, rel=0.001)
    assert drawn.std() == pytest.approx(float(sd[:-1]) * 1000, rel=0.01)


def test_mean_and_sd_of_the_families_without_an_sd() -> None:
    expected = {
        ("exponential", 60_000, 60_000): {"mean": "60s"},
        ("uniform", 2000, 2000 / math.sqrt(12)): {"low": "1s", "high": "3s"},
        # triangular: mean (a+b+c)/3, variance (a²+b²+c²−ab−ac−bc)/18
        ("triangular", 47_000 / 3, 1000 * math.sqrt((25 + 144 + 900 - 60 - 150 - 360) / 18)): {
            "low": "5s",
            "mode": "12s",
            "high": "30s",
        },
    }
    for (dist, mean, sd), given in expected.items():
        drawn = durations(distribution({"dist": dist, **given}), GRID)
        assert drawn.mean() == pytest.approx(mean, rel=0.001)
        assert drawn.std() == pytest.approx(sd, rel=0.001)


@pytest.mark.parametrize("variation", [0.01, 0.1, 0.5, 0.8, 1.0, 2.0, 10.0, 100.0])
def test_the_weibull_shape_has_the_variation_asked_for(variation: float) -> None:
    shape = weibull_shape(variation)
    assert stats.weibull_min.std(shape) / stats.weibull_min.mean(shape) == pytest.approx(
        variation, rel=1e-6
    )
    if variation == 1.0:
        assert shape == pytest.approx(1.0, rel=1e-9)  # the exponential distribution
    at = np.array([0.01, 0.5, 0.99])
    given = distribution({"dist": "weibull", "mean": "1000s", "sd": f"{1000 * variation}s"})
    scale = 1_000_000 / stats.weibull_min.mean(shape)
    expected = stats.weibull_min.ppf(at, shape, scale=scale)
    assert quantile(given)(at) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("dist", ["lognormal", "gamma", "weibull"])
def test_without_spread_all_draws_are_the_mean(dist: str) -> None:
    given = distribution({"dist": dist, "mean": "75s", "sd": "0s"})
    assert set(durations(given, GRID[::1000]).tolist()) == {75_000}


def test_a_constant_and_an_empty_range_are_one_value() -> None:
    same: list[object] = [
        "30s",
        {"dist": "constant", "value": "30s"},
        {"dist": "uniform", "low": "30s", "high": "30s"},
        {"dist": "triangular", "low": "30s", "mode": "30s", "high": "30s"},
    ]
    for given in same:
        assert set(durations(distribution(given), GRID[::1000]).tolist()) == {30_000}


def test_a_triangle_may_lean_to_either_side() -> None:
    for mode in ("10s", "20s"):
        given = {"dist": "triangular", "low": "10s", "mode": mode, "high": "20s"}
        drawn = durations(distribution(given), GRID)
        assert drawn.mean() == pytest.approx((30_000 + float(mode[:-1]) * 1000) / 3, rel=1e-4)
        assert (drawn.min(), drawn.max()) == pytest.approx((10_000, 20_000), rel=0.002)


def test_empirical_draws_are_the_measured_values_all_alike() -> None:
    given = distribution({"dist": "empirical", "values": ["3s", "1s", "2s", "2s"]})
    values, counts = np.unique(durations(given, GRID), return_counts=True)
    assert values.tolist() == [1000, 2000, 3000]
    assert counts.tolist() == [250_000, 500_000, 250_000]
    assert durations(given, np.array([0.0, 1 - 2**-53])).tolist() == [1000, 3000]


def test_what_lies_outside_min_and_max_is_moved_to_the_bound() -> None:
    given = {"dist": "exponential", "mean": "60s", "min": "10s", "max": "120s"}
    drawn = durations(distribution(given), GRID)
    assert (drawn.min(), drawn.max()) == (10_000, 120_000)
    assert (drawn == 10_000).mean() == pytest.approx(1 - math.exp(-1 / 6), abs=1e-4)
    assert (drawn == 120_000).mean() == pytest.approx(math.exp(-2), abs=1e-4)
    only_min = durations(distribution({"dist": "exponential", "mean": "60s", "min": "10s"}), GRID)
    assert only_min.min() == 10_000
    assert only_min.max() > 700_000
    only_max = durations(distribution({"dist": "exponential", "mean": "60s", "max": "10s"}), GRID)
    assert (only_max.min(), only_max.max()) == (0, 10_000)
    assert (
        durations(distribution({"dist": "constant", "value": "5s", "max": "2s"}), GRID[:1]) == 2000
    )


def test_t1_durations_are_whole_milliseconds_rounded_half_up() -> None:
    for low, expected in (("0ms", [0, 1, 1]), ("1ms", [1, 2, 2]), ("2ms", [2, 3, 3])):
        given = distribution({"dist": "uniform", "low": low, "high": f"{int(low[0]) + 1}ms"})
        drawn = durations(given, np.array([0.4999, 0.5, 0.5001]))
        assert drawn.dtype == np.int64
        assert drawn.tolist() == expected

"""Looks: however often a value is looked at, "sure" is wrong no more often than stated."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dialsim.experiments.sequential import Looks

EXPERIMENTS = 20_000


def test_each_look_has_half_as_many_runs_again() -> None:
    assert Looks.between(8, 60).counts == (8, 12, 18, 27, 41, 60)
    assert Looks.between(25, 25).counts == (25,)


def test_a_single_look_is_an_ordinary_interval() -> None:
    alone = Looks((100,))
    assert alone.of_share(0.95, 100, 0.95) == pytest.approx((0.025, 0.025))
    assert alone.of_mean(100, 0.95) == pytest.approx((0.025, 0.025))


@pytest.mark.parametrize("share", [0.5, 0.9, 0.95])
def test_a_share_at_its_bound_is_called_greater_or_smaller_no_more_often_than_stated(
    share: float,
) -> None:
    looks = Looks.between(8, 400)
    runs = np.random.default_rng(1).random((EXPERIMENTS, 400)) < share
    hits = np.cumsum(runs, axis=1)
    greater, smaller = np.zeros((2, EXPERIMENTS), dtype=bool)
    for count in looks.counts:
        tails, so_far = looks.of_share(share, count, 0.95), hits[:, count - 1]
        greater |= stats.binom.sf(so_far - 1, count, share) <= tails.low
        smaller |= stats.binom.cdf(so_far, count, share) <= tails.high
    # exact: at most 2.5 %, of which 20,000 experiments show up to 2.85 %; and not much less
    assert 0.019 < greater.mean() < 0.0285
    assert 0.019 < smaller.mean() < 0.0285


def test_a_normal_mean_at_its_bound_is_called_greater_no_more_often_than_stated() -> None:
    looks = Looks.between(8, 400)
    values = np.random.default_rng(2).normal(size=(EXPERIMENTS // 4, 400))
    greater = np.zeros(len(values), dtype=bool)
    for count in looks.counts:
        if count < 20:
            continue  # of so few runs no mean is sure
        part = values[:, :count]
        score = part.mean(axis=1) / part.std(axis=1, ddof=1) * np.sqrt(count)
        greater |= stats.t.sf(score, count - 1) <= looks.of_mean(count, 0.95).low
    assert greater.mean() < 0.032


def test_no_error_is_spent_on_looks_that_can_not_be_sure() -> None:
    # 62 of 62 runs can't put a share above 95 %: 0.95^62 = 4.2 %; so 93 may spend all until then
    looks = Looks.between(8, 400)
    assert looks.least(0.95, 0.95) == 93
    assert looks.of_share(0.95, 93, 0.95).low == pytest.approx(0.025 * (93 / 400) ** 0.5)
    assert not looks.can_tell(0.999, 0.95)


@pytest.mark.parametrize(
    ("share", "hits", "count"), [(0.95, 60, 62), (0.95, 133, 140), (0.5, 30, 62)]
)
def test_the_prospect_of_a_share_is_how_often_further_runs_tell(
    share: float, hits: int, count: int
) -> None:
    looks, chance = Looks.between(8, 400), np.random.default_rng(3)
    drawn = chance.beta(hits + 0.5, count - hits + 0.5, EXPERIMENTS)
    last = hits + chance.binomial(400 - count, drawn)
    tails = looks.of_share(share, 400, 0.95)
    greater = (stats.binom.sf(last - 1, 400, share) <= tails.low).mean()
    smaller = (stats.binom.cdf(last, 400, share) <= tails.high).mean()
    found = looks.prospect_of_share(share, hits, count, 0.95)
    assert found == pytest.approx((greater, smaller), abs=0.012)


def test_the_prospect_of_a_mean_is_certain_far_from_its_bound_and_none_at_it() -> None:
    looks = Looks.between(8, 400)
    assert looks.prospect_of_mean(10.0, 1.0, 93, 0.95) > 0.999
    near, nearer = (looks.prospect_of_mean(distance, 1.0, 315, 0.95) for distance in (0.5, 0.1))
    assert nearer < near
    assert nearer < 0.05

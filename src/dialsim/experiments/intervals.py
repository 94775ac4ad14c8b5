"""Confidence intervals of estimates from n replications.

A limit that the runs do not support is missing: infinite, or NaN without any interval.
`docs/experiments.md` explains the methods; the sources are:

- Means: Student's t interval (Law 2015, "Simulation Modeling and Analysis", section 4.5), for a
  positive figure upwards on the scale of logarithms. If the logarithms are not skewed to the left,
  also the interval of a log-normal mean (Zou, Taleban & Huo 2009, "Confidence interval estimation
  for lognormal data with application to health economics", Computational Statistics & Data Analysis
  53); the wider limits count. For rare counts the exact Poisson interval (Garwood 1936). A limit on
  a side with too much skew for the runs is missing: Cochran's rule requires n > 25 G1² ("Sampling
  Techniques", 1977, page 42), G1 the coefficient of skewness. Missing limits, and those of equal
  runs, are completed from known limits of the figure, if any (`Support`).
- Quantiles: order statistics. The interval from the l-th to the u-th smallest value covers the
  p-quantile of any continuous distribution with P(l ≤ B < u), B binomial(n, p) (David & Nagaraja
  2003, "Order Statistics", section 7.1). It is infinite if n is too small for a limit.
- Shares: Clopper and Pearson 1934, which is conservative.
- Differences: t of the differences of pairs; without pairs, Welch 1947.
- Differences that are infinite, equal or too skewed: the sign test (Dixon & Mood 1946), without an
  interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import ceil, comb, exp, inf, isfinite, log, nan, sqrt

import numpy as np
from numpy.typing import NDArray

from dialsim.experiments.prior import Prior
from dialsim.results.figures import Unit, is_instant, unit_of

Values = NDArray[np.float64]

BY_ORDER, BY_SHARES = "order statistics", "exact shares"
"""Methods of differences of medians, and of shares of runs."""
CONFIDENCE = 0.95
"""Confidence level of pages and precisions."""
FEWEST = 3
"""Fewest runs, or pairs of runs, for an estimate of their spread."""
_COCHRAN = 25
_SKEWED = 1.645
"""Standard errors from 0 beyond which a coefficient of skewness is significant (10 %)."""
_LEAST_TO_JUDGE = 8
"""Fewest values for a judgement of the coefficient of skewness."""
_WIDE, _USELESS = 3, 1000
"""Multiples of the mean at which an upper limit calls for more runs, and at which it is dropped."""
_RARE = 5
"""Mean below which counts are treated as rare."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and its confidence interval.

    A missing limit is infinite, or NaN without an interval. `enough` is the approximate number of
    runs needed if these are too few or too skewed; None if they suffice, or if unknown.
    """

    estimate: float
    low: float
    high: float
    enough: int | None = None


NO_INTERVAL = Interval(nan, nan, nan)


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference of a mean, a median or a share, its interval and its two-sided p-value.

    Of `pairs` pairs, `rose` have a greater value than the baseline and `fell` a smaller one; all
    three are 0 without pairs.
    """

    estimate: float
    low: float
    high: float
    p_value: float
    method: str
    pairs: int = 0
    rose: int = 0
    fell: int = 0

    @property
    def real(self) -> bool:
        """True if the difference is significant, with 95 % confidence."""
        return self.p_value < 1 - CONFIDENCE


@dataclass(frozen=True, slots=True)
class Support:
    """Limits on a figure's values that are known before any run.

    `certain` is True if all runs have the same value. `spill` is how far a run may lie beyond all
    observed runs. `least` and `most` are the limits of possible values.
    """

    certain: bool = False
    spill: float = 0.0
    least: float = -inf
    most: float = inf

    @classmethod
    def of(cls, column: str, prior: Prior) -> Support:
        """Return the support of a figure, given its table column. Instants are in seconds."""
        return cls(
            certain=prior.certain(column),
            spill=prior.spill_ms / 1000 if is_instant(column) else 0.0,
            least=0.0,
            most=1.0 if unit_of(column) is Unit.SHARE else inf,
        )


ANY = Support()


def mean_interval(values: Values, confidence: float, support: Support = ANY) -> Interval:
    """Return the mean with its interval; an infinite value gives an infinite mean without interval.

    If the spread of the runs gives no limit, because they are equal or too skewed, the limit is the
    greatest effect of unobserved runs: at most a share `unseen_share` of all, each as far off as
    possible. A figure without limits has no limit there.
    """
    from scipy import stats

    count = len(values)
    if not count:
        return Interval(nan, nan, nan)
    if not np.isfinite(values).all():
        return Interval(float(values.sum()), nan, nan)
    alike = values.min() == values.max()
    # The mean of equal values can be off in its last digit.
    mean = float(values[0] if alike else values.mean())
    # Without randomness one run is enough.
    if alike and support.certain:
        return Interval(mean, mean, mean)
    if count < FEWEST:
        return Interval(mean, nan, nan, FEWEST)
    if not alike and _rare_count(values):
        total, tail = float(values.sum()), (1.0 - confidence) / 2.0
        low = float(stats.gamma.ppf(tail, total)) / count  # Garwood 1936
        high = float(stats.gamma.isf(tail, total + 1.0)) / count
        return Interval(mean, low, min(high, support.most))
    low, high, judged = (mean, mean, values) if alike else _limits(values, confidence)
    enough = _enough(values, judged, support)
    skew = skewness(judged) if enough else 0.0
    if values.min() > 0 and high > _WIDE * mean and enough is None:
        # runs needed for a limit of twice the mean
        enough = ceil(count * (log(min(high / mean, 1e9)) / log(2.0)) ** 2)
        # A limit of a thousand times the mean only looks like information.
        high = high if high < _USELESS * mean else inf
    unseen = unseen_share(count, confidence)
    if support.spill:
        low -= unseen * (mean - float(values.min()) + support.spill)
        high += unseen * (float(values.max()) - mean + support.spill)
    # Equal values have no spread to estimate: only the share of unseen runs bounds the mean.
    untold = alike and not support.spill
    if untold or skew < 0:
        low -= unseen * (mean - support.least)
    if untold or skew > 0:
        high += unseen * (support.most - mean)
    return Interval(mean, max(low, support.least), min(high, support.most), enough)


def unseen_share(count: int, confidence: float) -> float:
    """Return the greatest share of runs that can be of a kind that `count` runs have not shown."""
    return float(1.0 - ((1.0 - confidence) / 2.0) ** (1.0 / count))


def _limits(values: Values, confidence: float) -> tuple[float, float, Values]:
    """Return the limits of the mean, and the scale on which its skewness is judged."""
    count, mean = len(values), float(values.mean())
    half = _t(count - 1, confidence) * float(values.std(ddof=1)) / sqrt(count)
    low, high = mean - half, mean + half
    if values.min() > 0:
        high = mean * exp(min(half / mean, 700.0))  # symmetric on the scale of logarithms
        logs = np.log(values)
        # Log-normal figures are not skewed to the left on this scale.
        if skewness(logs) >= 0:
            lowest, highest = _lognormal_limits(logs, confidence)
            return min(low, lowest), max(high, highest), logs
    return low, high, values


def _lognormal_limits(logs: Values, confidence: float) -> tuple[float, float]:
    """Return limits of a log-normal mean exp(μ + σ²/2), combined from the intervals of both
    terms.
    """
    from scipy import stats

    count, tail = len(logs), (1.0 - confidence) / 2.0
    freedom, half_variance = count - 1, float(logs.var(ddof=1)) / 2.0
    of_mean = _t(freedom, confidence) * sqrt(2.0 * half_variance / count)
    below = half_variance * (1.0 - freedom / float(stats.chi2.isf(tail, freedom)))
    above = half_variance * (freedom / float(stats.chi2.ppf(tail, freedom)) - 1.0)
    middle = float(logs.mean()) + half_variance
    upper = middle + sqrt(of_mean**2 + above**2)
    return exp(middle - sqrt(of_mean**2 + below**2)), exp(upper) if upper < log(1e300) else inf


def _t(freedom: float, confidence: float) -> float:
    """Return the two-sided t quantile: P(|T| ≤ t) = confidence."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1.0 + confidence) / 2.0))


def _enough(values: Values, judged: Values, support: Support) -> int | None:
    """Return the approximate number of runs that a skewed figure needs; None if these suffice."""
    if np.ptp(values) <= 2 * support.spill or not (skew := skewness(judged)):
        return None
    of_values = skew if judged is values else skewness(values)
    needed = ceil(_COCHRAN * max(abs(of_values), abs(skew)) ** 2)
    return needed if needed > len(values) else None


def skewness(values: Values) -> float:
    """Return the coefficient of skewness G1; 0 if not significant, or for few values."""
    count = len(values)
    if count < _LEAST_TO_JUDGE or np.ptp(values) == 0:
        return 0.0
    deviations = values - values.mean()
    moments = float((deviations**2).mean()), float((deviations**3).mean())
    coefficient = sqrt(count * (count - 1)) / (count - 2) * moments[1] / moments[0] ** 1.5
    error = sqrt(6 * count * (count - 1) / ((count - 2) * (count + 1) * (count + 3)))
    return coefficient if abs(coefficient) > _SKEWED * error else 0.0


def _rare_count(values: Values) -> bool:
    """Return True for counts of rare events with no more spread than a Poisson distribution."""
    from scipy import stats

    mean = float(values.mean())
    if values.min() != 0 or mean >= _RARE or (values != np.floor(values)).any():
        return False
    dispersion = float(((values - mean) ** 2).sum()) / mean
    return dispersion <= float(stats.chi2.isf(0.01, len(values) - 1))


def quantile_interval(
    values: Values, share: float, confidence: float, certain: bool = False
) -> Interval:
    """Return a quantile with limits that are values themselves; infinite with too few values."""
    count = len(values)
    if not count:
        return Interval(nan, nan, nan)
    if certain and values.min() == values.max():
        return Interval(float(values[0]), float(values[0]), float(values[0]))
    ordered = np.concatenate([[-inf], np.sort(values), [inf]])
    low, high = _ranks_of_limits(count, share, confidence)
    missing = low == 0 or high == count + 1
    middle, lower, upper = (float(ordered[place]) for place in (rank(count, share), low, high))
    # The number of runs that a limit needs is known beforehand.
    enough = runs_for_quantile(share, confidence) if missing else None
    return Interval(middle, lower, upper, enough)


# Cached: a table asks for the same ranks for every figure, and scipy takes longer than all the
# rest.
@cache
def _ranks_of_limits(count: int, share: float, confidence: float) -> tuple[int, int]:
    """Return the ranks of a quantile's limits; 0 and n + 1 for missing ones."""
    from scipy.special import bdtr

    # P(B ≤ k), k = 0 … n
    below = bdtr(np.arange(count + 1), count, share)
    tail = (1.0 - confidence) / 2.0
    low = int(np.searchsorted(below, tail, side="right"))
    return low, int(np.searchsorted(below, 1.0 - tail)) + 1


def runs_for_quantile(share: float, confidence: float) -> int:
    """Return the least number of runs that give a quantile both limits."""
    tail = (1.0 - confidence) / 2.0
    return ceil(log(tail) / log(max(share, 1.0 - share)) - 1e-9)


def rank(count: int, share: float) -> int:
    """Return the rank, from 1, of the quantile: ⌈n·share⌉, safe from rounding."""
    # 100 · 0.55 is 55.00000000000001 in floats.
    return max(1, ceil(count * share - 1e-9))


def share_interval(
    hits: int, count: int, tails: tuple[float, float], certain: bool = False
) -> Interval:
    """Return a share with its Clopper-Pearson interval.

    `tails` are the error probabilities of the lower and the upper limit.
    """
    from scipy.special import betainccinv, betaincinv

    if certain and hits in (0, count):
        return Interval(hits / count, hits / count, hits / count)
    # Equal to stats.binomtest(…).proportion_ci, which finds the limits by search and takes 200
    # times as long.
    low = float(betaincinv(hits, count - hits + 1, tails[0])) if hits else 0.0
    high = float(betainccinv(hits + 1, count - hits, tails[1])) if hits < count else 1.0
    return Interval(hits / count, low, high)


def paired_difference(
    values: Values, baseline: Values, confidence: float, certain: bool = False
) -> Difference:
    """Return the difference of pairs with common random numbers: values − baseline.

    A pair in which neither finished is a tie. `certain` is True if the difference is the same in
    all pairs because nothing in it is random.
    """
    with np.errstate(invalid="ignore"):
        every = np.where(values == baseline, 0.0, values - baseline)
    both = ~np.isnan(every)
    differences, count = every[both], int(both.sum())
    infinite = bool(np.isinf(values[both]).any() or np.isinf(baseline[both]).any())
    alike = count > 0 and not infinite and _alike(differences, values[both], baseline[both])
    # Sums of money may be off in their last digits.
    if alike:
        differences = np.full(count, _mean_of_alike(differences, values[both]))
    signs = count, int((differences > 0).sum()), int((differences < 0).sum())
    if certain and alike:
        same = float(differences[0])
        return Difference(same, same, same, float(same == 0), "no chance", *signs)
    estimate = _mean_of_pairs(differences, infinite)
    if count < FEWEST or infinite or np.ptp(differences) == 0 or _too_skewed(differences):
        p_value = sign_test(*signs[1:]) if count else nan
        return Difference(estimate, nan, nan, p_value, "sign test", *signs)
    # scipy.stats takes a second to load, which one sentence of a small run is not worth
    from scipy.special import stdtr

    error = float(differences.std(ddof=1)) / sqrt(count)  # infinite pairs that tie are 0 here
    p_value = 2.0 * float(stdtr(count - 1, -abs(estimate) / error))
    half = _t(count - 1, confidence) * error
    return Difference(estimate, estimate - half, estimate + half, p_value, "paired t", *signs)


_LAST_DIGITS = 1e-12


def _alike(differences: Values, *sides: Values) -> bool:
    """Return True if differences are equal except for the last digits of the sides."""
    scale = max(float(np.abs(side).max()) for side in sides)
    return bool(np.ptp(differences) <= _LAST_DIGITS * scale)


def _mean_of_alike(differences: Values, values: Values) -> float:
    middle = float(np.median(differences))
    return 0.0 if abs(middle) <= _LAST_DIGITS * float(np.abs(values).max()) else middle


def _mean_of_pairs(differences: Values, infinite: bool) -> float:
    """Return the mean difference; infinite or NaN if runs did not finish."""
    if not len(differences):
        return nan
    if not infinite:
        same = differences.min() == differences.max()
        return float(differences[0] if same else differences.mean())
    later, earlier = np.isposinf(differences).any(), np.isneginf(differences).any()
    # Infinity minus infinity has no value.
    if later == earlier:  # some of each, or only pairs in which neither finished
        return nan
    return inf if later else -inf


def _too_skewed(differences: Values) -> bool:
    return _enough(differences, differences, ANY) is not None


def sign_test(rose: int, fell: int) -> float:
    """Return the p-value of the sign test; ties do not count."""
    return _two_sided(max(rose, fell), rose + fell)


def _two_sided(most: int, count: int) -> float:
    """Return twice the probability of `most` heads or more in `count` tosses, at most 1."""
    tail = sum(comb(count, hits) for hits in range(most, count + 1))
    return min(1.0, float(2 * tail / 2**count))


def unpaired_difference(
    values: Values, baseline: Values, confidence: float, certain: bool = False
) -> Difference:
    """Return the difference of two samples treated as independent, without common random
    numbers.
    """
    from scipy import stats

    sides = values[~np.isnan(values)], baseline[~np.isnan(baseline)]
    if not all(len(side) and np.isfinite(side).all() for side in sides):
        return Difference(nan, nan, nan, nan, "Welch t")
    estimate = float(sides[0].mean() - sides[1].mean())
    if certain:
        return Difference(estimate, estimate, estimate, float(estimate == 0), "no chance")
    alike = all(np.ptp(side) == 0 for side in sides)
    if alike or any(len(side) < FEWEST or _too_skewed(side) for side in sides):
        return Difference(estimate, nan, nan, nan, "Welch t")
    found = stats.ttest_ind(*sides, equal_var=False)
    low, high = map(float, found.confidence_interval(confidence))
    return Difference(estimate, low, high, float(found.pvalue), "Welch t")


def figure_difference(column: str, sides: tuple[Values, Values], certain: bool) -> Difference:
    """Compare the paired values of a figure: an instant by its median, another by its mean."""
    compare = median_difference if is_instant(column) else paired_difference
    return compare(*sides, CONFIDENCE, certain)


def median_difference(
    values: Values,
    baseline: Values,
    confidence: float,
    certain: bool = False,
    *,
    paired: bool = True,
) -> Difference:
    """Median of values − baseline over pairs, with an order-statistic interval.

    The interval is distribution-free and accepts infinite values; a pair of which neither finished
    is a tie. The p-value is the least error level whose interval excludes 0. Without pairs, the
    estimate is the difference of the medians, and the interval combines one interval for each
    median, with half of the error each (Bonferroni). A limit is infinite where the runs are too
    few.
    """
    if not paired:
        return _unpaired_medians(values, baseline, confidence, certain)
    with np.errstate(invalid="ignore"):
        every = np.where(values == baseline, 0.0, values - baseline)
    differences = np.sort(every[~np.isnan(every)])
    count = len(differences)
    if not count:
        return Difference(nan, nan, nan, nan, BY_ORDER)
    found = quantile_interval(differences, 0.5, confidence, certain)
    rose, fell = int((differences > 0).sum()), int((differences < 0).sum())
    estimate = _median(differences)
    if certain and found.low == found.high:
        return Difference(
            estimate, estimate, estimate, float(estimate == 0), "no chance", count, rose, fell
        )
    p_value = _two_sided(max(rose, fell), count)
    return Difference(estimate, found.low, found.high, p_value, BY_ORDER, count, rose, fell)


def _unpaired_medians(
    values: Values, baseline: Values, confidence: float, certain: bool
) -> Difference:
    sides = [np.sort(side[~np.isnan(side)]) for side in (values, baseline)]
    if not all(map(len, sides)):
        return Difference(nan, nan, nan, nan, BY_ORDER)

    def limits(level: float) -> tuple[float, float]:
        half = (1.0 + level) / 2.0
        mine, base = (quantile_interval(side, 0.5, half, certain) for side in sides)
        return mine.low - base.high, mine.high - base.low

    with np.errstate(invalid="ignore"):
        estimate = float(np.float64(_median(sides[0])) - _median(sides[1]))
        low, high = limits(confidence)
        errors = np.geomspace(1e-6, 1.0, 61)[:-1]
        excluding = (e for e in errors if (ends := limits(1.0 - e))[0] > 0 or ends[1] < 0)
        p_value = float(next(excluding, 1.0))
    return Difference(estimate, low, high, p_value, BY_ORDER)


def _median(ordered: Values) -> float:
    """Median of sorted values; the lower of the middle two where their mean is undefined."""
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return float((low + high) / 2 if isfinite(low) and isfinite(high) else low)


def share_difference(
    values: Values,
    baseline: Values,
    confidence: float,
    certain: bool = False,
    *,
    paired: bool = True,
) -> Difference:
    """Difference of two shares of runs; values are 1 where a run has the property, and else 0.

    Over pairs it is the share of pairs that rose minus the share that fell. The limits combine
    Clopper-Pearson limits of both shares (Bonferroni). 0 is excluded by the exact test of McNemar
    (1947), which is the sign test of the pairs that differ; a limit on the wrong side of 0 then
    moves to 0. Without pairs the test is Fisher's. Covers at least as often as it promises.
    """
    if paired:
        known = ~(np.isnan(values) | np.isnan(baseline))
        counts = [int(known.sum())] * 2
        hits = [int((values > baseline).sum()), int((values < baseline).sum())]
        signs = counts[0], *hits
        p_value = sign_test(*hits)
    else:
        sides = [side[~np.isnan(side)] for side in (values, baseline)]
        counts, hits, signs = [*map(len, sides)], [int(side.sum()) for side in sides], (0, 0, 0)
        misses = [count - hit for count, hit in zip(counts, hits, strict=True)]
        from scipy import stats

        p_value = float(stats.fisher_exact([hits, misses])[1])
    if not all(counts):
        return Difference(nan, nan, nan, nan, BY_SHARES)
    tail = (1.0 - confidence) / 4.0
    up, down = (
        share_interval(hit, count, (tail, tail), certain)
        for hit, count in zip(hits, counts, strict=True)
    )
    estimate, low, high = up.estimate - down.estimate, up.low - down.high, up.high - down.low
    # The exact test decides. The interval, combined from two, is wider and must not contradict it.
    if p_value < 1.0 - confidence:
        low, high = (max(low, 0.0), high) if estimate > 0 else (low, min(high, 0.0))
    return Difference(estimate, low, high, p_value, BY_SHARES, *signs)

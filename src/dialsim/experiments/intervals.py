"""Intervals: how far off an estimate from n replications may be.

- Means: Student's t interval, mean ± t s/√n. Exact for normal figures, and good for others by the
  central limit theorem (Law 2015, "Simulation Modeling and Analysis", section 4.5).
- Quantiles: order statistics. The interval from the l-th to the u-th smallest value covers the
  p-quantile of any continuous distribution with P(l ≤ B < u), B binomial(n, p) (David & Nagaraja
  2003, "Order Statistics", section 7.1). It is infinite where n is too small for a limit.
- Shares: Clopper and Pearson 1934, which covers at least as often as it says.
- Differences: t of the differences of pairs; without pairs, Welch 1947.
- Differences of which some are infinite: the sign test (Dixon & Mood 1946), without an interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, nan, sqrt

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and its confidence interval; NaN where there is none."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean difference, its interval, and the two-sided p-value of there being none."""

    estimate: float
    low: float
    high: float
    p_value: float
    method: str


def mean_interval(values: Values, confidence: float) -> Interval:
    """The mean with its t interval. Where a value is infinite so is the mean, without interval."""
    count = len(values)
    if not count:
        return Interval(nan, nan, nan)
    if not np.isfinite(values).all():
        return Interval(float(values.sum()), nan, nan)
    if values.min() == values.max():
        same = float(values[0])  # not the mean: a sum may be off in its last digit
        return Interval(same, same, same) if count > 1 else Interval(same, nan, nan)
    mean = float(values.mean())
    half = t_quantile(count - 1, confidence) * float(values.std(ddof=1)) / sqrt(count)
    return Interval(mean, mean - half, mean + half)


def t_quantile(freedom: float, confidence: float) -> float:
    """The two-sided t quantile: P(|T| ≤ t) = confidence."""
    from scipy import special

    return float(special.stdtrit(freedom, (1.0 + confidence) / 2.0))


def quantile_interval(values: Values, share: float, confidence: float) -> Interval:
    """The quantile as the ⌈n·share⌉-th smallest value, with its order-statistic interval."""
    from scipy import special

    count = len(values)
    if not count:
        return Interval(nan, nan, nan)
    ordered = np.concatenate([[-inf], np.sort(values), [inf]])
    below = special.bdtr(np.arange(count + 1), count, share)  # P(B ≤ k), k = 0 … n
    tail = (1.0 - confidence) / 2.0
    low = int(np.searchsorted(below, tail, side="right"))
    high = int(np.searchsorted(below, 1.0 - tail)) + 1
    middle = rank(count, share)
    return Interval(float(ordered[middle]), float(ordered[low]), float(ordered[high]))


def rank(count: int, share: float) -> int:
    """The rank, from 1, of the value that is the quantile: ⌈n·share⌉, safe from rounding."""
    return max(1, ceil(count * share - 1e-9))


def share_interval(hits: int, count: int, confidence: float) -> Interval:
    """A share with its Clopper-Pearson interval."""
    from scipy import special

    tail = (1.0 - confidence) / 2.0
    low = float(special.betaincinv(hits, count - hits + 1, tail)) if hits else 0.0
    high = float(special.betaincinv(hits + 1, count - hits, 1.0 - tail)) if hits < count else 1.0
    return Interval(hits / count, low, high)


def paired_difference(values: Values, baseline: Values, confidence: float) -> Difference:
    """Of pairs that met the same chance: values − baseline, pair by pair."""
    with np.errstate(invalid="ignore"):
        differences = np.where(values == baseline, 0.0, values - baseline)
    differences = differences[~np.isnan(differences)]
    if not np.isfinite(differences).all():
        return _by_signs(differences)
    interval = mean_interval(differences, confidence)
    spread = (
        float(differences.std(ddof=1)) / sqrt(len(differences)) if len(differences) > 1 else nan
    )
    return _difference(interval, spread, len(differences) - 1, "paired t")


def unpaired_difference(values: Values, baseline: Values, confidence: float) -> Difference:
    """Of two samples as if independent: what would be known without common random numbers."""
    values, baseline = values[~np.isnan(values)], baseline[~np.isnan(baseline)]
    sizes = len(values), len(baseline)
    if min(sizes) < 2 or not (np.isfinite(values).all() and np.isfinite(baseline).all()):
        return Difference(nan, nan, nan, nan, "Welch t")
    parts = [float(part.var(ddof=1)) / len(part) for part in (values, baseline)]
    spread = sqrt(sum(parts))
    estimate = float(values.mean() - baseline.mean())
    if spread == 0:
        return _difference(Interval(estimate, estimate, estimate), 0.0, 1, "Welch t")
    terms = [part**2 / (size - 1) for part, size in zip(parts, sizes, strict=True)]
    freedom = spread**4 / sum(terms)
    half = t_quantile(freedom, confidence) * spread
    interval = Interval(estimate, estimate - half, estimate + half)
    return _difference(interval, spread, freedom, "Welch t")


def _difference(interval: Interval, spread: float, freedom: float, method: str) -> Difference:
    from scipy import special

    if spread > 0:
        p_value = 2.0 * float(special.stdtr(freedom, -abs(interval.estimate) / spread))
    else:
        p_value = nan if np.isnan(spread) else float(interval.estimate == 0.0)
    return Difference(interval.estimate, interval.low, interval.high, p_value, method)


def _by_signs(differences: Values) -> Difference:
    """Whether more pairs rose than fell; a mean of infinite differences says nothing."""
    from scipy import special

    rose, fell = int((differences > 0).sum()), int((differences < 0).sum())
    estimate = (
        nan
        if np.isposinf(differences).any() and np.isneginf(differences).any()
        else (inf if np.isposinf(differences).any() else -inf)
    )
    p_value = min(1.0, 2.0 * float(special.bdtr(min(rose, fell), rose + fell, 0.5)))
    return Difference(estimate, nan, nan, p_value, "sign test")

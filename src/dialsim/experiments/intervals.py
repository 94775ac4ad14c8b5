"""Confidence intervals of estimates from n replications.

A limit that the runs do not support is missing: infinite, or NaN without any interval.
`docs/experiments.md` explains the methods; the sources are:

- Means: Student's t interval (Law 2015, "Simulation Modeling and Analysis", section 4.5), for a
  positive figure with an upper limit on the scale of logarithms. If the logarithms are not skewed
  to the left, also the interval of a log-normal mean (Zou, Taleban & Huo 2009, "Confidence interval
  estimation for lognormal data with application to health economics", Computational Statistics &
  Data Analysis 53); the wider limits count. For rare counts the exact Poisson interval (Garwood
  1936). A limit on a side with too much skew for the runs is missing: Cochran's rule requires n >
  25 G1² ("Sampling Techniques", 1977, page 42), G1 the coefficient of skewness.
- Known inputs: a control variate with expectation 0 is subtracted first (Lavenberg & Welch 1981, "A
  perspective on the use of control variables to increase the efficiency of Monte Carlo
  simulations", Management Science 27; Law 2015, section 11.4), unless runs are
  cut off and vary less without this step.
- Jumps: `Jump` bounds the probability of an event that the runs have not shown. The share of runs
  in which an event was seen has the limits of Clopper & Pearson. Both widen the interval of the
  values without jumps.
- Quantiles: order statistics. The interval from the l-th to the u-th smallest value covers the
  p-quantile of any continuous distribution with P(l ≤ B < u), B binomial(n, p) (David & Nagaraja
  2003, "Order Statistics", section 7.1). It is infinite if n is too small for a limit.
- Shares: Clopper and Pearson 1934, which is conservative.
- Differences: the same interval, of the differences of pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from math import ceil, comb, exp, inf, isfinite, log, nan, sqrt

import numpy as np
from numpy.typing import NDArray

from dialsim.results.figures import is_instant

Values = NDArray[np.float64]

BY_ORDER, BY_SHARES, NO_CHANCE = "order statistics", "exact shares", "no chance"
"""Methods of differences: of medians, of shares of runs, and of figures without chance."""
CONFIDENCE = 0.95
"""Confidence level of pages and precisions."""
FEWEST = 3
"""Fewest runs, or pairs of runs, for an estimate of their spread."""
_COCHRAN = 25
_SKEWED = 1.645
"""Standard errors from 0 beyond which a coefficient of skewness is significant (10 %)."""
_LEAST_TO_JUDGE = 8
"""Fewest values for a judgement of the coefficient of skewness."""
_EVEN = 0.005
"""Largest distance of an interval's middle from the estimate, as a share of its width, for `±`."""
_LEAST_OF_TAIL = 5
"""Minimum number of distances for an estimate of their tail."""
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
    three are 0 without pairs. Without an interval there is no p-value: the numbers of pairs that
    rose or fell decide nothing about the mean.
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
        """True if the interval excludes 0, with 95 % confidence."""
        return self.p_value < 1 - CONFIDENCE


def is_symmetric(estimate: float, low: float, high: float) -> bool:
    """True if finite limits are equally far from an estimate, so that `±` describes them."""
    return abs((low + high) / 2 - estimate) <= _EVEN * (high - low)


@dataclass(frozen=True, slots=True)
class Jump:
    """Event that further runs may have; it moves a figure by `size`.

    Without further facts, its probability is at most 1 − ε^(1/n), because n runs did not show it; ε
    is the allowed error. Two facts give a smaller limit:

    - `distances`: how far each run stayed away from the event, such as the calling time left until
      the window closes. The tail of the distances is taken to be no heavier than exponential beyond
      their median. The limit follows from an upper confidence limit of the mean excess, and from
      the limit of the share of runs beyond the median (Hosking & Wallis 1987, "Parameter and
      quantile estimation for the generalized Pareto distribution", Technometrics 29, with shape 0;
      Epstein & Sobel 1953, "Life testing", Journal of the American Statistical Association 48).
    - `counts`: in each run, the number of independent incidents that each rule the event out,
      such as people who need a last attempt. No incident at all has the probability exp(−λ) at
      most, λ being the mean number, for which its exact lower limit is taken (Garwood 1936).
    """

    size: float
    distances: Values | None = None
    counts: Values | None = None

    def probability(self, runs: int, error: float) -> float:
        """Return the upper confidence limit of the event's probability; wrong with `error`."""
        limit = float(1.0 - error ** (1.0 / runs))
        if self.counts is not None and self.counts.min() > 0:
            limit = min(limit, exp(-_garwood_low(float(self.counts.sum()), error) / runs))
        if self.distances is not None:
            limit = min(limit, share_beyond(self.distances, error))
        return limit


def share_beyond(distances: Values, error: float | None = None) -> float:
    """Return the probability that a run has a distance below 0.

    Beyond the median, distances are taken to have an exponential tail (see `Jump`). With `error`
    the result is an upper confidence limit, 1 if the runs give none. Otherwise it is an estimate, 0
    if the runs give none.
    """
    from scipy import special

    ordered = np.sort(distances)
    count, untold = len(ordered) // 2, 0.0 if error is None else 1.0
    if count < _LEAST_OF_TAIL or not np.isfinite(ordered).all():
        return untold
    excess = float((ordered[count] - ordered[:count]).sum())
    if not excess or (error is not None and ordered[0] <= 0):
        return untold
    if error is None:
        return count / len(ordered) * exp(-float(ordered[count]) * count / excess)
    share = float(special.betaincinv(count + 1, len(ordered) - count, 1.0 - error / 2))
    scale = excess / float(special.gammaincinv(count, error / 2))
    return share * exp(-float(ordered[count]) / scale)


@dataclass(frozen=True, slots=True)
class Known:
    """Facts about a figure and its runs that an interval needs besides the values.

    `certain`: the figure is the same in all runs; `least` and `most` are the smallest and the
    greatest possible value. `surplus` is the excess of each run over its expectation, given the
    exactly known inputs; it has the expectation 0. Subtracting it may increase the variance only of
    runs that are cut off, not of `uncut` runs. If `settled`, the figure minus its surplus is the
    same in all runs. `levels` are, for each run, the part of its value that jumps make up; `up` and
    `down` are the jumps that other runs may have.
    """

    certain: bool = False
    least: float = -inf
    most: float = inf
    surplus: Values | None = None
    uncut: bool = False
    settled: bool = False
    levels: Values | None = None
    up: tuple[Jump, ...] = ()
    down: tuple[Jump, ...] = ()

    @property
    def jumps(self) -> tuple[Jump, ...]:
        """Jumps in both directions."""
        return self.up + self.down

    def scaled(self, factor: float) -> Known:
        """Return facts about instants in another unit.

        Only levels and jumps are scaled: instants have no bounds and no surplus.
        """
        levels = None if self.levels is None else factor * self.levels
        up, down = (
            tuple(replace(jump, size=factor * jump.size) for jump in jumps)
            for jumps in (self.up, self.down)
        )
        return replace(self, levels=levels, up=up, down=down)

    def among(self, chosen: NDArray[np.bool_]) -> Known:
        """Return the facts for some of the runs."""
        if chosen.all():
            return self
        surplus, levels = (
            None if part is None else part[chosen] for part in (self.surplus, self.levels)
        )
        return replace(self, surplus=surplus, levels=levels)

    def minus(self, other: Known) -> Known:
        """Return the facts about the difference to another figure, run by run."""
        return Known(
            self.certain and other.certain,
            self.least - other.most,
            self.most - other.least,
            _minus(self.surplus, other.surplus),
            self.uncut and other.uncut,
            self.settled and other.settled,
            _minus(self.levels, other.levels),
            self.up + other.down,
            self.down + other.up,
        )

    def expected(self, values: Values) -> Values:
        """Return the values minus their surplus; unchanged if that would increase the variance of
        runs that are cut off.
        """
        if self.surplus is None or not np.isfinite(self.surplus).all():
            return values
        reduced = values - self.surplus
        return reduced if self.uncut or reduced.var() <= values.var() else values

    def rest(self, values: Values) -> Values:
        """Return the values without the parts made up by jumps."""
        return values if self.levels is None else values - self.levels

    def room(self, runs: int, confidence: float) -> tuple[float, float]:
        """Return the greatest shift of the mean of `runs` runs by jumps, down and up."""
        error = (1.0 - confidence) / 2.0
        below, above = (
            sum(jump.size * jump.probability(runs, error) for jump in jumps)
            for jumps in (self.down, self.up)
        )
        if self.levels is not None and np.ptp(self.levels):
            mean = float(self.levels.mean())
            below += mean + _limit_of_levels(-self.levels, error)
            above += _limit_of_levels(self.levels, error) - mean
        return below, above


NOTHING = Known()


def _minus(one: Values | None, other: Values | None) -> Values | None:
    if one is None or other is None:
        return one if other is None else -other
    return one - other


def _limit_of_levels(levels: Values, error: float) -> float:
    """Return the upper limit of the mean of a figure with few different values.

    For two values it is Clopper and Pearson's limit. For more values, it is the limit of Gaffke
    (2005, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a
    nonnegative variable", Mathematical Methods of Statistics 14) for values up to the greatest
    seen, whose Dirichlet-weighted sum is approximated by a Beta variate with the same two first
    moments.
    """
    from scipy import special

    least, width = float(levels.min()), float(np.ptp(levels))
    shares = np.append((levels - least) / width, 1.0)
    mean = float(shares.mean())
    weight = mean * (1.0 - mean) * (len(shares) + 1) / float(shares.var()) - 1.0
    quantile = special.betaincinv(mean * weight, (1.0 - mean) * weight, 1.0 - error)
    return least + width * float(quantile)


def mean_interval(values: Values, confidence: float, known: Known = NOTHING) -> Interval:
    """Return the mean with its interval.

    If a value is infinite, so is the mean, and it has no limits.

    If the spread of the runs gives no limit, because they are equal or too skewed, the limit is the
    greatest effect of unobserved runs: at most a share `unseen_share` of all, each as far off as
    possible. On a side where the figure has no bound, the mean then has no limit.
    """
    count = len(values)
    if not count:
        return Interval(nan, nan, nan)
    if not np.isfinite(values).all():
        return Interval(float(values.sum()), nan, nan)
    # Without randomness one run is enough.
    if known.certain and values.min() == values.max():
        return Interval(float(values[0]), float(values[0]), float(values[0]))
    expected = known.expected(values)
    mean = _mean(expected)
    if count < FEWEST:
        return Interval(mean, nan, nan, FEWEST)
    if expected is values and known.levels is None and _is_rare_count(values):
        total, error = float(values.sum()), (1.0 - confidence) / 2.0
        high = _garwood_high(total, error) / count
        return Interval(mean, _garwood_low(total, error) / count, min(high, known.most))
    low, high, enough = _limits(expected, confidence, known, positive=True)
    return Interval(mean, low, high, enough)


def _mean(values: Values) -> float:
    # The mean of equal values can be off in its last digit.
    return float(values[0] if values.min() == values.max() else values.mean())


def unseen_share(count: int, confidence: float) -> float:
    """Return the upper limit of the share of runs of a kind that `count` runs have not shown."""
    return float(1.0 - ((1.0 - confidence) / 2.0) ** (1.0 / count))


def _limits(
    values: Values, confidence: float, known: Known, *, positive: bool
) -> tuple[float, float, int | None]:
    """Return the limits of the mean of values without surplus, and the `enough` of `Interval`."""
    count, mean = len(values), _mean(values)
    rest = known.rest(values)
    below, above = known.room(count, confidence)
    unseen = unseen_share(count, confidence)
    if np.ptp(rest) <= _LAST_DIGITS * float(np.abs(values).max(initial=1.0)):
        if not (known.settled or known.levels is not None or below or above):
            below, above = unseen * (mean - known.least), unseen * (known.most - mean)
        return max(mean - below, known.least), min(mean + above, known.most), None
    offset = mean - float(rest.mean())
    low, high, judged = _spread(rest, confidence, positive)
    shown = max((jump.size for jump in known.jumps), default=0.0) if below + above else 0
    enough = _enough(rest, judged, shown)
    skew = skewness(judged) if enough else 0.0
    if positive and rest.min() > 0 and high > _WIDE * (mean - offset) and enough is None:
        wide = min(high / (mean - offset), 1e9)
        enough = ceil(count * (log(wide) / log(2.0)) ** 2)  # runs for a limit of twice the mean
        high = high if high < _USELESS * (mean - offset) else inf
    low, high = low + offset - below, high + offset + above
    low -= unseen * (mean - known.least) if skew < 0 else 0.0
    high += unseen * (known.most - mean) if skew > 0 else 0.0
    return max(low, known.least), min(high, known.most), enough


def _spread(values: Values, confidence: float, positive: bool) -> tuple[float, float, Values]:
    """Return the limits of the mean by the spread of values, and the values that show their
    skewness.
    """
    count, mean = len(values), float(values.mean())
    half = _t(count - 1, confidence) * float(values.std(ddof=1)) / sqrt(count)
    low, high = mean - half, mean + half
    if positive and values.min() > 0:
        high = mean * exp(min(half / mean, 700.0))  # symmetric on the scale of logarithms
        logs = np.log(values)
        # Log-normal figures are not skewed to the left on this scale.
        if skewness(logs) >= 0:
            lowest, highest = _lognormal_limits(logs, confidence)
            return min(low, lowest), max(high, highest), logs
    return low, high, values


def _lognormal_limits(logs: Values, confidence: float) -> tuple[float, float]:
    """Return the limits of a log-normal mean, exp(μ + σ²/2), from the intervals of both terms."""
    from scipy import special

    count, tail = len(logs), (1.0 - confidence) / 2.0
    freedom, half_variance = count - 1, float(logs.var(ddof=1)) / 2.0
    of_mean = _t(freedom, confidence) * sqrt(2.0 * half_variance / count)
    below = half_variance * (1.0 - freedom / float(special.chdtri(freedom, tail)))
    above = half_variance * (freedom / float(special.chdtri(freedom, 1.0 - tail)) - 1.0)
    middle = float(logs.mean()) + half_variance
    upper = middle + sqrt(of_mean**2 + above**2)
    return exp(middle - sqrt(of_mean**2 + below**2)), exp(upper) if upper < log(1e300) else inf


def _t(freedom: float, confidence: float) -> float:
    """Return the two-sided t quantile: P(|T| ≤ t) = confidence."""
    from scipy import special

    return float(special.stdtrit(freedom, (1.0 + confidence) / 2.0))


def _garwood_low(total: float, error: float) -> float:
    """Return the lower limit of the mean of a Poisson variate whose value is `total`."""
    from scipy import special

    return float(special.gammaincinv(total, error))


def _garwood_high(total: float, error: float) -> float:
    from scipy import special

    return float(special.gammainccinv(total + 1.0, error))


def _enough(values: Values, judged: Values, shown: float) -> int | None:
    """Estimate the number of runs that a skewed figure needs; None if the runs suffice.

    The result is also None if jumps up to the size `shown` explain the spread.
    """
    if np.ptp(values) <= 2 * shown or not (skew := skewness(judged)):
        return None
    of_values = skew if judged is values else skewness(values)
    needed = ceil(_COCHRAN * max(abs(of_values), abs(skew)) ** 2)
    return needed if needed > len(values) else None


def skewness(values: Values) -> float:
    """Return the coefficient of skewness G1; 0 if it is not significant, or if values are few."""
    count = len(values)
    if count < _LEAST_TO_JUDGE or np.ptp(values) == 0:
        return 0.0
    centred = values - values.mean()
    moments = [float((centred**power).mean()) for power in (2, 3)]
    if not moments[0]:
        return 0.0
    coefficient = moments[1] / moments[0] ** 1.5 * sqrt(count * (count - 1)) / (count - 2)
    error = sqrt(6 * count * (count - 1) / ((count - 2) * (count + 1) * (count + 3)))
    return coefficient if abs(coefficient) > _SKEWED * error else 0.0


def _is_rare_count(values: Values) -> bool:
    """Return True if values are small counts that vary no more than Poisson variates."""
    from scipy import special

    mean = float(values.mean())
    if values.min() != 0 or not 0 < mean < _RARE or (values != np.floor(values)).any():
        return False
    dispersion = float(((values - mean) ** 2).sum()) / mean
    return dispersion <= float(special.chdtri(len(values) - 1, 0.01))


def quantile_interval(
    values: Values, share: float, confidence: float, certain: bool = False
) -> Interval:
    """Return a quantile with limits that are among the values; infinite with too few values."""
    count = len(values)
    if not count:
        return Interval(nan, nan, nan)
    if certain and values.min() == values.max():
        return Interval(float(values[0]), float(values[0]), float(values[0]))
    ordered = np.concatenate([[-inf], np.sort(values), [inf]])
    low, high = _ranks_of_limits(count, share, confidence)
    missing = low == 0 or high == count + 1
    middle, lower, upper = (float(ordered[place]) for place in (rank(count, share), low, high))
    # The number of runs that a limit needs does not depend on the values.
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


def _pairs(
    values: Values, baseline: Values
) -> tuple[NDArray[np.bool_], Values, tuple[int, int, int]]:
    """Return a mask of the runs with both values, the differences, and the numbers of `_signs`.

    Both runs of a pair use the same random numbers. A pair in which neither run finishes is a tie.
    """
    with np.errstate(invalid="ignore"):
        every = np.where(values == baseline, 0.0, values - baseline)
    both = ~np.isnan(every)
    return both, every[both], _signs(every[both])


def _signs(differences: Values) -> tuple[int, int, int]:
    """Return the number of pairs, and how many of them rose and fell."""
    return len(differences), int((differences > 0).sum()), int((differences < 0).sum())


def paired_difference(
    values: Values,
    baseline: Values,
    confidence: float,
    known: tuple[Known, Known] = (NOTHING, NOTHING),
) -> Difference:
    """Return the mean of values − baseline over pairs; `known` has the facts about each side."""
    both, differences, signs = _pairs(values, baseline)
    count = signs[0]
    infinite = bool(np.isinf(values[both]).any() or np.isinf(baseline[both]).any())
    alike = count > 0 and not infinite and _alike(differences, values[both], baseline[both])
    # Equal sums of money may differ in their last digits.
    if alike:
        differences = np.full(count, _mean_of_alike(differences, values[both]))
        signs = _signs(differences)
    of_both = known[0].among(both).minus(known[1].among(both))
    if of_both.certain and alike:
        same = float(differences[0])
        return Difference(same, same, same, float(same == 0), NO_CHANCE, *signs)
    if count < FEWEST or infinite:
        estimate = _mean_of_pairs(differences, infinite)
        return Difference(estimate, nan, nan, nan, "no interval", *signs)
    expected = of_both.expected(differences)

    def limits(level: float) -> tuple[float, float]:
        return _limits(expected, level, of_both, positive=False)[:2]

    low, high = limits(confidence)
    if not (isfinite(low) or isfinite(high)):
        return Difference(_mean(expected), nan, nan, nan, "no interval", *signs)
    mean, plain = _mean(expected), not (of_both.levels is not None or any(of_both.jumps))
    error = 0.0 if alike else float(expected.std(ddof=1)) / sqrt(count)
    if plain and error and isfinite(low if mean > 0 else high):
        p_value = _p_value_of_t(mean / error, count - 1)
    else:
        p_value = _p_value(limits)
    return Difference(mean, low, high, p_value, "paired t", *signs)


def _p_value_of_t(statistic: float, freedom: float) -> float:
    from scipy import special

    return 2.0 * float(special.stdtr(freedom, -abs(statistic)))


def _p_value(limits: Callable[[float], tuple[float, float]]) -> float:
    """Find the least error level at which an interval excludes 0, by bisection."""
    low, high = -_LEAST_P, 0.0  # bounds of the exponent of the error, to base 10
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        lower, upper = limits(1.0 - 10.0**middle)
        if lower > 0 or upper < 0:
            high = middle
        else:
            low = middle
    return float(10.0**high)


_LAST_DIGITS = 1e-12
_LEAST_P, _HALVINGS = 12.0, 18
"""Exponent of the least p-value that differs from 0, and steps of the bisection for it."""


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
        return _mean(differences)
    later, earlier = np.isposinf(differences).any(), np.isneginf(differences).any()
    # Infinity minus infinity has no value.
    if later == earlier:  # some of each, or only pairs in which neither finished
        return nan
    return inf if later else -inf


def figure_difference(
    column: str, sides: tuple[Values, Values], known: tuple[Known, Known]
) -> Difference:
    """Compare the paired values of a figure: an instant by its median, another by its mean."""
    if is_instant(column):
        certain = known[0].certain and known[1].certain
        return median_difference(*sides, CONFIDENCE, certain)
    return paired_difference(*sides, CONFIDENCE, known)


def median_difference(
    values: Values, baseline: Values, confidence: float, certain: bool = False
) -> Difference:
    """Return the median of values − baseline over pairs, with an order-statistic interval.

    The interval is distribution-free and accepts infinite values. The p-value is the least error
    level whose interval excludes 0. A limit is infinite where the runs are too few.
    """
    _, differences, signs = _pairs(values, baseline)
    if not len(differences):
        return Difference(nan, nan, nan, nan, BY_ORDER)
    found = quantile_interval(differences, 0.5, confidence, certain)
    estimate = _median(np.sort(differences))
    if certain and found.low == found.high:
        return Difference(estimate, estimate, estimate, float(estimate == 0), NO_CHANCE, *signs)
    count, rose, fell = signs
    p_value = _two_sided(max(rose, fell), count)
    return Difference(estimate, found.low, found.high, p_value, BY_ORDER, *signs)


def _two_sided(most: int, count: int) -> float:
    """Return twice the probability of `most` heads or more in `count` tosses, at most 1."""
    tail = sum(comb(count, hits) for hits in range(most, count + 1))
    return min(1.0, float(2 * tail / 2**count))


def _median(ordered: Values) -> float:
    """Median of sorted values; the lower of the middle two where their mean is undefined."""
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return float((low + high) / 2 if isfinite(low) and isfinite(high) else low)


def share_difference(
    values: Values, baseline: Values, confidence: float, certain: bool = False
) -> Difference:
    """Return the difference of two shares of runs; values are 1 for runs with the property, else 0.

    It is the share of pairs that rose minus the share that fell. The limits combine Clopper-Pearson
    limits of both shares (Bonferroni). The exact test of McNemar (1947), the sign test of the pairs
    that differ, decides whether 0 is excluded; if so, a limit on the wrong side of 0 moves to 0.
    The coverage is at least the confidence.
    """
    *_, (count, rose, fell) = _pairs(values, baseline)
    if not count:
        return Difference(nan, nan, nan, nan, BY_SHARES)
    tail = (1.0 - confidence) / 4.0
    up, down = (share_interval(hits, count, (tail, tail), certain) for hits in (rose, fell))
    estimate, low, high = up.estimate - down.estimate, up.low - down.high, up.high - down.low
    # The exact test decides. The interval, combined from two, is wider and must not contradict it.
    p_value = _two_sided(max(rose, fell), rose + fell)
    if p_value < 1.0 - confidence:
        low, high = (max(low, 0.0), high) if estimate > 0 else (low, min(high, 0.0))
    return Difference(estimate, low, high, p_value, BY_SHARES, count, rose, fell)

"""Intervals: how far off an estimate from n replications may be.

A limit that the runs can't support is missing: infinite, or NaN where there is no interval at all.
`docs/experiments.md` says in plain words what is done; the sources are:

- Means: Student's t interval (Law 2015, "Simulation Modeling and Analysis", section 4.5), of a
  positive figure upwards on the scale of logarithms. Of one whose logarithms are not skewed to the
  left, also that of a log-normal mean (Zou,
  Taleban & Huo 2009, "Confidence interval estimation for lognormal data with application to health
  economics", Computational Statistics & Data Analysis 53); the wider limits count. Of rare counts
  the exact Poisson interval (Garwood 1936). A limit on the side to which a figure is too skewed
  for its runs is missing: Cochran's rule asks for n > 25 G1² ("Sampling Techniques", 1977, page
  42), G1 the coefficient of skewness.
  What is missing there, or where runs are alike, is made good from what is known of the figure, if
  anything is: its ends, or by how much a run may spill over (`Nature`).
- Quantiles: order statistics. The interval from the l-th to the u-th smallest value covers the
  p-quantile of any continuous distribution with P(l ≤ B < u), B binomial(n, p) (David & Nagaraja
  2003, "Order Statistics", section 7.1). It is infinite where n is too small for a limit.
- Shares: Clopper and Pearson 1934, which covers at least as often as it says.
- Differences: t of the differences of pairs; without pairs, Welch 1947.
- Differences that are infinite, alike or too skewed: the sign test (Dixon & Mood 1946), without an
  interval.

Estimates: mean and quantiles of every figure, with their confidence intervals.

Differences between variants, and which of them are real.

Precision: as many replications as it takes for an interval to be narrow enough.

The sequential procedure with fixed relative half-width (Chow & Robbins 1965, "On the asymptotic
theory of fixed-width sequential confidence intervals for the mean"; Law 2015, section 9.4.1): after
a first stage, runs are added until the half-width of the t interval is at most γ/(1+γ) of the
mean's size, which makes the relative error at most γ. Runs come in batches of a tenth of those at
hand, at least ten, so that the number at which it stops is the same for any number of jobs.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, exp, inf, isfinite, log, nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dialsim.experiments.errors import ExperimentError
from dialsim.experiments.prior import Prior
from dialsim.experiments.run_figures import (
    PLACES,
    FigureName,
    earliest_start,
    read_figure,
)
from dialsim.results.figures import Unit, is_instant, unit_of

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.experiments.case import Case
    from dialsim.experiments.run_figures import RunFigures
    from dialsim.experiments.runner import ExperimentRunner
    from dialsim.scenario.scenario import Scenario


Values = NDArray[np.float64]

FEWEST = 3
"""Fewer runs, or pairs of runs, say nothing of their own spread."""
_COCHRAN = 25
_SKEWED = 1.645
"""So many standard errors from 0 a coefficient of skewness is not taken for chance (10 %)."""
_LEAST_TO_JUDGE = 8
"""Of fewer values the coefficient of skewness says nothing."""
_WIDE, _USELESS = 3, 1000
"""So many times the mean an upper limit calls for more runs, and is none at all."""
_RARE = 5
"""The mean below which counts are taken for rare ones."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and its confidence interval.

    A missing limit is infinite, or NaN where there is no interval. `enough` says how many runs
    would do, or about so, where these are too few or too skewed; None if they are not, or that is
    not known.
    """

    estimate: float
    low: float
    high: float
    enough: int | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean difference, its interval, and the two-sided p-value of there being none.

    Of `pairs` pairs, `rose` have a greater value than the baseline and `fell` a smaller one; all
    three are 0 where there are no pairs.
    """

    estimate: float
    low: float
    high: float
    p_value: float
    method: str
    pairs: int = 0
    rose: int = 0
    fell: int = 0


@dataclass(frozen=True, slots=True)
class Nature:
    """What is known of a figure before any run.

    `certain` says that it is the same in all runs; `spill` by how much a run may lie beyond all
    that were seen; `least` and `most` are the smallest and the greatest value it can have.
    """

    certain: bool = False
    spill: float = 0.0
    least: float = -inf
    most: float = inf

    @classmethod
    def of(cls, column: str, prior: Prior) -> Nature:
        """That of a figure, by its column of the tables; instants are in seconds there."""
        return cls(
            certain=prior.certain(column),
            spill=prior.spill_ms / 1000 if is_instant(column) else 0.0,
            least=0.0,
            most=1.0 if unit_of(column) is Unit.SHARE else inf,
        )


ANY = Nature()


def mean_interval(values: Values, confidence: float, nature: Nature = ANY) -> Interval:
    """The mean with its interval. Where a value is infinite so is the mean, without interval.

    Where the spread of the runs doesn't tell a limit, because they are alike or too skewed, the
    limit is what runs not seen could make of the mean: at most `unseen_share` of all, each of them
    as far off as the figure can be. A figure without such an end has no limit there.
    """
    count = len(values)
    if not count:
        return Interval(nan, nan, nan)
    if not np.isfinite(values).all():
        return Interval(float(values.sum()), nan, nan)
    alike = values.min() == values.max()
    mean = float(values[0] if alike else values.mean())  # a sum may be off in its last digit
    if alike and nature.certain:
        return Interval(mean, mean, mean)
    if count < FEWEST:
        return Interval(mean, nan, nan, FEWEST)
    if not alike and _rare_count(values):
        low, high = _poisson_limits(float(values.sum()), count, confidence)
        return Interval(mean, low, min(high, nature.most))
    low, high, judged = (mean, mean, values) if alike else _limits(values, confidence)
    enough = _enough(values, judged, nature)
    skew = skewness(judged) if enough else 0.0
    if values.min() > 0 and high > _WIDE * mean and enough is None:
        enough = ceil(count * (log(min(high / mean, 1e9)) / log(2.0)) ** 2)  # for twice the mean
        high = high if high < _USELESS * mean else inf
    unseen = unseen_share(count, confidence)
    if nature.spill:
        low -= unseen * (mean - float(values.min()) + nature.spill)
        high += unseen * (float(values.max()) - mean + nature.spill)
    untold = alike and not nature.spill
    if untold or skew < 0:
        low -= unseen * (mean - nature.least)
    if untold or skew > 0:
        high += unseen * (nature.most - mean)
    return Interval(mean, max(low, nature.least), min(high, nature.most), enough)


def unseen_share(count: int, confidence: float) -> float:
    """The greatest share of runs that may be of a kind that `count` runs have not shown."""
    tail = (1.0 - confidence) / 2.0
    return float(1.0 - tail ** (1.0 / count))


def _limits(values: Values, confidence: float) -> tuple[float, float, Values]:
    """The limits of the mean, and the scale on which its skewness is to be judged."""
    count, mean = len(values), float(values.mean())
    half = t_quantile(count - 1, confidence) * float(values.std(ddof=1)) / sqrt(count)
    low, high = mean - half, mean + half
    if values.min() > 0:
        high = mean * exp(min(half / mean, 700.0))  # symmetric on the scale of logarithms
        logs = np.log(values)
        if skewness(logs) >= 0:  # log-normal figures are not skewed to the left of that
            lowest, highest = _lognormal_limits(logs, confidence)
            return min(low, lowest), max(high, highest), logs
    return low, high, values


def _lognormal_limits(logs: Values, confidence: float) -> tuple[float, float]:
    """The mean of a log-normal figure is exp(μ + σ²/2): the intervals of both, put together."""
    from scipy import special

    count, tail = len(logs), (1.0 - confidence) / 2.0
    freedom, half_variance = count - 1, float(logs.var(ddof=1)) / 2.0
    of_mean = t_quantile(freedom, confidence) * sqrt(2.0 * half_variance / count)
    below = half_variance * (1.0 - freedom / float(special.chdtri(freedom, tail)))
    above = half_variance * (freedom / float(special.chdtri(freedom, 1.0 - tail)) - 1.0)
    middle = float(logs.mean()) + half_variance
    upper = middle + sqrt(of_mean**2 + above**2)
    return exp(middle - sqrt(of_mean**2 + below**2)), exp(upper) if upper < log(1e300) else inf


def _enough(values: Values, judged: Values, nature: Nature) -> int | None:
    """About how many runs a skewed figure needs; None if it has them, or spilling explains it."""
    if np.ptp(values) <= 2 * nature.spill or not skewness(judged):
        return None
    needed = ceil(_COCHRAN * max(abs(skewness(values)), abs(skewness(judged))) ** 2)
    return needed if needed > len(values) else None


def skewness(values: Values) -> float:
    """The coefficient of skewness G1; 0 where a normal figure might show it, or values are few."""
    count = len(values)
    deviations = values - values.mean()
    variance = float(np.mean(deviations**2))
    if count < _LEAST_TO_JUDGE or variance == 0:
        return 0.0
    plain = float(np.mean(deviations**3)) / variance**1.5
    adjusted = plain * sqrt(count * (count - 1)) / (count - 2)
    error = sqrt(6 * count * (count - 1) / ((count - 2) * (count + 1) * (count + 3)))
    return adjusted if abs(adjusted) > _SKEWED * error else 0.0


def _rare_count(values: Values) -> bool:
    """Whether values are counts of what happens seldom, and spread no more than chance does."""
    from scipy import special

    mean = float(values.mean())
    if values.min() != 0 or mean >= _RARE or (values != np.floor(values)).any():
        return False
    dispersion = float(((values - mean) ** 2).sum()) / mean
    return dispersion <= float(special.chdtri(len(values) - 1, 0.01))


def _poisson_limits(total: float, count: int, confidence: float) -> tuple[float, float]:
    from scipy import special

    tail = (1.0 - confidence) / 2.0
    low = float(special.gammaincinv(total, tail))
    high = float(special.gammaincinv(total + 1.0, 1.0 - tail))
    return low / count, high / count


def t_quantile(freedom: float, confidence: float) -> float:
    """The two-sided t quantile: P(|T| ≤ t) = confidence."""
    from scipy import special

    return float(special.stdtrit(freedom, (1.0 + confidence) / 2.0))


def quantile_interval(
    values: Values, share: float, confidence: float, certain: bool = False
) -> Interval:
    """A quantile with limits that are values themselves; infinite where there are too few."""
    from scipy import special

    count = len(values)
    if not count:
        return Interval(nan, nan, nan)
    if certain and values.min() == values.max():
        return Interval(float(values[0]), float(values[0]), float(values[0]))
    ordered = np.concatenate([[-inf], np.sort(values), [inf]])
    below = special.bdtr(np.arange(count + 1), count, share)  # P(B ≤ k), k = 0 … n
    tail = (1.0 - confidence) / 2.0
    low = int(np.searchsorted(below, tail, side="right"))
    high = int(np.searchsorted(below, 1.0 - tail)) + 1
    middle = rank(count, share)
    missing = low == 0 or high == count + 1
    return Interval(
        float(ordered[middle]),
        float(ordered[low]),
        float(ordered[high]),
        runs_for_quantile(share, confidence) if missing else None,
    )


def runs_for_quantile(share: float, confidence: float) -> int:
    """The least number of runs that give a quantile both limits."""
    tail = (1.0 - confidence) / 2.0
    return ceil(log(tail) / log(max(share, 1.0 - share)) - 1e-9)


def rank(count: int, share: float) -> int:
    """The rank, from 1, of the value that is the quantile: ⌈n·share⌉, safe from rounding."""
    return max(1, ceil(count * share - 1e-9))


def share_interval(hits: int, count: int, confidence: float, certain: bool = False) -> Interval:
    """A share with its Clopper-Pearson interval."""
    from scipy import special

    if certain and hits in (0, count):
        return Interval(hits / count, hits / count, hits / count)
    tail = (1.0 - confidence) / 2.0
    low = float(special.betaincinv(hits, count - hits + 1, tail)) if hits else 0.0
    high = float(special.betaincinv(hits + 1, count - hits, 1.0 - tail)) if hits < count else 1.0
    return Interval(hits / count, low, high)


def paired_difference(
    values: Values, baseline: Values, confidence: float, certain: bool = False
) -> Difference:
    """Of pairs that met the same chance: values − baseline, pair by pair.

    A pair of which neither finished is a tie. `certain` says that the difference is the same in all
    pairs because there is no chance in it.
    """
    with np.errstate(invalid="ignore"):
        differences = np.where(values == baseline, 0.0, values - baseline)
    both = ~np.isnan(differences)
    infinite = bool(np.isinf(values[both]).any() or np.isinf(baseline[both]).any())
    return _of_pairs(differences[both], infinite, confidence, certain)


def _of_pairs(differences: Values, infinite: bool, confidence: float, certain: bool) -> Difference:
    count = len(differences)
    rose, fell = int((differences > 0).sum()), int((differences < 0).sum())
    if certain and count and not infinite and np.ptp(differences) == 0:
        same = float(differences[0])
        return Difference(same, same, same, float(same == 0), "no chance", count, rose, fell)
    estimate = _mean_of_pairs(differences, infinite)
    spread = 0.0
    if count >= FEWEST and not infinite:
        spread = float(differences.std(ddof=1)) / sqrt(count)
    if spread == 0 or _too_skewed(differences):
        p_value = sign_test(rose, fell) if count else nan
        return Difference(estimate, nan, nan, p_value, "sign test", count, rose, fell)
    half = t_quantile(count - 1, confidence) * spread
    p_value = _t_p_value(estimate / spread, count - 1)
    return Difference(
        estimate, estimate - half, estimate + half, p_value, "paired t", count, rose, fell
    )


def _mean_of_pairs(differences: Values, infinite: bool) -> float:
    """The mean difference; infinite or NaN where it is one of runs that did not finish."""
    if not len(differences):
        return nan
    if not infinite:
        same = differences.min() == differences.max()
        return float(differences[0] if same else differences.mean())
    later, earlier = np.isposinf(differences).any(), np.isneginf(differences).any()
    if later == earlier:  # some of each, or only pairs of which neither finished
        return nan
    return inf if later else -inf


def _too_skewed(differences: Values) -> bool:
    return _enough(differences, differences, ANY) is not None


def sign_test(rose: int, fell: int) -> float:
    """The p-value of as many, or more, pairs going one way; ties count for nothing."""
    from scipy import special

    return min(1.0, 2.0 * float(special.bdtr(min(rose, fell), rose + fell, 0.5)))


def _t_p_value(statistic: float, freedom: float) -> float:
    from scipy import special

    return 2.0 * float(special.stdtr(freedom, -abs(statistic)))


def unpaired_difference(
    values: Values, baseline: Values, confidence: float, certain: bool = False
) -> Difference:
    """Of two samples as if independent: what would be known without common random numbers."""
    values, baseline = values[~np.isnan(values)], baseline[~np.isnan(baseline)]
    sizes = len(values), len(baseline)
    if not min(sizes) or not (np.isfinite(values).all() and np.isfinite(baseline).all()):
        return Difference(nan, nan, nan, nan, "Welch t")
    estimate = float(values.mean() - baseline.mean())
    if certain:
        p_value = float(estimate == 0)
        return Difference(estimate, estimate, estimate, p_value, "no chance")
    parts = [float(part.var(ddof=1)) / len(part) if len(part) > 1 else 0.0
             for part in (values, baseline)]  # fmt: skip
    spread = sqrt(sum(parts))
    if min(sizes) < FEWEST or spread == 0 or _too_skewed(values) or _too_skewed(baseline):
        return Difference(estimate, nan, nan, nan, "Welch t")
    terms = [part**2 / (size - 1) for part, size in zip(parts, sizes, strict=True)]
    freedom = spread**4 / sum(terms)
    half = t_quantile(freedom, confidence) * spread
    p_value = _t_p_value(estimate / spread, freedom)
    return Difference(estimate, estimate - half, estimate + half, p_value, "Welch t")


QUANTILES = (5, 25, 50, 75, 95)
"""In percent."""


def estimates(frames: Mapping[str, pd.DataFrame], confidence: float, prior: Prior) -> pd.DataFrame:
    """A row per scope and figure, from the frames of `Replications`.

    Columns: scope, organization, campaign, figure, runs (that have the figure), unfinished (that
    have no end, for `finish_seconds`), mean, mean_low, mean_high, mean_enough; and for p05, p25,
    p50, p75 and p95 the same four. `dialsim.experiments.statistics` says how; `finish_seconds` is
    infinite where a run did not finish, and then so is its mean. A limit that the runs can't give
    is infinite, NaN where the mean has neither; `…_enough` then says about how many runs would
    give it, missing where that is not known.
    """
    import pandas as pd

    check_confidence(confidence)
    rows = [
        {"scope": scope, "organization": None, "campaign": None} | place | estimate
        for scope, frame in frames.items()
        for place, part in _parts(frame, scope)
        for estimate in _estimates(part, confidence, prior)
    ]
    table = pd.DataFrame(rows)
    return table.astype({name: "Int64" for name in table if str(name).endswith("_enough")})


def check_confidence(confidence: float) -> None:
    """Raise ExperimentError unless a level of confidence is between 0 and 1."""
    if not 0 < confidence < 1:
        raise ExperimentError(f"confidence must be between 0 and 1, such as 0.95, not {confidence}")


def figure_columns(frame: pd.DataFrame) -> list[str]:
    """The columns of a frame that are numbers to be estimated."""
    numbers = frame.select_dtypes("number").columns
    return [str(name) for name in numbers if name != "replication"]


def _parts(frame: pd.DataFrame, scope: str) -> Iterator[tuple[dict[str, Hashable], pd.DataFrame]]:
    keys = list(PLACES[scope])
    if not keys:
        yield {}, frame
        return
    for names, part in frame.groupby(keys, sort=False):
        yield dict(zip(keys, names, strict=True)), part


def _estimates(part: pd.DataFrame, confidence: float, prior: Prior) -> Iterator[dict[str, Any]]:
    for name in figure_columns(part):
        values = part[name].to_numpy(dtype=np.float64)
        values = values[~np.isnan(values)]
        nature = Nature.of(name, prior)
        mean = mean_interval(values, confidence, nature)
        row: dict[str, Any] = {
            "figure": name,
            "runs": len(values),
            "unfinished": int(np.isinf(values).sum()),
            "mean": mean.estimate,
            "mean_low": mean.low,
            "mean_high": mean.high,
            "mean_enough": mean.enough,
        }
        for percent in QUANTILES:
            found = quantile_interval(values, percent / 100, confidence, nature.certain)
            row |= {
                f"p{percent:02}": found.estimate,
                f"p{percent:02}_low": found.low,
                f"p{percent:02}_high": found.high,
                f"p{percent:02}_enough": found.enough,
            }
        yield row


def differences(
    frames: Mapping[str, pd.DataFrame],
    priors: Mapping[str, Prior],
    baseline: str,
    confidence: float,
    paired: bool,
    adjust: str | None,
) -> pd.DataFrame:
    """Each other variant's mean minus the baseline's, a row per variant, scope and figure.

    `priors` are what was known of each variant, the baseline among them, before any run.

    Columns: variant, scope, organization, campaign, figure, mean, baseline_mean, difference, low,
    high, p_value, real, method, pairs, rose, fell. `real` says that the interval excludes 0. Where
    runs did not finish, or the differences are alike or too skewed for their number, the sign test
    says it instead, and there is no interval; of `pairs` it counts those that `rose` and `fell`.

    One in twenty of all differences that are none looks real at 95 %. `adjust` guards the variants
    of one figure together: `bonferroni` widens the intervals; `holm` (1979) adjusts the p-values,
    which finds more, and leaves the intervals.
    """
    import pandas as pd

    check_confidence(confidence)
    if adjust not in (None, "bonferroni", "holm"):
        raise ExperimentError(f"there is no adjustment {adjust}; there are: bonferroni, holm")
    others = [name for name in priors if name != baseline]
    level = 1 - (1 - confidence) / max(len(others), 1) if adjust == "bonferroni" else confidence
    rows = [
        {"variant": other} | row
        for other in others
        for scope, frame in frames.items()
        for row in _compared(frame, scope, (other, baseline), level, paired, priors)
    ]
    table = pd.DataFrame(rows, columns=["variant", *_COLUMNS])
    keys = ["scope", "organization", "campaign", "figure"]
    if adjust == "holm":
        by_figure = table.groupby(keys, dropna=False)["p_value"]
        table["p_value"] = by_figure.transform(lambda p: holm(p.to_numpy(dtype=np.float64)))
    signs = table["method"] == "sign test"
    by_p = table["p_value"] < 1 - (confidence if adjust == "holm" else level)
    by_interval = (table["low"] > 0) | (table["high"] < 0)
    table["real"] = np.where(signs | (adjust == "holm"), by_p, by_interval)
    return table


def check_baseline(names: Sequence[str], baseline: str | None) -> str:
    """The variant to compare with, by default the first. Raises ExperimentError if it isn't one."""
    if baseline is None:
        return names[0]
    if baseline not in names:
        raise ExperimentError(f"there is no variant {baseline}; there are: {'; '.join(names)}")
    return baseline


_COLUMNS = (
    *("scope", "organization", "campaign", "figure", "mean", "baseline_mean"),
    *("difference", "low", "high", "p_value", "real", "method", "pairs", "rose", "fell"),
)


def _compared(
    frame: pd.DataFrame,
    scope: str,
    sides: tuple[str, str],
    level: float,
    paired: bool,
    priors: Mapping[str, Prior],
) -> list[dict[str, Any]]:
    compare = paired_difference if paired else unpaired_difference
    varied = [str(name) for name in frame.columns[: list(frame.columns).index("replication")]]
    keys = list(PLACES[scope])
    rows = []
    for place in _named(frame, keys):
        part = frame
        for key, name in place.items():
            part = part[part[key] == name]
        mine, theirs = (part[part["variant"] == name] for name in sides)
        if mine.empty or theirs.empty:
            continue  # a campaign or organization that only one of them has
        for figure in figure_columns(part):
            if figure in varied:
                continue
            values, base = (_values(side, figure) for side in (mine, theirs))
            certain = all(priors[name].certain(figure) for name in sides)
            found = compare(values, base, level, certain)
            rows.append(
                {
                    "scope": scope,
                    **place,
                    "figure": figure,
                    "mean": _mean(values),
                    "baseline_mean": _mean(base),
                    "difference": found.estimate,
                    "low": found.low,
                    "high": found.high,
                    "p_value": found.p_value,
                    "method": found.method,
                    "pairs": found.pairs,
                    "rose": found.rose,
                    "fell": found.fell,
                }
            )
    return rows


def _named(frame: pd.DataFrame, keys: Sequence[str]) -> list[dict[str, str]]:
    """The names of all organizations or campaigns of a frame."""
    if not keys:
        return [{}]
    names = frame[list(keys)].drop_duplicates().itertuples(index=False, name=None)
    return [dict(zip(keys, row, strict=True)) for row in names]


def _values(frame: pd.DataFrame, figure: str) -> NDArray[np.float64]:
    return frame[figure].to_numpy(dtype=np.float64)


def _mean(values: NDArray[np.float64]) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def holm(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Holm's step-down adjusted p-values; NaN stays NaN and counts for nothing."""
    adjusted = np.full(len(p_values), np.nan)
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p_values[order] * factors))
    return adjusted


CONFIDENCE = 0.95
FIRST_STAGE = 10
"""Fewer runs than these say too little of their own spread to stop at."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A relative precision that the mean of a figure shall have, such as 0.02."""

    figure: FigureName
    relative: float


@dataclass(frozen=True, slots=True)
class Precision:
    """What came of it: `reached` is the relative error that the interval allows for."""

    figure: str
    wanted: float
    reached: float
    unfinished: int
    met: bool


def precisions(asked: Mapping[str, float] | str | None, scenario: Scenario) -> list[Wanted]:
    """Read `{"finish": 0.02}`, or `finish=2%` with commas between several.

    Raises ExperimentError for anything else, and for figures that there are not.
    """
    if asked is None:
        return []
    pairs = _pairs(asked) if isinstance(asked, str) else [*asked.items()]
    for name, relative in pairs:
        if not 0 < relative < 1:
            raise ExperimentError(
                f"precision of {name}: {relative:.10g} is not between 0 and 1 (0 % and 100 %)"
            )
    return [Wanted(read_figure(name, scenario), relative) for name, relative in pairs]


def _pairs(text: str) -> list[tuple[str, float]]:
    pairs = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(.+?)\s*=\s*([0-9]*\.?[0-9]+)\s*%\s*", part)
        if match is None:
            raise ExperimentError(
                f"precision {part.strip() or '(nothing)'}: write FIGURE=PERCENT, such as finish=2%"
            )
        pairs.append((match[1], float(match[2]) / 100))
    return pairs


def reach_precision(
    place: ExperimentRunner, case: Case, first: int, most: int, wanted: Sequence[Wanted]
) -> list[Precision]:
    """Replicate a case until all precisions are reached, or `most` runs are made.

    Gives up early on a figure whose mean is infinite, which no further run can change.
    """
    count = first if not wanted else min(max(first, FIRST_STAGE), most)
    while True:
        place.replicate([case], count)
        reached = [_reached(part, case.first(count), case.prior) for part in wanted]
        hopeless = any(part.unfinished for part in reached)
        if hopeless or all(part.met for part in reached) or count >= most:
            return reached
        count = min(most, count + max(10, count // 10))


def _reached(wanted: Wanted, runs: Sequence[RunFigures], prior: Prior) -> Precision:
    values = wanted.figure.of(runs)
    unfinished = int((values == inf).sum())
    if wanted.figure.is_instant:
        values = (values - (earliest_start(runs) or 0)) / 1000
    nature = Nature.of(wanted.figure.column, prior)
    interval = mean_interval(values[~np.isnan(values)], CONFIDENCE, nature)
    half, size = (interval.high - interval.low) / 2, abs(interval.estimate)
    # |estimate − truth| ≤ half and size − half ≤ |truth|, so the relative error is at most this
    error = 0.0 if half == 0 else half / (size - half) if half < size else inf
    known = isfinite(half) and not unfinished
    return Precision(
        wanted.figure.text,
        wanted.relative,
        error if known else inf,
        unfinished,
        known and error <= wanted.relative,
    )

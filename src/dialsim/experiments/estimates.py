"""Tables of estimates: mean and quantiles of every figure, and differences between variants."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from dialsim.errors import ExperimentError
from dialsim.experiments.expression import Expression
from dialsim.experiments.intervals import (
    Support,
    Values,
    mean_interval,
    paired_difference,
    quantile_interval,
    unpaired_difference,
)
from dialsim.experiments.prior import Prior
from dialsim.experiments.run_figures import PLACES

if TYPE_CHECKING:
    import pandas as pd

QUANTILES = (5, 25, 50, 75, 95)
"""Percentages of the estimated quantiles."""


Measured = Sequence[tuple[Expression, Values]]
"""Expressions with their values in each run."""


def estimates(
    frames: Mapping[str, pd.DataFrame], confidence: float, prior: Prior, shown: Measured = ()
) -> pd.DataFrame:
    """Return a row per scope and figure of the frames of `Replications`, then one per expression.

    Columns: scope, organization, campaign, figure, runs (with the figure), unfinished (without an
    end, for `finish_seconds`), mean, mean_low, mean_high, mean_enough; and for p05, p25, p50, p75
    and p95 the same four. `dialsim.experiments.intervals` documents the methods. `finish_seconds`
    is infinite in a run that did not finish, and then its mean is infinite. A limit that the runs
    do not support is infinite, or NaN if the mean has neither limit; `…_enough` is then the
    approximate number of runs that would support it, missing if unknown.
    """
    import pandas as pd

    check_confidence(confidence)
    rows = [
        {"scope": scope, "organization": None, "campaign": None} | place | row
        for scope, frame in frames.items()
        for place, part in _parts(frame, scope)
        for row in _estimates(part, confidence, prior)
    ]
    whole = {"scope": "run", "organization": None, "campaign": None}
    for expression, values in shown:
        support = expression.support(prior)
        rows.append(whole | estimate(expression.text, values, confidence, support))
    table = pd.DataFrame(rows)
    return table.astype({name: "Int64" for name in table if str(name).endswith("_enough")})


def check_confidence(confidence: float) -> None:
    """Raise ExperimentError unless a level of confidence is between 0 and 1."""
    if not 0 < confidence < 1:
        raise ExperimentError(f"confidence must be between 0 and 1, such as 0.95, not {confidence}")


def figure_columns(frame: pd.DataFrame) -> list[str]:
    """Return the columns of a frame with numbers to estimate."""
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
        yield estimate(name, values, confidence, Support.of(name, prior))


def estimate(name: str, values: Values, confidence: float, support: Support) -> dict[str, Any]:
    """Return the row of one figure for a table of `estimates`, without its scope; NaN is left
    out.
    """
    values = values[~np.isnan(values)]
    mean = mean_interval(values, confidence, support)
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
        found = quantile_interval(values, percent / 100, confidence, support.certain)
        row |= {
            f"p{percent:02}": found.estimate,
            f"p{percent:02}_low": found.low,
            f"p{percent:02}_high": found.high,
            f"p{percent:02}_enough": found.enough,
        }
    return row


def differences(
    frames: Mapping[str, pd.DataFrame],
    priors: Mapping[str, Prior],
    baseline: str,
    confidence: float,
    paired: bool,
    adjust: str | None,
    shown: Mapping[str, Measured],
) -> pd.DataFrame:
    """Return each variant's mean minus the baseline's: a row per variant, scope and figure.

    `priors` are the known limits of each variant, baseline included; `shown` are its expressions.

    Columns: variant, scope, organization, campaign, figure, mean, baseline_mean, difference, low,
    high, p_value, real, method, pairs, rose, fell. Both means and the pairs use only runs that both
    variants have. `real` is True if the interval excludes 0. If runs did not finish, or the
    differences are equal or too skewed for their number, the sign test decides instead, without an
    interval; it counts the `pairs` that `rose` and `fell`.

    Without adjustment, one in twenty differences looks real at 95 % although there is none.
    `adjust` covers all variants of one figure: `bonferroni` widens the intervals; `holm` (1979)
    adjusts the p-values, which finds more, and leaves the intervals unchanged.
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
    whole = {"scope": "run", "organization": None, "campaign": None}
    for other in others:
        for (expression, values), (_, base) in zip(shown[other], shown[baseline], strict=True):
            certain = all(expression.support(priors[name]).certain for name in (other, baseline))
            row = _difference(expression.text, (values, base), level, paired, certain)
            rows.append({"variant": other} | whole | row)
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
    """Return the baseline, by default the first variant. Raises ExperimentError for an unknown
    one.
    """
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
    varied = [str(name) for name in frame.columns[: list(frame.columns).index("replication")]]
    keys = list(PLACES[scope])
    rows = []
    for place in _named(frame, keys):
        part = frame
        for key, name in place.items():
            part = part[part[key] == name]
        mine, theirs = (part[part["variant"] == name] for name in sides)
        if mine.empty or theirs.empty:
            continue  # campaign or organization of one side only
        for figure in figure_columns(part):
            if figure in varied:
                continue
            both = _values(mine, figure), _values(theirs, figure)
            certain = all(priors[name].certain(figure) for name in sides)
            row = _difference(figure, both, level, paired, certain)
            rows.append({"scope": scope, **place} | row)
    return rows


def _difference(
    figure: str, sides: tuple[Values, Values], level: float, paired: bool, certain: bool
) -> dict[str, Any]:
    # A variant that was decided early has fewer runs than the baseline.
    if paired:
        pairs = min(map(len, sides))
        sides = sides[0][:pairs], sides[1][:pairs]
    compare = paired_difference if paired else unpaired_difference
    found = compare(*sides, level, certain)
    return {
        "figure": figure,
        "mean": _mean(sides[0]),
        "baseline_mean": _mean(sides[1]),
        "difference": found.estimate,
        "low": found.low,
        "high": found.high,
        "p_value": found.p_value,
        "method": found.method,
        "pairs": found.pairs,
        "rose": found.rose,
        "fell": found.fell,
    }


def _named(frame: pd.DataFrame, keys: Sequence[str]) -> list[dict[str, str]]:
    """Return the names of all organizations or campaigns of a frame."""
    if not keys:
        return [{}]
    names = frame[list(keys)].drop_duplicates().itertuples(index=False, name=None)
    return [dict(zip(keys, row, strict=True)) for row in names]


def _values(frame: pd.DataFrame, figure: str) -> Values:
    return frame[figure].to_numpy(dtype=np.float64)


def _mean(values: Values) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def holm(p_values: Values) -> Values:
    """Return Holm's step-down adjusted p-values; NaN stays NaN and does not count."""
    adjusted = np.full(len(p_values), np.nan)
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p_values[order] * factors))
    return adjusted


def undominated(losses: Sequence[tuple[float, ...]]) -> list[int]:
    """Return the indices of points that no other dominates, by increasing first loss.

    A point is dominated by one that is not larger in any loss and smaller in one. Of equal points
    the first is kept; points with an infinite loss are left out.
    """
    first = {point: place for place, point in reversed([*enumerate(losses)])}
    return [
        first[point]
        for point in sorted(first)
        if all(map(isfinite, point))
        and not any(
            other != point and all(a <= b for a, b in zip(other, point, strict=True))
            for other in first
        )
    ]

"""Differences between variants, and which of them are real."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dialsim.experiments.estimates import check_confidence, figure_columns
from dialsim.experiments.failures import ExperimentError
from dialsim.experiments.figure_table import PLACES
from dialsim.experiments.intervals import paired_difference, unpaired_difference
from dialsim.experiments.prior import Prior

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


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

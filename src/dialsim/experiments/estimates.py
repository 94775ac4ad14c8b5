"""Estimates: mean and quantiles of every figure, with their confidence intervals."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dialsim.experiments.failures import ExperimentError
from dialsim.experiments.figure_table import PLACES
from dialsim.experiments.intervals import mean_interval, quantile_interval

if TYPE_CHECKING:
    import pandas as pd

QUANTILES = (5, 25, 50, 75, 95)
"""In percent."""


def estimates(frames: Mapping[str, pd.DataFrame], confidence: float) -> pd.DataFrame:
    """A row per scope and figure, from the frames of `Replications`.

    Columns: scope, organization, campaign, figure, runs (that have the figure), unfinished (that
    have no end, for `finish_seconds`), mean, mean_low, mean_high; and for p05, p25, p50, p75 and
    p95 the same three. `dialsim.experiments.intervals` says how; `finish_seconds` is infinite
    where a run did not finish, and then so is its mean. A limit that so few runs can't give is
    NaN for the mean, and infinite for quantiles.
    """
    import pandas as pd

    check_confidence(confidence)
    rows = [
        {"scope": scope, "organization": None, "campaign": None} | place | estimate
        for scope, frame in frames.items()
        for place, part in _parts(frame, scope)
        for estimate in _estimates(part, confidence)
    ]
    return pd.DataFrame(rows)


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


def _estimates(part: pd.DataFrame, confidence: float) -> Iterator[dict[str, Any]]:
    for name in figure_columns(part):
        values = part[name].to_numpy(dtype=np.float64)
        values = values[~np.isnan(values)]
        mean = mean_interval(values, confidence)
        row: dict[str, Any] = {
            "figure": name,
            "runs": len(values),
            "unfinished": int(np.isinf(values).sum()),
            "mean": mean.estimate,
            "mean_low": mean.low,
            "mean_high": mean.high,
        }
        for percent in QUANTILES:
            found = quantile_interval(values, percent / 100, confidence)
            row |= {
                f"p{percent:02}": found.estimate,
                f"p{percent:02}_low": found.low,
                f"p{percent:02}_high": found.high,
            }
        yield row

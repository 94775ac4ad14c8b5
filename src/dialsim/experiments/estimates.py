"""Estimates: mean and quantiles of every figure, with their confidence intervals."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dialsim.experiments.failures import ExperimentError
from dialsim.experiments.figure_table import PLACES
from dialsim.experiments.intervals import Nature, mean_interval, quantile_interval
from dialsim.experiments.prior import Prior

if TYPE_CHECKING:
    import pandas as pd

QUANTILES = (5, 25, 50, 75, 95)
"""In percent."""


def estimates(frames: Mapping[str, pd.DataFrame], confidence: float, prior: Prior) -> pd.DataFrame:
    """A row per scope and figure, from the frames of `Replications`.

    Columns: scope, organization, campaign, figure, runs (that have the figure), unfinished (that
    have no end, for `finish_seconds`), mean, mean_low, mean_high, mean_enough; and for p05, p25,
    p50, p75 and p95 the same four. `dialsim.experiments.intervals` says how; `finish_seconds` is
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

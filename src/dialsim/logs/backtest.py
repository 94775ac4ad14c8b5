"""Backtests: earlier forecasts of the user's own log, and intervals as wide as they needed.

Each earlier forecast knows the calls up to a cut and is compared with the calls made and the
people reached some time after it. Its score is the distance of the truth from the median, in
lengths of the interval's side. Intervals are then widened until they would have held the truth in
nine of ten of these forecasts: split conformal prediction with normalized scores (Papadopoulos,
Gammerman and Vovk 2008, "Normalized nonconformity measures for regression conformal prediction";
Lei and others 2018, "Distribution-free predictive inference for regression", JASA 113). Cuts of one
log are not exchangeable, so the coverage is that of the past and no guarantee for the future.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from dialsim.engine.engines import Choice
from dialsim.errors import DialsimError
from dialsim.experiments.forecast import Widening
from dialsim.logs.calibrate import FEWEST, By, dialled_calls
from dialsim.logs.held_out_campaigns import HeldOutCampaign, PastForecast, forecast_progress
from dialsim.logs.log import Log
from dialsim.results.progress import Progress
from dialsim.scenario.scenario import Scenario

CUTS = 8
_RUNS = 30
_FIRST, _LAST, _AHEAD = 0.3, 0.75, 0.25
"""Shares of the log's calls before the first and the last cut, and between a cut and its truth."""
_COVERAGE = 0.9


@dataclass(frozen=True, slots=True)
class Backtest:
    """Earlier forecasts of a log and what happened; `missing` has reasons for missing ones."""

    forecasts: Sequence[PastForecast | HeldOutCampaign]
    missing: Sequence[str] = ()

    @property
    def widening(self) -> Widening:
        """Factors by which intervals have to be wider to have held."""
        finish, reach = (
            factor([one.comparisons[index].score for one in self.forecasts]) for index in range(2)
        )
        return Widening(finish, reach)

    def lines(self) -> Iterator[str]:
        """Yield the sentences for the screen and the pages."""
        count = len(self.forecasts)
        if not count:
            yield "No earlier forecast could be made from the log"
            yield from self.missing
            return
        held = [
            (sum(one.held for one in figure), figure[0].figure)
            for figure in zip(*(one.comparisons for one in self.forecasts), strict=True)
        ]
        (first, of_first), (second, of_second) = held
        said = f"{first} held for {of_first}, {second} for {of_second}"
        yield f"Of {count} earlier forecast{'s' * (count > 1)} {said}"
        wider = self.widening
        for name, by in (("finish", wider.finish), ("reach", wider.reach)):
            if by > 1.0:
                yield f"The interval of the {name} is {by:.2g} times as wide as its runs for it"
        if count < ceil(_COVERAGE / (1.0 - _COVERAGE)):
            yield (
                f"{count} earlier forecasts are few: they can vouch for {count / (count + 1):.0%} "
                f"of truths, not for {_COVERAGE:.0%}"
            )


def factor(scores: Sequence[float]) -> float:
    """Return the factor that makes intervals hold nine of ten truths; at least 1.

    It is the ⌈0.9 (n + 1)⌉-th smallest of n scores, the largest if there are too few of them.
    """
    if not scores:
        return 1.0
    rank = min(ceil(_COVERAGE * (len(scores) + 1)), len(scores))
    return max(1.0, sorted(scores)[rank - 1])


def backtest(
    log: Log,
    by: By | None = None,
    scenario: Scenario | None = None,
    *,
    cuts: int = CUTS,
    without: Sequence[int] = (),
    jobs: int | None = None,
    progress: Progress | None = None,
    engine: Choice = "auto",
) -> Backtest:
    """Forecast a log from earlier instants, and compare each forecast with the truth.

    The arguments are those of `forecast_held_out`; `cuts` is the number of instants. Raises
    DialsimError if the log has too few calls.
    """
    at = np.sort(dialled_calls(log)["dialled_at"].to_numpy())
    if len(at) * _FIRST < FEWEST:
        least = ceil(FEWEST / _FIRST)
        raise DialsimError(f"{log.source}: {len(at)} calls; a backtest needs {least} or more")
    found: list[PastForecast] = []
    reasons: dict[str, None] = {}
    for share in np.linspace(_FIRST, _LAST, cuts).tolist():
        cut, until = (int(np.quantile(at, part)) for part in (share, min(share + _AHEAD, 1.0)))
        made, missing = forecast_progress(
            log, cut, until, by, scenario, without=without, runs=_RUNS, jobs=jobs,
            progress=progress, engine=engine,
        )  # fmt: skip
        found += made
        reasons |= dict.fromkeys(missing)
    return Backtest(tuple(found), tuple(reasons))

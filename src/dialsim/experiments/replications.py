"""Replications: the same scenario run many times, and how sure its figures are."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from dialsim.experiments.case import Case
from dialsim.experiments.errors import ExperimentError
from dialsim.experiments.prior import prior_of
from dialsim.experiments.run_figures import (
    RunFigures,
    earliest_start,
    figure_frame,
    replication_rows,
)
from dialsim.experiments.runner import Progress, runner
from dialsim.experiments.statistics import Precision, estimates, precisions, reach_precision

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.engine.engines import Choice
    from dialsim.experiments.plots.plots import ReplicationPlots
    from dialsim.scenario.scenario import Scenario


class Replications:
    """What came of many runs of one scenario.

    `frame` has a row per replication and campaign, `organizations` and `runs` a row per replication
    and organization, and per replication; columns are the numeric figures of the summary.
    `finish` is an instant, NaT where there was none; `finish_seconds` counts from `origin`, the
    earliest startAt, and is infinite where a run did not finish (later than any instant).
    `precision` says what came of a wanted precision, `prior` what was known before any run.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        figures: Sequence[RunFigures],
        precision: Sequence[Precision] = (),
    ) -> None:
        self.scenario = scenario
        self.seed = seed
        self.figures = tuple(figures)
        self.precision = tuple(precision)
        self.prior = prior_of(scenario)
        self._start = earliest_start(self.figures)

    def __len__(self) -> int:
        return len(self.figures)

    @property
    def origin(self) -> datetime | None:
        """The earliest startAt, from which `finish_seconds` counts; None if nothing started."""
        if self._start is None:
            return None
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=self._start)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row per replication and campaign."""
        return self._table("campaign")

    @cached_property
    def organizations(self) -> pd.DataFrame:
        """A row per replication and organization."""
        return self._table("organization")

    @cached_property
    def runs(self) -> pd.DataFrame:
        """A row per replication: the whole run."""
        return self._table("run")

    def intervals(self, confidence: float = 0.95) -> pd.DataFrame:
        """The mean and the quantiles of every figure with their intervals (`estimates`).

        A row per scope and figure. Raises ExperimentError unless 0 < confidence < 1.
        """
        return estimates(
            {"run": self.runs, "organization": self.organizations, "campaign": self.frame},
            confidence,
            self.prior,
        )

    def _table(self, scope: str) -> pd.DataFrame:
        return figure_frame(replication_rows(self.figures, scope, self._start), scope)

    @cached_property
    def plot(self) -> ReplicationPlots:
        """The pictures: `plot.progress()` and `plot.finish()`."""
        from dialsim.experiments.plots.plots import ReplicationPlots

        return ReplicationPlots(self)

    def _repr_html_(self) -> str:
        from dialsim.experiments.experiment_text import replications_html

        return replications_html(self)


def replicate(
    scenario: Scenario,
    n: int = 100,
    *,
    seed: int | None = None,
    precision: Mapping[str, float] | str | None = None,
    max_replications: int = 1000,
    jobs: int | None = None,
    dask: str | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    engine: Choice = "auto",
) -> Replications:
    """Run a scenario `n` times, each with chance of its own, and gather the figures.

    With `precision`, such as `{"finish": 0.02}` or `"finish=2%"`, `n` is the first stage, and runs
    are added until the 95 % interval of each mean so named is that narrow, at most
    `max_replications` in all. `jobs` processes work at it (None: one per processor), or the
    workers of the Dask scheduler `dask`; the results are the same. `store` is a folder that keeps
    finished replications; what it has is not run again. `progress(done, total)` counts runs.
    `engine` is "simpy", "compiled", or "auto" for the one that is done first; the results are the
    same.

    Raises ExperimentError for what was asked for wrongly, ReplicationFailed, WorkersLost.
    """
    if n < 1:
        raise ExperimentError(f"the number of replications must be 1 or more, not {n}")
    wanted = precisions(precision, scenario)
    case = Case(scenario, seed)
    with runner(jobs, dask, store, progress, engine) as place:
        reached = reach_precision(place, case, n, max_replications, wanted)
    figures = case.first(len(case.finished) if wanted else n)
    return Replications(scenario, case.seed, figures, reached)

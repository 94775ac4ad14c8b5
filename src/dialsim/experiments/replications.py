"""Replications: many runs of one scenario, and the precision of its figures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite
from typing import TYPE_CHECKING, Unpack

import numpy as np

from dialsim.errors import ExperimentError
from dialsim.experiments.estimates import (
    SettingRuns,
    estimate_records,
    estimates,
    finite,
    instant_text,
)
from dialsim.experiments.expression import Expression, ShownFigures, read_figures, read_shown
from dialsim.experiments.intervals import CONFIDENCE, mean_interval, quantile_interval
from dialsim.experiments.known_bounds import KnownBounds, known_bounds_of
from dialsim.experiments.run_figures import (
    RunFigures,
    RunTables,
    earliest_start,
    figure_frame,
    replication_rows,
)
from dialsim.experiments.run_spec import RunSpec
from dialsim.experiments.runner import ExperimentRunner, RunSettings, runner
from dialsim.interface.arguments import checked

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.experiments.plots import ReplicationPlots
    from dialsim.results.summary_text import FigureTable
    from dialsim.scenario.scenario import Scenario


_LEAST_BATCH = 4
_FIRST_STAGE = 10
"""Fewest runs at which a sequential procedure may stop, because the spread is unknown before."""


PrecisionGoal = tuple[Expression, float]
"""Figure, and the requested relative precision of its mean, or of an instant's median: 0.02."""


@dataclass(frozen=True, slots=True)
class Precision:
    """Result for a requested precision: `reached` is the relative error allowed by the interval.

    `unfinished` counts runs that make the statistic infinite.
    """

    figure: str
    wanted: float
    reached: float
    unfinished: int
    met: bool
    statistic: str = "mean"

    def to_dict(self) -> dict[str, object]:
        """Return JSON values."""
        names = ("figure", "wanted", "reached", "unfinished", "met")
        return {name: finite(getattr(self, name)) for name in names}


@checked(ExperimentError)
class Replications(RunTables):
    """Result of many runs of one scenario.

    `frame`, `organizations` and `runs` have a column per numeric figure of the summary. `precision`
    are the results for requested precisions, `bounds` the limits known before any run.
    `expressions` are combined figures, which `intervals` includes.

    >>> found = dialsim.replicate(scenario, 5, jobs=1)
    >>> found.runs.shape[0], found.runs["people"].unique().tolist()
    (5, [40])
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        figures: Sequence[RunFigures],
        precision: Sequence[Precision] = (),
        expressions: Sequence[Expression] = (),
    ) -> None:
        self.scenario = scenario
        self.seed = seed
        self.figures = tuple(figures)
        self.precision = tuple(precision)
        self.expressions = tuple(expressions)
        self.bounds = known_bounds_of(scenario)
        super().__init__(self.figures)

    def __len__(self) -> int:
        return len(self.figures)

    def _intervals(self, confidence: float) -> pd.DataFrame:
        # Expressions of the whole run follow the figures.
        shown = [(e, e.in_tables(self.figures, self._start)) for e in self.expressions]
        return estimates(self._frames(), self.figures, confidence, self.bounds, self.days, shown)

    def _table(self, scope: str) -> pd.DataFrame:
        return figure_frame(replication_rows(self.figures, scope, self._start), scope)

    @cached_property
    def plot(self) -> ReplicationPlots:
        """Plots: `plot.progress()` and `plot.finish()`."""
        from dialsim.experiments.plots import ReplicationPlots

        return ReplicationPlots(self)

    def __repr__(self) -> str:
        return (
            f"<dialsim.Replications {self.scenario.name!r} seed {self.seed}, runs: {len(self):,}>"
        )

    @property
    def title(self) -> str:
        """Name of the scenario."""
        return self.scenario.name

    def settings(self) -> list[SettingRuns]:
        """Return the runs for a workbook."""
        return [SettingRuns(self.scenario.name, self.figures, self.bounds)]

    def to_dict(self) -> dict[str, object]:
        """Return the output of `--format json`."""
        return {
            "scenario": self.scenario.name,
            "seed": self.seed,
            "replications": len(self),
            "origin": instant_text(self._start),
            "confidence": CONFIDENCE,
            "precision": [part.to_dict() for part in self.precision],
            "estimates": estimate_records(self.intervals(), self._start),
        }

    def printed(self) -> tuple[list[str], list[FigureTable]]:
        """Return the sentences and tables that a command prints."""
        from dialsim.experiments.experiment_text import replications_content

        return replications_content(self)


@checked(ExperimentError)
def replicate(
    scenario: Scenario,
    replications: int = 100,
    *,
    seed: int | None = None,
    precision: Mapping[str, float] | str | None = None,
    figures: ShownFigures = (),
    max_replications: int = 1000,
    **settings: Unpack[RunSettings],
) -> Replications:
    """Run a scenario `replications` times with independent random numbers, and collect the figures.

    With `precision`, such as `{"finish": 0.02}` or `"finish=2%"`, `replications` is the first
    stage, and runs are added until the 95 % interval of each named mean is that narrow, up to
    `max_replications`. `figures` are further expressions to show, such as
    `"cost / people_reached"`, or functions of a `Result` by name, `{"gap90": function}`, which are
    figures from then on; `OwnFigure` gives a unit and a label.

    `settings` are common to all experiments: the runs are made by `jobs` processes (None: one per
    processor), or by the workers of the Dask scheduler `dask`, with equal results. `store` is a
    folder that keeps finished replications and is not run again. `progress(done, total)` counts
    runs. `engine` is "simpy", "compiled", or "auto" for the faster one; the results are equal.

    Raises ExperimentError for invalid arguments, ReplicationFailed, WorkersLost.

    >>> runs = dialsim.replicate(scenario, 3, figures="cost / people_reached", jobs=1)
    >>> runs.intervals().query("figure == 'cost / people_reached'").runs.tolist()
    [3]
    """
    if replications < 1:
        raise ExperimentError(f"the number of replications must be 1 or more, not {replications}")
    scenario, shown = read_figures(figures, scenario)
    wanted = precisions(precision, scenario)
    spec = RunSpec(scenario, seed)
    with runner(**settings) as workers:
        reached = _reach_precision(workers, spec, replications, max_replications, wanted)
    runs = spec.first(len(spec.finished) if wanted else replications)
    return Replications(scenario, spec.seed, runs, reached, shown)


def precisions(asked: Mapping[str, float] | str | None, scenario: Scenario) -> list[PrecisionGoal]:
    """Parse `{"finish": 0.02}`, or `finish=2%` with commas between several.

    Raises ExperimentError for other input, and for unknown figures.
    """
    if asked is None:
        return []
    pairs = _pairs(asked) if isinstance(asked, str) else [*asked.items()]
    for name, relative in pairs:
        if not 0 < relative < 1:
            raise ExperimentError(
                f"precision of {name}: {float(relative):g} is not between 0 and 1 (0 % and 100 %)"
            )
    return [(read_shown(name, scenario), relative) for name, relative in pairs]


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


def _reach_precision(
    runner: ExperimentRunner, spec: RunSpec, first: int, most: int, wanted: Sequence[PrecisionGoal]
) -> list[Precision]:
    """Replicate until all precisions are reached, or `most` runs are made.

    The sequential procedure with fixed relative half-width (Chow & Robbins 1965, "On the asymptotic
    theory of fixed-width sequential confidence intervals for the mean"; Law 2015, section 9.4.1):
    after a first stage, runs are added until the half-width of the t interval is at most γ/(1+γ) of
    the mean's size, which makes the relative error at most γ. For the median of an instant, the
    interval of order statistics is taken. Batches (`_batch`) do not depend on the number of jobs.
    The procedure stops early for an infinite mean, which no further run can change.
    """
    count = first if not wanted else min(max(first, _FIRST_STAGE), most)
    while True:
        runner.replicate([spec], count)
        reached = [_reached(*part, spec.first(count), spec.bounds) for part in wanted]
        hopeless = any(part.unfinished for part in reached)
        if hopeless or all(part.met for part in reached) or count >= most:
            return reached
        count = min(most, count + _batch(count, reached))


def _batch(count: int, reached: Sequence[Precision]) -> int:
    """Return the number of runs to add: half of the estimated number missing.

    At most half of the present number, and at least enough for some workers.
    """

    # Half-widths shrink with 1/√n. The present runs estimate the spread too roughly to add many
    # more at once.
    def width(error: float) -> float:
        return error / (1 + error) if isfinite(error) else 1.0

    missing = max(
        count * ((width(part.reached) / width(part.wanted)) ** 2 - 1)
        for part in reached
        if not part.met
    )
    return max(_LEAST_BATCH, int(min(missing, count) / 2))


def _reached(
    figure: Expression, wanted: float, runs: Sequence[RunFigures], bounds: KnownBounds
) -> Precision:
    values = figure.in_tables(runs, earliest_start(runs))
    given, by_median = ~np.isnan(values), figure.by_median
    facts = figure.facts_in_tables(runs, bounds).among(given)
    if by_median:
        interval = quantile_interval(values[given], 0.5, CONFIDENCE, facts.certain)
    else:
        interval = mean_interval(values[given], CONFIDENCE, facts)
    unfinished = int((values == inf).sum()) if interval.estimate == inf else 0
    half, size = (interval.high - interval.low) / 2, abs(interval.estimate)
    # |estimate − truth| ≤ half and size − half ≤ |truth|, so this is an upper limit of the relative
    # error.
    error = 0.0 if half == 0 else half / (size - half) if half < size else inf
    known = isfinite(half) and not unfinished
    return Precision(
        figure.text,
        wanted,
        error if known else inf,
        unfinished,
        known and error <= wanted,
        "median" if by_median else "mean",
    )

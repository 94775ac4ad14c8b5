"""Replications: many runs of one scenario, the runner of experiments, and the precision of figures.

The runner makes replications with workers, stores finished ones and reports progress. Results
arrive in any order and are identified by an index. The store is a file with every finished
replication, so that a killed experiment can continue. It is an SQLite database, which survives a
kill at any instant. Entries are only used for an equal scenario (its digest), seed, version of
dialsim, rules and figures.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from math import inf, isfinite
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, TypedDict, Unpack

import numpy as np

from dialsim import __version__
from dialsim.engine import Choice, Engine, calls_of, choose, prepare
from dialsim.engine.compiled import source_digest
from dialsim.errors import ExperimentError, ReplicationFailed, StoreError
from dialsim.experiments.estimates import (
    SettingRuns,
    estimate_records,
    estimates,
    instant_text,
    to_json,
)
from dialsim.experiments.expression import Expression, ShownFigures, read_figures, read_shown
from dialsim.experiments.intervals import CONFIDENCE, mean_interval, quantile_interval
from dialsim.experiments.known_bounds import KnownBounds, known_bounds_of
from dialsim.experiments.pool import Workers
from dialsim.experiments.run_figures import (
    RunFigures,
    RunTables,
    earliest_start,
    figure_frame,
    replication_rows,
)
from dialsim.experiments.run_spec import RunSpec
from dialsim.interface.arguments import checked
from dialsim.results.figures import FIGURES
from dialsim.results.folder import STORE
from dialsim.results.result import Progress, Shown, followed

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.experiments.plots import ReplicationPlots
    from dialsim.results.summary_text import FigureTable
    from dialsim.scenario.scenario import Scenario

# -- what is kept ----------------------------------------------------------------------------------

_SOURCES = (
    *("interface", "scenario", "engine", "webhooks", "results"),
    "experiments/run_figures.py",
)
"""Rooms and files of the package whose code decides the figures of a run."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS finished (
    version TEXT, scenario TEXT, seed INTEGER, replication INTEGER, figures TEXT NOT NULL,
    PRIMARY KEY (version, scenario, seed, replication)
) WITHOUT ROWID
"""


def _made_by() -> str:
    """Return the key of this program's runs: version, digest of the rules, and figures."""
    # A digest in place of a version number, which would have to be raised with every change of a
    # rule or figure.
    declared = repr([(figure.name, figure.unit, figure.is_float) for figure in FIGURES])
    both = f"{_rules_digest()} {declared}"
    return f"{__version__}, {hashlib.sha256(both.encode()).hexdigest()[:16]}"


@cache
def _rules_digest() -> str:
    package = Path(__file__).parents[1]
    places = [package / name for name in _SOURCES]
    return source_digest(
        file for place in places for file in ([place] if place.is_file() else place.rglob("*.py"))
    )


class Store:
    """Finished replications under a folder; one experiment at a time may write."""

    def __init__(self, folder: Path) -> None:
        """Open or create the store. Raises StoreError if it is in use, or is no store."""
        self.path = folder / STORE
        self._made_by = _made_by()
        # Autocommit, so that every finished replication survives a kill. The short timeout turns a
        # second writer into an error instead of a wait.
        self._database = sqlite3.connect(self.path, timeout=0.2, isolation_level=None)
        try:
            self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.execute(_SCHEMA)
        except sqlite3.OperationalError as error:
            self._database.close()
            in_use = "locked" in str(error)
            why = "another experiment is writing to it" if in_use else str(error)
            raise StoreError(f"{self.path} can't be used: {why}") from None
        except sqlite3.DatabaseError as error:
            self._database.close()
            raise StoreError(f"{self.path} is not a store of replications: {error}") from None

    def recall(self, spec: RunSpec, count: int) -> None:
        """Load the replications that are stored of a spec's first `count`."""
        # The key has the digests of scenario and program, so a changed rule never finds stale
        # figures.
        rows = self._database.execute(
            "SELECT figures FROM finished WHERE version = ? AND scenario = ? AND seed = ? "
            "AND replication < ?",
            (self._made_by, spec.digest, spec.seed, count),
        )
        for (text,) in rows:
            figures = RunFigures.from_text(text)
            spec.finished.setdefault(figures.replication, figures)

    def keep(self, spec: RunSpec, replication: int, text: str) -> None:
        """Store a finished replication durably."""
        self._database.execute(
            "INSERT OR REPLACE INTO finished VALUES (?, ?, ?, ?, ?)",
            (self._made_by, spec.digest, spec.seed, replication, text),
        )

    def close(self) -> None:
        """Close the file."""
        self._database.close()


# -- the runner ------------------------------------------------------------------------------------


class OutOfTime(Exception):
    """The time limit of an experiment has passed; finished runs are kept."""


class ExperimentRunner:
    """Runner of replications, with equal results for all kinds of workers."""

    def __init__(
        self,
        workers: Workers,
        store: Store | None,
        progress: Progress | None,
        engine: Choice,
        within: float | None = None,
    ) -> None:
        """`progress(done, total)` is called whenever a replication is finished.

        `engine` "auto" switches to the compiled engine when it pays. After `within` seconds no
        further runs start (`OutOfTime`).
        """
        self._end = inf if within is None else monotonic() + within
        self._workers = workers
        self._store = store
        self._progress = progress
        self._engine = engine
        self.ahead = 0
        """Estimated number of runs after the current ones, for the progress."""
        self._done = 0
        self._runs, self._calls = 0, 0  # of all replications so far; calls are estimated

    def replicate(
        self, specs: Sequence[RunSpec], count: int, asked: frozenset[str] | None = None
    ) -> None:
        """Make the first `count` replications of every spec that are not finished yet.

        With `asked` only these figures are computed, unless there is a store, in which other
        commands and pages expect all figures. Raises ReplicationFailed for the first failure,
        OutOfTime after the time limit; replications finished before are kept.
        """
        if self._store is not None:
            # Stored runs keep all figures, as the next experiment may ask for others.
            asked = None
            for spec in specs:
                self._store.recall(spec, count)
        if asked is not None:
            # Runs are shared only if single figures are asked for. Related variants are sorted side
            # by side, so that they go to a worker together.
            specs = sorted(specs, key=lambda c: (c.relatives.family, c.relatives.settings))
        # Variants of one replication are adjacent, so that workers take them together.
        owners, missing = [], []
        for replication in range(count):
            for spec in specs:
                if replication not in spec.finished:
                    owners.append(spec)
                    missing.append(replication)
        if not owners:
            return
        self._check_time()
        engine = self._choose(owners)
        tasks = [
            spec.task(index, replication, engine, asked)
            for index, (spec, replication) in enumerate(zip(owners, missing, strict=True))
        ]
        total = self._done + max(len(tasks), self.ahead)
        with closing(self._workers.outcomes(tasks)) as outcomes:
            for outcome in outcomes:
                task, spec = tasks[outcome.index], owners[outcome.index]
                if outcome.figures is None:
                    cause, rerun = outcome.failure or "", spec.rerun(task.replication)
                    raise ReplicationFailed(spec.seed, task.replication, cause, rerun)
                if self._store is not None:
                    self._store.keep(spec, task.replication, outcome.figures)
                spec.finished[task.replication] = RunFigures.from_text(outcome.figures, asked)
                self._done += 1
                if self._progress is not None:
                    self._progress(self._done, total)
                if outcome.index < len(tasks) - 1:
                    self._check_time()

    def _check_time(self) -> None:
        if monotonic() > self._end:
            raise OutOfTime

    def _choose(self, owners: Sequence[RunSpec]) -> Engine:
        """Return the engine for one more replication of each of the given specs."""
        # Cumulative, because a search requests few runs at a time, which add up.
        self._runs += len(owners)
        self._calls += sum(calls_of(spec.scenario) for spec in owners)
        engine = choose(self._engine, self._calls, self._runs)
        prepare(engine)
        return engine


class RunSettings(TypedDict, total=False):
    """Settings for the runs of any experiment.

    The runs are made by `jobs` processes (None: one per processor), or by the workers of the Dask
    scheduler `dask`, with equal results. `store` is a folder that keeps finished replications and
    is not run again. `progress(done, total)` counts runs. `engine` is "simpy", "compiled", or
    "auto" for the faster one; the results are equal. `begin` is called when the first run is due,
    so that arguments with errors have no effect.
    """

    jobs: int | None
    dask: str | None
    store: str | os.PathLike[str] | None
    progress: Shown
    engine: Choice
    begin: Callable[[], object] | None


@contextmanager
def runner(
    jobs: int | None = None,
    dask: str | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: Shown = None,
    engine: Choice = "auto",
    begin: Callable[[], object] | None = None,
    within: float | None = None,
) -> Iterator[ExperimentRunner]:
    """Yield a runner for one experiment; `store` is the folder of its store."""
    with ExitStack() as opened:
        if begin is not None:
            begin()
        kept = None
        if store is not None:
            try:
                Path(store).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(f"{store} can't be used: {error.strerror}") from None
            kept = opened.enter_context(closing(Store(Path(store))))
        workers = opened.enter_context(closing(Workers(jobs, dask)))
        shown = opened.enter_context(followed(progress, "runs"))
        yield ExperimentRunner(workers, kept, shown, engine, within)


_LEAST_BATCH = 4
_FIRST_STAGE = 10
"""Fewest runs at which a sequential procedure may stop, because the spread is unknown before."""


PrecisionGoal = tuple[Expression, float]
"""Figure, and the requested relative precision (such as 0.02) of its mean or median.
"""


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
        return to_json(self, ("figure", "wanted", "reached", "unfinished", "met"))


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
        return estimates(
            self._frames(), self.figures, confidence, self.bounds, self.days, self.expressions,
            self._start,
        )  # fmt: skip

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
